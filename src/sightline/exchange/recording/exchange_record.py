"""One exchange of the record with everything that a reader of it needs: its bodies, its frames, its reply."""

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
    """An exchange. `body` is what the client sent, `sent` what went to the provider, or would have. `given` is the
    folded reply that the client got, where a user wrote or changed it."""

    summary: Summary
    facts: tuple[FactEntry, ...]
    body: bytes
    sent: bytes
    given: bytes = b""

    @property
    def id(self) -> str:
        """Its name."""
        return self.summary.id

    @cached_property
    def received(self) -> Received:
        """How it began."""
        return self._of(Received)[0]

    @cached_property
    def attempt(self) -> AttemptStarted | None:
        """The last time that it was sent."""
        return next(reversed(self._of(AttemptStarted)), None)

    @property
    def url(self) -> str:
        """Where it went, with a mask in place of a credential; nothing where that is not on record."""
        return "" if self.attempt is None else self.attempt.url

    @cached_property
    def end(self) -> ExchangeFinished | ExchangeFailed | None:
        """How its answer ended, where one came or should have."""
        ended = (entry.fact for entry in self.facts if isinstance(entry.fact, ExchangeFinished | ExchangeFailed))
        return next(ended, None)

    @cached_property
    def frames(self) -> tuple[FrameArrived, ...]:
        """The provider's answer in its pieces."""
        return tuple(self._of(FrameArrived))

    @property
    def reply_body(self) -> bytes:
        """The provider's answer, byte for byte, as far as it came."""
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
        """Whether only the tokens of a request were asked for."""
        path = self.received.path.partition("?")[0].rstrip("/")
        return path.endswith(("/count_tokens", ":countTokens"))

    @property
    def is_raw(self) -> bool:
        """Whether it was passed on as it came, and nothing of it is understood."""
        return self.received.dialect == RAW_HTTP

    @property
    def has_reply(self) -> bool:
        """Whether its answer is understood as a reply, also where the exchange is raw."""
        return not self.is_raw or bool(read_raw_reply(self.received.path, self.reply_body))

    @cached_property
    def passed(self) -> dict[str, BodyPassed]:
        """What has passed of the bodies of a raw exchange: `request` and `reply`, as far as they came."""
        return {fact.of: fact for fact in self._of(BodyPassed)}

    def need_whole_request(self) -> None:
        """A fault where only a part of its request's body is on record."""
        request = self.passed.get("request")
        if request is not None and not (request.is_whole and request.kept == request.size and not request.coding):
            message = f"only {request.kept:,} of the {request.size:,} bytes that {self.id} sent are on record"
            raise Fault(Code.USAGE, message, hint="Raise [store] raw_body_mb, and send it again.", status=422)

    def refuse_raw(self, what: str) -> None:
        """A fault where it was passed on as it came, and so cannot be `what`."""
        if self.is_raw:
            message = f"{self.id} was forwarded unchanged, so it cannot be {what}"
            raise Fault(Code.USAGE, message, hint="Look at its bodies as they are: --as wire, or its view.", status=422)

    @property
    def usage(self) -> Usage | None:
        """What the provider counted, or an estimate that is marked as one."""
        ends = (ExchangeFinished, ExchangeFailed, ExchangeCancelled)
        ended = (entry.fact for entry in self.facts if isinstance(entry.fact, ends))
        return next((fact.usage for fact in ended if fact.usage is not None), None)

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """The headers of the answer."""
        return () if self.end is None else self.end.headers

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What translations did not carry, of the request and of the reply."""
        return tuple(loss for fact in self._of(Translated) for loss in fact.report)

    @property
    def additions(self) -> tuple[Addition, ...]:
        """What translations had to add."""
        return tuple(each for fact in self._of(Translated) for each in fact.additions)

    @property
    def fault(self) -> Fault | None:
        """What it failed with, or was cancelled for."""
        for cancelled in self._of(ExchangeCancelled):
            message = f"the request was cancelled: {CANCEL_WORDS[cancelled.reason]}"
            hint = "Send it again if it is still wanted."
            return Fault(Code.CANCELLED, message, hint=hint, reason=cancelled.reason)
        if not isinstance(self.end, ExchangeFailed):
            return None
        code = _CODES.get(self.end.code, Code.UPSTREAM_ERROR)
        return Fault(code, self.end.message, hint=self.end.hint, status=self.end.status or None)

    def request(self) -> Request:
        """What was sent, read; a fault where it is not of its dialect."""
        self.refuse_raw("read as a request for a model")
        return read_request(self.spoken, self.sent, self.model)

    def events(self) -> list[StreamEvent]:
        """The events of the response in order; the last one is the fault that the exchange ended with, if it did."""
        if self.is_raw and (read := read_raw_reply(self.received.path, self.reply_body)):
            return read
        self.refuse_raw("read as the events of a reply")
        hearing = ReplyDecoder(dialect(self.spoken))
        events = [event for frame in self.frames for event in hearing.feed(frame.data)]
        return events + self.last_events(hearing)

    def last_events(self, hearing: ReplyDecoder) -> list[StreamEvent]:
        """What is left to tell when all frames have been heard."""
        if self.fault is not None or not self.frames:
            return hearing.fail(self.fault or truncation_fault())
        return hearing.close()

    def reply(self) -> Reply:
        """The answer, folded."""
        return fold(self.events(), self.spoken)

    def _of(self, kind: type[F]) -> list[F]:
        """The facts of this kind."""
        return [entry.fact for entry in self.facts if isinstance(entry.fact, kind)]


def read_request(spoken: str, body: bytes, model: str) -> Request:
    """A request body, with the model that its path may have named."""
    request = dialect(spoken).read_request(decode(body))
    return request if request.model else msgspec.structs.replace(request, model=model)


async def find_exchange(store: Store, wanted: str, *, now: float) -> Summary:
    """The one exchange whose id this is, or begins with this."""
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
    """All of an exchange; its facts alone where its bodies are not needed."""
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
    """Of the client's body, and of the one that was sent. What was translated after that is the reply."""
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
