"""Write the messages of a recorded conversation as in a suite, with placeholders for values that differ each time."""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import assert_never

import msgspec

from sightline.errors import Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    FileId,
    Image,
    Inline,
    Link,
    Opaque,
    Part,
    PlainText,
    Refusal,
    Source,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.request import Message, Role
from sightline.wire import jsontext

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_DATE = r"[12][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_CLOCK = r"[0-2][0-9]:[0-5][0-9](?::[0-6][0-9](?:[.,][0-9]+)?)?"
_ZONE = r"(?: ?(?:Z|UTC|GMT|[+-][0-2][0-9]:?[0-5][0-9]))?"
_STARTS = r"(?<![\w./:~-])"
_NAMED = r"[A-Za-z0-9_.-]*[A-Za-z0-9_-]"
_WINDOWS = r"[A-Za-z]:\\{1,2}"
_HAS_DIGIT = r"(?=[A-Za-z0-9_-]*[0-9])"
_PREFIXES = "toolu|call|msg|resp|req|run|thread|chatcmpl|cmpl|gen|fc|rs|item|batch|asst|step|trace|span|conv"

_PATTERNS = {
    "uuid": r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b",
    "time": rf"(?<![\w-]){_DATE}[T ]{_CLOCK}{_ZONE}(?![0-9])"
    rf"|\b{_DAY},? {_MONTH} [ 0-3]?[0-9] {_CLOCK}{_ZONE} [12][0-9]{{3}}\b",
    "date": rf"(?<![\w-]){_DATE}\b(?!-)|\b(?:{_DAY},? )?{_MONTH} [0-3]?[0-9],? [12][0-9]{{3}}\b"
    rf"|\b(?:{_DAY},? )?[0-3]?[0-9]\.? {_MONTH} [12][0-9]{{3}}\b|\b[0-3]?[0-9]/[0-3]?[0-9]/[12][0-9]{{3}}\b",
    "session": rf"\bsess(?:ion)?[_-]{_HAS_DIGIT}[A-Za-z0-9_-]{{8,}}\b"
    rf"|(?<=session id: ){_HAS_DIGIT}[A-Za-z0-9_-]{{6,}}\b|(?<=session_id=){_HAS_DIGIT}[A-Za-z0-9_-]{{6,}}\b",
    "id": rf"\b(?:{_PREFIXES})[_-]{_HAS_DIGIT}[A-Za-z0-9]{{8,}}\b",
    "temp_dir": rf"{_STARTS}(?:/private)?/(?:tmp|var/tmp|var/folders/{_NAMED}/{_NAMED}/T)/{_NAMED}"
    rf"|{_WINDOWS}Users\\{{1,2}}[\w.-]+\\{{1,2}}AppData\\{{1,2}}Local\\{{1,2}}Temp(?:\\{{1,2}}{_NAMED})?",
    "home": rf"{_STARTS}/(?:home|Users)/{_NAMED}|{_STARTS}/root(?![\w-])|{_WINDOWS}Users\\{{1,2}}{_NAMED}",
    "dir": rf"{_STARTS}/(?:work|workspaces?|srv|mnt|builds?|repos?|projects?|github/workspace)(?=/)"
    r"(?:/[\w-]+(?![\w.-]))?",
}
# A text that a suite would read as one of its own references has to be escaped.
_BRACES = r"\$*\{\{(?=\s*[A-Za-z_][A-Za-z0-9_.]*\s*\}\})"


class Placeholders:
    """Replaces volatile values by `{{ name }}`. Equal values get the same name; `variables` are the values by name, in
    the order of their first occurrence."""

    def __init__(self) -> None:
        groups = [f"(?P<braces>{_BRACES})", *(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS.items())]
        self._pattern = re.compile("|".join(groups))
        self._names: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    @property
    def variables(self) -> dict[str, str]:
        return {name: words for (_, words), name in self._names.items()}

    def text(self, text: str) -> str:
        whole = self._pattern.fullmatch(text.strip())
        if whole is not None:  # a suite drops the white space around a text that is a single reference
            return self._variable_for(whole.lastgroup or "", text)
        return self._pattern.sub(self._replace, text)

    def _replace(self, match: re.Match[str]) -> str:
        if match.start() and match.string[match.start() - 1] == "$":
            return match[0]  # after a dollar sign, the braces would refer to the environment
        return self._variable_for(match.lastgroup or "", match[0])

    def _variable_for(self, kind: str, words: str) -> str:
        key = (kind, words)
        if key not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[key] = kind if self._counts[kind] == 1 else f"{kind}_{self._counts[kind]}"
        return f"{{{{ {self._names[key]} }}}}"


