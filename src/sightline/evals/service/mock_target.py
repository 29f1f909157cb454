"""Fixed words for an answer: to try a suite and its graders without asking anybody."""

from sightline.evals.core.observation import CaseObservation
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.target import CaseQuestion, TargetAnswer
from sightline.model.message import Message
from sightline.model.parts import Text
from sightline.model.usage import Usage


class MockTarget:
    """Answers the same to everything, at no cost."""

    def __init__(self, spec: TargetSpec) -> None:
        self.spec = spec

    async def answer(self, wanted: CaseQuestion) -> TargetAnswer:
        """The words."""
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
        """Nothing was started."""
