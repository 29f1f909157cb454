"""What a client gets of each chunk of a streamed response: `VerbatimTap` passes the provider's own bytes,
`TranslatingTap` a stream in the client's dialect. Both record what passes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from sightline.dialects.registry import dialect
from sightline.dialects.translate import StreamTranslation
from sightline.errors import Fault
from sightline.exchange.exchange import Exchange
from sightline.exchange.interception.core.reply_writing import failure_frame
from sightline.exchange.phase import CancelledEnd, FailedEnd, FinishedEnd, cancel_reason
from sightline.exchange.redaction import FrameMasking
from sightline.exchange.reply_reader import BodyDecoder, ReplyReader, key_repeated, unreadable
from sightline.model.reply import Reply
from sightline.wire.jsontext import encode
from sightline.wire.secrets import Masking

_READ_SIZE = 1 << 13
"""Bytes that are parsed together: many small chunks are parsed faster as one."""
_MOST_UNREAD = 1 << 18
"""Bytes of a stream that may wait to be parsed together at its end; parsing more at once would delay other requests."""
_MOST_EARLY = 1 << 20
_FRAME_ENDS = (b"\n\n", b"\r\r", b"\r\n\r\n")


class PassThrough(NamedTuple):
    """How chunks pass: `keep` gets those that have passed, as they arrived, to be parsed later; `mask` returns what the
    client gets of one. `mask` is None if the client gets all of it."""

    keep: Callable[[list[bytes]], None]
    mask: Callable[[bytes], bytes] | None


class Tap(ABC):
    """Turns a provider's chunks into a client's. One of `end`, `fail` and `leave` is called, once.

    `masking` removes configured keys from what the client gets; `decoder` decodes the content encoding, if there is
    one.
    """

    has_ended = False
    """Whether the client has received everything."""
    may_end = False
    """Whether only the end of the transfer is missing, for which the client need not wait long."""
    is_behind = False
    """Whether so much waits to be parsed that `catch_up` should be called."""

    def __init__(self, exchange: Exchange, masking: Masking, decoder: BodyDecoder | None) -> None:
        self._exchange = exchange
        self.recorder = exchange.recorder
        self._masking = masking
        self._decoder = decoder

    @property
    @abstractmethod
    def reply(self) -> Reply:
        """The reply as parsed so far."""

    @abstractmethod
    def take(self, data: bytes) -> bytes:
        """Take a chunk from the provider; returns the bytes for the client."""

    def find_passing(self) -> PassThrough | None:
        """How chunks can pass without being examined for anything but keys; None if they have to go through `take`."""
        return None

    def catch_up(self) -> None:  # noqa: B027 - a tap that parses at once is never behind
        """Parse the chunks that the client has received since, if there are many."""

    def share_reading(self) -> ReplyReader | None:
        """To be called before the first chunk: the reader that parses the stream as the client gets it; None if there
        is none."""
        return None

    @abstractmethod
    def end(self) -> bytes:
        """The provider has ended the response; returns the last bytes for the client."""

    @abstractmethod
    def fail(self, fault: Fault) -> bytes:
        """The response was interrupted; returns the last bytes for the client. Raises the fault if the stream cannot
        contain it."""

    @abstractmethod
    def leave(self) -> None:
        """The client has gone."""


class VerbatimTap(Tap):
    """Passes the provider's bytes as they arrived; a copy is parsed for the record.

    With `is_framed`, the bytes are server-sent events, to which an error can be added.

    Until the reply begins, bytes that would make a failure look like a success are held back: client libraries take an
    empty stream, a bare `[DONE]` and any body that is not a stream for a reply without content. Comments and pings
    pass.
    """

    def __init__(
        self, exchange: Exchange, spoken: str, *, masking: Masking, decoder: BodyDecoder | None, is_framed: bool
    ) -> None:
        super().__init__(exchange, masking, decoder)
        self._spoken = spoken
        self._has_secrets = masking.has_secrets
        self.is_framed = is_framed and decoder is None
        """Whether an error can be added to the stream, so that the head need not wait for the first bytes."""
        self._is_shared = False
        """Whether one of Sightline's own callers gets the events: then the bytes are parsed as the client gets them,
        without keys, and each chunk as it arrives."""
        self._unread: list[bytes] = []
        self._unread_size = 0
        self._fast_reader = dialect(spoken).plain_stream if self.is_framed else None
        """Parses the whole stream at its end; None once the incremental reader has taken over, or has to."""
        self._most_unread = _READ_SIZE if self._fast_reader is None else _MOST_UNREAD
        self._reply: Reply | None = None
        self._held_back: bytearray | None = bytearray()
        """What is held back until the reply begins; None from then on."""
        self._rest = b""
        """What the masking has held back until the end."""
        self._last = b""
        """The last bytes that the client has received."""

    @cached_property
    def _reading(self) -> ReplyReader:
        return ReplyReader(self._spoken)  # created only if `_fast_reader` does not parse the stream

    def share_reading(self) -> ReplyReader | None:
        """The reader of a stream to which an error can be added; None for others, which are not parsed before their
        end."""
        if not self.is_framed:
            return None
        self._is_shared, self._fast_reader = True, None
        self._reading = ReplyReader(self._spoken, keeps_events=True)
        return self._reading

    @property
    def reply(self) -> Reply:
        if self._reply is not None:
            return self._reply
        self._read()
        return self._reading.reply

    def take(self, data: bytes) -> bytes:
        # This runs for each chunk of each stream, so it does as little as possible.
        if self._decoder is not None:
            return self._pass_coded(data, self._decoder)
        self.recorder.record_chunk(data)
        shown = self._masking.feed(data) if self._has_secrets else data
        unread = shown if self._is_shared else data
        self._unread.append(unread)
        self._unread_size = size = self._unread_size + len(unread)
        if size >= self._most_unread:
            self.is_behind = True
        if self._is_shared:
            self.recorder.has_masked_reader = self._masking.has_found
            self._read()
        if self._held_back is not None:
            shown = self._hold_until_reply(self._held_back, shown)
        if shown:
            self._last = shown
        return shown

    def take_whole(self, data: bytes) -> Reply | None:
        """Take a stream that has arrived completely and that passes unchanged, and end the response. Returns None, and
        takes nothing, if it is not such a stream. Most short ones are."""
        reply = None if self._fast_reader is None or self._is_shared else self._fast_reader.read(data)
        if reply is not None and self._has_secrets:
            masking = FrameMasking(self._exchange.secrets)
            reply = reply if masking.feed(data) + masking.close() == data else None
        if reply is None:
            return None
        self.recorder.record_chunk(data)
        self._exchange.end_response(FinishedEnd(reply))
        return reply

    def find_passing(self) -> PassThrough | None:
        """The passing of a stream whose reply has begun."""
        if self._held_back is not None or self._decoder is not None or self._is_shared:
            return None
        return PassThrough(self._keep, self._masking.feed if self._has_secrets else None)

    def _keep(self, passed: list[bytes]) -> None:
        self._unread += passed
        self._unread_size += sum(map(len, passed))
        self._last = passed[-1]
        if self._unread_size >= self._most_unread:
            self._read()

    def _pass_coded(self, data: bytes, decoder: BodyDecoder) -> bytes:
        """Pass the encoded bytes; raises a fault if they contain a key."""
        plain = decoder.feed(data)
        self.recorder.record_chunk(plain)
        if decoder.trouble:
            self._read()
            self._reading.give_up(decoder.trouble)
        self._unread.append(plain)
        self._unread_size += len(plain)
        self.is_behind = self._unread_size >= self._most_unread
        self._masking.feed(plain)
        if self._masking.has_found:
            raise key_repeated()
        return data if self._held_back is None else self._hold_until_reply(self._held_back, data)

    def _hold_until_reply(self, early: bytearray, shown: bytes) -> bytes:
        """The bytes that can be passed on before anything of a reply has arrived."""
        if self._fast_reader is not None and len(early) + len(shown) == self._unread_size:
            begun = bytes(early) + shown if early else shown
            if self._fast_reader.begins(begun):
                self._held_back = None
                return begun
        early += shown
        self._read()
        reading = self._reading
        is_refused = reading.has_failed and not reading.decoder.was_cut and self.is_framed
        if reading.has_begun or is_refused or len(early) > _MOST_EARLY:
            self._held_back = None
            return bytes(early)
        if not self.is_framed or reading.decoder.was_cut:
            return b""
        ends = [early.rfind(end) + len(end) for end in _FRAME_ENDS if early.rfind(end) >= 0]
        passed = bytes(early[: max(ends, default=0)])
        del early[: len(passed)]
        return passed

    def catch_up(self) -> None:
        if self.is_behind:
            self._read()

    def _read(self) -> None:
        if self._unread:
            data = b"".join(self._unread)
            self._unread.clear()
            self._unread_size = 0
            self.is_behind = False
            self._fast_reader, self._most_unread = None, _READ_SIZE
            self._reading.feed(data)

    def _read_rest(self) -> None:
        """No more bytes will arrive: parse the last ones, and release what the masking holds, which is not a key after
        all."""
        rest = self._masking.close()
        self._rest += rest
        if self._is_shared:
            self._unread.append(rest)
            self._unread_size += len(rest)
        self._read()

    def end(self) -> bytes:
        """The bytes that were held back, and an error if the stream ended before the reply was complete."""
        if self._fast_reader is not None:
            self._reply = self._fast_reader.read(b"".join(self._unread))
            if self._reply is not None:
                self._rest += self._masking.close()
                self._exchange.end_response(FinishedEnd(self._reply))
                return self._flush()
        self._read_rest()
        was_sent = self._reading.has_failed and not self._reading.decoder.has_unnamed_error
        self._reading.close()
        reply = self._reading.reply
        if reply.fault is None:
            self._exchange.end_response(FinishedEnd(reply, self._reading.warning))
            return self._flush()
        is_empty = self._held_back is not None
        can_add = self.is_framed or (self._decoder is None and self._reading.decoder.can_add_element)
        if not can_add and (is_empty or not was_sent):
            # This stream cannot contain an error: the client gets a status, or the transfer is aborted.
            status = dialect(self._spoken).write_error(reply.fault)[0]
            self._exchange.end_response(FailedEnd(reply.fault, status, reply.usage))
            raise reply.fault
        self._exchange.end_response(FailedEnd(reply.fault, usage=reply.usage))
        if is_empty and self._reading.decoder.was_cut:
            self._held_back = None  # clients do not look for an error after the end of a stream
            return self._error(reply.fault)
        held = self._flush()
        return held + self._error(reply.fault) if can_add and (is_empty or not was_sent) else held

    def _flush(self) -> bytes:
        """The bytes that the client has not received yet."""
        held, self._rest = self._rest, b""
        early, self._held_back = bytes(self._held_back or b""), None
        held = early if self._decoder is not None else early + held
        self._last = held or self._last
        return held

    def fail(self, fault: Fault) -> bytes:
        """The error in the form of the dialect, if the stream can contain it. A complete reply needs none."""
        self._read_rest()
        has_key = self._decoder is not None and self._masking.has_found
        if self._reading.decoder.has_ended and not has_key:
            return self.end()
        can_add = self.is_framed or (self._decoder is None and self._reading.decoder.can_add_element)
        self._reading.fail(fault)
        self._exchange.end_response(FailedEnd(fault, usage=self._reading.reply.usage))
        if not can_add:
            raise fault
        return self._flush() + self._error(fault)

    def leave(self) -> None:
        """A client that leaves after a complete reply, or after the provider's own error, has received everything."""
        self._read_rest()
        was_sent = self._reading.has_failed
        self._reading.close()
        reply = self._reading.reply
        if reply.fault is not None and was_sent:
            self._exchange.end_response(FailedEnd(reply.fault, usage=reply.usage))
        elif reply.fault is None and reply.choice.finish is not None:
            self._exchange.end_response(FinishedEnd(reply, self._reading.warning))
        else:
            self._exchange.end_response(CancelledEnd(cancel_reason()))

    def _error(self, fault: Fault) -> bytes:
        last = self._last
        if not self.is_framed:
            gap = b"" if last.rstrip().endswith((b"[", b",")) else b",\n"
            return gap + encode(dialect(self._spoken).write_error(fault)[1]) + b"]"
        gap = b"" if not last or last.endswith(_FRAME_ENDS) else b"\n\n"
        return gap + failure_frame(self._spoken, fault, self._reading.reply, last)


