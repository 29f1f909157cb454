"""The recorder of one exchange: collects its facts with their order and time, and writes them to the store."""

import logging
from collections.abc import Callable
from hashlib import sha256
from typing import TypeAlias, assert_never

from msgspec.structs import replace

from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest, TextHeaders
from sightline.exchange.hub import Hub
from sightline.exchange.phase import CancelledEnd, DroppedEnd, ExchangeEnd, FailedEnd, FinishedEnd
from sightline.exchange.redaction import Caller
from sightline.model.exchange import (
    Answered,
    AttemptStarted,
    Budgeted,
    Dropped,
    Edited,
    ExchangeCancelled,
    ExchangeFailed,
    ExchangeFinished,
    Fact,
    Held,
    Released,
    Translated,
)
from sightline.model.parts import Text, Thinking
from sightline.model.reply import Reply, Usage, possible, reply_json
from sightline.model.report import Report
from sightline.store.entries import BodyEntry, FactEntry, FramesEntry, KeptEntry, next_number, plain_entries
from sightline.transport.waiting import Clock
from sightline.wire.jsontext import encode
from sightline.wire.secrets import Redaction

_LOG = logging.getLogger(__name__)
_MAKE_ROOM = "Make the record writable again; the log says what was wrong with it."
_MOST_UNMASKED = 1 << 18
"""The most bytes of a stream that are searched for secrets at once; searching more would delay other requests."""


FactObserver: TypeAlias = Callable[[FactEntry], None]
"""Called with each fact of one exchange except frames, once it is recorded."""


