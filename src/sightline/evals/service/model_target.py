"""Targets that are models: asked once, with tools, or answered from the record; and fixed answers. Requests go through
the engine, so they are recorded, can be held, respect limits and share the retry budget."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec

from sightline.agent.core.approval import Denied, Policy
from sightline.agent.core.facts import RequestStarted, RunFact, ToolFinished, ToolStarted
from sightline.agent.core.limits import RunLimits
from sightline.agent.core.run import RunPlan
from sightline.agent.core.steps import RunnableCall
from sightline.agent.service.approvers import FunctionApprover, Said
from sightline.agent.service.driver import RunParticipants
from sightline.agent.service.round_sender import RunGate
from sightline.agent.service.runner import NewRun, Runner
from sightline.agent.tools.opening import OpenToolsets
from sightline.catalog.choose import ModelChoice
from sightline.catalog.compose import Prompt
from sightline.editing.comparing import SectionChange
from sightline.errors import Fault
from sightline.evals.core.result import CaseObservation
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.answer_cache import Answers, key_of
from sightline.evals.service.context import LONGEST, RateGate, Release
from sightline.evals.service.target import (
    CaseQuestion,
    Spending,
    TargetAnswer,
    no_answer,
    observe_reply,
    observe_run,
    refuse_tools,
)
from sightline.exchange.engine import Engine
from sightline.exchange.interception.holds import Changes, apply_changes, changes_while_held
from sightline.exchange.outbound import Prepared, prepare
from sightline.exchange.recording.library import Library, lines_of
from sightline.exchange.replay_handler import no_recording
from sightline.model.exchange import AttemptStarted
from sightline.model.json import JsonObject
from sightline.model.parts import Text
from sightline.model.reply import Reply, Usage
from sightline.model.request import Message, Tool
from sightline.store.entries import FactEntry


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """What all model targets of a run share. `session` labels their exchanges, `make_id` names them."""

    engine: Engine
    rates: RateGate
    spending: Spending
    session: str
    make_id: Callable[[], str]


@dataclass(slots=True)
class _PendingRequest:
    """Tracks one request: when it was last sent, its hash, and what a user changed in a hold."""

    release: Release
    access: ModelAccess
    began: float
    sha256: str
    changes: Changes = ()

    def collect_changes(self, entry: FactEntry) -> None:
        self.changes += changes_while_held(self.access.engine.relay.holds, entry)

    def on_attempt(self, attempt: AttemptStarted) -> None:
        self.release()
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
            key = key_of(final, self.spec.name, wanted.trial)
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
        """Does nothing: the resources of a target belong to its opener."""

    async def admit(self, ready: Prepared) -> Release:
        """Wait until rate limits admit this request."""
        access, choice = self._access, self.choice
        tokens = access.engine.estimate(ready).tokens if access.rates.counts_tokens(choice) else 0
        return await access.rates.admit(choice.provider_name, choice.model, choice.facts, tokens)

    async def _send(self, ready: Prepared, wanted: CaseQuestion, exchange: str) -> tuple[CaseObservation, Changes]:
        access, release = self._access, await self.admit(ready)
        pending = _PendingRequest(release, access, access.engine.clock.monotonic(), ready.sha256)
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
            release()
        seconds = access.engine.clock.monotonic() - pending.began
        sent = replace(wanted, messages=apply_changes(wanted.messages, pending.changes))
        return self._observe(reply, sent, pending.sha256, exchange, seconds), pending.changes

    def _observe(
        self, reply: Reply, wanted: CaseQuestion, sha256: str, exchange: str, seconds: float | None
    ) -> CaseObservation:
        return msgspec.structs.replace(
            observe_reply(reply, self.choice),
            asked=wanted.messages,
            question=wanted.question,
            exchanges=(exchange,),
            request_sha256=sha256,
            seconds=seconds,
        )


def _ignore(_event: object) -> None:
    """Ignore an event, because the recorded exchange already has it."""


DENIED = "This tool is not allowed in evals."


@dataclass(slots=True)
class _RunTrace:
    """Collects from the facts of a run its exchanges, the duration of each call, and what a user changed in its
    requests."""

    elapsed: Callable[[], float]
    exchanges: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    changes: list[tuple[SectionChange, ...]] = field(default_factory=list)
    _begun: dict[str, float] = field(default_factory=dict)

    def __call__(self, fact: RunFact) -> None:
        match fact:
            case RequestStarted(exchange=exchange):
                self.exchanges.append(exchange)
            case ToolStarted(key):
                self._begun[key] = self.elapsed()
            case ToolFinished(key):
                self.seconds[key] = self.elapsed() - self._begun.pop(key, self.elapsed())
            case _:
                pass


class ToolsTarget(ModelTarget):
    """Runs a model with the tools of `toolsets`. Tools that their policies do not allow are denied, unless everything
    is approved. Answers are never cached, because tools may have effects."""

    def __init__(
        self,
        spec: TargetSpec,
        choice: ModelChoice,
        access: ModelAccess,
        runner: Runner,
        tools: OpenToolsets,
        *,
        approves: bool,
    ) -> None:
        super().__init__(spec, choice, access)
        self._runner = runner
        self._tools = tools
        self._approver = FunctionApprover("yes" if approves else _deny)

    async def answer(self, wanted: CaseQuestion) -> TargetAnswer:
        """Run until the model has answered. Each request waits for the provider's limits."""
        run, choice, spec = self._runner.make_id(), self.choice, self.spec
        trace = _RunTrace(self._access.engine.clock.monotonic)
        limits = RunLimits() if spec.requests is None else RunLimits(requests=spec.requests)
        if refused := refuse_tools(wanted, spec.name, "runs tools of its own"):
            return refused
        try:
            new = NewRun(
                self.prompt(wanted.messages),
                choice,
                RunPlan(dialect=choice.dialect, policy=Policy(self._tools.rules), limits=limits),
                self._access.session,
                run,
                origin={
                    "kind": "eval",
                    "eval": self._access.session.partition(":")[2],
                    "case": wanted.case,
                    "target": spec.name,
                    "trial": wanted.trial,
                    "toolsets": list(spec.toolsets),
                },
            )
            holds = self._access.engine.relay.holds
            company = RunParticipants(
                self._tools,
                self._approver,
                self._tools.hooks,
                on_recorded=lambda entry: trace.changes.extend(changes_while_held(holds, entry)),
                on_fact=trace,
                gate=RunGate(self.admit, LONGEST),
            )
            ended = await self._runner.run(new, company)
            observation = observe_run(ended, run, choice, trace.seconds)
        except Fault as fault:
            self._access.spending.spend(None)
            return no_answer(wanted, fault)
        self._access.spending.spend(observation.cost)
        changes = tuple(trace.changes)
        return TargetAnswer(
            msgspec.structs.replace(
                observation,
                messages=apply_changes(observation.messages, changes),
                asked=apply_changes(wanted.messages, changes),
                question=wanted.question,
                exchanges=tuple(trace.exchanges),
            ),
            changes=changes,
        )


