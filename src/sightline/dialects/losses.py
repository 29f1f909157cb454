"""What no other dialect can carry, found without knowing either: the fields of a source that are not modelled."""

from collections.abc import Iterator

from sightline.model.json import Json, JsonObject
from sightline.model.parts import Part, Text, ToolResult
from sightline.model.reply import Choice, Reply
from sightline.model.report import Report, Severity
from sightline.model.request import Request
from sightline.model.usage import Usage
from sightline.model.value import Value
from sightline.wire.pointer import join

CONTAINERS = frozenset(
    {
        "generationConfig",
        "thinkingConfig",
        "toolConfig",
        "functionCallingConfig",
        "generation_config",
        "thinking_config",
        "tool_config",
        "function_calling_config",
        "functionCall",
        "function_call",
        "functionResponse",
        "function_response",
        "inlineData",
        "inline_data",
        "fileData",
        "file_data",
        "stream_options",
        "text",
        "reasoning",
        "thinking",
        "output_config",
        "requestOptions",
        "function",
        "custom",
        "format",
        "imageUrl",
        "value",
        "grammar",
        "response_format",
        "allowed_tools",
        "image_url",
        "input_audio",
        "file",
    }
)
"""Objects that hold options which we do model; of these only the unknown members are lost."""

STATEFUL = frozenset({"thread", "conversation"})
"""Fields that stand for messages which the provider keeps."""


def lose_request_extras(request: Request, target: str, bookkeeping: frozenset[str], report: Report) -> None:
    """Report every field of the request that only its own dialect knows."""
    why = f"{target} has no such field"
    for key in request.extras.keys() & STATEFUL:
        report.lose(join(request.at, key), key, "the conversation so far is with the provider alone", "content")
    extras = {key: value for key, value in request.extras.items() if key not in STATEFUL}
    _lose(request, extras, "option", why, bookkeeping, report)
    for message in request.messages:
        _lose(message, message.extras, "content", why, bookkeeping, report)
        for part in _nested(message.parts):
            _lose(part, part.extras, "content", why, bookkeeping, report)
    for value in _settings(request):
        _lose(value, value.extras, "option", why, bookkeeping, report)


def lose_reply_extras(reply: Reply, target: str, bookkeeping: frozenset[str], report: Report) -> None:
    """Report every field of the reply that only its own dialect knows."""
    why = f"{target} has no such field"
    for choice in reply.choices:
        for part in _nested(choice.parts):
            _lose(part, part.extras, "content", why, bookkeeping, report)
    for field in reply.unmodelled:
        lose_field(field.at, field.value, target, bookkeeping, report)
    if reply.usage is not None:
        lose_counts(reply.usage, target, report)


def lose_choices(reply: Reply, target: str, report: Report) -> None:
    """Report the answers behind the first, for a dialect that has one in a reply."""
    for choice in reply.choices[1:]:
        report.lose(_place(choice), "another choice", f"{target} has one choice in a reply", "content")


def lose_partial(reply: Reply, target: str, report: Report) -> None:
    """Report what had arrived of a reply that failed, for a dialect whose error body holds nothing but the error."""
    why = f"an error of {target} holds nothing else"
    for name, place in reply.places.items():
        report.lose(place, name, why, "identity")
    for choice in reply.choices:
        for part in choice.parts:
            report.lose(part.at, "what had arrived", why, "content")
        if choice.finish_at:
            report.lose(_place(choice), "what had arrived", why, "content")
    if reply.usage is not None:
        report.lose(reply.usage.at, "token counts", why, "identity")


def _place(choice: Choice) -> str:
    """A choice stands where its finish stands."""
    return choice.finish_at.rpartition("/")[0]


def lose_counts(usage: Usage, target: str, report: Report) -> None:
    """Report the finer counts of a provider."""
    for key, value in usage.extras.items():
        for name in value if isinstance(value, dict) else ("",):
            place = join(usage.at, key, name) if name else join(usage.at, key)
            report.lose(place, name or key, f"{target} has no such count", "identity")


def lose_field(at: str, value: Json, target: str, bookkeeping: frozenset[str], report: Report) -> None:
    """Report one field of a reply that is not modelled."""
    if value is None or value in ([], {}, ""):
        return
    key = at.rpartition("/")[2]
    report.lose(at, key, f"{target} has no such field", "identity" if key in bookkeeping else "content")


def _settings(request: Request) -> Iterator[Value]:
    for tool in request.tools:
        yield tool
        if tool.cache is not None:
            yield tool.cache
    if request.tool_choice is not None:
        yield request.tool_choice
    options = request.options
    for value in (options.format, options.reasoning):
        if value is not None:
            yield value


def _nested(parts: tuple[Part, ...]) -> Iterator[Value]:
    for part in parts:
        yield part
        if isinstance(part, ToolResult):
            yield from _nested(part.parts)
        elif isinstance(part, Text):
            yield from part.citations


def _lose(
    holder: Value, extras: JsonObject, severity: Severity, why: str, bookkeeping: frozenset[str], report: Report
) -> None:
    for key, value in extras.items():
        if value is None:  # a null says what absence says
            continue
        if isinstance(value, dict) and key in CONTAINERS:
            nested = Value(at=join(holder.at, key), extras=value)
            _lose(nested, value, severity, why, bookkeeping, report)
        else:
            says_nothing = key in bookkeeping or value == []
            report.lose(join(holder.at, key), key, why, "identity" if says_nothing else severity)
