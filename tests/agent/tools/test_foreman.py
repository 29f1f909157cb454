import asyncio
from pathlib import Path

import pytest

from sightline.agent.core.output import text_outcome
from sightline.agent.tools import python_file as module
from sightline.agent.tools.python_file import WorkerClient
from sightline.agent.tools.worker import Answer, FileBroken, FileLoaded, Load, Ran, RunFunction
from tests.agent.tools.processes import environment


def asked(folder: Path, source: str, name: str) -> tuple[Answer | None, WorkerClient]:
    async def story() -> tuple[Answer | None, WorkerClient]:
        worker = WorkerClient()
        assert not worker.is_alive
        await worker.start(folder / "kit.py", folder=folder, environment=environment())
        try:
            assert isinstance(await worker.ask(Load(source)), FileLoaded)
            return await worker.ask(RunFunction(name, {})), worker
        finally:
            await worker.end()

    return asyncio.run(story())


def test_an_order_is_answered(tmp_path: Path) -> None:
    assert asked(tmp_path, "def f(): return 'ok'", "f")[0] == Ran(text_outcome("ok"))


def test_an_end_is_no_answer(tmp_path: Path) -> None:
    answer, worker = asked(tmp_path, "import os, signal\ndef f(): os.kill(os.getpid(), signal.SIGSEGV)", "f")
    assert answer is None
    assert worker.end_in_words == "signal 11"
    assert not worker.is_alive


FOUND = """
import os, stat
def f():
    for fd in range(3, 20):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.write(fd, {0})
        except OSError:
            pass
    return 1
"""


def test_somebody_else_s_line_in_the_pipe_is_not_understood(tmp_path: Path) -> None:
    assert asked(tmp_path, FOUND.format(r"b'x\n'"), "f")[0] == FileBroken("what it answered is not understood")


def test_an_answer_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_ANSWER", 5000)
    assert asked(tmp_path, FOUND.format("b'x' * 6000"), "f")[0] == FileBroken("its answer is too long")


def test_before_its_start_there_is_nothing_to_end() -> None:
    worker = WorkerClient()
    asyncio.run(worker.end())
    assert worker.end_in_words == "it was ended"
