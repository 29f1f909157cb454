"""One-click fixes: edits that remove a problem."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import NamedTuple

import msgspec

from sightline.catalog.facts import Facts
from sightline.catalog.fitting import nearest_effort
from sightline.dialects.dialect import Problem
from sightline.dialects.json_schemas import (
    CLOSED,
    KEYWORD,
    REQUIRED,
    SCHEMA_TYPE,
    TYPES,
    UNTYPED,
    optional_properties,
    or_null,
    strict_schema,
)
from sightline.dialects.openai_rules import GRAMMAR, KINDS, RANGE, RANGES, SYNTAXES, TOOL_FORM
from sightline.dialects.option_table import USER_ID, hash_id
from sightline.dialects.registry import dialect
from sightline.dialects.validity import TOOL_NAME
from sightline.editing.changes import errors_among
from sightline.editing.deletions import parent_of
from sightline.editing.draft import Draft
from sightline.editing.operations import Batch, Delete, Edit, Insert, Move, Reset, Set, SetRole, SetText
from sightline.editing.section import PartType, Section, SectionPart
from sightline.errors import Fault
from sightline.model.json import Json, JsonObject
from sightline.wire.pointer import covers, join, resolve

THINKING, EFFORT, OLD_LIMIT, INLINE_SYSTEM = "thinking", "effort", "max_tokens", "inline_system"
"""The rules about models that an edit can fix."""

_WORDS: Mapping[str, str] = {
    "str": "string",
    "text": "string",
    "date": "string",
    "int": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "bool": "boolean",
    "dict": "object",
    "map": "object",
    "list": "array",
    "tuple": "array",
    "none": "null",
}
"""What other languages call the types."""

_SCHEMAS = frozenset({"parameters", "schema"})
"""The fields in which tools and response formats hold a schema that may be strict."""


class Fix(msgspec.Struct, frozen=True):
    """The label of a button, and the edits that it makes in one step."""

    label: str
    operations: tuple[Edit, ...]


def remedies(draft: Draft, pointer: str, rule: str, facts: Facts) -> Iterator[Fix]:
    """The edits that would satisfy this rule at this place, least intrusive first."""
    mend = _FIXERS.get(rule)
    if mend is None:
        return
    try:
        value = resolve(draft.document, pointer)
    except Fault:
        return
    yield from mend(_Place(draft, pointer, value, facts))


class _Place(NamedTuple):
    draft: Draft
    pointer: str
    value: Json
    facts: Facts


def _set(place: _Place, label: str, value: Json) -> Fix:
    """A fix that replaces the value at this place."""
    return Fix(label, (Set(pointer=place.pointer, value=value),))


def _require_all(place: _Place) -> Iterator[Fix]:
    """Fixes that make every property required. Properties that were optional may be null instead, as OpenAI
    recommends."""
    node = place.value
    if not isinstance(node, dict):
        return
    optional = optional_properties(node)
    properties = node["properties"]
    assert isinstance(properties, dict)  # otherwise nothing would be optional
    required: list[Json] = list(properties)
    nullable: JsonObject = {name: or_null(each) if name in optional else each for name, each in properties.items()}
    loose: JsonObject = {**node, "properties": nullable, "required": required}
    yield _set(place, "Require all, optional ones may be null", loose)
    yield _set(place, "Require all", {**node, "required": required})
    yield from _strictness_fixes(place)


def _strictness_fixes(place: _Place) -> Iterator[Fix]:
    """Fixes that make the whole schema strict, if that is possible, or switch strictness off."""
    for root, holder in _holders(place.draft.document, place.pointer):
        schema = resolve(holder, root.removeprefix(parent_of(root)))
        if holder.get("strict") is not True or not isinstance(schema, dict):
            continue
        made = strict_schema(schema)
        if made.obstacle is None:
            yield Fix("Make the whole schema strict", (Set(pointer=root, value=made.schema),))
        yield Fix("Do not be strict", (Set(pointer=f"{parent_of(root)}/strict", value=False),))
        return


def _holders(document: Json, pointer: str) -> Iterator[tuple[str, JsonObject]]:
    """The schemas that a place may be inside of, outermost first, each with the object that holds it."""
    tokens = pointer.split("/")
    for end, token in enumerate(tokens[1:], 2):
        holder = resolve(document, "/".join(tokens[: end - 1]))
        if token in _SCHEMAS and isinstance(holder, dict):
            yield "/".join(tokens[:end]), holder


def _close(place: _Place) -> Iterator[Fix]:
    at = f"{place.pointer}/additionalProperties"
    is_there = isinstance(place.value, dict) and "additionalProperties" in place.value
    edit = Set(pointer=at, value=False) if is_there else Insert(pointer=at, value=False)
    yield Fix("Say additionalProperties false", (edit,))
    yield from _strictness_fixes(place)


def _say_object(place: _Place) -> Iterator[Fix]:
    if isinstance(place.value, dict) and "properties" in place.value:
        yield Fix("Say that it is an object", (Insert(pointer=f"{place.pointer}/type", value="object"),))
    yield from _strictness_fixes(place)


def _name_type(place: _Place) -> Iterator[Fix]:
    kinds = place.value if isinstance(place.value, list) else [place.value]
    known = [_nearest_type(kind) for kind in kinds]
    if None not in known:
        value: Json = list(known) if isinstance(place.value, list) else known[0]
        words = ", ".join(str(word) for word in known)
        yield _set(place, f"Say {words}", value)


def _nearest_type(kind: Json) -> str | None:
    word = str(kind).lower()
    if word in TYPES:
        return word
    return _WORDS.get(word) or next(iter(get_close_matches(word, TYPES, 1)), None)


def _rename_tool(place: _Place) -> Iterator[Fix]:
    name = place.value
    if isinstance(name, str) and name:
        fitting = dialect(place.draft.dialect).names.fit(name)
        edits = [Set(pointer=at, value=fitting) for at in (place.pointer, *_choices_of(place.draft, name))]
        yield Fix(f"Call it {fitting}", tuple(edits))


def _choices_of(draft: Draft, name: str) -> Iterator[str]:
    """The places at which the tool choice names a tool."""
    choice = None if draft.request is None else draft.request.tool_choice
    if choice is not None and name in choice.names:
        yield from _places_of(name, resolve(draft.document, choice.at), choice.at)


def _places_of(name: str, value: Json, at: str) -> Iterator[str]:
    if value == name:
        yield at
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in children:
        yield from _places_of(name, inner, join(at, key))


def _reshape_tool(place: _Place) -> Iterator[Fix]:
    """Fixes that move a tool's fields to where the API has them: beside its type, or under it."""
    tool = place.value
    if not isinstance(tool, dict) or tool.get("type") not in KINDS:
        return
    kind = str(tool["type"])
    inner = tool.get(kind)
    if isinstance(inner, dict):
        flat: JsonObject = {
            "type": kind,
            **inner,
            **{key: each for key, each in tool.items() if key not in (kind, "type")},
        }
        output = flat.get("format")
        if isinstance(output, dict) and isinstance(grammar := output.get("grammar"), dict):
            flat["format"] = {"type": "grammar", **grammar}
        yield _set(place, "Write it flat", flat)
        return
    nested: JsonObject = {key: each for key, each in tool.items() if key != "type"}
    output = nested.get("format")
    if isinstance(output, dict) and output.get("type") == "grammar" and "grammar" not in output:
        grammar = {key: each for key, each in output.items() if key != "type"}
        nested["format"] = {"type": "grammar", "grammar": grammar}
    yield _set(place, f"Write it under {kind}", {"type": kind, kind: nested})


