"""The response for the client: made from the provider's response, complete or streamed, in the client's dialect."""

import asyncio
from collections import deque
from contextlib import AsyncExitStack
from typing import NamedTuple

from sightline.catalog.choose import ModelChoice
from sightline.dialects.dialect import Client, Dialect
from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import read_plain_reply
from sightline.dialects.streaming import no_reply
from sightline.dialects.translate import StreamTranslation, translate_reply
from sightline.errors import Fault
from sightline.exchange import client_response
from sightline.exchange.client_response import ClientResponse
from sightline.exchange.exchange import Exchange
from sightline.exchange.memory import Memory
from sightline.exchange.outbound import Outbound
from sightline.exchange.phase import FailedEnd, FinishedEnd
from sightline.exchange.redaction import FrameMasking
from sightline.exchange.reply_reader import ReplyReader, decode_body, decoder_for, unreadable
from sightline.exchange.request_counter import RequestCounter, read_body, read_count
from sightline.exchange.stream_pump import StreamPump
from sightline.exchange.stream_taps import TranslatingTap, VerbatimTap
from sightline.model.reply import Reply, Usage, possible
from sightline.model.request import Request
from sightline.tokens.calibration import digest_chain
from sightline.tokens.estimate import Estimate
from sightline.tokens.ledger import SentRequest
from sightline.transport.http.client import READ_LIMIT
from sightline.transport.sender import AcceptedResponse, ProviderResponse, RawHeaders, RefusedResponse, redact_fault
from sightline.transport.waiting import Clock
from sightline.wire.jsontext import encode
from sightline.wire.secrets import Masking

LARGEST_BODY = 2 * 1024 * 1024
"""Counting a larger body takes longer than it is worth."""

MOST_WAITING = 8
FIRST_LESSONS = 24
PAUSE_S = 1.0
_ESTIMATORS = 2
_MODELS = 256


class TrafficLearning:
    """Collects what providers counted, and trains the memory's estimates with it."""

    def __init__(self, memory: Memory) -> None:
        self._counter = RequestCounter(memory, most=_ESTIMATORS)  # its own, since it is used in another thread
        self._waiting: deque[tuple[ModelChoice, bytes, Usage]] = deque(maxlen=MOST_WAITING)
        self._taken: dict[tuple[str, str], tuple[int, float]] = {}
        self._task: asyncio.Task[None] | None = None

    def note(self, choice: ModelChoice, body: bytes, usage: Usage) -> float:
        """Take a provider's count of this body, which is in the choice's dialect. Returns the number of seconds for
        which other requests to this model can be skipped."""
        if not usage.input_tokens or len(body) > LARGEST_BODY:
            return 0.0
        now, key = asyncio.get_running_loop().time(), (choice.provider_name, choice.model)
        count, last = self._taken.get(key, (0, 0.0))
        if count >= FIRST_LESSONS and now - last < PAUSE_S:
            return PAUSE_S - (now - last)
        if len(self._taken) >= _MODELS:
            self._taken.clear()
        self._taken[key] = count + 1, now
        self._waiting.append((choice, body, usage))
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())
        return 0.0

    async def wait_until_idle(self) -> None:
        if self._task is not None:
            await asyncio.wait({self._task})

    async def close(self) -> None:
        self._waiting.clear()
        await self.wait_until_idle()

    async def _work(self) -> None:
        while self._waiting:
            choice, body, usage = self._waiting.popleft()
            studied = await asyncio.to_thread(self._study, choice, body)
            if studied is not None:
                request, raw, chain = studied
                self._counter.take(choice, request, raw, usage, chain)

    def _study(self, choice: ModelChoice, body: bytes) -> tuple[Request, Estimate, list[str]] | None:
        """The slow part: the request, its estimate by the rules, and its digests. None if the body is not a readable
        request."""
        request = read_body(choice.dialect, body)
        if request is None:
            return None
        chain = digest_chain(choice.provider_name, choice.model, request)
        return request, self._counter.raw_estimate(choice, request), chain


_EVENTS = "text/event-stream"
_NO_CONTENT = 204


