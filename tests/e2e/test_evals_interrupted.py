"""The program itself, ended by signals in the middle of a run: nothing that it started stays, and the run goes on."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.evals.eval_folder import eval_folder
from tests.eval_stage import KNOWN, knows
from tests.server_process import PROGRAM
from tests.upstream import Talk, Upstream

SUITE = "capitals.eval.yaml"
# It starts another, and neither of them cares for a signal that can be cared for.
STUBBORN = """
import os, signal, sys, time
for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(each, signal.SIG_IGN)
if os.fork() == 0:
    time.sleep(600)
with open("begun", "w") as file:
    file.write(str(os.getpid()))
os.rename("begun", "running")
time.sleep(600)
"""


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    stubborn = f'[evals.targets.stubborn.cli]\nwords = ["{sys.executable}", "stubborn.py"]\n'
    with eval_folder(tmp_path, monkeypatch, stubborn) as upstream:
        (tmp_path / "stubborn.py").write_text(STUBBORN)
        yield upstream


def started(*words: str) -> "subprocess.Popen[bytes]":
    """The program as a shell starts it, with a process group of its own."""
    return subprocess.Popen(
        [*PROGRAM, "eval", "run", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0
    )


def alive(session: int) -> list[int]:
    """The processes of a session that have not ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended meanwhile
            if int(fields[3]) == session and fields[0] not in "ZX":
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize(
    ("sent", "is_group", "code"),
    [(signal.SIGINT, True, 130), (signal.SIGTERM, False, 143), (signal.SIGHUP, True, 129)],
)
def test_what_it_started_ends_with_it(
    upstream: Upstream, tmp_path: Path, sent: signal.Signals, code: int, *, is_group: bool
) -> None:
    process = started(SUITE, "--target", "stubborn", "--workers", "1", "--jsonl", "r.jsonl")
    try:
        while not (tmp_path / "running").exists():
            assert process.poll() is None, process.stderr and process.stderr.read()
        session = int((tmp_path / "running").read_text())
        assert len(alive(session)) == 2
        (os.killpg if is_group else os.kill)(process.pid, sent)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out, alive(session)) == (code, b"", [])
    assert err.startswith(b"interrupted; resume with: sightline eval run --resume e_")
    assert err.count(b"\n") == 1
    assert not (tmp_path / "r.jsonl").exists()


@pytest.mark.parametrize("times", [1, 2])
def test_a_run_that_was_interrupted_ends_as_if_it_had_not_been(upstream: Upstream, tmp_path: Path, times: int) -> None:
    whole = subprocess.run(
        [*PROGRAM, "eval", "run", SUITE, "--target", "acme/m", "--no-cache", "--jsonl", "whole"], capture_output=True
    )
    assert whole.returncode == 1
    answers, asked = knows(upstream, KNOWN), len(upstream.seen)
    process = started(SUITE, "--target", "acme/m", "--no-cache", "--workers", "1", "--jsonl", "cut")

    async def model(talk: Talk) -> None:
        if len(upstream.seen) == asked + 2:  # the first is written down by now, and the second never comes
            for _ in range(times):
                os.killpg(process.pid, signal.SIGINT)
            await talk.stall()
        await answers(talk)

    upstream.script = [model]
    _, err = process.communicate(timeout=60)
    assert (process.returncode in (130, -signal.SIGINT), (tmp_path / "cut").exists()) == (True, False)
    assert b"Traceback" not in err
    again = subprocess.run([*PROGRAM, "eval", "run", "--resume", "last", "--jsonl", "cut"], capture_output=True)
    assert (again.returncode, again.stderr) == (1, b"")
    assert rows(tmp_path / "cut") == rows(tmp_path / "whole")
    assert len(upstream.seen) == asked + 4  # one was cut off, and nothing else was asked for twice


def rows(file: Path) -> list[tuple[object, ...]]:
    found = [json.loads(line) for line in file.read_text().splitlines()]
    return [(row["case"], row["target"], row["trial"], row["status"], row["verdict"], row["score"]) for row in found]
