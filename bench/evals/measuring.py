"""One tool with so many cases, from its start to its end, and what that cost."""

import http.client
import os
import resource
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, fields
from time import perf_counter

from bench.evals.tools import Tool
from bench.peers.process import PROXY_CORE, Tree
from bench.peers.workshop import CACHE, MissingError

PATIENCE = 600.0
LOOK = 0.1


@dataclass(frozen=True)
class Figures:
    """What one run cost, start included: seconds on the wall and on the core with all its children, and megabytes."""

    wall: float
    cpu: float
    peak: float


def median(figures: Sequence[Figures]) -> Figures:
    """The median of each figure by itself."""
    return Figures(*(statistics.median(getattr(one, each.name) for one in figures) for each in fields(Figures)))


def run(tool: Tool, cases: int, upstream: int) -> Figures:
    """Run it in an empty folder. It counts only if every case passed, and each was asked exactly once."""
    folder = CACHE / "run" / f"{tool.name}-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    launch = tool.launch(folder, cases, f"http://127.0.0.1:{upstream}/v1")
    asked, used, began = _answered(upstream), _children_cpu(), perf_counter()
    tree = Tree(launch.command, folder, {"HOME": str(folder), **launch.environment}, PROXY_CORE)
    peak = 0.0
    try:
        while not tree.ends_within(LOOK):
            peak = max(peak, tree.memory()[1])
            if perf_counter() - began > PATIENCE:
                raise MissingError(f"{cases:,} cases were not done after {PATIENCE:.0f} s")
        wall = perf_counter() - began
    finally:
        tree.stop()
    cpu = _children_cpu() - used
    if tree.exit_code:
        raise MissingError(f"it ended with {tree.exit_code}: {tree.last_words()}")
    _check(launch.passed(tree.log), cases, "cases passed")
    _check(_answered(upstream) - asked, cases, "requests came to the upstream")
    # After a failure it stays, with the log.
    shutil.rmtree(folder)
    return Figures(wall, cpu, peak)


def _check(seen: int, cases: int, what: str) -> None:
    if seen != cases:
        raise MissingError(f"{seen:,} {what}, of {cases:,}")


def _children_cpu() -> float:
    """Seconds of all processes that have ended, and of what they started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _answered(upstream: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", upstream)
    try:
        connection.request("GET", "/")
        return int(connection.getresponse().read())
    finally:
        connection.close()
