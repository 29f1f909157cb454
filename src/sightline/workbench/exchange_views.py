"""One exchange as the page opens it: its view, its reply, and what differs from another one."""

from typing import TypeAlias
from urllib.parse import parse_qs

import msgspec

from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.editing.comparing import Compared, Comparison, Side, compare_drafts
from sightline.editing.draft import Draft
from sightline.errors import Code, Fault
from sightline.exchange.interception.core.calls_draft import CallsDraft
from sightline.exchange.interception.hold import Hold
from sightline.exchange.interception.holds import Holds
from sightline.exchange.interception.viewer import DocumentState, Viewer
from sightline.exchange.recording.exchange_record import RecordedExchange
from sightline.exchange.recording.records import Records
from sightline.model.events import StreamEvent
from sightline.model.exchange import Answered, Held
from sightline.model.fold import fold
from sightline.model.reply import reply_json
from sightline.store.entries import FactEntry
from sightline.store.pending_reading import reply_dialect
from sightline.store.summary import Summary
from sightline.web.bodies import one
from sightline.wire.jsontext import decode
from sightline.workbench.shapes import Changed, Diff, HoldShown, ReplyShown
from sightline.workbench.views import body_sha256, original_sha256, reply_of, tokens, view

Shown: TypeAlias = dict[str, object]
"""The fields of a view, each of them JSON or a value that is written as such."""

MOST_RAW = 1 << 20
"""So much of a raw reply is shown as text; `…/body?of=reply` has all of it."""


