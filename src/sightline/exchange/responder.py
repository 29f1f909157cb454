"""The answer on its way back: as it came, or in the client's dialect, whole or as it streams."""

import asyncio
from collections import deque
from contextlib import AsyncExitStack
from typing import NamedTuple

from sightline.catalog.choose import ModelChoice
from sightline.dialects.dialect import Client
from sightline.dialects.registry import dialect
from sightline.dialects.stream_translation import StreamTranslation
from sightline.dialects.streaming import no_reply
from sightline.dialects.translate import ReplyTranslation, translate_reply
from sightline.errors import Fault
from sightline.exchange import answers
from sightline.exchange.client_response import ClientResponse
from sightline.exchange.exchange import Journey
from sightline.exchange.memory import Memory
from sightline.exchange.outbound import Outbound
from sightline.exchange.recorder import Recorder
from sightline.exchange.reply_reader import BodyDecoder, ReplyReader
from sightline.exchange.request_counter import RequestCounter, read_count
from sightline.exchange.split_keys import FrameMasking
from sightline.exchange.stream_pump import StreamPump
from sightline.exchange.taps import TranslatingTap, VerbatimTap, unreadable
from sightline.model.reply import Reply
from sightline.model.request import Request
from sightline.model.usage import Usage, possible
from sightline.tokens.calibration import digest_chain
from sightline.tokens.estimate import Estimate
from sightline.tokens.ledger import SentRequest
from sightline.transport.clock import Clock
from sightline.transport.http.client import READ_LIMIT, Response
from sightline.transport.sender import AcceptedResponse, RawHeaders, RefusedResponse, without
from sightline.wire.jsontext import decode, encode
from sightline.wire.secrets import Masking

LARGEST_BODY = 2 * 1024 * 1024
"""A larger one takes longer to count than its lesson is worth."""

MOST_WAITING = 8
FIRST_LESSONS = 24
PAUSE_S = 1.0
_ESTIMATORS = 2
_MODELS = 256


class _Counted(NamedTuple):
    choice: ModelChoice
    body: bytes
    usage: Usage


class _Studied(NamedTuple):
    request: Request
    raw: Estimate
    chain: list[str]


