"""A request in no vendor's shape: messages (a role and its parts), tools (what the model may call, and whether it
must), options (sampling, length, output format), and the part of each value that matters when two are compared.

Clients send the same conversation again and again. Between two turns a part moves in the document, gains or loses a
cache mark or an item id, and a string becomes a list of one part. The model sees none of that, so values that differ
only in these respects are considered the same.
"""

from collections.abc import Callable, Iterable
from itertools import chain
from operator import attrgetter
from typing import Literal, TypeAlias

import msgspec

from sightline.model.json import Json, Value
from sightline.model.parts import CacheBreakpoint, Opaque, Part, Text, Thinking, ToolCall, ToolKind, ToolResult


class Grammar(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The grammar that a custom tool's input must follow."""

    syntax: str
    definition: str


class FunctionTool(Value, frozen=True, tag="function"):
    """A tool that takes a JSON object. `schema` is its JSON Schema, None if the wire has none."""

    name: str
    description: str | None = None
    schema: dict[str, Json] | None = None
    strict: bool | None = None
    namespace: str | None = None
    cache: CacheBreakpoint | None = None


class CustomTool(Value, frozen=True, tag="custom"):
    """A freeform tool: its input is text, written in `grammar` if there is one."""

    name: str
    description: str | None = None
    grammar: Grammar | None = None
    namespace: str | None = None
    cache: CacheBreakpoint | None = None


class OpaqueTool(Value, frozen=True, tag="opaque"):
    """A tool that exists only in its own dialect: built in, run by the server, or unknown to us. `value` is the whole
    tool.

    For a built-in tool that the client runs, `functions` are the functions that offer it to a model without the tool,
    and `kind` is the kind of its calls. What the functions do not express is in `extras`.
    """

    dialect: str
    value: Json
    cache: CacheBreakpoint | None = None
    functions: tuple[FunctionTool, ...] = ()
    kind: ToolKind = "function"


Tool: TypeAlias = FunctionTool | CustomTool | OpaqueTool

ChoiceMode = Literal["auto", "none", "required", "named", "opaque"]


class ToolChoice(Value, frozen=True, tag=False):
    """Which tools the model may or must call. `named` forces the one tool in `names`; `auto` and `required` with
    `names` allow only those.

    `opaque` is a choice that only its own dialect understands, whole in `value`; `names` are then the functions that
    represent the built-in tool it forces.
    """

    mode: ChoiceMode
    names: tuple[str, ...] = ()
    value: Json = None


ADDED = ""
"""The place of an option that the client did not set: a translation added it."""


class PlainFormat(Value, frozen=True, tag="text"):
    """The answer is free text, requested explicitly."""


class JsonFormat(Value, frozen=True, tag="json"):
    """The answer is any JSON."""


class SchemaFormat(Value, frozen=True, tag="json_schema"):
    """The answer is JSON that follows this schema."""

    schema: dict[str, Json]
    name: str | None = None
    description: str | None = None
    strict: bool | None = None


OutputFormat: TypeAlias = PlainFormat | JsonFormat | SchemaFormat


class Reasoning(Value, frozen=True, tag=False):
    """How much the model should think, and how much of that it shows.

    `mode` is on, off or adaptive if the wire says so; `effort` is a word, `budget` a number of tokens; `summary` is
    auto, concise, detailed or none. `places` is where each value was.
    """

    mode: str | None = None
    effort: str | None = None
    budget: int | None = None
    summary: str | None = None
    places: dict[str, str] = {}  # noqa: RUF012 - msgspec gives every instance its own


class Options(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """Each option under one name, None if the request does not set it; `places` is where each one was."""

    max_tokens: int | None = None
    temperature: int | float | None = None
    top_p: int | float | None = None
    top_k: int | float | None = None
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    presence_penalty: int | float | None = None
    frequency_penalty: int | float | None = None
    logit_bias: dict[str, Json] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    n: int | None = None
    format: OutputFormat | None = None
    reasoning: Reasoning | None = None
    verbosity: str | None = None
    cache_key: str | None = None
    cache_retention: str | None = None
    store: bool | None = None
    include: tuple[str, ...] | None = None
    previous_response_id: str | None = None
    metadata: dict[str, Json] | None = None
    user: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    safety_settings: list[Json] | None = None
    stream: bool | None = None
    include_usage: bool | None = None
    places: dict[str, str] = {}

    def place(self, name: str) -> str:
        """Where an option was, or where it would be under its own name."""
        return self.places.get(name, f"/{name}")


Role = Literal["system", "developer", "user", "assistant", "tool"]


class Message(Value, frozen=True, tag=False):
    """A message, or an item in wire formats that have items. Readers make one per wire item and never regroup.

    `bare` means that the content was one string instead of a list of parts; `id` is the wire's own item id.
    """

    role: Role
    parts: tuple[Part, ...] = ()
    name: str | None = None
    id: str | None = None
    bare: bool = False


class Request(Value, frozen=True, tag=False):
    """A request to a model. `dialect` names the wire format that it was read from, and thereby what its extras mean.

    The place of `parallel_tool_calls` is among the places of the options if it was not at the top level.
    """

    model: str = ""
    messages: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    options: Options = Options()
    dialect: str = ""

    @property
    def parallel_at(self) -> str:
        """The place of `parallel_tool_calls`."""
        return self.options.place("parallel_tool_calls")


_PARTS = attrgetter("parts")


def parts_of(messages: Iterable[Message]) -> list[Part]:
    """The parts of all messages, in order."""
    return list(chain.from_iterable(map(_PARTS, messages)))


def is_same_text(one: Message, other: Message) -> bool:
    """Whether two messages are equal and hold no JSON: Python finds 1, 1.0 and true equal, and keys in any order."""
    return one == other and not _holds_json(one.parts)


def _holds_json(parts: tuple[Part, ...]) -> bool:
    for part in parts:
        if isinstance(part, ToolResult):
            if part.structured is not None or _holds_json(part.parts):
                return True
        elif isinstance(part, Opaque):
            return True
    return False


def change_parts(
    messages: tuple[Message, ...], kinds: frozenset[type[Part]], change: Callable[[Part], Part]
) -> tuple[Message, ...]:
    """The messages with `change` applied to each part of these kinds. Unchanged messages, which are nearly all of a
    long conversation, stay the same objects."""
    changed: list[Message] = []
    for message in messages:
        parts = message.parts
        if kinds.isdisjoint(map(type, parts)):
            changed.append(message)
            continue
        others = tuple([change(part) if type(part) in kinds else part for part in parts])
        # Equal tuples usually contain the same objects, which makes the comparison cheap.
        changed.append(message if others == parts else msgspec.structs.replace(message, parts=others))
    return tuple(changed)


def of_part(part: Part) -> Part:
    """The part without its place and the ids that matter only to the wire."""
    match part:
        case Text() if part.citations:
            citations = tuple(msgspec.structs.replace(citation, at="") for citation in part.citations)
            return msgspec.structs.replace(part, at="", citations=citations)
        case ToolCall():
            return msgspec.structs.replace(part, at="", item=None)
        case ToolResult():
            return msgspec.structs.replace(part, at="", item=None, bare=False, parts=of_parts(part.parts))
        case Thinking():
            return msgspec.structs.replace(part, at="", id=None)
        case _:
            return msgspec.structs.replace(part, at="")


def of_parts(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts without cache marks, each as `of_part` returns it."""
    return tuple(of_part(part) for part in parts if not isinstance(part, CacheBreakpoint))


def of_message(message: Message) -> Message:
    """The message without its place, its item id and its cache marks."""
    return msgspec.structs.replace(message, at="", id=None, bare=False, parts=of_parts(message.parts))


def of_tool(tool: Tool) -> Tool:
    """The tool without its place and its cache mark."""
    return msgspec.structs.replace(tool, at="", cache=None)
