"""Recognises the kind of an export and reads it."""

from collections.abc import Iterator, Mapping
from typing import cast

import msgspec

from sightline.chat.core.facts import ChatImported
from sightline.chat.core.imports.conversations import (
    ChatImport,
    ChatImporter,
    ImportedTurn,
    Speaker,
    member,
    members,
    moment,
    text,
    tool_name,
)
from sightline.chat.core.imports.formats import is_markdown, read_maichat, read_markdown
from sightline.chat.core.topics import Topic
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Citation, Document, Part, PlainText, Text, Thinking, ToolCall, ToolResult
from sightline.wire.jsontext import BOM, decode, encode

MOST_PAIRS = 1000


def pieces_of(fact: ChatImported, most: int = MOST_PAIRS) -> Iterator[ChatImported]:
    """Split an import into facts that are equivalent together, oldest pairs first. All topics are in the first piece;
    each piece repeats the topics of its pairs, because they may have another id here."""
    if len(fact.pairs) <= most:
        yield fact
        return
    pairs = sorted(fact.pairs, key=lambda pair: pair.at)
    known = {topic.id: topic for topic in fact.topics}
    for start in range(0, len(pairs), most):
        piece = tuple(pairs[start : start + most])
        needed = known.keys() if not start else _with_those_above({pair.topic for pair in piece}, known)
        yield ChatImported(tuple(topic for topic in fact.topics if topic.id in needed), piece)


def _with_those_above(topics: set[str], known: dict[str, Topic]) -> set[str]:
    found: set[str] = set()
    for topic in topics:
        while topic in known and topic not in found:
            found.add(topic)
            topic = known[topic].parent
    return found


CHATGPT, CLAUDE = "mapping", "chat_messages"
"""The keys of a conversation by which an export is recognised."""

_MODEL = "model_slug"
_SPOKEN_TO_ALL = ("", "all")


def conversations_of(document: Json, key: str) -> list[JsonObject]:
    """The conversations of an export, which may be a single one; empty if none of them has the key that identifies its
    kind."""
    found = [document] if isinstance(document, dict) else members(document)
    return found if any(key in each for each in found) else []


def read_chatgpt(document: Json) -> ChatImport:
    """Read its conversations, each as a topic below one common topic."""
    gathering = ChatImporter("chatgpt")
    home = gathering.topic("", "ChatGPT")
    for number, conversation in enumerate(conversations_of(document, CHATGPT)):
        key = text(conversation, "conversation_id") or text(conversation, "id") or str(number)
        turns = _Branch(gathering, conversation).turns()
        if turns:
            gathering.conversation(key, gathering.topic(key, text(conversation, "title"), home), turns)
    return gathering.finish()


class _Branch:
    """The branch of one conversation that was on screen."""

    def __init__(self, gathering: ChatImporter, conversation: JsonObject) -> None:
        self._gathering = gathering
        self._nodes: Mapping[str, JsonObject] = {
            name: node for name, node in member(conversation, "mapping").items() if isinstance(node, dict)
        }
        self._model = text(conversation, "default_model_slug")
        self._started = moment(conversation.get("create_time"))
        self._leaf = text(conversation, "current_node")
        self._called: list[str] = []

    def turns(self) -> list[ImportedTurn]:
        path = self._path()
        others = sum(bool(member(node, "message")) for name, node in self._nodes.items() if name not in path)
        if others:
            self._gathering.lose("messages of other branches were left out", others)
        read = [self._turn(name, member(self._nodes[name], "message")) for name in path]
        return [turn for turn in read if turn is not None]

    def _path(self) -> dict[str, None]:
        """The nodes from the root to the leaf."""
        leaf = self._leaf if self._leaf in self._nodes else self._newest()
        names: dict[str, None] = {}
        while leaf in self._nodes and leaf not in names:
            names[leaf] = None
            leaf = text(self._nodes[leaf], "parent")
        return dict.fromkeys(reversed(names))

    def _newest(self) -> str:
        """The newest leaf, used if none is named."""
        parents = {text(node, "parent") for node in self._nodes.values()}
        leaves = [name for name in self._nodes if name not in parents]
        return max(leaves, key=lambda name: moment(member(self._nodes[name], "message").get("create_time")), default="")

    def _turn(self, name: str, message: JsonObject) -> ImportedTurn | None:
        role, metadata = text(member(message, "author"), "role"), member(message, "metadata")
        if role not in ("user", "assistant", "tool"):
            if role and self._content(message):
                self._gathering.lose("hidden instructions were left out")
            return None
        if metadata.get("is_visually_hidden_from_conversation") is True or message.get("weight") == 0:
            return None
        parts = self._parts(name, role, message)
        if not parts:
            return None
        at = moment(message.get("create_time")) or self._started
        model = text(metadata, _MODEL) or self._model
        return ImportedTurn(cast(Speaker, role), parts, name, at, model if role == "assistant" else "")

    def _parts(self, name: str, role: str, message: JsonObject) -> tuple[Part, ...]:
        content = self._content(message)
        recipient = text(message, "recipient")
        joined = "\n\n".join(part.text for part in content if isinstance(part, Text))
        if role == "tool":
            if not self._called:
                self._gathering.lose("results of tools without a call were left out")
                return ()
            return (ToolResult(self._called.pop(0), (Text(joined),)),)
        if role == "assistant" and recipient not in _SPOKEN_TO_ALL:
            self._called.append(name)
            return (ToolCall(name, tool_name(recipient), encode({"input": joined}).decode()),)
        self._called.clear()
        return self._with_sources(content, member(message, "metadata"))

    def _with_sources(self, content: tuple[Part, ...], metadata: JsonObject) -> tuple[Part, ...]:
        """The content with its citations, which the export has only for the whole message."""
        sources = [
            ({**each, **member(each, "metadata")}, each.get("start_ix"), each.get("end_ix"))
            for each in members(metadata.get("citations"))
        ]
        cited = self._gathering.citations(sources)
        last = content[-1] if content else None
        if cited and not isinstance(last, Text):
            self._gathering.lose("citations of no words were left out", len(cited))
        if not cited or not isinstance(last, Text):
            return content
        return (*content[:-1], msgspec.structs.replace(last, citations=cited))

    def _content(self, message: JsonObject) -> tuple[Part, ...]:
        content = member(message, "content")
        match text(content, "content_type"):
            case "thoughts":
                thoughts = [text(each, "content") or text(each, "summary") for each in members(content.get("thoughts"))]
                return tuple(Thinking(thought) for thought in thoughts if thought)
            case "reasoning_recap":
                return ()
            case _:
                pieces = content.get("parts")
                texts = pieces if isinstance(pieces, list) else [content.get("text") or content.get("result")]
                words = [piece for piece in texts if isinstance(piece, str) and piece.strip()]
                pictures = sum(isinstance(piece, dict) for piece in texts)
                if pictures:
                    self._gathering.lose("pictures and files are not in the export", pictures)
                return tuple(map(Text, words))


