"""The record over the API: lists and bodies of exchanges, search results in them, replays of recorded requests,
documents to edit, and forgetting."""

import asyncio
import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import fields

from sightline.dialects.registry import dialect, find_dialect, names
from sightline.dialects.translate import translate_request
from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.engine import AGENT, path_of
from sightline.exchange.hub import Hub
from sightline.exchange.interception.holds import Holds
from sightline.exchange.recording.exchange_record import RecordedExchange, hashes_of
from sightline.exchange.recording.records import (
    EraseChats,
    ForgetResult,
    Records,
    Selection,
    forget_exchanges,
    read_selection,
    read_summaries,
)
from sightline.exchange.resend import Resender
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import completions, parse
from sightline.filters.predicate import find_word, sought_words
from sightline.model.exchange import RAW_HTTP, FrameArrived, Received
from sightline.model.json import JsonObject
from sightline.store.digest import digest_of, words_of
from sightline.store.summary import FIELDS, Summary
from sightline.web import replies
from sightline.web.asgi import Receive, WebResponse
from sightline.web.bodies import Query, read_body
from sightline.web.filter_help import FilterShown, cursor, error_in, offer
from sightline.wire.jsontext import decode
from sightline.workbench.costs import list_filter
from sightline.workbench.exchange_views import line, original_sha256

MOST, USUAL = 500, 100
_BODIES = "of is sent, received, original, reply or held."


class Exchanges:
    """Reads the record. Every response includes all that was recorded before the call."""

    def __init__(self, records: Records, now: Callable[[], float], holds: Holds) -> None:
        self._records = records
        self._now = now
        self._holds = holds

    async def newest(self, count: int) -> list[Summary]:
        await self._records.store.settle()
        return await self._records.store.find(parse(""), now=self._now(), limit=count)

    async def list_exchanges(self, query: Query) -> JsonObject:
        """The exchanges that match a filter, newest first, or in the order that `sort` names: `cost` is ascending,
        `-cost` descending."""
        wanted = list_filter(query)
        limit, before, sort = _limit(query.text("limit")), query.text("before"), query.text("sort")
        store = self._records.store
        await store.settle()
        if sort:
            every = [summary async for summary in read_summaries(store, wanted, self._now())]
            found = sort_lines(every, sort, before=before, limit=limit)
        else:
            found = await store.find(wanted, now=self._now(), before=before, limit=limit)
        return {"exchanges": [line(summary) for summary in found]}

    async def snippets(self, query: Query) -> "SnippetsShown":
        """The words that a filter looks for, and where they first occur in each of these exchanges."""
        words = sought_words(parse(query.text("filter")))
        wanted = [each for each in query.text("ids").split(",") if each]
        if len(wanted) > MOST_SNIPPETS:
            hint = f"Name up to {MOST_SNIPPETS} exchanges with commas: ?ids=x_1,x_2."
            raise Fault(Code.INVALID_REQUEST, f"{len(wanted)} exchanges were named", hint=hint, status=400)
        found: list[Snippet] = []
        for exchange in wanted if words else ():
            try:
                recorded = await self._records.read(exchange)
            except Fault:
                continue  # retention has removed it since it was listed
            if (snippet := await asyncio.to_thread(_find_snippet, recorded, words)) is not None:
                found.append(snippet)
        return SnippetsShown(tuple(words), tuple(found))

    async def summary(self, exchange: str) -> Summary:
        return await self._records.summary(exchange, await self._records.facts(exchange))

    async def body(self, exchange: str, query: Query) -> WebResponse:
        """The bytes that were or will be sent; with `of=received` those of the client, with `of=original` those before
        any edit, with `of=reply` those of the reply, with `of=held` the document being edited."""
        named = query.text("of") or "sent"
        hold = self._holds.find(exchange)
        if named == "held":
            if hold is None:
                await self._records.facts(exchange)  # an unknown exchange is a different error
                hint = "Leave `of` out for the body that was sent; GET /api/holds lists what is held."
                raise Fault(Code.INVALID_REQUEST, f"exchange {exchange!r} is not held", hint=hint, status=409)
            return replies.data(hold.draft.data, b"application/json")
        if hold is not None and hold.phase == "request" and named in ("sent", "original"):
            # The facts are not complete yet: a route that only renames the model leaves no fact before the attempt.
            data = hold.draft.data if named == "sent" else hold.draft.original
            return replies.data(data, b"application/json")
        facts = await self._records.facts(exchange)
        happened = [entry.fact for entry in facts]
        received, sent = hashes_of(facts)
        match named:
            case "sent":
                sha256 = sent
            case "received":
                sha256 = received
            case "original":
                sha256 = original_sha256(happened) or received
            case "reply":
                # A web page in the answer must not run as one of ours.
                reply = b"".join(fact.data for fact in happened if isinstance(fact, FrameArrived))
                return replies.data(reply, b"text/plain; charset=utf-8")
            case other:
                raise Fault(Code.INVALID_REQUEST, f"there is no body {other[:40]!r}", hint=_BODIES, status=400)
        body = await self._records.store.body(exchange, sha256) if sha256 else b""
        if body is None:
            raise replies.not_found(f"body of {exchange!r}: the record no longer holds it")
        # Any bytes may have been forwarded, and a web page among them must not run as one of ours.
        is_raw = any(isinstance(fact, Received) and fact.dialect == RAW_HTTP for fact in happened)
        return replies.data(body, b"text/plain; charset=utf-8" if is_raw else b"application/json")


