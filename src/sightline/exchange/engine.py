"""The engine: sends Sightline's own requests as exchanges, in the same form as a client's, and reads each response: its
events as they arrive, and the reply that they add up to.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from sightline.catalog.choose import ModelChoice
from sightline.dialects.endpoint import count_call, counting_of, endpoint_of, in_path, read_token_count
from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.client_response import ClientResponse, header
from sightline.exchange.memory import Memory
from sightline.exchange.outbound import SESSION, Prepared
from sightline.exchange.phase import own_request
from sightline.exchange.recorder import FactObserver
from sightline.exchange.relay import Relay
from sightline.exchange.remote_relay import RemoteRelay
from sightline.exchange.reply_reader import ReplyReader, is_coded
from sightline.exchange.request_counter import RequestCounter
from sightline.model.events import Failed, StreamEvent
from sightline.model.exchange import AttemptStarted, ExchangeFailed, ExchangeFinished
from sightline.model.json import JsonObject
from sightline.model.reply import Reply, Usage
from sightline.store.entries import FactEntry
from sightline.tokens.estimate import Estimate
from sightline.tokens.ledger import Wait
from sightline.transport.retry import LONGEST_WAIT
from sightline.transport.waiting import Clock
from sightline.wire.call import RequestTemplate
from sightline.wire.jsontext import decode

EventObserver: TypeAlias = Callable[[StreamEvent], None]

_DRAIN_SECONDS = 0.2
"""Seconds to read the rest of a transfer after the reply has ended, so that its connection can be reused."""


async def read_answer(relayed: ClientResponse, spoken: str, tell: EventObserver) -> Reply:
    """Read a response in this dialect and return the reply; `tell` gets each event as it arrives.

    If the relay reads the same bytes for the record, its events are used. Otherwise the bytes are parsed here: a
    response relayed by another process, written or held by a user, or in another form than the one requested.

    Raises the response's fault if there is no reply. A reply that is interrupted raises nothing: what arrived is
    returned, with the fault in it.
    """
    refuse(relayed)
    shared = relayed.body.share_reading()
    reading = shared or ReplyReader(spoken, keeps_events=True)
    chunks = aiter(relayed)
    while True:
        try:
            data = await anext(chunks, None)
        except Fault as fault:  # only the response's own faults: an exception in `tell` is the caller's
            reading.fail(fault)
            data = None
        else:
            if shared is None:
                reading.was_interrupted = relayed.fault is not None
                reading.close() if data is None else reading.feed(data)
        for event in reading.take_events():
            tell(Failed(relayed.fault) if relayed.fault is not None and isinstance(event, Failed) else event)
        if data is None or reading.decoder.has_ended:
            break
    reply = reading.reply  # bytes after the end are not part of the reply
    if data is not None:
        await _drain(chunks)  # some servers keep the connection open after the end
    if reply.fault is not None and relayed.fault is not None:
        return msgspec.structs.replace(reply, fault=relayed.fault)
    return reply


def refuse(relayed: ClientResponse) -> None:
    """Raise the fault of a response that is an error, or that cannot be read because it is compressed."""
    if relayed.fault is not None and relayed.status >= 400:
        raise relayed.fault
    coding = header(tuple(relayed.headers), b"content-encoding").strip().lower()
    if is_coded(coding):
        raise Fault(
            Code.UPSTREAM_PROTOCOL,
            f"the answer is compressed ({coding}), which was not asked for",
            hint="Something between here and the provider compresses answers; tell it not to.",
        )


async def _drain(reading: AsyncIterator[bytes]) -> None:
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in reading:
                pass
    except (TimeoutError, Fault):
        return


AGENT = "sightline"
"""The user agent of Sightline's own requests."""


def question(prepared: Prepared, *, session: str, received: float) -> ClientRequest:
    """The prepared request, byte for byte, for the chosen provider."""
    path, query = path_of(prepared.dialect, prepared.choice.model, stream=prepared.is_stream)
    return ClientRequest(
        prepared.dialect,
        prepared.body,
        _headers(prepared, prepared.call),
        path,
        query,
        prepared.choice.model,
        prepared.is_stream,
        provider=prepared.choice.provider_name,
        session=session,
        received=received,
        is_own=True,
        retries=None if prepared.choice.route is None else prepared.choice.route.retries,
    )


