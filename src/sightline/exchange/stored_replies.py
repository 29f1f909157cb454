"""Stored replies: what clients can retrieve of replies that a translation or a user made, and that no provider stores.

The id of such a reply contains the id of its exchange. Everything is read from the record: the client's request as it
arrived, the provider's response, and the fact `ReplyStored`, which names the owner. A request that continues from a
stored reply is expanded to the whole conversation before it is sent.
"""

from typing import Final, NamedTuple, Protocol
from urllib.parse import parse_qsl

import msgspec

from sightline.dialects.dialect import Client
from sightline.dialects.registry import dialect
from sightline.dialects.signatures import OriginMarker
from sightline.dialects.stored import RESPONSES, StoredApi, StoredCall, exchange_in, list_page
from sightline.dialects.translate import restore_names
from sightline.editing.response_chain import ChainLink, expand_request, previous_of
from sightline.errors import Code, Fault
from sightline.exchange import client_response
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.client_response import EVENT_STREAM, RESEND, ClientResponse, WholeBody, request_id
from sightline.exchange.exchange import storage_of
from sightline.exchange.hub import Hub
from sightline.exchange.interception.core.reply_writing import events_of, hand_written, write_stream
from sightline.exchange.phase import FinishedEnd
from sightline.exchange.raw_exchange import RawClient, RecordedBody
from sightline.exchange.raw_recorder import RawExchange
from sightline.exchange.recording.exchange_record import RecordedExchange
from sightline.exchange.routing import owner_of
from sightline.exchange.socket_history import SocketHistory, is_frame
from sightline.filters.expression import Expression
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse
from sightline.model.exchange import ReplyStored
from sightline.model.fold import fold
from sightline.model.json import JsonObject
from sightline.model.reply import Choice, Reply
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.store.entries import FactEntry
from sightline.store.summary import OPEN_STATES
from sightline.transport.waiting import Clock
from sightline.wire.jsontext import decode, encode
from sightline.wire.sse import SseDecoder, encode_frame

MOST_LINKS: Final = 500
_LARGEST_UPDATE: Final = 1 << 20
_MARK: Final = f'"{RESPONSES.prefix}x_'.encode()
"""The prefix of the id of a reply that a request can continue from, so that other bodies need not be parsed."""


class ReplyRecords(Protocol):
    """Reads the record."""

    async def read(self, exchange: str, /) -> RecordedExchange:
        """All of an exchange. Raises a fault if it is not in the record."""

    async def list_ids(self, wanted: Expression, /) -> list[str]:
        """The exchanges that the filter matches, the oldest first."""


class StoredReply(NamedTuple):
    """A reply with its exchange, and the last fact about its storage."""

    name: str
    api: StoredApi
    recorded: RecordedExchange
    fact: ReplyStored

    @property
    def body(self) -> bytes:
        """What the client sent, as the body of a POST."""
        body = self.recorded.body
        return SocketHistory().http_form(body).body if is_frame(body) else body

    @property
    def is_open(self) -> bool:
        return self.recorded.summary.state in OPEN_STATES

    def client(self, request: Request) -> Client:
        """How the reply was written for its client."""
        model = self.recorded.received.model
        return Client(id=self.name, model=model, created=self.fact.created, request=request)

    def read(self) -> tuple[Request, Reply]:
        """The client's request, and the reply that it got."""
        recorded, spoken = self.recorded, self.recorded.received.dialect
        request = dialect(spoken).read_request(decode(self.body))
        if recorded.given and recorded.attempt is not None:
            reply = self._read_change(decode(recorded.given))
        elif recorded.spoken == spoken:
            reply = recorded.reply()
        else:
            marker = OriginMarker(recorded.summary.provider)
            events = restore_names(recorded.events(), request, dialect(recorded.spoken).names)
            reply = fold([marker.mark(event) for event in events], recorded.spoken)
        return request, msgspec.structs.replace(reply, id=self.name)

    def _read_change(self, given: object) -> Reply:
        """The reply as a user changed it, which may be empty."""
        if isinstance(given, dict) and not given.get("parts"):
            return Reply(choices=(Choice(finish="stop"),))
        assert isinstance(given, dict)
        known = {key: given[key] for key in ("parts", "finish", "usage", "model") if key in given}
        return hand_written(known, model=self.recorded.received.model, name=self.name, created=self.fact.created)

    def document(self) -> JsonObject:
        """The reply as its client reads it. Raises a fault if it was interrupted before anything had arrived."""
        spoken = dialect(self.recorded.received.dialect)
        if self.is_open:
            request = spoken.read_request(decode(self.body))
            begun = spoken.write_reply(Reply(id=self.name), self.client(request), Report())
            return {**begun, "status": "in_progress"}
        request, reply = self.read()
        written = spoken.write_reply(reply, self.client(request), Report())
        if self.api.can_change:
            return {**written, "metadata": self.metadata(request)}
        fault = self.recorded.fault
        return {**written, "status": "cancelled"} if fault is not None and fault.code is Code.CANCELLED else written

    def metadata(self, request: Request) -> JsonObject:
        """The metadata that the client has stored with the reply."""
        return dict(request.options.metadata or {} if self.fact.metadata is None else self.fact.metadata)


