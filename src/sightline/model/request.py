"""A request in no vendor's shape: messages (a role and its parts), tools (what the model may call, and whether it
must), options (how to sample, how much, in which form), and what two values say alike.

Clients send a conversation again and again. Between two turns a part moves in the document, gets or loses a cache
mark or an item id, and a string becomes a list of one part; none of that is read by the model, and values that differ
in nothing else say the same.
"""

from collections.abc import Callable
from itertools import chain
from operator import attrgetter
from typing import Literal, TypeAlias

import msgspec

from sightline.model.json import Json, Value
from sightline.model.parts import CacheBreakpoint, Part, Text, Thinking, ToolCall, ToolKind, ToolResult


class Grammar(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The language that a custom tool's input must be written in."""

    syntax: str
    definition: str


class FunctionTool(Value, frozen=True, tag="function"):
    """A tool that takes a JSON object. `schema` is its JSON Schema, None where the wire gave none."""

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
    """A tool that only its own dialect has: built in, run by the server, or unknown to us. `value` is it, whole.

    `functions` are the functions that offer a built-in tool which the client runs to a model that does not have it,
    and `kind` is the kind of its calls. What the functions do not say of it is in `extras`.
    """

    dialect: str
    value: Json
    cache: CacheBreakpoint | None = None
    functions: tuple[FunctionTool, ...] = ()
    kind: ToolKind = "function"


Tool: TypeAlias = FunctionTool | CustomTool | OpaqueTool

ChoiceMode = Literal["auto", "none", "required", "named", "opaque"]


class ToolChoice(Value, frozen=True, tag=False):
    """`named` forces the one tool in `names`; `auto` and `required` with `names` allow only those.

    `opaque` is a choice that only its own dialect understands, whole in `value`; `names` are then the functions that
    stand for the built-in tool it forces.
    """

    mode: ChoiceMode
    names: tuple[str, ...] = ()
    value: Json = None


ADDED = ""
"""The place of an option that was not asked for: a translation has added it."""


class PlainFormat(Value, frozen=True, tag="text"):
    """The answer is free text, said explicitly."""


class JsonFormat(Value, frozen=True, tag="json"):
    """The answer is some JSON."""


class SchemaFormat(Value, frozen=True, tag="json_schema"):
    """The answer is JSON of this schema."""

    schema: dict[str, Json]
    name: str | None = None
    description: str | None = None
    strict: bool | None = None


OutputFormat: TypeAlias = PlainFormat | JsonFormat | SchemaFormat


class Reasoning(Value, frozen=True, tag=False):
    """How much the model should think, and what it shows of it.

    `mode` is on, off or adaptive where the wire says so; `effort` a word, `budget` a number of tokens; `summary` is
    auto, concise, detailed or none. `places` is where each stood.
    """

    mode: str | None = None
    effort: str | None = None
    budget: int | None = None
    summary: str | None = None
    places: dict[str, str] = {}  # noqa: RUF012 - msgspec gives every instance its own


class Options(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """Each option under one name, None where the request does not set it; `places` is where each one stood."""

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
        """Where an option stood, or where it would stand under its own name."""
        return self.places.get(name, f"/{name}")


Role = Literal["system", "developer", "user", "assistant", "tool"]


class Message(Value, frozen=True, tag=False):
    """One message, or one item where the wire has items. Readers make one per wire item and never regroup.

    `bare` says that the content was one string where a list of parts could stand; `id` is the wire's own item id.
    """

    role: Role
    parts: tuple[Part, ...] = ()
    name: str | None = None
    id: str | None = None
    bare: bool = False


class Request(Value, frozen=True, tag=False):
    """What is asked of a model. `dialect` names the wire that it was read from, and so what its extras mean.

    Where `parallel_tool_calls` stood is among the places of the options, if it was not at the top.
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


def parts_of(messages: tuple[Message, ...]) -> list[Part]:
    """The parts of all of them, in order."""
    return list(chain.from_iterable(map(_PARTS, messages)))


def change_parts(
    messages: tuple[Message, ...], kinds: frozenset[type[Part]], change: Callable[[Part], Part]
) -> tuple[Message, ...]:
    """The messages with each part of these kinds changed. Messages without a change stay the same objects, which in a
    long conversation are nearly all."""
    changed: list[Message] = []
    for message in messages:
        parts = message.parts
        if kinds.isdisjoint(map(type, parts)):
            changed.append(message)
            continue
        others = tuple([change(part) if type(part) in kinds else part for part in parts])
        # Equal tuples have the same objects in them, as a rule, and are compared at no cost.
        changed.append(message if others == parts else msgspec.structs.replace(message, parts=others))
    return tuple(changed)


def of_part(part: Part) -> Part:
    """The part without its place and the ids that only the wire needs."""
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
    """The parts that say something: all but cache marks."""
    return tuple(of_part(part) for part in parts if not isinstance(part, CacheBreakpoint))


def of_message(message: Message) -> Message:
    """The message without its place, its item id and its cache marks."""
    return msgspec.structs.replace(message, at="", id=None, bare=False, parts=of_parts(message.parts))


def of_tool(tool: Tool) -> Tool:
    """The tool without its place and its cache mark."""
    return msgspec.structs.replace(tool, at="", cache=None)
