import random

from sightline.cli.evals.report import in_full
from sightline.evals.core.place import SuitePlace, SuiteProblem
from sightline.evals.core.summary import summarize
from tests.evals.core.rows import row


def test_what_is_as_usual_stands_there_too() -> None:
    assert in_full(SuiteProblem(place=SuitePlace("a", 1), path="p", message="m")) == {
        "place": {"file": "a", "line": 1, "column": 0},
        "path": "p",
        "message": "m",
        "suggestion": "",
        "severity": "error",
        "case": "",
    }


def test_so_every_target_has_the_same_numbers() -> None:
    source = random.Random(1)
    (summary,) = summarize([row("a", 0.0)], lambda below, count: source.choices(range(below), k=count))
    told = in_full(summary)
    assert isinstance(told, dict)
    assert (told["passed"], told["failed"], told["cached"], told["tries"]) == (0, 1, 0, [])
