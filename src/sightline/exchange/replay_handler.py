"""A relay without providers: clients are answered from the record, and nothing is ever sent."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import NamedTuple

from sightline.dialects.dialect import Client
from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.dialects.streaming import fault_of_broken_frame
from sightline.dialects.tool_names import NameRestorer
from sightline.errors import Code, Fault
from sightline.exchange import client_response
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.client_response import ClientResponse, Headers, ResponseBody
from sightline.exchange.interception.core.reply_writing import failure_frame
from sightline.exchange.recording.exchange_record import RecordedExchange
from sightline.exchange.recording.library import Library, lines_of, shorten
from sightline.model.events import Ended, Failed, FrameBroken, StreamEvent
from sightline.model.fold import fold
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.transport.waiting import Clock
from sightline.wire.jsontext import decode, encode
from sightline.wire.partial_json import begins_array

Wait = Callable[[float], Awaitable[None]]
"""Returns when this many seconds have passed since the playback began."""


class PlayedBody(ResponseBody):
    """The body of a recorded response, to be iterated once. It has nothing to close."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces


class _Playback(NamedTuple):
    """Plays the recorded response to a request at the pace that `wait` sets; `request` is the parsed request, and `own`
    are the headers that Sightline adds."""

    recorded: RecordedExchange
    asked: ClientRequest
    request: Request
    wait: Wait
    own: Headers

    async def respond(self) -> ClientResponse:
        recorded, asked = self.recorded, self.asked
        is_same = recorded.spoken == asked.dialect
        is_error = recorded.fault is not None and recorded.summary.status >= 400
        if is_error or asked.counts or (is_same and not asked.is_stream and not recorded.received.is_stream):
            return await self._respond_as_it_came()
        if not asked.is_stream:
            return await self._respond_whole()
        is_array = begins_array(recorded.reply_body) is True
        if is_same and recorded.received.is_stream and is_array == asked.wants_array:
            status, headers = recorded.summary.status or 200, _headers(recorded)
            return ClientResponse(recorded.id, status, [*headers, *self.own], PlayedBody(self._frames()))
        headers = client_response.stream_headers(asked)
        return ClientResponse(recorded.id, 200, [*headers, *self.own], PlayedBody(self._write_frames()))

    async def _wait_for_end(self) -> None:
        await self.wait(self.recorded.frames[-1].after if self.recorded.frames else 0.0)

    async def _respond_as_it_came(self) -> ClientResponse:
        recorded = self.recorded
        await self._wait_for_end()
        if recorded.fault is not None and recorded.spoken != self.asked.dialect:
            return client_response.refusal(self.asked.dialect, recorded.fault, self.own, recorded.id)
        status, headers = recorded.summary.status or 200, _headers(recorded)
        return client_response.whole(recorded.id, status, headers, recorded.reply_body, self.own)

    async def _respond_whole(self) -> ClientResponse:
        """Respond with a complete body, even if the recording is a stream."""
        recorded, spoken = self.recorded, self.asked.dialect
        await self._wait_for_end()
        reply = fold([event for _, events in self._events() for event in events], recorded.spoken)
        if reply.fault is not None:
            return client_response.refusal(spoken, reply.fault, self.own, recorded.id)
        body = encode(dialect(spoken).write_reply(reply, self._client, Report()))
        return client_response.whole(recorded.id, 200, [(b"content-type", b"application/json")], body, self.own)

    async def _frames(self) -> AsyncIterator[bytes]:
        """The provider's bytes as they arrived; if they were interrupted, followed by the error that the client got."""
        recorded = self.recorded
        for frame in recorded.frames:
            await self.wait(frame.after)
            yield frame.data
        hearing = ReplyDecoder(dialect(recorded.spoken))
        reply = fold([event for frame in recorded.frames for event in hearing.feed(frame.data)], recorded.spoken)
        if recorded.fault is not None and not hearing.has_ended:
            last = recorded.frames[-1].data
            if hearing.can_add_element:
                yield b",\n" + encode(dialect(recorded.spoken).write_error(recorded.fault)[1]) + b"]"
                return
            gap = b"" if last.endswith((b"\n\n", b"\r\n\r\n")) else b"\n\n"
            yield gap + failure_frame(recorded.spoken, recorded.fault, reply, last)

    async def _write_frames(self) -> AsyncIterator[bytes]:
        """A stream in the client's dialect, each event at the time of its frame."""
        writer = dialect(self.asked.dialect).stream_writer(self._client, Report())
        for after, events in self._events():
            await self.wait(after)
            if data := b"".join(map(writer.feed, events)):
                yield data

    def _events(self) -> Iterator[tuple[float, list[StreamEvent]]]:
        """The events of each frame, and when it arrived, up to a frame that cannot be parsed; at the end, those that
        follow from the end. Tools have the names of the client's request."""
        recorded, spoken = self.recorded, dialect(self.recorded.spoken)
        decoder, restorer = ReplyDecoder(spoken), NameRestorer(self.request, spoken.names)
        for frame in (*recorded.frames, None):
            read: list[StreamEvent] = []
            for event in recorded.last_events(decoder) if frame is None else decoder.feed(frame.data):
                if isinstance(event, FrameBroken):
                    yield 0.0 if frame is None else frame.after, [*read, Failed(fault_of_broken_frame(event)), Ended()]
                    return
                read += restorer.feed(event)
            yield 0.0 if frame is None else frame.after, read

    @property
    def _client(self) -> Client:
        summary = self.recorded.summary
        return Client(
            include_usage=bool(self.request.options.include_usage),
            id=summary.id,
            model=self.asked.model,
            created=int(summary.at),
            input_tokens=summary.input_tokens or 0,
            as_array=self.asked.wants_array,
        )


