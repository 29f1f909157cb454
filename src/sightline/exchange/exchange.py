"""One request's way through: what was decided about it, what its time went to, and how it is cut short."""

import asyncio
from collections.abc import Callable
from functools import cached_property

from sightline.catalog.choose import ModelChoice
from sightline.errors import Fault
from sightline.exchange.answers import refusal
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.client_response import ClientResponse, Headers
from sightline.exchange.keepalive import HoldSignal
from sightline.exchange.observed_hub import Telling
from sightline.exchange.recorder import Recorder
from sightline.exchange.stream_pump import StreamPump
from sightline.transport.clock import Clock


class Journey:
    """`secrets` are those of the providers' settings; `reason` is why it was cut off here; `losses` is how much of the
    request its provider does not get. `noted` is told what happens on its way. `is_stopped` says that its answer is
    looked at here before it goes on."""

    def __init__(
        self,
        asked: ClientRequest,
        exchange: str,
        clock: Clock,
        secrets: tuple[str, ...],
        ended: Callable[["Journey"], None],
        noted: Telling | None = None,
    ) -> None:
        self.asked = asked
        self.exchange = exchange
        self.noted = noted
        self.live: Recorder | None = None
        self.choice: ModelChoice | None = None
        self.secrets = secrets
        self.losses = 0
        self.sent = b""
        """The body as it went to the provider, after content decoding."""
        self.reason: Fault | None = None
        self.is_stopped = False
        self.task = asyncio.current_task()
        self._clock = clock
        self._waited = self._since = 0.0
        self._depth = 0
        self._passing: StreamPump | None = None
        self._ended = ended

    @cached_property
    def patience(self) -> HoldSignal:
        """Whether somebody is waited for; most journeys never need to know."""
        return HoldSignal()

    @property
    def chosen(self) -> ModelChoice:
        """Where it goes, once that is decided."""
        assert self.choice is not None
        return self.choice

    @property
    def is_passing(self) -> bool:
        """Whether its answer streams to the client now."""
        return self._passing is not None and not self.is_stopped

    def passes(self, passing: StreamPump) -> None:
        """Its answer begins to stream."""
        self._passing = passing

    def is_done(self) -> None:
        """Its answer has ended, one way or the other."""
        if not self.is_stopped:
            self._ended(self)

    def abort(self, reason: Fault) -> None:
        """End it now; its client is told why."""
        if self._passing is not None and not self.is_stopped:
            self._passing.abort(reason)
        elif self.task is not None:
            self.reason = reason
            self.task.cancel()

    def waiting(self) -> "Journey":
        """For a `with`: what passes meanwhile is others' time."""
        return self

    def __enter__(self) -> None:
        if not self._depth:
            self._since = self._clock.monotonic()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:  # else it is within a wait that is longer
            self._waited += self._clock.monotonic() - self._since

    def own_headers(self) -> Headers:
        """The headers that every answer of an exchange gets from us; its id only if it is on record."""
        now = self._clock.monotonic()
        waiting = now - self._since if self._depth else 0.0
        overhead = max(0.0, now - self.asked.received - self._waited - waiting) * 1000
        headers: Headers = [(b"x-sightline-overhead-ms", f"{overhead:.3f}".encode())]
        if self.live is not None and self.live.ensure_recorded():
            headers.insert(0, (b"x-sightline-exchange", self.exchange.encode()))
        if self.losses:
            headers.append((b"x-sightline-losses", str(self.losses).encode()))
        return headers

    def refuse(self, live: Recorder, fault: Fault) -> ClientResponse:
        """The fault, in the words of the client's dialect and on the record."""
        fault.message = live.redaction.text(fault.message)
        answer = refusal(self.asked.dialect, fault, [], self.exchange)
        live.fail(fault, answer.status)
        answer.headers += self.own_headers()
        return answer
