import asyncio
from pathlib import Path

import pytest

from sightline.agent.tools.commands import CommandResult, Commands
from tests.agent.tools.processes import environment


def ran(script: str, timeout: float = 60.0, **how: object) -> CommandResult:
    async def story() -> CommandResult:
        commands = Commands(environment())
        return await commands.run(("/bin/sh", "-c", script), folder=Path("/"), timeout=timeout, **how)  # type: ignore[arg-type]

    return asyncio.run(story())


def test_a_command_gets_its_input_and_is_run_to_its_end() -> None:
    assert ran("cat; echo no >&2; exit 4", given=b"yes") == CommandResult(4, "yes", "no\n")
    assert ran("cat; echo no >&2", given=b"yes\n", has_one_pipe=True) == CommandResult(0, "yes\nno\n")


def test_one_that_does_not_read_what_it_is_given() -> None:
    assert ran("exec <&-; echo done", given=b"x" * 1_000_000) == CommandResult(0, "done\n")


def test_one_that_takes_too_long_leaves_what_it_said() -> None:
    # A machine that is too busy to begin within the first of these times has more.
    tried = (ran("echo begun; exec sleep 600", timeout=each) for each in (0.3, 3.0, 30.0))
    finished = next(each for each in tried if each != CommandResult(None, ""))
    assert finished == CommandResult(None, "begun\n")
    assert finished.in_words == "stopped: it took too long"


@pytest.mark.parametrize(("code", "words"), [(0, "exit code 0"), (3, "exit code 3"), (-9, "ended by signal 9")])
def test_how_it_ended(code: int, words: str) -> None:
    assert CommandResult(code, "").in_words == words


def test_all_that_runs_ends_when_it_is_closed() -> None:
    async def story() -> list[CommandResult]:
        commands = Commands(environment())
        begun = asyncio.Semaphore(0)
        running = [
            asyncio.ensure_future(
                commands.run(
                    ("/bin/sh", "-c", "echo here; exec sleep 600"),
                    folder=Path("/"),
                    timeout=60,
                    heard=lambda fd, data: begun.release(),
                )
            )
            for _ in range(3)
        ]
        for _ in running:
            await begun.acquire()
        await commands.close()
        return await asyncio.gather(*running)

    assert [each.code for each in asyncio.run(story())] == [-15] * 3


def test_one_that_is_being_started_when_it_is_closed_ends_too() -> None:
    async def story() -> CommandResult:
        commands = Commands(environment())
        running = asyncio.ensure_future(commands.run(("/bin/sleep", "600"), folder=Path("/"), timeout=60))
        await asyncio.sleep(0)
        await commands.close()
        with pytest.raises(OSError, match="anceled"):
            await commands.run(("/bin/true",), folder=Path("/"), timeout=60)
        return await running

    assert asyncio.run(story()).code == -15
