"""The export formats: MaiChat's, which is only read; Sightline's own, which adds fields to it; the training format,
which is only written; and Markdown, read and written, in which a line names the speaker and their text follows."""

import hashlib
import re
from collections.abc import Iterable, Sequence

import msgspec

from sightline.chat.core.history import ChatHistory
from sightline.chat.core.imports.conversations import (
    ChatImport,
    ChatImporter,
    ImportedTurn,
    Speaker,
    iso_time,
    members,
    moment,
    text,
)
from sightline.chat.core.pair import ChatAnswer, Flag, Hand, LifecycleState, MessagePair, Trouble, text_answer
from sightline.chat.core.sizing import concatenate, messages_of
from sightline.chat.core.topics import ROOT, Topic, compose_system_prelude
from sightline.dialects.dialect import Target
from sightline.dialects.openai_chat.names import NAME as TRAINING
from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Part, Text
from sightline.model.report import Report
from sightline.model.request import Message, Request
from sightline.settings import ChatSettings
from sightline.wire.jsontext import encode

OWN_SCHEMA = "sightline-chat/1"
_GREY = ("g", "grey", "gray")
_DIVIDER = " > "


class ExtraFields(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The fields that Sightline's own export adds to a pair."""

    answer: ChatAnswer | None = None
    earlier: tuple[ChatAnswer, ...] = ()
    attachments: tuple[Part, ...] = ()
    trouble: Trouble | None = None
    state: LifecycleState = "idle"
    hand: Hand = ""
    exchange: str = ""
    run: str = ""
    is_edited: bool = False


_EXTRA = ExtraFields.__struct_fields__


def read_maichat(document: Json) -> ChatImport:
    """Read the pairs. Topics are created from their paths, except that Sightline's own export contains them."""
    holder = document if isinstance(document, dict) else {}
    is_own = text(holder, "schema") == OWN_SCHEMA
    gathering = ChatImporter("sightline" if is_own else "maichat")
    topics = _Topics(gathering)
    try:
        whole = msgspec.convert(holder.get("topics", []), tuple[Topic, ...]) if is_own else ()
        for entry in members(holder.get("pairs")):
            gathering.pairs.append(_pair(gathering, topics, entry, is_own=is_own))
    except msgspec.ValidationError as error:
        message = f"the export cannot be read: {error}"
        raise Fault(Code.INVALID_REQUEST, message, hint="Export it again, or correct the place.") from error
    gathered = gathering.finish()
    if not is_own:
        return gathered
    topics_below = tuple(topic for topic in whole if topic.id != ROOT)
    fact = msgspec.structs.replace(gathered.fact, topics=topics_below)
    return ChatImport(gathered.source, fact, gathered.notes)


class _Topics:
    """Creates the topics of paths, each once, parents first."""

    def __init__(self, gathering: ChatImporter) -> None:
        self._gathering = gathering
        self._known: dict[tuple[str, ...], str] = {(): ROOT}

    def at(self, path: str) -> str:
        names = tuple(name for name in (each.strip() for each in path.split(_DIVIDER)) if name)
        for end in range(1, len(names) + 1):
            if names[:end] not in self._known:
                above = self._known[names[: end - 1]]
                self._known[names[:end]] = self._gathering.topic(_DIVIDER.join(names[:end]), names[end - 1], above)
        return self._known[names]


def _with_sources(gathering: ChatImporter, answer: ChatAnswer, citations: Json) -> ChatAnswer:
    """The answer with its citations: addresses, or objects that have one."""
    given = citations if isinstance(citations, list) else []
    sources: list[JsonObject] = [each if isinstance(each, dict) else {"url": each} for each in given]
    cited = gathering.citations((each, None, None) for each in sources)
    if not cited:
        return answer
    parts = (Text(answer.text, citations=cited),)
    return msgspec.structs.replace(answer, messages=(Message("assistant", parts),))


def _pair(gathering: ChatImporter, topics: _Topics, entry: JsonObject, *, is_own: bool) -> MessagePair:
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
        id=key if is_own else gathering.id_of("pair", key),
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
        run=kept.run,
        is_edited=kept.is_edited,
    )