class StoredReplies:
    """Answers clients' calls about stored replies, and expands conversations that continue from one."""

    def __init__(self, records: ReplyRecords, hub: Hub, clock: Clock) -> None:
        self._records = records
        self._hub = hub
        self._clock = clock

    def may_concern(self, spoken: str, body: bytes) -> bool:
        """Whether a body of this dialect may name a stored reply."""
        return dialect(spoken).rules.names_last_reply and _MARK in body

    async def expand(self, request: ClientRequest) -> ClientRequest:
        """The request with the whole conversation in place of the id of a stored reply; unchanged if it names none."""
        body = request.body if request.http_body is None else request.http_body
        if not self.may_concern(request.dialect, body):
            return request
        before = previous_of(body)
        if not exchange_in(before):
            return request
        try:
            whole = expand_request(body, await self._chain(request.dialect, owner_of(request), before))
        except Fault as fault:
            raise _no_such_reply(before) from fault
        return msgspec.structs.replace(request, http_body=whole)

    async def _chain(self, spoken: str, owner: str, name: str) -> list[ChainLink]:
        """The conversation up to and including a stored reply, the oldest turn first."""
        links: list[ChainLink] = []
        while exchange_in(name) and len(links) < MOST_LINKS:
            stored = await self._find(spoken, owner, name)
            links.append(ChainLink(stored.body, encode(stored.document())))
            name = previous_of(stored.body)
        return links[::-1]

    async def _find(self, spoken: str, owner: str, name: str) -> StoredReply:
        """The reply with this id. Raises a fault if this owner has none."""
        api = storage_of(spoken)
        assert api is not None
        try:
            recorded = await self._records.read(exchange_in(name))
        except Fault:
            raise api.missing(name) from None
        facts = [entry.fact for entry in recorded.facts if isinstance(entry.fact, ReplyStored)]
        is_its_own = bool(facts) and facts[-1].owner == owner and recorded.received.dialect == spoken
        if not is_its_own or facts[-1].is_deleted or name != f"{api.prefix}{recorded.id}":
            raise api.missing(name)
        return StoredReply(name, api, recorded, facts[-1])

    # --- calls of clients ---

    async def concerns(self, call: StoredCall, request: ClientRequest) -> bool:
        """Whether this call is answered here: it is about a reply stored here, or lists those of a client that has some
        here."""
        if call.name:
            return bool(exchange_in(call.name))
        api = storage_of(call.dialect)
        can_list = api is not None and api.can_change and request.method == "GET"
        return can_list and bool(await self._records.list_ids(_filter_for(owner_of(request), call.dialect)))

    async def answer(self, exchange: RawExchange, call: StoredCall, client: RawClient) -> ClientResponse:
        """The response to a call about stored replies. Raises a fault if there is no such reply or call."""
        request, recorder = exchange.request, exchange.recorder
        body, came = RecordedBody(client, recorder), b""
        while piece := await body.read():
            came += piece
            if len(came) > _LARGEST_UPDATE:
                raise Fault(Code.REQUEST_TOO_LARGE, "the body is too large", hint="Send less metadata.", status=413)
        query = dict(parse_qsl(request.query))
        if not call.name:
            answer = encode(await self._list(owner_of(request), call.dialect, query))
        else:
            stored = await self._find(call.dialect, owner_of(request), call.name)
            answer = await self._answer_about(stored, request.method, call.rest, query, came)
        is_stream = not answer.startswith(b"{")
        headers = [*(EVENT_STREAM if is_stream else [(b"content-type", b"application/json")])]
        recorder.begin_reply(200, tuple(headers))
        recorder.pass_reply(answer)
        exchange.end(FinishedEnd(Reply(), "answered here, out of the record"))
        headers += [*request_id(request.caller, "", (), (), exchange.id), *exchange.own_headers()]
        if is_stream:
            return ClientResponse(exchange.id, 200, headers, WholeBody(answer))
        return client_response.whole(exchange.id, 200, headers, answer, [])

    async def _answer_about(
        self, stored: StoredReply, method: str, rest: str, query: dict[str, str], body: bytes
    ) -> bytes:
        api = stored.api
        match method, rest:
            case "GET", "" if query.get("stream") == "true" and not api.can_change:
                return _stream_again(stored, query.get("starting_after", ""))
            case "GET", "":
                return encode(stored.document())
            case "GET", children if children == api.children:
                return encode(list_page(await self._input_items(stored), query, is_newest_first=not api.can_change))
            case "DELETE", "":
                await self._note(stored, msgspec.structs.replace(stored.fact, is_deleted=True))
                return encode(api.deletion(stored.name))
            case "POST", "" if api.can_change:
                changed = await self._note(stored, msgspec.structs.replace(stored.fact, metadata=_metadata_in(body)))
                return encode(changed.document())
            case "POST", "cancel" if not api.can_change:
                return _cancel_response(stored)
            case _:
                hint = "Look at the API's reference for what can be asked of it."
                raise Fault(Code.USAGE, f"{method} is nothing that can be asked of it", hint=hint, status=405)

    async def _input_items(self, stored: StoredReply) -> list[JsonObject]:
        """The input of a reply, with everything that came before it."""
        body, recorded = stored.body, stored.recorded
        before = previous_of(body)
        if exchange_in(before):
            chain = await self._chain(recorded.received.dialect, stored.fact.owner, before)
            body = expand_request(body, chain)
        document = decode(body)
        return stored.api.list_children(document, stored.name) if isinstance(document, dict) else []

    async def _list(self, owner: str, spoken: str, query: dict[str, str]) -> JsonObject:
        """The replies of this owner that match the query."""
        api = storage_of(spoken)
        assert api is not None
        wanted = {key[9:-1]: value for key, value in query.items() if key.startswith("metadata[") and key.endswith("]")}
        found: list[JsonObject] = []
        for exchange in await self._records.list_ids(_filter_for(owner, spoken)):
            document = (await self._find(spoken, owner, f"{api.prefix}{exchange}")).document()
            noted = document.get("metadata")
            is_wanted = isinstance(noted, dict) and wanted.items() <= noted.items()
            if is_wanted and query.get("model", document.get("model")) == document.get("model"):
                found.append(document)
        return list_page(found, query, is_newest_first=False)

    async def _note(self, stored: StoredReply, fact: ReplyStored) -> StoredReply:
        """Record a change to the storage of a reply that has ended."""
        if stored.is_open:
            hint = "Wait for its end."
            raise Fault(Code.INVALID_REQUEST, f"{stored.name} is still in progress", hint=hint, status=400)
        recorded = stored.recorded
        self._hub.record([FactEntry(recorded.id, recorded.facts[-1].n + 1, self._clock.now(), fact)])
        return stored._replace(fact=fact)


