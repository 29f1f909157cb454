import pytest

from sightline.evals.core.result import (
    LONGEST_INLINE,
    CaseObservation,
    CaseResult,
    CaseScore,
    Check,
    Score,
    complaints_of,
    replace_media,
)
from sightline.evals.core.summary import CaseTally, Excluded, bounds_of, score_or_reason, tally_results, targets_of
from sightline.model.parts import Audio, Document, Image, Inline, Link, Part, Text, ToolResult
from sightline.model.request import Message
from tests.evals.core.rows import failed, row


def test_complaints_are_the_failed_checks_of_graders_and_of_those_inside_turn_by_turn() -> None:
    checks = (Check("has Rome", passed=False, evidence="Milan"), Check("is short", passed=True))
    inner = Score(name="in", type="equals", verdict="not_graded", reason="no answer")
    outer = Score(name="out", type="composite", verdict="fail", score=0.0, scores=(inner,))
    checked = Score(name="a", type="contains", verdict="fail", score=0.0, checks=checks)
    passed = Score(name="b", type="equals", verdict="pass", score=1.0)
    turn = CaseScore(verdict="fail", scores=(checked,))
    case = CaseResult(
        case="a",
        target="t",
        status="quality_failure",
        score=CaseScore(verdict="fail", scores=(outer, passed), turns=(turn,)),
        observation=CaseObservation(),
    )
    assert list(complaints_of(case)) == [
        "out (composite): fail",
        "in (equals): no answer",
        "turn 1: a (contains): not met: has Rome (Milan)",
    ]


LARGE = Inline("image/png", "A" * (LONGEST_INLINE + 1))
SMALL = Inline("image/png", "A" * LONGEST_INLINE)


def result(*parts: Part, turns: tuple[CaseObservation, ...] = ()) -> CaseResult:
    seen = CaseObservation(asked=(Message("user", parts),), messages=(Message("assistant", (Text("x"),)),))
    score = CaseScore(verdict="pass")
    return CaseResult(case="a", target="t", status="ok", score=score, observation=seen, turns=turns)


def test_words_are_written_down_as_they_are() -> None:
    told = result(Text("x" * 100_000))
    assert replace_media(told) == told
    assert replace_media(result(Image(SMALL), Image(Link("https://x/y.png")))) == result(
        Image(SMALL), Image(Link("https://x/y.png"))
    )


def test_what_is_large_and_no_text_is_known_by_its_hash() -> None:
    parts = (Image(LARGE), Document(LARGE, "a.pdf"), Audio(LARGE), ToolResult("1", (Image(LARGE), Text("y")), "t"))
    turn = result(*parts).observation
    for seen in (replace_media(result(*parts)).observation, replace_media(result(Text("x"), turns=(turn,))).turns[0]):
        image, document, audio, tool = seen.asked[0].parts
        assert isinstance(image, Image)
        link = image.source
        assert isinstance(link, Link)
        assert (link.url.startswith("sha256:"), len(link.url), link.media_type) == (True, 71, "image/png")
        assert document == Document(link, "a.pdf")
        assert audio == Audio(link)
        assert tool == ToolResult("1", (Image(link), Text("y")), "t")


def test_tries_of_a_case_stand_together() -> None:
    tally = tally_results([row("x", 1.0), row("y", 0.4, group="g"), row("x", 0.2, trial=1)])
    assert tally.cases == (
        CaseTally(case="x", scores=(1.0, 0.2), passes=1),
        CaseTally(case="y", group="g", scores=(0.4,)),
    )
    assert (tally.cases[0].score, tally.cases[0].rate) == (0.6, 0.5)
    assert tally.excluded == ()


def test_what_was_run_again_counts_once() -> None:
    assert tally_results([failed("x"), row("x", 0.7)]).cases == (CaseTally(case="x", scores=(0.7,), passes=1),)


def test_what_has_no_score_is_listed_and_is_not_nought() -> None:
    tally = tally_results([row("x", 1.0), failed("x", trial=1), row("y", None, reason="the judge wrote no JSON")])
    assert tally.excluded == (
        Excluded(case="x", target="a", trial=1, why="error", reason="connection reset"),
        Excluded(case="y", target="a", why="not_graded", reason="the judge wrote no JSON"),
    )
    assert [case.case for case in tally.graded] == ["x"]
    assert tally.graded[0].score == 1.0


def test_the_mean_is_bounded_by_what_is_untold() -> None:
    tally = tally_results([row("x", 1.0), failed("x", trial=1), row("y", None), row("z", 0.5)])
    assert bounds_of(tally.cases) == pytest.approx(((0.5 + 0 + 0.5) / 3, (1 + 1 + 0.5) / 3))
    assert bounds_of(tally_results([row("x", 1.0)]).cases) is None


def test_ungraded_case_does_not_widen_the_bounds_but_an_unrun_case_does() -> None:
    silent = row("x", None, verdict="skip", status="ok")
    unrun = row("y", None, verdict="skip", status="skipped", reason="a case before it failed")
    tally = tally_results([silent, unrun, row("z", 1.0)])
    assert [(each.case, each.why) for each in tally.excluded] == [("x", "skipped"), ("y", "skipped")]
    assert bounds_of(tally.cases) == (0.5, 1.0)


def test_a_pass_without_a_number_is_not_a_number() -> None:
    assert score_or_reason(row("x", None, verdict="pass")) == "not_graded"
    assert score_or_reason(row("x", 1)) == 1.0


def test_targets_come_in_their_order() -> None:
    assert targets_of([row("x", 1.0, target="b"), row("x", 1.0), row("y", 1.0, target="b")]) == ("b", "a")


def test_a_score_that_is_no_number_is_no_score() -> None:
    for odd in (float("nan"), float("inf")):
        found = tally_results([row("x", 1.0), row("y", odd, verdict="pass")])
        assert [(each.case, each.why) for each in found.excluded] == [("y", "not_graded")]
        assert [case.case for case in found.graded] == ["x"]
        assert bounds_of(found.cases) == (0.5, 1.0)
