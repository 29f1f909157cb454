"""MaiChat's export, which is read, our own, which adds fields to it, and the format for training, which is written."""

from collections.abc import Iterable, Sequence

import msgspec

from sightline.chat.core.history import ChatHistory
from sightline.chat.core.imports.conversations import Gathered, Gathering, iso_time, members, moment, text
from sightline.chat.core.pair import ChatAnswer, Flag, Hand, LifecycleState, MessagePair, Trouble, text_answer
from sightline.chat.core.sizing import ChatSettings, concatenate, messages_of
from sightline.chat.core.topics import ROOT, Topic, compose_system_prelude
from sightline.dialects.dialect import Target
from sightline.dialects.openai_chat.names import NAME as TRAINING
from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.model.message import Message
from sightline.model.parts import Part, Text
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.wire.jsontext import encode

OWN_SCHEMA = "sightline-chat/1"
_GREY = ("g", "grey", "gray")
_DIVIDER = " > "


class ExtraFields(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The fields that our own export adds to a pair."""

    answer: ChatAnswer | None = None
    earlier: tuple[ChatAnswer, ...] = ()
    attachments: tuple[Part, ...] = ()
    trouble: Trouble | None = None
    state: LifecycleState = "idle"
    hand: Hand = ""
    exchange: str = ""


def read_maichat(document: Json) -> Gathered:
    """Its pairs. Topics are made from their paths; our own export contains them."""
    holder = document if isinstance(document, dict) else {}
    is_own = text(holder, "schema") == OWN_SCHEMA
    gathering = Gathering("sightline" if is_own else "maichat")
    topics = _Topics(gathering)
    try:
        whole = msgspec.convert(holder.get("topics", []), tuple[Topic, ...]) if is_own else ()
        for entry in members(holder.get("pairs")):
            gathering.pair(_pair(gathering, topics, entry, is_own=is_own))
    except msgspec.ValidationError as error:
        message = f"the export cannot be read: {error}"
        raise Fault(Code.INVALID_REQUEST, message, hint="Export it again, or correct the place.") from error
    gathered = gathering.finish()
    if not is_own:
        return gathered
    topics_below = tuple(topic for topic in whole if topic.id != ROOT)
    fact = msgspec.structs.replace(gathered.fact, topics=topics_below)
    return Gathered(gathered.source, fact, gathered.notes)


class _Topics:
    """Makes the topics of paths, each once, parents first."""

    def __init__(self, gathering: Gathering) -> None:
        self._gathering = gathering
        self._known: dict[tuple[str, ...], str] = {(): ROOT}

    def at(self, path: str) -> str:
        names = tuple(name for name in (each.strip() for each in path.split(_DIVIDER)) if name)
        for end in range(1, len(names) + 1):
            if names[:end] not in self._known:
                above = self._known[names[: end - 1]]
                self._known[names[:end]] = self._gathering.topic(_DIVIDER.join(names[:end]), names[end - 1], above)
        return self._known[names]


def _with_sources(gathering: Gathering, answer: ChatAnswer, citations: Json) -> ChatAnswer:
    """The answer with its sources: addresses, or objects that have one."""
    given = citations if isinstance(citations, list) else []
    sources: list[JsonObject] = [each if isinstance(each, dict) else {"url": each} for each in given]
    cited = gathering.citations((each, None, None) for each in sources)
    if not cited:
        return answer
    parts = (Text(answer.text, citations=cited),)
    return msgspec.structs.replace(answer, messages=(Message("assistant", parts),))


def _pair(gathering: Gathering, topics: _Topics, entry: JsonObject, *, is_own: bool) -> MessagePair:
    at = moment(entry.get("timestamp", entry.get("createdAt")))
    model, answer_text = text(entry, "model"), text(entry, "assistantText")
    stars = entry.get("star", entry.get("stars"))
    kept = msgspec.convert(entry.get("kept", {}), ExtraFields) if is_own else ExtraFields()
    answer = kept.answer or (text_answer(answer_text, model=model, at=at) if answer_text else None)
    if kept.answer is None and answer is not None:
        answer = _with_sources(gathering, answer, entry.get("citations"))
    trouble = kept.trouble
    if entry.get("errorState") is True:
        trouble = Trouble("unknown", text(entry, "errorMessage") or "it failed where it was asked")
    attached = entry.get("attachments")
    if isinstance(attached, list) and attached:
        gathering.lose("pictures and files are not in the export", len(attached))
    state: LifecycleState = "error" if trouble is not None else "complete" if answer is not None else "idle"
    flag: Flag = "grey" if text(entry, "colorFlag") in _GREY or text(entry, "flagColor") in _GREY else "blue"
    key = text(entry, "id") or f"{at} {text(entry, 'userText')}"
    return MessagePair(
        id=key if is_own else gathering.own_id(key),
        topic=text(entry, "topicId") if is_own else topics.at(text(entry, "topicPath")),
        model=model,
        user_text=text(entry, "userText"),
        attachments=kept.attachments,
        answer=answer,
        earlier=kept.earlier,
        star=min(3, max(0, stars)) if type(stars) is int else 0,
        flag=flag,
        state=kept.state if is_own else state,
        trouble=trouble,
        hand=kept.hand,
        at=at,
        exchange=kept.exchange,
    )


_FLAGS = {"blue": "b", "grey": "g"}


def to_json(history: ChatHistory, pairs: Sequence[MessagePair], *, now: float, filter_text: str = "") -> bytes:
    """The pairs with all their data, and the topics."""

    def depth(topic: Topic) -> int:
        return len(history.topics.path(topic.id))

    head: JsonObject = {
        "schema": OWN_SCHEMA,
        "generatedAt": iso_time(now),
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