def count(prepared: Prepared, *, received: float) -> ClientRequest:
    """The request that asks the provider how many tokens the prompt has."""
    choice, spoken = prepared.choice, prepared.dialect
    call = count_call(choice.provider, spoken, choice.model, prepared.body)
    path, query = _path_and_query(spoken, counting_of(spoken).path, choice.model)
    return msgspec.structs.replace(
        question(prepared, session=SESSION, received=received),
        body=call.body,
        headers=_headers(prepared, call),
        path=path,
        query=query,
        is_stream=False,
        counts=True,
        retries=None,
    )


def path_of(spoken: str, model: str, *, stream: bool) -> tuple[str, str]:
    """The path and the query to which a client of this dialect sends its requests."""
    endpoint = endpoint_of(spoken)
    return _path_and_query(spoken, endpoint.stream_path if stream and endpoint.stream_path else endpoint.path, model)


def _path_and_query(spoken: str, path: str, model: str) -> tuple[str, str]:
    named = path.replace("{model}", in_path(model)) if "{model}" in path else path
    path, _, query = named.partition("?")
    return f"{endpoint_of(spoken).version or '/v1'}{path}", query


def _headers(prepared: Prepared, call: RequestTemplate) -> tuple[tuple[str, str], ...]:
    """The headers that a client of the dialect sends; the relay adds the configured ones."""
    provider = prepared.choice.provider
    configured = {name.lower() for name in (*provider.headers, *provider.env_headers)}
    usual = ((name, value) for name, value in call.headers if isinstance(value, str) and name.lower() not in configured)
    return (*usual, ("user-agent", AGENT))


