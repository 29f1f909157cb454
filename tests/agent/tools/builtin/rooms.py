"""A folder for the built-in tools, and what one of them says."""

import asyncio
from pathlib import Path

from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import ToolOutcome, words_of
from sightline.agent.tools.builtin.builtin import NAMES, Builtin
from tests.agent.tools.processes import environment


def used(folder: Path, name: str, *, timeout: float = 60.0, **arguments: object) -> ToolOutcome:
    async def story() -> ToolOutcome:
        tools = Builtin(folder, NAMES, environment=environment(), timeout=timeout)
        try:
            call = RunnableCall(key="1.1", id="a", name=name, arguments=arguments)
            return await tools.use(call, lambda words: None)
        finally:
            await tools.close()

    return asyncio.run(story())


def said(folder: Path, name: str, **arguments: object) -> str:
    outcome = used(folder, name, **arguments)
    assert not outcome.is_error, words_of(outcome)
    return words_of(outcome)


def refused(folder: Path, name: str, *, timeout: float = 60.0, **arguments: object) -> str:
    outcome = used(folder, name, timeout=timeout, **arguments)
    assert outcome.is_error, words_of(outcome)
    return words_of(outcome)
