import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.cli.program import main
from tests.local_model import needs_model
from tests.server_process import PROGRAM


@pytest.fixture
def lent(tmp_path: Path) -> Iterator[tuple["subprocess.Popen[str]", dict[str, str]]]:
    """A model that `sightline local` runs, and an environment that says where."""
    command = [*PROGRAM, "local"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as lender:
        try:
            lines = [lender.stdout.readline() for _ in range(2)]
            variables = dict(line.removeprefix("export ").strip().split("=", 1) for line in lines)
            assert list(variables) == ["SIGHTLINE_LOCAL_URL", "SIGHTLINE_LOCAL_KEY"]
            yield lender, {**os.environ, **variables, "SIGHTLINE_DATA": str(tmp_path)}
        finally:
            lender.kill()


def said(environment: dict[str, str], *command: str, given: bytes = b"") -> bytes:
    done = subprocess.run(command, input=given, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_model
def test_the_embedded_model_is_lent_until_it_is_interrupted(
    lent: tuple["subprocess.Popen[str]", dict[str, str]],
) -> None:
    lender, environment = lent
    question = (*PROGRAM, "ask", "-m", "local", "--max-tokens", "4", "hi")
    assert said(environment, *question)
    script = said(environment, *question, "--as", "python")
    assert b"data: {" in said(environment, sys.executable, "-", given=script)

    lender.send_signal(signal.SIGINT)
    _, told = lender.communicate(timeout=60)
    assert lender.returncode == 130
    assert "Traceback" not in told
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"{environment['SIGHTLINE_LOCAL_URL']}/health")


def test_missing_runtime_library_is_reported_with_a_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "xllamacpp.py").write_text("raise ImportError('libgomp.so.1: cannot open shared object file')")
    assert main(["local"]) == 3
    told = capsys.readouterr().err
    assert told.startswith("error[local_unavailable]: ")
    assert "apt install libgomp1" in told