class TrafficLearning:
    """Takes what providers counted, and teaches the memory with it."""

    def __init__(self, memory: Memory) -> None:
        self._counter = RequestCounter(memory, most=_ESTIMATORS)  # of its own, since it is used in another thread
        self._waiting: deque[_Counted] = deque(maxlen=MOST_WAITING)
        self._taken: dict[tuple[str, str], tuple[int, float]] = {}
        self._task: asyncio.Task[None] | None = None

    def note(self, choice: ModelChoice, body: bytes, usage: Usage | None) -> None:
        """The provider has counted this body, which is in the choice's dialect."""
        if usage is None or not usage.input_tokens or len(body) > LARGEST_BODY or not self._is_due(choice):
            return
        self._waiting.append(_Counted(choice, body, usage))
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())

    def _is_due(self, choice: ModelChoice) -> bool:
        """Whether it is worth looking at another request to this model; so many were taken, the last one at that
        time."""
        now, key = asyncio.get_running_loop().time(), (choice.provider_name, choice.model)
        count, last = self._taken.get(key, (0, 0.0))
        if count >= FIRST_LESSONS and now - last < PAUSE_S:
            return False
        if len(self._taken) >= _MODELS:
            self._taken.clear()
        self._taken[key] = count + 1, now
        return True

    async def wait_until_idle(self) -> None:
        """Wait until everything that was noted has been learned."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def close(self) -> None:
        """Learn nothing more."""
        self._waiting.clear()
        await self.wait_until_idle()

    async def _work(self) -> None:
        while self._waiting:
            counted = self._waiting.popleft()
            studied = await asyncio.to_thread(self._study, counted)
            if studied is not None:
                self._counter.take(counted.choice, studied.request, studied.raw, counted.usage, studied.chain)

    def _study(self, counted: _Counted) -> _Studied | None:
        """Everything that takes time; None where the body is no request that can be read."""
        choice = counted.choice
        try:
            document = decode(counted.body)
            request = dialect(choice.dialect).read_request(document) if isinstance(document, dict) else None
        except Fault:
            return None  # it was passed on all the same, and the provider made something of it
        if request is None:
            return None
        chain = digest_chain(choice.provider_name, choice.model, request)
        return _Studied(request, self._counter.raw_estimate(choice, request), chain)


_EVENTS = "text/event-stream"
_NO_CONTENT = 204


class Responder:
    """Makes what the client gets out of what the provider sent, and sees to the record and the ledger."""

    def __init__(self, memory: Memory, counter: RequestCounter, clock: Clock) -> None:
        self._memory = memory
        self._counter = counter
        self._clock = clock
        self.learning = TrafficLearning(memory)

    # --- without the provider, and against it ---

    def answer_with_estimate(self, journey: Journey, live: Recorder) -> ClientResponse:
        """A count that nobody was asked for."""
        tokens, body = self._counter.answer(journey.asked, journey.chosen)
        live.finish(Reply(usage=Usage(input_tokens=tokens)), warning="the tokens were estimated here")
        headers = [(b"content-type", b"application/json"), (b"x-sightline-estimated", b"1")]
        return answers.whole(journey.exchange, 200, headers, encode(body), journey.own_headers())

    def answer_with_error(self, journey: Journey, live: Recorder, refused: RefusedResponse) -> ClientResponse:
        """An error answer: as it came in its own dialect, mapped in any other."""
        plain = _plain(refused.body, refused.headers)
        live.record_chunk(plain)
        if journey.chosen.dialect != journey.asked.dialect:
            return journey.refuse(live, refused.fault)
        live.fail(refused.fault)
        relayed = self._as_it_came(journey, refused.status, refused.headers, refused.body, plain)
        relayed.fault = refused.fault
        return relayed

    def _as_it_came(
        self, journey: Journey, status: int, headers: RawHeaders, body: bytes, plain: bytes
    ) -> ClientResponse:
        """A whole answer of the client's dialect, without a configured key that it may repeat."""
        passed = answers.headers_for_client(headers, journey.secrets)
        shown = answers.without(plain, journey.secrets)
        if shown != plain:
            body, passed = shown, answers.without_coding(passed)
        return answers.whole(journey.exchange, status, passed, body, journey.own_headers())

    # --- an answer ---

    async def answer_with_response(
        self, journey: Journey, live: Recorder, accepted: AcceptedResponse, outbound: Outbound, stack: AsyncExitStack
    ) -> ClientResponse:
        """The provider's answer, whose body has not been read."""
        response = accepted.response
        is_same = journey.chosen.dialect == journey.asked.dialect
        is_empty = response.status == _NO_CONTENT or response.header("content-length").strip() == "0"
        is_framed = response.header("content-type").lower().startswith(_EVENTS) and not is_empty
        if journey.asked.is_stream or (is_same and is_framed):
            tap = self._tap(journey, live, response, outbound, is_framed=is_framed)
            return await self._streaming(journey, live, tap, accepted, stack)
        with journey.waiting():
            came = await _read(response, live)
        if journey.asked.counts:
            reply, relayed = self._answer_count(journey, live, response, came)
        elif is_same:
            reply, relayed = self._verbatim(journey, live, response, came)
        else:
            reply, relayed = self._translate_whole(journey, live, came, outbound)
        self._settle(journey, accepted.sent, reply)
        return relayed

    def _verbatim(
        self, journey: Journey, live: Recorder, response: Response, came: "_Came"
    ) -> tuple[Reply, ClientResponse]:
        reading = ReplyReader(journey.chosen.dialect)
        if came.trouble:
            reading.give_up(came.trouble)
        _refuse_empty(came)
        reading.whole(came.plain)
        reply = reading.reply
        if reply.fault is None:
            live.finish(reply, warning=reading.warning)
        else:
            live.fail(reply.fault, usage=reply.usage)
        return reply, self._as_it_came(journey, response.status, response.headers, came.body, came.plain)

    def _answer_count(
        self, journey: Journey, live: Recorder, response: Response, came: "_Came"
    ) -> tuple[Reply, ClientResponse]:
        _refuse_empty(came)
        count, fault = read_count(journey.chosen.dialect, came.plain)
        if came.trouble:
            live.finish(Reply(), warning=came.trouble)
        elif fault is None:
            live.finish(Reply(usage=Usage(input_tokens=count)))
        else:
            live.fail(unreadable(fault.message))
        return Reply(), self._as_it_came(journey, response.status, response.headers, came.body, came.plain)

    def _translate_whole(
        self, journey: Journey, live: Recorder, came: "_Came", outbound: Outbound
    ) -> tuple[Reply, ClientResponse]:
        asked = journey.asked
        if came.trouble:
            raise unreadable(came.trouble)
        try:
            translation = translate_reply(
                came.plain,
                journey.chosen.dialect,
                asked.dialect,
                client=self._client(journey, outbound, 0),
                request=outbound.client,
            )
        except Fault as fault:
            raise unreadable(fault.message) from None
        if (failure := translation.reply.fault) is not None:
            return translation.reply, journey.refuse(live, failure)
        self._note_losses(journey, live, translation)
        live.finish(translation.reply)
        headers = [(b"content-type", b"application/json")]
        shown = answers.without(translation.data, journey.secrets)
        return translation.reply, answers.whole(journey.exchange, 200, headers, shown, journey.own_headers())

    def _note_losses(self, journey: Journey, live: Recorder, translation: ReplyTranslation) -> None:
        if translation.report.losses:
            journey.losses += len(translation.report.losses)
            live.record_translation(journey.asked.dialect, live.keep_body(translation.data), translation.report)

    # --- as it streams ---

    def _tap(
        self, journey: Journey, live: Recorder, response: Response, outbound: Outbound, *, is_framed: bool
    ) -> VerbatimTap | TranslatingTap:
        choice, asked = journey.chosen, journey.asked
        coding = response.header("content-encoding")
        undoing = None if coding.strip().lower() in ("", "identity") else BodyDecoder(coding)
        if choice.dialect == asked.dialect:
            masking = FrameMasking(journey.secrets) if is_framed else Masking(journey.secrets)
            # Who asked for no stream looks for no error in one.
            is_read = is_framed and asked.is_stream
            return VerbatimTap(live, choice.dialect, masking=masking, undoing=undoing, is_framed=is_read)
        assert outbound.client is not None
        tokens = self._counter.at_once(choice, outbound.client, len(asked.body))
        translation = StreamTranslation(
            choice.dialect,
            asked.dialect,
            client=self._client(journey, outbound, tokens),
            request=outbound.client,
        )
        masking = FrameMasking(journey.secrets)
        return TranslatingTap(live, translation, target=asked.dialect, masking=masking, undoing=undoing)

    async def _streaming(
        self,
        journey: Journey,
        live: Recorder,
        tap: VerbatimTap | TranslatingTap,
        accepted: AcceptedResponse,
        stack: AsyncExitStack,
    ) -> ClientResponse:
        held = stack.pop_all()

        async def release(reply: Reply, fault: Fault | None) -> None:
            if reply.fault is not None:
                relayed.fault = without(reply.fault, live.redaction.secrets)
            self._settle(journey, accepted.sent, reply)
            journey.is_done()
            await _unwound(held, fault)

        live.commit()  # its id leaves with the head of the answer
        passing = StreamPump(accepted.response, tap, release)
        journey.passes(passing)
        headers = answers.headers_for_client(accepted.response.headers, journey.secrets)
        relayed = ClientResponse(journey.exchange, accepted.response.status, headers, passing)
        if isinstance(tap, TranslatingTap) or not tap.can_tell_errors:
            # Its first words are awaited, so that an error which comes in place of them can still have a status.
            try:
                with journey.waiting():
                    await passing.begin()
            except BaseException:
                await passing.leave()
                raise
        if isinstance(tap, TranslatingTap):
            relayed.status, relayed.headers = 200, answers.stream_headers(journey.asked)
            fault = tap.reply.fault
            if fault is not None and not any(choice.parts for choice in tap.reply.choices):
                await passing.leave()
                fault = without(fault, live.redaction.secrets)
                return answers.refusal(journey.asked.dialect, fault, journey.own_headers(), journey.exchange)
        relayed.headers = [*relayed.headers, *journey.own_headers()]
        return relayed

    def _client(self, journey: Journey, outbound: Outbound, tokens: int) -> Client:
        client = outbound.client
        return Client(
            include_usage=client is not None and bool(client.options.include_usage),
            id=journey.exchange,
            model=journey.asked.model,
            created=int(self._clock.now()),
            input_tokens=tokens,
            as_array=journey.asked.wants_array,
        )

    def _settle(self, journey: Journey, sent: SentRequest, reply: Reply) -> None:
        if (usage := possible(reply.usage)) is None or usage.input_tokens is None:
            return
        used = usage.input_tokens + (usage.output_tokens or 0)
        self._memory.ledger.settle(sent, used, self._clock.now())
        if not journey.asked.tokens and not journey.asked.counts:  # else whoever asked has estimated it, and learns
            self.learning.note(journey.chosen, journey.sent, usage)


