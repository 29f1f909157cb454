"""Tool definitions from Python functions, and the arguments of tool calls.

The type hints of a function become the schema, and its docstring the descriptions. The string that a model wrote
becomes arguments for a tool, or a text that helps the model to correct them.

Only the signature of a function is inspected; the function is never called. Two attributes add to it: `strict = True`
holds the model to the schema, and `freeform = True`, or the `{"syntax", "definition"}` of a grammar, makes it a tool
for free text.
"""

import copy
import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from sightline.agent.core.tool import Definition, Mismatch, SchemaVerdict, Toolbox, validate
from sightline.dialects.tool_names import free_text
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import ToolCall
from sightline.model.request import Grammar
from sightline.wire import pointer
from sightline.wire.jsontext import decode

MOST_REPAIRS = 100
_MOST_STEPS = 20
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?")
_WORDS: dict[str, Json] = {"true": True, "false": False}


class Repair(msgspec.Struct, frozen=True):
    """A place in the arguments whose value was read as another type than it was written as."""

    pointer: str
    what: str


def unwrap(value: Json) -> tuple[Json, tuple[Repair, ...]]:
    """Decode arguments that were JSON-encoded more than once, and replace null with an empty object. Returns the value
    and the repairs."""
    repairs: list[Repair] = []
    if isinstance(value, str) and isinstance(inner := _parse_nested_json(value), dict):
        repairs.append(Repair("", "JSON in a string was read as object"))
        value = inner
    if value is None:
        repairs.append(Repair("", "null was read as an object without members"))
        value = {}
    return value, tuple(repairs)


def repair_value(value: Json, schema: JsonObject) -> tuple[Json, SchemaVerdict, tuple[Repair, ...]]:
    """Convert the value to the types that the schema wants, as far as possible without guessing. Returns the value, the
    verdict on it, and the repairs."""
    value = copy.deepcopy(value)
    repairs: list[Repair] = []
    verdict = validate(schema, value)
    progress = True
    while progress and verdict.count and len(repairs) < MOST_REPAIRS:
        progress = False
        for mismatch in verdict.types:
            fixed = _fix_mismatch(value, mismatch)
            if fixed is None:
                continue
            changed, what, is_inner = fixed
            after = validate(schema, changed)
            # JSON decoded from a string may have mismatches further down, which the next iteration finds.
            if after.count < verdict.count or (is_inner and after != verdict):
                value, verdict, progress = changed, after, True
                repairs.append(Repair(mismatch.pointer, what))
                break
    return value, verdict, tuple(repairs)


def _fix_mismatch(value: Json, mismatch: Mismatch) -> tuple[Json, str, bool] | None:
    """Fix the value at the place of a mismatch. Returns the whole value, how it was changed, and whether JSON was
    decoded from a string; None if it cannot be fixed."""
    found = pointer.resolve(value, mismatch.pointer)
    for wanted in mismatch.wanted:
        fits, meant = _coerce(found, wanted)
        if fits:
            is_inner = wanted in ("object", "array")
            kind = "JSON in a string" if is_inner else "a string" if isinstance(found, str) else "a number"
            return _with_value_at(value, mismatch.pointer, meant), f"{kind} was read as {wanted}", is_inner
    return None


def _coerce(value: Json, wanted: str) -> tuple[bool, Json]:
    """Whether the value can be read as this type, and the value as this type."""
    if wanted == "string":
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number, str(value)
    if not isinstance(value, str):
        return False, None
    text = value.strip()
    match wanted:
        case "integer" | "number":
            fits = (_INTEGER if wanted == "integer" else _NUMBER).fullmatch(text) is not None
            return fits, decode(text) if fits else None
        case "boolean":
            return text.lower() in _WORDS, _WORDS.get(text.lower())
        case "object" | "array":
            inner = _parse_nested_json(value)
            return isinstance(inner, dict if wanted == "object" else list), inner
        case _:
            return text == "null", None


def _parse_nested_json(text: str) -> Json:
    """Decode the JSON in a string, repeatedly if that is a JSON string again; None if it is not JSON."""
    try:
        value = decode(text)
    except Fault:
        return None
    return _parse_nested_json(value) if isinstance(value, str) else value