def _by_column(column: str) -> "_SortKey":
    """The sort key of a column. A default value counts as missing, unless it is a text."""
    usual = next((each.default for each in fields(Summary) if each.name == column), None)

    def key(line: Summary) -> str | float | None:
        value = getattr(line, column)
        if isinstance(value, str | tuple):
            return (value if isinstance(value, str) else " ".join(value)).lower()
        return None if value == usual else float(value)

    return key


_SortKey: TypeAlias = Callable[[Summary], str | float | None]
SORTS: Final[Mapping[str, _SortKey]] = {
    **{name: _by_column(column) for name, column in FIELDS.items()},
    "title": _by_column("title"),
    "client": lambda line: (line.session or line.client).lower(),
    "route": _by_column("provider"),
    "tokens": lambda line: (
        None
        if line.input_tokens is None and line.output_tokens is None
        else (line.input_tokens or 0) + (line.output_tokens or 0)
    ),
}
"""What a list can be sorted by: every column that is a field of filters, and the columns that the page combines."""


def sort_lines(summaries: Iterable[Summary], sort: str, *, before: str, limit: int) -> list[Summary]:
    """The first exchanges in an order, starting after the exchange `before`; those without a value always come last.
    Raises a Fault if there is no such column."""
    is_descending, name = sort.startswith("-"), sort.removeprefix("-")
    value = SORTS.get(name)
    if value is None:
        hint = f"Sort by {', '.join(SORTS)}; with - before it, the largest first."
        raise Fault(Code.INVALID_REQUEST, f"there is no column {name[:40]!r}", hint=hint, status=400)

    def key(line: Summary) -> tuple[bool, str | float, str]:
        own = value(line)
        is_known = own is not None and own != ""
        return is_known if is_descending else not is_known, own if own is not None else 0.0, line.id

    lines = list(summaries)
    last = next((key(line) for line in lines if line.id == before), None)
    if is_descending:
        return heapq.nlargest(limit, (line for line in lines if last is None or key(line) < last), key=key)
    return heapq.nsmallest(limit, (line for line in lines if last is None or key(line) > last), key=key)


MOST_SNIPPETS: Final = 50
_AROUND: Final = 60
"""How many characters before and after the match are shown."""


class Snippet(msgspec.Struct, frozen=True):
    """The first match in an exchange, with the text around it on one line."""

    id: str
    of: Literal["request", "reply"]
    before: str
    hit: str
    after: str


class SnippetsShown(msgspec.Struct, frozen=True):
    """The words that a filter looks for, and where they occur in exchanges."""

    words: tuple[str, ...]
    snippets: tuple[Snippet, ...]