def _into_range(place: _Place) -> Iterator[Fix]:
    least, most = RANGES[place.pointer.removeprefix("/")]
    value = most if isinstance(place.value, int | float) and place.value > most else least
    yield _set(place, f"Set it to {value}", value)


def _think_adaptively(place: _Place) -> Iterator[Fix]:
    if "adaptive" in (place.facts.thinking or ()):
        yield Fix("Think adaptively", (Set(pointer="/thinking", value={"type": "adaptive"}),))


def _lower_effort(place: _Place) -> Iterator[Fix]:
    nearest = nearest_effort(str(place.value), place.facts.efforts or ())
    if nearest is not None:
        yield _set(place, f"Say {nearest}", nearest)


_FIXERS: Mapping[str, Callable[[_Place], Iterable[Fix]]] = {
    REQUIRED: _require_all,
    CLOSED: _close,
    UNTYPED: _say_object,
    KEYWORD: _strictness_fixes,
    SCHEMA_TYPE: _name_type,
    TOOL_NAME: _rename_tool,
    TOOL_FORM: _reshape_tool,
    GRAMMAR: lambda place: [_set(place, f"Say {syntax}", syntax) for syntax in SYNTAXES],
    RANGE: _into_range,
    USER_ID: lambda place: [_set(place, "Send a hash of it", hash_id(str(place.value)))],
    THINKING: _think_adaptively,
    EFFORT: _lower_effort,
    OLD_LIMIT: lambda place: [
        Fix("Call it max_completion_tokens", (Move(source=place.pointer, pointer="/max_completion_tokens"),))
    ],
    INLINE_SYSTEM: lambda place: [
        Fix("Say it as the user", (SetRole(section=place.draft.section_at(place.pointer), role="user"),))
    ],
}


