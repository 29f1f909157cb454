"""The engine: requests of our own callers go out here and come back as events, a reply, and something learned."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec

from sightline.budget.estimate import Estimate
from sightline.budget.estimator import Estimator
from sightline.budget.ledger import Sent, Wait
from sightline.catalog.facts import Facts
from sightline.catalog.provider import Provider
from sightline.dialects.endpoint import count_call, counted
from sightline.dialects.hearing import Hearing
from sightline.dialects.registry import dialect
from sightline.engine.memory import Memory
from sightline.engine.preparing import Prepared
from sightline.errors import Code, Fault
from sightline.model.events import Failed, StreamEvent
from sightline.model.exchange import AttemptStarted
from sightline.model.fold import Fold
from sightline.model.reply import Reply
from sightline.transport.clock import Clock
from sightline.transport.embedded.process import KEY_VARIABLE, URL_VARIABLE, EmbeddedModel, Running
from sightline.transport.http.response import Response
from sightline.transport.http.timeouts import Timeouts
from sightline.transport.sender import Accepted, Outgoing, Refused, Sender, without
from sightline.wire.call import Call, Variable
from sightline.wire.jsontext import decode

MOST_ESTIMATORS = 8
"""So many models' counts are remembered: each remembers some megabytes of text."""

Heard = Callable[[StreamEvent], None]
Tried = Callable[[AttemptStarted], None]
Paused = Callable[[Wait], None]
BrokeOff = Callable[[Fault], None]


@dataclass(frozen=True, slots=True)
class Engine:
    """Sends what was prepared. `environment` holds the variables that calls name; its values are secrets."""

    sender: Sender
    embedded: EmbeddedModel
    environment: Mapping[str, str]
    memory: Memory
    clock: Clock
    _estimators: dict[tuple[str, str, str], Estimator] = field(default_factory=dict)

    def estimate(self, prepared: Prepared) -> Estimate:
        """How many tokens the prompt has, as far as can be said without asking anybody."""
        return self._estimator(prepared).request(prepared.request)

    async def measured(self, prepared: Prepared, *, asks_provider: bool, tried: Tried) -> Estimate:
        """How many tokens the prompt has: exactly where the provider is to be asked, or is at hand anyway."""
        if asks_provider:
            return await self.counted(prepared, tried=tried)
        if prepared.choice.provider.embedded:
            try:
                return await self.counted(prepared, tried=tried)
            except Fault as fault:
                if fault.status is None:
                    raise
        # A server of one's own in its place may not know how to count.
        return self.estimate(prepared)

    async def counted(self, prepared: Prepared, *, tried: Tried) -> Estimate:
        """How many tokens the prompt has, as the provider counts them."""
        choice = prepared.choice
        if not choice.provider.quirks.counts_tokens:
            raise Fault(
                Code.USAGE,
                f"{choice.provider_name} does not count tokens",
                hint="Leave out --count: the estimate says how far it may be off.",
            )
        call = count_call(choice.provider, prepared.dialect, choice.model, prepared.body)
        variables = self.environment  # counting takes no turn: the embedded model counts beside an answer
        if choice.provider.embedded:
            variables = self._with(await self.embedded.running())
        accepted = await self._accepted(self._outgoing(prepared, call, variables, is_stream=False), tried)
        async with accepted.response as response:
            count = counted(prepared.dialect, decode(await response.read()))
        self.memory.ledger.settled(accepted.sent, 0, self.clock.now())
        return Estimate(count, count, count, f"counted by {choice.provider_name}")

    async def ask(self, prepared: Prepared, *, heard: Heard, tried: Tried, paused: Paused) -> Reply:
        """Send it; `heard` gets each event as it comes, `tried` each attempt as it starts, `paused` what is waited for.

        A request that gets no answer, or is refused, raises its fault. An answer that breaks off does not: what
        arrived is in the reply, with the fault.
        """
        async with self._placed(prepared.choice.provider) as (variables, broke_off):
            outgoing = self._outgoing(prepared, prepared.call, variables, is_stream=prepared.is_stream)
            await self._pause(outgoing, prepared.choice.facts, paused)
            accepted = await self._accepted(outgoing, tried)
            async with accepted.response as response:
                reply = _with_length(await _heard(response, prepared.dialect, heard, outgoing.secrets), prepared)
            if reply.fault is not None:
                broke_off(reply.fault)
        self._learn(prepared, reply, accepted.sent)
        return reply

    async def _pause(self, outgoing: Outgoing, facts: Facts, paused: Paused) -> None:
        """Wait for a limit that is known to be used up, if that is soon; the provider says the rest itself."""
        now = self.clock.now()
        wait = self.memory.ledger.wait(outgoing.provider, outgoing.model, outgoing.tokens, now, facts)
        if not wait.is_over and wait.seconds <= outgoing.max_wait:
            paused(wait)
            await self.clock.sleep(wait.seconds)

    async def _accepted(self, outgoing: Outgoing, tried: Tried) -> Accepted:
        answer = await self.sender.send(outgoing, tried)
        if isinstance(answer, Refused):
            raise answer.fault
        return answer

    @asynccontextmanager
    async def _placed(self, provider: Provider) -> AsyncIterator[tuple[Mapping[str, str], BrokeOff]]:
        """The variables for a call to this provider, and whom to tell of an answer that breaks off.

        The embedded model is started, and answers one at a time.
        """
        if not provider.embedded:
            yield self.environment, lambda _: None
            return
        async with self.embedded.turn() as turn:
            yield self._with(turn.running), turn.failed

    def _with(self, running: Running) -> Mapping[str, str]:
        return {**self.environment, URL_VARIABLE: running.url, KEY_VARIABLE: running.key}

    def _outgoing(self, prepared: Prepared, call: Call, variables: Mapping[str, str], *, is_stream: bool) -> Outgoing:
        choice, provider = prepared.choice, prepared.choice.provider
        return Outgoing(
            request=call.filled(variables),
            provider=choice.provider_name,
            model=choice.model,
            dialect=prepared.dialect,
            stream=is_stream,
            retries=provider.stream_max_retries if is_stream else provider.request_max_retries,
            timeouts=Timeouts(
                connect=provider.connect_timeout_ms / 1000,
                first_byte=provider.first_byte_timeout_ms / 1000,
                idle=provider.stream_idle_timeout_ms / 1000,
            ),
            direct=provider.embedded,
            tokens=self.estimate(prepared).tokens,
            secrets=_secrets(call, variables),
        )

    def _estimator(self, prepared: Prepared) -> Estimator:
        """The one for this model, which remembers what it has counted."""
        choice = prepared.choice
        key = choice.provider_name, choice.model, prepared.dialect
        estimator = self._estimators.pop(key, None) or Estimator(choice.facts, dialect=prepared.dialect)
        self._estimators[key] = estimator  # at the end: the one at the front was left alone for longest
        if len(self._estimators) > MOST_ESTIMATORS:
            del self._estimators[next(iter(self._estimators))]
        estimator.calibrate(self.memory.ratio(key[0], key[1], tools=bool(prepared.request.tools)))
        return estimator

    def _learn(self, prepared: Prepared, reply: Reply, sent: Sent) -> None:
        usage, choice = reply.usage, prepared.choice
        if usage is None:
            return
        raw = self._estimator(prepared).uncorrected(prepared.request)
        has_tools = bool(prepared.request.tools)
        self.memory.learn(choice.provider_name, choice.model, raw, usage, tools=has_tools)
        if usage.input_tokens is not None:
            used = usage.input_tokens + (usage.output_tokens or 0)
            self.memory.ledger.settled(sent, used, self.clock.now())


