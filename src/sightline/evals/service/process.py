"""Commands of targets and graders, run to their end with all that they write, within bounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sightline.agent.tools.commands import Commands
from sightline.errors import Code, Fault
from sightline.transport.clock import Clock

MOST_OUTPUT = 32 << 20


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a command ended; a negative code is a signal."""

    code: int
    output: bytes
    complaints: bytes
    seconds: float


class Process:
    """Runs commands. Each has a process group of its own, which is ended with it, after its time, or by `close`."""

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
        """Run it. One that cannot be started, takes too long or writes too much is a fault."""
        began = self._clock.monotonic()
        pipes = {1: bytearray(), 2: bytearray()}

        def collect(pipe: int, data: bytes) -> None:
            room = MOST_OUTPUT + 1 - len(pipes[pipe])
            pipes[pipe] += data[:room]

        commands = Commands(environment)
        self._running.add(commands)
        try:
            ended = await commands.run(argv, folder=folder, timeout=timeout, given=given, heard=collect)
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
        """End all that runs."""
        for commands in list(self._running):
            await commands.close()
