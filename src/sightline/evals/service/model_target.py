"""A model of the configuration, asked through the engine: on record, with holds, limits and the one retry budget."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from sightline.catalog.choose import ModelChoice
from sightline.catalog.compose import Prompt
from sightline.errors import Fault
from sightline.evals.core.observation import CaseObservation
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.answer_cache import Answers
from sightline.evals.service.observation import observe_reply
from sightline.evals.service.rates import LONGEST
from sightline.evals.service.sharing import Admitted, Admitting
from sightline.evals.service.spending import Spending
from sightline.evals.service.target import CaseQuestion, TargetAnswer, no_answer
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
    """What all models of a run are asked with. `session` is how their exchanges are labelled; `make_id` names them."""

    engine: Engine
    rates: Admitting
    spending: Spending
    session: str
    make_id: Callable[[], str]


@dataclass(slots=True)
class _Way:
    """What becomes of a request on its way: when it was last sent, and as which bytes."""

    reservation: Admitted
    means: ModelAccess
    began: float
    sha256: str
    changes: Changes = ()

    def collect_changes(self, noted: FactEntry) -> None:
        self.changes += changes_while_held(self.means.engine.relay.holds, noted)

    def on_attempt(self, attempt: AttemptStarted) -> None:
        self.reservation.release()
        self.began = self.means.engine.clock.monotonic()
        self.sha256 = attempt.sha256 or self.sha256


class ModelTarget:
    """One request for each question. With a `cache`, what was asked before is not asked again."""

    def __init__(self, spec: TargetSpec, choice: ModelChoice, means: ModelAccess, cache: Answers | None = None) -> None:
        self.spec = spec
        self.choice = choice
        self._means = means
        self._cache = cache

    def prompt(self, messages: tuple[Message, ...], tools: tuple[Tool, ...] = ()) -> Prompt:
        """What is asked, with nothing in front that the case does not have."""
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
        """The exact bytes for these messages."""
        return prepare(self.prompt(messages, tools), self.choice)

    def final(self, ready: Prepared) -> Prepared:
        """The same after masks, as it goes out: for its hash, and to be shown."""
        return self._means.engine.final(ready, session=self._means.session)

    async def answer(self, wanted: CaseQuestion) -> TargetAnswer:
        """The answer, or why there is none."""
        return await self.ask(self.prompt(wanted.messages, wanted.tools), wanted)

    async def judge(
        self, wanted: CaseQuestion, schema: JsonObject, name: str, temperature: float | None
    ) -> TargetAnswer:
        """The same, in the form of a schema where the model is not known to be unable to keep to one."""
        prompt = self.prompt(wanted.messages)
        if temperature is not None:
            prompt = replace(prompt, temperature=temperature)
        if self.choice.facts.structured_output is not False:
            prompt = replace(prompt, output_schema=schema, output_name=name, output_strict=False)
        return await self.ask(prompt, wanted)

    async def ask(self, prompt: Prompt, wanted: CaseQuestion) -> TargetAnswer:
        """What comes of a prompt."""
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
        exchange = self._means.make_id()
        try:
            observation, changes = await self._send(ready, wanted, exchange)
        except Fault as fault:
            self._means.spending.spend(None)
            failed = no_answer(wanted, fault).observation
            return TargetAnswer(
                msgspec.structs.replace(failed, exchanges=(exchange,), request_sha256=final.sha256, requests=1)
            )
        self._means.spending.spend(observation.cost)
        # What a person changed on its way is no answer to what was asked, and a broken one none at all.
        if self._cache is not None and not observation.error and observation.request_sha256 == final.sha256:
            self._cache.keep(key, exchange)
        return TargetAnswer(observation, changes=changes)

    async def close(self) -> None:
        """What is to be remembered is."""
        if self._cache is not None:
            await self._cache.flush()

    async def admit(self, ready: Prepared) -> Admitted:
        """Wait until this can go."""
        means = self._means
        tokens = means.engine.estimate(ready).tokens if means.rates.counts_tokens(self.choice) else 0
        return await means.rates.admit(self.choice, tokens)

    async def _send(self, ready: Prepared, wanted: CaseQuestion, exchange: str) -> tuple[CaseObservation, Changes]:
        means, reservation = self._means, await self.admit(ready)
        way = _Way(reservation, means, means.engine.clock.monotonic(), ready.sha256)
        try:
            reply = await means.engine.ask(
                ready,
                heard=_ignore,
                tried=way.on_attempt,
                paused=_ignore,
                session=means.session,
                waits=False,
                exchange=exchange,
                max_wait=LONGEST,
                noted=way.collect_changes,
            )
        finally:
            reservation.release()
        seconds = means.engine.clock.monotonic() - way.began
        asked = replace(wanted, messages=apply_changes(wanted.messages, way.changes))
        return self._observe(reply, asked, way.sha256, exchange, seconds), way.changes

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
    """The record tells it."""
