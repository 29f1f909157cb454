"""Redaction before sharing: finds what should not leave in recorded exchanges, and puts stand-ins in its place.

First everything is read, and what is found gets a stand-in: the same value has the same one everywhere, also in places
that no pattern would find. Then the exchanges are written anew. A value that a stream brought in pieces is found in the
folded reply, and the stream is written anew where its frames still say it.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from sightline.dialects.dialect import Client
from sightline.errors import Code, Fault
from sightline.exchange.interception.core.reply_writing import write_reply
from sightline.exchange.recording.exchange_record import RecordedExchange, hashes_of, read_request
from sightline.model.exchange import Fact, FrameArrived, ReplyStored
from sightline.model.json import Json
from sightline.model.parts import Audio, Document, Image, Inline, Part, PlainText, Text, Thinking, ToolResult
from sightline.model.reply import Choice, Reply
from sightline.model.request import Request
from sightline.store.entries import BodyEntry, Entry, FactEntry, raw_reply
from sightline.store.summary import Summary, bodies_of

_KEYS = r"""
    sk-[\w-]{16,} | (?:ghp|gho|ghu|ghs|ghr)_\w{20,} | github_pat_\w{20,} | glpat-[\w-]{16,} | hf_\w{20,}
  | xox[abprs]-[\w-]{10,}
  | (?:AKIA|ASIA)[0-9A-Z]{16} | AIza[\w-]{30,} | eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,} | (?<=[Bb]earer[ ])[\w.~+/-]{16,}=*
  | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----[\s\S]*?-----END[ ][A-Z ]*PRIVATE[ ]KEY-----