_FLAGS = {"blue": "b", "grey": "g"}


def to_json(history: ChatHistory, pairs: Sequence[MessagePair], *, now: float, filter_text: str = "") -> bytes:
    """The pairs with all their data, and the topics."""
    head: JsonObject = {
        "schema": OWN_SCHEMA,
        "generatedAt": iso_time(now),
        "filterInput": filter_text,
        "count": len(pairs),
        "topics": [msgspec.to_builtins(topic) for topic in history.topics.parents_first()],
    }
    return encode(head)[:-1] + b',"pairs":[' + b",".join(encode(_entry(history, pair)) for pair in pairs) + b"]}\n"


def to_jsonl(
    history: ChatHistory, pairs: Iterable[MessagePair], settings: ChatSettings, *, whole_topics: bool = False
) -> bytes:
    """One line of messages for each pair with a complete answer, or for all pairs of a topic: the format for
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
        "kept": msgspec.to_builtins(ExtraFields(**{name: getattr(pair, name) for name in _EXTRA})),
    }


_USER = r"user|human|you|me|prompt|question"
_ASSISTANT = r"assistant|ai|model|bot|chatgpt|claude|gemini|gpt|answer|response"
_NAME = rf"(?P<who>{_USER}|{_ASSISTANT})(?: said)?"
_HEADED = re.compile(rf"#{{1,6}} +(?! )\W*{_NAME}\W*", re.IGNORECASE)
_BOLD = re.compile(rf"(?:\*\*|__){_NAME}:?(?:\*\*|__):?[ \t]*(?P<rest>.*)", re.IGNORECASE)
_PLAIN = re.compile(rf"{_NAME}:[ \t]*(?P<rest>.*)", re.IGNORECASE)
_TITLE = re.compile(r"# +(?P<title>.+)")
_SECTION = re.compile(r"## +(?:\d+\. *)?(?P<topic>.{0,500}?) — (?P<model>.{0,200}?) — (?P<time>\S{1,40})(?: — error)?")
_MARKS = re.compile(r"Stars: \d")
_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})")
_TICKS = re.compile("`{3,}")
_IS_USER = re.compile(_USER, re.IGNORECASE)


def to_markdown(history: ChatHistory, pairs: Iterable[MessagePair]) -> bytes:
    """The pairs in order, as Markdown that can be read and imported again."""
    # In pieces, here and below, so that a large export in a thread lets other threads run in between.
    pieces = (["# Chat", ""], *(_paragraphs(history, pair) for pair in pairs))
    return b"\n".join("\n".join(lines).encode("utf-8", "replace") for lines in pieces)


def _paragraphs(history: ChatHistory, pair: MessagePair) -> list[str]:
    topic = " > ".join(history.topics.path(pair.topic)) or "No topic"
    error = " — error" if pair.state == "error" else ""
    lines = [f"## {topic} — {pair.model or 'no model'} — {iso_time(pair.at)}{error}", ""]
    lines += [f"Stars: {pair.star} · Flag: {pair.flag}", ""]
    if pair.trouble is not None:
        lines += [f"> {pair.trouble.line}", ""]
    if pair.user_text:
        lines += ["### User", "", escape(pair.user_text), ""]
    if pair.assistant_text:
        lines += ["### Assistant", "", escape(pair.assistant_text), ""]
    return lines


def escape(text: str) -> str:
    """Put a backslash before each line that would be read as markup. A text with an unclosed fence, or one that is
    fenced as a whole, gets a fence around it."""
    lines = [f"\\{line}" if _is_marked(line.lstrip("\\")) else line for line in text.split("\n")]
    fence = ""
    for line in lines:
        fence = _fence_after(fence, line)
    stripped = text.strip()  # as a reader sees it
    if not fence and _unfence(stripped) == stripped:
        return "\n".join(lines)
    outer = "`" * (max(map(len, _TICKS.findall(text)), default=2) + 1)
    return "\n".join((outer, *lines, outer))


def is_markdown(text: str) -> bool:
    """Whether a line of the text names a speaker."""
    return any(_speaker(line) is not None for line in text.splitlines())


def read_markdown(text: str, name: str = "") -> ChatImport:
    """Read the conversation in a text, as one topic with the title of the text, or with this name."""
    gathering = ChatImporter("markdown")
    reading = _MarkdownParser(name)
    for line in text.replace("\r\n", "\n").split("\n"):
        reading.take(line)
    reading.close()
    topic = gathering.topic(text, reading.title or "Markdown")
    # Each pair's id is derived from this hash. Deriving it from the text would take a pass over the whole text for each
    # pair.
    key = hashlib.sha256(f"{reading.title}\n{text}".encode("utf-8", "replace")).hexdigest()
    gathering.conversation(key, topic, reading.turns)
    return gathering.finish()


def _is_marked(line: str) -> bool:
    return bool(_speaker(line) or _TITLE.fullmatch(line) or _SECTION.fullmatch(line) or _MARKS.match(line))


def _speaker(line: str) -> tuple[Speaker, str] | None:
    """The speaker that a line names, and the rest of the line; None if it names none."""
    line = line.rstrip()
    found = _HEADED.fullmatch(line) or _BOLD.fullmatch(line) or _PLAIN.fullmatch(line)
    if found is None:
        return None
    rest = found.groupdict().get("rest") or ""
    return ("user" if _IS_USER.fullmatch(found["who"]) else "assistant"), rest


def _fence_after(fence: str, line: str) -> str:
    """The fence that is open after this line; empty if none is."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    if not fence:
        return found["fence"]
    is_end = found["fence"].startswith(fence) and line.strip() == found["fence"]
    return "" if is_end else fence


