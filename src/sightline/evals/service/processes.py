"""Runs the commands of targets and graders, and the Python functions of graders, with limits on time and output."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sightline.agent.core.steps import RunnableCall
from sightline.agent.tools.commands import Commands
from sightline.agent.tools.python_file import PythonFile
from sightline.agent.tools.worker import ARGUMENT, VALUE
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Text
from sightline.transport.waiting import Clock

MOST_OUTPUT = 32 << 20


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """The result of a command; a negative code is a signal."""

    code: int
    output: bytes
    complaints: bytes
    seconds: float


class Process:
    """Runs commands, each in its own process group, which is killed when the command ends, on a timeout, or by
    `close`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running: set[Commands] = set()

    async def run(
        self,
        argv: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        timeout: float,  # noqa: ASYNC109 - handed on
        given: bytes = b"",
    ) -> ProcessResult:
        """Run a command. Raises a fault if it cannot be started, takes too long or writes too much."""
        began = self._clock.monotonic()
        pipes = {1: bytearray(), 2: bytearray()}

        def collect(pipe: int, data: bytes) -> None:
            room = MOST_OUTPUT + 1 - len(pipes[pipe])
            pipes[pipe] += data[:room]

        commands = Commands(environment)
        self._running.add(commands)
        try:
            ended = await commands.run(argv, folder=folder, timeout=timeout, given=given, on_output=collect)
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else str(error)
            raise Fault(Code.CONFIG, f"{argv[0]} cannot be run: {words}", hint="Check the command.") from None
        finally:
            self._running.discard(commands)
        if ended.code is None:
            hint = "Give it more time, or see by hand what it waits for."
            raise Fault(Code.TIMEOUT_IDLE, f"{argv[0]} took longer than {timeout:g} s and was ended", hint=hint)
        if len(pipes[1]) > MOST_OUTPUT:
            raise Fault(
                Code.UPSTREAM_ERROR, f"{argv[0]} writes more than {MOST_OUTPUT >> 20} MB", hint="Let it write less."
            )
        return ProcessResult(ended.code, bytes(pipes[1]), bytes(pipes[2]), self._clock.monotonic() - began)

    async def close(self) -> None:
        """Kill all commands that still run."""
        for commands in list(self._running):
            await commands.close()


class PythonGraders:
    """Keeps a set of workers for each file and time limit."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._files: dict[tuple[Path, float], PythonFile] = {}
        self._loading = asyncio.Lock()

    async def call(self, file: Path, function: str, payload: JsonObject, limit: float) -> Json:
        """Call a function and return its value. Raises a fault if it raises, times out or does not exist."""
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
        for each in self._files.values():
            await each.close()
        self._files.clear()

    async def _load(self, file: Path, limit: float) -> PythonFile:
        async with self._loading:
            found = self._files.get((file, limit))
            if found is None:
                found = PythonFile(
                    file, folder=file.parent, environment=self._environment, timeout=limit, kind="graders"
                )
                try:
                    await found.load()
                except Fault:
                    await found.close()
                    raise
                self._files[file, limit] = found
            return found
