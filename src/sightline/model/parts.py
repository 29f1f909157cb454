"""The pieces that a message is made of: one closed, tagged union."""

from typing import Literal, TypeAlias

import msgspec

from sightline.model.json import Json, Value

ToolKind = Literal["function", "custom", "local_shell", "shell", "apply_patch", "computer", "tool_search"]
"""What is called: a function, a tool that takes free text, or a tool that a provider has built in and the client runs.

A call of a built-in tool has the JSON object of its action for arguments, so that it is a function wherever the tool
itself does not exist.
"""


class Inline(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="type", tag="inline"
):
    """Bytes that travel in the document, base64-coded as they came."""

    media_type: str
    data: str


class Link(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="type", tag="link"):
    """Bytes that the provider fetches."""

    url: str
    media_type: str = ""


class FileId(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="type", tag="file"):
    """Bytes that were uploaded to the provider before."""

    id: str


class PlainText(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="type", tag="plain"
):
    """A document that is text and travels as text."""

    text: str
    media_type: str = "text/plain"


Source: TypeAlias = Inline | Link | FileId | PlainText


class Citation(Value, frozen=True, tag=False):
    """Where a piece of text came from. `start` and `end` count characters of the text that it belongs to.

    `value` is the citation as its dialect wrote it; the other fields are what other dialects can understand of it.
    """

    url: str = ""
    title: str = ""
    cited_text: str = ""
    start: int | None = None
    end: int | None = None
    value: Json = None


class Text(Value, frozen=True, tag="text"):
    """Words. `signature` is a provider's, over the part (`signed_by` names the dialect); it is never edited."""

    text: str = ""
    citations: tuple[Citation, ...] = ()
    signature: str | None = None
    signed_by: str | None = None


class Refusal(Value, frozen=True, tag="refusal"):
    """The model's words when it declines; not ordinary output."""

    text: str = ""


class Image(Value, frozen=True, tag="image"):
    """A picture; `detail` is how closely the model is asked to look."""

    source: Source
    detail: str | None = None
    signature: str | None = None
    signed_by: str | None = None


class Document(Value, frozen=True, tag="document"):
    """A file for the model to read. `cite` asks for citations of it."""

    source: Source
    title: str | None = None
    context: str | None = None
    cite: bool | None = None


class Audio(Value, frozen=True, tag="audio"):
    """Sound, heard or spoken; `id` names an earlier spoken reply that the provider still has."""

    source: Source | None = None
    id: str | None = None
    transcript: str | None = None


class Thinking(Value, frozen=True, tag="thinking"):
    """Reasoning that is not part of the answer.

    `text` is what can be read of it (the summary pieces joined by a blank line where there is nothing else), `summary`
    the pieces of a summary. `signature` is the provider's signature, or the encrypted reasoning itself, bound to `id`;
    `signed_by` is the dialect that can read it. `redacted` marks a block whose text the provider withholds.
    """

    text: str = ""
    summary: tuple[str, ...] = ()
    id: str | None = None
    signature: str | None = None
    signed_by: str | None = None
    redacted: bool = False


class ToolCall(Value, frozen=True, tag="tool_call"):
    """The model asks for a tool. `arguments` is the string that the model wrote, never re-serialised.

    A `custom` tool takes free text instead of JSON; a built-in one (`shell`, `computer`…) is named after its kind.
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
    """What a tool answered to the call `id`.

    `structured` is a result that its dialect holds as a JSON object instead of text. `bare` says that the wire had
    one string where a list of parts could stand.
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
    """The prompt up to here is worth caching; it stands behind the part that it marks."""

    kind: str = "ephemeral"
    ttl: str | None = None


class Opaque(Value, frozen=True, tag="opaque"):
    """Anything that we do not model, whole, with the dialect that understands it.

    `mirrored` says that its content also stands elsewhere in the request, so that leaving it out loses nothing.
    `text` is what it says to a model that does not know its kind, empty where that cannot be said in words.
    """

    dialect: str
    value: Json
    mirrored: bool = False
    text: str = ""


Part: TypeAlias = (
    Text | Refusal | Image | Document | Audio | Thinking | ToolCall | ToolResult | CacheBreakpoint | Opaque
)
