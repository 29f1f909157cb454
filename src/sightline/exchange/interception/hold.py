"""What is held: a request, or the tool calls of a reply, with the document under edit and its undo history.

`HeldRequest`, `HeldCalls` and `HeldRaw` are the kinds of `Hold`. An edit is planned first, and committed once it is
recorded.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

from sightline.editing.comparing import SectionChange, changes_between
from sightline.editing.draft import Draft, EditHistory
from sightline.editing.mask_making import MaskMaker, check_counts, check_repeats, keeper_beside
from sightline.editing.masks import Mask, MaskOutcome, project_of
from sightline.editing.operations import AnyOperation, HoldOperation, Keep, KeepEdits, Redo, Reset, Undo
from sightline.editing.validity import Validity, check_draft
from sightline.errors import Code, Fault
from sightline.exchange.client_request import session_of
from sightline.exchange.exchange import Exchange
from sightline.exchange.interception.core.drafts import CallsDraft, RawDraft
from sightline.exchange.interception.core.rules import InterceptionRule, Phase
from sightline.exchange.interception.kept_edits import Kept, KeptEdits, masks_by_id
from sightline.exchange.outbound import facts_for
from sightline.exchange.phase import DroppedEnd, ExchangePhase
from sightline.exchange.request_counter import RequestCounter
from sightline.model.exchange import Held
from sightline.model.reply import Reply
from sightline.model.report import Report
from sightline.transport.waiting import Clock, wait_either

_SDKS = ("openai/", "anthropic/", "asyncopenai/", "asyncanthropic/", "azureopenai/")
_SDK_TIMEOUT = 600.0
"""Seconds after which the vendors' libraries give up on a response that is not streamed."""


# --- decisions --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Release:
    """It is released: these bytes, with this hash, are sent."""

    data: bytes
    sha256: str


@dataclass(frozen=True, slots=True)
class Drop:
    """It is refused."""

    reason: str