def _with_value_at(value: Json, place: str, meant: Json) -> Json:
    if not place:
        return meant
    changed = copy.deepcopy(value)
    above, _, _ = place.rpartition("/")
    holder, last = pointer.resolve(changed, above), pointer.parse_pointer(place)[-1]
    if isinstance(holder, list):
        holder[int(last)] = meant
    else:
        assert isinstance(holder, dict)  # the place was found, so it has a parent
        holder[last] = meant
    return changed


def without_nulls(value: Json, schema: JsonObject) -> tuple[Json, tuple[Repair, ...]]:
    """Remove each null that the schema does not allow and whose property is optional. With a strict schema every
    property is required, so a model writes null for the ones that it wants to leave out."""
    repairs: list[Repair] = []
    return _strip_nulls(value, schema, schema, "", repairs), tuple(repairs)


def _strip_nulls(value: Json, schema: Json, root: JsonObject, at: str, repairs: list[Repair]) -> Json:
    schema = _resolve_reference(schema, root)
    if isinstance(value, list):
        items = schema.get("items", {})
        return [_strip_nulls(each, items, root, f"{at}/{n}", repairs) for n, each in enumerate(value)]
    if not isinstance(value, dict):
        return value
    properties, required = schema.get("properties"), schema.get("required")
    known = properties if isinstance(properties, dict) else {}
    needed = required if isinstance(required, list) else []
    kept: JsonObject = {}
    for name, each in value.items():
        inner, place = known.get(name, {}), pointer.join(at, name)
        if each is None and name in known and name not in needed and not _takes_null(inner, root):
            repairs.append(Repair(place, "null was read as left out"))
        else:
            kept[name] = _strip_nulls(each, inner, root, place, repairs)
    return kept


def _resolve_reference(schema: Json, root: JsonObject) -> JsonObject:
    """Follow references to definitions in the same document; an empty schema if a reference cannot be resolved."""
    for _ in range(_MOST_STEPS):
        if not isinstance(schema, dict):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        try:
            schema = pointer.resolve(root, reference[1:])
        except Fault:
            return {}
    return {}


def _takes_null(schema: Json, root: JsonObject) -> bool:
    return validate({**_resolve_reference(schema, root), "$defs": root.get("$defs", {})}, None).count == 0


MOST_MISMATCHES = 10

TRY_AGAIN = "Please check your input and try again."


@dataclass(frozen=True, slots=True)
class AcceptedArguments:
    """Arguments for a tool: an object, or the text of a tool for free text."""

    arguments: JsonObject | str
    repairs: tuple[Repair, ...] = ()


@dataclass(frozen=True, slots=True)
class RefusedArguments:
    """Why a call cannot be run, for the model."""

    text: str


def read_arguments(call: ToolCall, toolbox: Toolbox) -> AcceptedArguments | RefusedArguments:
    """Read and validate the arguments of a call. They are refused if the tool cannot be called or they do not fit its
    schema."""
    definition = toolbox.find(call.name)
    if definition is None:
        return RefusedArguments(f"The tool {call.name!r} does not exist.{_suggest_tools(call.name, toolbox)}")
    if not definition.is_enabled:
        return RefusedArguments(
            f"The tool {call.name!r} is disabled and cannot be called.{_suggest_tools(call.name, toolbox)}"
        )
    if definition.is_remote:
        return RefusedArguments(f"The tool {call.name!r} is run by the provider, and cannot be called here.")
    if definition.kind == "custom":
        # For an API that has only functions, a function with a single text argument was offered in place of the tool.
        return AcceptedArguments(call.arguments if call.kind == "custom" else free_text(call.arguments))
    try:
        value = decode(call.arguments) if call.arguments.strip() else {}
    except Fault as fault:
        return RefusedArguments(f"The arguments of {call.name!r} are invalid: {fault.message}.\n{TRY_AGAIN}")
    return _check_schema(definition, *unwrap(value))


def check_edited(arguments: JsonObject | str, definition: Definition) -> AcceptedArguments | RefusedArguments:
    """Validate arguments that a person edited, against the same schema but without any repairs."""
    if (definition.kind == "custom") is not isinstance(arguments, str):
        wanted = "text" if definition.kind == "custom" else "an object"
        return RefusedArguments(f"{definition.name!r} takes {wanted}.")
    if definition.schema is not None and isinstance(arguments, dict):
        verdict = validate(definition.schema, arguments)
        if verdict.count:
            return RefusedArguments(_mismatch_message(definition.name, verdict.mismatches))
    return AcceptedArguments(arguments)


