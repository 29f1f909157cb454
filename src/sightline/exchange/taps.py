"""What is made of an answer as it streams by: what the client gets of it, and what the record learns from it."""

import re
from typing import Protocol

from sightline.dialects.dialect import Client
from sightline.dialects.registry import dialect
from sightline.dialects.stream_translation import StreamTranslation
from sightline.errors import Code, Fault
from sightline.exchange.cancellation import cancel_reason
from sightline.exchange.recorder import Recorder
from sightline.exchange.reply_reader import BodyDecoder, ReplyReader
from sightline.model.events import Ended, Failed
from sightline.model.reply import Reply
from sightline.model.report import Report
from sightline.wire.jsontext import encode
from sightline.wire.secrets import Masking
from sightline.wire.sse import SseDecoder, encode_frame

_NUMBER = re.compile(rb'"sequence_number":\s*(\d+)')
_KEPT_FOR_NUMBERS = 1 << 16
_WORTH_READING = 1 << 13
_MOST_EARLY = 1 << 20
_FRAME_ENDS = (b"\n\n", b"\r\r", b"\r\n\r\n")


class Tap(Protocol):
    """Stands in the stream of one answer. Each of its ends writes the exchange's last fact, once."""

    @property
    def has_ended(self) -> bool:
        """Whether the client has had all that it will get."""
        ...

    @property
    def may_end(self) -> bool:
        """Whether nothing is missing but the provider's hanging up, for which the client need not wait long."""
        ...

    @property
    def reply(self) -> Reply:
        """What has been read of the answer."""
        ...

    def take(self, data: bytes) -> bytes:
        """Bytes came from the provider: those for the client."""
        ...

    def catch_up(self) -> None:
        """Read what the client has been given meanwhile."""
        ...

    def end(self) -> bytes:
        """The provider has ended: what the client still gets."""
        ...

    def fail(self, fault: Fault) -> bytes:
        """The provider broke off: what the client still gets; raises where that cannot be said in its dialect."""
        ...

    def leave(self) -> None:
        """The client has gone."""
        ...


