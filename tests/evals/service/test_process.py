import asyncio
import os
from pathlib import Path

import pytest

from sightline.errors import Code, Fault
from sightline.evals.service import processes as module
from sightline.evals.service.processes import Process, ProcessResult
from tests.agent.tools.processes import is_gone
from tests.fake_clock import FakeClock

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def ran(argv: tuple[str, ...], folder: Path, **more: object) -> ProcessResult:
    async def run() -> ProcessResult:
        settings = {"timeout": 30.0, "environment": ENVIRONMENT, **more}
        return await Process(FakeClock()).run(argv, folder=folder, **settings)  # type: ignore[arg-type]

    return asyncio.run(run())


def test_all_that_a_command_writes_is_heard(tmp_path: Path) -> None:
    ended = ran(("sh", "-c", "cat; head -c 200000 /dev/zero; echo no >&2; exit 3"), tmp_path, given=b"hi")
    assert (ended.code, len(ended.output), ended.output[:2], ended.complaints) == (3, 200_002, b"hi", b"no\n")


def test_a_command_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="no-such-program cannot be run: No such file") as caught:
        ran(("no-such-program",), tmp_path)
    assert caught.value.code is Code.CONFIG
    with pytest.raises(Fault, match="null byte"):
        ran(("sh", "a\0b"), tmp_path)


def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    script = "sleep 600 & echo $! > child; wait"
    with pytest.raises(Fault, match=r"took longer than 2 s"):
        ran(("sh", "-c", script), tmp_path, timeout=2.0)
    assert is_gone(int((tmp_path / "child").read_text()))


def test_a_command_that_writes_without_end_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OUTPUT", 1000)
    with pytest.raises(Fault, match="writes more than"):
        ran(("sh", "-c", "head -c 5000 /dev/zero"), tmp_path)


def test_what_runs_is_ended_by_closing(tmp_path: Path) -> None:
    async def story() -> None:
        process = Process(FakeClock())
        os.mkfifo(tmp_path / "begun")
        task = asyncio.ensure_future(
            process.run(("sh", "-c", "echo > begun; sleep 600"), folder=tmp_path, environment=ENVIRONMENT, timeout=600)
        )
        await asyncio.to_thread((tmp_path / "begun").read_text)
        await process.close()
        assert (await task).code < 0

    asyncio.run(story())