async def _unwound(held: AsyncExitStack, fault: Fault | None) -> None:
    """Let go of what the answer needed; whoever lent it hears how it ended."""
    try:
        await held.__aexit__(None if fault is None else type(fault), fault, None)
    except Fault:
        return  # what it thinks of the fault comes too late: the client has been told


class _Came(NamedTuple):
    """A whole body as it came and after decoding, and why that may be impossible."""

    body: bytes
    plain: bytes
    trouble: str


async def _read(response: Response, live: Recorder) -> _Came:
    """A body to its end; each piece is on record."""
    coding = response.header("content-encoding")
    undoing = None if coding.strip().lower() in ("", "identity") else BodyDecoder(coding)
    pieces: list[bytes] = []
    plain: list[bytes] = []
    size = 0
    async for piece in response:
        pieces.append(piece)
        size += len(piece)
        some = piece if undoing is None else undoing.feed(piece)
        plain.append(some)
        live.record_chunk(some)
        if size > READ_LIMIT:
            raise unreadable(f"it has more than {READ_LIMIT} bytes")
    body = b"".join(pieces)
    return _Came(body, body, "") if undoing is None else _Came(body, b"".join(plain), undoing.trouble)


def _refuse_empty(came: _Came) -> None:
    """Client libraries take an answer without a body for a success, so it becomes an error of their dialect."""
    if not came.plain.strip() and not came.trouble:
        raise no_reply(b"")


def _plain(body: bytes, headers: RawHeaders) -> bytes:
    """A body after decoding, as far as that is possible."""
    coding = answers.header(headers, b"content-encoding")
    return body if coding.strip().lower() in ("", "identity") else BodyDecoder(coding).feed(body)
