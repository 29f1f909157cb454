"""Grading a case: the table of grader types, every grader in turn, and the score of all of them together."""

from collections.abc import Generator, Sequence

import msgspec

from sightline.evals.core.graders.command import COMMAND_TYPES
from sightline.evals.core.graders.composite import COMPOSITE_TYPES
from sightline.evals.core.graders.expectation import transcript
from sightline.evals.core.graders.field_accuracy import FIELD_TYPES
from sightline.evals.core.graders.finding import Grading, GradingSubject, combine_scores, reaches, sum_if_known
from sightline.evals.core.graders.grader import Grader, GraderTypes, prepare_grader, run_grader
from sightline.evals.core.graders.judge import JUDGE_TYPES
from sightline.evals.core.graders.limits import LIMIT_TYPES
from sightline.evals.core.graders.steps import Answer, Step
from sightline.evals.core.graders.text import TEXT_TYPES
from sightline.evals.core.graders.tool_calls import TOOL_TYPES
from sightline.evals.core.result import CaseObservation, CaseScore, Score
from sightline.evals.core.suite import Aggregation, GraderSpec, SuiteProblem
from sightline.model.message import Message
from sightline.model.usage import Usage

GRADERS: GraderTypes = {
    **TEXT_TYPES,
    **LIMIT_TYPES,
    **FIELD_TYPES,
    **TOOL_TYPES,
    **COMMAND_TYPES,
    **JUDGE_TYPES,
    **COMPOSITE_TYPES,
}
"""Every type of grader by the name that suites give it."""


WITHOUT = GraderSpec(type="llm-grader", name="llm-grader")
"""The grader of a case that says what it wants and names none."""


_JUDGE = (prepare_grader(WITHOUT, "assertions[0]", GRADERS),)


def check_graders(specs: Sequence[GraderSpec], path: str = "assertions") -> tuple[SuiteProblem, ...]:
    """Everything that is wrong with these graders, before anything is run. They are in a list at the path."""
    return tuple(problem for each in prepare(specs, path) for problem in each.problems)


def prepare(specs: Sequence[GraderSpec], path: str = "assertions") -> tuple[Grader, ...]:
    """These graders with their configuration read, to be used for every trial."""
    return tuple(prepare_grader(spec, f"{path}[{index}]", GRADERS) for index, spec in enumerate(specs))


def grade(
    graders: Sequence[Grader], observation: CaseObservation, grading: Grading
) -> Generator[Step, Answer, CaseScore]:
    """What a case is worth. An answer that did not come about is not graded, and nothing is asked for it.

    A case that says what is wanted of it and has no graders is judged by that.
    """
    if observation.error:
        return CaseScore(verdict="not_graded", reason=f"there is no answer: {observation.error}")
    subject = GradingSubject(observation, grading)
    scores: list[Score] = []
    for grader in graders or _without(grading):
        scores += [(yield from run_grader(grader, subject))]
    return combine_scores(scores, grading.threshold)


def _without(grading: Grading) -> tuple[Grader, ...]:
    wants = bool(grading.expected) or grading.expected_value is not None
    return _JUDGE if wants or (grading.criteria.strip() and not grading.is_turn) else ()


NOT_HELD = CaseScore(verdict="skip", reason="the conversation was stopped before it")
"""The score of a turn that was not held. It counts as nothing reached."""


def together(
    turns: Sequence[CaseScore],
    whole: CaseScore | None,
    aggregation: Aggregation,
    threshold: float,
    *,
    not_held: int = 0,
) -> CaseScore:
    """The score of a conversation: of its turns, of those that were not held any more, and of the whole.

    A turn without graders is not counted; one that could not be graded leaves the conversation not graded.
    """
    all_turns = (*turns, *[NOT_HELD] * not_held)
    counted = [*turns, *([] if whole is None else [whole])]
    scores = () if whole is None else whole.scores
    silent = [score for score in counted if score.verdict == "not_graded"]
    if silent:
        return CaseScore(
            verdict="not_graded", scores=scores, turns=all_turns, reason="; ".join(each.reason for each in silent)
        )
    values = [score.score for score in counted if score.score is not None] + [0.0] * not_held
    if not values:
        return CaseScore(verdict="skip", scores=scores, turns=all_turns, reason="there is nothing to grade it by")
    score = _aggregate(values, aggregation)
    held = f"{not_held} turns were not held" if not_held else ""
    return CaseScore(
        verdict="pass" if reaches(score, threshold) and not not_held else "fail",
        score=score,
        scores=scores,
        turns=all_turns,
        reason=held,
    )


def _aggregate(values: Sequence[float], aggregation: Aggregation) -> float:
    if aggregation == "mean":
        return min(max(sum(values) / len(values), 0.0), 1.0)
    return min(values) if aggregation == "min" else max(values)


def as_one(turns: Sequence[CaseObservation]) -> CaseObservation:
    """All turns of a conversation as one observation, whose words are the whole transcript."""
    messages = tuple(message for index, turn in enumerate(turns) for message in (*_new(turn, index), *turn.messages))
    failed = next((turn for turn in turns if turn.error), CaseObservation())
    return msgspec.structs.replace(
        turns[-1],
        asked=turns[0].asked,
        messages=messages,
        text=transcript(messages),
        question="",
        tools=tuple(use for turn in turns for use in turn.tools),
        usage=_usage(turns),
        cost=sum_if_known([turn.cost for turn in turns]),
        seconds=sum_if_known([turn.seconds for turn in turns]),
        requests=sum(turn.requests for turn in turns),
        is_traced=all(turn.is_traced for turn in turns),
        exchanges=tuple(exchange for turn in turns for exchange in turn.exchanges),
        request_sha256="",
        error=failed.error,
        error_code=failed.error_code,
    )


def _new(turn: CaseObservation, index: int) -> tuple[Message, ...]:
    """What was said to the target in this turn: all of it in the first, and what follows its last words later."""
    if index == 0:
        return turn.asked
    earlier = [at for at, message in enumerate(turn.asked) if message.role in ("assistant", "tool")]
    return turn.asked[earlier[-1] + 1 :] if earlier else turn.asked


def _usage(turns: Sequence[CaseObservation]) -> Usage | None:
    usages = [turn.usage or Usage() for turn in turns]
    given = sum_if_known([usage.input_tokens for usage in usages])
    got = sum_if_known([usage.output_tokens for usage in usages])
    if given is None and got is None:
        return None
    return Usage(input_tokens=None if given is None else int(given), output_tokens=None if got is None else int(got))
