"""The registry of holds: what is held, what a user does to it, and the mode, rules and masks for later requests."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from sightline.editing.comparing import SectionChange, carry_over
from sightline.editing.masks import Mask, MaskOutcome, read_masks
from sightline.editing.operations import HoldOperation, Keep, KeepEdits, SetBody
from sightline.editing.response_chain import ChainLink, expand_request, previous_of
from sightline.editing.validity import Validity
from sightline.errors import Code, Fault
from sightline.exchange.interception.core.reply_writing import hand_written
from sightline.exchange.interception.core.rules import Interception, InterceptionRule, Mode, Phase, Rules
from sightline.exchange.interception.hold import Hold, Shutdown, UserReply, not_held
from sightline.exchange.interception.kept_edits import FinalBody, final_body
from sightline.exchange.interception.store import KeptInterception, MaskCount
from sightline.exchange.memory import Memory
from sightline.exchange.recording.records import Records
from sightline.exchange.request_counter import RequestCounter
from sightline.filters.predicate import FilterSubject
from sightline.model.exchange import Released
from sightline.model.json import Json
from sightline.model.request import Message
from sightline.store.entries import FactEntry
from sightline.wire.cache import BoundedCache

if TYPE_CHECKING:
    from sightline.exchange.remote_relay import RemoteHolds

_LOG = logging.getLogger(__name__)

MOST_OUTCOMES = 1000
"""For how many exchanges the outcomes of masks are kept, for the page."""

COUNTS_WRITTEN_AFTER = 5.0
"""Seconds after which the counts of masks are written, so that not every request writes the file. A crash loses the
counts of these seconds."""


class Holds:
    """The registry. While it `is_idle`, no request can be held or changed, and the hot path checks nothing else. While
    it `has_only_rules`, requests for which `allows` is True cannot be either.

    A change of mode, rules or masks is written to the file before it takes effect. Everything runs in one event loop,
    so exactly one of several decisions is the first. `interception` is the mode and the rules, a new object after each
    change; `masks` are the edits that are repeated on later requests. If `unattended` is given, no user can decide:
    requests that a rule would hold pass, and `unattended` is called.
    """

    def __init__(
        self,
        memory: Memory,
        now: Callable[[], float],
        kept: KeptInterception | None = None,
        unattended: Callable[[], None] | None = None,
    ) -> None:
        self.counter = RequestCounter(memory)
        self._now = now
        self._kept = kept
        self._unattended = unattended
        self._held: dict[str, Hold] = {}
        self._outcomes: BoundedCache[str, tuple[MaskOutcome, ...]] = BoundedCache(MOST_OUTCOMES)
        self.interception, self.masks, self._counts = (Interception(), (), {}) if kept is None else kept.read_all()
        self._is_closing = False
        self._is_needed = False
        self._writing: asyncio.TimerHandle | None = None
        self.is_idle = True
        self.has_only_rules = True
        self.on_change: Callable[[], None] | None = None
        """Called after each change of mode, rules or masks, before it is announced."""
        self._update_flags()

    # --- mode, rules and masks ---

    @property
    def mode(self) -> Mode:
        """One of off, next, every or rules."""
        return self.interception.mode

    @property
    def rules(self) -> tuple[InterceptionRule, ...]:
        """The active rules."""
        return self.interception.rules.rules

    def set_mode(self, mode: str) -> None:
        """Change the mode; existing holds stay."""
        self._change(self.interception.with_mode(mode), self.masks)

    def set_rules(self, value: Json) -> None:
        """Replace the rules, all of them or none; existing holds stay."""
        self._change(self.interception.with_rules(Rules.of(value)), self.masks)

    def set_masks(self, value: Json) -> None:
        """Replace the masks, all of them or none. A mask without a creation time gets the current one."""
        now = self._now()
        dated = (mask if mask.created else msgspec.structs.replace(mask, created=now) for mask in read_masks(value))
        self._change(self.interception, tuple(dated))

    def add_mask(self, value: Json) -> Mask:
        """Add a mask; it replaces the one with the same id. Raises a fault that says what is wrong with it."""
        (mask,) = read_masks([value])
        mask = msgspec.structs.replace(mask, created=self._now())
        self._change(self.interception, (*(each for each in self.masks if each.id != mask.id), mask))
        return mask

    def remove_mask(self, name: str) -> None:
        """Remove the mask with this id. Raises a fault if there is none."""
        if all(mask.id != name for mask in self.masks):
            hint = "GET /api/masks lists them with their ids."
            raise Fault(Code.USAGE, f"there is no mask {name[:80]!r}", hint=hint, status=404)
        self._change(self.interception, tuple(mask for mask in self.masks if mask.id != name))

    def count_of(self, mask: Mask) -> MaskCount:
        """How many times a mask was applied, and how many times it was not."""
        return self._counts.get(mask.id, MaskCount())

    def _change(self, interception: Interception, masks: tuple[Mask, ...]) -> None:
        ids = {mask.id for mask in masks}
        counts = {name: count for name, count in self._counts.items() if name in ids}
        if self._kept is not None:
            self._kept.write(interception, masks, counts)
        self.interception, self.masks, self._counts = interception, masks, counts
        self._update_flags()

    def _update_flags(self) -> None:
        self.has_only_rules = not self.masks and not self._is_needed
        self.is_idle = self.interception.is_idle and self.has_only_rules
        if self.on_change is not None:
            self.on_change()

    @property
    def is_attended(self) -> bool:
        """Whether a user can decide about holds."""
        return self._unattended is None

    def stay_ready(self) -> None:
        """From now on, inspect every request: something other than rules may hold it."""
        self._is_needed = True
        self._update_flags()

    def decide(self, subject: FilterSubject, phase: Phase) -> InterceptionRule | None:
        """The rule that decides about a request or its tool calls; None if there is none. A one-time rule is used up by
        this."""
        rule, after = self.interception.decide(subject, phase, now=self._now())
        if rule is not None and rule.action == "hold" and self._unattended is not None:
            self._unattended()  # this does not use up a one-time rule
            return None
        if after is not self.interception:
            self._change_best_effort(after, self.masks)  # no client is refused because the file cannot be written
        return rule

    def allows(self, subject: FilterSubject) -> bool:
        """Whether the mode and the rules let this request, and the tool calls of its reply, pass. This uses up no
        rule."""
        rule, after = self.interception.decide(subject, "request", now=self._now())
        is_let = rule is None or (rule.action == "pass" and after is self.interception)
        return is_let and not self.may_want_calls(subject)

    def _change_best_effort(self, interception: Interception, masks: tuple[Mask, ...]) -> None:
        """Make a change; if it cannot be written, it is active until the program ends."""
        if (interception, masks) == (self.interception, self.masks):
            return
        try:
            self._change(interception, masks)
        except Fault as fault:
            _LOG.error("what is intercepted could not be kept: %s", fault.message)
            self.interception, self.masks = interception, masks
            self._update_flags()

    def may_want_calls(self, subject: FilterSubject) -> bool:
        """Whether the tool calls of the reply to this request may be held or dropped."""
        drops_calls = any(rule.phase == "tool_calls" and rule.action == "drop" for rule in self.rules)
        if self._unattended is not None and not drops_calls:
            return False  # the reply can stream
        return self.interception.may_want_calls(subject, now=self._now())

    def final_body(self, body: bytes, dialect: str, model: str, *, session: str, masks: bool = True) -> FinalBody:
        """The body that is sent in place of this one, with the active masks; unchanged without `masks`. This has no
        side effects: previews use it too."""
        return final_body(body, dialect, model, self.masks if masks else (), session=session)

    def note_outcomes(self, exchange: str, outcomes: tuple[MaskOutcome, ...]) -> None:
        """Store and count the outcomes of the masks on a request that is sent."""
        if not outcomes:
            return
        self._outcomes.put(exchange, outcomes)
        for each in outcomes:
            count = self._counts.get(each.mask, MaskCount())
            if each.outcome == "applied":
                self._counts[each.mask] = MaskCount(count.applied + 1, count.missed, exchange)
            else:
                missed = MaskCount(count.applied, count.missed + 1, count.last_exchange, count.misses + 1)
                self._counts[each.mask] = missed
        if self._writing is None and self._kept is not None:
            self._writing = asyncio.get_running_loop().call_later(COUNTS_WRITTEN_AFTER, self._write_counts)

    def _write_counts(self) -> None:
        self._writing = None
        if self._kept is None:
            return
        try:
            self._kept.write(self.interception, self.masks, self._counts)
        except Fault as fault:
            _LOG.error("the counts of masks could not be kept: %s", fault.message)

    def outcomes(self, exchange: str) -> tuple[MaskOutcome, ...]:
        """The outcomes of the masks on a request, if it was sent since the program started."""
        return self._outcomes.get(exchange) or ()

    # --- holds ---

    def add(self, hold: Hold) -> None:
        """Add a hold after all others. While the server shuts down, it is decided at once."""
        self._held[hold.exchange] = hold
        if self._is_closing:
            hold.decide(Shutdown())

    def forget(self, hold: Hold) -> None:
        """Remove a hold that has ended."""
        self._held.pop(hold.exchange, None)

    @property
    def waiting(self) -> tuple[Hold, ...]:
        """The undecided holds, in order of arrival."""
        return tuple(hold for hold in self._held.values() if hold.is_open)

    def find(self, exchange: str) -> Hold | None:
        """The hold of an exchange; None if it is not held."""
        hold = self._held.get(exchange)
        return hold if hold is not None and hold.is_open else None

    def hold_of(self, exchange: str) -> Hold:
        """The hold of an exchange. Raises a fault if it is not held."""
        hold = self.find(exchange)
        if hold is None:
            raise not_held(exchange)
        return hold

    def validity(self, hold: Hold) -> Validity:
        """The problems of the document on screen; it cannot be released with an error."""
        return hold.check(self.counter)

    # --- actions of a user ---

    def edit(self, exchange: str, operation: HoldOperation, *, word: str = "") -> Hold:
        """Change the document; the new body is recorded when this returns. A fault leaves everything as it was.

        `word` is the name of the edit in the record, by default the operation's own. The masks that the edit makes or
        removes have been written to the file by then, too.
        """
        hold = self.hold_of(exchange)
        before, masks = hold.draft, self.masks
        plan = hold.plan_edit(operation, masks, self._now())
        if plan.masks != masks:
            self._change(self.interception, plan.masks)
        if plan.draft.sha256 != before.sha256:
            name, of_reply = word or str(type(operation).__struct_config__.tag), hold.phase == "tool_calls"
            try:
                hold.recorder.record_edit(name, before.sha256, plan.draft.sha256, plan.draft.data, of_reply=of_reply)
            except Fault:
                self._change_best_effort(self.interception, masks)
                raise
        plan.commit()
        return hold

    def release(self, exchange: str, sha256: str | None, keep: Keep | None = None) -> None:
        """Send exactly what is on screen, which `sha256` identifies. With `keep`, its edits are repeated on later
        requests."""
        if not sha256:
            hint = "Give the body_sha256 of what is on screen."
            raise Fault(Code.INVALID_REQUEST, "nothing says which body is to be sent", hint=hint, status=422)
        hold = self.hold_of(exchange)
        draft = hold.draft
        if draft.sha256 != sha256:
            hint = "Look at it again: it was changed since."
            raise Fault(Code.INVALID_REQUEST, "this is not the current body", hint=hint, status=409)
        if not (validity := self.validity(hold)).ok:
            wrong = next(each for each in validity.problems if each.severity == "error")
            hint = "Correct it, or undo what caused it; it is still held."
            raise Fault(Code.INVALID_REQUEST, wrong.message, hint=hint, pointer=wrong.pointer, status=422)
        if keep is not None:
            self.edit(exchange, KeepEdits(scope=keep))
        hold.release()

    def drop(self, exchange: str, reason: str = "") -> None:
        """Refuse the request; its client gets an error in its dialect."""
        self.hold_of(exchange).drop(reason or "a user dropped it")

    def answer(self, exchange: str, reply: Json) -> None:
        """Answer the request with this reply, in the form of a folded one; nothing is sent to the provider."""
        hold = self.hold_of(exchange)
        if not hold.can_be_answered:
            hint = "Release it, or drop it."
            message = "a request that is forwarded unchanged cannot be answered by hand"
            raise Fault(Code.INVALID_REQUEST, message, hint=hint, status=422)
        written = hand_written(reply, model=hold.request.model, name=exchange, created=int(self._now()))
        hold.recorder.record_reply(written)
        hold.decide(UserReply(written))

    def close(self) -> None:
        """The server shuts down: decide every hold, and all that are added from now on."""
        self._is_closing = True
        if self._writing is not None:
            self._writing.cancel()
            self._write_counts()
        for hold in self.waiting:
            hold.decide(Shutdown())


MOST_LINKS: Final = 500


class Expand(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="op", tag="expand"):
    """The edit that replaces the reference to a response stored at the provider with the whole conversation."""


async def expand(holds: Holds, records: Records, exchange: str) -> Hold:
    """Apply that edit to a held request, as one step to undo. Raises a fault that says which response is not
    recorded."""
    hold = holds.hold_of(exchange)
    if hold.phase == "tool_calls":
        hint = "Change the arguments, or delete the call."
        raise Fault(Code.INVALID_REQUEST, "tool calls continue nothing", hint=hint, status=422)
    chain = await _chain(records, exchange, previous_of(hold.draft.data))
    # While the record was read, a user may have edited or released the request.
    body = expand_request(holds.hold_of(exchange).draft.data, chain)
    return holds.edit(exchange, SetBody(body=body.decode()), word="expand")


async def _chain(records: Records, exchange: str, reference: str) -> list[ChainLink]:
    """The exchanges that led to this one, the oldest first, as far as they are recorded."""
    chain: list[ChainLink] = []
    while reference and len(chain) < MOST_LINKS:
        before = await records.previous(exchange)
        if before is None:
            break
        chain.append(ChainLink(before.sent, before.reply_body))
        exchange, reference = before.id, previous_of(before.sent)
    return chain[::-1]


# --- changes to released requests ---

Changes: TypeAlias = tuple[tuple[SectionChange, ...], ...]
"""The changes to several requests in order: each was made to the result of the one before."""


def changes_while_held(holds: "Holds | RemoteHolds", entry: FactEntry) -> Changes:
    """What a user changed in a request, if this fact says that it was released; empty otherwise."""
    if not isinstance(entry.fact, Released):
        return ()
    hold = holds.find(entry.exchange)
    return () if hold is None or not hold.changes else (hold.changes,)


def apply_changes(messages: tuple[Message, ...], changes: Changes) -> tuple[Message, ...]:
    """The messages after the changes to all of these requests."""
    for each in changes:
        messages = carry_over(messages, each)
    return messages
