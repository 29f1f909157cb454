"""One recorded exchange with everything that its readers need: its bodies, its frames, its reply."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import msgspec

from sightline.dialects.endpoint import read_raw_reply
from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.dialects.streaming import truncation_fault
from sightline.errors import CANCEL_WORDS, Code, Fault
from sightline.filters.expression import TextTerm
from sightline.filters.predicate import literal
from sightline.model.events import StreamEvent
from sightline.model.exchange import (
    RAW_HTTP,
    Answered,
    AttemptStarted,
    BodyPassed,
    Edited,
    ExchangeCancelled,
    ExchangeFailed,
    ExchangeFinished,
    Fact,
    FrameArrived,
    Received,
    Released,
    Translated,
)
from sightline.model.fold import fold
from sightline.model.reply import Reply, Usage
from sightline.model.report import Addition, Loss
from sightline.model.request import Request
from sightline.store.entries import FactEntry
from sightline.store.store import Store
from sightline.store.summary import Summary
from sightline.wire.jsontext import decode

F = TypeVar("F", bound=Fact)
_CODES = {code.value: code for code in Code}


@dataclass(frozen=True)
class RecordedExchange:
    """A recorded exchange. `body` is what the client sent, `sent` what was sent to the provider, or would have been.
    `given` is the folded reply that the client got, if a user wrote or changed it."""

    summary: Summary
    facts: tuple[FactEntry, ...]
    body: bytes
    sent: bytes
    given: bytes = b""

    @property
    def id(self) -> str:
        """The id of the exchange."""
        return self.summary.id

    @cached_property
    def received(self) -> Received:
        """The fact with which it began."""
        return self._of(Received)[0]

    @cached_property
    def attempt(self) -> AttemptStarted | None:
        """The last attempt to send it; None if there was none."""
        return next(reversed(self._of(AttemptStarted)), None)

    @property
    def url(self) -> str:
        """The address that it was sent to, with credentials masked; empty if that is not recorded."""
        return "" if self.attempt is None else self.attempt.url

    @cached_property
    def end(self) -> ExchangeFinished | ExchangeFailed | None:
        """How its response ended; None if the exchange was cancelled, dropped, or has not ended."""
        ended = (entry.fact for entry in self.facts if isinstance(entry.fact, ExchangeFinished | ExchangeFailed))
        return next(ended, None)

    @cached_property
    def frames(self) -> tuple[FrameArrived, ...]:
        """The provider's response in pieces."""
        return tuple(self._of(FrameArrived))

    @property
    def reply_body(self) -> bytes:
        """The provider's response, byte for byte, as far as it arrived."""
        return b"".join(frame.data for frame in self.frames)

    @property
    def spoken(self) -> str:
        """The dialect between Sightline and the provider."""
        return (self.attempt.dialect if self.attempt else "") or self.received.dialect

    @property
    def model(self) -> str:
        """The model that the provider was asked for."""
        return (self.attempt.model if self.attempt else "") or self.received.model

    @property
    def is_count(self) -> bool:
        """Whether the request only asked for a token count."""
        path = self.received.path.partition("?")[0].rstrip("/")
        return path.endswith(("/count_tokens", ":countTokens"))

    @property
    def is_raw(self) -> bool:
        """Whether it was passed on as it arrived, in no known dialect."""
        return self.received.dialect == RAW_HTTP

    @property
    def has_reply(self) -> bool:
        """Whether its response can be read as a reply, even if the exchange is raw."""
        return not self.is_raw or bool(read_raw_reply(self.received.path, self.reply_body))

    @cached_property
    def passed(self) -> dict[str, BodyPassed]:
        """The bodies of a raw exchange that passed, `request` and `reply`, as far as they arrived."""
        return {fact.of: fact for fact in self._of(BodyPassed)}

    def need_whole_request(self) -> None:
        """Raise a fault if only a part of the request's body is recorded."""
        request = self.passed.get("request")
        if request is not None and not (request.is_whole and request.kept == request.size and not request.coding):
            message = f"only {request.kept:,} of the {request.size:,} bytes that {self.id} sent are on record"
            raise Fault(Code.USAGE, message, hint="Raise [store] raw_body_mb, and send it again.", status=422)

    def refuse_raw(self, what: str) -> None:
        """Raise a fault if the exchange is raw, and thus cannot be `what`."""
        if self.is_raw:
            message = f"{self.id} was forwarded unchanged, so it cannot be {what}"
            raise Fault(Code.USAGE, message, hint="Look at its bodies as they are: --as wire, or its view.", status=422)

    @property
    def usage(self) -> Usage | None:
        """The usage that the provider reported, or an estimate that is marked as one; None if there is neither."""
        ends = (ExchangeFinished, ExchangeFailed, ExchangeCancelled)
        ended = (entry.fact for entry in self.facts if isinstance(entry.fact, ends))
        return next((fact.usage for fact in ended if fact.usage is not None), None)

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """The headers of the response."""
        return () if self.end is None else self.end.headers

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What translations lost of the request and of the reply."""
        return tuple(loss for fact in self._of(Translated) for loss in fact.report)

    @property
    def additions(self) -> tuple[Addition, ...]:
        """What translations had to add."""
        return tuple(each for fact in self._of(Translated) for each in fact.additions)

    @property
    def fault(self) -> Fault | None:
        """The fault with which it failed, or for which it was cancelled; None if it did neither."""
        for cancelled in self._of(ExchangeCancelled):
            message = f"the request was cancelled: {CANCEL_WORDS[cancelled.reason]}"
            hint = "Send it again if it is still wanted."
            return Fault(Code.CANCELLED, message, hint=hint, reason=cancelled.reason)
        if not isinstance(self.end, ExchangeFailed):
            return None
        code = _CODES.get(self.end.code, Code.UPSTREAM_ERROR)
        return Fault(code, self.end.message, hint=self.end.hint, status=self.end.status or None)

    def request(self) -> Request:
        """The request that was sent, parsed. Raises a fault if it is not in its dialect."""
        self.refuse_raw("read as a request for a model")
        return read_request(self.spoken, self.sent, self.model)

    def events(self) -> list[StreamEvent]:
        """The events of the response in order; the last one is the fault with which the exchange ended, if it did."""
        if self.is_raw and (read := read_raw_reply(self.received.path, self.reply_body)):
            return read
        self.refuse_raw("read as the events of a reply")
        hearing = ReplyDecoder(dialect(self.spoken))
        events = [event for frame in self.frames for event in hearing.feed(frame.data)]
        return events + self.last_events(hearing)

    def last_events(self, hearing: ReplyDecoder) -> list[StreamEvent]:
        """The remaining events once all frames have been parsed."""
        if self.fault is not None or not self.frames:
            return hearing.fail(self.fault or truncation_fault())
        return hearing.close()

    def reply(self) -> Reply:
        """The reply, folded from its events."""
        return fold(self.events(), self.spoken)

    def _of(self, kind: type[F]) -> list[F]:
        """The facts of this kind."""
        return [entry.fact for entry in self.facts if isinstance(entry.fact, kind)]


def read_request(spoken: str, body: bytes, model: str) -> Request:
    """A parsed request body, with the model from its path if it names none."""
    request = dialect(spoken).read_request(decode(body))
    return request if request.model else msgspec.structs.replace(request, model=model)


async def find_exchange(store: Store, wanted: str, *, now: float) -> Summary:
    """The one exchange whose id is, or begins with, `wanted`. Raises a fault if there is none, or more than one."""
    name = wanted if wanted.startswith("x_") else f"x_{wanted}"
    found = await store.find(TextTerm("id", f"{literal(name)}*"), now=now, limit=3) if wanted else []
    exact = [summary for summary in found if summary.id == name]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if found:
        known = ", ".join(summary.id for summary in found[:2])
        hint = f"Give more of it: {known}{' and others' if len(found) > 2 else ''}."
        raise Fault(Code.USAGE, f"several exchanges begin with {wanted!r}", hint=hint)
    raise Fault(Code.USAGE, f"there is no exchange {wanted!r}", hint="`sightline traffic` lists them.")


async def load_exchange(store: Store, summary: Summary, *, needs_bodies: bool = True) -> RecordedExchange:
    """All of an exchange; without `needs_bodies`, only its facts."""
    facts = tuple(await store.facts(summary.id))
    if not needs_bodies:
        return RecordedExchange(summary, facts, b"", b"")
    received, sent = hashes_of(facts)
    body = await _body(store, summary.id, received)
    replies = [entry.fact.sha256 for entry in facts if isinstance(entry.fact, Answered)]
    given = await _body(store, summary.id, replies[-1] if replies else "")
    sent_body = body if sent == received else await _body(store, summary.id, sent)
    return RecordedExchange(summary, facts, body, sent_body, given)


def hashes_of(facts: Iterable[FactEntry]) -> tuple[str, str]:
    """The hash of the client's body, and of the one that was sent. A translation after sending is that of the reply."""
    received = sent = ""
    is_sent = False
    for entry in facts:
        match entry.fact:
            case Received(sha256=sha256):
                received = sent = sha256
            case Translated(sha256=sha256) | Released(sha256=sha256) if sha256 and not is_sent:
                sent = sha256
            case Edited(after=sha256) if sha256 and not is_sent:
                sent = sha256
            case AttemptStarted(sha256=sha256):
                sent, is_sent = sha256 or sent, True
            case BodyPassed(of="request", kept_sha256=sha256):
                received, sent = received or sha256, sent or sha256
            case _:
                pass
    return received, sent


async def _body(store: Store, exchange: str, sha256: str) -> bytes:
    body = await store.body(exchange, sha256) if sha256 else b""
    if body is None:
        hint = "Retention has taken it; `sightline show --as facts` still tells what happened."
        raise Fault(Code.USAGE, f"the record no longer holds a body of {exchange}", hint=hint)
    return body
