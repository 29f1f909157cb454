"""Grading a case: the composite grader, the table of grader types, running graders, and combining their scores."""

import re
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, TypeAlias, assert_never, cast

import msgspec

from sightline.catalog.problem import nearest
from sightline.catalog.reading import key
from sightline.errors import Code, Fault
from sightline.evals.core.graders.command import COMMAND_TYPES, Command, CommandConfig, type_of_call
from sightline.evals.core.graders.conduct import LIMIT_TYPES, TOOL_TYPES
from sightline.evals.core.graders.expectation import FIELD_TYPES, pretty, transcript
from sightline.evals.core.graders.finding import (
    Answer,
    Asking,
    GraderFinding,
    Grading,
    GradingSubject,
    Judge,
    Run,
    Step,
    combine_scores,
    finding_without_score,
    is_missing,
    is_sunk,
    or_reason,
    reaches,
    reasons,
    sum_if_known,
    sum_usage,
    weighted_mean,
)
from sightline.evals.core.graders.grader import (
    FORMER_TYPES,
    Grader,
    GraderReader,
    GraderType,
    prepare_grader,
    read_list,
    run_grader,
)
from sightline.evals.core.graders.judge import JUDGE_TYPES, Fence, PromptSource, ask_judge, read_words
from sightline.evals.core.graders.rubric import FREE, read_free
from sightline.evals.core.graders.text import TEXT_TYPES
from sightline.evals.core.reading.document import Amount, Share, SuiteFindings, Text, node_of
from sightline.evals.core.reading.sources import LISTS
from sightline.evals.core.result import CaseObservation, CaseScore, Check, Score
from sightline.evals.core.suite import Aggregation, GraderSpec, SuiteProblem
from sightline.model.json import Json, JsonObject
from sightline.model.request import Message

RESULTS = "EVALUATOR_RESULTS_JSON"
_PLACE = re.compile(r"\{\{\s*" + RESULTS + r"\s*\}\}")
_PROMPT = (
    "Several graders have looked at one answer; what they say stands below. What is the answer worth, all in all? "
    "Give a score from 0 to 1 and what speaks for and against it."
)
_ROLE = "You weigh what graders say of an answer."
_NO_WEIGHT = "none of the graders within has any weight"

Aggregate: TypeAlias = Callable[[tuple[Score, ...], GradingSubject], Asking]


class WeightedAverage(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="weighted_average"):
    """The weighted mean score; `weights` are by the names of the graders."""

    weights: dict[str, Amount] = {}


class PassShare(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="threshold"):
    """The share of the graders that pass, and how large it has to be."""

    threshold: Share


class CodeAggregator(CommandConfig, frozen=True, kw_only=True, tag_field="type", tag="code-grader"):
    """Pass the scores to a command or a function."""

    command: Annotated[Command | None, key(aliases=("path",))] = None


class JudgeAggregator(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="llm-grader"):
    """Pass the scores to a model."""

    prompt: str = ""
    target: Text = ""
    model: Text = ""


Aggregator: TypeAlias = WeightedAverage | PassShare | CodeAggregator | JudgeAggregator


class CompositeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Graders as in a case, and how their scores are combined into one."""

    assertions: Annotated[tuple[Json, ...], key(aliases=("assert", "evaluators"), hint="Give a list.", min_length=1)]
    aggregator: dict[str, Json] = {}


def _build(config: CompositeConfig, reader: GraderReader) -> Run:
    name = next(each for each in LISTS if each in reader.spec.config)
    members = _prepare_members(config, name, reader)
    value = {"type": "weighted_average", **config.aggregator}
    if isinstance(value["type"], str):
        value["type"] = value["type"].replace("_grader", "-grader")  # as older suites write it
    # The reader accepts a union of structs, which is not a `type` for mypy.
    aggregator: Aggregator | None = reader.read(value, cast(type[Aggregator], Aggregator), ("aggregator",))
    names = [member.spec.name for member in members]
    is_by_name = not isinstance(aggregator, WeightedAverage | PassShare) or "weights" in value
    if is_by_name and len(set(names)) != len(names):
        reader.tell("", "two graders within have the same name", "Give each a name of its own.")
    weights = aggregator.weights if isinstance(aggregator, WeightedAverage) else {}
    for each in weights:
        if each not in names:
            reader.tell(f"aggregator.weights.{each}", f"there is no grader {each!r} within", nearest(each, names))
    return partial(_run, members, weights, _aggregate_of(aggregator or PassShare(threshold=1.0), reader))


def _prepare_members(config: CompositeConfig, name: str, reader: GraderReader) -> list[Grader]:
    """The inner graders, read by the same reader as those of a case. Their place is that of the composite."""
    findings = SuiteFindings()
    specs = read_list(node_of(list(config.assertions), reader.spec.place, (name,)), name, findings)
    for problem in findings.problems:
        reader.problems.append(msgspec.structs.replace(problem, path=f"{reader.path}.{problem.path}"))
    members = [prepare_grader(spec, f"{reader.path}.{name}[{index}]", reader.types) for index, spec in enumerate(specs)]
    reader.problems += [problem for member in members for problem in member.problems]
    return members


def _aggregate_of(aggregator: Aggregator, reader: GraderReader) -> Aggregate:
    match aggregator:
        case WeightedAverage(weights=weights):
            return partial(_average, weights)
        case PassShare(threshold=threshold):
            return partial(_share_of_passes, threshold)
        case CodeAggregator():
            aggregator.check(reader, "aggregator.")
            return partial(_by_code, aggregator)
        case JudgeAggregator():
            prompt = read_words(aggregator.prompt, (RESULTS,), reader, "aggregator.")
            return partial(_by_judge, prompt, aggregator.target, aggregator.model)
        case unreachable:
            assert_never(unreachable)


def _run(
    members: Sequence[Grader], weights: Mapping[str, float], together: Aggregate, subject: GradingSubject
) -> Asking:
    """If a member could not run, the composite is not graded, whatever its aggregator; no judge is asked then."""
    scores: list[Score] = []
    for member in members:
        scores += [(yield from run_grader(member, subject))]
    given = tuple(scores)
    missing = [score for score in given if is_missing(score, _weight(weights, score))]
    if missing:
        return replace(finding_without_score(reasons(missing)), scores=given)
    finding = yield from or_reason(together(given, subject))
    return replace(finding, scores=given)


# --- together -------------------------------------------------------------------------------------


def _average(weights: Mapping[str, float], scores: tuple[Score, ...], _subject: GradingSubject) -> Asking:
    yield from ()
    graded = _scores_given(scores)
    score = weighted_mean((score.score or 0.0, _weight(weights, score)) for score in graded)
    if score is None:
        return finding_without_score(_NO_WEIGHT)
    finding = GraderFinding(score=score, checks=_all_checks(graded), reason=_describe_ungraded(scores))
    return _apply_required(finding, graded)


def _share_of_passes(threshold: float, scores: tuple[Score, ...], _subject: GradingSubject) -> Asking:
    yield from ()
    graded = _scores_given(scores)
    counting = [score for score in graded if score.weight]
    if not counting:
        return finding_without_score(_NO_WEIGHT)
    passed = sum(score.verdict == "pass" for score in counting)
    part = passed / len(counting)
    enough = reaches(part, threshold)
    first = Check(f"at least {threshold:g} of the graders pass", enough, f"{passed} of {len(counting)}")
    finding = GraderFinding(
        score=part, checks=(first, *_all_checks(graded)), reason=_describe_ungraded(scores), passed=enough
    )
    return _apply_required(finding, graded)


def _by_code(code: CodeAggregator, scores: tuple[Score, ...], _subject: GradingSubject) -> Asking:
    return (yield from code.run({"results": _results(scores)}))


def _by_judge(
    prompt: PromptSource, target: str, model: str, scores: tuple[Score, ...], subject: GradingSubject
) -> Asking:
    words = yield from prompt.words(subject)
    results = pretty(_results(scores))
    fence = Fence([results, words])
    quoted = fence.around("results", results)
    wording = words or _PROMPT
    question = Judge(
        system=f"{_ROLE}\n{fence.rule}",
        user=_PLACE.sub(lambda _: quoted, wording) if _PLACE.search(wording) else f"{wording}\n\n{quoted}",
        schema=FREE,
        target=target,
        model=model,
    )
    return (yield from ask_judge(question, read_free))


def _scores_given(scores: Sequence[Score]) -> list[Score]:
    return [score for score in scores if score.verdict != "not_graded"]


def _apply_required(finding: GraderFinding, graded: Sequence[Score]) -> GraderFinding:
    """Set the finding to 0 and failed if a required grader did not reach its score."""
    sunk = [score.name for score in graded if is_sunk(score)]
    if not sunk:
        return finding
    return replace(finding, score=0.0, passed=False, reason=f"required and not reached: {', '.join(sunk)}")


def _weight(weights: Mapping[str, float], score: Score) -> float:
    return weights.get(score.name, score.weight)


def _all_checks(scores: Sequence[Score]) -> tuple[Check, ...]:
    return tuple(
        Check(f"[{score.name}] {each.text}", each.passed, each.evidence) for score in scores for each in score.checks
    )


def _describe_ungraded(scores: Sequence[Score]) -> str:
    silent = [score.name for score in scores if score.verdict == "not_graded"]
    return f"not graded, and left out: {', '.join(silent)}" if silent else ""


def _results(scores: Sequence[Score]) -> JsonObject:
    return {
        score.name: {
            "type": score.type,
            "score": score.score,
            "verdict": score.verdict,
            "weight": score.weight,
            "reason": score.reason,
            "assertions": [
                {"text": check.text, "passed": check.passed, "evidence": check.evidence} for check in score.checks
            ],
            "details": score.details,
        }
        for score in scores
    }


GRADERS: dict[str, GraderType[Any]] = {
    **TEXT_TYPES,
    **LIMIT_TYPES,
    **FIELD_TYPES,
    **TOOL_TYPES,
    **COMMAND_TYPES,
    **JUDGE_TYPES,
    "composite": GraderType(CompositeConfig, _build),
}
"""Every grader type, by its name in suites."""
_BUILT_IN = frozenset(GRADERS)
_TYPE_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


def check_grader_name(name: str) -> None:
    """Raise a Fault if the type is built in, or suites cannot write it."""
    if name in _BUILT_IN or name in FORMER_TYPES:
        raise Fault(Code.USAGE, f"the grader {name!r} is built in", hint="Give yours another name.")
    if not _TYPE_NAME.fullmatch(name):
        hint = "Use lowercase letters, digits and dashes, not underscores."
        raise Fault(Code.USAGE, f"{name!r} is not a valid grader type", hint=hint)


def add_grader(name: str, call: Callable[[JsonObject, float], Awaitable[Json]]) -> None:
    """Add a grader type from outside this package, which is called with a case and its timeout in seconds. Raises as
    `check_grader_name` does."""
    check_grader_name(name)
    GRADERS[name] = type_of_call(call)


def remove_grader(name: str) -> None:
    del GRADERS[name]


WITHOUT = GraderSpec(type="llm-grader", name="llm-grader")
"""The grader of a case that states an expectation but names no grader."""


_JUDGE = (prepare_grader(WITHOUT, "assertions[0]", GRADERS),)


def check_graders(specs: Sequence[GraderSpec], path: str = "assertions") -> tuple[SuiteProblem, ...]:
    """All problems of these graders, before anything is run. `path` is the path of their list."""
    return tuple(problem for each in prepare(specs, path) for problem in each.problems)


def prepare(specs: Sequence[GraderSpec], path: str = "assertions") -> tuple[Grader, ...]:
    """These graders with their configuration read, to be used for every trial."""
    return tuple(prepare_grader(spec, f"{path}[{index}]", GRADERS) for index, spec in enumerate(specs))


def grade(
    graders: Sequence[Grader], observation: CaseObservation, grading: Grading
) -> Generator[Step, Answer, CaseScore]:
    """The score of a case. A case without an answer is not graded, and no grader is run.

    A case with an expectation but no graders is graded by a judge.
    """
    if observation.error:
        return CaseScore(verdict="not_graded", reason=f"there is no answer: {observation.error}")
    subject = GradingSubject(observation, grading)
    scores: list[Score] = []
    for grader in graders or _default_graders(grading):
        scores += [(yield from run_grader(grader, subject))]
    return combine_scores(scores, grading.threshold)


def _default_graders(grading: Grading) -> tuple[Grader, ...]:
    wants = bool(grading.expected) or grading.expected_value is not None
    return _JUDGE if wants or (grading.criteria.strip() and not grading.is_turn) else ()


NOT_HELD = CaseScore(verdict="skip", reason="the conversation was stopped before it")
"""The score of a turn that was not held. It counts as 0."""


def together(
    turns: Sequence[CaseScore],
    whole: CaseScore | None,
    aggregation: Aggregation,
    threshold: float,
    *,
    not_held: int = 0,
) -> CaseScore:
    """The score of a conversation: of its turns, of those that were not held, and of the whole.

    A turn without graders is not counted; a turn that could not be graded leaves the conversation not graded.
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
    score = min(values) if aggregation == "min" else max(values)
    if aggregation == "mean":
        score = min(max(sum(values) / len(values), 0.0), 1.0)
    held = f"{not_held} turns were not held" if not_held else ""
    return CaseScore(
        verdict="pass" if reaches(score, threshold) and not not_held else "fail",
        score=score,
        scores=scores,
        turns=all_turns,
        reason=held,
    )


def as_one(turns: Sequence[CaseObservation]) -> CaseObservation:
    """All turns of a conversation as one observation, whose text is the whole transcript."""
    messages = tuple(message for index, turn in enumerate(turns) for message in (*_new(turn, index), *turn.messages))
    failed = next((turn for turn in turns if turn.error), CaseObservation())
    return msgspec.structs.replace(
        turns[-1],
        asked=turns[0].asked,
        messages=messages,
        text=transcript(messages),
        question="",
        tools=tuple(use for turn in turns for use in turn.tools),
        usage=sum_usage([turn.usage for turn in turns]),
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
    """The messages to the target in this turn: all in the first turn, and those after its last reply in later turns."""
    if index == 0:
        return turn.asked
    earlier = [at for at, message in enumerate(turn.asked) if message.role in ("assistant", "tool")]
    return turn.asked[earlier[-1] + 1 :] if earlier else turn.asked
