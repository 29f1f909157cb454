"""What a grader is shown: an observation, and what the case says about it."""

from dataclasses import dataclass

import msgspec

from sightline.evals.core.observation import CaseObservation
from sightline.evals.core.suite import CaseMessage
from sightline.model.json import Json, JsonObject
from sightline.model.message import Message

DEFAULT_THRESHOLD = 0.8


class Grading(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What is known of a case beside the answer: what is wanted of it, and what was asked.

    `messages` is the input as it was delivered and `question` its flat form. `is_turn`: it is one turn of a
    conversation, whose criteria are those of the whole.
    """

    criteria: str = ""
    expected: tuple[CaseMessage, ...] = ()
    expected_value: Json = None
    messages: tuple[Message, ...] = ()
    metadata: JsonObject = {}
    question: str = ""
    threshold: float = DEFAULT_THRESHOLD
    input_files: tuple[str, ...] = ()
    file_changes: str = ""
    is_turn: bool = False


@dataclass(frozen=True, slots=True)
class GradingSubject:
    """One observation and its case."""

    observation: CaseObservation
    grading: Grading

    @property
    def text(self) -> str:
        """The words that are graded."""
        return self.observation.text
