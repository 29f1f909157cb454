import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.agent.tools.commands import Capture, CommandResult, Commands, minimal, without_variables
from tests.agent.tools.processes import environment, is_gone, pids_in


def ran(script: str, timeout: float = 60.0, **how: object) -> CommandResult:
    async def story() -> CommandResult:
        commands = Commands(environment())
        return await commands.run(("/bin/sh", "-c", script), folder=Path("/"), timeout=timeout, **how)

    return asyncio.run(story())


def test_a_command_gets_its_input_and_is_run_to_its_end() -> None:
    assert ran("cat; echo no >&2; exit 4", given=b"yes") == CommandResult(4, "yes", "no\n")
    assert ran("cat; echo no >&2", given=b"yes\n", has_one_pipe=True) == CommandResult(0, "yes\nno\n")


def test_one_that_does_not_read_what_it_is_given() -> None:
    assert ran("exec <&-; echo done", given=b"x" * 1_000_000) == CommandResult(0, "done\n")


def test_timed_out_command_keeps_its_output() -> None:
    # A machine that is too busy to begin within the first of these times has more.
    tried = (ran("echo begun; exec sleep 600", timeout=each) for each in (0.3, 3.0, 30.0))
    finished = next(each for each in tried if each != CommandResult(None, ""))
    assert finished == CommandResult(None, "begun\n")
    assert finished.in_words == "stopped: it took too long"


@pytest.mark.parametrize(("code", "words"), [(0, "exit code 0"), (3, "exit code 3"), (-9, "ended by signal 9")])
def test_how_it_ended(code: int, words: str) -> None:
    assert CommandResult(code, "").in_words == words


async def test_all_that_runs_ends_when_it_is_closed() -> None:
    commands = Commands(environment())
    begun = asyncio.Semaphore(0)
    running = [
        asyncio.ensure_future(
            commands.run(
                ("/bin/sh", "-c", "echo here; exec sleep 600"),
                folder=Path("/"),
                timeout=60,
                on_output=lambda fd, data: begun.release(),
            )
        )
        for _ in range(3)
    ]
    for _ in running:
        await begun.acquire()
    await commands.close()
    assert [each.code for each in await asyncio.gather(*running)] == [-15] * 3


async def test_a_command_ends_with_what_it_started_when_its_caller_is_cancelled(tmp_path: Path) -> None:
    begun = asyncio.Event()
    script = "sleep 600 & echo $$ $! > pids; echo here; wait"
    running = Commands(environment()).run(
        ("/bin/sh", "-c", script), folder=tmp_path, timeout=60, on_output=lambda _fd, _data: begun.set()
    )
    task = asyncio.ensure_future(running)
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(pids_in(tmp_path / "pids")) == 2
    assert all(map(is_gone, pids_in(tmp_path / "pids")))


async def test_one_that_is_being_started_when_it_is_closed_ends_too() -> None:
    commands = Commands(environment())
    running = asyncio.ensure_future(commands.run(("/bin/sleep", "600"), folder=Path("/"), timeout=60))
    await asyncio.sleep(0)
    await commands.close()
    with pytest.raises(OSError, match="anceled"):
        await commands.run(("/bin/true",), folder=Path("/"), timeout=60)
    assert (await running).code == -15


def test_a_short_output_is_whole() -> None:
    capture = Capture(4, 4)
    for piece in (b"ab", b"cdef", "é".encode()):
        capture.add(piece)
    assert capture.text == "abcdefé"


def test_a_long_one_says_what_is_missing() -> None:
    capture = Capture(4, 4)
    for _ in range(1000):
        capture.add(b"0123456789")
    assert capture.text == "0123\n[9992 of 10000 bytes are left out here]\n6789"


@given(st.lists(st.binary(max_size=30)), st.integers(0, 20), st.integers(1, 20))
def test_however_it_comes_the_same_is_kept(pieces: list[bytes], head: int, tail: int) -> None:
    split, whole = Capture(head, tail), Capture(head, tail)
    for piece in pieces:
        split.add(piece)
    whole.add(b"".join(pieces))
    assert split.text == whole.text
    assert sum(map(len, split._tail)) < tail + 30


OURS = {"PATH": "/bin", "LC_ALL": "C", "OPENAI_API_KEY": "sk-1", "GITHUB_TOKEN": "gh", "LD_PRELOAD": "x.so"}


def test_a_command_of_the_model_gets_what_any_command_needs() -> None:
    assert minimal(OURS) == {"PATH": "/bin", "LC_ALL": "C"}


def test_a_program_of_a_person_gets_all_but_the_providers_keys() -> None:
    assert without_variables(OURS, {"OPENAI_API_KEY", "NOT_SET"}).keys() == OURS.keys() - {"OPENAI_API_KEY"}
