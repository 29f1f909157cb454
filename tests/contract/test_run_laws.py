"""Laws of the driver: whatever model, tools, hooks, people and their wish to stop do, each request is valid and every
limit holds, and the facts in the log bring the run to the same end."""

import asyncio
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.agent.core.approval import Allowed, Decision
from sightline.agent.core.facts import ToolFinished, read, run_state_of
from sightline.agent.core.limits import RunLimits
from sightline.agent.core.run import RunPlan
from sightline.agent.core.steps import Approve, CallsDecided, Confirm, RunnableCall
from sightline.agent.core.tool import ToolOutcome
from sightline.agent.service.driver import RunParticipants
from sightline.agent.service.runner import NewRun, Runner, RunnerOptions
from sightline.agent.tools.hooks import HookVerdict
from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import ModelChoice as Chosen
from sightline.catalog.facts import Facts, Family
from sightline.catalog.provider import Provider
from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.exchange.outbound import Prepared
from sightline.exchange.recording.exchange_record import read_request
from sightline.model.events import Started, StreamEvent, TextReceived
from sightline.model.json import JsonObject
from sightline.model.parts import ToolCall
from sightline.model.reply import Choice, Reply, Usage
from sightline.store.store import Line, overtaken
from tests.contract.test_loop_laws import (
    PROVIDERS,
    answered,
    beginnings,
    calls,
    counted,
    outcomes,
    plans,
    replies,
    words,
)
from tests.examples import examples
from tests.fake_clock import FakeClock
from tests.loop_stage import TOOLBOX, continued, errors

LIMITS = st.builds(
    RunLimits,
    requests=st.sampled_from([8, 8, 5, 3, 2, 1, 0]),
    tool_calls=st.sampled_from([None, None, None, 4, 2, 1, 0]),
    tokens=st.sampled_from([None, None, None, 60]),
    seconds=st.sampled_from([None, None, None, 5.0]),
    repeats=st.sampled_from([None, 3]),
    mistakes=st.sampled_from([None, 3]),
    behaviour=st.sampled_from(["stop", "confirm"]),
)


def calling(spoken: str) -> st.SearchStrategy[Reply]:
    """A reply that calls tools, as most do, so that runs get somewhere."""

    def reply(parts: list[ToolCall], usage: Usage) -> Reply:
        return Reply(choices=(Choice(parts=tuple(parts), finish="tool_calls"),), usage=usage, dialect=spoken)

    sound = st.builds(ToolCall, st.sampled_from("abc"), st.just("count"), st.integers(0, 9).map('{{"n": {}}}'.format))
    return st.builds(reply, st.lists(st.one_of(sound, sound, sound, calls), min_size=1, max_size=3), counted)


class ListLogbook:
    """A logbook in memory."""

    def __init__(self) -> None:
        self.kept: list[Line] = []

    async def append(self, log: str, after: int, data: Sequence[bytes], at: float) -> None:
        await asyncio.sleep(0)
        if after != len(self.kept):
            raise overtaken(log)
        self.kept += [Line(n, at, line) for n, line in enumerate(data, after + 1)]


