from sightline.cli.evals.report import as_json, is_passed, message_lines, part_text, report, resume_command, table
from sightline.evals.core.result import CaseObservation, CaseResult, Check, Score
from sightline.evals.core.run_state import CaseDone, EvalBegan, EvalState, RunOptions
from sightline.evals.core.suite import Case, Execution, Suite, SuitePlace, Trials
from sightline.evals.core.target import TargetSpec
from sightline.model.parts import CacheBreakpoint, Image, Inline, Link, Refusal, Text, Thinking, ToolCall, ToolResult
from sightline.model.reply import Usage
from sightline.model.request import Message
from tests.evals.core.chance import drawing
from tests.evals.core.rows import failed, fold_facts, row


def standing(*results: CaseResult, cases: int = 30) -> EvalState:
    suite = Suite(
        name="demo", cases=tuple(Case(id=f"c{n}", place=SuitePlace("s.yaml", n, 5)) for n in range(1, cases + 1))
    )
    targets = tuple(TargetSpec(name=name) for name in dict.fromkeys(each.target for each in results))
    began = EvalBegan(suite=suite, targets=targets, options=RunOptions(trials=2))
    return fold_facts([began, *map(CaseDone, results)])


def test_failures_come_first_then_errors_and_what_was_not_graded() -> None:
    poor = Score(name="says", type="contains", verdict="fail", score=0.0, checks=(Check("contains x", False, "y"),))
    lines = report(
        "e_1",
        "interrupted",
        standing(
            row("c1", None, reason="the judge\x1b said nothing"),
            failed("c2"),
            row("c3", 0.25, scores=(poor,), trial=1, seen=CaseObservation(text="y", exchanges=("x_1",))),
            row("c4", None, verdict="skip", status="skipped", reason="it depends on c3"),
            row("c5", 1.0),
        ),
        drawing(),
    )
    text = "\n".join(lines)
    heads = [line for line in lines if line and line[0].isupper() and line.endswith("(1)")]
    assert heads == ["FAILED (1)", "ERRORS (1)", "NOT GRADED (1)", "SKIPPED (1)"]
    assert "  c3 on a #2  score 0.25  s.yaml:3:5\n    says (contains): not met: contains x (y)\n    answer: y\n" in text
    assert "    connection reset" in text
    assert "the judge\\x1b said nothing" in text
    assert f"Its process ended. 55 results left: {resume_command('e_1')}" in text


def test_a_table_has_a_row_for_each_target_and_dashes_for_what_is_not_known() -> None:
    counted = CaseObservation(text="x", usage=Usage(input_tokens=1000, output_tokens=500), cost=0.5, seconds=2.0)
    lines = report(
        "e_1",
        "ended",
        standing(
            row("c1", 1.0, seen=counted),
            row("c2", 0.0, seen=CaseObservation(text="x")),
            row("c1", 0.5, target="b", cached=True),
        ),
        drawing(),
    )
    _, _, head, first, second, *rest = lines
    assert head.split()[:4] == ["TARGET", "PASSED", "RATE", "SCORE"]
    assert "0 to 1" in first
    assert "1,500 + ?" in first
    assert "$0.5000 + 1 unknown" in first
    assert "2.00 s" in first
    assert "–" in second
    assert any(line.startswith("a: Mean score 0.5") for line in rest)
    assert any(line == "b: 1 answer taken from earlier requests with the same hash." for line in rest)


def test_long_lists_are_cut_and_say_where_the_rest_is() -> None:
    lines = report("e_1", "running", standing(*(row(f"c{n}", 0.0) for n in range(1, 26))), drawing())
    assert "  … and 5 more: sightline eval show e_1" in lines
    assert lines[-1].startswith("It is under way.")


def test_only_some_pass_at_k_values_are_shown_for_many_trials() -> None:
    tries = [row("c1", float(trial % 2), trial=trial) for trial in range(60)]
    suite = Suite(name="demo", cases=(Case(id="c1", place=SuitePlace("s.yaml", 1, 5)),))
    began = EvalBegan(suite=suite, targets=(TargetSpec(name="a"),), options=RunOptions(trials=60))
    lines = report("e_1", "ended", fold_facts([began, *map(CaseDone, tries)]), drawing())
    told = [int(line.split()[0].removeprefix("pass@")) for line in lines if line.startswith("pass@")]
    assert told == [2, 3, 4, 5, 10, 20, 50, 60]


