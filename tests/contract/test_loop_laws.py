"""Laws of the loop: whatever model, tools, people and clocks do, the next request is valid and every limit holds."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.agent.core.approval import Allowed, AnsweredByHand, ApprovalRule, Denied, Policy
from sightline.agent.core.facts import RunBegan, RunFact, ToolFinished, ToolStarted, read, run_state_of, write
from sightline.agent.core.limits import RunLimits
from sightline.agent.core.rounds import FinishedRun
from sightline.agent.core.run import RunPlan, ToolLoop
from sightline.agent.core.steps import (
    Answer,
    Approve,
    AskModel,
    CallsDecided,
    Confirm,
    Confirmed,
    Replied,
    RunStopped,
    Step,
    Use,
    Used,
)
from sightline.agent.core.tool import Cap, ToolOutcome
from sightline.catalog.facts import Prices
from sightline.dialects.registry import NAMES
from sightline.errors import Code, Fault
from sightline.model.parts import Audio, Image, Inline, Opaque, Part, Refusal, Text, Thinking, ToolCall, ToolResult
from sightline.model.reply import Choice, Reply, Usage
from sightline.model.request import Message, Request, ToolChoice
from tests.examples import examples
from tests.loop_stage import TOOLBOX, continued, errors, question

PROVIDERS = tuple(name for name in NAMES if name != "raw")
PICTURE = Image(Inline("image/png", "aGk="))
ODD_PICTURE = Image(Inline("image/x-odd", "aGk="))


def mostly(usual: object, *rare: object) -> st.SearchStrategy[object]:
    """The usual thing more often than not, so that runs go on and get somewhere."""
    return st.sampled_from([usual] * max(2, 2 * len(rare)) + list(rare))


words = st.sampled_from(["", " ", "Hello.", "a\n", "\u00e9\U0001f600", "x" * 40])
ids = st.sampled_from(["", "a", "b", "call 1", "id.with.dots", "c" * 70])
odd_arguments = ["", "{}", '{"n": "1"}', '"{\\"n\\": 1}"', "null", "[]", '{"n": ', "text", '{"n":1.5}']
arguments = st.sampled_from(['{"n": 1}', '{"n": 2}', '{"n": 3, "filePath": "x"}'] * 4 + odd_arguments)
names = st.sampled_from(["count"] * 6 + ["edit_file", "edit_file", "shell", "format_disk", "unknown", "cuont", ""])
calls = st.builds(ToolCall, ids, names, arguments)
outcomes = st.builds(
    ToolOutcome,
    st.lists(
        st.one_of(st.builds(Text, words), st.sampled_from([PICTURE, ODD_PICTURE, Audio(Inline("audio/wav", "aGk="))])),
        max_size=3,
    ).map(tuple),
    st.booleans(),
    st.sampled_from([None, None, None, {"ok": True}]),
)
counted = st.builds(Usage, input_tokens=st.integers(0, 40), output_tokens=st.integers(0, 9))
usages = st.one_of(counted, counted, counted, st.none())


@st.composite
def spoken_parts(draw: st.DrawFn, spoken: str) -> tuple[Part, ...]:
    """What a model of this dialect may say, odd things included."""
    seal = st.sampled_from([None, "c2VhbA=="])
    others = st.one_of(
        st.builds(Text, words),
        st.builds(Refusal, words),
        st.builds(Thinking, words, signature=seal, signed_by=st.sampled_from([None, spoken, "anthropic"])),
        st.builds(Opaque, st.just(spoken), st.just({"type": "web_search_call", "id": "ws_1"})),
    )
    called = st.lists(calls, min_size=1, max_size=3)
    return (*draw(st.lists(others, max_size=2)), *draw(st.one_of(called, called, st.just([]))))


@st.composite
def replies(draw: st.DrawFn, spoken: str) -> Reply:
    parts = draw(spoken_parts(spoken))
    if spoken != "openai-responses":
        parts = tuple(part for part in parts if not isinstance(part, Opaque))
    faults = [Fault(Code.NETWORK, "reset", hint="Look."), Fault(Code.CANCELLED, "gone")]
    fault = draw(st.sampled_from([None] * 40 + faults))
    finishes = ["stop", "length", "content_filter", "refusal", "error", None] + ["tool_calls"] * 15
    if spoken == "anthropic":
        finishes += ["pause"] * 3
    finish = draw(st.sampled_from(finishes))
    return Reply(choices=(Choice(parts=parts, finish=finish),), usage=draw(usages), fault=fault, dialect=spoken)


@st.composite
def beginnings(draw: st.DrawFn, source: str) -> Request:
    """A conversation that somebody brings along, with calls and results that may have lost each other."""
    request = question(source)
    older: list[Message] = []
    for _ in range(draw(st.integers(0, 2))):
        call = ToolCall(draw(st.sampled_from(["a", "b"])) + str(len(older)), "count", '{"n": 1}')
        older.append(Message("user", (Text("First."),)))
        if draw(st.booleans()):
            older.append(Message("assistant", (Text("Yes."), call)))
        if draw(st.booleans()):
            older.append(Message("tool", (ToolResult(call.id, (Text("1"),), "count"),)))
    choice = draw(st.sampled_from([None, ToolChoice("required"), ToolChoice("named", ("count",))]))
    return Request(request.model, (*older, *request.messages), (), choice, options=request.options, dialect=source)


@st.composite
def plans(draw: st.DrawFn, spoken: str) -> RunPlan:
    few = st.one_of(st.none(), st.none(), st.integers(0, 6))
    limits = RunLimits(
        requests=draw(st.sampled_from([0, 1, 2, 3, 5, 8, 8])),
        tool_calls=draw(few),
        tokens=draw(st.one_of(st.none(), st.none(), st.integers(0, 200))),
        cost=draw(st.one_of(st.none(), st.none(), st.floats(0, 0.002))),
        seconds=draw(st.one_of(st.none(), st.none(), st.floats(0, 20))),
        repeats=draw(few),
        mistakes=draw(few),
        behaviour=draw(st.sampled_from(["stop", "confirm"])),
    )
    rules = st.sampled_from(
        [ApprovalRule("count", "allow"), ApprovalRule("edit*", "deny", reason="No."), ApprovalRule("shell", "ask")]
    )
    policy = Policy(
        tuple(draw(st.lists(rules, max_size=2))), draw(st.sampled_from(["ask", "ask", "allow", "allow", "deny"]))
    )
    return RunPlan(
        dialect=spoken,
        toolbox=TOOLBOX,
        policy=policy,
        limits=limits,
        cap=Cap(characters=draw(st.integers(0, 60)), media=draw(st.sampled_from([0, 4, 100]))),
        prices=Prices(input=3.0, output=15.0),
    )


def answered(data: st.DataObject, step: Step, elapsed: float, spoken: str) -> Answer:
    """Anything that a driver could send."""
    if data.draw(st.sampled_from([False] * 30 + [True])):
        keys = [call.key for call in step.calls] if isinstance(step, Use) else []
        return RunStopped(elapsed, {key: data.draw(outcomes) for key in keys if data.draw(st.booleans())})
    match step:
        case AskModel():
            return Replied(data.draw(replies(spoken)), elapsed, estimate=data.draw(usages))
        case Approve(_, calls):
            decisions = st.one_of(
                st.none(),
                st.just(Allowed()),
                st.just(Allowed()),
                st.builds(
                    Allowed,
                    st.sampled_from([None, None, {"n": 7}, {"n": "x"}, "text"]),
                    st.sampled_from([None, ApprovalRule("count", "allow"), ApprovalRule("count", "deny")]),
                ),
                st.builds(Denied, words),
                st.builds(AnsweredByHand, st.builds(Text, words).map(lambda part: (part,))),
            )
            drawn = {call.key: data.draw(decisions) for call in calls}
            return CallsDecided({key: decision for key, decision in drawn.items() if decision is not None}, elapsed)
        case Use(_, calls):
            drawn_outcomes = {call.key: data.draw(outcomes) for call in calls if data.draw(st.integers(0, 5))}
            return Used(drawn_outcomes, elapsed, data.draw(st.sampled_from(["", "", " ", "By the way."])))
        case Confirm():
            return Confirmed(data.draw(mostly(True, False)) is True, elapsed)


class FactQueue:
    """Holds every step against what the plan allows, with counts of its own."""

    def __init__(self, plan: RunPlan, spoken: str) -> None:
        self.limits = plan.limits
        self.spoken = spoken
        self.requests = self.tool_calls = self.tokens = 0
        self.seconds = 0.0
        self.keys: set[str] = set()

    def step(self, step: Step) -> None:
        if isinstance(step, AskModel):
            assert errors(step.request, self.spoken) == []
            self.requests += 1
        if isinstance(step, Use):
            keys = {call.key for call in step.calls}
            assert keys
            assert not keys & self.keys, "a call is handed out once"
            self.keys |= keys
            self.tool_calls += len(keys)
        if isinstance(step, Confirm):
            assert self.limits.behaviour == "confirm"
        if isinstance(step, AskModel | Use):
            for name, spent in (("tokens", self.tokens), ("seconds", self.seconds)):
                most = self.limits.most(name)
                assert most is None or spent < most
            assert self.limits.requests is not None
            assert self.requests <= self.limits.requests
            assert self.limits.tool_calls is None or self.tool_calls <= self.limits.tool_calls

    def answer(self, step: Step, answer: Answer) -> None:
        self.seconds = max(self.seconds, answer.elapsed)
        if isinstance(answer, Replied):
            told, guess = answer.reply.usage, answer.estimate
            usage = told or guess
            self.tokens += 0 if usage is None else (usage.input_tokens or 0) + (usage.output_tokens or 0)
            if usage is None and (self.limits.tokens is not None or self.limits.cost is not None):
                self.tokens = 10**9  # nobody knows, so nothing may follow
                self.limits = RunLimits(**{**_fields(self.limits), "tokens": 1})
        if isinstance(step, Confirm) and isinstance(answer, Confirmed) and answer.goes_on:
            raised = step.reached.raised
            assert raised is not None
            half = step.reached.limit * 1.5
            exact = isinstance(self.limits.most(step.reached.name), float)
            assert raised == (half if exact else math.floor(half + 0.5))
            self.limits = self.limits.raise_limit(step.reached.name)

    def end(self, ended: FinishedRun) -> None:
        assert errors(continued(ended), self.spoken) == []
        assert ended.spent.requests == self.requests
        assert ended.spent.tool_calls == self.tool_calls
        for done in ended.rounds:
            assert len(done.calls) == len(done.reply.choice.tool_calls)
            assert all(call.fate == "cut" or call.outcome is not None for call in done.calls)
            assert all((call.fate == "ran") <= (call.key in self.keys) for call in done.calls)


def _fields(limits: RunLimits) -> dict[str, object]:
    return {name: getattr(limits, name) for name in limits.__struct_fields__}


@settings(max_examples=examples(100))
@given(st.data(), st.sampled_from(PROVIDERS))
def test_the_next_request_is_valid_and_limits_hold(data: st.DataObject, spoken: str) -> None:
    source = data.draw(st.sampled_from(("", "", spoken, spoken, *PROVIDERS)))
    request, plan = data.draw(beginnings(source)), data.draw(plans(spoken))
    watch = FactQueue(plan, spoken)
    loop = ToolLoop(request, plan).steps()
    elapsed = 0.0
    facts: list[RunFact] = [RunBegan(request, plan)]
    try:
        step = next(loop)
        while True:
            watch.step(step)
            elapsed += data.draw(st.floats(0, 3))
            answer = answered(data, step, elapsed, spoken)
            watch.answer(step, answer)
            facts.append(answer)
            step = loop.send(answer)
    except StopIteration as stop:
        ended: FinishedRun = stop.value
    watch.end(ended)
    assert run_state_of(read(write(fact)) for fact in facts).ended == ended, (
        "the facts alone bring the run to the same end"
    )


@settings(max_examples=examples(20))
@given(st.data(), st.sampled_from(PROVIDERS))
def test_a_run_that_is_killed_anywhere_goes_on_as_if_it_had_not_been(data: st.DataObject, spoken: str) -> None:
    request, plan = data.draw(beginnings("")), data.draw(plans(spoken))
    facts: list[RunFact] = [RunBegan(request, plan)]
    standing = run_state_of(facts)
    effects: list[str] = []
    while (step := standing.step) is not None:
        answer = answered(data, step, float(len(facts)), spoken)
        if isinstance(answer, Used):
            for key, outcome in answer.outcomes.items():
                effects.append(key)
                facts += [ToolStarted(key), ToolFinished(key, outcome)]
        facts.append(answer)
        standing.answer(answer)
    assert len(effects) == len(set(effects))
    for length in range(1, len(facts) + 1):
        again = run_state_of(facts[:length])
        known = {fact.key for fact in facts[:length] if isinstance(fact, ToolFinished)}
        assert not {call.key for call in again.mid_flight} & known, "nothing is run twice"
        for fact in facts[length:]:
            if isinstance(fact, Replied | CallsDecided | Used | Confirmed | RunStopped):
                again.answer(fact)
        assert again.ended == standing.ended