_DROP: dict[PartType, str] = {
    "text": "Drop the empty part",
    "tool_call": "Drop this call",
    "tool_result": "Drop this result",
    "thinking": "Drop this thinking",
    "image": "Drop this picture",
    "document": "Drop this document",
    "audio": "Drop this sound",
    "cache_breakpoint": "Drop this cache mark",
    "tool": "Drop this tool",
}


def fixes_for(draft: Draft, problem: Problem, facts: Facts, tries: Iterator[object]) -> tuple[Fix, ...]:
    """The fixes that work on this draft, least intrusive first. Each fix takes one of the remaining `tries`; when they
    are used up, no more are offered."""
    return tuple(
        fix for fix, _ in zip(_fixes(draft, problem, facts), tries, strict=False) if _is_improvement(draft, fix)
    )


def part_at(section: Section, pointer: str) -> SectionPart | None:
    """The innermost part of a section that contains a place, or None."""
    holding = [part for part in section.parts if part.pointer and covers(part.pointer, pointer)]
    return max(holding, key=lambda part: len(part.pointer), default=None)


def section_of(draft: Draft, pointer: str) -> Section | None:
    """The section that contains a place, or None."""
    name = draft.section_at(pointer)
    return draft.section(name) if name else None


def _is_improvement(draft: Draft, fix: Fix) -> bool:
    """Whether the fix can be applied and leaves the draft no worse. The worst state is a request that cannot be
    read."""
    try:
        after = draft.with_edit(Batch(operations=fix.operations))
    except Fault:
        return False
    if after is draft or after.request is None:
        return after is not draft and draft.request is None
    return draft.request is None or len(errors_among(after.problems)) <= len(errors_among(draft.problems))


def _fixes(draft: Draft, problem: Problem, facts: Facts) -> Iterator[Fix]:
    if draft.request is None:
        yield Fix("Back to the request as it came", (Reset(),))
        return
    yield from remedies(draft, problem.pointer, problem.rule, facts)
    if problem.pointer and problem.pointer == draft.request.options.places.get("max_tokens") and facts.max_output:
        yield Fix(f"Set it to {facts.max_output}", (Set(pointer=problem.pointer, value=facts.max_output),))
    if problem.pointer == "/max_tokens":
        value = facts.max_output or 4096
        yield Fix(f"Set it to {value}", (Insert(pointer="/max_tokens", value=value),))
    section = section_of(draft, problem.pointer)
    if section is None:
        return
    part = part_at(section, problem.pointer)
    if part is None:
        yield Fix("Drop this message", (Delete(section=section.id),))
        return
    if part.type == "tool_call" and "arguments" in problem.message:
        yield Fix("Call it with {}", (SetText(section=section.id, part=part.id, text="{}"),))
    label = f"Leave out {part.name}" if part.type == "option" else _DROP.get(part.type, "Drop this part")
    yield Fix(label, (Delete(section=section.id, part=part.id),))