class _MarkdownParser:
    """Reads a text into turns. Fenced text is not searched for speakers."""

    def __init__(self, name: str) -> None:
        self.title = name
        self.turns: list[ImportedTurn] = []
        self._speaker: Speaker | None = None
        self._lines: list[str] = []
        self._fence = ""
        self._model = ""
        self._at = 0.0

    def take(self, line: str) -> None:
        before, self._fence = self._fence, _fence_after(self._fence, line)
        if before or self._fence:
            self._lines.append(line)
        elif (spoken := _speaker(line)) is not None:
            self.close()
            self._speaker = spoken[0]
            self._lines = [spoken[1]] if spoken[1] else []
        elif (section := _SECTION.fullmatch(line)) is not None:
            self.close()
            self._speaker, self._model, self._at = None, section["model"], moment(section["time"])
        elif self._speaker is None:
            title = _TITLE.fullmatch(line)
            self.title = title["title"].strip() if title and not self.title else self.title
        else:
            self._lines.append(line)

    def close(self) -> None:
        """End the current turn."""
        lines = _unfence("\n".join(self._lines).strip()).split("\n")
        text = "\n".join(line[1:] if line[:1] == "\\" and _is_marked(line.lstrip("\\")) else line for line in lines)
        if self._speaker is not None and text.strip():
            model = self._model if self._speaker == "assistant" else ""
            self.turns.append(ImportedTurn(self._speaker, (Text(text),), str(len(self.turns)), self._at, model))
        self._lines = []


def _unfence(text: str) -> str:
    """The text without the fence around all of it, which MaiChat writes."""
    first, _, rest = text.partition("\n")
    inner, _, last = rest.rpartition("\n")
    is_whole = first == last and len(first) >= 3 and set(first) in ({"`"}, {"~"})
    return inner if is_whole and first not in inner.split("\n") else text