@dataclass(frozen=True, slots=True)
class UserReply:
    """A user has written the reply."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class Shutdown:
    """The server shuts down before there was a decision."""


Decision: TypeAlias = Release | Drop | UserReply | Shutdown


# --- holds ------------------------------------------------------------------------------------------


HeldDraft: TypeAlias = Draft | CallsDraft | RawDraft
"""A document on screen; an edit makes a new draft of it."""
D = TypeVar("D", bound=HeldDraft)


class PlannedEdit(NamedTuple):
    """An edit that is not made yet: the draft and the active masks after it. `commit` makes it."""

    draft: HeldDraft
    masks: tuple[Mask, ...]
    commit: Callable[[], None]


class _Hold(ABC, Generic[D]):
    """An exchange that waits for a user. `exchange` is its id, `request` the client's request, and `reason` why it is
    held if that is not a rule but a cap. `since` and the deadlines are times of day. `report` says what a translation
    lost; `masks` are the outcomes of the masks that were applied before."""

    phase: ClassVar[Phase]
    can_be_answered: ClassVar[bool] = True
    """Whether a user can write the reply."""
    report: Report | None = None
    masks: tuple[MaskOutcome, ...] = ()

    def __init__(self, exchange: Exchange, draft: D, rule: InterceptionRule, *, now: float, reason: str = "") -> None:
        self._exchange = exchange
        self.exchange = exchange.id
        self.request = exchange.request
        self.session = session_of(exchange.request)
        """The session of the request; empty if the client names none."""
        self.project = project_of(self.session)
        self._editing = EditHistory(draft)
        self.recorder = exchange.recorder
        self.choice = exchange.choice
        self.rule = rule
        self.since = now
        self.reason = reason
        self._decision: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()

    @property
    def draft(self) -> D:
        """The document on screen."""
        return self._editing.draft

    @property
    def can_undo(self) -> bool:
        """Whether there is an edit to undo."""
        return self._editing.can_undo

    @property
    def can_redo(self) -> bool:
        """Whether there is an edit to redo."""
        return self._editing.can_redo

    @property
    def kept_ids(self) -> tuple[str, ...]:
        """The ids of the masks that its edits have made so far; only edits of requests make any."""
        return ()

    @property
    def changes(self) -> tuple[SectionChange, ...]:
        """What a user changed in the conversation; only requests have one."""
        return ()

    def plan_edit(self, operation: HoldOperation, masks: tuple[Mask, ...], now: float) -> PlannedEdit:
        """The effect of this edit while `masks` are active. Raises a fault if the edit is refused. Only edits of
        requests can be kept for later ones."""
        if isinstance(operation, KeepEdits) or operation.keep is not None:
            raise _cannot_keep_fault()
        editing = self._editing.copy()
        after = editing.apply(operation)

        def commit() -> None:
            self._editing = editing

        return PlannedEdit(after, masks, commit)

    @abstractmethod
    def check(self, counter: RequestCounter) -> Validity:
        """The problems of the document on screen; it cannot be released with an error."""

    @property
    def deadline(self) -> float | None:
        """When the rule decides, if no user has; None if there is no limit."""
        return None if self.rule.timeout_s is None else self.since + self.rule.timeout_s

    @property
    def client_deadline(self) -> float | None:
        """When the client is likely to give up; None if unknown. A stream is kept alive, other responses cannot be."""
        program = self.request.headers_by_name().get("user-agent", "").lower()
        is_sdk = program.startswith(_SDKS)
        return self.since + _SDK_TIMEOUT if is_sdk and not self.request.is_stream else None

    @property
    def is_open(self) -> bool:
        """Whether nothing is decided yet."""
        return not self._decision.done()

    def release(self) -> None:
        """Send the document as it is on screen."""
        draft = self.draft
        self.recorder.record_release(draft.sha256)
        self.decide(Release(draft.data, draft.sha256))

    def drop(self, reason: str) -> None:
        """Refuse it; its client gets an error."""
        self._exchange.end(DroppedEnd(reason))
        self.decide(Drop(reason))

    def decide(self, decision: Decision) -> None:
        """Decide; raises a fault if it is decided already."""
        if not self.is_open:
            raise not_held(self.exchange)
        self._decision.set_result(decision)

    async def wait_for_decision(self, clock: Clock) -> Decision:
        """Wait until a user decides, or the rule's time is up. Cancelling this call means that the client has gone."""
        self._exchange.enter(ExchangePhase.HELD)
        self.recorder.record_hold(Held(self.phase))
        if self.rule.timeout_s is None:
            return await self._decision
        try:
            await wait_either(self._decision, clock.sleep(self.rule.timeout_s))
        except asyncio.CancelledError:
            self._decision.cancel()
            raise
        if self.is_open and self.rule.on_timeout == "drop":
            self.drop(f"no decision within {self.rule.timeout_s:g} s")
        elif self.is_open:
            self.release()
        return self._decision.result()