class Recorder:
    """Keeps facts in memory until the next commit, and frames until the end. The secrets of `caller` are redacted.

    `observer` is set for Sightline's own requests. It gets each fact even if the store does not accept it. Frames are
    not observed: the caller reads the response itself.
    """

    is_recorded = False
    """Whether the store has accepted the first facts, so that the exchange can be looked up by its id."""
    has_masked_reader = False
    """Whether the reply was parsed from redacted bytes, so that it contains no secret."""
    _is_lost = False
    _is_settled = False
    _count = 0
    _flush: Callable[[], None] | None = None
    _seen = 0
    """The number of the first fact that watchers may not have seen, if it is a frame."""
    _came_size = 0
    _first_byte = 0.0
    status = 0
    """The status of the response; 0 if none has arrived."""
    response_headers: TextHeaders = ()
    """The headers of the provider's response, without secrets."""

    def __init__(
        self,
        request: ClientRequest,
        exchange: str,
        hub: Hub,
        clock: Clock,
        caller: Caller,
        observer: FactObserver | None = None,
    ) -> None:
        self.exchange = exchange
        self.request = request
        self.sha256 = "" if request.is_open else sha256(request.body).hexdigest()
        self.redaction = caller.redaction
        self._hub = hub
        self._observer = observer
        self.clock = clock
        self._waiting: list[KeptEntry] = []
        self._masking = self.redaction.masking()
        self._came: list[bytes] = []
        self._chunk_times: list[float] = []
        """Chunks of the response that have not been searched for secrets yet, and when they arrived."""
        self._shown: list[bytes] = []
        """The recorded response, without secrets."""
        self._near = caller.near(request)
        self._attempted = clock.monotonic()
        if self.sha256:
            self.keep(self.sha256, request.body)
        self.received = self.note(caller.arrival_fact(request, self.sha256))
        self._clock_offset = self.received.at - self._attempted
        """The difference between the time of day and the monotonic clock, so that a frame needs only one clock call."""
        for plan in request.budgeted:
            self.note(Budgeted(plan))

    def resume(self, entries: list[KeptEntry], attempted: float, *, is_recorded: bool) -> None:
        """Continue from these entries: the request was received, and sent at this time of the monotonic clock. They are
        recorded already if `is_recorded`."""
        sent = entries[-1]
        assert isinstance(sent, FactEntry)
        self._waiting = [] if is_recorded else entries
        self._count = sent.n + 1
        self._attempted, self._clock_offset = attempted, sent.at - attempted
        self.is_recorded = is_recorded

    # --- events ---

    def keep(self, digest: str, data: bytes) -> None:
        """Store a body to which a fact refers by its hash."""
        self._waiting.append(BodyEntry(digest, data, self._near))

    def record_translation(self, dialect: str, digest: str, report: Report) -> None:
        """The request, or the reply, was translated into another dialect."""
        self.note(Translated(dialect, digest, len(report.losses), report.losses, report.additions))

    def keep_body(self, data: bytes) -> str:
        """Store a body that is not the client's own; returns its hash, by which a fact can refer to it."""
        digest = sha256(data).hexdigest()
        self.keep(digest, data)
        return digest

    def record_attempt(self, attempt: AttemptStarted) -> None:
        if attempt.number == 1 and self.request.was_begun:  # `resume` has recorded it
            self._hub.expect(self)
            return
        self._attempted = self.clock.monotonic()
        if attempt.detail:
            attempt = replace(attempt, detail=self.redaction.text(attempt.detail))
        self._clock_offset = self.note(attempt).at - self._attempted
        if self._observer is None:
            self._hub.expect(self)
        else:
            self.commit()  # the observer is notified now

    def record_head(self, status: int, headers: tuple[tuple[bytes, bytes], ...]) -> None:
        self.status = status
        self.response_headers = self.redaction.raw_headers(headers)

    def record_chunk(self, data: bytes) -> None:
        """A chunk of the response has arrived, after content decoding."""
        # This runs for each chunk of each stream, so it does as little as possible. The rest is done for many chunks at
        # once.
        self._came.append(data)
        self._chunk_times.append(self.clock.monotonic())
        self._came_size += len(data)
        if self._hub.watching:
            self._hub.expect_frames(self)
        if self._came_size > _MOST_UNMASKED:
            self._make_frames()

    def begin_passing(self, flush: Callable[[], None]) -> None:
        """From now on, chunks pass that are not recorded one by one; `flush` records those that have passed so far."""
        self._flush = flush
        self._hub.streaming.add(self)
        if self._hub.watching:
            self._hub.expect_frames(self)

    def record_chunks(self, chunks: list[bytes], moments: list[float]) -> None:
        """These chunks of the response have passed at these times."""
        self._came += chunks
        self._chunk_times += moments
        self._came_size += sum(map(len, chunks))
        if self._came_size > _MOST_UNMASKED:
            self._make_frames()

    def end_passing(self) -> None:
        """From now on, every chunk is recorded as it arrives again."""
        flush, self._flush = self._flush, None
        self._hub.streaming.discard(self)
        if flush is not None:
            flush()

    def show_frames(self) -> None:
        """Show watchers what has arrived since the last call, if the exchange is recorded; otherwise they see all of it
        when it is written."""
        if not self._hub.watching:
            return
        if self._flush is not None:
            self._hub.expect_frames(self)  # again, until all chunks have passed
        if not self.is_recorded:
            return
        self._make_frames()
        last = self._waiting[-1] if self._waiting else None
        if type(last) is FramesEntry and (end := next_number(last)) > self._seen:
            skipped = max(0, self._seen - last.n)
            # Copies, because the waiting entry grows.
            at, after, data = last.at[skipped:], last.after[skipped:], last.data[skipped:]
            self._hub.show(FramesEntry(self.exchange, end - len(at), at, after, data))
            self._seen = end

    def _make_frames(self) -> None:
        if self._flush is not None:
            self._flush()
        came, moments = self._came, self._chunk_times
        if not came:
            return
        self._came, self._chunk_times, self._came_size = [], [], 0
        if not self._first_byte:
            self._first_byte = moments[0] - self.request.received
        shown = self._masking.feed_all(came)
        if shown is not came:  # masking may remove a chunk completely, or join it to the next one
            moments = [moment for data, moment in zip(shown, moments, strict=True) if data]
            shown = [data for data in shown if data]
        if shown:
            self._add_frames(shown, moments)

    def _add_frames(self, data: list[bytes], moments: list[float]) -> None:
        ahead, attempted, n = self._clock_offset, self._attempted, self._count
        if len(moments) == 1:  # as for every response that arrives in one chunk
            at, after = [moments[0] + ahead], [moments[0] - attempted]
        else:
            at, after = [each + ahead for each in moments], [each - attempted for each in moments]
        self._shown += data
        self._count += len(data)
        last = self._waiting[-1] if self._waiting else None
        if type(last) is FramesEntry:
            last.at.extend(at)
            last.after.extend(after)
            last.data.extend(data)
        else:
            self._waiting.append(FramesEntry(self.exchange, n, at, after, data))

    # --- actions of a user ---

    def record_hold(self, held: Held) -> None:
        """The exchange waits for a user. Raises a fault if that cannot be recorded: no user could see it then."""
        self.note(held)
        waiting = self._waiting
        if (trouble := self._write()) is not None:
            self._postpone_writing(waiting, trouble)
            hint = "Make the record writable again, or let requests pass without holding them."
            raise _not_recorded("the request cannot be held, because it cannot be recorded", trouble, hint)

    def keep_reply_document(self, digest: str, data: bytes) -> None:
        """Store a document made from a reply, unless it repeats a secret: then only its hash is recorded."""
        masking = self.redaction.masking()
        masking.feed(data)
        if not masking.has_found:
            self.keep(digest, data)

    def record_edit(self, operation: str, before: str, after: str, data: bytes, *, of_reply: bool = False) -> None:
        """A user has changed the body. Raises a fault if that cannot be recorded; then nothing has changed."""
        self._make_frames()
        waiting, count = self._waiting[:], self._count
        (self.keep_reply_document if of_reply else self.keep)(after, data)
        self.note(Edited(operation, before, after))
        if (trouble := self._write()) is not None:
            self._waiting, self._count = waiting, count
            hint = "Make the record writable again, or release the request as it stands."
            raise _not_recorded("the edit is not made, because it could not be recorded", trouble, hint)

    def record_masking(self, before: str, after: str, data: bytes) -> None:
        """Masks have changed the body. It is sent whether or not that can be recorded."""
        self.keep(after, data)
        self.note(Edited("mask", before, after))
        self.commit()

    def record_release(self, digest: str) -> None:
        """A user has released the request, having seen the body with this hash."""
        self.note(Released(digest))
        self.commit()

    def record_reply(self, reply: Reply) -> None:
        """The client gets a reply that a user wrote or changed."""
        self.note(Answered(self.keep_body(self.redaction.text(encode(reply_json(reply)).decode()).encode())))
        self.commit()

    # --- the end ---

    def record_end(self, end: ExchangeEnd) -> None:
        self.settle(end)
        match end:
            case FinishedEnd():
                self.note(self._finish_fact(end))
            case FailedEnd():
                self.note(self._failure_fact(end))
            case CancelledEnd(reason=reason, usage=usage):
                self.note(ExchangeCancelled(reason, plain_usage(usage)))
            case DroppedEnd(reason=why):
                self.note(Dropped(self.redaction.text(why)))
            case unreachable:
                assert_never(unreachable)
        self.commit()

    def _finish_fact(self, end: FinishedEnd) -> ExchangeFinished:
        return finish_fact(
            end.reply,
            self.status,
            self.response_headers,
            self._reply_sha256(),
            plain_usage(end.reply.usage),
            (self._first_byte, self._seconds_since_received()),
            self.redaction.text(end.warning) if end.warning else "",
        )

    def _failure_fact(self, end: FailedEnd) -> ExchangeFailed:
        return ExchangeFailed(
            end.fault.code.value,
            self.redaction.text(end.fault.message),
            self.redaction.text(end.fault.hint),
            end.status or self.status,
            self.response_headers,
            self._reply_sha256() if self.status else "",
            plain_usage(end.usage),
            self._first_byte,
            self._seconds_since_received(),
        )

    def _reply_sha256(self) -> str:
        return sha256(self._shown[0] if len(self._shown) == 1 else b"".join(self._shown)).hexdigest()

    def settle(self, end: ExchangeEnd) -> None:
        """The response is complete: record what redaction has held back, and hide secrets that were split over several
        chunks."""
        if self._is_settled:
            return
        self._is_settled = True
        if self._came or self._flush is not None:
            self._make_frames()
        if held := self._masking.close():
            self._add_frames([held], [self.clock.monotonic()])
        # A secret found in a single frame has been removed from it. If none was found, one may be split over several
        # events.
        is_whole = len(self._shown) <= 1 and self._masking.has_found
        if isinstance(end, FinishedEnd) and has_parts(end.reply) and not is_whole:
            self._hide_split_secrets(end.reply)

    def _hide_split_secrets(self, reply: Reply) -> None:
        """A secret that is split over several frames is in none of them. If the whole reply contains one, record the
        redacted reply in place of the frames."""
        is_split = self.has_masked_reader and not self._masking.has_found
        if not is_split and not holds_secret(reply, self.redaction):
            return
        whole = self.redaction.text(encode(reply_json(reply)).decode()).encode()
        waiting, self._waiting, self._shown = self._waiting, [], []
        self._count -= sum(isinstance(entry, FactEntry) for entry in plain_entries(waiting))
        for entry in waiting:
            if isinstance(entry, BodyEntry):
                self._waiting.append(entry)
            elif isinstance(entry, FactEntry):
                self.note(entry.fact)
            elif not self._shown:
                self._add_frames([whole], [self.clock.monotonic()])

    # --- writing ---

    @property
    def response(self) -> bytes:
        """What has arrived of the response, without secrets."""
        self._make_frames()
        return b"".join(self._shown)

    @property
    def unwritten(self) -> list[FactEntry]:
        """Facts that are not recorded yet, such as the frames of a response that is still arriving."""
        self._make_frames()
        return [entry for entry in plain_entries(self._waiting) if isinstance(entry, FactEntry)]

    def commit(self) -> None:
        """Write all waiting entries. If the store fails, that is logged, and the client is still served."""
        if self._came or self._flush is not None:
            self._make_frames()
        entries = self._waiting
        if (trouble := self._write()) is not None:
            self._postpone_writing(entries, trouble)

    def ensure_recorded(self) -> bool:
        """Whether the exchange is recorded, after an attempt to write its beginning. Clients get only ids that are
        recorded."""
        if not self.is_recorded:
            self._make_frames()
            runs = (n for n, each in enumerate(self._waiting) if isinstance(each, FramesEntry))
            first = next(runs, len(self._waiting))
            # Frames may still have to be redacted; they are written once the response is complete.
            later, self._waiting = self._waiting[first:], self._waiting[:first]
            self.commit()
            self._waiting += later
        return self.is_recorded

    def _postpone_writing(self, entries: list[KeptEntry], trouble: Exception) -> None:
        """Let the hub write these entries later. If it cannot, the rest of the exchange is not recorded."""
        # Any other exception is caused by the entries themselves: the store would refuse them later as well.
        is_temporary = isinstance(trouble, Fault | OSError)
        if self._is_lost or (is_temporary and self._hub.owe(entries)):
            return
        self._is_lost = True
        numbers = [each.n for each in entries if not isinstance(each, BodyEntry)]
        if not self.is_recorded:
            self._hub.lose(self.exchange)
        elif numbers:  # a client knows the id, so the exchange needs an end
            end = ExchangeFailed("interrupted", "the rest of this exchange could not be recorded", _MAKE_ROOM)
            self._hub.owe([FactEntry(self.exchange, numbers[0], self.clock.now(), end)])

    def _write(self) -> Exception | None:
        """Write all waiting entries; returns the exception that prevented it."""
        entries, self._waiting = self._waiting, []
        self._hub.stop_expecting(self)
        if not entries or self._is_lost:
            return None
        trouble: Exception | None = None
        try:
            self._hub.record(entries, shown=self._seen)
            self.is_recorded = True
        except Exception as error:  # noqa: BLE001 - the client is served even if the record fails
            _LOG.error("exchange %s could not be recorded: %r", self.exchange, error)
            trouble = error
        if self._observer is not None:  # the caller needs the facts even if the store does not accept them
            for entry in entries:
                if isinstance(entry, FactEntry):
                    self._observer(entry)
        return trouble

    def note(self, fact: Fact) -> FactEntry:
        """Add a fact, which is written with the next commit."""
        if self._came or self._flush is not None:
            self._make_frames()
        entry = FactEntry(self.exchange, self._count, self.clock.now(), fact)
        self._count += 1
        self._waiting.append(entry)
        return entry

    def _seconds_since_received(self) -> float:
        return self.clock.monotonic() - self.request.received


