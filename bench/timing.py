"""Medians of interleaved rounds, and the table that shows them."""

import gc
import statistics
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter


def medians(
    tasks: Mapping[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = perf_counter
) -> dict[str, float]:
    """Seconds that each task takes. Each round runs every task once, starting with another one each time."""
    names = list(tasks)
    taken: dict[str, list[float]] = {name: [] for name in names}
    for task in tasks.values():
        task()
    gc.collect()
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            start = clock()
            tasks[name]()
            taken[name].append(clock() - start)
    return {name: statistics.median(times) for name, times in taken.items()}


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns under a title: the first to the left, the others to the right."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        first, *others = cells
        aligned = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
        return "  ".join(aligned).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join(["", title, line(header), rule, *(line(row) for row in rows)])


def ratio(value: float) -> str:
    return f"{value:.2f}x"


def milliseconds(value: float) -> str:
    return f"{value * 1000:.2f} ms"


def microseconds(value: float) -> str:
    return f"{value * 1_000_000:.1f} µs"
