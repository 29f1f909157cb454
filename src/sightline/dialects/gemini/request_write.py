"""A canonical request as a generateContent body."""

from sightline.dialects.conversation import as_turns, leading_count, plain_text, with_policy, with_somebody
from sightline.dialects.dialect import Target
from sightline.dialects.fields import as_list
from sightline.dialects.gemini.field_names import NAME, restore_extras
from sightline.dialects.gemini.options import write_all
from sightline.dialects.gemini.request_parts import ContentWriter
from sightline.dialects.gemini.request_read import MODEL, TOOLS
from sightline.dialects.gemini.signatures import sign_calls
from sightline.dialects.gemini.tools import write_choice, write_tools
from sightline.dialects.option_table import set_path
from sightline.dialects.result_order import with_answers
from sightline.model.json import Json, JsonObject
from sightline.model.message import Message
from sightline.model.parts import Opaque
from sightline.model.report import Report, Severity
from sightline.model.request import Request


def write_request(request: Request, target: Target, report: Report) -> Json:
    """The body, and in the report what it does not say."""
    same = request.dialect == NAME
    messages = request.messages
    if not same:
        _lose_labels(messages, report)
        messages = tuple(message for message in messages if not _is_mirrored(message))
    messages = with_policy(messages, target.system, report)
    if not same:
        messages = with_answers(as_turns(messages), report, NAME)
    document: JsonObject = {}
    _write_messages(messages, document, report, same=same)
    if not same and target.facts is not None and target.facts.signed_calls:
        sign_calls(as_list(document["contents"], "/contents"), report)
    tools = write_tools(request, report)
    if tools:
        document["tools"] = tools
    choice = write_choice(request, tools, report)
    if choice is not None:
        set_path(document, ("toolConfig", "functionCallingConfig"), choice)
    if request.parallel_tool_calls is False:
        severity: Severity = "option" if tools else "identity"
        report.lose(request.parallel_at, "one call at a time", "gemini cannot be asked for it", severity)
    write_all(request.options, document, report, same=same)
    return _with_extras(document, request, tools) if same else document


def _with_extras(document: JsonObject, request: Request, tools: list[Json]) -> JsonObject:
    restore_extras(document, request.extras)
    if MODEL in request.extras:
        document[MODEL] = request.model
    if TOOLS in request.extras:
        document[TOOLS] = tools
    return document


def _lose_labels(messages: tuple[Message, ...], report: Report) -> None:
    for message in messages:
        if message.name is not None:
            report.lose(message.at, "name of the speaker", "gemini has no names on contents", "option")
        if message.id is not None:
            report.lose(message.at, "id of the message", "gemini has no ids on contents", "identity")


def _write_messages(messages: tuple[Message, ...], document: JsonObject, report: Report, *, same: bool) -> None:
    writer = ContentWriter(report, same=same)
    count = leading_count(messages)
    last_at = messages[-1].at if messages else ""
    written: list[tuple[Message, list[Json]]] = []
    spoken = 0
    for index, message in enumerate(messages):
        if index < count and message.role == "developer":
            report.lose(message.at, "role developer", "gemini has only a system instruction", "identity")
        parts = writer.parts(message, "/systemInstruction/parts" if index < count else f"/contents/{spoken}/parts")
        if parts or same:
            written.append((message, parts))
            spoken += index >= count
    messages = tuple(message for message, _ in written)
    if not same:
        if not messages:
            report.lose(last_at, "every message", "nothing is left to answer", "content")
        messages = with_somebody(messages, report, NAME)
    count = leading_count(messages)
    instruction = [part for _, parts in written[:count] for part in parts]
    if same and count:
        document["systemInstruction"] = _as_it_stood(messages[0], instruction)
    elif count:
        document["systemInstruction"] = {"parts": instruction}
    pairs = zip(messages[count:], written[count:], strict=True)
    document["contents"] = [writer.content(message, parts) for message, (_, parts) in pairs]


def _is_mirrored(message: Message) -> bool:
    """Whether everything in this message also stands elsewhere in the request."""
    return bool(message.parts) and all(isinstance(part, Opaque) and part.mirrored for part in message.parts)


def _as_it_stood(message: Message, parts: list[Json]) -> Json:
    if message.bare:
        return plain_text(message.parts)
    return restore_extras({"parts": parts}, message.extras)
