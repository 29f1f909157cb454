"""Tool definitions, validation of arguments by JSON Schema, and tool results as the model gets them.

Results have bounded text, which states where it was truncated, and bounded media. Nothing is fetched: a reference to
another document is a problem of the schema. A schema that names no draft is read as 2020-12.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from types import NoneType
from typing import TYPE_CHECKING, cast

import msgspec

from sightline.catalog.facts import Facts
from sightline.catalog.fitting import HostedTool, make_native_tool, refusals
from sightline.dialects.registry import kind_of_hosted_tool
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Audio, Document, Image, Inline, Text, ToolKind, ToolResult
from sightline.model.request import CustomTool, FunctionTool, Grammar, Message, OpaqueTool, Request, Tool
from sightline.wire import pointer
from sightline.wire.jsontext import decode, encode

if TYPE_CHECKING:  # a gateway also knows tools but validates none: importing jsonschema would cost it 2 MB
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

_BRANCHES = ("anyOf", "oneOf")
_DATA = ("const", "default", "enum", "examples")
_LONGEST_VALUE = 80


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A place in a value that violates the schema, and the message of the rule that it violates.

    `wanted` has the types allowed at that place, if the type is what is wrong.
    """

    pointer: str
    message: str
    wanted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SchemaVerdict:
    """The result of a validation: `mismatches` are for the reader, `types` has every wrong type in any branch.

    `count` is the number of errors of the schema as a whole; 0 means that the value is valid.
    """

    mismatches: tuple[Mismatch, ...] = ()
    types: tuple[Mismatch, ...] = ()
    count: int = 0


def schema_problems(schema: JsonObject) -> list[str]:
    """Why this cannot be the schema of a tool's arguments; empty if it can."""
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for

    if not isinstance(schema.get("$schema", ""), str):
        return ["/$schema: expected a string"]
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        return [f"{pointer.join('', *error.absolute_path) or 'the schema'}: {_short(error.message)}"]
    except RecursionError:
        return ["it is nested too deep"]
    found = [] if schema.get("type", "object") == "object" else ["the arguments of a tool are an object"]
    return [*found, *_reference_problems(schema)]


def validate(schema: JsonObject, value: Json) -> SchemaVerdict:
    """Validate a value against a schema."""
    from jsonschema.exceptions import relevance
    from referencing.exceptions import Unresolvable

    try:
        errors = sorted(_validator(encode(schema)).iter_errors(value), key=relevance, reverse=True)
    except (Unresolvable, RecursionError):
        return SchemaVerdict(
            (Mismatch("", "the schema of this tool refers to something that cannot be followed"),), (), 1
        )
    mismatches = dict.fromkeys(mismatch for error in errors for mismatch in _mismatches_of(error))
    types = dict.fromkeys(_mismatch(leaf) for error in errors for leaf in _leaves(error) if leaf.validator == "type")
    return SchemaVerdict(tuple(mismatches), tuple(types), len(errors))


@lru_cache(maxsize=256)
def _validator(text: bytes) -> "Validator":
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing.jsonschema import EMPTY_REGISTRY

    schema = cast(JsonObject, decode(text))
    return validator_for(schema, default=Draft202012Validator)(schema, registry=EMPTY_REGISTRY)


def _mismatches_of(error: "ValidationError") -> Iterator[Mismatch]:
    """The mismatches of an error. If all branches of an `anyOf` or `oneOf` fail, those of the branch that comes
    closest."""
    if error.validator not in _BRANCHES or not error.context:
        yield _mismatch(error)
        return
    by_branch: dict[object, list[ValidationError]] = {}
    for inner in error.context:
        by_branch.setdefault(inner.schema_path[0], []).append(inner)
    depth = len(error.absolute_path)
    deeper = [each for each in by_branch.values() if all(len(e.absolute_path) > depth for e in each)]
    if len(deeper) == 1:
        for inner in deeper[0]:
            yield from _mismatches_of(inner)
        return
    reasons = dict.fromkeys(_reason(inner) for inner in error.context)
    yield Mismatch(
        pointer.join("", *error.absolute_path), f"{_short(_to_json(error.instance))} fits none: {'; or '.join(reasons)}"
    )


def _leaves(error: "ValidationError") -> "Iterator[ValidationError]":
    if not error.context:
        yield error
    for inner in error.context or ():
        yield from _leaves(inner)


def _mismatch(error: "ValidationError") -> Mismatch:
    return Mismatch(pointer.join("", *error.absolute_path), _reason(error), _types(error))


