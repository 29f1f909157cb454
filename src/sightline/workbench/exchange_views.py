"""One exchange as the page shows it: its view, its reply, and its differences from another request."""

import base64
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import msgspec

from sightline.dialects.endpoint import has_readable_reply, read_raw_reply
from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.editing.comparing import Compared, Comparison, Side, compare_drafts
from sightline.editing.draft import Draft
from sightline.editing.review import TokenBudget
from sightline.errors import Code, Fault
from sightline.exchange.interception.core.drafts import CallsDraft, RawDraft
from sightline.exchange.interception.hold import Hold
from sightline.exchange.interception.holds import Holds
from sightline.exchange.interception.viewer import DocumentState, Viewer
from sightline.exchange.recording.exchange_record import RecordedExchange, hashes_of
from sightline.exchange.recording.records import Records
from sightline.model.events import StreamEvent
from sightline.model.exchange import (
    Answered,
    AttemptStarted,
    Edited,
    ExchangeCancelled,
    ExchangeFailed,
    Fact,
    FrameArrived,
    Held,
    Received,
    Released,
    Translated,
)
from sightline.model.fold import fold
from sightline.model.json import JsonObject
from sightline.model.reply import Usage, reply_json
from sightline.store.digest import reply_dialect
from sightline.store.entries import FactEntry, FramesEntry
from sightline.store.summary import Summary, summary_of
from sightline.web.bodies import Query
from sightline.web.replies import FaultShown
from sightline.wire.jsontext import decode, encode
from sightline.workbench import shapes

ALWAYS = ("id", "state", "dialect", "provider", "model", "session", "at")


def line(summary: Summary) -> JsonObject:
    """One exchange in a list; its status is null until the client has one."""
    always: JsonObject = {name: getattr(summary, name) for name in ALWAYS}
    always["status"] = summary.status or None
    rest: JsonObject = msgspec.to_builtins(summary)
    return rest | always


def view(exchange: RecordedExchange, *, has_frames: bool = True) -> JsonObject:
    """One exchange with all its facts; with `has_frames`, also the bytes of its answer."""
    summary, end, received, attempt = exchange.summary, exchange.end, exchange.received, exchange.attempt
    happened = [entry.fact for entry in exchange.facts]
    arrived, sha256 = hashes_of(exchange.facts)
    passed = None if "request" not in exchange.passed else exchange.passed["request"].sha256
    details = shapes.ExchangeDetails(
        losses=exchange.losses,
        additions=exchange.additions,
        hashes=shapes.Hashes(
            received.sha256 or passed,
            (attempt.sha256 if attempt else "") or passed,
            (end.sha256 if end else "") or None,
        ),
        facts=tuple(fact_shown(entry, has_data=has_frames) for entry in exchange.facts),
        thread=shapes.Thread(summary.previous, summary.title, summary.is_side),
        fault=_fault(end) if isinstance(end, ExchangeFailed) else None,
        reason=next((fact.reason for fact in happened if isinstance(fact, ExchangeCancelled)), None),
        transport=received.transport or None,
        raw=_raw_shown(exchange) if exchange.is_raw else None,
    )
    shown: JsonObject = line(summary) | {
        "state": summary_of(summary.id, exchange.facts, _no_prices).state,
        "body_sha256": sha256,
        "dirty": sha256 != (original_sha256(happened) or arrived),
        "tokens": _plain(tokens(exchange.usage)),
    }
    return shown | _plain(details)


def _no_prices(_provider: str, _model: str) -> None:
    """A price list without prices, for a summary of which only the state is read. It is one function for all summaries,
    because found prices are cached by their list."""


def _raw_shown(exchange: RecordedExchange) -> shapes.RawShown:
    """The bodies of a raw exchange."""
    received = exchange.received
    passed = {
        of: msgspec.convert(fact, shapes.RawBodyShown, from_attributes=True) for of, fact in exchange.passed.items()
    }
    is_read = has_readable_reply(received.path)
    return shapes.RawShown(received.method, received.path, passed.get("request"), passed.get("reply"), is_read)


