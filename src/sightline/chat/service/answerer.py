"""How a question of the chat gets its answer: by one request, or by a run with tools where its topic has some."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from sightline.errors import Code, Fault
from sightline.exchange.answer_reading import Heard
from sightline.exchange.engine import Engine
from sightline.exchange.prepare import Prepared
from sightline.exchange.recorder import FactObserver as Telling
from sightline.model.exchange import AttemptStarted
from sightline.model.json import JsonObject
from sightline.model.message import Message
from sightline.model.reply import Reply
from sightline.model.tools import Tool
from sightline.model.usage import Usage
from sightline.tokens.estimate import Estimate
from sightline.tokens.ledger import Wait

SESSION = "chat"
"""How the chat's exchanges are labelled."""


def conversation_in(topic: str) -> str:
    """The name of a chat for those who follow it from outside: each topic is a conversation of its own."""
    return f"{SESSION}:{topic}" if topic else SESSION


Going: TypeAlias = Callable[[tuple[Message, ...]], None]
"""Is told all that a run has come to, whenever that is more than words: calls, and what tools say."""


async def measure(engine: Engine, final: Prepared) -> Estimate:
    """How many tokens the final body has: counted by the embedded model itself, else as was learned."""
    try:
        return await engine.measure_prompt(final, asks_provider=False, tried=_untold)
    except Fault:  # the embedded model does not start, which the send will say
        return engine.estimate(final)


async def _ignore_run(_run: str) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """One attempt of the pair `pair`. With `toolsets` the model may call those tools, and with `step` a person looks at
    each round; `budgeted` is what the record shall know of how it was planned. `began` is told of a run for it before
    that begins, `went` of how far it has come. `conversation` names the chat. With `expect_sha256`
    its first request is refused if another body would go out."""

    pair: str
    prepared: Prepared
    hold: bool = False
    step: bool = False
    toolsets: tuple[str, ...] = ()
    budgeted: tuple[JsonObject, ...] = ()
    began: Callable[[str], Awaitable[None]] = _ignore_run
    went: Going = lambda _messages: None
    conversation: str = ""
    expect_sha256: str = ""


@dataclass(frozen=True, slots=True)
class TakenRun:
    """A run that goes on from where it was broken off. `begun` hears once nothing keeps it from that, `went` of how
    far it has come."""

    run: str
    begun: Callable[[], None]
    went: Going


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """The last reply, the rounds with tools before it, and the run that they belong to, where there was one. `usage`
    is what all of its replies took, `seconds` how long it took in all processes together."""

    reply: Reply
    rounds: tuple[Message, ...] = ()
    run: str = ""
    usage: Usage | None = None
    seconds: float | None = None


class Answerer(Protocol):
    """Whoever gets answers. To be cancelled means that a person has broken it off."""

    async def tools(self, toolsets: tuple[str, ...]) -> tuple[Tool, ...]:
        """What a model is told of these tools; a fault where one of them cannot be had."""
        ...

    async def answer(self, wanted: AnswerRequest, heard: Heard, noted: Telling) -> AnswerResult:
        """Carry out the attempt. `heard` gets each event as it comes, `noted` each fact of its exchanges but frames."""
        ...

    async def take_up(self, taken: TakenRun, heard: Heard, noted: Telling) -> AnswerResult:
        """Go on with a run; of one that has ended meanwhile, its answer."""
        ...

    async def result_of_run(self, run: str) -> AnswerResult | None:
        """What a run has come to that nobody drives: with a fault, unless it came to its own end."""
        ...


@dataclass(frozen=True, slots=True)
class DirectAnswerer:
    """Answers by one request through the engine."""

    engine: Engine

    async def tools(self, toolsets: tuple[str, ...]) -> tuple[Tool, ...]:
        """There are none."""
        hint = "Take the tools out of the topic, or configure them as [tools.NAME]."
        raise Fault(Code.CONFIG, f"there are no tools {', '.join(toolsets)} here", hint=hint)

    async def take_up(self, taken: TakenRun, heard: Heard, noted: Telling) -> AnswerResult:
        """There are no runs either."""
        hint = "Take it up where its tools are configured."
        raise Fault(Code.CONFIG, f"the run {taken.run} needs tools, and there are none here", hint=hint)

    async def result_of_run(self, run: str) -> AnswerResult | None:
        """Nobody knows here."""
        return None

    async def answer(self, wanted: AnswerRequest, heard: Heard, noted: Telling) -> AnswerResult:
        """Ask once; the chat has seen to the account's limits before."""
        reply = await self.engine.ask(
            wanted.prepared,
            heard=heard,
            tried=_untold,
            paused=_ignore_wait,
            session=SESSION,
            hold=wanted.hold,
            waits=False,
            noted=noted,
            budgeted=wanted.budgeted,
            conversation=wanted.conversation,
            expect_sha256=wanted.expect_sha256,
        )
        return AnswerResult(reply)


def _untold(_attempt: AttemptStarted) -> None:
    """The record has it."""


def _ignore_wait(_wait: Wait) -> None:
    """It never waits here."""