async def _heard(response: Response, spoken: str, heard: Heard, secrets: tuple[str, ...]) -> Reply:
    hearing, fold = Hearing(dialect(spoken)), Fold(spoken)

    def tell(events: list[StreamEvent]) -> None:
        for event in events:
            told = Failed(without(event.fault, secrets)) if isinstance(event, Failed) else event
            fold.add(told)
            heard(told)

    coding = response.header("content-encoding").lower()
    if coding not in ("", "identity"):
        raise Fault(
            Code.UPSTREAM_PROTOCOL,
            f"the answer is compressed ({coding}), which was not asked for",
            hint="Something between here and the provider compresses answers; tell it not to.",
        )
    reading = aiter(response)
    while not hearing.has_ended:  # after the dialect's own end, some servers keep the connection open
        try:
            data = await anext(reading, None)
        except Fault as fault:
            tell(hearing.fail(fault))
            break
        if data is None:
            tell(hearing.close())
            break
        tell(hearing.feed(data))
    return fold.reply


def _with_length(reply: Reply, prepared: Prepared) -> Reply:
    """The reply, cut where it was cut: some servers say of a Responses reply that it is complete all the same."""
    choice, usage, most = reply.choice, reply.usage, prepared.request.options.max_tokens
    if prepared.choice.provider.quirks.reports_length or prepared.dialect != "openai-responses":
        return reply
    if choice.finish != "stop" or most is None or usage is None or (usage.output_tokens or 0) < most:
        return reply
    return msgspec.structs.replace(reply, choices=(msgspec.structs.replace(choice, finish="length"),))


def _secrets(call: Call, variables: Mapping[str, str]) -> tuple[str, ...]:
    """The values that no error text may repeat."""
    named = [told.name for _, told in call.headers if isinstance(told, Variable)]
    return tuple(value for name in named if (value := variables.get(name, "").strip()))
