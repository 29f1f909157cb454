import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from sightline.transport.embedded import diagnosis as inspection
from sightline.transport.embedded.diagnosis import Inspection, inspect
from sightline.transport.embedded.weights import SHA256
from tests.local_model import needs_model


@needs_model
def test_a_machine_that_has_everything() -> None:
    seen = inspect()
    assert seen.has_build
    assert seen.engine
    assert seen.weights.endswith(".gguf")
    assert seen.sha256 == SHA256
    assert seen.openmp_problem == ""
    assert seen.avx2 is not False


def test_a_python_with_nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(inspection, "ENGINE", "an-engine-that-nobody-wrote")
    seen = inspect(str(tmp_path / "none.gguf"))
    assert (seen.engine, seen.weights, seen.sha256) == ("", "", "")


def test_the_program_says_what_it_saw(tmp_path: Path) -> None:
    weights = tmp_path / "mine.gguf"
    weights.write_bytes(b"GGUF")
    program = [sys.executable, "-P", "-m", "sightline.transport.embedded.diagnosis", str(weights)]
    said = subprocess.run(program, check=True, capture_output=True).stdout
    assert msgspec.json.decode(said, type=Inspection).weights == "mine.gguf"
