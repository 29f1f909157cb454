"""One exchange while it lives: its facts in their order and time, written down at the points that matter."""

import logging
from collections.abc import Callable
from hashlib import sha256

from msgspec.structs import replace

from sightline.errors import CancelReason, Code, Fault
from sightline.exchange.caller import identify_caller
from sightline.exchange.client_request import ClientRequest, TextHeaders
from sightline.exchange.hub import Hub
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
    FrameArrived,
    Held,
    Received,
    Released,
    Translated,
)
from sightline.model.parts import Text, Thinking
from sightline.model.reply import Reply, reply_json
from sightline.model.report import Report
from sightline.model.usage import Usage, possible
from sightline.store.digest import ReplyText, words_of
from sightline.store.entries import BodyEntry, Entry, FactEntry
from sightline.transport.clock import Clock
from sightline.wire.jsontext import encode

_LOG = logging.getLogger(__name__)
_MAKE_ROOM = "Make the record writable again; the log says what was wrong with it."


class Recorder:
    """Facts wait here until the next commit; frames until the last one. `secrets` are kept out of all of them."""

    def __init__(self, asked: ClientRequest, exchange: str, hub: Hub, clock: Clock, secrets: tuple[str, ...]) -> None:
        self.exchange = exchange
        self.asked = asked
        self.sha256 = sha256(asked.body).hexdigest()
        caller = identify_caller(asked.headers, asked.path, asked.query, secrets)
        self.redaction = caller.redaction
        self.is_over = False
        self.is_recorded = False
        """Whether the store has taken it, so that its id means something to whoever asks for it."""
        self._is_lost = False
        self._hub = hub
        self._clock = clock
        self._waiting: list[Entry] = []
        self._count = self._frames = 0
        self._masking = self.redaction.masking()
        self._reply = sha256()
        self._near = asked.session or caller.session or f"{caller.program} {asked.model}".strip()
        self._attempted = clock.monotonic()
        self._first_byte = 0.0
        self._status = 0
        self._headers: TextHeaders = ()
        self._is_settled = self._is_postponed = False
        self._postponed: tuple[Callable[[], Fact], Reply | None] | None = None
        self.keep(self.sha256, asked.body)
        self._note(
            Received(
                asked.dialect,
                asked.model,
                self.sha256,
                asked.session,
                caller.client,
                caller.address,
                asked.is_stream,
                caller.headers,
                asked.origin,
                asked.conversation,
            )
        )
        for told in asked.budgeted:
            self._note(Budgeted(told))

    # --- what happens ---

    def keep(self, digest: str, data: bytes) -> None:
        """A body that a fact names."""
        self._waiting.append(BodyEntry(digest, data, self._near))

    def record_translation(self, dialect: str, digest: str, report: Report) -> None:
        """The request, or the reply, was put into another dialect."""
        self._note(Translated(dialect, digest, len(report.losses), report.losses, report.additions))

    def keep_body(self, data: bytes) -> str:
        """Another body than the client's; the hash by which a fact can name it."""
        digest = sha256(data).hexdigest()
        self.keep(digest, data)
        return digest

    def record_attempt(self, attempt: AttemptStarted) -> None:
        """It is about to be sent."""
        self._attempted = self._clock.monotonic()
        if attempt.detail:
            attempt = replace(attempt, detail=self.redaction.text(attempt.detail))
        self._note(attempt)
        self._hub.expect(self)

    def record_head(self, status: int, headers: tuple[tuple[bytes, bytes], ...]) -> None:
        """The head of an answer is here."""
        self._status = status
        told = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)
        self._headers = self.redaction.headers(told)

    def record_chunk(self, data: bytes) -> None:
        """A piece of the answer came."""
        elapsed = self._clock.monotonic()
        if not self._first_byte:
            self._first_byte = elapsed - self.asked.received
        if shown := self._masking.feed(data):
            self._frame(shown, elapsed)

    def _frame(self, data: bytes, elapsed: float) -> None:
        self._frames += 1
        self._reply.update(data)
        noted = self._note(FrameArrived(data, elapsed - self._attempted))
        if self._hub.watching:
            self._hub.show(noted)

    # --- what a person does ---

    def record_hold(self, held: Held) -> None:
        """It waits for a person; whoever looks at it now finds it on record. A fault if it cannot be written down: it
        would wait for someone who cannot see it."""
        self._note(held)
        waiting = self._waiting[:]
        if (trouble := self._write()) is not None:
            self._postpone_writing(waiting, trouble)
            raise _unseen(trouble)

    def keep_reply_document(self, digest: str, data: bytes) -> None:
        """A document that was made of a reply. One that repeats a secret is not kept: its hash says what was shown."""
        masking = self.redaction.masking()
        masking.feed(data)
        if not masking.has_found:
            self.keep(digest, data)

    def record_edit(self, operation: str, before: str, after: str, data: bytes, *, of_reply: bool = False) -> None:
        """The body is another one, which is on record before anybody is told; a fault if it cannot be written down, and
        then nothing has happened."""
        waiting, count = self._waiting[:], self._count
        (self.keep_reply_document if of_reply else self.keep)(after, data)
        self._note(Edited(operation, before, after))
        if (trouble := self._write()) is not None:
            self._waiting, self._count = waiting, count
            raise _edit_not_recorded(trouble)

    def record_masking(self, before: str, after: str, data: bytes) -> None:
        """Masks made another body of it, which goes out whether or not it can be written down."""
        self.keep(after, data)
        self._note(Edited("mask", before, after))
        self.commit()

    def record_release(self, digest: str) -> None:
        """A person let it go, having seen the body with this hash."""
        self._note(Released(digest))
        self.commit()

    def record_reply(self, reply: Reply) -> None:
        """The client gets a reply that a person wrote or changed."""
        self._note(Answered(self.keep_body(self.redaction.text(encode(reply_json(reply)).decode()).encode())))
        self.commit()

    def drop(self, reason: str) -> None:
        """A person, or a rule, refused it."""
        self._end(lambda: Dropped(self.redaction.text(reason)))

    # --- how it ends ---

    def postpone(self) -> None:
        """The end of the answer is not yet the end of the exchange: a person may have to look at it first."""
        self._is_postponed = True

    def reopen(self) -> None:
        """The answer is here, and the exchange goes on. What came is settled and can be written down."""
        if self._is_postponed:
            self._is_postponed = self.is_over = False
            if self._postponed is not None:
                self._settle(self._postponed[1])

    def conclude(self) -> None:
        """It ends as its answer did, after all."""
        self.reopen()
        ending, self._postponed = self._postponed, None
        if ending is not None:
            self._end(*ending)

    def finish(self, reply: Reply, *, warning: str = "") -> None:
        """The answer is whole."""
        choice = reply.choice
        self._end(
            lambda: ExchangeFinished(
                choice.finish or ("" if warning else "stop"),  # what was not read may have ended in any way
                self._status,
                self._headers,
                self._reply.hexdigest(),
                reply.model or "",
                _bare(reply.usage),
                tuple(dict.fromkeys(call.name for each in reply.choices for call in each.tool_calls)),
                self._first_byte,
                self._seconds_since_received(),
                self.redaction.text(warning),
            ),
            reply,
        )

    def fail(self, fault: Fault, status: int = 0, usage: Usage | None = None) -> None:
        """It ended in a fault; `status` is what the client gets where that is not the provider's."""
        self._end(
            lambda: ExchangeFailed(
                fault.code.value,
                self.redaction.text(fault.message),
                self.redaction.text(fault.hint),
                status or self._status,
                self._headers,
                self._reply.hexdigest() if self._status else "",
                _bare(usage),
                self._first_byte,
                self._seconds_since_received(),
            )
        )

    def cancel(self, reason: CancelReason) -> None:
        """Nobody waits for it any more."""
        self._end(lambda: ExchangeCancelled(reason))

    def _end(self, make: Callable[[], Fact], reply: Reply | None = None) -> None:
        """Only the first end counts."""
        if self.is_over:
            return
        self.is_over = True
        if self._is_postponed:
            self._postponed = make, reply
            return
        self._settle(reply)
        ending = make()
        self._note(ending)
        if reply is not None and isinstance(ending, ExchangeFinished):
            self._tell_words(ending, reply)
        self.commit()

    def _tell_words(self, ending: ExchangeFinished, reply: Reply) -> None:
        """Spare the store a second reading of what came and could be read."""
        if self._hub.hear is not None and self._frames and not ending.warning and not self.asked.counts:
            hidden = self.redaction.words
            self._hub.hear(ReplyText(self.exchange, hidden(words_of(reply)), hidden(reply.id or "")))

    def _settle(self, reply: Reply | None) -> None:
        """Nothing more comes: what was held back is shown, and what must not be is hidden."""
        if self._is_settled:
            return
        self._is_settled = True
        if held := self._masking.close():
            self._frame(held, self._clock.monotonic())
        if reply is not None and self._frames > 1:
            self._hide_what_came_in_pieces(reply)

    def _hide_what_came_in_pieces(self, reply: Reply) -> None:
        """A secret that is said bit by bit is in no frame; the reply as a whole, without it, stands in their place."""
        parts = (part for choice in reply.choices for part in choice.parts)
        said = "".join(part.text for part in parts if isinstance(part, Text | Thinking))
        if self.redaction.text(said) == said:
            return
        whole = self.redaction.text(encode(reply_json(reply)).decode()).encode()
        self._reply = sha256(whole)
        shown = FrameArrived(whole, self._clock.monotonic() - self._attempted)
        waiting, self._waiting = self._waiting, []
        self._count -= sum(isinstance(entry, FactEntry) for entry in waiting)
        is_shown = False
        for entry in waiting:
            if isinstance(entry, BodyEntry):
                self._waiting.append(entry)
            elif not isinstance(entry.fact, FrameArrived):
                self._note(entry.fact)
            elif not is_shown:
                is_shown = True
                self._note(shown)

    # --- the record ---

    @property
    def unwritten(self) -> list[FactEntry]:
        """Facts that are not on record yet: the pieces of the answer, as long as it comes."""
        return [entry for entry in self._waiting if isinstance(entry, FactEntry)]

    def commit(self) -> None:
        """Write down all that waits. A record that cannot be written is told in the log and disturbs nobody."""
        waiting = self._waiting[:]
        if (trouble := self._write()) is not None:
            self._postpone_writing(waiting, trouble)

    def ensure_recorded(self) -> bool:
        """Whether the exchange is on record, after an attempt to write down how it began: its id leaves only then."""
        if not self.is_recorded:
            frames = (n for n, each in enumerate(self._waiting) if isinstance(each, FactEntry) and _is_frame(each))
            first = next(frames, len(self._waiting))
            # What came may still have to be hidden, and is written down once it is settled.
            later, self._waiting = self._waiting[first:], self._waiting[:first]
            self.commit()
            self._waiting += later
        return self.is_recorded

    def _postpone_writing(self, entries: list[Entry], trouble: Exception) -> None:
        """Have what could not be written down written later, all of the exchange or nothing."""
        # What the store cannot take for a reason of its own will not be taken later either.
        is_passing = isinstance(trouble, Fault | OSError)
        if self._is_lost or (is_passing and self._hub.owe(entries)):
            return
        self._is_lost = True
        numbers = [each.n for each in entries if isinstance(each, FactEntry)]
        if not self.is_recorded:
            self._hub.lose(self.exchange)
        elif numbers:  # its id is known, so that it needs an end
            end = ExchangeFailed("interrupted", "the rest of this exchange could not be recorded", _MAKE_ROOM)
            self._hub.owe([FactEntry(self.exchange, numbers[0], self._clock.now(), end)])

    def _write(self) -> Exception | None:
        """Write down all that waits; what kept it from being written, if anything did."""
        entries, self._waiting = self._waiting, []
        self._hub.stop_expecting(self)
        if not entries or self._is_lost:
            return None
        try:
            self._hub.record(entries)
            self.is_recorded = True
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the record, the client is served
            _LOG.error("exchange %s could not be recorded: %r", self.exchange, error)
            return error
        return None

    def _note(self, fact: Fact) -> FactEntry:
        noted = FactEntry(self.exchange, self._count, self._clock.now(), fact)
        self._count += 1
        self._waiting.append(noted)
        return noted

    def _seconds_since_received(self) -> float:
        return self._clock.monotonic() - self.asked.received


def _is_frame(noted: FactEntry) -> bool:
    return isinstance(noted.fact, FrameArrived)


def _bare(usage: Usage | None) -> Usage | None:
    """The counts that can be; the provider's finer ones are in the raw reply."""
    told = possible(usage)
    return replace(told, extras={}) if told is not None and told.extras else told


def _unseen(trouble: Exception) -> Fault:
    why = trouble.message if isinstance(trouble, Fault) else str(trouble)
    hint = "Make the record writable again, or let requests pass without holding them."
    return Fault(
        Code.CONFIG, f"the request cannot be held, because it cannot be recorded: {why}", hint=hint, status=503
    )


def _edit_not_recorded(trouble: Exception) -> Fault:
    why = trouble.message if isinstance(trouble, Fault) else str(trouble)
    hint = "Make the record writable again, or release the request as it stands."
    return Fault(Code.CONFIG, f"the edit is not made, because it could not be recorded: {why}", hint=hint, status=503)
