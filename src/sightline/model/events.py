"""What a model's answer is made of as it arrives: a closed union that every dialect reads into and writes from.

A part of the answer is named by its `part` number, a choice by its `choice`; `at` is a place in the source, where a
stream counts as an array of its frames. Every sequence of events ends with exactly one `Ended`, directly before
which each choice is `Finished` or the whole has `Failed`.
"""

from typing import TypeAlias

import msgspec

from sightline.errors import Fault
from sightline.model.json import Json
from sightline.model.parts import Citation, Part, ToolKind
from sightline.model.reply import Finish, TokenLogprob, Usage


class Started(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="started"):
    """The answer has begun. A later one completes what an earlier one left out; `places` is where each stood.

    `marker` is the name under which the provider keeps the conversation up to here, so that a next request can begin
    behind it; None where it keeps nothing.
    """

    id: str | None = None
    model: str | None = None
    created: int | None = None
    places: dict[str, str] = {}
    marker: str | None = None


class TextReceived(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="text"):
    """Some words of the answer."""

    part: int
    text: str
    choice: int = 0
    at: str = ""


class RefusalReceived(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="refusal"):
    """Some words of the model's declining."""

    part: int
    text: str
    choice: int = 0
    at: str = ""


class ThinkingReceived(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="thinking"):
    """Some reasoning. `piece` numbers the pieces of a summary (`summary`) or of the reasoning itself."""

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
    """Nothing more comes for this call. `extras` are fields that the call needs in its own dialect, whole."""

    part: int
    choice: int = 0
    extras: dict[str, Json] = {}


class CitationReceived(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="citation"):
    """A source of a text part."""

    part: int
    citation: Citation
    choice: int = 0


class LogprobsReceived(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="logprobs"):
    """How likely the last tokens were."""

    tokens: tuple[TokenLogprob, ...]
    choice: int = 0
    at: str = ""


class PartReceived(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="part"):
    """A part that arrives whole: a picture, sound, a server tool's doing, redacted thinking, anything opaque."""

    part: int
    value: Part
    choice: int = 0


class UsageReceived(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="usage"):
    """The counts so far; a later one overrides the fields that it has."""

    usage: Usage


class FieldReceived(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="field"):
    """Something of the answer that we do not model."""

    at: str
    value: Json


class FrameBroken(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="frame_broken"):
    """A frame could not be read and was passed over. A reader that shows the answer continues; a translation stops."""

    at: str
    message: str


class Finished(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="finished"):
    """A choice has come to its end. `detail` is the provider's own word where ours is coarser."""

    finish: Finish
    choice: int = 0
    detail: str | None = None
    stop_sequence: str | None = None
    at: str = ""
    stop_at: str = ""


class Failed(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="failed"):
    """The answer broke off; what arrived before stays."""

    fault: Fault


class Ended(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="ended"):
    """Nothing more comes."""


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