Tried: TypeAlias = Callable[[AttemptStarted], None]
Paused: TypeAlias = Callable[[Wait], None]
Limits: TypeAlias = Callable[[ModelChoice, int], Awaitable[Wait]]
"""Returns how long a request of this size must wait, if another process keeps the ledger."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Sends prepared requests through the relay that also serves clients, here or in the running server, so that they
    are recorded.

    `aside` is a relay that records nothing; the embedded model counts tokens through it. `unrecorded` is the reason why
    nothing is recorded, if it should be. `limits` is called instead of this process's own ledger.
    """

    relay: Relay | RemoteRelay
    aside: Relay | RemoteRelay
    counter: RequestCounter
    memory: Memory
    clock: Clock
    unrecorded: Fault | None = None
    limits: Limits | None = None

    def estimate(self, prepared: Prepared) -> Estimate:
        """The number of tokens in the prompt, estimated here."""
        return self.counter.estimate(prepared.choice, prepared.request)

    def final(self, prepared: Prepared, *, session: str = SESSION) -> Prepared:
        """The request that `ask` would send, after masks. For previews, hashes and estimates; do not send it."""
        request = question(prepared, session=session, received=0.0)
        return prepared.with_body(self.relay.final_body(request).data)

    async def measure_prompt(self, prepared: Prepared, *, asks_provider: bool, tried: Tried) -> Estimate:
        """The number of tokens in the prompt: exact if `asks_provider` is set or the model is embedded, otherwise
        estimated."""
        if asks_provider or prepared.choice.provider.embedded:
            try:
                return await self.count_prompt(prepared, tried=tried)
            except Fault as fault:
                # A user's own server in place of the embedded model may not be able to count.
                if asks_provider or fault.status is None:
                    raise
        return self.estimate(prepared)

    async def count_prompt(self, prepared: Prepared, *, tried: Tried) -> Estimate:
        """The number of tokens in the prompt, as counted by the provider."""
        choice = prepared.choice
        if not choice.provider.quirks.counts_tokens:
            raise Fault(
                Code.USAGE,
                f"{choice.provider_name} does not count tokens",
                hint="Leave out --count: the estimate says how far it may be off.",
            )
        request = count(prepared, received=self.clock.monotonic())
        relay = self.aside if choice.provider.embedded else self.relay

        def on_fact(entry: FactEntry) -> None:
            if isinstance(entry.fact, AttemptStarted):
                tried(entry.fact)

        async with await relay.start(request, on_fact) as relayed:
            refuse(relayed)
            tokens = read_token_count(prepared.dialect, decode(b"".join([piece async for piece in relayed])))
        self.counter.note(choice, prepared.request, tokens)  # so that every other estimate agrees with it
        return Estimate(tokens, tokens, tokens, f"counted by {choice.provider_name}")

    async def ask(
        self,
        prepared: Prepared,
        *,
        on_event: EventObserver,
        tried: Tried,
        paused: Paused,
        session: str = SESSION,
        hold: bool = False,
        waits: bool = True,
        on_recorded: FactObserver | None = None,
        budgeted: tuple[JsonObject, ...] = (),
        exchange: str = "",
        max_wait: float = LONGEST_WAIT,
        conversation: str = "",
        expect_sha256: str = "",
    ) -> Reply:
        """Send a prepared request and return the reply. `on_event` gets each event, `tried` each attempt as it starts,
        and `paused` each wait for a rate limit.

        With `hold`, the request waits for a user before it is sent. With `waits` unset, it does not wait for the
        account's rate limits: the caller has done so. `on_recorded` gets each recorded fact except frames; `budgeted`
        are facts of the caller to record. `exchange` is the id of the exchange, if the caller needs it beforehand;
        `max_wait` is the longest delay that the provider may request before another attempt. `conversation` is the chat
        or run that the request belongs to. With `expect_sha256`, the request is refused if the body after masks has
        another hash.

        Raises the fault of a request that gets no reply or is refused. A reply that is interrupted does not raise: what
        arrived is returned, with the fault in it.
        """
        tokens = self.estimate(prepared).tokens
        if waits:
            await self._pause(prepared, tokens, paused)
        request = msgspec.structs.replace(
            question(prepared, session=session, received=self.clock.monotonic()),
            tokens=tokens,
            hold=hold,
            budgeted=budgeted,
            exchange=exchange,
            max_wait=max_wait,
            conversation=conversation,
            expect_sha256=expect_sha256,
        )
        sent: list[str] = []
        estimated: list[Usage] = []

        def on_fact(entry: FactEntry) -> None:
            fact = entry.fact
            if isinstance(fact, AttemptStarted):
                sent.append(fact.sha256)
                tried(fact)
            elif isinstance(fact, ExchangeFinished | ExchangeFailed) and fact.usage is not None:
                estimated.extend([fact.usage] if fact.usage.is_estimated else [])
            if on_recorded is not None:
                on_recorded(entry)

        with own_request():
            async with await self.relay.start(request, on_fact) as relayed:
                reply = _with_length(await read_answer(relayed, prepared.dialect, on_event), prepared)
        if estimated:  # as recorded, so that chat, runs and evals show the same figures as the exchange
            return msgspec.structs.replace(reply, usage=estimated[-1])
        # If a mask or a user changed the body, its counts say nothing about the estimate of this one.
        if reply.usage is not None and sent and sent[-1] == prepared.sha256:
            self.counter.learn(prepared.choice, prepared.request, reply.usage)
        return reply

    async def _pause(self, prepared: Prepared, tokens: int, paused: Paused) -> None:
        """Wait for a limit that is known to be used up, if the wait is short. The provider enforces all others
        itself."""
        choice, now = prepared.choice, self.clock.now()
        if self.limits is None:
            wait = self.memory.ledger.wait(choice.provider_name, choice.model, tokens, now, choice.facts)
        else:
            wait = await self.limits(choice, tokens)
        if not wait.is_over and wait.seconds <= LONGEST_WAIT:
            paused(wait)
            await self.clock.sleep(wait.seconds)


def _with_length(reply: Reply, prepared: Prepared) -> Reply:
    """The reply with the finish reason "length" if it was truncated: some servers report a truncated Responses reply as
    complete."""
    choice, usage, most = reply.choice, reply.usage, prepared.request.options.max_tokens
    if prepared.choice.provider.quirks.reports_length or not dialect(prepared.dialect).rules.may_hide_length:
        return reply
    if choice.finish != "stop" or most is None or usage is None or (usage.output_tokens or 0) < most:
        return reply
    return msgspec.structs.replace(reply, choices=(msgspec.structs.replace(choice, finish="length"),))
