import json
from pathlib import Path

import pytest

from sightline.app.configuration import configuration
from sightline.cli.evals.suites import find_suites, problem_lines
from sightline.cli.program import main
from sightline.errors import Fault
from sightline.evals.core.suite import SuitePlace, SuiteProblem
from tests.upstream import Upstream

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


def test_problem_is_formatted_like_a_compiler_message() -> None:
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


Captured = pytest.CaptureFixture[str]


def test_valid_suites_are_reported_as_valid(folder: Path, capsys: Captured) -> None:
    (folder / "odd.yaml").write_text("name: Big Name\ntests: [{id: a, criteria: x, input: hi}]")
    assert main(["eval", "validate", "capitals.eval.yaml", "odd.yaml"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == "capitals.eval.yaml: 3 cases, nothing wrong"
    assert rest[0].startswith("odd.yaml:1:7: warning: ")
    assert rest[-1] == "odd.yaml: 1 case, nothing wrong, 1 warning"


def test_problems_have_a_place_and_a_suggestion_and_the_exit_code_is_1(folder: Path, capsys: Captured) -> None:
    (folder / "bad.yaml").write_text(
        "tests:\n  - id: a\n    criteria: x\n    input: hi\n    assertions: [{type: contain}]\n"
    )
    assert main(["eval", "validate", "bad.yaml"]) == 1
    where, hint, last = capsys.readouterr().out.splitlines()
    assert where.startswith("bad.yaml:5:")
    assert "contains" in hint
    assert last == "bad.yaml: 1 problem"


def test_a_program_gets_one_object_for_each_suite(folder: Path, capsys: Captured) -> None:
    (folder / "bad.yaml").write_text("tests: []")
    assert main(["eval", "validate", "--json", "bad.yaml", "capitals.eval.yaml"]) == 1
    bad, good = map(json.loads, capsys.readouterr().out.splitlines())
    assert (bad["ok"], bad["cases"], good["ok"], good["cases"], good["problems"]) == (False, None, True, 3, [])
    (problem,) = bad["problems"]
    assert (problem["file"], problem["line"], problem["severity"]) == ("bad.yaml", 1, "error")
    assert problem["suggestion"]


PREVIEWING_SUITE = """
tests:
  - id: files
    criteria: x
    input:
      - {role: system, content: Be brief.}
      - {role: user, content: [{type: file, value: note.md}, {type: text, value: And now?}]}
  - {id: own, criteria: x, input: hi, execution: {target: all}}
"""


@pytest.fixture
def files(folder: Path) -> Path:
    (folder / "s.yaml").write_text(PREVIEWING_SUITE)
    (folder / "note.md").write_text("A note.\n")
    return folder


def test_the_exact_body_is_shown_and_is_what_is_sent(files: Path, upstream: Upstream, capsys: Captured) -> None:
    assert main(["eval", "preview", "s.yaml", "files", "--target", "acme/m", "--as", "wire"]) == 0
    body = capsys.readouterr().out
    assert not upstream.seen
    main(["eval", "run", "s.yaml", "--case", "files", "--target", "acme/m", "--judge", "all"])
    assert upstream.seen[0].body.decode() == body.rstrip("\n")


def test_all_of_it_for_a_person(files: Path, capsys: Captured) -> None:
    assert main(["eval", "preview", "s.yaml", "files", "--target", "acme/m"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("target    acme/m: acme/m, openai-chat\nrequest   ")
    assert "  inlined note.md: its text is in the message (s.yaml:7:" in out
    assert "flat question\n  @[System]:\n  Be brief." in out
    assert out.rstrip().endswith("}")


def test_translation_losses_are_shown_in_the_preview(files: Path, capsys: Captured) -> None:
    (files / "late.yaml").write_text(
        "tests: [{id: a, criteria: x, input: [{role: user, content: Hi.}, {role: system, content: Be brief.},"
        " {role: user, content: And?}]}]"
    )
    assert main(["eval", "preview", "late.yaml", "a", "--target", "gemini/gemini-3-pro"]) == 0
    assert "  lost role of a system message: " in capsys.readouterr().out
    assert main(["eval", "preview", "late.yaml", "a", "--target", "claude/m"]) == 0
    assert "  added max_tokens " in capsys.readouterr().out


def test_other_forms(files: Path, capsys: Captured) -> None:
    assert main(["eval", "preview", "s.yaml", "files", "--target", "all", "--as", "flat"]) == 0
    assert capsys.readouterr().out.startswith("@[System]:\nBe brief.")
    assert main(["eval", "preview", "s.yaml", "files", "--as", "messages"]) == 0
    assert [json.loads(line)["role"] for line in capsys.readouterr().out.splitlines()] == ["system", "user"]


def test_a_target_that_is_no_model_gets_the_flat_question(files: Path, capsys: Captured) -> None:
    assert main(["eval", "preview", "s.yaml", "own"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("target    all (mock): it is given the flat question\n")
    assert "nothing: every message goes out as it is written" in out
    assert main(["eval", "preview", "s.yaml", "own", "--as", "wire"]) == 2
    assert "is not a model" in capsys.readouterr().err


def test_unknown_suite_or_case_is_reported(files: Path, capsys: Captured) -> None:
    assert main(["eval", "preview", "gone.yaml", "a"]) == 2
    assert main(["eval", "preview", "s.yaml", "gone"]) == 2
    assert "s.yaml has no case 'gone'" in capsys.readouterr().err