class TranslatingTap(Tap):
    """Passes the response in the client's dialect. What the translation lost is recorded."""

    def __init__(
        self, exchange: Exchange, translation: StreamTranslation, *, masking: Masking, decoder: BodyDecoder | None
    ) -> None:
        super().__init__(exchange, masking, decoder)
        self._translation = translation
        self._given: list[bytes] = []
        self._has_ended_response = False

    @property
    def reply(self) -> Reply:
        return self._translation.reply

    def take(self, data: bytes) -> bytes:
        plain = data if self._decoder is None else self._decoder.feed(data)
        self.recorder.record_chunk(plain)
        if self._decoder is not None and self._decoder.trouble:
            raise unreadable(self._decoder.trouble)
        return self._emit(self._translation.feed(plain))

    def end(self) -> bytes:
        return self._emit(self._translation.close(), is_last=True)

    def fail(self, fault: Fault) -> bytes:
        return self._emit(self._translation.fail(fault), is_last=True)

    def leave(self) -> None:
        """The client has gone. If it has received the end of its stream before, the response has ended already."""
        if not self._has_ended_response:
            self._has_ended_response = True
            self._exchange.end_response(CancelledEnd(cancel_reason()))

    def _emit(self, data: bytes, *, is_last: bool = False) -> bytes:
        self.has_ended, self.may_end = self._translation.has_ended, self._translation.may_end
        is_over = is_last or self.has_ended
        data = self._masking.feed(data) + (self._masking.close() if is_over else b"")
        self._given.append(data)
        if is_over and not self._has_ended_response:
            self._has_ended_response = True
            self._end_response()
        return data

    def _end_response(self) -> None:
        reply, report = self._translation.reply, self._translation.report
        if report.losses:
            digest = self.recorder.keep_body(b"".join(self._given))
            self.recorder.record_translation(self._exchange.request.dialect, digest, report)
        self._given.clear()
        if reply.fault is None:
            self._exchange.end_response(FinishedEnd(reply))
        else:
            self._exchange.end_response(FailedEnd(reply.fault, usage=reply.usage))
