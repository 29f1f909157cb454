"""What a target is asked, what it gives, and what every target is."""

from dataclasses import dataclass
from typing import Protocol

from sightline.errors import Code, Fault
from sightline.evals.core.observation import CaseObservation
from sightline.evals.core.target import TargetSpec
from sightline.exchange.interception.hold_changes import Changes
from sightline.model.message import Message
from sightline.model.tools import Tool


@dataclass(frozen=True, slots=True)
class CaseQuestion:
    """One question: the messages as they are delivered, and the same as one text. `files` are those that the case
    names, below the folder of the suites. `trial` tells answers to the same question apart. `tools` are declared, and
    run by nobody: who cannot declare them refuses the question."""

    case: str
    messages: tuple[Message, ...]
    question: str = ""
    trial: int = 0
    files: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetAnswer:
    """An answer. `is_cached`: it was given before, and nobody was asked. `changes` are what a person made of the
    question while it was held."""

    observation: CaseObservation
    is_cached: bool = False
    changes: Changes = ()


class CaseTarget(Protocol):
    """Whoever answers. What goes wrong with an answer is told in it and not raised."""

    @property
    def spec(self) -> TargetSpec:
        """How it was described."""
        ...

    async def answer(self, wanted: CaseQuestion) -> TargetAnswer:
        """The answer to a question. To be cancelled ends what was begun for it."""
        ...

    async def close(self) -> None:
        """End what was started."""
        ...


def no_answer(wanted: CaseQuestion, fault: Fault, cost: float | None = None) -> TargetAnswer:
    """That there is no answer, and why. What was never sent has cost 0; of the rest it is not known."""
    words = f"{fault.message} ({fault.hint})" if fault.hint else fault.message
    observation = CaseObservation(
        asked=wanted.messages, question=wanted.question, error=words, error_code=fault.code.value, requests=0, cost=cost
    )
    return TargetAnswer(observation)


def refuse_tools(wanted: CaseQuestion, target: str, why: str) -> None:
    """A fault where a case declares tools, and the target cannot: without them it would be another case."""
    if wanted.tools:
        names = ", ".join(getattr(each, "name", "a server's") for each in wanted.tools[:8])
        hint = "Ask a model without toolsets, or take `tools` out of the case."
        raise Fault(Code.USAGE, f"the case declares tools ({names}), and {target} {why}", hint=hint)