class Showing:
    """Shows what is held as it stands, and everything else as it was sent."""

    def __init__(self, holds: Holds, records: Records, viewing: Viewer) -> None:
        self._holds = holds
        self._records = records
        self._viewing = viewing

    # --- the view ---

    async def view(self, exchange: str, query: str = "") -> Shown:
        """All that is known of one; with `frames=0` without the bytes of its answer."""
        has_frames = one(parse_qs(query), "frames") != "0"
        facts = await self._records.facts(exchange)
        summary = await self._records.summary(exchange, facts)
        shown: Shown = {**view(summary, facts, has_frames=has_frames)}
        shown["replays"] = list(await self._records.replays(exchange))
        hold = self._holds.find(exchange)
        if hold is not None:
            look = await self._viewing.view_hold(hold)
            return shown | {"provider": hold.choice.provider_name} | _fields(self.hold_change(hold, look))
        sent = await self._sent_body(summary, facts)
        if sent is None:
            return shown | {"sections": [], "validity": {"ok": True, "problems": []}}
        look = await self._viewing.view_recorded(sent, reply_dialect([noted.fact for noted in facts]))
        return shown | self._over(look, facts)

    def hold_change(self, hold: Hold, look: DocumentState, before: DocumentState | None = None) -> Changed:
        """What is on screen of a hold; since `before`, only what has changed."""
        order = None if before is None else tuple(section.id for section in look.sections)
        return Changed(
            id=hold.exchange,
            state="held",
            body_sha256=look.draft.sha256,
            dirty=look.draft.is_dirty,
            can_undo=hold.can_undo,
            can_redo=hold.can_redo,
            validity=look.validity,
            tokens=tokens([], look.budget),
            sections=look.sections if before is None else look.since(before),
            order=order,
            hold=HoldShown(
                phase=hold.phase,
                since=hold.since,
                deadline=hold.deadline,
                on_timeout=hold.on_timeout,
                client_deadline=hold.client_deadline,
                queue=tuple(each.exchange for each in self._holds.waiting),
            ),
            edit_cost=look.cost,
            masks=hold.masks or self._holds.outcomes(hold.exchange),
            kept=hold.kept_ids,
        )

    def _over(self, look: DocumentState, facts: list[FactEntry]) -> Shown:
        counted = tokens([noted.fact for noted in facts], look.budget)
        return {
            "can_undo": False,
            "can_redo": False,
            "sections": look.sections,
            "validity": look.validity,
            "tokens": counted,
            "edit_cost": look.cost,
            "masks": self._holds.outcomes(facts[0].exchange),
        }

    async def _sent_body(self, summary: Summary, facts: list[FactEntry]) -> RecordedExchange | None:
        """The exchange with the body that was sent, or would have been; None where that is gone."""
        body = await self._records.store.body(body_sha256([noted.fact for noted in facts]))
        return None if body is None else RecordedExchange(summary, tuple(facts), b"", body)

    # --- the reply ---

    async def reply(self, exchange: str) -> ReplyShown:
        """What came back as far as it has come, folded; what a person made of it where somebody did."""
        facts = await self._records.facts(exchange)
        raw = reply_of(facts)
        text = raw[:MOST_RAW].decode("utf-8", "replace")
        came = RecordedExchange(await self._records.summary(exchange, facts), tuple(facts), b"", b"")
        events = _answer_events(came)
        written = [noted.fact.sha256 for noted in facts if isinstance(noted.fact, Answered)]
        by_hand = await self._records.store.body(written[-1]) if written else None
        if by_hand is not None:
            value = decode(by_hand)
            return ReplyShown(value if isinstance(value, dict) else None, text, len(events), by_hand=True)
        return ReplyShown(reply_json(fold(events, came.spoken)) if events else None, text, len(events))

    # --- differences ---

    async def diff(self, exchange: str, query: str) -> Diff:
        """Section by section against what came (`original`), the request before it (`previous`), or another one."""
        against = one(parse_qs(query), "against") or "original"
        hold = self._holds.find(exchange)
        look = await (self._viewing.view_hold(hold) if hold is not None else self._recorded_look(exchange))
        draft = look.draft
        if isinstance(draft, CallsDraft):
            if against != "original":
                hint = "Compare them with the original; the request itself can be compared once they are released."
                raise Fault(Code.INVALID_REQUEST, "these are the tool calls of a reply", hint=hint, status=422)
            return Diff(against, _calls(draft), None)
        before = await self._before(exchange, against, draft, hold)
        prefix = look.cost if look.follows and against in ("original", "previous") else None
        return Diff(against, tuple(compare_drafts(before, draft)), prefix)

    async def _recorded_look(self, exchange: str) -> DocumentState:
        facts = await self._records.facts(exchange)
        sent = await self._sent_body(await self._records.summary(exchange, facts), facts)
        if sent is None:
            raise _body_missing(exchange)
        return await self._viewing.view_recorded(sent, reply_dialect([noted.fact for noted in facts]))

    async def _before(self, exchange: str, against: str, draft: Draft, hold: Hold | None) -> Draft:
        if against == "original":
            return draft.first if hold is not None else await self._original(exchange, draft)
        if against == "previous":
            found = await self._records.previous(exchange)
            if found is None:
                hint = "Compare it with the original, or with another exchange."
                raise Fault(Code.USAGE, "no earlier request of this conversation is on record", hint=hint, status=404)
            return Draft.of(found.sent, found.spoken, found.model)
        other = (await self._recorded_look(against)).draft
        assert isinstance(other, Draft)  # only what is held can be something else
        return other

    async def _original(self, exchange: str, draft: Draft) -> Draft:
        facts = [noted.fact for noted in await self._records.facts(exchange)]
        body = await self._records.store.body(original_sha256(facts))
        if body is None:
            raise _body_missing(exchange)
        return Draft.of(body, draft.dialect, draft.model)


def _answer_events(came: RecordedExchange) -> list[StreamEvent]:
    """What an answer tells. One without an end has not broken off: the rest has not come yet."""
    is_whole = any(isinstance(noted.fact, Held) and noted.fact.phase == "tool_calls" for noted in came.facts)
    if is_whole or came.end is not None:
        return came.events()
    hearing = ReplyDecoder(dialect(came.spoken))
    return [event for frame in came.frames for event in hearing.feed(frame.data)]


def _calls(draft: CallsDraft) -> tuple[Compared, ...]:
    """Calls that were taken out, changed, or left as they came."""
    lines: list[Compared] = []
    for old, new in zip(draft.first.sections, draft.sections, strict=True):
        before = Side(old.id, old.text, pointer=old.pointer)
        after = None if new.deleted else Side(new.id, new.text, pointer=new.pointer)
        kept: Comparison = "same" if new.text == old.text else "changed"
        lines.append(Compared("removed" if after is None else kept, new.label, new.kind, before, after))
    return tuple(lines)


def _fields(value: msgspec.Struct) -> Shown:
    """The fields of a value, each as it is; what nobody has said is left out."""
    return {name: each for name, each in msgspec.structs.asdict(value).items() if each is not None}


def _body_missing(exchange: str) -> Fault:
    hint = "Retention has taken it; its facts are still there."
    return Fault(Code.USAGE, f"the record no longer holds the body of {exchange}", hint=hint, status=404)
