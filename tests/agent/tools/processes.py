"""Real children for the tests of what runs tools, and the question whether one is gone."""

import os
import select
from contextlib import suppress
from pathlib import Path

STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
script = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, start_new_session={detached})
child.stdout.readline()
open({file!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
"""


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has asked for its exit code yet has."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(b")")[2].split()[0] in (b"Z", b"X")


def wait_for_end(pids: list[int]) -> None:
    """Wait until these processes are gone, however long that takes."""
    for pid in pids:
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            try:
                select.select([handle], [], [])
            finally:
                os.close(handle)


def pids_in(file: Path) -> list[int]:
    return [int(word) for word in file.read_text().split()]


def environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"]}
