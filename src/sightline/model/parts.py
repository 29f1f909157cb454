"""The parts that a message consists of: one closed, tagged union."""

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from sightline.model.json import Json, Value

ToolKind = Literal["function", "custom", "local_shell", "shell", "apply_patch", "computer", "tool_search"]
"""What is called: a function, a tool that takes free text, or a tool that is built into a provider and run by the
client.

The arguments of a built-in tool's call are the JSON object of its action, so that the call is an ordinary function call
in dialects without that tool.
"""


class Inline(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="type", tag="inline"
):
    """Bytes inside the document, base64-encoded as they arrived."""

    media_type: str
    data: str


class Link(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="type", tag="link"):
    """Bytes that the provider fetches."""

    url: str
    media_type: str = ""


class FileId(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="type", tag="file"):
    """Bytes that were uploaded to the provider earlier."""

    id: str


class PlainText(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="type", tag="plain"
):
    """A text document that is sent as text."""

    text: str
    media_type: str = "text/plain"


Source: TypeAlias = Inline | Link | FileId | PlainText


class Citation(Value, frozen=True, tag=False):
    """The source of a piece of text. `start` and `end` are character offsets in the text that the citation belongs to.

    `value` is the citation as its dialect wrote it; the other fields are what other dialects can understand.
    """

    url: str = ""
    title: str = ""
    cited_text: str = ""
    start: int | None = None
    end: int | None = None
    value: Json = None


class Text(Value, frozen=True, tag="text"):
    """Ordinary text. `signature` is the provider's signature over the part, from the dialect `signed_by`; it is never
    edited."""

    text: str = ""
    citations: tuple[Citation, ...] = ()
    signature: str | None = None
    signed_by: str | None = None


class Refusal(Value, frozen=True, tag="refusal"):
    """The model's text when it declines, which is not ordinary output."""

    text: str = ""


class Image(Value, frozen=True, tag="image"):
    """An image; `detail` is how closely the model should look."""

    source: Source
    detail: str | None = None
    signature: str | None = None
    signed_by: str | None = None


class Document(Value, frozen=True, tag="document"):
    """A file for the model to read. `cite` requests citations from it."""

    source: Source
    title: str | None = None
    context: str | None = None
    cite: bool | None = None


class Audio(Value, frozen=True, tag="audio"):
    """Audio input or output; `id` names an earlier spoken reply that the provider still has."""

    source: Source | None = None
    id: str | None = None
    transcript: str | None = None


class Thinking(Value, frozen=True, tag="thinking"):
    """Reasoning that is not part of the answer.

    `text` is the readable reasoning, or the pieces of the summary joined by blank lines if there is nothing else;
    `summary` are those pieces. `signature` is the provider's signature, or the encrypted reasoning itself, bound to
    `id`; `signed_by` is the dialect that can read it. `redacted` marks a block whose text the provider withholds.
    """

    text: str = ""
    summary: tuple[str, ...] = ()
    id: str | None = None
    signature: str | None = None
    signed_by: str | None = None
    redacted: bool = False


class ToolCall(Value, frozen=True, tag="tool_call"):
    """The model's call of a tool. `arguments` is the string that the model wrote, never re-serialised.

    A `custom` tool takes free text instead of JSON; a built-in tool (`shell`, `computer`…) is named after its kind.
    `item` is the id of the output item that held the call.
    """

    id: str
    name: str
    arguments: str
    kind: ToolKind = "function"
    namespace: str | None = None
    item: str | None = None
    signature: str | None = None
    signed_by: str | None = None


class ToolResult(Value, frozen=True, tag="tool_result"):
    """A tool's result for the call `id`.

    `structured` is a result that its dialect holds as a JSON object instead of text. `bare` means that the wire had one
    string instead of a list of parts.
    """

    id: str
    parts: tuple["Part", ...] = ()
    name: str | None = None
    is_error: bool | None = None
    kind: ToolKind = "function"
    structured: dict[str, Json] | None = None
    item: str | None = None
    bare: bool = False


class CacheBreakpoint(Value, frozen=True, tag="cache_breakpoint"):
    """Marks the prompt up to here as worth caching. It follows the part that it marks."""

    kind: str = "ephemeral"
    ttl: str | None = None


class Opaque(Value, frozen=True, tag="opaque"):
    """Anything that we do not model, whole, with the dialect that understands it.

    `mirrored` means that its content is also elsewhere in the request, so that omitting it loses nothing. `text`
    describes it to a model that does not know its kind; empty if it cannot be described in words.
    """

    dialect: str
    value: Json
    mirrored: bool = False
    text: str = ""


Part: TypeAlias = (
    Text | Refusal | Image | Document | Audio | Thinking | ToolCall | ToolResult | CacheBreakpoint | Opaque
)


def media_of(parts: Iterable[Part]) -> list[Image | Document | Audio]:
    """The pictures, documents and sound among these parts, and in the results among them."""
    found: list[Image | Document | Audio] = []
    for part in parts:
        if isinstance(part, ToolResult):
            found += media_of(part.parts)
        elif isinstance(part, (Image, Document, Audio)):
            found.append(part)
    return found