def _headers(recorded: RecordedExchange) -> Headers:
    """The provider's headers for the client; the body is recorded without its encoding."""
    raw = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in recorded.headers)
    return client_response.without_coding(client_response.headers_for_client(raw))


_LOG = logging.getLogger("sightline.replay")


class ReplayHandler:
    """Answers clients like a relay, from recordings. Without `fast`, frames are sent at their recorded pace.

    Nothing is recorded: `x-sightline-exchange` names the recording that answered.
    """

    def __init__(self, library: Library, clock: Clock, *, fast: bool = False) -> None:
        self._library = library
        self._clock = clock
        self._is_fast = fast
        level = logging.INFO if len(library) else logging.WARNING
        _LOG.log(level, "%d recordings answer clients, and nothing is sent to a provider", len(library))

    async def start(self, request: ClientRequest) -> ClientResponse:
        """The recorded response to this request; a request without one is refused in the client's dialect."""
        started = self._clock.monotonic()
        try:
            lines = lines_of(request.dialect, request.body, request.model, counts=request.counts)
            recorded = await self._library.next(lines, request.dialect)
            if recorded is None:
                raise await no_recording(self._library, lines)
            parsed = Request() if request.counts else dialect(request.dialect).read_request(decode(request.body))
        except Fault as fault:
            _LOG.warning("%s: %s", fault.message, fault.hint)
            return client_response.refusal(request.dialect, fault, [])
        own = self._own(request, recorded.id)
        return await _Playback(recorded, request, parsed, self._waiting(started), own).respond()

    async def close(self, _grace: float) -> None:
        """Play the rest of all active responses at full speed."""
        self._is_fast = True

    def _waiting(self, started: float) -> Wait:
        async def wait(after: float) -> None:
            left = started + after - self._clock.monotonic()
            if left > 0 and not self._is_fast:
                await self._clock.sleep(left)

        return wait

    def _own(self, request: ClientRequest, exchange: str) -> Headers:
        overhead = max(0.0, self._clock.monotonic() - request.received) * 1000
        return [
            (b"x-sightline-exchange", exchange.encode()),
            (b"x-sightline-overhead-ms", f"{overhead:.3f}".encode()),
            (b"x-sightline-replayed", b"1"),
        ]


async def no_recording(library: Library, lines: list[str]) -> Fault:
    """The fault of a request without a recording, which shows the most similar recording."""
    nearest = await library.nearest(lines)
    hint = "Record it first: run the client once through `sightline serve` without --replay."
    if nearest is None:
        message = "there is no recording of this request, nor any other"
    else:
        title = shorten(nearest.summary.title)
        message = (
            f"there is no recording of this request; the nearest of {len(library)} is "
            f"{nearest.summary.id}{f' ({title})' if title else ''}, which differs (- recorded, + asked):\n"
            f"{nearest.difference}"
        )
    return Fault(Code.INVALID_REQUEST, message, hint=hint, status=404)
