from pathlib import Path

import pytest

from sightline.app.configuration import configuration
from sightline.cli.evals.suites import find_suites, problem_lines
from sightline.cli.program import main
from sightline.errors import Fault
from sightline.evals.core.suite import SuitePlace, SuiteProblem

SUITE = "tests: [{id: a, criteria: x, input: hi}]"


def test_a_folder_means_the_suites_in_it(folder: Path) -> None:
    for name in ("b/x.eval.yml", "b/eval.yaml", "b/other.yaml", "b/.hidden/y.eval.yaml", "b/node_modules/z.eval.yaml"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SUITE)
    loaded = configuration(None)
    assert [each.file for each in find_suites([".", "b/x.eval.yml"], loaded)] == [
        "b/eval.yaml",
        "b/x.eval.yml",
        "capitals.eval.yaml",
    ]
    (folder / "empty").mkdir()
    with pytest.raises(Fault, match="there is no suite in empty"):
        find_suites(["empty"], loaded)


def test_several_suites_are_run_one_after_the_other(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "more.eval.yaml").write_text(
        SUITE.replace("x, input", "x, assertions: [{type: contains, value: R}], input")
    )
    assert main(["eval", "run", ".", "--target", "all"]) == 0
    out = capsys.readouterr().out
    assert out.index("capitals (") < out.index("more (")


def test_a_problem_is_told_as_compilers_do() -> None:
    place = SuitePlace("s.yaml", 2, 3)
    problems = [
        SuiteProblem(place=place, path="a", message="it is wrong", suggestion="Write it."),
        SuiteProblem(place=place, path="a", message="it is odd", severity="warning"),
    ]
    assert problem_lines(problems) == [
        "s.yaml:2:3: error: it is wrong",
        "  Write it.",
        "s.yaml:2:3: warning: it is odd",
    ]
