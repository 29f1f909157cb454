import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop

from sightline.agent.tools import commands as module
from sightline.agent.tools.commands import Child, start_child
from tests.agent.tools.processes import STUBBORN, environment, is_gone, pids_in, wait_for_end

both_loops = pytest.mark.usefixtures("loop_factory")


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def loop_factory(request: pytest.FixtureRequest) -> Callable[[], asyncio.AbstractEventLoop]:
    """Each of the loops that Sightline runs on."""
    return request.param


class OutputListener(asyncio.Event):
    """Set when the child has written something."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[tuple[int, bytes]] = []

    def take(self, fd: int, data: bytes) -> None:
        self.pieces.append((fd, data))
        self.set()


async def begin(script: str, heard: OutputListener, **how: bool) -> Child:
    command = (sys.executable, "-c", script)
    return await start_child(command, heard.take, folder=Path("/"), environment=environment(), **how)


@both_loops
@pytest.mark.parametrize("has_one_pipe", [False, True], ids=["two pipes", "one pipe"])
@pytest.mark.parametrize("has_own_pipes", [False, True], ids=["pipes of the loop, as on Windows", "own pipes"])
async def test_output_and_exit_code_are_captured(has_one_pipe: bool, has_own_pipes: bool) -> None:
    heard = OutputListener()
    script = "import sys; print(input()); sys.stdout.flush(); print('e', file=sys.stderr); exit(3)"
    child = await begin(script, heard, has_own_pipes=has_own_pipes, has_one_pipe=has_one_pipe)
    child.listen(is_wanted=False)
    child.listen(is_wanted=True)
    child.write(b"hello\n")
    await child.wait_until_finished()
    whole = {pipe: b"".join(data for number, data in heard.pieces if number == pipe) for pipe in (1, 2)}
    assert whole == ({1: b"hello\ne\n", 2: b""} if has_one_pipe else {1: b"hello\n", 2: b"e\n"})
    assert (child.exit_code, child.is_alive) == (3, False)


@both_loops
async def test_it_can_open_its_pipes_by_their_names() -> None:
    heard = OutputListener()
    child = await begin("open('/dev/stdout', 'w').write('o'); open('/dev/stderr', 'w').write('e')", heard)
    await child.wait_until_finished()
    assert sorted(heard.pieces) == [(1, b"o"), (2, b"e")]


@both_loops
async def test_one_pipe_keeps_the_order() -> None:
    heard = OutputListener()
    script = "import os\nfor n in range(6): os.write(1 + n % 2, b'%d' % n)"
    child = await begin(script, heard, has_one_pipe=True)
    child.close_input()
    await child.wait_until_finished()
    assert b"".join(data for _, data in heard.pieces) == b"012345"


@pytest.mark.parametrize("detached", [False, True], ids=["in its group", "in a session of its own"])
@both_loops
async def test_a_child_that_ignores_the_request_is_killed_with_its_descendants(
    detached: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GRACE_S", 0.1)
    file = tmp_path / "pids"
    heard = OutputListener()
    child = await begin(
        STUBBORN.format(file=str(file), detached=detached) + "print('ready', flush=True); time.sleep(600)", heard
    )
    await heard.wait()
    await child.end()
    await child.end()
    assert all(map(is_gone, pids_in(file)))
    assert len(pids_in(file)) == 2


@both_loops
async def test_what_a_child_leaves_behind_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRACE_S", 0.1)
    file = tmp_path / "pids"
    child = await begin(STUBBORN.format(file=str(file), detached=True), OutputListener())
    await child.wait_until_finished()
    assert child.exit_code == 0
    assert all(map(is_gone, pids_in(file)))


@both_loops
async def test_a_second_cancellation_does_not_save_it(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    heard = OutputListener()
    child = await begin(
        STUBBORN.format(file=str(file), detached=False) + "print('ready', flush=True); time.sleep(600)", heard
    )
    await heard.wait()
    ending = asyncio.ensure_future(child.end())
    await asyncio.sleep(0)
    ending.cancel()
    with suppress(asyncio.CancelledError):
        await ending
    await asyncio.to_thread(wait_for_end, pids_in(file))  # a signal that was sent is obeyed a moment later
    await child.end()


@both_loops
async def test_a_command_that_is_not_there_is_an_error_of_the_system() -> None:
    with pytest.raises(FileNotFoundError):
        await start_child(("/nowhere/at/all",), lambda *_: None, folder=Path("/"), environment={})


@both_loops
async def test_a_word_that_would_be_cut_is_refused() -> None:
    with pytest.raises(ValueError, match="null byte"):
        await start_child(("/bin/sh", "-c", "true\0; false"), lambda *_: None, folder=Path("/"), environment={})


@both_loops
async def test_writing_to_an_exited_process_is_ignored() -> None:
    child = await begin("", OutputListener())
    await child.exited.wait()
    child.write(b"hello")
    await child.wait_until_finished()
    child.write(b"hello")
    child.kill()


@both_loops
async def test_cancelled_start_leaves_no_process_behind() -> None:
    heard = OutputListener()
    begun: list[Child] = []
    made = module.Child

    def keep(*arguments: Any) -> Child:
        begun.append(made(*arguments))
        return begun[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "Child", keep)
        starting = asyncio.ensure_future(begin("input()", heard))
        await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
    assert [each.is_alive for each in begun] == [False]
