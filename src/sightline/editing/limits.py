"""What a model cannot take or refuses, as far as it is known, and tools that no model could use."""

from collections.abc import Iterator
from typing import assert_never

from sightline.catalog.facts import Facts, Modality
from sightline.catalog.fitting import is_begun, misfits
from sightline.dialects.conversation import SYSTEM_ROLES
from sightline.dialects.dialect import Problem
from sightline.dialects.registry import dialect, find_dialect
from sightline.dialects.validity import is_object
from sightline.editing.remedies import EFFORT, INLINE_SYSTEM, OLD_LIMIT, THINKING
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Audio, Document, Image, Part, ToolCall, ToolResult
from sightline.model.request import Request
from sightline.model.tools import FunctionTool

_WORDS: dict[Modality, str] = {"image": "pictures", "pdf": "documents", "audio": "sound"}
_RULES = {"budget": THINKING, "mode": THINKING, "effort": EFFORT}


def limit_problems(request: Request, facts: Facts) -> Iterator[Problem]:
    """Options and parts that go beyond what is known of the model; only a number that it states is an error."""
    asked = request.options.max_tokens
    if asked is not None and facts.max_output is not None and asked > facts.max_output:
        at = request.options.places.get("max_tokens", "")
        yield Problem(at, f"the model writes at most {facts.max_output} tokens")
    if facts.tools is False and request.tools:
        yield Problem(request.tools[0].at, "this model is not known to call tools", "warning")
    if facts.input is not None:
        for message in request.messages:
            for part in _media(message.parts):
                modality = _modality(part)
                if modality not in facts.input:
                    yield Problem(part.at, f"this model is not known to take {_WORDS[modality]}", "warning")


def refusal_problems(request: Request, facts: Facts) -> Iterator[Problem]:
    """What the model answers with an error: the same that a translation to it would leave out."""
    form = dialect(request.dialect).reasoning
    for misfit in misfits(request, facts, form):
        if not misfit.is_default:  # a default value is taken
            yield Problem(misfit.pointer, f"{misfit.what}: {misfit.why}", rule=_RULES.get(misfit.field, ""))
    # The Messages API has a field of this name too, which every model takes.
    is_old = form == "effort" and request.options.places.get("max_tokens") == "/max_tokens"
    if facts.max_completion_tokens and is_old:
        yield Problem("/max_tokens", "this model takes the limit as max_completion_tokens", rule=OLD_LIMIT)
    if facts.inline_system is False and form == "mode":
        for message in request.messages:
            if message.role in SYSTEM_ROLES and message.at.startswith("/messages"):
                text = "this model takes no system message inside the conversation"
                yield Problem(message.at, text, rule=INLINE_SYSTEM)
    last = request.messages[-1] if request.messages else None
    if facts.prefill is False and last is not None and is_begun(last):
        yield Problem(last.at, "this model does not go on with a last message of the assistant's")


def argument_problems(request: Request) -> Iterator[Problem]:
    """Arguments of a function that are no JSON object; without any it may have been called with none."""
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ToolCall) and part.kind != "custom" and not is_object(part.arguments):
                text = f"the arguments of {part.name!r} are not a JSON object"
                yield Problem(part.at, text, "error" if part.arguments.strip() else "warning")


def schema_problems(request: Request) -> Iterator[Problem]:
    """Parameters of tools that are no schema of an object."""
    spoken = find_dialect(request.dialect)
    is_strict = spoken is not None and spoken.rules.needs_declared_properties
    for tool in request.tools:
        if isinstance(tool, FunctionTool) and tool.schema:
            for words, is_fatal in _schema_faults(tool.schema, is_strict=is_strict or bool(tool.strict)):
                text = f"the parameters of {tool.name!r} {words}"
                yield Problem(tool.at, text, "error" if is_fatal else "warning")


def _schema_faults(schema: JsonObject, *, is_strict: bool) -> Iterator[tuple[str, bool]]:
    kind = schema.get("type")
    if kind is None:
        yield "do not say that they are an object", False
    elif not _says_object(kind):
        yield f"are of type {kind!r} and not an object", True
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        yield "have properties that are no object", True
        return
    yield from (
        (f"have a property {name!r} without a schema", True)
        for name, value in properties.items()
        if not isinstance(value, dict | bool)
    )
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        yield "require something that is no list of names", True
        return
    yield from ((f"require {name!r}, which is no property", is_strict) for name in required if name not in properties)


def _says_object(kind: Json) -> bool:
    words = kind if isinstance(kind, list) else [kind]
    return any(isinstance(word, str) and word.lower() == "object" for word in words)


def _media(parts: tuple[Part, ...]) -> Iterator[Image | Document | Audio]:
    for part in parts:
        if isinstance(part, Image | Document | Audio):
            yield part
        elif isinstance(part, ToolResult):
            yield from _media(part.parts)


def _modality(part: Image | Document | Audio) -> Modality:
    match part:
        case Image():
            return "image"
        case Document():
            return "pdf"
        case Audio():
            return "audio"
        case unreachable:
            assert_never(unreachable)
