"""A tool's definition from a Python function: its hints become the schema, its docstring the descriptions.

Only the signature is looked at; nothing is called. Two attributes of a function say more: `strict = True` holds the
model to the schema, and `freeform = True`, or `{"syntax", "definition"}` of a grammar, makes it a tool for free text.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from sightline.agent.core.tool import Definition
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.model.tools import Grammar

_SECTION = re.compile(r"^(args|arguments|parameters|params)\s*:?\s*$", re.IGNORECASE)
_OTHER_SECTION = re.compile(r"^(returns?|raises?|yields?|examples?|notes?|see also|warns?)\s*:?\s*$", re.IGNORECASE)
_GOOGLE = re.compile(r"^(\*{0,2}\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY = re.compile(r"^(\*{0,2}\w+)\s*(?::\s*.*)?$")
_FIELD = re.compile(r"^:param\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)$")
_ANY_FIELD = re.compile(r"^:\w+")
_RULE = re.compile(r"^-{3,}$")


@dataclass(slots=True)
class _Doc:
    """A docstring taken apart."""

    summary: list[str] = field(default_factory=list)
    parameters: dict[str, list[str]] = field(default_factory=dict)


def definition_of(function: Callable[..., object], *, is_parallel: bool = False) -> Definition:
    """The definition of the tool that this function is."""
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        raise _unusable(name or "this value", "it has no name", "Define it with `def` under the name of the tool.")
    parameters = _parameters(function, name)
    hints = _hints(function, name)
    if freeform := getattr(function, "freeform", False):
        return _freeform(function, name, list(parameters), hints, freeform)
    doc = _read_doc(inspect.getdoc(function) or "")
    schemas, definitions = _schemas({each: hints.get(each, Any) for each in parameters}, name)
    properties: JsonObject = {}
    for key, parameter in parameters.items():
        described = _describe(schemas[key], hints.get(key), doc.parameters.get(key))
        properties[key] = described | _default(parameter)
    schema: JsonObject = {"type": "object", "properties": properties}
    required: list[Json] = [key for key, each in parameters.items() if each.default is inspect.Parameter.empty]
    if required:
        schema["required"] = required
    kinds = [each.kind for each in inspect.signature(function).parameters.values()]
    schema["additionalProperties"] = inspect.Parameter.VAR_KEYWORD in kinds
    if definitions:
        schema["$defs"] = definitions
    description = "\n".join(doc.summary).strip()
    strict = True if getattr(function, "strict", False) else None
    return Definition(name=name, description=description, schema=schema, is_parallel=is_parallel, strict=strict)


def _freeform(
    function: Callable[..., object], name: str, parameters: list[str], hints: Mapping[str, Any], freeform: object
) -> Definition:
    """A tool that takes one text, as the model writes it."""
    if len(parameters) != 1 or hints.get(parameters[0], str) is not str:
        raise _unusable(name, "a tool for free text takes one text", "Give it one parameter, a str.")
    grammar = None
    if freeform is not True:
        try:
            grammar = msgspec.convert(freeform, Grammar)
        except msgspec.ValidationError as error:
            hint = 'Write freeform = True, or freeform = {"syntax": "lark", "definition": "…"}.'
            raise _unusable(name, f"its grammar cannot be read: {error}", hint) from None
    description = "\n".join(_read_doc(inspect.getdoc(function) or "").summary).strip()
    return Definition(name=name, description=description, kind="custom", grammar=grammar)


def _parameters(function: Callable[..., object], name: str) -> dict[str, inspect.Parameter]:
    """The parameters that can be given by name, in order."""
    found: dict[str, inspect.Parameter] = {}
    for key, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL):
            hint = "A tool is given its arguments by name: take out the * or the /."
            raise _unusable(name, f"its parameter {key!r} cannot be given by name", hint)
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            found[key] = parameter
    return found


def _hints(function: Callable[..., object], name: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
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
    """A hint without the words that are meant for people, which the maker of schemas does not know."""
    if get_origin(hint) is not Annotated:
        return hint
    kind, *others = get_args(hint)
    kept = [each for each in others if isinstance(each, msgspec.Meta)]
    return Annotated[(kind, *kept)] if kept else kind


def _describe(schema: JsonObject, hint: Any, lines: list[str] | None) -> JsonObject:
    """The schema of a parameter with its description: the hint's own words, or the docstring's."""
    own = [each for each in get_args(hint)[1:] if isinstance(each, str)] if get_origin(hint) is Annotated else []
    words = own[0] if own else " ".join(lines or ()).strip()
    return {**schema, "description": words} if words else schema


def _default(parameter: inspect.Parameter) -> JsonObject:
    if parameter.default is inspect.Parameter.empty:
        return {}
    try:
        return {"default": msgspec.to_builtins(parameter.default)}
    except TypeError:
        return {}  # the function knows it, and no JSON could say it


def _unusable(name: str, why: str, hint: str) -> Fault:
    return Fault(Code.CONFIG, f"{name} cannot be a tool: {why}", hint=hint)


def _read_doc(text: str) -> _Doc:
    """The words about the function and those about its parameters, in any of the three usual styles."""
    doc = _Doc()
    section = "summary"
    margin = 0
    current: list[str] = []
    for line in text.splitlines():
        bare, indent = line.strip(), len(line) - len(line.lstrip())
        if found := _FIELD.match(bare):
            section, current = "fields", doc.parameters.setdefault(found[1], [found[2]])
        elif _SECTION.match(bare) and not indent:
            section, margin = "parameters", -1
        elif _OTHER_SECTION.match(bare) and not indent:
            section = "other"
        elif section == "parameters" and bare and not _RULE.match(bare):
            margin = indent if margin < 0 else margin
            entry = (_GOOGLE if margin else _NUMPY).match(bare) if indent <= margin else None
            if entry:
                words = [entry[2]] if margin else []
                current = doc.parameters.setdefault(entry[1].lstrip("*"), words)
            else:
                current.append(bare)
        elif section == "fields" and not _ANY_FIELD.match(bare):
            current.append(bare)
        elif section == "summary":
            doc.summary.append(line)
    return doc
