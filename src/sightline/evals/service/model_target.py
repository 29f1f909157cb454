"""Model targets: requests through the engine, so they are recorded, can be held, respect limits and share the retry
budget."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from sightline.catalog.choose import ModelChoice
from sightline.catalog.compose import Prompt
from sightline.errors import Fault
from sightline.evals.core.result import CaseObservation
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.answer_cache import Answers
from sightline.evals.service.context import LONGEST, Admitted, Admitting
from sightline.evals.service.target import CaseQuestion, Spending, TargetAnswer, no_answer, observe_reply
from sightline.exchange.engine import Engine
from sightline.exchange.interception.hold_changes import Changes, apply_changes, changes_while_held
from sightline.exchange.prepare import Prepared, prepare
from sightline.model.exchange import AttemptStarted
from sightline.model.json import JsonObject
from sightline.model.message import Message
from sightline.model.reply import Reply
from sightline.model.tools import Tool
from sightline.store.entries import FactEntry


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """What all model targets of a run share. `session` labels their exchanges, `make_id` names them."""

    engine: Engine
    rates: Admitting
    spending: Spending
    session: str
    make_id: Callable[[], str]


@dataclass(slots=True)
class _PendingRequest:
    """Tracks one request: when it was last sent, its hash, and what a user changed in a hold."""

    reservation: Admitted
    access: ModelAccess
    began: float
    sha256: str
    changes: Changes = ()

    def collect_changes(self, entry: FactEntry) -> None:
        self.changes += changes_while_held(self.access.engine.relay.holds, entry)

    def on_attempt(self, attempt: AttemptStarted) -> None:
        self.reservation.release()
        self.began = self.access.engine.clock.monotonic()
        self.sha256 = attempt.sha256 or self.sha256


class ModelTarget:
    """Sends one request for each question, unless the `cache` has the answer."""

    def __init__(
        self, spec: TargetSpec, choice: ModelChoice, access: ModelAccess, cache: Answers | None = None
    ) -> None:
        self.spec = spec
        self.choice = choice
        self._access = access
        self._cache = cache

    def prompt(self, messages: tuple[Message, ...], tools: tuple[Tool, ...] = ()) -> Prompt:
        """The prompt for these messages, without default instructions."""
        spec = self.spec
        return Prompt(
            messages=messages,
            tools=tools,
            instructions="",
            effort=spec.effort,
            max_tokens=spec.max_tokens,
            temperature=spec.temperature,
            top_p=spec.top_p,
            seed=spec.seed,
            stream=spec.stream,
        )

    def prepare(self, messages: tuple[Message, ...], tools: tuple[Tool, ...] = ()) -> Prepared:
        """The exact request for these messages."""
        return prepare(self.prompt(messages, tools), self.choice)

    def final(self, ready: Prepared) -> Prepared:
        """The request after masking, as it will be sent."""
        return self._access.engine.final(ready, session=self._access.session)

    async def answer(self, wanted: CaseQuestion) -> TargetAnswer:
        return await self.ask(self.prompt(wanted.messages, wanted.tools), wanted)

    async def judge(
        self, wanted: CaseQuestion, schema: JsonObject, name: str, temperature: float | None
    ) -> TargetAnswer:
        """Ask with an output schema, unless the model is known not to support one."""
        prompt = self.prompt(wanted.messages)
        if temperature is not None:
            prompt = replace(prompt, temperature=temperature)
        if self.choice.facts.structured_output is not False:
            prompt = replace(prompt, output_schema=schema, output_name=name, output_strict=False)
        return await self.ask(prompt, wanted)

    async def ask(self, prompt: Prompt, wanted: CaseQuestion) -> TargetAnswer:
        """Send a prompt, or take the answer from the cache."""
        try:
            ready = prepare(prompt, self.choice)
        except Fault as fault:
            return no_answer(wanted, fault, cost=0.0)
        key, final = "", self.final(ready)
        if self._cache is not None:
            key = self._cache.key(final, wanted.trial)
            found = await self._cache.find(key, final.sha256)
            if found is not None:
                again = self._observe(found.reply, wanted, final.sha256, found.exchange, found.seconds)
                return TargetAnswer(again, is_cached=True)
        exchange = self._access.make_id()
        try:
            observation, changes = await self._send(ready, wanted, exchange)
        except Fault as fault:
            self._access.spending.spend(None)
            failed = no_answer(wanted, fault).observation
            return TargetAnswer(
                msgspec.structs.replace(failed, exchanges=(exchange,), request_sha256=final.sha256, requests=1)
            )
        self._access.spending.spend(observation.cost)
        # Do not cache an answer to a request that a user edited in a hold, or an answer that failed.
        if self._cache is not None and not observation.error and observation.request_sha256 == final.sha256:
            self._cache.keep(key, exchange)
        return TargetAnswer(observation, changes=changes)

    async def close(self) -> None:
        if self._cache is not None:
            await self._cache.flush()

    async def admit(self, ready: Prepared) -> Admitted:
        """Wait until rate limits admit this request."""
        access = self._access
        tokens = access.engine.estimate(ready).tokens if access.rates.counts_tokens(self.choice) else 0
        return await access.rates.admit(self.choice, tokens)

    async def _send(self, ready: Prepared, wanted: CaseQuestion, exchange: str) -> tuple[CaseObservation, Changes]:
        access, reservation = self._access, await self.admit(ready)
        pending = _PendingRequest(reservation, access, access.engine.clock.monotonic(), ready.sha256)
        try:
            reply = await access.engine.ask(
                ready,
                on_event=_ignore,
                tried=pending.on_attempt,
                paused=_ignore,
                session=access.session,
                waits=False,
                exchange=exchange,
                max_wait=LONGEST,
                on_recorded=pending.collect_changes,
            )
        finally:
            reservation.release()
        seconds = access.engine.clock.monotonic() - pending.began
        sent = replace(wanted, messages=apply_changes(wanted.messages, pending.changes))
        return self._observe(reply, sent, pending.sha256, exchange, seconds), pending.changes

    def _observe(
        self, reply: Reply, wanted: CaseQuestion, sha256: str, exchange: str, seconds: float
    ) -> CaseObservation:
        return msgspec.structs.replace(
            observe_reply(reply, self.choice),
            asked=wanted.messages,
            question=wanted.question,
            exchanges=(exchange,),
            request_sha256=sha256,
            seconds=seconds,
        )


def _ignore(_told: object) -> None:
    """The recorded exchange has these events already."""