def tokens(usage: Usage | None, budget: TokenBudget | None = None) -> shapes.TokensShown:
    """What the provider counted or an estimate of it; with `budget`, also the estimate made before sending."""
    counted = msgspec.convert(usage or Usage(), shapes.TokensShown, from_attributes=True)
    if budget is None:
        return counted
    estimate = budget.estimate
    return msgspec.structs.replace(
        counted,
        estimate=estimate.tokens,
        low=estimate.low,
        high=estimate.high,
        how=estimate.how,
        window=budget.window,
        reserve=budget.reserve,
        categories=budget.categories,
    )


def fact_shown(entry: FactEntry, *, has_data: bool = True) -> JsonObject:
    """A fact with its number and time. The bytes of a frame are in base64, because they may end inside a character;
    they can be left out."""
    fact = entry.fact
    shown: JsonObject = {"n": entry.n, "at": entry.at}
    if isinstance(fact, FrameArrived):
        shown |= {"kind": "frame", "after": fact.after, "size": len(fact.data)}
        return shown | {"data": base64.b64encode(fact.data).decode()} if has_data else shown
    shown |= _plain(fact)
    if isinstance(fact, ExchangeFailed):
        shown["fault"] = _plain(_fault(fact))
    return shown


def write_fact(entry: FactEntry) -> bytes:
    """A fact as JSON, like `fact_shown`, with its exchange first. Several are written for each request while a page is
    open."""
    if not isinstance(entry.fact, FrameArrived | ExchangeFailed):
        try:
            about = encode({"exchange": entry.exchange, "n": entry.n, "at": entry.at})
            return about[:-1] + b"," + msgspec.json.encode(entry.fact)[1:]
        except UnicodeEncodeError:
            pass  # a lone surrogate, which JSON can escape
    return encode({"exchange": entry.exchange, **fact_shown(entry)})


def write_frames(entry: FramesEntry) -> bytes:
    """Consecutive frames as JSON, with the time and the size of each. Their data is part of the reply, which a page
    requests when it shows it; sending all of it to every page would cost more than relaying it."""
    sizes = list(map(len, entry.data))
    return msgspec.json.encode(
        {
            "exchange": entry.exchange,
            "n": entry.n,
            "kind": "frames",
            "at": entry.at,
            "after": entry.after,
            "size": sizes,
        }
    )


def original_sha256(facts: list[Fact]) -> str:
    """The hash of the body before any edit or mask: the client's, or its translation."""
    named = ""
    for fact in facts:
        match fact:
            case Received() | Translated():
                named = fact.sha256 or named
            case Edited() | Released() | AttemptStarted():
                return named
            case _:
                pass
    return named


def _fault(fact: ExchangeFailed) -> FaultShown:
    return FaultShown(fact.code, fact.message, fact.hint)


def _plain(value: object) -> JsonObject:
    plain: JsonObject = msgspec.to_builtins(value)
    return plain


Shown: TypeAlias = dict[str, object]
"""The fields of a view, each of them JSON or a value that is written as JSON."""

MOST_RAW = 1 << 20
"""How many bytes of a raw reply are shown as text; `…/body?of=reply` has all of it."""


