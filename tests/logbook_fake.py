"""A logbook in memory, for tests that need no store."""

from collections.abc import Mapping, Sequence

from sightline.errors import Fault
from sightline.store.store import Line, Log, overtaken


class MemoryLogbook:
    """Logs by name. `fault`, where it is set, is raised by every append."""

    def __init__(self) -> None:
        self.kept: dict[str, list[Line]] = {}
        self.fault: Fault | None = None

    async def append(self, log: str, after: int, data: Sequence[bytes], at: float) -> None:
        if self.fault is not None:
            raise self.fault
        lines = self.kept.setdefault(log, [])
        if len(lines) != after:
            raise overtaken(log)
        lines += [Line(after + n, at, each) for n, each in enumerate(data, 1)]

    async def lines(self, log: str, after: int = 0) -> list[Line]:
        return self.kept.get(log, [])[after:]

    async def logs(self, prefix: str = "") -> list[Log]:
        found = [(name, lines) for name, lines in self.kept.items() if name.startswith(prefix) and lines]
        logs = [Log(name, len(lines), lines[0].at, lines[-1].at) for name, lines in found]
        return sorted(logs, key=lambda log: log.latest, reverse=True)

    async def rewrite(self, log: str, lines: Mapping[int, bytes]) -> None:
        kept = self.kept.get(log, [])
        self.kept[log] = [Line(line.n, line.at, lines.get(line.n, line.data)) for line in kept]

    async def forget(self, log: str) -> None:
        self.kept.pop(log, None)