def _find_snippet(recorded: RecordedExchange, words: Sequence[str]) -> Snippet | None:
    """Where one of these words occurs: in the new part of the request, or in the reply; None if nowhere."""
    if recorded.is_raw:
        texts = {"request": recorded.sent.decode("utf-8", "replace")}
    else:
        texts = {
            "request": digest_of(recorded.received.dialect, recorded.body).new_text,
            "reply": words_of(recorded.reply()),
        }
    for of, text in texts.items():
        for word in words:
            if (place := find_word(word, text)) is not None:
                start, end = place
                before, after = text[max(0, start - _AROUND) : start], text[end : end + _AROUND]
                return Snippet(
                    recorded.id,
                    "reply" if of == "reply" else "request",
                    ("…" if start > _AROUND else "") + " ".join(before.split("\n")),
                    text[start:end],
                    " ".join(after.split("\n")) + ("…" if end + _AROUND < len(text) else ""),
                )
    return None


def _limit(text: str) -> int:
    if not text:
        return USUAL
    try:
        return min(max(int(text), 1), MOST)
    except ValueError:
        hint = f"limit is a number from 1 to {MOST}."
        raise Fault(Code.INVALID_REQUEST, f"the limit is not a number: {text[:40]!r}", hint=hint, status=400) from None


EVERYTHING: Final = "id:*"


class ForgetOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Forget the exchanges that match this filter, or those with these ids; unless `copies` is false, also the runs and
    eval runs with copies of them, and their copies in chats. With `dry_run`, only count."""

    filter: str = ""
    exchanges: tuple[str, ...] = ()
    dry_run: bool = False
    copies: bool = True


@dataclass(frozen=True, slots=True)
class Forgetting:
    """Removes exchanges from the record permanently."""

    records: Records
    hub: Hub
    now: Callable[[], float]
    erase_chats: EraseChats | None

    async def forget(self, receive: Receive) -> ForgetResult:
        order = await read_body(receive, ForgetOrder, status=400)
        if not order.filter.strip() and not order.exchanges:
            hint = f'"filter": "{EVERYTHING}" takes every exchange.'
            raise Fault(Code.INVALID_REQUEST, "the filter is empty", hint=hint, status=400)
        wanted = read_selection(order.filter, order.exchanges)
        return await self._forget(wanted, dry_run=order.dry_run, copies=order.copies)

    async def forget_one(self, exchange: str) -> ForgetResult:
        """Forget one exchange. Raises a Fault if it does not exist or is in progress."""
        await self.records.facts(exchange)
        found = await self._forget(frozenset({exchange}))
        if not found.exchanges:
            hint = "Wait until it has ended, or drop it if it is held."
            raise Fault(Code.INVALID_REQUEST, f"exchange {exchange!r} is under way", hint=hint, status=409)
        return found

    async def _forget(self, wanted: Selection, *, dry_run: bool = False, copies: bool = True) -> ForgetResult:
        found, ids = await forget_exchanges(
            self.records.store,
            wanted,
            now=self.now(),
            is_dry_run=dry_run,
            with_copies=copies,
            erase_chats=self.erase_chats,
        )
        if not dry_run:
            self.hub.announce("forgotten", {"exchanges": list(ids)})
        return found


MOST_LOOKED_AT: Final = 200
"""How many of the latest exchanges values are suggested from."""

_SCOPES: Final[Mapping[str, FilterScope]] = {
    "": FilterScope.TRAFFIC,
    "traffic": FilterScope.TRAFFIC,
    "rules": FilterScope.RULES,
}
_REMEMBERED: Final = ("model", "provider", "session", "client", "path", "finish", "fault")


async def describe_filter(exchanges: Exchanges, query: Query) -> FilterShown:
    """Describe the filter in a query, for the traffic list, or with `for=rules` for a rule. `at` is the cursor, by
    default at the end."""
    text, scope = query.text("text"), _SCOPES.get(query.text("for"))
    if scope is None:
        hint = "for is traffic or rules."
        raise Fault(Code.INVALID_REQUEST, "unknown kind of filter", hint=hint, status=400)
    at = cursor(text, query, "at")
    latest = await exchanges.newest(MOST_LOOKED_AT)
    known = {name: [str(getattr(summary, name)) for summary in latest] for name in _REMEMBERED}
    known["tool"] = [tool for summary in latest for tool in summary.tools]
    offers = completions(text, at, scope=scope, known=known)
    error = error_in(text, lambda: parse(text, scope=scope))
    return FilterShown(error is None, error, tuple(offer(text, each) for each in offers))


_STATUS: Mapping[Code, int] = {Code.AUTH: 422, Code.MODEL_UNKNOWN: 422}
"""Statuses in place of the code's own, which would seem to be about the API's token or the exchange."""


_REPLAY_HINT = (
    'Send {} for the same again, {"model": "…"} for another model, or {"body": "…"} for an edited body; '
    '"masks": true applies the active masks.'
)


class _Replay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: Annotated[str, msgspec.Meta(min_length=1)] | UnsetType = UNSET
    body: str | UnsetType = UNSET
    masks: bool | UnsetType = UNSET


async def start_replay(exchanges: Exchanges, resender: Resender | None, exchange: str, receive: Receive) -> JsonObject:
    """Send an exchange again and return the id of the new exchange, which is already recorded. `resender` is None if
    this server answers from the record and sends nothing."""
    replay = await read_body(receive, _Replay, hint=_REPLAY_HINT, status=400)
    if replay.model and replay.body is not UNSET:
        raise _replay_fault("model and body cannot be combined")
    try:
        body = None if replay.body is UNSET else replay.body.encode()
    except UnicodeEncodeError:
        raise _replay_fault("the body has half a surrogate pair, which UTF-8 cannot encode") from None
    masks = None if replay.masks is UNSET else replay.masks
    sender = _require_resender(resender)
    summary = await exchanges.summary(exchange)
    try:
        return {"id": await sender.start(summary, model=replay.model or "", body=body, masks=masks)}
    except Fault as fault:
        if fault.status is None:
            fault.status = _STATUS.get(fault.code)
        raise


def _require_resender(resender: Resender | None) -> Resender:
    if resender is None:
        message = "this server answers from the record and sends nothing"
        raise Fault(Code.USAGE, message, hint="Start `sightline serve` without --replay.", status=409)
    return resender


def _replay_fault(message: str) -> Fault:
    return Fault(Code.INVALID_REQUEST, message, hint=_REPLAY_HINT, status=400)


_HEADERS = (("content-type", "application/json"), ("user-agent", AGENT))


class DocumentToOpen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request body and its dialect. `model` replaces the document's model, or names one if it has none."""

    dialect: str
    body: str
    model: str = ""
    session: str = ""


