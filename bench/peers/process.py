"""A program with all its children: started on one core, counted through /proc, and ended."""

import os
import select
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import clock_gettime, perf_counter, sleep

TICKS = os.sysconf("SC_CLK_TCK")
CORES = sorted(os.sched_getaffinity(0))
PROXY_CORE = CORES[0]
# Upstream and load have another core than the proxy where there is one.
LOAD_CORE = CORES[1] if len(CORES) > 1 else CORES[0]
GRACE = 20.0
# A tree that uses less than this share of a core between two looks has done its work.
IDLE_SHARE = 0.05
LOOK = 1.2
PATIENCE = 90.0


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """What is started in here runs there, children included."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class Tree:
    """A running program and its children."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str], core: int) -> None:
        self.log = folder / "log.txt"
        with on_core(core), self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=_clean(environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def ends_within(self, seconds: float) -> bool:
        """Whether it ends in this time; told at the moment at which it does."""
        if self.has_ended:
            return True
        ending = os.pidfd_open(self._process.pid)
        try:
            select.select([ending], [], [], seconds)
        finally:
            os.close(ending)
        return self.has_ended

    @property
    def exit_code(self) -> int | None:
        """What it ended with; None while it runs."""
        return self._process.poll()

    def last_words(self) -> str:
        """The end of what it wrote."""
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1][-200:] if lines else "it wrote nothing"

    def cpu_seconds(self) -> float:
        """Time on the core of every process of the tree, and of those that have ended and been waited for."""
        total = 0.0
        for process, fields in self._stats().items():
            total += _on_core(process) + sum(int(field) for field in fields[13:15]) / TICKS
        return total

    def settled_cpu_seconds(self) -> tuple[float, bool]:
        """The same once there is nothing left to do, and whether that moment came."""
        began = perf_counter()
        before = self.cpu_seconds()
        while perf_counter() - began < PATIENCE:
            sleep(LOOK)
            after = self.cpu_seconds()
            if after - before < IDLE_SHARE * LOOK:
                return after, True
            before = after
        return before, False

    def memory(self) -> tuple[float, float]:
        """Resident megabytes now, and at the most. What several of its processes have of the same file is there once,
        so that it counts once now; in the most it counts for each, because the system does not say what it was of."""
        own, files = 0, dict[str, int]()
        for process in self._stats():
            resident, mapped = _resident(process)
            own += resident
            for name, kilobytes in mapped.items():
                files[name] = max(files.get(name, 0), kilobytes)
        return (own + sum(files.values())) / 1024, self._megabytes("VmHWM")

    def own_memory(self) -> float:
        """Megabytes that it has written: pages of files, which the system may take back at any time, do not count."""
        return self._megabytes("RssAnon") + self._megabytes("VmSwap")

    def _megabytes(self, wanted: str) -> float:
        kilobytes = 0
        for process in self._stats():
            for line in _lines(Path(f"/proc/{process}/status")):
                name, _, value = line.partition(":")
                if name == wanted:
                    kilobytes += int(value.split()[0])
        return kilobytes / 1024

    def stop(self) -> None:
        """Ask it to end; then end it."""
        for each in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is None:
                os.killpg(self._process.pid, each)
                try:
                    self._process.wait(GRACE)
                except subprocess.TimeoutExpired:
                    continue
        # Children that outlived their parent are still of its group.
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def _stats(self) -> dict[int, list[str]]:
        """The fields of /proc/N/stat behind the name, for the process and everything below it."""
        every: dict[int, list[str]] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and (lines := _lines(entry / "stat")):
                every[int(entry.name)] = lines[0].rpartition(")")[2].split()
        found: dict[int, list[str]] = {}
        waiting = [self._process.pid]
        while waiting:
            process = waiting.pop()
            if process in every:
                found[process] = every[process]
                waiting += [other for other, fields in every.items() if int(fields[1]) == process]
        return found


def _on_core(process: int) -> float:
    """Seconds, from the clock that Linux keeps for each process: /proc has the same figure in steps of 10 ms."""
    try:
        return clock_gettime(~process << 3 | 2)
    except OSError:
        # It ended between two looks.
        return 0.0


def _resident(process: int) -> tuple[int, dict[str, int]]:
    """Kilobytes that a process has for itself, and those of each mapped file."""
    own, files, name, resident = 0, dict[str, int](), "", 0
    for line in _lines(Path(f"/proc/{process}/smaps")):
        words = line.split()
        if not words[0].endswith(":"):
            name = words[5] if len(words) > 5 else ""
        elif words[0] == "Rss:":
            resident = int(words[1])
        elif words[0] == "Anonymous:":
            own += int(words[1])
            files[name] = files.get(name, 0) + resident - int(words[1])
    return own, files


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        # It ended between two looks.
        return []


def _clean(more: Mapping[str, str]) -> dict[str, str]:
    """Our environment without what would send local traffic elsewhere or keep byte code from being stored."""
    unwanted = ("_PROXY", "PYTHONDONTWRITEBYTECODE", "SIGHTLINE_", "OPENAI_", "ANTHROPIC_")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not any(part in name.upper() for part in unwanted) and name != "VIRTUAL_ENV"
    }
    return {**kept, **more}