def _types(error: "ValidationError") -> tuple[str, ...]:
    if error.validator != "type":
        return ()
    wanted = cast("str | list[str]", error.validator_value)
    return (wanted,) if isinstance(wanted, str) else tuple(wanted)


def _reason(error: "ValidationError") -> str:
    if wanted := _types(error):
        kind = _KINDS.get(type(error.instance), "number")
        return f"expected {' or '.join(wanted)}, got {kind} {_short(_to_json(error.instance))}"
    if error.validator == "enum":
        return f"expected one of {_to_json(error.validator_value)}, got {_short(_to_json(error.instance))}"
    return _short(error.message, 3 * _LONGEST_VALUE)


_KINDS = {NoneType: "null", bool: "boolean", str: "string", dict: "object", list: "array"}
"""The JSON types of Python types; all others are numbers."""


def _to_json(value: object) -> str:
    return encode(cast(Json, value)).decode()


def _short(text: str, most: int = _LONGEST_VALUE) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _reference_problems(schema: JsonObject) -> list[str]:
    """References that lead nowhere or in a circle."""
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012, EMPTY_REGISTRY

    resolver = EMPTY_REGISTRY.resolver_with_root(DRAFT202012.create_resource(schema))
    found: dict[str, None] = {}
    for reference in _references(schema):
        seen: set[str] = set()
        target: Json = {"$ref": reference}
        while isinstance(target, dict) and isinstance(follow := target.get("$ref"), str):
            if follow in seen:
                found[f"the reference {reference!r} leads round and round"] = None
                break
            seen.add(follow)
            try:
                target = cast(Json, resolver.lookup(follow).contents)
            except Unresolvable:
                found[f"the reference {reference!r} leads nowhere"] = None
                break
    return list(found)


def _references(value: Json) -> Iterator[str]:
    """The references in a schema. Subschemas with an `$id` are skipped, because references mean something else in
    them."""
    if isinstance(value, dict):
        if isinstance(reference := value.get("$ref"), str):
            yield reference
        for key, inner in value.items():
            if key not in _DATA and not (isinstance(inner, dict) and "$id" in inner):
                yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


_MOST_NAMES = 3
_LEAST_LIKENESS = 0.5


