"""Running a command line in the folder. The folder is where it begins, and no wall around it."""

from dataclasses import dataclass

from sightline.loop.output import Outcome, said
from sightline.tools.builtin.folder import Folder
from sightline.tools.commands import Commands
from sightline.tools.tools import Progress

_LONGEST_WORDS = 500


@dataclass(frozen=True, slots=True)
class Shell:
    """The tool `run_command`."""

    folder: Folder
    commands: Commands
    timeout: float
    progress: Progress

    async def run_command(self, command: str) -> Outcome:
        """Run a command line with /bin/sh in the project's folder; what it prints and its exit code come back.

        It has no input. What it starts in the background is ended with it.

        Args:
            command: the command line
        """
        if "\0" in command or not _is_spelled(command):
            return said("This command line holds characters that no command line can.", is_error=True)
        finished = await self.commands.run(
            ("/bin/sh", "-c", command),
            folder=self.folder.path,
            timeout=self.timeout,
            heard=self._heard,
            has_one_pipe=True,
        )
        output = finished.output
        gap = "" if not output or output.endswith("\n") else "\n"
        return said(f"{output}{gap}[{finished.in_words}]", is_error=finished.code != 0)

    def _heard(self, fd: int, data: bytes) -> None:
        lines = data[-_LONGEST_WORDS:].decode(errors="replace").split("\n")
        if words := next((line.strip() for line in reversed(lines) if line.strip()), ""):
            self.progress(words)


def _is_spelled(command: str) -> bool:
    try:
        command.encode()
    except UnicodeEncodeError:
        return False
    return True