def _filter_for(owner: str, spoken: str) -> Expression:
    return parse(f"stored:{owner} & dialect:{spoken} & state:finished", scope=FilterScope.TRAFFIC)


def _no_such_reply(name: str) -> Fault:
    """The fault with the message and the code of the API upon which clients send the whole conversation."""
    return Fault(
        Code.INVALID_REQUEST,
        f"Previous response with id '{name}' not found.",
        hint="Send the whole conversation.",
        pointer="/previous_response_id",
        details={"param": "previous_response_id", "code": RESEND},
        status=400,
    )


def _metadata_in(body: bytes) -> JsonObject:
    document = decode(body)
    metadata = document.get("metadata") if isinstance(document, dict) else None
    if not isinstance(metadata, dict) or not all(isinstance(each, str) for each in metadata.values()):
        raise Fault(
            Code.INVALID_REQUEST, "metadata is not an object of texts", hint='Send {"metadata": {…}}.', status=400
        )
    return metadata


def _cancel_response(stored: StoredReply) -> bytes:
    """Only a background reply can be cancelled; a translation has ended by the time its client has its id."""
    document = decode(stored.body)
    if isinstance(document, dict) and document.get("background") is True and not stored.is_open:
        return encode(stored.document())
    hint = "Close its connection to end it."
    raise Fault(Code.INVALID_REQUEST, "Cannot cancel a synchronous response.", hint=hint, status=400)


def _stream_again(stored: StoredReply, after: str) -> bytes:
    """The events of the reply; only those after a sequence number if one is given."""
    if stored.is_open:
        hint = "Wait for its end, or read the stream that is open."
        raise Fault(Code.INVALID_REQUEST, f"{stored.name} is still in progress", hint=hint, status=400)
    request, reply = stored.read()
    data = write_stream(events_of(reply), stored.recorded.received.dialect, stored.client(request))
    if not after.isdecimal():
        return data
    decoder = SseDecoder()
    frames = [*decoder.feed(data), *decoder.close()]
    return b"".join(encode_frame(each) for each in frames if _number(each.data) > int(after)) or b": nothing more\n\n"


def _number(data: bytes) -> int:
    event = decode(data)
    number = event.get("sequence_number") if isinstance(event, dict) else None
    return number if isinstance(number, int) else 0