class HeldRequest(_Hold[Draft]):
    """A held request. Its edits can be kept as masks for later requests; undo removes a mask together with its edit.

    `kept` has the masks that were applied before it was held, and those that its own edits have made.
    """

    phase = "request"
    kept: KeptEdits

    @property
    def kept_ids(self) -> tuple[str, ...]:
        """The ids of the masks that its edits have made so far."""
        return tuple(self.kept.at(self.draft))

    @property
    def changes(self) -> tuple[SectionChange, ...]:
        """What a user changed in the conversation. Changes by masks are not included: they are made again on the next
        request."""
        return changes_between(self.kept.start, self.draft)

    def plan_edit(self, operation: HoldOperation, masks: tuple[Mask, ...], now: float) -> PlannedEdit:
        """The edit, and the masks that it makes or removes."""
        if isinstance(operation, KeepEdits):
            return self._plan_keeping(operation.scope, masks, now)
        before = self.draft
        made = {} if operation.keep is None else self._masks_for(operation, operation.keep, now)
        editing = self._editing.copy()
        after = editing.apply(operation)
        old = self.kept.at(before)
        if isinstance(operation, Undo | Redo):
            new = self.kept.at(after)
        else:
            new = {} if isinstance(operation, Reset) else self.kept.standing({**old, **made}, after)
        active = self.kept.masks_after(masks, old, new)
        for each in made.values():
            if each.mask in active:
                check_counts(before.first, each.mask, active, session=self.session, project=self.project)

        def commit() -> None:
            self._editing = editing
            self.kept.note(after, new)

        return PlannedEdit(after, active, commit)

    def _plan_keeping(self, scope: Keep, masks: tuple[Mask, ...], now: float) -> PlannedEdit:
        """Make masks of all edits so far. Each step of the history gets the masks of the edits up to it, so that undo
        removes only what it undoes."""
        draft, start = self.draft, self.kept.start
        old = self.kept.at(draft)
        keeper = self._keeper(self.kept.applied, scope)
        new = masks_by_id(keeper.between(start, draft), now)
        if not new and not old:
            hint = "Edit the request first, or choose keep before you edit: then each edit is kept as it is made."
            raise Fault(Code.INVALID_REQUEST, "there is no edit to keep yet", hint=hint, status=422)
        active = self.kept.masks_after(masks, old, new)
        check_repeats(draft, active, session=self.session, project=self.project)

        def commit() -> None:
            self.kept.note(draft, new)
            for step in self._editing.earlier:
                try:
                    self.kept.note(step, masks_by_id(keeper.between(start, step), now))
                except Fault:
                    continue  # this step contained something that cannot be kept; its earlier masks stay

        return PlannedEdit(draft, active, commit)

    def _masks_for(self, operation: AnyOperation, scope: Keep, now: float) -> Kept:
        """The mask that an edit should be kept as."""
        if isinstance(operation, Undo | Redo):
            raise _cannot_keep_fault()
        draft = self.draft
        keeper = self._keeper(self.kept.beneath(draft), scope)
        return masks_by_id([keeper.of_edit(draft, operation, draft.with_edit(operation))], now)

    def _keeper(self, masks: tuple[Mask, ...], scope: Keep) -> MaskMaker:
        """Makes masks of this scope in addition to `masks`. Raises a fault if the request names no session or
        project."""
        name = {"session": self.session, "project": self.project, "all": ""}[scope]
        if not name and scope != "all":
            hint = "Name it in the client's base URL, /s/NAME or /s/NAME@PROJECT, or keep the edit for all requests."
            message = f"this request says nothing of its {scope}"
            raise Fault(Code.INVALID_REQUEST, message, hint=hint, status=422)
        return keeper_beside(self.draft.first, masks, scope, session=self.session, project=self.project)

    def check(self, counter: RequestCounter) -> Validity:
        """The problems of the body on screen by the rules of the dialect and the model's limits."""
        draft, choice = self.draft, self.choice
        facts = facts_for(choice, self.request.headers)
        estimate = None if draft.request is None else counter.estimate(choice, draft.request)
        return check_draft(draft, facts=facts, estimate=estimate, is_vendor=choice.has_vendor_rules)


class HeldCalls(_Hold[CallsDraft]):
    """The held tool calls of a reply. Their edits cannot be kept for later replies."""

    phase = "tool_calls"

    def check(self, _counter: RequestCounter) -> Validity:
        """The calls that a client could not run."""
        return self.draft.validity


class HeldRaw(_Hold[RawDraft]):
    """A held raw request. Its edits cannot be kept, and a user cannot write its response."""

    phase = "request"
    can_be_answered = False

    def check(self, _counter: RequestCounter) -> Validity:
        """Always valid: nothing is known about what the provider accepts."""
        return self.draft.validity


Hold: TypeAlias = HeldRequest | HeldCalls | HeldRaw


def not_held(exchange: str) -> Fault:
    """The fault of a decision that is too late, or about an exchange that is not held."""
    hint = "It was sent, dropped or left by its client before; GET /api/holds lists what is held."
    return Fault(Code.INVALID_REQUEST, f"exchange {exchange!r} is not held", hint=hint, status=409)


def _cannot_keep_fault() -> Fault:
    message = "this cannot be kept for later requests"
    return Fault(Code.INVALID_REQUEST, message, hint="Leave keep out.", status=422)
