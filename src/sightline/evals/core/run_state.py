"""A run of a suite: its options, its append-only facts, the state that they add up to, and what can run next."""

import re
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias, TypeVar, assert_never

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.core.glob import compile_glob
from sightline.evals.core.graders.finding import DEFAULT_THRESHOLD
from sightline.evals.core.result import CaseObservation, CaseResult, CaseScore, Status, Verdict
from sightline.evals.core.suite import Case, Suite
from sightline.evals.core.target import FileForm, TargetSpec
from sightline.wire.jsontext import MISFIT, decode, encode

DEFAULT_WORKERS = 8


class RunOptions(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Options of a run. None, or an empty tuple, means not set. `cases` are patterns of case ids.

    `targets` are for cases that name none themselves; empty means all. `workers` is how many cases a target without a
    `concurrency` of its own answers at once. `approve` lets tools run without approval.
    """

    trials: int | None = None
    threshold: float | None = None
    budget_usd: float | None = None
    workers: int | None = None
    cache: bool | None = None
    tags: tuple[str, ...] = ()
    exclude_tags: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    judge: str = ""
    approve: bool = False
    file_form: FileForm | None = None


def trials_of(case: Case, suite: Suite, options: RunOptions) -> int:
    """How often a case is run. The command's setting wins over the case's, and that over the suite's."""
    if options.trials is not None:
        return max(1, options.trials)
    chosen = case.execution.trials or suite.execution.trials
    return 1 if chosen is None else chosen.count


def threshold_of(case: Case, suite: Suite, options: RunOptions) -> float:
    """The score that a case must reach. The case's setting wins over the command's, and that over the suite's."""
    chosen = (case.execution.threshold, options.threshold, suite.execution.threshold)
    return next((each for each in chosen if each is not None), DEFAULT_THRESHOLD)


def file_form_of(case: Case, suite: Suite, options: RunOptions, target: TargetSpec) -> FileForm:
    """How files are written into a prompt, as set by the command, the case, the suite or the target, in this order."""
    chosen = (options.file_form, case.execution.file_form, suite.execution.file_form, target.file_form)
    return next((each for each in chosen if each is not None), "xml")


def budget_of(suite: Suite, options: RunOptions) -> float | None:
    """The dollars after which no new case is started, None if there is no limit."""
    return suite.execution.budget_usd if options.budget_usd is None else options.budget_usd


def is_cached(suite: Suite, options: RunOptions) -> bool:
    """Whether an earlier answer to the same request is reused."""
    chosen = suite.execution.cache if options.cache is None else options.cache
    return chosen is not False


def workers_of(suite: Suite, options: RunOptions) -> int:
    """How many cases run at once on a target that does not set this itself."""
    return max(1, options.workers or suite.execution.workers or DEFAULT_WORKERS)


def cost_limit_of(case: Case, suite: Suite) -> float | None:
    """The dollars that all trials of a case may cost together, on each target. None if there is no limit."""
    chosen = case.execution.trials or suite.execution.trials
    return None if chosen is None else chosen.cost_limit_usd


def select_cases(suite: Suite, options: RunOptions) -> tuple[Case, ...]:
    """The selected cases, in their order, with those that they depend on: whether a case is run depends on their
    results. Raises a `Fault` if none is left."""
    wanted = {case.id for case in suite.cases if _is_wanted(case, options)}
    if not wanted:
        known = ", ".join(case.id for case in suite.cases[:5])
        hint = f"Its cases are: {known}{', …' if len(suite.cases) > 5 else ''}."
        raise Fault(Code.USAGE, f"no case of {suite.file or suite.name} is selected", hint=hint)
    by_id = {case.id: case for case in suite.cases}
    waiting = list(wanted)
    while waiting:
        for name in by_id[waiting.pop()].depends_on:
            if name in by_id and name not in wanted:
                wanted.add(name)
                waiting.append(name)
    return tuple(case for case in suite.cases if case.id in wanted)


def targets_of(case: Case, given: Sequence[str], options: RunOptions) -> tuple[str, ...]:
    """The targets of a case: those that it names, or else those of the options; all, if none of these exists."""
    for wanted in (case.execution.targets, options.targets):
        named = tuple(name for name in given if name in wanted)
        if named:
            return named
    return tuple(given)


def _is_wanted(case: Case, options: RunOptions) -> bool:
    if options.tags and not set(options.tags) & set(case.tags):
        return False
    if set(options.exclude_tags) & set(case.tags):
        return False
    return not options.cases or any(_matches(pattern, case.id) for pattern in options.cases)


def _matches(pattern: str, name: str) -> bool:
    """Whether a pattern matches a name. A name is not a path and has no folders, so `*` matches what `**` does."""
    if pattern == name:
        return True
    return compile_glob(re.sub(r"\*+", "**", pattern)).matches(name)


Key: TypeAlias = tuple[str, str, int]
"""A case id, a target, and a trial from 0."""

EndedWhy: TypeAlias = Literal["finished", "stopped", "budget"]


class EvalBegan(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="kind", tag="eval_began"):
    """Everything that the run started with: the suite with the selected cases, the targets and judges, and the hashes
    of the files that are sent, by path."""

    suite: Suite
    targets: tuple[TargetSpec, ...]
    judges: tuple[TargetSpec, ...] = ()
    options: RunOptions = RunOptions()
    files: dict[str, str] = {}
    at: float = 0.0


class EvalTaken(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="eval_taken"):
    """A process takes over the run."""

    by: str = ""


class CaseStarted(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="case_started"):
    case: str
    target: str
    trial: int = 0


class CaseDone(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="case_done"):
    result: CaseResult


class Reopened(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="reopened"):
    """These trials are to be run again; until then they have no result."""

    keys: tuple[Key, ...]


class EvalEnded(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="eval_ended"):
    """The process stopped driving the run. Unless the run is finished, it can be resumed."""

    why: EndedWhy = "finished"


EvalFact: TypeAlias = EvalBegan | EvalTaken | CaseStarted | CaseDone | Reopened | EvalEnded

T = TypeVar("T")
_ENCODER = msgspec.json.Encoder()
_DECODER: "msgspec.json.Decoder[EvalFact]" = msgspec.json.Decoder(EvalFact)


def write(value: object) -> bytes:
    """A fact, or another struct, as JSON."""
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:  # a model may write a lone surrogate
        return encode(msgspec.to_builtins(value))


def read(data: bytes) -> EvalFact:
    try:
        return read_as(data, _DECODER, EvalFact)
    except MISFIT as error:
        hint = "Another version wrote it; resume the run with the version that started it."
        raise Fault(Code.INVALID_REQUEST, f"not a fact of a run of evals: {error}", hint=hint) from None


def read_as(data: bytes, decoder: "msgspec.json.Decoder[T]", form: object) -> T:
    """Read a value of the type `form` that `write` wrote. `decoder` is the decoder of that type. Raises one of `MISFIT`
    if the data has another form."""
    try:
        return decoder.decode(data)
    except ValueError:
        pass  # the data has a lone surrogate, or another form
    value: T = msgspec.convert(decode(data), form)
    return value


NOT_RUN = "dependency_failed"
"""The error code of a case that was not run, and counts as failed, because a case that it depends on failed."""


class EvalState:
    """The state of a run, folded from its facts. `by` is the process that drives it or last did. `ended` is why it
    ended, None while it is driven or if its process died. `version` counts the facts."""

    def __init__(self, began: EvalBegan) -> None:
        self.began = began
        self.cases: dict[str, Case] = {case.id: case for case in began.suite.cases}
        self.keys: tuple[Key, ...] = _keys(began)
        self.by = ""
        self.ended: EndedWhy | None = None
        self.version = 0
        self._results: dict[Key, CaseResult] = {}
        self._running: dict[Key, None] = {}

    def add(self, fact: EvalFact) -> None:
        self.version += 1
        match fact:
            case EvalBegan():
                self.began = fact
            case EvalTaken(by):
                # Trials that another process started and did not finish are started again.
                self.by, self.ended, self._running = by, None, {}
            case CaseStarted(case, target, trial):
                self._running[case, target, trial] = None
            case CaseDone(result):
                self._running.pop(result.key, None)
                self._results[result.key] = result
            case Reopened(keys):
                for key in keys:
                    self._results.pop(key, None)
            case EvalEnded(why):
                self.ended, self._running = why, {}
            case unreachable:
                assert_never(unreachable)

    @property
    def results(self) -> tuple[CaseResult, ...]:
        """The results so far, in the order of the suite: by case, target and trial."""
        return tuple(self._results[key] for key in self.keys if key in self._results)

    def result(self, key: Key) -> CaseResult | None:
        return self._results.get(key)

    @property
    def done(self) -> int:
        return len(self._results)

    @property
    def running(self) -> tuple[Key, ...]:
        return tuple(self._running)

    @property
    def left(self) -> tuple[Key, ...]:
        """The trials without a result, in the order of the suite."""
        return tuple(key for key in self.keys if key not in self._results)

    @property
    def failed(self) -> tuple[Key, ...]:
        """The trials that did not pass: failed, not graded, skipped because of another, or without an answer."""
        return tuple(result.key for result in self.results if not has_passed(result))

    def keys_of(self, cases: Iterable[str], target: str = "") -> tuple[Key, ...]:
        """All trials of these cases, on one target or on all. Raises a `Fault` if a case does not exist."""
        wanted = set(cases)
        found = tuple(key for key in self.keys if key[0] in wanted and target in ("", key[1]))
        missing = sorted(wanted - {key[0] for key in found})
        if missing:
            where = f" on {target}" if target else ""
            hint = "GET /api/evals/{run} has the names of all."
            raise Fault(Code.USAGE, f"the run has no case {', '.join(missing)}{where}", hint=hint, status=404)
        return found


def has_passed(result: CaseResult) -> bool:
    """Whether a trial passed, so that it need not be run again."""
    return result.status == "ok" and result.score.verdict in ("pass", "skip")


def has_run(result: CaseResult) -> bool:
    """Whether the target answered, so that cases that depend on this one can run."""
    was_left_out = result.status == "skipped" or result.observation.error_code == NOT_RUN
    return not was_left_out and result.status != "execution_error"


_STATUS: dict[Verdict, Status] = {"pass": "ok", "skip": "ok", "fail": "quality_failure", "not_graded": "not_graded"}


def result_of(
    suite: Suite,
    case: Case,
    key: Key,
    score: CaseScore,
    observation: CaseObservation,
    *,
    status: Status | None = None,
    turns: tuple[CaseObservation, ...] = (),
    cached: bool = False,
    at: float = 0.0,
) -> CaseResult:
    """The result of one trial. Without a `status`, it follows from the answer and the score."""
    name, target, trial = key
    return CaseResult(
        case=name,
        target=target,
        trial=trial,
        suite=suite.name,
        group=case.group,
        tags=case.tags,
        status=status or ("execution_error" if observation.error else _STATUS[score.verdict]),
        score=score,
        observation=observation,
        turns=turns,
        cached=cached,
        at=at,
    )


def _keys(began: EvalBegan) -> tuple[Key, ...]:
    given = [target.name for target in began.targets]
    return tuple(
        (case.id, target, trial)
        for case in began.suite.cases
        for target in targets_of(case, given, began.options)
        for trial in range(trials_of(case, began.suite, began.options))
    )


class Schedule:
    """The trials left of a run. A trial depends on the same trial of each case in `depends_on`, or on its last one if
    it has fewer."""

    def __init__(self, standing: EvalState) -> None:
        self._standing = standing
        self._ready: dict[str, deque[Key]] = {target.name: deque() for target in standing.began.targets}
        self._left = dict.fromkeys(self._ready, 0)
        self._trials: dict[tuple[str, str], int] = {}
        for case, target, _ in standing.keys:
            self._trials[case, target] = self._trials.get((case, target), 0) + 1
        self._blocked: dict[Key, int] = {}
        self._freed_by: dict[Key, list[Key]] = {}
        left = standing.left
        open_keys = set(left)
        for key in left:
            self._left[key[1]] += 1
            before = [each for each in self._dependencies(key) if each in open_keys]
            for each in before:
                self._freed_by.setdefault(each, []).append(key)
            if before:
                self._blocked[key] = len(before)
            else:
                self._ready[key[1]].append(key)

    def next(self, target: str) -> Key | None:
        """The next trial that can start, None if there is none at the moment."""
        ready = self._ready[target]
        return ready.popleft() if ready else None

    def is_over(self, target: str) -> bool:
        return not self._left[target]

    def finish(self, key: Key) -> None:
        """Note that a trial has a result, and release the trials that waited for it."""
        self._left[key[1]] -= 1
        for waiting in self._freed_by.pop(key, ()):
            self._blocked[waiting] -= 1
            if not self._blocked[waiting]:
                del self._blocked[waiting]
                self._ready[waiting[1]].append(waiting)

    def failures(self, key: Key) -> tuple[str, ...]:
        """The cases that this one depends on and that were not carried out. A case that was answered but failed, or
        could not be graded, was carried out: cases that depend on it are run, as in AgentV."""
        results = (self._standing.result(each) for each in self._dependencies(key))
        return tuple(result.case for result in results if result is not None and not has_run(result))

    def _dependencies(self, key: Key) -> Iterable[Key]:
        case, target, trial = key
        for name in self._standing.cases[case].depends_on:
            trials = self._trials.get((name, target), 0)
            if trials:
                yield name, target, min(trial, trials - 1)
