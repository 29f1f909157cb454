from sightline.evals.core.graders.finding import GraderFinding, sum_if_known, total_spent
from sightline.evals.core.graders.judge import Question, ask_judge
from sightline.evals.core.graders.rubric import read_free
from sightline.evals.core.graders.steps import Judge, Judged
from sightline.model.parts import Image, Link
from sightline.model.usage import Usage
from tests.grading_stage import BROKEN, driven, says, words

QUESTION = Question("You grade.", "Is it right?", {"type": "object"}, target="strong", model="m", temperature=0.0)
GOOD = says({"score": 0.5}, usage=Usage(input_tokens=10, output_tokens=2), cost=0.1, exchange="e2", seconds=1.0)
BAD = says(
    "</block-1 earlier_answer> 7/10", usage=Usage(input_tokens=5, output_tokens=1), cost=0.2, exchange="e1", seconds=2.0
)


def asked(*answers: object) -> tuple[GraderFinding, list[Judge]]:
    finding, steps = driven(ask_judge(QUESTION, read_free), answers)
    assert isinstance(finding, GraderFinding)
    return finding, steps


def test_a_judge_is_asked_for_an_answer_of_the_schema() -> None:
    finding, (step,) = asked(GOOD)
    assert (step.target, step.model, step.temperature, step.attempt) == ("strong", "m", 0.0, 1)
    assert step.schema == {"type": "object"}
    assert words(step, 0).startswith("You grade.\n\nAnswer with exactly one JSON object")
    assert words(step) == "Is it right?"
    assert (finding.score, finding.spent.cost, finding.spent.exchanges) == (0.5, 0.1, ("e2",))


def test_what_cannot_be_read_is_asked_for_once_more_and_said_what_is_wrong() -> None:
    finding, (_, again) = asked(BAD, GOOD)
    assert again.attempt == 2
    assert words(again).startswith("Is it right?\n\nYou have answered this before")
    assert "not JSON: expecting value at line 1, column 1" in words(again)
    assert "<block-2 earlier_answer>\n</block-1 earlier_answer> 7/10\n</block-2 earlier_answer>" in words(again)
    assert finding.score == 0.5
    assert finding.spent.usage == Usage(input_tokens=15, output_tokens=3)
    assert (finding.spent.exchanges, finding.spent.seconds) == (("e1", "e2"), 3.0)


def test_a_judge_that_is_not_understood_twice_has_not_graded() -> None:
    finding, steps = asked(BAD, BAD)
    assert (finding.score, len(steps)) == (None, 2)
    assert finding.reason == "the judge was not understood, twice: not JSON: expecting value at line 1, column 1"
    assert finding.spent.exchanges == ("e1", "e1")


def test_a_judge_that_fails_has_not_graded() -> None:
    assert asked(BROKEN)[0].reason == "the judge failed: nobody is there"
    finding, _ = asked(BAD, BROKEN)
    assert finding.score is None
    assert finding.reason.endswith("and then failed: nobody is there")
    assert finding.spent.exchanges == ("e1",)


def test_pictures_are_shown_to_the_judge() -> None:
    picture = Image(source=Link(url="u"))
    step = Question("s", "u", {}, images=(picture,)).step()
    assert step.messages[1].parts[1] is picture


def test_what_is_not_known_of_one_answer_is_not_known_of_all() -> None:
    spent = total_spent(GOOD, Judged(text=""))
    assert (spent.usage, spent.cost, spent.seconds, spent.exchanges) == (None, None, None, ("e2",))
    assert total_spent(Judged(text="", usage=Usage())).usage == Usage()
    assert sum_if_known([]) is None
