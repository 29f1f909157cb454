"""Processes that drive the same run and kill themselves, each at another fact: `python -m … FOLDER URL`.

Number N of them ends just before fact number N is written ("before"), just after ("after"), or as it likes ("never").
The first that gets to the end of its run is the last; its number is printed.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from sightline.agent.core.approval import ApprovalRule, Policy
from sightline.agent.core.run import RunPlan
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import ToolOutcome, text_outcome
from sightline.store.store import Line, Log, Logbook
from tests.loop_stage import plan
from tests.running_stage import FakeTools, Person, RunStage, opened

EFFECTS = "effects"


def the_plan() -> RunPlan:
    """Some calls are allowed, and a person is asked about others."""
    return plan(policy=Policy((ApprovalRule("count", "allow"), ApprovalRule("shell", "allow"))))


def the_tools(folder: Path) -> FakeTools:
    """Tools whose effect can be seen from outside, one line for each call that ran."""

    async def act(call: RunnableCall) -> ToolOutcome:
        file = os.open(folder / EFFECTS, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        os.write(file, f"{call.key}\n".encode())
        os.close(file)
        return text_outcome(f"{call.name} {call.key} did it")

    return FakeTools(act)


async def stage_of(folder: Path, url: str, number: str) -> RunStage:
    """The same stage for whoever drives; exchanges of a later process have other names."""
    ids = count(1)
    return await opened(folder, url, make_id=lambda: f"x_{number}_{next(ids):03}")


class Deadly:
    """A logbook that ends its process at one of its lines."""

    def __init__(self, logbook: Logbook, at: int, how: str) -> None:
        self._logbook = logbook
        self._at = at
        self._how = how
        self._count = 0

    async def append(self, log: str, after: int, data: Sequence[bytes], at: float) -> None:
        self._count += 1
        if self._count == self._at and self._how == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        await self._logbook.append(log, after, data, at)
        if self._count == self._at and self._how == "after":
            os.kill(os.getpid(), signal.SIGKILL)

    async def lines(self, log: str, after: int = 0) -> list[Line]:
        return await self._logbook.lines(log, after)

    async def logs(self, prefix: str = "") -> list[Log]:
        return await self._logbook.logs(prefix)

    async def forget(self, log: str) -> None:
        await self._logbook.forget(log)


async def driven(folder: Path, url: str, number: int, how: str) -> None:
    stage = await stage_of(folder, url, "first")
    stage.runner.logbook = Deadly(stage.store.logbook, number, how)
    more: dict[str, Any] = {"prompt": stage.prompt(f"{how} {number}"), "tools": the_tools(folder)}
    await stage.run(the_plan(), Person(), **more)
    await stage.close()


def main(folder: Path, url: str, how: str) -> None:
    for number in count(1):
        own = folder / f"{how}-{number}"
        own.mkdir()
        child = os.fork()
        if not child:
            asyncio.run(driven(own, url, number, how))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status == 0:
            os.write(1, f"{number}\n".encode())
            return
        assert os.WTERMSIG(status) == signal.SIGKILL, f"number {number} ended with {status}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
