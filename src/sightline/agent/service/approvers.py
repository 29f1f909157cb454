"""The interface of approvers, who decide in a run; approvers that ask a function or a person at the page; and the rules
that a person has set for all runs. The approver that asks at a terminal is in `cli`."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from sightline.agent.core.approval import Allowed, AnsweredByHand, ApprovalRule, Decision, Denied
from sightline.agent.core.steps import Approve, Confirm, RunnableCall
from sightline.errors import Code, Fault
from sightline.model.json import Json
from sightline.platform.files import replacing
from sightline.wire.jsontext import MISFIT, decode

Interrupted: TypeAlias = Literal["again", "skip"]
"""What to do with a call that was running when the process ended."""

Question: TypeAlias = Approve | Confirm | tuple[RunnableCall, ...]
"""A question to a person: about calls, a limit, or interrupted calls."""


class Approver(Protocol):
    """Decides for a run, which waits as long as the decision takes. Cancelled when the run is stopped."""

    async def approve(self, run: str, step: Approve) -> Mapping[str, Decision]:
        """The decision about each call, by its key. A call that is left out is not run."""
        ...

    async def confirm(self, run: str, step: Confirm) -> bool:
        """Whether to raise a limit."""
        ...

    async def mid_flight(self, run: str, calls: Sequence[RunnableCall]) -> Mapping[str, Interrupted]:
        """Whether to run calls again that were started, may have had side effects, and have no result."""
        ...


Said: TypeAlias = bool | str | dict[str, Json] | Decision
"""A verdict on a call: yes or no, a reason against it, other arguments to run it with, or a whole decision."""

Judge: TypeAlias = Callable[[RunnableCall], Said | Awaitable[Said]]
Approval: TypeAlias = Literal["yes"] | Judge


class FunctionApprover:
    """Decides by `approve`, raises no limits, and runs interrupted calls again only if `interrupted` is "again". If the
    arguments that the function returned cannot be used, the call is denied; the function is not asked a second time."""

    def __init__(self, approve: Approval, *, interrupted: Interrupted = "skip") -> None:
        self._approve = approve
        self._interrupted: Interrupted = interrupted

    async def approve(self, run: str, step: Approve) -> Mapping[str, Decision]:
        return {call.key: await self._decide(call, step.objections.get(call.key, "")) for call in step.calls}

    async def confirm(self, run: str, step: Confirm) -> bool:
        return False

    async def mid_flight(self, run: str, calls: Sequence[RunnableCall]) -> Mapping[str, Interrupted]:
        return {call.key: self._interrupted for call in calls}

    async def _decide(self, call: RunnableCall, objection: str) -> Decision:
        if objection:
            return Denied(objection)
        if self._approve == "yes":
            return Allowed()
        verdict = self._approve(call)
        return _decision(await verdict if inspect.isawaitable(verdict) else verdict)


def deny_unattended(_call: RunnableCall) -> Said:
    """The decision if no person can be asked. A hook may want a person even for calls that a rule allows."""
    return Denied(by="nobody")


def _decision(verdict: Said) -> Decision:
    match verdict:
        case Allowed() | Denied() | AnsweredByHand():
            return verdict
        case bool():
            return Allowed() if verdict else Denied()
        case str():
            return Denied(verdict)
        case dict():
            return Allowed(verdict)


T = TypeVar("T")


@dataclass
class _OpenQuestion(Generic[T]):
    """An open question: `keys` are still undecided, `answers` are the answers so far."""

    done: "asyncio.Future[T]"
    keys: set[str] = field(default_factory=set)
    answers: dict[str, Any] = field(default_factory=dict)


class Questions:
    """An approver whose answers come from the page, by `decide`, `confirm_with` and `tell`. `changed` is called after
    each.

    Calls can be decided one by one; the run continues when all are. Answers about interrupted calls that arrive before
    the question are remembered until it is asked.
    """

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._calls: dict[str, _OpenQuestion[dict[str, Decision]]] = {}
        self._limits: dict[str, _OpenQuestion[bool]] = {}
        self._interrupted: dict[str, _OpenQuestion[dict[str, Interrupted]]] = {}
        self._early_answers: dict[str, dict[str, Interrupted]] = {}

    # --- asking ---

    async def approve(self, run: str, step: Approve) -> Mapping[str, Decision]:
        return await _answer_question(self._calls, run, {call.key for call in step.calls}, {})

    async def confirm(self, run: str, step: Confirm) -> bool:
        return await _answer_question(self._limits, run, set(), {})

    async def mid_flight(self, run: str, calls: Sequence[RunnableCall]) -> Mapping[str, Interrupted]:
        answers = self._early_answers.pop(run, {})
        return await _answer_question(self._interrupted, run, {call.key for call in calls}, answers)

    def open_keys(self, run: str) -> frozenset[str]:
        """The keys of calls with an open question."""
        questions = (self._calls.get(run), self._interrupted.get(run))
        return frozenset(key for each in questions if each is not None for key in each.keys)

    # --- answering ---

    def decide(self, run: str, decisions: Mapping[str, Decision]) -> None:
        self._add(self._calls, run, decisions, "no call of this run waits for a decision")

    def confirm_with(self, run: str, *, goes_on: bool) -> None:
        question = _open(self._limits, run, "no limit of this run waits to be confirmed")
        question.done.set_result(goes_on)
        self._changed(run)

    def tell(self, run: str, answers: Mapping[str, Interrupted]) -> None:
        """Decide about interrupted calls: now, or when the run is resumed."""
        if run in self._interrupted:
            self._add(self._interrupted, run, answers, "")
        else:
            self._early_answers.pop(run, None)
            if answers:
                self._early_answers[run] = dict(answers)

    def _add(
        self, questions: dict[str, _OpenQuestion[dict[str, T]]], run: str, answers: Mapping[str, T], otherwise: str
    ) -> None:
        question = _open(questions, run, otherwise)
        unknown = sorted(set(answers) - question.keys - set(question.answers))
        if unknown:
            message = f"no call {', '.join(unknown)} waits for a decision"
            raise Fault(Code.USAGE, message, hint="GET /api/runs/{id} lists them.", status=409)
        question.answers |= answers
        question.keys -= set(answers)
        if not question.keys:
            question.done.set_result(question.answers)
        self._changed(run)


def _open(questions: "dict[str, _OpenQuestion[T]]", run: str, otherwise: str) -> "_OpenQuestion[T]":
    question = questions.get(run)
    if question is None or question.done.done():
        raise Fault(Code.USAGE, otherwise, hint="GET /api/runs/{id} tells what is pending.", status=409)
    return question


async def _answer_question(
    questions: "dict[str, _OpenQuestion[T]]", run: str, keys: set[str], answers: Mapping[str, Any]
) -> T:
    done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    known = {key: answer for key, answer in answers.items() if key in keys}
    question = questions[run] = _OpenQuestion(done, keys - set(known), dict(known))
    if known and not question.keys:
        done.set_result(question.answers)  # type: ignore[arg-type] # only questions by key have answers beforehand
    try:
        return await done
    finally:
        del questions[run]


_APPROVALS_FILE = "approvals.json"


class SavedRule(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A permanent rule: a tool's name, the place it comes from, and the patterns for its arguments, by JSON pointer."""

    tool: str
    place: str
    arguments: dict[str, str] = {}

    @property
    def rule(self) -> ApprovalRule:
        return ApprovalRule(self.tool, "allow", self.arguments)

    @property
    def words(self) -> str:
        fits = ", ".join(f"{pointer} like {pattern}" for pointer, pattern in self.arguments.items())
        return f"{self.tool} ({fits or 'any arguments'})"