class VerbatimTap:
    """The provider's bytes as they came; a copy is read behind the client's back.

    `masking` takes configured keys out of what the client gets; `undoing` is there where the bytes are coded;
    `is_framed` says that they are server-sent events, to which an error can be added.

    Until the reply begins, bytes are held back that would make a failure look like a success: client libraries take an
    empty stream, a bare `[DONE]` and any body that is no stream for a reply without content. Comments and pings pass.
    """

    has_ended = False
    may_end = False

    def __init__(
        self, live: Recorder, spoken: str, *, masking: Masking, undoing: BodyDecoder | None, is_framed: bool
    ) -> None:
        self._live = live
        self._spoken = spoken
        self._masking = masking
        self._undoing = undoing
        self._is_framed = is_framed and undoing is None
        self._reading = ReplyReader(spoken)
        self._unread: list[bytes] = []
        self._unread_size = 0
        self._early: bytearray | None = bytearray()
        """What is held back until the reply begins; None from then on."""
        self._last = b""

    @property
    def can_tell_errors(self) -> bool:
        """Whether an error can be told inside the answer, so that its head need not wait for its first bytes."""
        return self._is_framed

    @property
    def reply(self) -> Reply:
        """What has been read of the answer."""
        self._read()
        return self._reading.reply

    def take(self, data: bytes) -> bytes:
        """The same bytes, unless they repeat a key."""
        if self._undoing is not None:
            return self._pass_coded(data, self._undoing)
        self._live.record_chunk(data)
        self._unread.append(data)
        self._unread_size += len(data)
        shown = self._masking.feed(data)
        if self._early is not None:
            shown = self._hold_early(self._early, shown)
        if shown:
            self._last = shown
        return shown

    def _pass_coded(self, data: bytes, undoing: BodyDecoder) -> bytes:
        """The coded bytes, as long as what they say repeats no key."""
        plain = undoing.feed(data)
        self._live.record_chunk(plain)
        if undoing.trouble:
            self._read()
            self._reading.give_up(undoing.trouble)
        self._unread.append(plain)
        self._unread_size += len(plain)
        self._masking.feed(plain)
        if self._masking.has_found:
            raise _key_repeated()
        return data if self._early is None else self._hold_early(self._early, data)

    def _hold_early(self, early: bytearray, shown: bytes) -> bytes:
        """What can be passed on although nothing of a reply may have come yet."""
        early += shown
        self._read()
        reading = self._reading
        is_refused = reading.has_failed and not reading.was_cut and self._is_framed
        if reading.has_begun or is_refused or len(early) > _MOST_EARLY:
            self._early = None
            return bytes(early)
        if not self._is_framed or reading.was_cut:
            return b""
        ends = [early.rfind(end) + len(end) for end in _FRAME_ENDS if early.rfind(end) >= 0]
        passed = bytes(early[: max(ends, default=0)])
        del early[: len(passed)]
        return passed

    def catch_up(self) -> None:
        """Read what was passed on, once that is worth the while: many small pieces are read quicker as one."""
        if self._unread_size >= _WORTH_READING:
            self._read()

    def _read(self) -> None:
        if self._unread_size:
            data = b"".join(self._unread)
            self._unread.clear()
            self._unread_size = 0
            self._reading.feed(data)

    def end(self) -> bytes:
        """What was held back; and where the stream ended without its end, the error that says so."""
        self._read()
        was_told = self._reading.has_failed and not self._reading.has_unnamed_error
        self._reading.close()
        reply = self._reading.reply
        if reply.fault is None:
            self._live.finish(reply, warning=self._reading.warning)
            return self._flush()
        is_empty = self._early is not None
        can_tell = self._is_framed or (self._undoing is None and self._reading.can_add_element)
        if not can_tell and (is_empty or not was_told):
            # Nothing was said yet, or what was said has no room for an error: the caller tells it in another way.
            self._live.fail(reply.fault, dialect(self._spoken).write_error(reply.fault)[0], reply.usage)
            raise reply.fault
        self._live.fail(reply.fault, usage=reply.usage)
        if is_empty and self._reading.was_cut:
            self._early = None  # an end without anything before it, behind which no client would look for an error
            return self._error(reply.fault)
        held = self._flush()
        return held + self._error(reply.fault) if can_tell and (is_empty or not was_told) else held

    def _flush(self) -> bytes:
        """What the client has not been given yet."""
        held = self._masking.close()
        early, self._early = bytes(self._early or b""), None
        held = early if self._undoing is not None else early + held
        self._last = held or self._last
        return held

    def fail(self, fault: Fault) -> bytes:
        """The error in the words of the dialect, if there is a place for it; after a legal end nothing is missing."""
        self._read()
        is_spoilt = self._undoing is not None and self._masking.has_found
        if self._reading.has_ended and not is_spoilt:
            return self.end()
        can_tell = self._is_framed or (self._undoing is None and self._reading.can_add_element)
        self._reading.fail(fault)
        self._live.fail(fault, usage=self._reading.reply.usage)
        if not can_tell:
            raise fault
        return self._flush() + self._error(fault)

    def leave(self) -> None:
        """A client that leaves behind the legal end, or behind the provider's own error, has had everything."""
        self._read()
        was_told = self._reading.has_failed
        self._reading.close()
        reply = self._reading.reply
        if reply.fault is not None and was_told:
            self._live.fail(reply.fault, usage=reply.usage)
        elif reply.fault is None and reply.choice.finish is not None:
            self._live.finish(reply, warning=self._reading.warning)
        else:
            self._live.cancel(cancel_reason())

    def _error(self, fault: Fault) -> bytes:
        last = self._last
        if not self._is_framed:
            gap = b"" if last.rstrip().endswith((b"[", b",")) else b",\n"
            return gap + encode(dialect(self._spoken).write_error(fault)[1]) + b"]"
        gap = b"" if not last or last.endswith(_FRAME_ENDS) else b"\n\n"
        return gap + failure_frame(self._spoken, fault, self._reading.reply, last)


