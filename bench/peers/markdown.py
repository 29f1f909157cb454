"""The comparison as Markdown: what a request costs, how fast it is answered, and which aims were met."""

import os
import platform
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.peers.aims import Verdict, verdicts
from bench.peers.comparing import Comparison
from bench.peers.measuring import Figures
from bench.peers.process import LOAD_CORE, PROXY_CORE
from bench.peers.subjects import Subject
from bench.peers.workshop import MissingError


def markdown(comparison: Comparison) -> str:
    """The whole report."""
    names = [scenario.name for scenario in comparison.scenarios]
    streams = [scenario.name for scenario in comparison.scenarios if scenario.chunks]
    paced = [scenario.name for scenario in comparison.scenarios if scenario.spread]
    parts = [
        "## Sightline beside other gateways",
        f"Medians of {comparison.rounds} interleaved rounds. {machine('proxy', 'upstream and load')}.",
        _versions(comparison),
        "### CPU µs per request\n\nOf the whole process tree until it is idle; what it does after the last answer "
        "is shown after the plus sign.",
        _table(comparison, names, _cpu, memory=True),
        "### Requests per second",
        _table(comparison, [name for name in names if name not in paced], lambda each: f"{each.per_second:,.0f}"),
        "### First byte of the body, ms: median / 99 %",
        _table(comparison, names, lambda each: f"{each.first_byte:.2f} / {each.first_byte_p99:.2f}"),
    ]
    if paced:
        parts += [
            "### Delay of a chunk of a paced stream, ms: median / 99 %",
            _table(comparison, paced, lambda each: f"{each.chunk:.3f} / {each.chunk_p99:.3f}"),
        ]
    if errors := _errors(comparison, [*names, *streams]):
        parts += ["### Errors", errors]
    return "\n\n".join([*parts, "### Aims", aims(verdicts(comparison))]) + "\n"


def _cpu(figures: Figures) -> str:
    # A little always follows: timers, and connections that are closed.
    later = f" + {figures.cpu_later:,.0f}" if figures.cpu_later >= 0.03 * figures.cpu and figures.cpu else ""
    return f"{figures.cpu:,.0f}{later}"


def _table(
    comparison: Comparison, scenarios: Sequence[str], show: Callable[[Figures], str], *, memory: bool = False
) -> str:
    rows = [["", *scenarios, *(["memory, peak MB"] if memory else [])]]
    for subject in comparison.subjects:
        found = {name: comparison.figures(subject.name, name) for name in scenarios}
        cells = [show(figures) if figures else "–" for figures in found.values()]
        last = [figures for figures in found.values() if figures]
        if memory:
            cells.append(f"{last[-1].memory:.0f}, {last[-1].peak:.0f}" if last else "–")
        rows.append([subject.name, *cells])
    return grid(rows)


def grid(cells: Sequence[Sequence[str]]) -> str:
    """A table; the first row is its head."""
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    rule = "|---" + "|---:" * (len(cells[0]) - 1) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def _versions(comparison: Comparison) -> str:
    lines = []
    for subject in comparison.subjects:
        if reason := comparison.missing.get(subject.name):
            how_far = "in part" if any(name == subject.name for name, _ in comparison.taken) else "not"
            lines.append(f"- {subject.name}: **{how_far} measured: {reason}**")
        else:
            lines.append(f"- {subject.name} {_version(subject)}({subject.about})")
    return "\n".join(lines)


def _version(subject: Subject) -> str:
    try:
        return f"{found} " if (found := subject.get_version()) else ""
    except MissingError:
        return ""


def _errors(comparison: Comparison, scenarios: Sequence[str]) -> str:
    lines = []
    for subject in comparison.subjects:
        for name in dict.fromkeys(scenarios):
            figures = comparison.figures(subject.name, name)
            if figures and figures.errors:
                lines.append(f"- {subject.name}, {name}: {figures.errors:.0f} in all rounds")
    return "\n".join(lines)


def aims(found: Sequence[Verdict]) -> str:
    """Which aims were met."""
    words = {True: "met", False: "**missed**", None: "–"}
    rows = [["aim", "measured", ""], *([each.aim, each.seen, words[each.is_held]] for each in found)]
    return grid(rows)


def machine(subject: str, others: str) -> str:
    """What it was measured on, and what ran on which core."""
    models = {
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    }
    shared = "" if PROXY_CORE != LOAD_CORE else "; **one core for everything, so the figures mean little**"
    return (
        f"{os.cpu_count()} cores ({', '.join(sorted(models)) or 'unknown'}), Linux {platform.release()}; "
        f"{subject} on core {PROXY_CORE}, {others} on core {LOAD_CORE}{shared}"
    )