class SavedRules:
    """The file of rules in a data folder. It is read anew each time, because a person or another process may have
    edited it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / _APPROVALS_FILE

    def all(self) -> tuple[SavedRule, ...]:
        """All rules. Raises a fault if the file cannot be read, because the user relies on it."""
        try:
            data = self.file.read_bytes()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise self._wrong(error.strerror or str(error)) from None
        try:
            return msgspec.convert(decode(data), tuple[SavedRule, ...])
        except (*MISFIT, Fault) as error:
            raise self._wrong(error.message if isinstance(error, Fault) else str(error)) from None

    def of(self, places: Mapping[str, str]) -> tuple[SavedRule, ...]:
        """The rules for these tools, by name, if they come from these places."""
        return tuple(kept for kept in self.all() if places.get(kept.tool) == kept.place)

    def keep(self, rule: SavedRule) -> None:
        rules = self.all()
        if rule not in rules:
            self._write((*rules, rule))

    def forget(self, rule: SavedRule) -> bool:
        """Delete a rule, so that such calls are asked about again. Returns whether the rule existed."""
        rules = self.all()
        left = tuple(each for each in rules if each != rule)
        if left != rules:
            self._write(left)
        return left != rules

    def _write(self, rules: tuple[SavedRule, ...]) -> None:
        text = msgspec.json.format(msgspec.json.encode(rules), indent=2) + b"\n"
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with replacing(self.file) as file:
                file.write(text)
        except OSError as error:
            raise self._wrong(error.strerror or str(error)) from None

    def _wrong(self, why: str) -> Fault:
        return Fault(
            Code.CONFIG, f"{self.file}: {why}", hint="Correct it, or delete it; Sightline then asks about every call."
        )