class Responder:
    """Makes the responses for clients and ends their exchanges. The ledger and the estimates learn the tokens used."""

    def __init__(self, memory: Memory, counter: RequestCounter, clock: Clock) -> None:
        self._memory = memory
        self._counter = counter
        self._clock = clock
        self.learning = TrafficLearning(memory)

    # --- without a reply ---

    def answer_with_estimate(self, exchange: Exchange) -> ClientResponse:
        """A token count that is estimated here, because the provider has no such call in the client's dialect."""
        tokens, body = self._counter.answer(exchange.request, exchange.choice)
        exchange.end(FinishedEnd(Reply(usage=Usage(input_tokens=tokens)), "the tokens were estimated here"))
        headers = [(b"content-type", b"application/json"), (b"x-sightline-estimated", b"1")]
        return client_response.whole(exchange.id, 200, headers, encode(body), exchange.own_headers())

    def answer_with_error(self, exchange: Exchange, refused: RefusedResponse) -> ClientResponse:
        """The provider's error: its own bytes if it has the client's dialect, otherwise rewritten."""
        plain = decode_body(client_response.header(refused.headers, b"content-encoding"), refused.body)
        exchange.recorder.record_chunk(plain)
        if exchange.choice.dialect != exchange.request.dialect:
            return exchange.refuse(refused.fault)
        exchange.end(FailedEnd(refused.fault))
        response = self._own_bytes(exchange, refused.status, refused.headers, refused.body, plain)
        response.fault = refused.fault
        return response

    def _own_bytes(
        self,
        exchange: Exchange,
        status: int,
        headers: RawHeaders,
        body: bytes,
        plain: bytes,
        reading: ReplyReader | None = None,
    ) -> ClientResponse:
        """A complete response in the client's dialect, without configured keys. `reading` has parsed the decoded
        body."""
        passed = client_response.headers_for_client(headers, exchange.secrets)
        if exchange.secrets and (shown := client_response.without(plain, exchange.secrets)) != plain:
            body, passed, reading = shown, client_response.without_coding(passed), None
        own = exchange.own_headers(passed)
        return client_response.whole(exchange.id, status, passed, body, own, reading=reading)

    # --- a whole response ---

    async def answer_with_response(
        self, exchange: Exchange, accepted: AcceptedResponse, outbound: Outbound, turn: AsyncExitStack | None
    ) -> ClientResponse:
        """The provider's response, whose body has not been read yet. `turn`, the turn at the embedded model, is kept
        while the response streams."""
        response = accepted.response
        is_same = exchange.choice.dialect == exchange.request.dialect
        is_framed = response.header("content-type").lower().startswith(_EVENTS)
        if is_framed and (response.status == _NO_CONTENT or response.header("content-length").strip() == "0"):
            is_framed = False  # it contains no event
        if exchange.request.is_stream or (is_same and is_framed):
            tap = self._tap(exchange, response, outbound, is_framed=is_framed)
            return await self._stream(exchange, tap, accepted, turn)
        body = _take(response, exchange)
        if body is None:
            with exchange.waiting():
                body = await _read(response, exchange)
        if exchange.request.counts:
            reply, answer = self._answer_count(exchange, response, body)
        elif is_same:
            reply, answer = self._verbatim(exchange, response, body)
        else:
            reply, answer = self._translate_whole(exchange, body, outbound)
        self._settle(exchange, accepted.sent, reply)
        return answer

    def _verbatim(self, exchange: Exchange, response: ProviderResponse, body: "_Body") -> tuple[Reply, ClientResponse]:
        _refuse_empty(body)
        reply, reading, warning = None, None, ""
        is_own = exchange.request.is_own  # these callers need the events, which the quick reader does not produce
        if not (body.trouble or is_own):
            spoken = dialect(exchange.choice.dialect)
            read = read_usual_reply if body.is_one_piece else read_plain_reply
            reply = read(spoken, body.plain)
        if reply is None:
            reading = ReplyReader(exchange.choice.dialect, keeps_events=is_own)
            if body.trouble:
                reading.give_up(body.trouble)
            reading.whole(body.plain)
            reply, warning = reading.reply, reading.warning
        if reply.fault is None:
            exchange.end_response(FinishedEnd(reply, warning))
        else:
            exchange.end_response(FailedEnd(reply.fault, usage=reply.usage))
        shared = reading if is_own and not body.trouble else None
        return reply, self._own_bytes(exchange, response.status, response.headers, body.body, body.plain, shared)

    def _answer_count(
        self, exchange: Exchange, response: ProviderResponse, body: "_Body"
    ) -> tuple[Reply, ClientResponse]:
        _refuse_empty(body)
        count, fault = read_count(exchange.choice.dialect, body.plain)
        if body.trouble:
            exchange.end(FinishedEnd(Reply(), body.trouble))
        elif fault is None:
            exchange.end(FinishedEnd(Reply(usage=Usage(input_tokens=count))))
        else:
            exchange.end(FailedEnd(unreadable(fault.message)))
        return Reply(), self._own_bytes(exchange, response.status, response.headers, body.body, body.plain)

    def _translate_whole(self, exchange: Exchange, body: "_Body", outbound: Outbound) -> tuple[Reply, ClientResponse]:
        request = exchange.request
        if body.trouble:
            raise unreadable(body.trouble)
        try:
            translation = translate_reply(
                body.plain,
                exchange.choice.dialect,
                request.dialect,
                client=self._client(exchange, outbound, 0),
                request=outbound.client,
            )
        except Fault as fault:
            raise unreadable(fault.message) from None
        if (failure := translation.reply.fault) is not None:
            return translation.reply, exchange.refuse(failure)
        if translation.report.losses:
            exchange.losses += len(translation.report.losses)
            digest = exchange.recorder.keep_body(translation.data)
            exchange.recorder.record_translation(request.dialect, digest, translation.report)
        exchange.end_response(FinishedEnd(translation.reply))
        headers = [(b"content-type", b"application/json")]
        shown = client_response.without(translation.data, exchange.secrets)
        return translation.reply, client_response.whole(exchange.id, 200, headers, shown, exchange.own_headers())

    # --- a response that streams ---

    def _tap(
        self, exchange: Exchange, response: ProviderResponse, outbound: Outbound, *, is_framed: bool
    ) -> VerbatimTap | TranslatingTap:
        choice, request = exchange.choice, exchange.request
        decoder = decoder_for(response.header("content-encoding"))
        if choice.dialect == request.dialect:
            masking = FrameMasking(exchange.secrets) if is_framed else Masking(exchange.secrets)
            # A client that did not ask for a stream does not look for an error in one.
            is_read = is_framed and request.is_stream
            return VerbatimTap(exchange, choice.dialect, masking=masking, decoder=decoder, is_framed=is_read)
        assert outbound.client is not None
        tokens = 0
        if dialect(request.dialect).begins_with_count:
            tokens = self._counter.at_once(choice, outbound.client, len(request.body))
        translation = StreamTranslation(
            choice.dialect,
            request.dialect,
            client=self._client(exchange, outbound, tokens),
            request=outbound.client,
        )
        masking = FrameMasking(exchange.secrets)
        return TranslatingTap(exchange, translation, masking=masking, decoder=decoder)

    async def _stream(
        self,
        exchange: Exchange,
        tap: VerbatimTap | TranslatingTap,
        accepted: AcceptedResponse,
        turn: AsyncExitStack | None,
    ) -> ClientResponse:
        # Sightline's own callers take the events, not the bytes.
        came = None if exchange.request.is_own else accepted.response.take_whole()
        if came is not None and turn is None and isinstance(tap, VerbatimTap) and (reply := tap.take_whole(came)):
            self._settle(exchange, accepted.sent, reply)
            return self._own_stream(exchange, accepted.response, came)
        open_until_end = None if turn is None else turn.pop_all()
        recorder = exchange.recorder

        async def release(reply: Reply, fault: Fault | None) -> None:
            if reply.fault is not None:
                redact_fault(reply.fault, recorder.redaction.secrets)
                response.fault = reply.fault
            self._settle(exchange, accepted.sent, reply)
            exchange.end_stream()
            if open_until_end is not None:
                await _unwind(open_until_end, fault)

        pump = StreamPump(accepted.response, tap, release)
        headers = client_response.headers_for_client(accepted.response.headers, exchange.secrets)
        response = ClientResponse(exchange.id, accepted.response.status, headers, pump)
        if came is not None:
            response.set_body(await pump.take_whole(came))
        else:
            recorder.commit()  # the client gets the exchange's id with the head of the response
            exchange.stream(pump.abort)
        if came is None and (isinstance(tap, TranslatingTap) or not tap.is_framed):
            # Wait for the first bytes: if they are an error, it can still have a status.
            try:
                with exchange.waiting():
                    await pump.begin()
            except BaseException:
                await pump.leave()
                raise
        if isinstance(tap, TranslatingTap):
            response.status, response.headers = 200, client_response.stream_headers(exchange.request)
            fault = tap.reply.fault
            if fault is not None and not any(choice.parts for choice in tap.reply.choices):
                await pump.leave()
                redact_fault(fault, recorder.redaction.secrets)
                return client_response.refusal(exchange.request.dialect, fault, exchange.own_headers(), exchange.id)
        own = exchange.own_headers(response.headers if isinstance(tap, VerbatimTap) else None)
        response.headers = [*response.headers, *own]
        return response

    def _own_stream(self, exchange: Exchange, response: ProviderResponse, body: bytes) -> ClientResponse:
        """A stream in the client's dialect that has arrived completely, and that its tap passes unchanged."""
        headers = client_response.headers_for_client(response.headers, exchange.secrets)
        headers += exchange.own_headers(headers)
        return ClientResponse(exchange.id, response.status, headers, client_response.WholeBody(body))

    def _client(self, exchange: Exchange, outbound: Outbound, tokens: int) -> Client:
        client, created = outbound.client, int(self._clock.now())
        stored = exchange.store_reply(created)
        return Client(
            include_usage=client is not None and bool(client.options.include_usage),
            id=stored or exchange.id,
            reply_id=stored,
            model=exchange.request.model,
            created=created,
            input_tokens=tokens,
            as_array=exchange.request.wants_array,
            request=client,
            provider=exchange.choice.provider_name,
        )

    def _settle(self, exchange: Exchange, sent: SentRequest, reply: Reply) -> None:
        # A caller that has estimated the request learns from it itself.
        is_lesson = not exchange.request.tokens and not exchange.request.counts
        self.settle(sent, possible(reply.usage), exchange.choice, exchange.sent_body if is_lesson else b"")

    def settle(self, sent: SentRequest, usage: Usage | None, choice: ModelChoice, body: bytes) -> float:
        """Settle the ledger with the plausible usage that the provider reported. The estimates learn from it if `body`
        is given. Returns the number of seconds for which they need no other body."""
        if usage is None or usage.input_tokens is None:
            return 0.0
        used = usage.input_tokens + (usage.output_tokens or 0)
        self._memory.ledger.settle(sent, used, self._clock.now())
        return self.learning.note(choice, body, usage) if body else 0.0