def _check_schema(
    definition: Definition, value: Json, before: tuple[Repair, ...]
) -> AcceptedArguments | RefusedArguments:
    if definition.strict and definition.schema is not None:
        value, repairs = without_nulls(value, definition.schema)
        before = (*before, *repairs)
    if definition.schema is not None:
        value, verdict, repairs = repair_value(value, definition.schema)
        before = (*before, *repairs)
        if verdict.count:
            return RefusedArguments(f"{_mismatch_message(definition.name, verdict.mismatches)}\n{TRY_AGAIN}")
    if not isinstance(value, dict):
        return RefusedArguments(
            f"The arguments of {definition.name!r} are invalid: they must be a JSON object.\n{TRY_AGAIN}"
        )
    return AcceptedArguments(value, before)


def _mismatch_message(name: str, mismatches: tuple[Mismatch, ...]) -> str:
    lines = [f"- {each.pointer or 'the arguments'}: {each.message}" for each in mismatches[:MOST_MISMATCHES]]
    if len(mismatches) > MOST_MISMATCHES:
        lines.append(f"- and {len(mismatches) - MOST_MISMATCHES} more")
    return "\n".join([f"The arguments of {name!r} are invalid:", *lines])


def _suggest_tools(name: str, toolbox: Toolbox) -> str:
    nearest = toolbox.nearest(name)
    return f" Tools that can be called: {', '.join(nearest)}." if nearest else " No tool can be called."


_SECTION = re.compile(r"^(args|arguments|parameters|params)\s*:?\s*$", re.IGNORECASE)
_OTHER_SECTION = re.compile(r"^(returns?|raises?|yields?|examples?|notes?|see also|warns?)\s*:?\s*$", re.IGNORECASE)
_GOOGLE = re.compile(r"^(\*{0,2}\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY = re.compile(r"^(\*{0,2}\w+)\s*(?::\s*.*)?$")
_FIELD = re.compile(r"^:param\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)$")
_ANY_FIELD = re.compile(r"^:\w+")
_RULE = re.compile(r"^-{3,}$")


def definition_of(function: Callable[..., object], *, is_parallel: bool = False) -> Definition:
    """The tool definition of this function. Raises a fault if the function cannot be a tool."""
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        raise _unusable(name or "this value", "it has no name", "Define it with `def` under the name of the tool.")
    parameters = _parameters(function, name)
    hints = _hints(function, name)
    if freeform := getattr(function, "freeform", False):
        return _freeform(function, name, list(parameters), hints, freeform)
    description, words = _read_doc(inspect.getdoc(function) or "")
    schemas, definitions = _schemas({each: hints.get(each, Any) for each in parameters}, name)
    properties: JsonObject = {}
    for key, parameter in parameters.items():
        described = _describe(schemas[key], hints.get(key), words.get(key))
        properties[key] = described | _default(parameter)
    schema: JsonObject = {"type": "object", "properties": properties}
    required: list[Json] = [key for key, each in parameters.items() if each.default is inspect.Parameter.empty]
    if required:
        schema["required"] = required
    kinds = [each.kind for each in inspect.signature(function).parameters.values()]
    schema["additionalProperties"] = inspect.Parameter.VAR_KEYWORD in kinds
    if definitions:
        schema["$defs"] = definitions
    strict = True if getattr(function, "strict", False) else None
    return Definition(name=name, description=description, schema=schema, is_parallel=is_parallel, strict=strict)


def _freeform(
    function: Callable[..., object], name: str, parameters: list[str], hints: Mapping[str, Any], freeform: object
) -> Definition:
    """A tool that takes a single text, as the model writes it."""
    if len(parameters) != 1 or hints.get(parameters[0], str) is not str:
        raise _unusable(name, "a tool for free text takes one text", "Give it one parameter, a str.")
    grammar = None
    if freeform is not True:
        try:
            grammar = msgspec.convert(freeform, Grammar)
        except msgspec.ValidationError as error:
            hint = 'Write freeform = True, or freeform = {"syntax": "lark", "definition": "…"}.'
            raise _unusable(name, f"its grammar cannot be read: {error}", hint) from None
    description, _ = _read_doc(inspect.getdoc(function) or "")
    return Definition(name=name, description=description, kind="custom", grammar=grammar)


def _parameters(function: Callable[..., object], name: str) -> dict[str, inspect.Parameter]:
    """The parameters that can be passed by name, in order."""
    found: dict[str, inspect.Parameter] = {}
    try:
        signature = inspect.signature(function)
    except ValueError:
        raise _unusable(name, "its parameters are not known", "Define a function that calls it.") from None
    for key, parameter in signature.parameters.items():
        if parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL):
            hint = "A tool is given its arguments by name: take out the * or the /."
            raise _unusable(name, f"its parameter {key!r} cannot be given by name", hint)
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            found[key] = parameter
    return found