def has_parts(reply: Reply) -> bool:
    """Whether the contents of the reply were parsed. Most are not, because only the recorder would need them."""
    if len(reply.choices) == 1:
        return bool(reply.choices[0].parts)
    return any(choice.parts for choice in reply.choices)


def holds_secret(reply: Reply, redaction: Redaction) -> bool:
    """Whether the concatenated texts of a reply contain a secret, which may be in none of its frames."""
    parts = (part for choice in reply.choices for part in choice.parts)
    text = "".join(part.text for part in parts if isinstance(part, Text | Thinking))
    return redaction.text(text) != text


def tools_of(reply: Reply) -> tuple[str, ...]:
    if not has_parts(reply):
        return ()
    return tuple(dict.fromkeys(call.name for each in reply.choices for call in each.tool_calls))


def finish_fact(
    reply: Reply,
    status: int,
    headers: tuple[tuple[str, str], ...],
    sha256: str,
    usage: Usage | None,
    times: tuple[float, float],
    warning: str = "",
) -> ExchangeFinished:
    """The last fact of an exchange with a complete reply. `times` are those of the first byte and of the end. What a
    column of the record shows of a reply is added here, for every kind of exchange."""
    finish = reply.choice.finish or ("" if warning else "stop")  # an unread reply may have ended in any way
    return ExchangeFinished(finish, status, headers, sha256, reply.model or "", usage, tools_of(reply), *times, warning)


def plain_usage(usage: Usage | None) -> Usage | None:
    """The counts that are plausible, without the provider's more detailed ones, which are in the raw reply."""
    counts = possible(usage)
    return replace(counts, extras={}) if counts is not None and counts.extras else counts


def _not_recorded(what: str, trouble: Exception, hint: str) -> Fault:
    why = trouble.message if isinstance(trouble, Fault) else str(trouble)
    return Fault(Code.CONFIG, f"{what}: {why}", hint=hint, status=503)