class Showing:
    """Shows held exchanges in their current state, and all others as they were sent."""

    def __init__(self, holds: Holds, records: Records, viewing: Viewer) -> None:
        self._holds = holds
        self._records = records
        self._viewing = viewing

    # --- the view ---

    async def view(self, exchange: str, query: Query | None = None) -> Shown:
        """Everything about one exchange; with `frames=0`, without the bytes of its answer, and with `texts=once`,
        without the texts of sections that equal those of their parts."""
        shown = await self._view(exchange, has_frames=query is None or query.text("frames") != "0")
        return shown if query is None or query.text("texts") != "once" else _with_texts_once(shown)

    async def _view(self, exchange: str, *, has_frames: bool) -> Shown:
        recorded = await self._read_facts(exchange)
        shown: Shown = {**view(recorded, has_frames=has_frames)}
        shown["replays"] = list(await self._records.replays(exchange))
        hold = self._holds.find(exchange)
        if hold is not None:
            look = await self._viewing.view_hold(hold)
            return shown | {"provider": hold.choice.provider_name} | _fields(self.hold_change(hold, look))
        sent = None if recorded.is_raw else await self._load_sent(recorded)
        if sent is None:
            return shown | {"sections": [], "validity": {"ok": True, "problems": []}}
        look = await self._viewing.view_recorded(sent, _reply_dialect(sent))
        return shown | {
            "can_undo": False,
            "can_redo": False,
            "sections": look.sections,
            "validity": look.validity,
            "tokens": tokens(recorded.usage, look.budget),
            "edit_cost": look.cost,
            "masks": self._holds.outcomes(exchange),
        }

    def hold_change(self, hold: Hold, look: DocumentState, before: DocumentState | None = None) -> shapes.Changed:
        """The view of a hold; with `before`, only what has changed since."""
        order = None if before is None else tuple(section.id for section in look.sections)
        return shapes.Changed(
            id=hold.exchange,
            state="held",
            body_sha256=look.draft.sha256,
            dirty=look.draft.is_dirty,
            can_undo=hold.can_undo,
            can_redo=hold.can_redo,
            validity=look.validity,
            tokens=tokens(None, look.budget),
            sections=look.sections if before is None else look.since(before),
            order=order,
            hold=shapes.HoldShown(
                phase=hold.phase,
                since=hold.since,
                deadline=hold.deadline,
                on_timeout=hold.rule.on_timeout,
                client_deadline=hold.client_deadline,
                queue=tuple(each.exchange for each in self._holds.waiting),
                reason=hold.reason,
            ),
            edit_cost=look.cost,
            masks=hold.masks or self._holds.outcomes(hold.exchange),
            kept=hold.kept_ids,
        )

    async def _read_facts(self, exchange: str) -> RecordedExchange:
        """The exchange without its bodies."""
        facts = await self._records.facts(exchange)
        return RecordedExchange(await self._records.summary(exchange, facts), tuple(facts), b"", b"")

    async def _load_sent(self, recorded: RecordedExchange) -> RecordedExchange | None:
        """The exchange with the body that was sent, or would have been; None if it is no longer stored."""
        _, sha256 = hashes_of(recorded.facts)
        body = await self._records.store.body(recorded.id, sha256)
        return None if body is None else replace(recorded, sent=body)

    # --- the reply ---

    async def reply(self, exchange: str) -> shapes.ReplyShown:
        """The reply so far as one value; the user's version if there is one."""
        came = await self._read_facts(exchange)
        raw = came.reply_body
        text = raw[:MOST_RAW].decode("utf-8", "replace")
        events = read_raw_reply(came.received.path, raw) if came.is_raw else _answer_events(came)
        written = [entry.fact.sha256 for entry in came.facts if isinstance(entry.fact, Answered)]
        by_hand = await self._records.store.body(exchange, written[-1]) if written else None
        if by_hand is not None:
            value = decode(by_hand)
            return shapes.ReplyShown(value if isinstance(value, dict) else None, text, len(events), by_hand=True)
        return shapes.ReplyShown(reply_json(fold(events, came.spoken)) if events else None, text, len(events))

    # --- differences ---

    async def diff(self, exchange: str, query: Query) -> shapes.Diff:
        """Compare an exchange section by section with its original request (`original`), with the request before it
        (`previous`), or with another exchange."""
        against = query.text("against") or "original"
        hold = self._holds.find(exchange)
        look = await (self._viewing.view_hold(hold) if hold is not None else self._look_at_record(exchange))
        draft = look.draft
        if isinstance(draft, CallsDraft):
            if against != "original":
                hint = "Compare them with the original; the request itself can be compared once they are released."
                raise Fault(Code.INVALID_REQUEST, "these are the tool calls of a reply", hint=hint, status=422)
            return shapes.Diff(against, _calls(draft), None)
        if isinstance(draft, RawDraft):
            raise _not_compared()
        before = await self._before(exchange, against, draft, hold)
        prefix = look.cost if look.follows and against in ("original", "previous") else None
        return shapes.Diff(against, tuple(compare_drafts(before, draft)), prefix)

    async def conversation(self, exchange: str) -> shapes.ConversationShown:
        """The request that was sent, section by section, even while the tool calls of its reply are held."""
        return shapes.ConversationShown((await self._look_at_record(exchange)).sections)

    async def _look_at_record(self, exchange: str) -> DocumentState:
        sent = await self._load_sent(await self._read_facts(exchange))
        if sent is None:
            raise _body_missing(exchange)
        sent.refuse_raw("shown section by section")
        return await self._viewing.view_recorded(sent, _reply_dialect(sent))

    async def _before(self, exchange: str, against: str, draft: Draft, hold: Hold | None) -> Draft:
        if against == "original":
            return draft.first if hold is not None else await self._original(exchange, draft)
        if against == "previous":
            found = await self._records.previous(exchange)
            if found is None:
                hint = "Compare it with the original, or with another exchange."
                raise Fault(Code.USAGE, "no earlier request of this conversation is recorded", hint=hint, status=404)
            return Draft.of(found.sent, found.spoken, found.model)
        other = (await self._look_at_record(against)).draft
        assert isinstance(other, Draft)  # only a hold can be something else
        return other

    async def _original(self, exchange: str, draft: Draft) -> Draft:
        facts = [entry.fact for entry in await self._records.facts(exchange)]
        body = await self._records.store.body(exchange, original_sha256(facts))
        if body is None:
            raise _body_missing(exchange)
        return Draft.of(body, draft.dialect, draft.model)


