"""Stream events: what a model's answer consists of as it arrives. A closed union that every dialect reads into and
writes from.

A part of the answer is identified by its `part` number, a choice by its `choice`; `at` is a place in the source, where
a stream counts as an array of its frames. Every sequence of events ends with exactly one `Ended`; directly before it,
each choice is `Finished` or the whole answer has `Failed`.
"""

from typing import TypeAlias

import msgspec

from sightline.errors import Fault
from sightline.model.json import Json
from sightline.model.parts import Citation, Part, ToolKind
from sightline.model.reply import Finish, TokenLogprob, Usage


class Started(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="started"):
    """The answer has begun. A later event fills in what an earlier one left out; `places` is where each value was.

    `marker` is the name under which the provider keeps the conversation up to here, so that a later request can
    continue from it; None if the provider keeps nothing.
    """

    id: str | None = None
    model: str | None = None
    created: int | None = None
    places: dict[str, str] = {}
    marker: str | None = None


class TextReceived(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="text"):
    """A piece of the answer's text."""

    part: int
    text: str
    choice: int = 0
    at: str = ""


class RefusalReceived(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="refusal"):
    """A piece of the text with which the model declines."""

    part: int
    text: str
    choice: int = 0
    at: str = ""


class ThinkingReceived(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="thinking"):
    """A piece of reasoning. `piece` numbers the pieces of the summary if `summary` is set, otherwise those of the
    reasoning itself."""

    part: int
    text: str
    choice: int = 0
    piece: int = 0
    summary: bool = False
    at: str = ""


class SignatureReceived(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="signature"):
    """The provider's signature over a part that has begun; `id` is the reasoning item that it is bound to."""

    part: int
    signature: str | None
    signed_by: str
    choice: int = 0
    id: str | None = None


class ToolCallBegun(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="tool_call_begun"):
    """The model has begun to call a tool."""

    part: int
    id: str
    name: str
    choice: int = 0
    kind: ToolKind = "function"
    namespace: str | None = None
    item: str | None = None
    at: str = ""


class ArgumentsReceived(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="arguments"):
    """A fragment of a call's arguments, as the model wrote it."""

    part: int
    fragment: str
    choice: int = 0


class ToolCallCompleted(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="tool_call_completed"):
    """The call is complete. `extras` are fields that the call needs in its own dialect, whole."""

    part: int
    choice: int = 0
    extras: dict[str, Json] = {}


class CitationReceived(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="citation"):
    """A citation for a text part."""

    part: int
    citation: Citation
    choice: int = 0


class LogprobsReceived(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="logprobs"):
    """The log probabilities of the latest tokens."""

    tokens: tuple[TokenLogprob, ...]
    choice: int = 0
    at: str = ""


class PartReceived(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="part"):
    """A part that arrives whole: an image, audio, the work of a server tool, redacted thinking, anything opaque."""

    part: int
    value: Part
    choice: int = 0


class UsageReceived(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="usage"):
    """The counts so far; a later event overrides the fields that it has."""

    usage: Usage


class FieldReceived(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="field"):
    """A field of the answer that we do not model."""

    at: str
    value: Json


class FrameBroken(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="frame_broken"):
    """A frame could not be read and was skipped. A reader that shows the answer continues; a translation stops."""

    at: str
    message: str


class Finished(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="finished"):
    """A choice has ended. `detail` is the provider's own word if ours is coarser."""

    finish: Finish
    choice: int = 0
    detail: str | None = None
    stop_sequence: str | None = None
    at: str = ""
    stop_at: str = ""


class Failed(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="failed"):
    """The answer was interrupted; what arrived before remains valid."""

    fault: Fault


class Ended(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="ended"):
    """Nothing follows."""


StreamEvent: TypeAlias = (
    Started
    | TextReceived
    | RefusalReceived
    | ThinkingReceived
    | SignatureReceived
    | ToolCallBegun
    | ArgumentsReceived
    | ToolCallCompleted
    | CitationReceived
    | LogprobsReceived
    | PartReceived
    | UsageReceived
    | FieldReceived
    | FrameBroken
    | Finished
    | Failed
    | Ended
)
