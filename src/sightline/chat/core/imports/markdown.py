"""Conversations in Markdown, read and written: a line names the speaker, and their words follow."""

import hashlib
import re
from collections.abc import Iterable

from sightline.chat.core.history import ChatHistory
from sightline.chat.core.imports.conversations import Gathered, Gathering, ImportedTurn, Speaker, iso_time, moment
from sightline.chat.core.pair import MessagePair
from sightline.model.parts import Text

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


def to_markdown(history: ChatHistory, pairs: Iterable[MessagePair], title: str = "Chat") -> bytes:
    """The pairs in order, to be read and to be imported again."""
    # In pieces, here and below, so that a large export in a thread lets other threads run in between.
    pieces = ([f"# {title}", ""], *(_paragraphs(history, pair) for pair in pairs))
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
    """The text with a backslash before each line that would be read as markup. If it has a fence that does not end, or
    is fenced as a whole, it gets a fence around it."""
    lines = [f"\\{line}" if _is_marked(line.lstrip("\\")) else line for line in text.split("\n")]
    fence = ""
    for line in lines:
        fence = _fence_after(fence, line)
    if not fence and _unfence(text) == text:
        return "\n".join(lines)
    outer = "`" * (max(map(len, _TICKS.findall(text)), default=2) + 1)
    return "\n".join((outer, *lines, outer))


def is_markdown(text: str) -> bool:
    """Whether a line in it names a speaker."""
    return any(_speaker(line) is not None for line in text.splitlines())


def read_markdown(text: str, name: str = "") -> Gathered:
    """The conversation in it, as one topic with the title of the text, or with this name."""
    gathering = Gathering("markdown")
    reading = _Reading(name)
    for line in text.replace("\r\n", "\n").split("\n"):
        reading.take(line)
    reading.close()
    topic = gathering.topic(text, reading.title or "Markdown")
    # Each pair's id is made from this; from the text itself it would take a pass over all of it for each pair.
    key = hashlib.sha256(f"{reading.title}\n{text}".encode("utf-8", "replace")).hexdigest()
    gathering.conversation(key, topic, reading.turns)
    return gathering.finish()


def _is_marked(line: str) -> bool:
    return bool(_speaker(line) or _TITLE.fullmatch(line) or _SECTION.fullmatch(line) or _MARKS.match(line))


def _speaker(line: str) -> tuple[Speaker, str] | None:
    """The speaker that a line names, and the rest of the line."""
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


class _Reading:
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