def test_run_without_results_is_reported() -> None:
    assert report("e_1", "stopped", standing(), drawing())[-1].startswith("It was stopped. 0 results left")


def test_the_same_for_a_program() -> None:
    told = as_json("e_1", "ended", standing(row("c1", 1.0), failed("c2")), drawing())
    assert (told["run"], told["passed"], told["results"], told["of"]) == ("e_1", False, 2, 60)
    (brief,) = told["failed"]
    assert (brief["case"], brief["reason"], brief["score"]) == ("c2", "connection reset", None)
    one = standing(row("c1", 1.0), row("c1", 1.0, trial=1), cases=1)
    assert is_passed(one)


def test_the_answer_of_what_failed_is_printed() -> None:
    seen = CaseObservation(text="Perhaps Rome?\nOr Milan.\n", exchanges=("x_1",))
    text = "\n".join(report("e_1", "ended", standing(row("c1", 0.0, seen=seen), row("c2", 1.0)), drawing()))
    assert "    answer: Perhaps Rome?\n            Or Milan.\n    sightline show x_1" in text
    (told,) = as_json("e_1", "ended", standing(row("c1", 0.0, seen=seen)), drawing())["failed"]
    assert told["answer"] == seen.text


def limited(*results: CaseResult, budget: float | None = None, limit: float | None = None) -> str:
    trials = Trials(count=1, cost_limit_usd=limit)
    suite = Suite(name="demo", cases=(Case(id="c1"), Case(id="c2")), execution=Execution(trials=trials))
    began = EvalBegan(suite=suite, targets=(TargetSpec(name="a"),), options=RunOptions(budget_usd=budget))
    return "\n".join(report("e_1", "ended", fold_facts([began, *map(CaseDone, results)]), drawing()))


def test_a_limit_of_cost_says_what_it_cannot_count() -> None:
    known, unknown = row("c1", 1.0, seen=CaseObservation(cost=0.5)), row("c2", 1.0)
    assert "counts only what is known" not in limited(known, unknown)
    assert "counts only what is known" not in limited(known, budget=1.0)
    assert "The budget of $1.00 counts only what is known: the cost of 1 request is not." in limited(
        unknown, budget=1.0
    )
    assert "cost_limit_usd of the trials counts only what is known" in limited(unknown, limit=1.0)


def test_ungraded_results_are_counted_with_a_rerun_hint() -> None:
    text = "\n".join(report("e_1", "ended", standing(row("c1", 1.0), row("c2", None)), drawing()))
    assert "1 of 2 results could not be graded, so the run has not passed." in text
    assert "sightline eval run --rerun-failed e_1" in text
    assert as_json("e_1", "ended", standing(row("c1", 1.0), row("c2", None)), drawing())["not_graded"] == 1


def test_columns_stand_under_each_other() -> None:
    rows = [("NAME", "N", "WORDS"), ("a", "10", "x"), ("long", "2", "two\nlines \x1b")]
    assert table(rows, right=frozenset({1})) == [
        "NAME   N  WORDS",
        "a     10  x",
        "long   2  two lines \\x1b",
    ]


def test_messages_stand_under_their_roles() -> None:
    messages = (
        Message("user", (Text("one\ntwo"), Image(Inline("image/png", "aGk=")))),
        Message("assistant", (Thinking("so"), ToolCall("c1", "find", '{"q":1}'))),
        Message("tool", (ToolResult("c1", (Text("found"),), "find"),)),
    )
    assert list(message_lines(messages)) == [
        "  user",
        "    one",
        "    two",
        "    <image image/png>",
        "  assistant",
        "    (thinking) so",
        '    → find({"q":1})',
        "  tool",
        "    ← find: found",
    ]


def test_every_part_has_words() -> None:
    assert part_text(Refusal("No.")) == "No."
    assert part_text(Image(Link("http://127.0.0.1/a.png"))) == "<image by its address>"
    assert part_text(CacheBreakpoint()) == "<CacheBreakpoint>"
    assert part_text(ToolResult("c1", ())) == "← c1: "