def read_claude(document: Json) -> ChatImport:
    """Read its conversations, each as a topic below one common topic."""
    gathering = ChatImporter("claude")
    home = gathering.topic("", "Claude")
    for number, conversation in enumerate(conversations_of(document, CLAUDE)):
        key = text(conversation, "uuid") or str(number)
        model = text(conversation, "model")
        turns: list[ImportedTurn] = []
        for place, message in enumerate(members(conversation.get("chat_messages"))):
            turns += _turns(gathering, message, str(place), model)
        if turns:
            gathering.conversation(key, gathering.topic(key, text(conversation, "name"), home), turns)
    return gathering.finish()


def _turns(gathering: ChatImporter, message: JsonObject, place: str, model: str) -> Iterator[ImportedTurn]:
    key, at = text(message, "uuid") or place, moment(message.get("created_at"))
    if text(message, "sender") in ("human", "user"):
        parts = (*_attachments(gathering, message), *_content_parts(gathering, message, key))
        if parts:
            yield ImportedTurn("user", parts, key, at)
        return
    # One message has all rounds of an answer; a result ends the turn that contains its call.
    spoken_parts: list[Part] = []
    for part in _content_parts(gathering, message, key):
        if isinstance(part, ToolResult):
            if spoken_parts:
                yield ImportedTurn("assistant", tuple(spoken_parts), key, at, model)
            yield ImportedTurn("tool", (part,), key, at)
            spoken_parts = []
        else:
            spoken_parts.append(part)
    if spoken_parts:
        yield ImportedTurn("assistant", tuple(spoken_parts), key, at, model)


def _attachments(gathering: ChatImporter, message: JsonObject) -> Iterator[Part]:
    for attachment in members(message.get("attachments")):
        extracted = text(attachment, "extracted_content")
        if extracted:
            yield Document(PlainText(extracted), title=text(attachment, "file_name") or None)
        else:
            gathering.lose("pictures and files are not in the export")
    files = len(members(message.get("files")))
    if files:
        gathering.lose("pictures and files are not in the export", files)


def _content_parts(gathering: ChatImporter, message: JsonObject, key: str) -> Iterator[Part]:
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


def _citations(gathering: ChatImporter, block: JsonObject) -> tuple[Citation, ...]:
    """The citations of a text: an address and a range. In newer exports the address is below `details`."""
    return gathering.citations(
        ({**each, **member(each, "details")}, each.get("start_index"), each.get("end_index"))
        for each in members(block.get("citations"))
    )


def _result(block: JsonObject) -> str:
    content = block.get("content")
    if isinstance(content, str):
        return content
    return "\n\n".join(text(each, "text") for each in members(content) if text(each, "text"))


_ZIP = b"PK\x03\x04"


def read_chat(data: bytes, name: str = "") -> ChatImport:
    """Read the pairs and topics of an export. `name` is the file's name, used for a text without a title."""
    if data.startswith(_ZIP):
        raise _unreadable("this is an archive", "Unpack it and import the conversations.json in it.")
    if data.removeprefix(BOM).lstrip()[:1] in (b"{", b"["):
        document = decode(data)
        for key, read in ((CHATGPT, read_chatgpt), (CLAUDE, read_claude)):
            if conversations_of(document, key):
                return read(document)
        if isinstance(document, dict) and "pairs" in document:
            return read_maichat(document)
        raise _unreadable(
            "this JSON is no export of a chat that is known", "ChatGPT, Claude, MaiChat and Sightline are."
        )
    try:
        text = data.removeprefix(BOM).decode()
    except UnicodeDecodeError as error:
        raise _unreadable("this is no text", "Import JSON or Markdown in UTF-8.") from error
    if not is_markdown(text):
        raise _unreadable(
            "no line in this text names a speaker", "Write `## User` and `## Assistant` before what they say."
        )
    return read_markdown(text, name)


def _unreadable(why: str, hint: str) -> Fault:
    return Fault(Code.INVALID_REQUEST, why, hint=hint)
