"""A client's request on its way to a provider, and the answer on its way back."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import lru_cache

from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import ModelChoice
from sightline.catalog.provider import Provider
from sightline.errors import Code, Fault
from sightline.exchange.cancellation import cancel_reason
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.client_response import ClientResponse
from sightline.exchange.exchange import Journey
from sightline.exchange.final_body import FinalBody, refuse_other
from sightline.exchange.hold import Let
from sightline.exchange.holds import Holds
from sightline.exchange.hub import Hub, RunObserver
from sightline.exchange.interceptor import Interceptor, carrying
from sightline.exchange.keepalive import can_tick, run_with_keepalive
from sightline.exchange.memory import Memory
from sightline.exchange.observed_hub import ObservedHub, Telling
from sightline.exchange.outbound import Outbound, PassThrough, body_of, outbound_for, secrets_of_provider
from sightline.exchange.recorder import Recorder
from sightline.exchange.request_counter import RequestCounter
from sightline.exchange.responder import Responder
from sightline.exchange.routing import has_credential, route_for
from sightline.exchange.rule_subject import session_of
from sightline.store.entries import FactEntry
from sightline.transport.clock import Clock
from sightline.transport.embedded.process import KEY_VARIABLE, URL_VARIABLE, EmbeddedModel
from sightline.transport.http.target import Timeouts, target
from sightline.transport.sender import Answer, Outgoing, RefusedResponse, Sender

_MOST_ROUTES = 4096
_LAST_WORDS = 1.0
_ANYWHERE = frozenset({"0.0.0.0", "::", "localhost", "127.0.0.1", "::1"})


class Relay:
    """Passes requests on. `own` are the addresses, host and port, at which this server listens; whoever starts to
    listen later sets them then. `holds` is what is stopped on the way, and what will be."""

    def __init__(
        self,
        *,
        catalog: Catalog,
        environment: Mapping[str, str],
        sender: Sender,
        embedded: EmbeddedModel,
        memory: Memory,
        hub: Hub,
        clock: Clock,
        make_id: Callable[[], str],
        own: frozenset[tuple[str, int]] = frozenset(),
        holds: Holds | None = None,
    ) -> None:
        self.own = own
        self.holds = holds or Holds(memory, clock.now)
        self._gate = Interceptor(self.holds, clock)
        self._catalog = catalog
        self._environment = environment
        self._sender = sender
        self._embedded = embedded
        self._hub = hub
        self._clock = clock
        self._make_id = make_id
        self._home = Responder(memory, RequestCounter(memory), clock)
        # Those of every provider, since nobody can say who has heard of which.
        keys = (key for each in catalog.providers.values() for key in secrets_of_provider(each, environment))
        self._secrets = tuple(dict.fromkeys(keys))
        self._routes: dict[tuple[str, str, str, bool], ModelChoice] = {}
        self._passing = PassThrough()
        self._other: tuple[str, frozenset[tuple[str, int]]] = "", own
        """The address of the latest request, which is not this server's."""
        self._active: set[Journey] = set()
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self._is_closing = False

    async def start(self, asked: ClientRequest, noted: Telling | None = None) -> ClientResponse:
        """Send it on; the answer's head is here when this returns. Whatever a provider or the network does is an
        answer in the client's dialect. To be cancelled means that the client has gone.

        A caller of our own may want to hear of what happens on the way: `noted` gets each fact but frames, once it is
        on record.
        """
        journey = Journey(asked, asked.exchange or self._make_id(), self._clock, self._secrets, self._forget, noted)
        if (self.holds.is_idle and not asked.hold) or not can_tick(asked):
            return await self._start(journey)
        return await run_with_keepalive(journey, self._start_in_task(journey), self._clock)

    async def _start_in_task(self, journey: Journey) -> ClientResponse:
        """The same in a task of its own."""
        journey.task = asyncio.current_task()
        return await self._start(journey)

    async def _start(self, journey: Journey) -> ClientResponse:
        try:
            return await self._run(journey)
        except Fault as fault:
            return journey.refuse(self._live(journey), journey.reason or fault)
        except asyncio.CancelledError:
            if journey.reason is None:
                self._live(journey).cancel(cancel_reason())
                raise
            # It was cut off here and not by the caller, who gets an answer.
            assert journey.task is not None
            journey.task.uncancel()
            return journey.refuse(self._live(journey), journey.reason)
        finally:
            if not journey.is_passing:
                self._forget(journey)

    def final_body(self, asked: ClientRequest) -> FinalBody:
        """The body that this request goes out with, after masks: the same steps as a send takes, and nothing sent."""
        choice = self._route_for(asked)
        body = body_of(asked, choice).body
        return self.holds.final_body(
            body, choice.dialect, choice.model, session=session_of(asked), masks=asked.masks and not asked.counts
        )

    async def wait_until_learned(self) -> None:
        """Wait until all that providers have counted so far has been learned from."""
        await self._home.learning.wait_until_idle()

    @property
    def observer(self) -> RunObserver | None:
        """Whoever follows runs from outside."""
        return self._hub.observer

    @property
    def secrets(self) -> tuple[str, ...]:
        """The configured keys, which nothing that is kept may repeat."""
        return self._secrets

    def is_missing(self, exchange: str) -> bool:
        """Whether an exchange went out and could not be written down."""
        return self._hub.is_missing(exchange)

    def unwritten(self, exchange: str) -> list[FactEntry]:
        """Facts of an exchange under way that are not on record yet."""
        lives = (journey.live for journey in self._active if journey.exchange == exchange)
        return next((live.unwritten for live in lives if live is not None), [])

    async def close(self, grace: float) -> None:
        """Let what is under way end within so many seconds; then cut it off, so that each client is told."""
        self._is_closing = True
        self.holds.close()
        await self._wait_until_empty(grace)
        for journey in list(self._active):
            journey.abort(_closing())
        await self._wait_until_empty(_LAST_WORDS)
        await self._home.learning.close()

    async def _wait_until_empty(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._is_empty.wait()
        except TimeoutError:
            return

    def _forget(self, journey: Journey) -> None:
        self._active.discard(journey)
        if not self._active:
            self._is_empty.set()

    def _live(self, journey: Journey) -> Recorder:
        """The record of a journey, which begins with it."""
        if journey.live is None:
            hub = self._hub if journey.noted is None else ObservedHub(self._hub, journey.noted)
            journey.live = Recorder(journey.asked, journey.exchange, hub, self._clock, self._secrets)
        return journey.live

    # --- on the way out ---

    async def _run(self, journey: Journey) -> ClientResponse:
        if self._is_closing:
            raise _closing()
        self._active.add(journey)
        self._is_empty.clear()
        asked = journey.asked
        choice = journey.choice = self._route_for(asked)
        live = self._live(journey)
        if asked.counts and choice.dialect != asked.dialect:
            return self._home.answer_with_estimate(journey, live)
        make = self._passing.on if choice.dialect == asked.dialect else outbound_for
        shown: Outbound | None = None
        let: Let | None = None
        if (asked.hold or not self.holds.is_idle) and not asked.counts:
            # Before the embedded model's turn, which nobody shall lose because another one's request is held.
            shown = make(asked, choice, self._stand_ins(choice.provider))
            stopped = await self._gate.request(journey, live, shown, self._record_body(journey, live, shown))
            if isinstance(stopped, ClientResponse):
                return stopped
            let = stopped
        async with AsyncExitStack() as stack:
            variables = await self._variables_for(journey, choice.provider, live, stack)
            # What was shown is what goes out, but for the address of the embedded model, which is known only now.
            outbound = make(asked, choice, variables) if shown is None or choice.provider.embedded else shown
            self._refuse_itself(outbound.request.url)
            digest = self._record_body(journey, live, outbound) if let is None else let.sha256
            if let is None:
                refuse_other(asked.expect_sha256, digest)
            answer = await self._send(journey, live, outbound if let is None else carrying(outbound, let), digest)
            live.record_head(*_head_of(answer))
            if isinstance(answer, RefusedResponse):
                journey.is_stopped = False
                return self._home.answer_with_error(journey, live, answer)
            stack.push_async_callback(answer.response.close)
            coming = self._home.answer_with_response(journey, live, answer, outbound, stack)
            return await (self._gate.reply(journey, live, coming) if journey.is_stopped else coming)

    def _route_for(self, asked: ClientRequest) -> ModelChoice:
        key = asked.dialect, asked.provider, asked.model, has_credential(asked)
        choice = self._routes.get(key)
        if choice is None:
            choice = route_for(self._catalog, asked, self._has_key)
            if len(self._routes) >= _MOST_ROUTES:
                self._routes.clear()
            self._routes[key] = choice
        return choice

    def _has_key(self, provider: Provider) -> bool:
        return provider.embedded or not provider.key_env or bool(self._environment.get(provider.key_env, "").strip())

    async def _variables_for(
        self, journey: Journey, provider: Provider, live: Recorder, stack: AsyncExitStack
    ) -> Mapping[str, str]:
        """The variables for a call to this provider; the embedded model is started, and answers one at a time. It
        counts beside an answer."""
        if not provider.embedded:
            return self._environment
        live.commit()  # it may be long until its turn
        with journey.waiting():
            if journey.asked.counts:
                running = await self._embedded.running()
            else:
                running = (await stack.enter_async_context(self._embedded.turn())).running
        return {**self._environment, URL_VARIABLE: running.url, KEY_VARIABLE: running.key}

    def _refuse_itself(self, url: str) -> None:
        if (url, self.own) == self._other:
            return
        origin = target(url).origin
        for host, port in self.own:
            is_here = origin.host == host or (host in _ANYWHERE and origin.is_loopback)
            if origin.port == port and is_here:
                raise Fault(
                    Code.CONFIG,
                    f"the provider's address {origin.place} is Sightline itself",
                    hint="Set base_url to the provider's own address.",
                    status=508,
                )
        self._other = url, self.own

    def _stand_ins(self, provider: Provider) -> Mapping[str, str]:
        """The variables for a request that is only shown: the embedded model need not run for that."""
        if not provider.embedded:
            return self._environment
        return {**self._environment, URL_VARIABLE: "http://127.0.0.1", KEY_VARIABLE: "local"}

    def _record_body(self, journey: Journey, live: Recorder, outbound: Outbound) -> str:
        """The hash of the body, which is on record with what it lost on its way into another dialect."""
        if outbound.body is journey.asked.body:
            return live.sha256
        digest = live.keep_body(outbound.body)
        if outbound.report is not None:
            live.record_translation(journey.chosen.dialect, digest, outbound.report)
            journey.losses = len(outbound.report.losses)
        return digest

    async def _send(self, journey: Journey, live: Recorder, outbound: Outbound, digest: str) -> Answer:
        choice, asked = journey.chosen, journey.asked
        provider = choice.provider
        journey.sent = outbound.body
        outgoing = Outgoing(
            request=outbound.request,
            provider=choice.provider_name,
            model=choice.model,
            dialect=choice.dialect,
            stream=asked.is_stream,
            retries=_retries(choice, asked),
            timeouts=_timeouts(
                provider.connect_timeout_ms, provider.first_byte_timeout_ms, provider.stream_idle_timeout_ms
            ),
            direct=provider.embedded,
            tokens=asked.tokens,
            max_wait=asked.max_wait,
            secrets=live.redaction.secrets,
            sha256=digest,
        )
        with journey.waiting():
            return await self._sender.send(outgoing, live.record_attempt)


def _retries(choice: ModelChoice, asked: ClientRequest) -> int:
    """How often it is sent again: what is said for this request, then for its route, then for its provider."""
    if asked.retries is not None:
        return asked.retries
    if choice.route is not None and choice.route.retries is not None:
        return choice.route.retries
    return choice.provider.retries(is_stream=asked.is_stream, is_own=asked.is_own)


@lru_cache(maxsize=256)
def _timeouts(connect: int, first_byte: int, idle: int) -> Timeouts:
    return Timeouts(connect / 1000, first_byte / 1000, idle / 1000)


def _head_of(answer: Answer) -> tuple[int, tuple[tuple[bytes, bytes], ...]]:
    if isinstance(answer, RefusedResponse):
        return answer.status, answer.headers
    return answer.response.status, answer.response.headers


def _closing() -> Fault:
    return Fault(Code.OVERLOADED, "Sightline is shutting down", hint="Send the request again later.", status=503)
