"""Programs that stand in the place of the child's Python and end in ways that a healthy one does not."""

import contextlib
import os
from pathlib import Path

STARTED = """echo '{"type":"started","address":"http://127.0.0.1:1"}'"""


class StandIn:
    """A shell script that is started as if it were Python. Each start leaves its process id behind."""

    def __init__(self, folder: Path, script: str) -> None:
        self._starts = folder / "starts"
        self.path = folder / "python"
        self.path.write_text(f"#!/bin/sh\necho $$ >> {self._starts}\n{script}\n")
        self.path.chmod(0o755)

    @property
    def pids(self) -> list[int]:
        """The processes that were started, in order."""
        return [int(line) for line in self._starts.read_text().split()] if self._starts.exists() else []


def until_dead(pid: int) -> None:
    """Wait in a way that lets nothing else run, so that the loop cannot have been told."""
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