class TranslatingTap:
    """The answer in the client's dialect. Where anything of it was lost, the record says what, and what was given."""

    def __init__(
        self,
        live: Recorder,
        translation: StreamTranslation,
        *,
        target: str,
        masking: Masking,
        undoing: BodyDecoder | None,
    ) -> None:
        self._live = live
        self._translation = translation
        self._target = target
        self._masking = masking
        self._undoing = undoing
        self._given: list[bytes] = []

    @property
    def has_ended(self) -> bool:
        """Whether the client has had its terminal."""
        return self._translation.has_ended

    @property
    def may_end(self) -> bool:
        """Whether nothing is missing but the provider's hanging up."""
        return self._translation.may_end

    @property
    def reply(self) -> Reply:
        """What has been read of the answer."""
        return self._translation.reply

    def take(self, data: bytes) -> bytes:
        """What these bytes amount to."""
        plain = data if self._undoing is None else self._undoing.feed(data)
        self._live.record_chunk(plain)
        if self._undoing is not None and self._undoing.trouble:
            raise unreadable(self._undoing.trouble)
        return self._give_to_client(self._translation.feed(plain))

    def catch_up(self) -> None:
        """It was read before."""

    def end(self) -> bytes:
        """The terminal, or the error that stands in its place."""
        return self._give_to_client(self._translation.close(), is_last=True)

    def fail(self, fault: Fault) -> bytes:
        """The error in the words of the client's dialect."""
        return self._give_to_client(self._translation.fail(fault), is_last=True)

    def leave(self) -> None:
        """The client has gone."""
        self._live.cancel(cancel_reason())

    def _give_to_client(self, data: bytes, *, is_last: bool = False) -> bytes:
        is_over = is_last or self._translation.has_ended
        data = self._masking.feed(data) + (self._masking.close() if is_over else b"")
        self._given.append(data)
        if is_over and not self._live.is_over:
            self._conclude()
        return data

    def _conclude(self) -> None:
        reply, report = self._translation.reply, self._translation.report
        if report.losses:
            self._live.record_translation(self._target, self._live.keep_body(b"".join(self._given)), report)
        self._given.clear()
        if reply.fault is None:
            self._live.finish(reply)
        else:
            self._live.fail(reply.fault, usage=reply.usage)


def failure_frame(spoken: str, fault: Fault, reply: Reply, last: bytes) -> bytes:
    """The frame by which a stream of this dialect says that it has failed; `last` are the bytes before it."""
    writer = dialect(spoken).stream_writer(Client(id=reply.id or "", model=reply.model or ""), Report())
    written = b"".join(writer.feed(event) for event in (Failed(fault), Ended()))
    # A writer that has written nothing yet opens its stream first; here it has been open for long.
    frame = SseDecoder().feed(written)[-1]
    data = encode_frame(frame)
    if numbers := _NUMBER.findall(last[-_KEPT_FOR_NUMBERS:]):
        data = _NUMBER.sub(b'"sequence_number":%d' % (int(numbers[-1]) + 1), data, count=1)
    return data


def unreadable(why: str) -> Fault:
    """The fault of an answer that cannot be translated because it cannot be read."""
    return Fault(
        Code.UPSTREAM_PROTOCOL,
        f"the provider's answer cannot be read: {why}",
        hint="Check that the provider's base_url leads to its API, and that it speaks the dialect that is set for it.",
    )


def _key_repeated() -> Fault:
    return Fault(
        Code.UPSTREAM_PROTOCOL,
        "the answer repeats a configured key and is coded, so that the key cannot be taken out",
        hint="Ask for the answer without Accept-Encoding, and tell the provider.",
    )