def _reply_dialect(exchange: RecordedExchange) -> str:
    return reply_dialect([entry.fact for entry in exchange.facts])


def _answer_events(came: RecordedExchange) -> list[StreamEvent]:
    """The events of an answer. One without an end is still arriving, and is not treated as aborted."""
    is_whole = any(isinstance(entry.fact, Held) and entry.fact.phase == "tool_calls" for entry in came.facts)
    if is_whole or came.end is not None:
        return came.events()
    decoder = ReplyDecoder(dialect(came.spoken))
    return [event for frame in came.frames for event in decoder.feed(frame.data)]


def _calls(draft: CallsDraft) -> tuple[Compared, ...]:
    """The tool calls as removed, changed or unchanged."""
    lines: list[Compared] = []
    for old, new in zip(draft.first.sections, draft.sections, strict=True):
        before = Side(old.id, old.text, pointer=old.pointer)
        after = None if new.deleted else Side(new.id, new.text, pointer=new.pointer)
        kept: Comparison = "same" if new.text == old.text else "changed"
        lines.append(Compared("removed" if after is None else kept, new.label, new.kind, before, after))
    return tuple(lines)


def _with_texts_once(shown: Shown) -> Shown:
    """The view without the texts of sections that are the joined texts of their parts; `joined` names these sections.
    For a request of 5 MB that is half the bytes, and the page parses it in half the time."""
    sections = shown["sections"]
    assert isinstance(sections, Sequence)
    joined = {each.id for each in sections if each.text and each.text == "".join([part.text for part in each.parts])}
    shorter = [msgspec.structs.replace(each, text="") if each.id in joined else each for each in sections]
    return shown | {"sections": shorter, "joined": sorted(joined)}


def _fields(value: msgspec.Struct) -> Shown:
    """The fields of a value that are not None."""
    return {name: each for name, each in msgspec.structs.asdict(value).items() if each is not None}


def _not_compared() -> Fault:
    hint = "Its bodies are shown as they are."
    message = "a request that is forwarded unchanged has no sections to compare"
    return Fault(Code.INVALID_REQUEST, message, hint=hint, status=422)


def _body_missing(exchange: str) -> Fault:
    hint = "Retention has removed it; its facts are still stored."
    return Fault(Code.USAGE, f"the record no longer holds the body of {exchange}", hint=hint, status=404)
