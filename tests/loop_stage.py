"""A stage for the tool loop: replies as values, a driver that plays a script, and the judge of what would be sent."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sightline.agent.core.approval import Decision, Policy
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
    RunnableCall,
    Step,
    Use,
    Used,
)
from sightline.agent.core.tool import Definition, Toolbox, ToolOutcome, text_outcome
from sightline.dialects.dialect import Target
from sightline.dialects.registry import dialect
from sightline.dialects.translate import write_request
from sightline.model.parts import Part, Text, ToolCall
from sightline.model.reply import Choice, Finish, Reply, Usage
from sightline.model.report import Report
from sightline.model.request import Message, Options, Request
from sightline.wire.jsontext import decode

EDIT = Definition(
    name="edit_file",
    description="Edit a file in repo",
    schema={
        "type": "object",
        "properties": {"filePath": {"type": "string"}, "code": {"type": "string"}},
        "required": ["filePath"],
    },
)
COUNT = Definition(
    name="count",
    schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    is_parallel=True,
)
SHELL = Definition(name="shell", kind="custom")
OFF = Definition(name="format_disk", is_enabled=False)
TOOLBOX = Toolbox((EDIT, COUNT, SHELL, OFF))
ANYTHING = Policy(otherwise="allow")
USAGE = Usage(input_tokens=10, output_tokens=5)


def question(spoken: str = "", text: str = "Do it.") -> Request:
    """A request that a person might begin with; `spoken` is the dialect that it was read from."""
    return Request("m-large", (Message("user", (Text(text),)),), options=Options(max_tokens=1000), dialect=spoken)


def plan(spoken: str = "openai-chat", **fields: object) -> RunPlan:
    return RunPlan(**{"dialect": spoken, "toolbox": TOOLBOX, "policy": ANYTHING, **fields})


def limited(**fields: object) -> RunPlan:
    return plan(limits=RunLimits(**fields))


def reply(*parts: Part, finish: Finish | None = None, usage: Usage | None = USAGE, spoken: str = "") -> Reply:
    """A reply of these parts; it ends as such a reply does unless something else is said."""
    calls = any(isinstance(part, ToolCall) for part in parts)
    return Reply(
        choices=(Choice(parts=parts, finish=finish or ("tool_calls" if calls else "stop")),),
        usage=usage,
        dialect=spoken,
        id="r_1",
    )


def says(text: str = "Done.") -> Reply:
    return reply(Text(text))


def calls(*calls: ToolCall) -> Reply:
    return reply(*calls)


def count(n: object, call_id: str = "c1") -> ToolCall:
    return ToolCall(call_id, "count", f'{{"n": {n}}}')


def ran(call: RunnableCall) -> ToolOutcome:
    """What every tool on this stage answers, different for each call."""
    return text_outcome(f"{call.name} {call.key} did it")


@dataclass
class Driver:
    """Plays the model's replies one after the other, decides, runs and confirms as told, and remembers every step."""

    replies: list[Reply]
    tool: Callable[[RunnableCall], ToolOutcome | None] = ran
    decisions: list[Mapping[str, Decision]] = field(default_factory=list)
    confirmations: list[bool] = field(default_factory=list)
    seconds_a_step: float = 0.0
    steps: list[Step] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    clock: float = 0.0

    def play(self, request: Request, plan: RunPlan) -> FinishedRun:
        loop = ToolLoop(request, plan).steps()
        try:
            step = next(loop)
            while True:
                self.steps.append(step)
                self.clock += self.seconds_a_step
                self.answers.append(self.answer(step))
                step = loop.send(self.answers[-1])
        except StopIteration as stop:
            return stop.value

    def answer(self, step: Step) -> Answer:
        match step:
            case AskModel():
                return Replied(self.replies.pop(0) if self.replies else says(), self.clock)
            case Approve():
                return CallsDecided(dict(self.decisions.pop(0)), self.clock)
            case Use(_, calls):
                outcomes = {call.key: outcome for call in calls if (outcome := self.tool(call)) is not None}
                return Used(outcomes, self.clock)
            case Confirm():
                return Confirmed(self.confirmations.pop(0), self.clock)

    @property
    def asked(self) -> list[Request]:
        return [step.request for step in self.steps if isinstance(step, AskModel)]

    @property
    def used(self) -> list[RunnableCall]:
        return [call for step in self.steps if isinstance(step, Use) for call in step.calls]


def sent(request: Request, spoken: str) -> Request:
    """What a provider of this dialect reads when the request is sent to it."""
    return dialect(spoken).read_request(decode(write_request(request, spoken, Target(), Report(), with_url=True)))


def errors(request: Request, spoken: str) -> list[str]:
    """What a provider of this dialect would refuse."""
    read = sent(request, spoken)
    return [each.message for each in dialect(spoken).problems(read) if each.severity == "error"]


def continued(ended: FinishedRun) -> Request:
    """The request of a person who goes on after the run."""
    messages = (*ended.request.messages, Message("user", (Text("Go on."),)))
    request = ended.request
    return Request(
        request.model,
        messages,
        request.tools,
        request.tool_choice,
        options=request.options,
        dialect=request.dialect,
        extras=request.extras,
    )