_ENDINGS = {"jpeg": "jpg", "svg+xml": "svg", "plain": "txt", "markdown": "md", "x-python": "py", "octet-stream": "bin"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_LARGEST = 2**63


class MadeFile(msgspec.Struct, frozen=True):
    """A file to be written; its path is relative to the suite."""

    path: str
    data: bytes


class Omission(msgspec.Struct, frozen=True):
    """Something in the recording that is not in the case, or was changed, and why."""

    what: str
    why: str


class CaseWriter:
    """Writes messages one by one, and collects files and omissions. Calls get new ids, the same in every run."""

    def __init__(self, folder: str, mask: Callable[[str], str], placeholders: Placeholders) -> None:
        self._folder = folder
        self._mask = mask
        self._placeholders = placeholders
        self._calls: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._files: dict[str, bytes] = {}
        self._left: dict[Omission, None] = {}

    @property
    def files(self) -> tuple[MadeFile, ...]:
        return tuple(MadeFile(path, data) for path, data in self._files.items())

    @property
    def left(self) -> tuple[Omission, ...]:
        return tuple(self._left)

    def leave(self, what: str, why: str) -> None:
        """Report something that is not in the case, once."""
        self._left[Omission(what, why)] = None

    def text(self, text: str) -> str:
        """The text without secrets and lone surrogates, and with placeholders for volatile values."""
        whole = _SURROGATE.sub("\ufffd", text)
        if whole != text:
            self.leave("half a character", "YAML cannot hold it: U+FFFD is in its place")
        return self._placeholders.text(self._mask(whole))

    def json(self, value: Json) -> Json:
        """The same for every text of a value; keys get no placeholders."""
        return _map_texts(value, self.text, self._plain)

    def mask_secrets(self, value: Json) -> Json:
        """A value without secrets, otherwise unchanged: files and notes have no placeholders."""
        return _map_texts(value, self._plain, self._plain)

    def _plain(self, text: str) -> str:
        return self._mask(_SURROGATE.sub("\ufffd", text))

    def messages(self, messages: Iterable[Message]) -> list[JsonObject]:
        """Write the messages. Results become messages of their own. If an assistant continues after a call, or only
        calls, that is added to its previous message, because nothing may come between a call and its result."""
        made: list[_MessageDraft] = []
        for message in messages:
            made += [self._result(part) for part in message.parts if isinstance(part, ToolResult)]
            spoken = self._collect_parts(message)
            before = made[-1] if made else None
            if (
                before is not None
                and before.role == spoken.role == "assistant"
                and (before.calls or not spoken.content)
            ):
                before.content += spoken.content
                before.calls += spoken.calls
            elif spoken.is_blank:
                self.leave("a message of white space", "a suite does not send it")
            elif spoken.content or spoken.calls:
                made.append(spoken)
        return [each.written for each in made]

    def _collect_parts(self, message: Message) -> "_MessageDraft":
        spoken = _MessageDraft(message.role, name=self.text(message.name or ""))
        for part in message.parts:
            if isinstance(part, ToolCall):
                spoken.calls.append(self._call(part))
            elif not isinstance(part, ToolResult):
                spoken.content += self._part(part)
        return spoken

    def _call(self, call: ToolCall) -> JsonObject:
        # On some wires calls have no id: then each is identified by its position.
        number = len(self._names) + 1
        name = f"call_{number}"
        self._names[name] = call.name
        self._calls[call.id or name] = name
        return {"id": name, "name": call.name, "arguments": self._arguments(call)}

    def _arguments(self, call: ToolCall) -> Json:
        if call.kind == "function":
            try:
                value = jsontext.decode(call.arguments) if call.arguments.strip() else {}
            except Fault:
                value = None
            if isinstance(value, dict) and _fits_yaml(value):
                return self.json(value)
        return self.text(call.arguments)

    def _result(self, result: ToolResult) -> "_MessageDraft":
        call = self._calls.get(result.id) or self._guess_call_id(result)
        tool = self._names.get(call) or result.name or ""
        if result.is_error:
            self.leave(
                f"that {tool or 'a tool'} failed", "a suite has no mark for it; the words of the result are kept"
            )
        content = [each for part in result.parts for each in self._part(part)]
        if result.structured is not None:
            content.append(_text_part(self.text(jsontext.encode(result.structured).decode())))
        return _MessageDraft("tool", name=tool, call_id=call, content=content)

    def _guess_call_id(self, result: ToolResult) -> str:
        """The call that a result without an id answers: the last one of that tool. Empty if there is none."""
        if result.id:
            self.leave(f"the id {result.id} of a result", "no call in the case has it")
            return ""
        return next((name for name, tool in reversed(self._names.items()) if tool == result.name), "")

    def _part(self, part: Part) -> list[Json]:
        match part:
            case Text() | Refusal():
                return [_text_part(self.text(part.text))] if part.text else []
            case Image():
                return self._source("image", part.source, "")
            case Document():
                return self._source("file", part.source, part.title or "")
            case Audio():
                self.leave("sound", "a suite has no part for it")
                return [_text_part(self.text(part.transcript))] if part.transcript else []
            case Thinking():
                self.leave("reasoning", "a model is not given the reasoning of another run")
                return []
            case Opaque():
                if not part.mirrored:
                    self.leave(f"a part that only {part.dialect} knows", "a suite has no part for it")
                return []
            case CacheBreakpoint():
                return []
            case ToolCall() | ToolResult():
                self.leave("a call inside a result", "a suite has no part for it")
                return []
            case unreachable:
                assert_never(unreachable)

    def _source(self, kind: str, source: Source, title: str) -> list[Json]:
        match source:
            case Inline():
                try:
                    data = b64decode(source.data, validate=True)
                except NotBase64:
                    self.leave("an image" if kind == "image" else "a document", "its bytes are not base64")
                    return []
                return [{"type": kind, "value": self._store_file(kind, source.media_type, title, data)}]
            case PlainText():
                words = self._plain(source.text).encode()
                return [{"type": "file", "value": self._store_file("file", source.media_type, title, words)}]
            case Link():
                if kind == "image":
                    return [{"type": "image", "value": self._mask(source.url)}]
                self.leave("a document by its address", "a suite names files only; save it beside the suite")
                return []
            case FileId():
                self.leave(f"the {kind} {source.id}", "only its provider has it; save it beside the suite")
                return []
            case unreachable:
                assert_never(unreachable)

    def keep(self, name: str, data: bytes) -> str:
        """Add a file to be written beside the suite, and return its path."""
        path = f"{self._folder}/{name}"
        self._files[path] = data
        return path

    def _store_file(self, kind: str, media_type: str, title: str, data: bytes) -> str:
        """The path of a file with these bytes; equal bytes are written once."""
        for path, known in self._files.items():
            if known == data:
                return path
        end = media_type.partition(";")[0].rpartition("/")[2].lower()
        end = _ENDINGS.get(end, end)
        number = len(self._files) + 1
        stem, dot, own_end = slug(title).rpartition(".")
        name = f"{stem}-{number}.{own_end}" if dot and stem else f"{slug(title) or kind}-{number}.{slug(end) or 'bin'}"
        return self.keep(name, data)


def slug(text: str) -> str:
    """A name for files and cases: letters, digits, dots and dashes."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:60].strip("-.")


def _map_texts(value: Json, of_text: Callable[[str], str], of_key: Callable[[str], str]) -> Json:
    match value:
        case str():
            return of_text(value)
        case list():
            return [_map_texts(each, of_text, of_key) for each in value]
        case dict():
            return {of_key(key): _map_texts(each, of_text, of_key) for key, each in value.items()}
        case _:
            return value


def _text_part(text: str) -> JsonObject:
    return {"type": "text", "value": text}


@dataclass(slots=True)
class _MessageDraft:
    """A message that is being assembled."""

    role: Role
    name: str = ""
    call_id: str = ""
    content: list[Json] = field(default_factory=list)
    calls: list[Json] = field(default_factory=list)

    @property
    def is_blank(self) -> bool:
        """Whether it has only text, and that text is only white space."""
        words = [each["value"] for each in self.content if isinstance(each, dict) and each["type"] == "text"]
        return (
            bool(words) and len(words) == len(self.content) and not self.calls and not "".join(map(str, words)).strip()
        )

    @property
    def written(self) -> JsonObject:
        made: JsonObject = {"role": self.role}
        if self.call_id:
            made["tool_call_id"] = self.call_id
        if self.name:
            made["name"] = self.name
        if self.content or not self.calls:
            made["content"] = _simplest(self.content)
        if self.calls:
            made["tool_calls"] = self.calls
        return made


def _simplest(content: Sequence[Json]) -> Json:
    """A single text as it is; anything else as a list of parts."""
    only = content[0] if content else _text_part("")
    if len(content) <= 1 and isinstance(only, dict) and only["type"] == "text":
        return only["value"]
    return list(content)


def _fits_yaml(value: Json) -> bool:
    """Whether a suite can hold the value exactly: integers beyond 64 bits are not numbers there."""
    match value:
        case list():
            return all(map(_fits_yaml, value))
        case dict():
            return all(map(_fits_yaml, value.values()))
        case int():
            return -_LARGEST <= value < _LARGEST
        case _:
            return True
