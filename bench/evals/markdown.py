"""The comparison as Markdown: what a case costs with each tool, and which aims were met."""

from bench.evals.comparing import CASES, FEW, Comparison, Cost
from bench.evals.tools import AT_ONCE, SIGHTLINE_TOOL, Tool
from bench.peers.aims import Verdict
from bench.peers.markdown import aims, grid, machine

CPU_SHARE = 0.2
HEAD = ["", "wall s", "CPU s", "CPU ms per case", "each further case", "peak MB", f"{FEW} cases: wall s", "CPU s"]


def markdown(comparison: Comparison) -> str:
    """All of it but the title."""
    return "\n\n".join(
        [
            f"{CASES:,} cases of one message, one grader each, {AT_ONCE} at once; medians of {comparison.rounds} "
            f"interleaved rounds. {machine('each tool', 'upstream')}.",
            "\n".join(_tool(tool, comparison.missing.get(tool.name)) for tool in comparison.tools),
            grid([HEAD, *(_row(tool.name, comparison.cost(tool.name)) for tool in comparison.tools)]),
            "CPU is that of the whole process tree from start to end. *Each further case* is the difference between "
            f"{CASES:,} cases and {FEW}, per case: the cost without the start.",
            "### Aims",
            aims(verdicts(comparison)),
        ]
    )


def _tool(tool: Tool, reason: str | None) -> str:
    if reason is None:
        return f"- {tool.name} {tool.version} ({tool.about})"
    return f"- {tool.name}: **not measured to the end: {reason}**"


def _row(name: str, cost: Cost | None) -> list[str]:
    if cost is None:
        return [name, *["–"] * (len(HEAD) - 1)]
    many, few = cost.many, cost.few
    cells = [f"{many.wall:.2f}", f"{many.cpu:.2f}", f"{cost.case:.2f}", f"{cost.further_case:.2f}"]
    return [name, *cells, f"{many.peak:.0f}", f"{few.wall:.2f}", f"{few.cpu:.2f}"]


def verdicts(comparison: Comparison) -> list[Verdict]:
    """One line for each aim; without a verdict where one side was not measured."""
    found = []
    ours = comparison.cost(SIGHTLINE_TOOL.name)
    for tool in comparison.tools:
        if tool is SIGHTLINE_TOOL:
            continue
        wanted = [
            f"faster than {tool.name}",
            f"CPU per case at most {CPU_SHARE:g}x {tool.name}'s",
            f"CPU per further case at most {CPU_SHARE:g}x {tool.name}'s",
        ]
        theirs = comparison.cost(tool.name)
        if ours is None or theirs is None:
            found += [Verdict(aim, "not measured", None) for aim in wanted]
            continue
        faster = theirs.many.wall / ours.many.wall
        shares = [ours.case / theirs.case, ours.further_case / theirs.further_case]
        found.append(Verdict(wanted[0], f"{faster:.1f}x as fast", faster > 1))
        for aim, share in zip(wanted[1:], shares, strict=True):
            found.append(Verdict(aim, f"{share:.3f}x", share <= CPU_SHARE))
    return found
