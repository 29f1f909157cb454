"""The interface of approvers, who decide in a run; approvers that ask a function or a person at the page; and the rules
that a person has set for all runs. The approver that asks at a terminal is in `cli`."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

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


_Kind: TypeAlias = Literal["calls", "limit", "interrupted"]


@dataclass
class _OpenQuestion:
    """The open question of a run: `keys` are still undecided, `answers` are the answers so far."""

    kind: _Kind
    done: "asyncio.Future[Any]"
    keys: set[str]
    answers: dict[str, Any]


class Questions:
    """An approver whose answers come from the page, by `decide`, `confirm_with` and `tell`. `changed` is called after
    each.

    Calls can be decided one by one; the run continues when all are. Answers about interrupted calls that arrive before
    the question are remembered until it is asked.
    """

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._open: dict[str, _OpenQuestion] = {}
        self._early_answers: dict[str, dict[str, Interrupted]] = {}

    # --- asking ---

    async def approve(self, run: str, step: Approve) -> Mapping[str, Decision]:
        decisions: Mapping[str, Decision] = await self._ask(run, "calls", step.calls, {})
        return decisions

    async def confirm(self, run: str, step: Confirm) -> bool:
        goes_on: bool = await self._ask(run, "limit", (), {})
        return goes_on

    async def mid_flight(self, run: str, calls: Sequence[RunnableCall]) -> Mapping[str, Interrupted]:
        early = self._early_answers.pop(run, {})
        answers: Mapping[str, Interrupted] = await self._ask(run, "interrupted", calls, early)
        return answers

    def open_keys(self, run: str) -> frozenset[str]:
        """The keys of calls with an open question."""
        return frozenset(self._open[run].keys if run in self._open else ())

    async def _ask(self, run: str, kind: _Kind, calls: Sequence[RunnableCall], early: Mapping[str, Interrupted]) -> Any:
        """The answer to a question. A run has one at a time, because it waits for each."""
        keys = {call.key for call in calls}
        known = {key: answer for key, answer in early.items() if key in keys}
        question = _OpenQuestion(kind, asyncio.get_running_loop().create_future(), keys - set(known), known)
        self._open[run] = question
        if known and not question.keys:
            question.done.set_result(known)
        try:
            return await question.done
        finally:
            del self._open[run]

    # --- answering ---

    def decide(self, run: str, decisions: Mapping[str, Decision]) -> None:
        self._add(run, "calls", decisions, "no call of this run waits for a decision")

    def confirm_with(self, run: str, *, goes_on: bool) -> None:
        question = self._question(run, "limit", "no limit of this run waits to be confirmed")
        question.done.set_result(goes_on)
        self._changed(run)

    def tell(self, run: str, answers: Mapping[str, Interrupted]) -> None:
        """Decide about interrupted calls: now, or when the run is resumed."""
        if run in self._open and self._open[run].kind == "interrupted":
            self._add(run, "interrupted", answers, "no interrupted call of this run waits for a decision")
        else:
            self._early_answers.pop(run, None)
            if answers:
                self._early_answers[run] = dict(answers)

    def _add(self, run: str, kind: _Kind, answers: Mapping[str, Any], otherwise: str) -> None:
        question = self._question(run, kind, otherwise)
        unknown = sorted(set(answers) - question.keys - set(question.answers))
        if unknown:
            message = f"no call {', '.join(unknown)} waits for a decision"
            raise Fault(Code.USAGE, message, hint="GET /api/runs/{id} lists them.", status=409)
        question.answers |= answers
        question.keys -= set(answers)
        if not question.keys:
            question.done.set_result(question.answers)
        self._changed(run)

    def _question(self, run: str, kind: _Kind, otherwise: str) -> _OpenQuestion:
        question = self._open.get(run)
        if question is None or question.kind != kind or question.done.done():
            raise Fault(Code.USAGE, otherwise, hint="GET /api/runs/{id} tells what is pending.", status=409)
        return question


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