async def _unwind(stack: AsyncExitStack, fault: Fault | None) -> None:
    """Close what the response needed. The fault tells the embedded model that its response was interrupted."""
    try:
        await stack.__aexit__(None if fault is None else type(fault), fault, None)
    except Fault:
        return  # the client has received the error already


class _Body(NamedTuple):
    """A complete body as it arrived and after content decoding; `trouble` says why it cannot be decoded. If
    `is_one_piece` is set, no secret can be split over several frames."""

    body: bytes
    plain: bytes
    trouble: str
    is_one_piece: bool = False


def read_usual_reply(spoken: Dialect, body: bytes) -> Reply | None:
    """The reply in a body that arrived in one piece. Its contents are not needed, so possibly only its ending is
    parsed. None if only a `ReplyReader` can parse it."""
    reply = None if spoken.read_ending is None else spoken.read_ending(body)
    return reply or read_plain_reply(spoken, body)


def _take(response: ProviderResponse, exchange: Exchange) -> _Body | None:
    """Record and return a body that arrived completely with its head, as short ones do; None if it has to be read."""
    if response.header("content-encoding") or (body := response.take_whole()) is None:
        return None
    exchange.recorder.record_chunk(body)
    return _Body(body, body, "", is_one_piece=True)


async def _read(response: ProviderResponse, exchange: Exchange) -> _Body:
    """Read a body to its end, and record it."""
    decoder = decoder_for(response.header("content-encoding"))
    pieces: list[bytes] = []
    plain: list[bytes] = []
    size = 0
    async for piece in response:
        pieces.append(piece)
        size += len(piece)
        if decoder is not None:
            piece = decoder.feed(piece)
            plain.append(piece)
        exchange.recorder.record_chunk(piece)
        if size > READ_LIMIT:
            raise unreadable(f"it has more than {READ_LIMIT} bytes")
    body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    return _Body(body, body, "") if decoder is None else _Body(body, b"".join(plain), decoder.trouble)


def _refuse_empty(body: _Body) -> None:
    """Raise a fault for an empty body: client libraries take a response without a body for a success."""
    if not body.trouble and (not body.plain or body.plain.isspace()):
        raise no_reply(b"")