class Definition(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A tool. Without a schema it takes any JSON object; a `custom` tool takes free text instead.

    With `is_parallel` it may run concurrently with others. A tool that is not `is_enabled` is not offered, and calls of
    it are refused. `hosted` names a tool that the model's API provides. With `strict`, the model is held to the schema.
    """

    name: str
    description: str = ""
    schema: dict[str, Json] | None = None
    kind: ToolKind = "function"
    grammar: Grammar | None = None
    is_parallel: bool = False
    is_enabled: bool = True
    hosted: HostedTool | None = None
    strict: bool | None = None

    @property
    def is_remote(self) -> bool:
        """Whether the provider runs the tool, so that it is never called here."""
        return self.hosted == "web_search"


class Toolbox(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tools of a run."""

    definitions: tuple[Definition, ...] = ()

    def find(self, name: str) -> Definition | None:
        """The tool of this name, enabled or not."""
        return next((each for each in self.definitions if each.name == name), None)

    def nearest(self, name: str) -> tuple[str, ...]:
        """The names of enabled tools that may have been meant, best match first; all of them if none is similar."""
        names = [each.name for each in self.definitions if each.is_enabled and each.name != name]
        folded = {each.casefold(): each for each in reversed(names)}
        close = get_close_matches(name.casefold(), list(folded), n=_MOST_NAMES, cutoff=_LEAST_LIKENESS)
        return tuple(folded[each] for each in close) or tuple(names)

    def tools_for(self, tools: tuple[Tool, ...] = ()) -> tuple[Tool, ...]:
        """The tools of a request, followed by those of the toolbox. A tool that the request already has stays as it
        is."""
        there = {kind_of_hosted_tool(tool) if isinstance(tool, OpaqueTool) else tool.name for tool in tools}
        fresh = (each for each in self.definitions if each.is_enabled and each.name not in there)
        return (*tools, *(_tool_of(each) for each in fresh))

    def check(self) -> None:
        """Raise one fault that names all tools that cannot be used."""
        found = [problem for each in self.definitions for problem in definition_problems(each)]
        counts = Counter(each.name for each in self.definitions)
        found += [f"there are {count} tools named {name!r}" for name, count in counts.items() if count > 1]
        if found:
            raise Fault(
                Code.CONFIG,
                f"tools that cannot be used: {'; '.join(found)}",
                hint="Correct these definitions, or leave the tools out.",
            )


def definition_problems(definition: Definition) -> list[str]:
    """What is wrong with a tool's definition; empty if nothing is."""
    if definition.schema is None:
        return []
    if definition.kind == "custom":
        return [f"{definition.name}: a tool for free text has no schema"]
    return [f"{definition.name}: {problem}" for problem in schema_problems(definition.schema)]


def _tool_of(definition: Definition) -> Tool:
    if definition.hosted is not None:
        return make_native_tool(definition.hosted)
    description = definition.description or None
    if definition.kind == "custom":
        return CustomTool(definition.name, description, definition.grammar)
    schema: dict[str, Json] = {"type": "object", "properties": {}} if definition.schema is None else definition.schema
    return FunctionTool(definition.name, description, schema, definition.strict)


ResultPart = Text | Image | Document | Audio
NOTHING = "(no output)"
_HEAD_SHARE = 0.4
"""The end of an output usually shows how it went, so it gets the larger part."""


class ToolOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of a call: parts, or a JSON object if the tool returns one."""

    parts: tuple[ResultPart, ...] = ()
    is_error: bool = False
    structured: dict[str, Json] | None = None


class Cap(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The maximum size of a result: characters of text, and base64 characters of images, audio and files."""

    characters: int = 100_000
    media: int = 3_500_000


def text_outcome(text: str, *, is_error: bool = False) -> ToolOutcome:
    return ToolOutcome((Text(text),), is_error=is_error)


def result_of(
    outcome: ToolOutcome, call_id: str, name: str | None, kind: ToolKind, *, bare: bool = False
) -> ToolResult:
    """The outcome as a tool result for the call with this id."""
    is_error, structured = outcome.is_error or None, outcome.structured
    return ToolResult(call_id, outcome.parts, name, is_error=is_error, kind=kind, structured=structured, bare=bare)


def words_of(outcome: ToolOutcome) -> str:
    """The text of an outcome; if it has none, its JSON."""
    text = "\n".join(part.text for part in outcome.parts if isinstance(part, Text))
    return encode(outcome.structured).decode() if not text and outcome.structured is not None else text


def cap_outcome(outcome: ToolOutcome, cap: Cap) -> ToolOutcome:
    """Limit the size of an outcome. An empty outcome gets a placeholder text."""
    if outcome.structured is not None and len(encode(outcome.structured)) > cap.characters:
        text = Text(encode(outcome.structured).decode())
        outcome = msgspec.structs.replace(outcome, parts=(text, *outcome.parts), structured=None)
    parts = _cap_media(outcome.parts, cap.media)
    parts = tuple(part for part in parts if not isinstance(part, Text) or part.text.strip())
    length = sum(len(part.text) for part in parts if isinstance(part, Text))
    if length > cap.characters:
        whole = "".join(part.text for part in parts if isinstance(part, Text))
        media = tuple(part for part in parts if not isinstance(part, Text))
        parts = (Text(truncate(whole, cap.characters)), *media)
    if not parts and outcome.structured is None:
        parts = (Text(NOTHING),)
    return msgspec.structs.replace(outcome, parts=parts)


def replace_refused_parts(outcome: ToolOutcome, facts: Facts) -> ToolOutcome:
    """Put notes in place of the parts that the model is known not to accept, for which its provider would refuse the
    whole request."""
    parts: list[ResultPart] = []
    for part in outcome.parts:
        found = next(refusals(Request(messages=(Message("user", (part,)),)), facts), None)
        parts.append(Text(f"[left out: of the model it is known that {found.message}]") if found else part)
    return msgspec.structs.replace(outcome, parts=tuple(parts))


def truncate(text: str, most: int) -> str:
    """Shorten a text that is too long to its beginning and end, with a note of how much is missing between them."""
    if len(text) <= most:
        return text
    room = max(0, most - len(_truncation_note(len(text), len(text))))
    head = int(room * _HEAD_SHARE)
    tail = room - head
    return f"{text[:head]}{_truncation_note(len(text) - room, len(text))}{text[len(text) - tail :]}"


def _truncation_note(missing: int, whole: int) -> str:
    return f"\n[{missing} of {whole} characters are left out here]\n"


def _cap_media(parts: tuple[ResultPart, ...], most: int) -> tuple[ResultPart, ...]:
    kept: list[ResultPart] = []
    for part in parts:
        source = None if isinstance(part, Text) else part.source
        size = len(source.data) if isinstance(source, Inline) else 0
        if size > most:
            kind = type(part).__name__.lower()
            kept.append(Text(f"[{kind} of {size} characters left out: more than the {most} that are left]"))
        else:
            most -= size
            kept.append(part)
    return tuple(kept)
