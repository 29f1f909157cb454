"""Rounds over all subjects: each one starts afresh in every round, and every round begins with another one."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.peers.measuring import Figures, median, running, upstream
from bench.peers.scenarios import Scenario
from bench.peers.subjects import Subject
from bench.peers.workshop import MissingError


@dataclass
class Comparison:
    """What was measured, by subject and scenario, and why some were not."""

    subjects: list[Subject]
    scenarios: Sequence[Scenario]
    rounds: int
    taken: dict[tuple[str, str], list[Figures]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def figures(self, subject: str, scenario: str) -> Figures | None:
        """The medians, if there are any."""
        taken = self.taken.get((subject, scenario))
        return median(taken) if taken else None


def compare(subjects: list[Subject], scenarios: Sequence[Scenario], rounds: int) -> Comparison:
    """Measure everything, in rounds. A subject that fails is left out from there on, with the reason."""
    comparison = Comparison(subjects, scenarios, rounds)
    with upstream() as port:
        for number in range(rounds):
            first = number % len(subjects)
            for subject in subjects[first:] + subjects[:first]:
                if subject.name in comparison.missing:
                    continue
                print(f"round {number + 1} of {rounds}: {subject.name}", file=sys.stderr, flush=True)
                try:
                    _measure(comparison, subject, port)
                except MissingError as error:
                    comparison.missing[subject.name] = str(error)
    return comparison


def _measure(comparison: Comparison, subject: Subject, port: int) -> None:
    scenarios = [each for each in comparison.scenarios if not each.name.startswith(subject.skips or ("-",))]
    with running(subject, port, comparison.scenarios[0]) as subject_running:
        subject_running.warm_up(scenarios)
        for scenario in scenarios:
            figures = subject_running.figures(scenario)
            if scenario is scenarios[-1]:
                figures = subject_running.after_rest(figures)
            comparison.taken.setdefault((subject.name, scenario.name), []).append(figures)
