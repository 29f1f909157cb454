"""One exchange: a client's request with its route, its phase and its recorder, from its arrival to its end.

All state that changes while a request is served is kept here.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sightline.catalog.choose import ModelChoice
from sightline.dialects.registry import dialect
from sightline.dialects.stored import StoredApi
from sightline.errors import Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.client_response import ClientResponse, Headers, limits_for_client, refusal, request_id
from sightline.exchange.hub import Hub
from sightline.exchange.lane import Lane, LaneRoute
from sightline.exchange.phase import (
    TRANSITIONS,
    CancelledEnd,
    ExchangeEnd,
    ExchangePhase,
    FailedEnd,
    FinishedEnd,
)
from sightline.exchange.recorder import FactObserver, Recorder
from sightline.exchange.reply_reader import read_so_far
from sightline.exchange.request_counter import RequestCounter
from sightline.exchange.routing import owner_of
from sightline.model.exchange import ReplyStored
from sightline.store.entries import FactEntry, KeptEntry
from sightline.tokens.ledger import SentRequest
from sightline.transport.sender import RequestClient
from sightline.transport.waiting import Clock

if TYPE_CHECKING:
    from sightline.exchange.caps import Reservation

_OK = 200


def storage_of(spoken: str) -> StoredApi | None:
    """How the API of a dialect stores replies; None if it does not."""
    endpoint = dialect(spoken).endpoint
    return None if endpoint is None else endpoint.stored


class Exchange:
    """The state of one request. `secrets` are the configured keys, which no client may see. `losses` counts what
    translations lost of request and reply. `sent_body` is the body that was sent to the provider, after content
    decoding. `abort_reason` is set if this server, and not the client, aborts the exchange.

    With `holds_calls`, the whole response is read before the client gets any of it, because its tool calls may be held.
    `on_streamed` is called when a response that was streamed to the client has ended. `client` sends the request in
    place of the HTTP client. `counter` estimates the usage if the provider does not report it.
    """

    choice: ModelChoice
    """The provider and the model, once the request is routed."""
    route: LaneRoute
    """The route, with everything derived from it that similar requests share."""
    phase = ExchangePhase.RECEIVED
    losses = 0
    sent_body = b""
    abort_reason: Fault | None = None
    holds_calls = False
    sent: SentRequest | None = None
    """The ledger's entry of the first attempt, if that was already sent; see `resume`."""
    reservation: "Reservation | None" = None
    """What the caps have reserved for this exchange."""
    _waited = _wait_began = 0.0
    _wait_depth = 0
    _abort_stream: Callable[[Fault], None] | None = None
    _response_end: ExchangeEnd | None = None

    def __init__(
        self,
        request: ClientRequest,
        exchange: str,
        hub: Hub,
        clock: Clock,
        secrets: tuple[str, ...] = (),
        lane: Lane | None = None,
        *,
        observer: FactObserver | None = None,
        make_recorder: Callable[..., Recorder] = Recorder,
        on_streamed: Callable[["Exchange"], None] | None = None,
        client: RequestClient | None = None,
        counter: RequestCounter | None = None,
    ) -> None:
        self.request = request
        self.id = exchange
        self.secrets = secrets
        self.client = client
        self.lane = lane or Lane(request, secrets)
        self.recorder = make_recorder(request, exchange, hub, clock, self.lane.caller, observer)
        self.task = asyncio.current_task()
        self._clock = clock
        self._on_streamed = on_streamed
        self._counter = counter

    def resume(self, entries: list[KeptEntry], sent: SentRequest, attempted: float, *, is_recorded: bool) -> None:
        """Continue an exchange whose request was already sent. The time since then counts as waiting; see
        `Recorder.resume`."""
        self.sent = sent
        self._waited = self._clock.monotonic() - attempted
        self.recorder.resume(entries, attempted, is_recorded=is_recorded)

    # --- route and phase ---

    def enter(self, phase: ExchangePhase) -> None:
        """Move to another phase. Raises RuntimeError if the transition is not allowed."""
        if phase not in TRANSITIONS[self.phase]:
            raise RuntimeError(f"exchange {self.id} cannot go from {self.phase} to {phase}")
        self.phase = phase

    @property
    def is_over(self) -> bool:
        """Whether the end of the exchange is recorded."""
        return self.phase.is_end

    @property
    def unwritten(self) -> list[FactEntry]:
        return self.recorder.unwritten

    def end(self, end: ExchangeEnd) -> None:
        """Record how the exchange ended, with an estimated usage if the provider has not reported one. Caps are settled
        with the reported usage: an estimate may be too low for them."""
        self.enter(end.phase)
        self.recorder.record_end(self._with_estimate(end))
        if self.reservation is not None:
            self.reservation.caps.settle(self.reservation, self, end)

    def _with_estimate(self, end: ExchangeEnd) -> ExchangeEnd:
        if self._counter is None or not self.sent_body or self.request.counts or self.request.method:
            return end
        match end:
            case FinishedEnd(reply=reply):
                counted = self._counter.with_estimate(
                    self.choice, self.sent_body, reply, lambda: self.recorder.response
                )
                return end if counted is reply else replace(end, reply=counted)
            case FailedEnd() | CancelledEnd() if self.recorder.status == _OK:
                # The provider charges for the prompt, and for what it has written so far.
                read = read_so_far(self.choice.dialect, self.recorder.response)
                if read.usage is None and not any(each.parts for each in read.choices):
                    return end
                usage = self._counter.estimate_usage(self.choice, self.sent_body, read)
                return end if usage is None else dataclasses.replace(end, usage=usage)
            case _:
                return end

    def end_response(self, end: ExchangeEnd) -> None:
        """The provider's response has ended. This ends the exchange too, unless the response's tool calls may be held:
        then `conclude` ends it once that is decided."""
        if self.holds_calls:
            self._response_end = end
        else:
            self.end(end)

    def settle_response(self) -> None:
        """Record the frames of the complete response before a user sees its tool calls."""
        if self._response_end is not None:
            self.recorder.settle(self._response_end)

    def conclude(self) -> None:
        """End the exchange as its response ended, unless it is over or the response has not ended."""
        if self._response_end is not None and not self.is_over:
            self.end(self._response_end)

    def store_reply(self, created: int) -> str:
        """The id by which the client can retrieve the reply later; `created` is the reply's time. Empty if the client
        did not ask for it to be stored. Used for replies that no provider stores."""
        request = self.request
        api = storage_of(request.dialect)
        if api is None or request.is_own or not api.wants(request.body):
            return ""
        self.recorder.note(ReplyStored(owner_of(request), created))
        return f"{api.prefix}{self.id}"

    def refuse(self, fault: Fault) -> ClientResponse:
        """The fault as a response in the client's dialect. The exchange fails with it, unless it is over."""
        fault.message = self.recorder.redaction.text(fault.message)
        response = refusal(self.request.caller or self.request.dialect, fault, [], self.id)
        if not self.is_over:
            self.end(FailedEnd(fault, response.status))
        response.headers += self.own_headers()
        return response

    # --- a response that streams ---

    @property
    def is_streaming(self) -> bool:
        return self._abort_stream is not None and not self.holds_calls

    def stream(self, abort: Callable[[Fault], None]) -> None:
        """The response begins to stream; `abort` ends the stream."""
        self._abort_stream = abort

    def end_stream(self) -> None:
        # It refers to this exchange: everything received would stay in memory until the garbage collector runs.
        self._abort_stream = None
        if self._on_streamed is not None and not self.holds_calls:
            self._on_streamed(self)

    def abort(self, reason: Fault) -> None:
        """End the exchange now and report the reason to its client."""
        if self._abort_stream is not None and not self.holds_calls:
            self._abort_stream(reason)
        else:
            self.abort_reason = reason
            if self.task is not None:  # otherwise it ends as soon as a task runs it
                self.task.cancel()

    # --- time ---

    def waiting(self) -> "Exchange":
        """A context manager: the time inside it is spent by the provider or the user, and is not this server's
        overhead."""
        return self

    def __enter__(self) -> None:
        if not self._wait_depth:
            self._wait_began = self._clock.monotonic()
        self._wait_depth += 1

    def __exit__(self, *_: object) -> None:
        self._wait_depth -= 1
        if not self._wait_depth:  # otherwise it is nested in a longer wait
            self._waited += self._clock.monotonic() - self._wait_began

    @contextmanager
    def waiting_for_user(self) -> Iterator[None]:
        """A context manager: inside it the exchange waits for a user, or for a reply that a user may have to see."""
        self.user_awaited.set()
        try:
            with self.waiting():
                yield
        finally:
            self.user_awaited.clear()

    @cached_property
    def user_awaited(self) -> asyncio.Event:
        """Set while the exchange waits for a user, so that the client's connection is kept alive. Created on demand,
        since most exchanges do not need it."""
        return asyncio.Event()

    def own_headers(self, passed: Headers | None = None) -> Headers:
        """The headers that Sightline adds to every response; the exchange's id only if it is recorded. `passed` are the
        provider's headers that the client gets; without them, the client gets the provider's request id and rate limits
        under the names of its own dialect."""
        now = self._clock.monotonic()
        own = (self._wait_began if self._wait_depth else now) - self.request.received - self._waited
        headers: Headers = [(b"x-sightline-overhead-ms", b"%.3f" % (own * 1000 if own > 0 else 0.0))]
        if self.recorder.is_recorded or self.recorder.ensure_recorded():
            headers.insert(0, (b"x-sightline-exchange", self.id.encode()))
        if self.losses:
            headers.append((b"x-sightline-losses", str(self.losses).encode()))
        if self.reservation is not None and self.reservation.note:
            headers.append((b"x-sightline-cap", self.reservation.note.encode()))
        return headers if self.request.method else headers + self._client_headers(passed)

    def _client_headers(self, passed: Headers | None) -> Headers:
        came, client = self.recorder.response_headers, self.request.dialect
        asked = self.choice.dialect if came else ""
        own = self.id if self.recorder.is_recorded else ""
        headers = request_id(client, asked, came, passed or (), own)
        return headers if passed is not None else headers + limits_for_client(client, came, self._clock.now())
