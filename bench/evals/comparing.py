"""Rounds over all tools: each one runs afresh in every round, and every round begins with another one."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.evals.measuring import Figures, median, run
from bench.evals.tools import Tool
from bench.peers.measuring import upstream
from bench.peers.process import LOAD_CORE, on_core
from bench.peers.workshop import MissingError

CASES, FEW = 1_000, 10


@dataclass(frozen=True)
class Cost:
    """Of many cases, and of a few, which are hardly more than the start."""

    many: Figures
    few: Figures

    @property
    def case(self) -> float:
        """Milliseconds on the core for each case, the start among them."""
        return self.many.cpu * 1000 / CASES

    @property
    def further_case(self) -> float:
        """Milliseconds on the core for each case that more are run."""
        return (self.many.cpu - self.few.cpu) * 1000 / (CASES - FEW)


@dataclass
class Comparison:
    """What was measured, by tool and number of cases, and why some were not."""

    tools: Sequence[Tool]
    rounds: int
    taken: dict[tuple[str, int], list[Figures]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def cost(self, tool: str) -> Cost | None:
        """The medians, if the tool was measured."""
        many, few = self.taken.get((tool, CASES)), self.taken.get((tool, FEW))
        return Cost(median(many), median(few)) if many and few else None


def compare(tools: Sequence[Tool], rounds: int) -> Comparison:
    """Measure everything, in rounds. A tool that fails is left out from there on, with the reason. Round 0 is a few
    cases that do not count: files are read from the disk, and compiled, once."""
    comparison = Comparison(tools, rounds)
    with upstream() as port, on_core(LOAD_CORE):
        for number in range(rounds + 1):
            first = number % len(tools)
            for tool in [*tools[first:], *tools[:first]]:
                if tool.name in comparison.missing:
                    continue
                print(f"round {number} of {rounds}: {tool.name}", file=sys.stderr, flush=True)
                try:
                    for cases in (FEW, CASES) if number else (FEW,):
                        figures = run(tool, cases, port)
                        if number:
                            comparison.taken.setdefault((tool.name, cases), []).append(figures)
                except MissingError as error:
                    comparison.missing[tool.name] = str(error)
    return comparison