class World:
    """Everything that a run meets, drawn as it goes; it watches that the laws hold."""

    def __init__(self, data: st.DataObject, spoken: str, plan: RunPlan) -> None:
        self.data = data
        self.spoken = spoken
        self.limits: RunLimits = plan.limits
        self.clock = FakeClock()
        self.logbook = ListLogbook()
        self.asked = 0
        self.used: list[str] = []
        self.relay = SimpleNamespace(secrets=(), observer=None, holds=SimpleNamespace(find=lambda _exchange: None))
        sized = SimpleNamespace(message=lambda _message: SimpleNamespace(tokens=3))
        self.counter = SimpleNamespace(estimator=lambda _choice: sized)
        catalog = Catalog(providers={})
        self.runner = Runner(self, self.logbook, RunnerOptions(catalog, lambda: "x_1"))
        self.definitions = TOOLBOX.definitions

    def draw(self, strategy: st.SearchStrategy[Any]) -> Any:
        return self.data.draw(strategy)

    async def maybe_stopped(self) -> None:
        """Somebody may want to stop, and time goes by."""
        self.clock.time += self.draw(st.floats(0, 2))
        wish = self.draw(st.sampled_from([None] * 25 + ["now", "soon"]))
        if wish is not None:
            self.runner.stop("r_1", now=wish == "now")
        if wish == "now":
            await asyncio.Event().wait()
        await asyncio.sleep(0)

    # --- the model ---

    def estimate(self, _prepared: Prepared) -> Any:
        return SimpleNamespace(tokens=7)

    async def ask(self, prepared: Prepared, *, on_event: Any, **_: Any) -> Reply:
        request = read_request(self.spoken, prepared.body, prepared.choice.model)
        assert [each.message for each in dialect(self.spoken).problems(request) if each.severity == "error"] == []
        assert self.limits.requests is not None
        assert self.asked < self.limits.requests
        self.asked += 1
        started: list[StreamEvent] = [Started(id="r"), TextReceived(part=0, text="He")]
        for event in started if self.draw(st.booleans()) else []:
            on_event(event)
        await self.maybe_stopped()
        if self.draw(st.sampled_from([False] * 20 + [True])):
            raise Fault(Code.OVERLOADED, "too many", hint="Wait.")
        return self.draw(st.one_of(*[calling(self.spoken)] * 4, replies(self.spoken)))

    # --- tools ---

    async def use(self, call: RunnableCall, progress: Any) -> ToolOutcome:
        assert call.key not in self.used
        self.used.append(call.key)
        assert self.limits.tool_calls is None or len(self.used) <= self.limits.tool_calls
        progress("on it")
        await self.maybe_stopped()
        return self.draw(outcomes)

    async def close(self) -> None:
        """Nothing is open."""

    # --- people ---

    async def approve(self, _run: str, step: Approve) -> Mapping[str, Decision]:
        await self.maybe_stopped()
        if self.draw(st.booleans()):
            return {call.key: Allowed() for call in step.calls}
        told = answered(self.data, step, 0.0, self.spoken)
        return told.decisions if isinstance(told, CallsDecided) else {}

    async def confirm(self, _run: str, step: Confirm) -> bool:
        await self.maybe_stopped()
        goes_on: bool = self.draw(st.booleans())
        if goes_on:
            self.limits = self.limits.raise_limit(step.reached.name)
        return goes_on


class WildHooks:
    """Hooks that say anything."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def ask(self, *_: object, **__: object) -> HookVerdict:
        await asyncio.sleep(0)
        rare = [("deny", "No."), ("ask", ""), ("allow", "")]
        decision, reason = self._world.draw(st.sampled_from([("", "")] * 12 + rare))
        arguments = self._world.draw(st.sampled_from([None] * 6 + [{"n": 7}, {"n": "x"}, "text"]))
        stop = self._world.draw(st.sampled_from([None] * 30 + ["", "Enough."]))
        return HookVerdict(decision, reason, arguments, self._world.draw(words), stop, self._world.draw(_WARNINGS))


_WARNINGS = st.sampled_from([(), (), (), ("a hook failed",)])


async def lived(data: st.DataObject, spoken: str, *, is_hooked: bool) -> None:
    plan: RunPlan = msgspec.structs.replace(data.draw(plans(spoken)), limits=data.draw(LIMITS))
    request = data.draw(beginnings(""))
    world = World(data, spoken, plan)
    choice = Chosen("acme", Provider(dialect=spoken), "m-large", Facts(), Family())
    hooks: Any = WildHooks(world) if is_hooked else None
    origin: JsonObject = {"law": True}
    ended = await world.runner.run(
        NewRun(request, choice, plan, "s", "r_1", origin), RunParticipants(world, world, hooks)
    )
    assert errors(continued(ended), spoken) == []
    assert ended.spent.requests >= world.asked
    facts = [read(line.data) for line in world.logbook.kept]
    assert run_state_of(facts).ended == ended, "the facts alone bring the run to the same end"
    finished = [fact.key for fact in facts if isinstance(fact, ToolFinished)]
    assert len(set(finished)) == len(finished)
    assert set(finished) <= set(world.used)
    for done in ended.rounds:
        assert all((call.fate == "ran") <= (call.key in world.used) for call in done.calls)
        assert all(call.fate == "cut" or call.outcome is not None for call in done.calls)


@settings(max_examples=examples(50), deadline=None)
@given(st.data(), st.sampled_from(PROVIDERS))
def test_each_request_is_valid_and_limits_hold_whatever_happens(data: st.DataObject, spoken: str) -> None:
    asyncio.run(lived(data, spoken, is_hooked=False))


@settings(max_examples=examples(50), deadline=None)
@given(st.data(), st.sampled_from(PROVIDERS))
def test_so_it_is_with_hooks(data: st.DataObject, spoken: str) -> None:
    asyncio.run(lived(data, spoken, is_hooked=True))
