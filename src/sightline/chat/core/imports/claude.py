"""Claude's export: conversations with a list of messages, each with blocks of content."""

from collections.abc import Iterator

from sightline.chat.core.imports.conversations import Gathered, Gathering, ImportedTurn, tool_name
from sightline.chat.core.imports.loose_json import member, members, moment, text
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Citation, Document, Part, PlainText, Text, Thinking, ToolCall, ToolResult
from sightline.wire.jsontext import encode


def is_claude(document: Json) -> bool:
    """Whether this looks like such an export, of one conversation or of all."""
    return any("chat_messages" in each for each in _conversations(document))


def read_claude(document: Json) -> Gathered:
    """The conversations in it, each as a topic below one for all of them."""
    gathering = Gathering("claude")
    home = gathering.topic("", "Claude")
    for number, conversation in enumerate(_conversations(document)):
        key = text(conversation, "uuid") or str(number)
        model = text(conversation, "model")
        turns: list[ImportedTurn] = []
        for place, message in enumerate(members(conversation.get("chat_messages"))):
            turns += _turns(gathering, message, str(place), model)
        if turns:
            gathering.conversation(key, gathering.topic(key, text(conversation, "name"), home), turns)
    return gathering.finish()


def _conversations(document: Json) -> list[JsonObject]:
    return [document] if isinstance(document, dict) else members(document)


def _turns(gathering: Gathering, message: JsonObject, place: str, model: str) -> Iterator[ImportedTurn]:
    key, at = text(message, "uuid") or place, moment(message.get("created_at"))
    if text(message, "sender") in ("human", "user"):
        parts = (*_attachments(gathering, message), *_content_parts(gathering, message, key))
        if parts:
            yield ImportedTurn("user", parts, key, at)
        return
    # One message holds all rounds of an answer; a result ends the turn in which its call stands.
    said: list[Part] = []
    for part in _content_parts(gathering, message, key):
        if isinstance(part, ToolResult):
            if said:
                yield ImportedTurn("assistant", tuple(said), key, at, model)
            yield ImportedTurn("tool", (part,), key, at)
            said = []
        else:
            said.append(part)
    if said:
        yield ImportedTurn("assistant", tuple(said), key, at, model)


def _attachments(gathering: Gathering, message: JsonObject) -> Iterator[Part]:
    for attachment in members(message.get("attachments")):
        extracted = text(attachment, "extracted_content")
        if extracted:
            yield Document(PlainText(extracted), title=text(attachment, "file_name") or None)
        else:
            gathering.lose("pictures and files are not in the export")
    files = len(members(message.get("files")))
    if files:
        gathering.lose("pictures and files are not in the export", files)


def _content_parts(gathering: Gathering, message: JsonObject, key: str) -> Iterator[Part]:
    blocks = members(message.get("content"))
    if not blocks:
        if text(message, "text").strip():
            yield Text(text(message, "text"))
        return
    open_calls: list[str] = []
    for number, block in enumerate(blocks):
        match text(block, "type"):
            case "text":
                if text(block, "text").strip():
                    yield Text(text(block, "text"), citations=_citations(gathering, block))
            case "thinking":
                yield Thinking(text(block, "thinking"))
            case "tool_use":
                open_calls.append(text(block, "id") or f"{key}-{number}")
                arguments = encode(member(block, "input")).decode()
                yield ToolCall(open_calls[-1], tool_name(text(block, "name")), arguments)
            case "tool_result" if open_calls:
                named = text(block, "tool_use_id")
                call = open_calls.pop(open_calls.index(named) if named in open_calls else 0)
                yield ToolResult(call, (Text(_result(block)),), is_error=block.get("is_error") is True or None)
            case _:
                gathering.lose("blocks of an unknown kind were left out")


def _citations(gathering: Gathering, block: JsonObject) -> tuple[Citation, ...]:
    """The sources of a text: an address and a place in it, the address below `details` in newer exports."""
    return gathering.citations(
        (
            {**each, **member(each, "details")},
            each.get("start_index"),
            each.get("end_index"),
        )
        for each in members(block.get("citations"))
    )


def _result(block: JsonObject) -> str:
    content = block.get("content")
    if isinstance(content, str):
        return content
    return "\n\n".join(text(each, "text") for each in members(content) if text(each, "text"))
