"""Running a command line in the folder. The folder is where it begins, and no wall around it."""

from dataclasses import dataclass
from pathlib import Path

from sightline.agent.core.output import ToolOutcome, text_outcome
from sightline.agent.tools.builtin.folder import Folder
from sightline.agent.tools.commands import Commands
from sightline.agent.tools.tools import Progress

_LONGEST_WORDS = 500


@dataclass(frozen=True, slots=True)
class Shell:
    """The tools `run_command` and `local_shell`."""

    folder: Folder
    commands: Commands
    timeout: float
    progress: Progress

    async def run_command(self, command: str) -> ToolOutcome:
        """Run a command line with /bin/sh in the project's folder; what it prints and its exit code come back.

        It has no input. What it starts in the background is ended with it.

        Args:
            command: the command line
        """
        return await self._run(("/bin/sh", "-c", command), self.folder.path, self.timeout)

    async def local_shell(
        self,
        command: list[str],
        env: dict[str, str] | None = None,
        timeout_ms: int | None = None,
        working_directory: str | None = None,
        user: str | None = None,
    ) -> ToolOutcome:
        """Run a command in the project's folder; what it prints and its exit code come back.

        Args:
            command: the program and its arguments
            env: variables for it, beside the usual ones
            timeout_ms: the longest that it may take
            working_directory: a folder below the project's
            user: another user, as whom it is never run
        """
        if not command:
            return text_outcome("There is no command to run.", is_error=True)
        if user:
            return text_outcome("Commands are run as the user who started this run, and as no other.", is_error=True)
        root = self.folder.path.resolve()
        where = (root / (working_directory or "")).resolve()
        if not where.is_relative_to(root) or not where.is_dir():
            return text_outcome(f"There is no folder {working_directory!r} in the project's folder.", is_error=True)
        variables = [f"{name}={value}" for name, value in (env or {}).items()]
        words = ("/usr/bin/env", "--", *variables, *command) if variables else tuple(command)
        seconds = self.timeout if timeout_ms is None else min(self.timeout, max(timeout_ms, 0) / 1000)
        return await self._run(words, where, seconds)

    async def _run(self, command: tuple[str, ...], folder: Path, seconds: float) -> ToolOutcome:
        if any("\0" in word or not _is_spelled(word) for word in command):
            return text_outcome("This command line holds characters that no command line can.", is_error=True)
        finished = await self.commands.run(
            command, folder=folder, timeout=seconds, heard=self._report_last_line, has_one_pipe=True
        )
        output = finished.output
        gap = "" if not output or output.endswith("\n") else "\n"
        return text_outcome(f"{output}{gap}[{finished.in_words}]", is_error=finished.code != 0)

    def _report_last_line(self, fd: int, data: bytes) -> None:
        lines = data[-_LONGEST_WORDS:].decode(errors="replace").split("\n")
        if words := next((line.strip() for line in reversed(lines) if line.strip()), ""):
            self.progress(words)


def _is_spelled(command: str) -> bool:
    try:
        command.encode()
    except UnicodeEncodeError:
        return False
    return True
