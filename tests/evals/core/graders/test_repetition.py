import re

import pytest

from sightline.evals.core.graders.text import is_bounded

ANSWER = "The total is 1,234.50 USD, due on 2025-01-15.\n" * 100


@pytest.mark.parametrize(
    "pattern",
    [
        r"total",
        r"\d{4}-\d{2}-\d{2}",
        r"Total:\s*\$?\d+",
        r"(?:USD|EUR|GBP)",
        r"[0-9,]+\.\d\d",
        r"(?P<amount>\d+)(?:\.\d+)?",
        r"^The .* USD",
        r"\x41+\u0042*",
        r"(ab)+",
        r"a{2,3}|b{1}",
        r"(?i)total",
        r"a{3,}b",
        r"]+",
        r"[[x]+",
        r"(?:a|b){1}",
    ],
)
def test_ordinary_patterns_are_bounded(pattern: str) -> None:
    assert is_bounded(pattern, re.NOFLAG, ANSWER)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a+)+$",
        r"(a|aa)+$",
        r"(?:a*)*",
        r"((a?){25}){25}",
        r"(a{1,30}){1,30}",
        r".*.*.*.*=",
        r"(a)\1",
        r"(?P<x>a)(?P=x)",
        r"(a)?(?(1)b|c)",
        r"(?x) a # [",
        r"a++a++a++",
    ],
)
def test_patterns_that_may_never_end_are_not(pattern: str) -> None:
    assert not is_bounded(pattern, re.NOFLAG, "a" * 5000)


def test_what_a_pattern_costs_depends_on_the_runs_of_the_text() -> None:
    assert is_bounded(r"\s*\d+\s*\d+", re.NOFLAG, "x" * 5000)
    assert not is_bounded(r"\s*\d+\s*\d+", re.NOFLAG, " " * 5000 + "1" * 500)


def test_flags_inside_a_pattern_are_heeded() -> None:
    assert is_bounded(r"a+a+", re.NOFLAG, "A" * 3000)
    assert not is_bounded(r"(?i)a+a+", re.NOFLAG, "A" * 3000)


def test_a_bracket_that_closes_nothing_is_not_lost_in() -> None:
    assert is_bounded(r")", re.NOFLAG, "x")