def _hints(function: Callable[..., object], name: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, AttributeError, SyntaxError) as error:
        raise _unusable(name, f"a type hint cannot be read: {error}", "Import the type where it is named.") from None


def _schemas(hints: Mapping[str, Any], name: str) -> tuple[dict[str, JsonObject], JsonObject]:
    try:
        schemas, definitions = msgspec.json.schema_components(
            [_plain(hint) for hint in hints.values()], ref_template="#/$defs/{name}"
        )
    except TypeError:
        without = [f"{key}: {inspect.formatannotation(kind)}" for key, kind in hints.items() if not _has_schema(kind)]
        hint = "Use types that JSON has: str, int, float, bool, list, dict, Literal, a dataclass."
        raise _unusable(name, f"a type hint has no JSON Schema ({', '.join(without)})", hint) from None
    return dict(zip(hints, schemas, strict=True)), dict(definitions)


def _has_schema(hint: Any) -> bool:
    try:
        msgspec.json.schema(_plain(hint))
    except TypeError:
        return False
    return True


def _plain(hint: Any) -> Any:
    """The hint without descriptions for people, which msgspec's schema generator does not know."""
    if get_origin(hint) is not Annotated:
        return hint
    kind, *others = get_args(hint)
    kept = [each for each in others if isinstance(each, msgspec.Meta)]
    return Annotated[(kind, *kept)] if kept else kind


def _describe(schema: JsonObject, hint: Any, lines: list[str] | None) -> JsonObject:
    """The schema of a parameter with its description, from the hint or else from the docstring."""
    own = [each for each in get_args(hint)[1:] if isinstance(each, str)] if get_origin(hint) is Annotated else []
    words = own[0] if own else " ".join(lines or ()).strip()
    return {**schema, "description": words} if words else schema


def _default(parameter: inspect.Parameter) -> JsonObject:
    if parameter.default is inspect.Parameter.empty:
        return {}
    if isinstance(parameter.default, float) and not math.isfinite(parameter.default):
        return {}  # JSON would have null in its place, which the parameter does not take
    try:
        return {"default": msgspec.to_builtins(parameter.default)}
    except TypeError:
        return {}  # the function has its default, which has no JSON form


def _unusable(name: str, why: str, hint: str) -> Fault:
    return Fault(Code.CONFIG, f"{name} cannot be a tool: {why}", hint=hint)


def _read_doc(text: str) -> tuple[str, dict[str, list[str]]]:
    """Parse a docstring in any of the three usual styles (Google, NumPy, reStructuredText) into its summary and the
    descriptions of parameters."""
    summary: list[str] = []
    parameters: dict[str, list[str]] = {}
    section = "summary"
    margin = 0
    current: list[str] = []
    for line in text.splitlines():
        bare, indent = line.strip(), len(line) - len(line.lstrip())
        if found := _FIELD.match(bare):
            section, current = "fields", parameters.setdefault(found[1], [found[2]])
        elif _SECTION.match(bare) and not indent:
            section, margin = "parameters", -1
        elif _OTHER_SECTION.match(bare) and not indent:
            section = "other"
        elif section == "parameters" and bare and not _RULE.match(bare):
            margin = indent if margin < 0 else margin
            entry = (_GOOGLE if margin else _NUMPY).match(bare) if indent <= margin else None
            if entry:
                words = [entry[2]] if margin else []
                current = parameters.setdefault(entry[1].lstrip("*"), words)
            else:
                current.append(bare)
        elif section == "fields" and not _ANY_FIELD.match(bare):
            current.append(bare)
        elif section == "summary":
            summary.append(line)
    return "\n".join(summary).strip(), parameters
