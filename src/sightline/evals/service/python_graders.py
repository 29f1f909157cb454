"""Functions of Python files that grade: called in processes of their own, which are kept for the next case."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from sightline.agent.core.steps import RunnableCall
from sightline.agent.tools.grader_worker import ARGUMENT, VALUE
from sightline.agent.tools.python_file import PythonFile
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Text

WORKER = "sightline.agent.tools.grader_worker"


class PythonGraders:
    """One set of workers for a file and a time limit."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._files: dict[tuple[Path, float], PythonFile] = {}
        self._loading = asyncio.Lock()

    async def call(self, file: Path, function: str, payload: JsonObject, limit: float) -> Json:
        """What the function returns. One that raises, takes too long or is not there is a fault."""
        graders = await self._load(file, limit)
        if all(each.name != function for each in graders.definitions):
            known = ", ".join(each.name for each in graders.definitions[:8])
            raise Fault(Code.CONFIG, f"{file.name} has no function {function}", hint=f"It has: {known or 'none'}.")
        call = RunnableCall(key=function, id=function, name=function, arguments={ARGUMENT: payload})
        outcome = await graders.use(call, lambda _words: None)
        if outcome.is_error or outcome.structured is None:
            words = "\n".join(part.text for part in outcome.parts if isinstance(part, Text))
            raise Fault(Code.CONFIG, words[:2000] or "it returned too much", hint="Call it by hand to see more.")
        return outcome.structured[VALUE]

    async def close(self) -> None:
        """End all workers."""
        for each in self._files.values():
            await each.close()
        self._files.clear()

    async def _load(self, file: Path, limit: float) -> PythonFile:
        async with self._loading:
            found = self._files.get((file, limit))
            if found is None:
                found = PythonFile(
                    file, folder=file.parent, environment=self._environment, timeout=limit, program=WORKER
                )
                try:
                    await found.load()
                except Fault:
                    await found.close()
                    raise
                self._files[file, limit] = found
            return found