"""
_PRIVATE = r"(?:10\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d{1,3}\.\d{1,3}"
_PATTERNS: Final = (
    ("key", re.compile(rf"(?<![\w-])(?:{_KEYS})", re.VERBOSE), "redacted-key-{}"),
    ("e-mail address", re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}"), "person-{}@example.com"),
    (
        "phone number",
        re.compile(
            r"(?<![\w+.-])(?:\+\d{1,3}[ .-]?(?:\(?\d{1,4}\)?[ .-]?){2,4}\d{2,4}"
            r"|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4})(?![\w-])"
        ),
        "phone-{}",
    ),
    ("user name", re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\{1,2}Users\\{1,2})([\w.-]+)"), "user-{}"),
    (
        "internal host",
        re.compile(rf"(?<![\w.-])(?:(?:[\w-]+\.)+(?:internal|local|lan|corp|intranet|home\.arpa)|{_PRIVATE})(?![\w.-])"),
        "host-{}.example.com",
    ),
)  # fmt: skip
KINDS: Final = frozenset(kind for kind, _, _ in _PATTERNS)
"""The kinds of values that are found without being asked for."""
_EVERYONE = frozenset({"user", "shared", "public", "runner", "root", "linuxbrew", "ubuntu", "app", "node"})
"""Home folders that tell nothing of a person; such words are in every text."""
_SHORTEST_NAME = 3
_OWN = frozenset({"id", "kind", "dialect", "state", "phase", "reason", "code", "finish", "origin", "transport"})


@dataclass(slots=True)
class Redacted:
    """A value that was found: of which kind, what is written instead, and in how many places it was."""

    kind: str
    value: str
    stand_in: str
    places: int = 0


SectionKind: TypeAlias = Literal["system", "user", "assistant", "thinking", "results", "tools", "attachments"]
SECTIONS: Final[tuple[SectionKind, ...]] = get_args(SectionKind)
"""The kinds of sections that can be left out of an archive."""
_SECTION = "section"
_CERTAIN = 40
"""A section of fewer characters is replaced only where it is a whole text: "yes" is said elsewhere, too."""


class Redactor:
    """What was found so far, by value. `patterns` are regular expressions of the user's own; of one with a group the
    group is replaced. `finders` are functions from outside, by the kind of what they find in a text. `sections` are
    kinds of sections whose texts are left out. What is in `kept` is not replaced."""

    def __init__(
        self,
        patterns: Sequence[str] = (),
        finders: Mapping[str, Callable[[str], Iterable[str]]] | None = None,
        *,
        sections: Collection[SectionKind] = (),
        kept: Collection[str] = (),
    ) -> None:
        try:
            own = [("own pattern", re.compile(each), "redacted-{}") for each in patterns]
        except re.error as error:
            message = f"a pattern is no regular expression: {error.pattern!r}: {error.msg}"
            raise Fault(Code.CONFIG, message, hint="Correct it, or [export] patterns in the configuration.") from None
        self.found: dict[str, Redacted] = {}
        self._patterns = (*own, *_PATTERNS)
        self._finders = finders or {}
        self._any: re.Pattern[str] | None = None
        self._sections = frozenset(sections)
        self._kept = frozenset(kept)

    # --- first everything is read ---

    def learn(self, entries: Sequence[Entry], summary: Summary) -> None:
        """Look for values in an exchange."""
        for kind, text in self._section_texts(entries, summary):
            self._note(_SECTION, text, f"[{kind} {{}} left out]")
        for text in (*_texts_of_facts(entries), *_reply_texts(entries, summary)):
            self._search(text)
        for text in _texts_of_frames(entries):
            # A frame may have the end of an address whose beginning came before: that is no address of its own.
            self._search(text, is_piece=True)

    def _section_texts(self, entries: Sequence[Entry], summary: Summary) -> Iterator[tuple[str, str]]:
        """The texts of the sections that are to be left out, and of which kind each is."""
        if not self._sections:
            return
        for request in _requests(entries, summary):
            for message in request.messages:
                role = "system" if message.role == "developer" else message.role
                yield from self._part_texts(role, message.parts)
            if "tools" in self._sections:
                for tool in request.tools:
                    yield from (("tools", text) for text in _descriptions(msgspec.to_builtins(tool)))
        facts = [entry for entry in entries if isinstance(entry, FactEntry)]
        frames = [entry.fact.data for entry in facts if isinstance(entry.fact, FrameArrived)]
        reply = _read_reply(_with_frames(facts, summary, frames)) if frames else None
        for choice in () if reply is None else reply.choices:
            yield from self._part_texts("assistant", choice.parts)

    def _part_texts(self, role: str, parts: Iterable[Part]) -> Iterator[tuple[str, str]]:
        for part in parts:
            match part:
                case Text(text=text) if role in self._sections:
                    yield role, text
                case Thinking(text=text) if "thinking" in self._sections:
                    yield "thinking", text
                case ToolResult(parts=inner, structured=structured):
                    if "results" in self._sections:
                        yield from (("results", text) for text in _strings(structured))
                        yield from (("results", each.text) for each in inner if isinstance(each, Text))
                    yield from self._part_texts("results", [each for each in inner if not isinstance(each, Text)])
                case Image(source=source) | Document(source=source) | Audio(source=source):
                    if "attachments" in self._sections and isinstance(source, Inline | PlainText):
                        yield "attachments", source.data if isinstance(source, Inline) else source.text
                case _:
                    pass

    def _search(self, text: str, *, is_piece: bool = False) -> None:
        for kind, value, stand_in in self._values_in(text):
            if not (is_piece and any(value in known for known in self.found)):
                self._note(kind, value, stand_in)

    def _values_in(self, text: str) -> Iterator[tuple[str, str, str]]:
        for kind, pattern, stand_in in self._patterns:
            for match in pattern.finditer(text):
                yield kind, match[pattern.groups and 1], stand_in
        for kind, find in self._finders.items():
            for value in find(text):
                yield kind, value, f"{kind}-{{}}"

    def _note(self, kind: str, value: str, stand_in: str) -> None:
        if (
            not value
            or value in self._kept
            or (kind == "user name" and (len(value) < _SHORTEST_NAME or value.lower() in _EVERYONE))
        ):
            return
        known = self.found.get(value)
        if known is None:
            number = sum(each.kind == kind for each in self.found.values()) + 1
            known = self.found[value] = Redacted(kind, value, stand_in.format(number))
            self._any = None
        known.places += 1

    # --- then it is written anew ---

    def replace(self, text: str) -> str:
        """The text with stand-ins."""
        if not self.found:
            return text
        if self._any is None:
            # The longest first: an address has a name in it. A name is a whole word, else it would spoil others.
            values = sorted(self.found.values(), key=lambda each: -len(each.value))
            self._any = re.compile("|".join(map(_pattern_of, values)))
        return self._any.sub(lambda match: self.found[match[0]].stand_in, text)

    def redact(self, entries: Sequence[Entry], summary: Summary) -> list[Entry]:
        """The entries of one exchange with stand-ins; bodies have new hashes, and facts name those."""
        hashes: dict[str, str] = {}
        bodies: dict[str, BodyEntry] = {}
        for entry in entries:
            if isinstance(entry, BodyEntry):
                data = self.replace_bytes(entry.data)
                hashes[entry.sha256] = sha256(data).hexdigest()
                bodies[entry.sha256] = BodyEntry(hashes[entry.sha256], data, self.replace(entry.near))
        facts = [entry for entry in entries if isinstance(entry, FactEntry)]
        frames = self._frames(facts, summary)
        hashes[sha256(raw_reply(facts)).hexdigest()] = sha256(b"".join(frames)).hexdigest()
        redacted: list[Entry] = []
        for entry in facts:
            redacted += [bodies.pop(name) for name in bodies_of(entry.fact) if name in bodies]
            if isinstance(entry.fact, FrameArrived):
                redacted.append(msgspec.structs.replace(entry, fact=FrameArrived(frames.pop(0), entry.fact.after)))
            else:
                value = self._replace_fields(msgspec.to_builtins(entry.fact), hashes)
                if isinstance(entry.fact, ReplyStored):
                    value["owner"] = ""  # whose it is helps no reader
                redacted.append(msgspec.structs.replace(entry, fact=msgspec.convert(value, Fact)))
        return redacted

    def summary(self, summary: Summary) -> Summary:
        """The line of an exchange with stand-ins. Its title is the beginning of a text, and may end within a value."""
        if "user" in self._sections:  # it is the beginning of what the user wrote
            summary = msgspec.structs.replace(summary, title="")
        title = summary.title.removesuffix("…")
        ends = (value[:size] for value in self.found for size in range(_SHORTEST_NAME, min(len(value), len(title) + 1)))
        cut = max((end for end in ends if title.endswith(end)), key=len, default="")
        if cut and not any(title.endswith(value) for value in self.found):
            summary = msgspec.structs.replace(summary, title=title.removesuffix(cut) + "…")
        return msgspec.convert(self._replace_fields(msgspec.to_builtins(summary), {}), Summary)

    def replace_bytes(self, data: bytes) -> bytes:
        """A body, or a line of a stream: JSON by its strings, so that escapes hide nothing, all else as text."""
        try:
            value = json.loads(data)
        except ValueError:
            return self.replace(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        redacted = self._replace_json(value, {})
        return data if redacted == value else json.dumps(redacted, ensure_ascii=False).encode("utf-8", "surrogatepass")

    def _replace_fields(self, value: dict[str, Json], hashes: dict[str, str]) -> dict[str, Json]:
        """The fields of a fact or a line; their names, and those that Sightline itself reads, stay."""
        return {name: each if name in _OWN else self._replace_json(each, hashes) for name, each in value.items()}

    def _replace_json(self, value: Json, hashes: dict[str, str]) -> Json:
        match value:
            case str():
                return hashes.get(value) or self.replace(value)
            case list() | tuple():  # kept as what it is, because replies are compared afterwards
                return type(value)(self._replace_json(each, hashes) for each in value)
            case dict():
                return {self.replace(name): self._replace_json(each, hashes) for name, each in value.items()}
            case _:
                return value

    def _frames(self, facts: Sequence[FactEntry], summary: Summary) -> list[bytes]:
        """The frames with stand-ins, as many as there were; where a value lies across them, the first has it all."""
        old = [entry.fact.data for entry in facts if isinstance(entry.fact, FrameArrived)]
        if not old:
            return []
        is_cut = any(not frame.endswith(b"\n") for frame in old[:-1])
        new = [self._stream(b"".join(old)), *(b"" for _ in old[1:])] if is_cut else [self._stream(each) for each in old]
        if b"".join(new) == b"".join(old):
            new = old
        recorded, rewritten = _with_frames(facts, summary, old), _with_frames(facts, summary, new)
        reply, now = _read_reply(recorded), _read_reply(rewritten)
        wanted = None if reply is None else self._replace_json(_choices(reply), {})
        is_written_anew = reply is not None and reply.fault is None and not recorded.is_raw
        if reply is not None and is_written_anew and (now is None or _choices(now) != wanted):
            choices = msgspec.convert(wanted, tuple[Choice, ...])
            client = Client(id=reply.id or summary.id, model=reply.model or summary.model, created=int(summary.at))
            written = msgspec.structs.replace(reply, choices=choices)
            data = write_reply(written, recorded.spoken, client, is_stream=summary.is_stream)
            new = [data, *(b"" for _ in old[1:])]
        return new

    def _stream(self, raw: bytes) -> bytes:
        """A reply, or whole lines of it."""
        if not raw.lstrip().startswith((b"data:", b"event:", b"id:", b":")):
            return self.replace_bytes(raw)
        lines = []
        for line in raw.split(b"\n"):
            name, colon, value = line.partition(b":")
            lines.append(name + colon + b" " + self.replace_bytes(value.strip()) if name == b"data" else line)
        return b"\n".join(lines)

    def finds(self, text: str) -> bool:
        """Whether a value that was found is in a text."""
        return self.replace(text) != text

    def check(self, texts: Iterable[str]) -> None:
        """Search what was written once more; a fault where something is left."""
        for text in texts:
            if self.finds(text):
                hint = "Nothing was written. Leave the exchange out with a filter, or delete the section in question."
                raise Fault(Code.CONFIG, "a value that was found is still in what would be written", hint=hint)


def texts_of(entries: Sequence[Entry], summary: Summary) -> Iterator[str]:
    """All that an exchange says, for a last look at it."""
    yield from _texts_of_facts(entries)
    yield from _texts_of_frames(entries)
    yield from _reply_texts(entries, summary)


def exchange_of(entries: Sequence[Entry], summary: Summary) -> RecordedExchange | None:
    """The exchange that these entries tell; None where a body is missing."""
    facts = tuple(entry for entry in entries if isinstance(entry, FactEntry))
    bodies = {entry.sha256: entry.data for entry in entries if isinstance(entry, BodyEntry)}
    received, sent = hashes_of(facts)
    if received not in bodies or sent not in bodies:
        return None
    return RecordedExchange(summary, facts, bodies[received], bodies[sent])


def _requests(entries: Sequence[Entry], summary: Summary) -> Iterator[Request]:
    """The requests of an exchange, read: what the client sent, what was sent, and what stood between."""
    facts = tuple(entry for entry in entries if isinstance(entry, FactEntry))
    recorded = RecordedExchange(summary, facts, b"", b"")
    for entry in entries:
        if not isinstance(entry, BodyEntry):
            continue
        for spoken in dict.fromkeys((recorded.received.dialect, recorded.spoken)):
            try:
                yield read_request(spoken, entry.data, recorded.model)
            except (Fault, ValueError, KeyError):
                continue  # it is of the other dialect, or of none: then it has no sections


def _descriptions(value: Json) -> Iterator[str]:
    """What a tool says about itself and its arguments."""
    match value:
        case list() | tuple():
            for each in value:
                yield from _descriptions(each)
        case dict():
            for name, each in value.items():
                if name == "description" and isinstance(each, str):
                    yield each
                else:
                    yield from _descriptions(each)
        case _:
            return


def _pattern_of(found: Redacted) -> str:
    value = re.escape(found.value)
    if found.kind == _SECTION and len(found.value) < _CERTAIN:
        return rf"\A{value}\Z"
    return rf"(?<!\w){value}(?!\w)" if found.kind == "user name" else value


def _texts_of_facts(entries: Iterable[Entry]) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, BodyEntry):
            yield from _texts_of_bytes(entry.data)
        elif not isinstance(entry.fact, FrameArrived):
            fact = msgspec.to_builtins(entry.fact)
            yield from _strings([value for name, value in fact.items() if name not in _OWN])


def _texts_of_frames(entries: Sequence[Entry]) -> Iterator[str]:
    raw = raw_reply(entries)
    for line in raw.split(b"\n"):
        yield from _texts_of_bytes(line.removeprefix(b"data:").strip())
    if b"data:" not in raw:
        yield from _texts_of_bytes(raw)


def _texts_of_bytes(data: bytes) -> Iterator[str]:
    try:
        yield from _strings(json.loads(data))
    except ValueError:
        yield data.decode("utf-8", "replace")


def _strings(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list() | tuple():
            for each in value:
                yield from _strings(each)
        case dict():
            for name, each in value.items():
                yield name
                yield from _strings(each)
        case _:
            return


def _reply_texts(entries: Sequence[Entry], summary: Summary) -> Iterator[str]:
    facts = [entry for entry in entries if isinstance(entry, FactEntry)]
    frames = [entry.fact.data for entry in facts if isinstance(entry.fact, FrameArrived)]
    reply = _read_reply(_with_frames(facts, summary, frames)) if frames else None
    if reply is not None:
        yield from _strings(_choices(reply))


def _with_frames(facts: Sequence[FactEntry], summary: Summary, frames: Sequence[bytes]) -> RecordedExchange:
    """The exchange with these frames in place of its own."""
    given = iter(frames)
    replaced = tuple(
        msgspec.structs.replace(entry, fact=FrameArrived(next(given), entry.fact.after))
        if isinstance(entry.fact, FrameArrived)
        else entry
        for entry in facts
    )
    return RecordedExchange(summary, replaced, b"", b"")


def _read_reply(recorded: RecordedExchange) -> Reply | None:
    try:
        return recorded.reply()
    except (Fault, ValueError, KeyError):
        return None  # it is not of its dialect, and was looked through as text


def _choices(reply: Reply) -> Json:
    value: Json = msgspec.to_builtins(reply.choices)
    return value