async def open_document(resender: Resender | None, receive: Receive) -> JsonObject:
    """Hold the document as a new exchange and return its id. It is translated like a client's request, so the editor
    shows what would be sent. `resender` is None if this server answers from the record and sends nothing."""
    sender = _require_resender(resender)
    hint = f'Send {{"dialect": "…", "body": "…", "model": "…"}}; dialects: {", ".join(names())}.'
    document = await read_body(receive, DocumentToOpen, hint=hint, status=400)
    if find_dialect(document.dialect) is None:
        raise Fault(Code.INVALID_REQUEST, f"unknown dialect {document.dialect[:40]!r}", hint=hint, status=400)
    return {"id": await sender.send(document_request(document))}


def document_request(document: DocumentToOpen) -> ClientRequest:
    """The request for this document, which will be held. Raises a Fault if it is not valid in its dialect, or names no
    model."""
    name = document.dialect
    try:
        data = document.body.encode()
    except UnicodeEncodeError:
        message = "the body has half a surrogate pair, which UTF-8 cannot encode"
        raise Fault(Code.INVALID_REQUEST, message, hint="Write it as an escape.", status=400) from None
    request = dialect(name).read_request(decode(data))
    model = document.model or request.model
    if not model:
        hint = 'Name the model: {"model": "…"}.'
        raise Fault(Code.INVALID_REQUEST, "the document names no model", hint=hint, status=400)
    body = translate_request(data, name, name, model=document.model).data
    is_stream = bool(request.options.stream)
    # No client can send some dialects, such as `raw`: their requests come only from here.
    path, query = (
        path_of(name, model, stream=is_stream) if dialect(name).endpoint is not None else ("/api/exchanges", "")
    )
    return ClientRequest(name, body, _HEADERS, path, query, model, is_stream, session=document.session, hold=True)