def _deny(_call: RunnableCall) -> Said:
    return Denied(DENIED, by="nobody")


class ReplayTarget(ModelTarget):
    """Answers from the record. If a request was recorded several times, the trial's number selects one; beyond the
    last, the last is used."""

    def __init__(self, spec: TargetSpec, choice: ModelChoice, access: ModelAccess, library: Library) -> None:
        super().__init__(spec, choice, access)
        self._library = library

    async def ask(self, prompt: Prompt, wanted: CaseQuestion) -> TargetAnswer:
        """The recorded answer. If there is none, the error names the nearest recording and its differences."""
        try:
            ready = self.final(prepare(prompt, self.choice))
            lines = lines_of(ready.dialect, ready.body, ready.choice.model)
            recorded = await self._library.at(lines, wanted.trial, ready.dialect)
            if recorded is None:
                raise await no_recording(self._library, lines)
            reply = recorded.reply()
        except Fault as fault:
            return no_answer(wanted, fault, cost=0.0)
        seconds = recorded.frames[-1].after if recorded.frames else None
        return TargetAnswer(self._observe(reply, wanted, ready.sha256, recorded.id, seconds), is_cached=True)


class MockTarget:
    """Gives the same answer to everything, at no cost."""

    def __init__(self, spec: TargetSpec) -> None:
        self.spec = spec

    async def answer(self, wanted: CaseQuestion) -> TargetAnswer:
        text = self.spec.mock or ""
        return TargetAnswer(
            CaseObservation(
                asked=wanted.messages,
                messages=(Message("assistant", (Text(text),)),),
                text=text,
                finish="stop",
                usage=Usage(input_tokens=0, output_tokens=0),
                cost=0.0,
                seconds=0.0,
                requests=0,
                model="mock",
                question=wanted.question,
            )
        )

    async def close(self) -> None:
        """Does nothing."""
