"""What the model may call, and whether it must."""

from typing import Literal, TypeAlias

import msgspec

from sightline.model.json import Json, Value
from sightline.model.parts import CacheBreakpoint, ToolKind


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
