"""Exports of a chat: Markdown to read, JSON to keep, JSONL to train with."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from sightline.chat.core.history import ChatHistory
from sightline.chat.core.imports.maichat import OWN_SCHEMA, ExtraFields
from sightline.chat.core.imports.markdown import escape
from sightline.chat.core.pair import MessagePair
from sightline.chat.core.sizing import ChatSettings, concatenate, messages_of
from sightline.chat.core.topics import Topic, compose_system_prelude
from sightline.dialects.dialect import Target
from sightline.dialects.openai_chat.names import NAME as TRAINING
from sightline.dialects.registry import dialect
from sightline.model.json import JsonObject
from sightline.model.message import Message
from sightline.model.parts import Text
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.wire.jsontext import encode

_FLAGS = {"blue": "b", "grey": "g"}


def to_markdown(history: ChatHistory, pairs: Iterable[MessagePair], title: str = "Chat") -> bytes:
    """The pairs in order, to be read and to be imported again."""
    # In pieces, here and below, so that a large export in a thread lets other threads run in between.
    return _text([f"# {title}", ""]) + b"".join(b"\n" + _text(_paragraphs(history, pair)) for pair in pairs)


def _paragraphs(history: ChatHistory, pair: MessagePair) -> list[str]:
    topic = " > ".join(history.topics.path(pair.topic)) or "No topic"
    error = " — error" if pair.state == "error" else ""
    lines = [f"## {topic} — {pair.model or 'no model'} — {_time(pair.at)}{error}", ""]
    lines += [f"Stars: {pair.star} · Flag: {pair.flag}", ""]
    if pair.trouble is not None:
        lines += [f"> {pair.trouble.line}", ""]
    if pair.user_text:
        lines += ["### User", "", escape(pair.user_text), ""]
    if pair.assistant_text:
        lines += ["### Assistant", "", escape(pair.assistant_text), ""]
    return lines


def _text(lines: list[str]) -> bytes:
    return "\n".join(lines).encode("utf-8", "replace")


def to_json(history: ChatHistory, pairs: Sequence[MessagePair], *, now: float, filter_text: str = "") -> bytes:
    """The pairs with all their data, and the topics."""

    def depth(topic: Topic) -> int:
        return len(history.topics.path(topic.id))

    head: JsonObject = {
        "schema": OWN_SCHEMA,
        "generatedAt": _time(now),
        "filterInput": filter_text,
        "count": len(pairs),
        "topics": [msgspec.to_builtins(topic) for topic in sorted(history.topics, key=depth)],
    }
    return encode(head)[:-1] + b',"pairs":[' + b",".join(encode(_entry(history, pair)) for pair in pairs) + b"]}\n"


def to_jsonl(
    history: ChatHistory, pairs: Iterable[MessagePair], settings: ChatSettings, *, whole_topics: bool = False
) -> bytes:
    """One line of messages for each pair with a complete answer, or for each topic's pairs together: the format for
    training."""
    answered = [pair for pair in pairs if pair.state == "complete" and pair.answer and not pair.answer.is_partial]
    groups: dict[str, list[MessagePair]] = {}
    for pair in answered:
        groups.setdefault(pair.topic if whole_topics else pair.id, []).append(pair)
    return b"".join(_line(history, group, settings) for group in groups.values())


def _line(history: ChatHistory, pairs: list[MessagePair], settings: ChatSettings) -> bytes:
    prelude = compose_system_prelude(history.topics.settings_for(pairs[0].topic), settings)
    system = (Message("system", (Text(prelude),), bare=True),) if prelude else ()
    messages = concatenate(messages_of(pair, TRAINING) for pair in pairs)
    written = dialect(TRAINING).write_request(Request(messages=(*system, *messages)), Target(), Report())
    return encode({"messages": written["messages"]}) + b"\n" if messages and isinstance(written, dict) else b""


def _entry(history: ChatHistory, pair: MessagePair) -> JsonObject:
    kept = ExtraFields(
        answer=pair.answer,
        earlier=pair.earlier,
        attachments=pair.attachments,
        trouble=pair.trouble,
        state=pair.state,
        hand=pair.hand,
        exchange=pair.exchange,
    )
    return {
        "id": pair.id,
        "topicId": pair.topic,
        "topicPath": " > ".join(history.topics.path(pair.topic)),
        "model": pair.model,
        "userText": pair.user_text,
        "assistantText": pair.assistant_text,
        "star": pair.star,
        "colorFlag": _FLAGS[pair.flag],
        "lifecycleState": pair.state,
        "timestamp": pair.at,
        "kept": msgspec.to_builtins(kept),
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
