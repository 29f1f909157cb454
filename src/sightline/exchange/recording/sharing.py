"""Redaction before sharing: finds what should not be shared in recorded exchanges, and replaces it with stand-ins.

First everything is read, and each value that is found gets a stand-in: the same value has the same one everywhere, even
in places that no pattern would match. Then the exchanges are rewritten. A value that arrived in several pieces of a
stream is found in the folded reply, and the stream is rewritten if its frames still contain it.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import msgspec

from sightline.dialects.dialect import Client
from sightline.errors import Code, Fault
from sightline.exchange.interception.core.reply_writing import write_reply
from sightline.exchange.recording.exchange_record import RecordedExchange, hashes_of
from sightline.exchange.recording.section_texts import (
    SECTIONS,
    ArchiveSection,
    SectionKind,
    read_reply,
    sections_of,
    with_frames,
)
from sightline.model.exchange import Fact, FrameArrived, ReplyStored
from sightline.model.json import Json
from sightline.model.reply import Choice, Reply
from sightline.store.entries import BodyEntry, Entry, FactEntry, raw_reply
from sightline.store.summary import Summary, bodies_of

_KEYS = r"""
    sk-[\w-]{16,} | (?:ghp|gho|ghu|ghs|ghr)_\w{20,} | github_pat_\w{20,} | glpat-[\w-]{16,} | hf_\w{20,}
  | xox[abprs]-[\w-]{10,}
  | (?:AKIA|ASIA)[0-9A-Z]{16} | AIza[\w-]{30,} | eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,} | (?<=[Bb]earer[ ])[\w.~+/-]{16,}=*
  | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----[\s\S]*?-----END[ ][A-Z ]*PRIVATE[ ]KEY-----
"""
_PRIVATE = r"(?:10\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d{1,3}\.\d{1,3}"
_E_MAIL: Final = "e-mail address"
_PATTERNS: Final = (
    ("key", re.compile(rf"(?<![\w-])(?:{_KEYS})", re.VERBOSE), "redacted-key-{}"),
    # No name before the @ is longer. Without a limit, a token of 100 KB without any @, such as encrypted reasoning in
    # base64url, takes 40 s, in which no other thread runs.
    (_E_MAIL, re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}"), "person-{}@example.com"),
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
"""The kinds of values that are found by default."""
_GENERIC_USERS = frozenset({"user", "shared", "public", "runner", "root", "linuxbrew", "ubuntu", "app", "node"})
"""Home folders that identify nobody; such words are in every text."""
_SHORTEST_NAME = 3
_UNREDACTED_FIELDS = frozenset(
    {"id", "kind", "dialect", "state", "phase", "reason", "code", "finish", "origin", "transport"}
)


@dataclass(slots=True)
class Redacted:
    """A value that was found: its kind, its stand-in, and in how many places it was."""

    kind: str
    value: str
    stand_in: str
    places: int = 0


@dataclass(slots=True)
class ListedSection:
    """A section that was found: how many characters it has, in how many requests and replies it is, and whether it is
    left out."""

    id: str
    kind: SectionKind
    label: str
    characters: int
    is_left_out: bool
    places: int = 0


SECTION: Final = "section"
"""The kind of a value that is a text of a section."""
_MIN_SECTION_CHARS = 40
"""A section with fewer characters is replaced only if it is a whole text: "yes" occurs elsewhere, too."""
_STRUCTURAL_FIELDS = frozenset(
    (
        "type", "role", "kind", "model", "name", "id", "object", "status", "event", "finish", "stop_reason",
        "finish_reason", "finishReason", "signed_by", "tool_call_id", "tool_use_id", "call_id", "item", "media_type",
        "mime_type", "mimeType", "format", "detail", "effort",
    )
)  # fmt: skip
"""Fields that say what something is. A user may write "user" or "auto", but without such values in these fields a
request is no longer valid."""
_HEAD = 24
"""How many characters of a value are in the pattern that finds it; a pattern with whole sections would take minutes."""


class Redactor:
    """Everything that was found so far, by value. `patterns` are the user's own regular expressions; if one has a
    group, only the group is replaced. `finders` are functions of plug-ins, by the kind of what they find in a text.
    `sections` are kinds of sections and ids of single ones whose texts are left out. Values and ids of sections in
    `kept` are not replaced. `sections_listed` contains the sections that were found, if there are `sections` or with
    `lists_sections`. Raises a Fault for an invalid pattern or an unknown kind."""

    def __init__(
        self,
        patterns: Sequence[str] = (),
        finders: Mapping[str, Callable[[str], Iterable[str]]] | None = None,
        *,
        sections: Collection[str] = (),
        kept: Collection[str] = (),
        lists_sections: bool = False,
    ) -> None:
        try:
            own = [("own pattern", re.compile(each), "redacted-{}") for each in patterns]
        except re.error as error:
            message = f"a pattern is not a regular expression: {error.pattern!r}: {error.msg}"
            raise Fault(Code.CONFIG, message, hint="Correct it, or [export] patterns in the configuration.") from None
        for name in sections:
            if name not in SECTIONS and not name.startswith(f"{SECTION}-"):
                message = f"there is no kind of section {name!r}"
                raise Fault(Code.USAGE, message, hint=f"Kinds are {', '.join(SECTIONS)}; a section has an id.")
        self.found: dict[str, Redacted] = {}
        self.sections_listed: dict[str, ListedSection] = {}
        self._patterns = (*own, *_PATTERNS)
        self._finders = finders or {}
        self._pattern: re.Pattern[str] | None = None
        self._by_head: dict[str, list[Redacted]] = {}
        self._counts: dict[str, int] = {}
        self._searched: dict[bytes, list[tuple[str, str, str]]] = {}
        self._sections = frozenset(sections)
        self._lists_sections = lists_sections or bool(sections)
        self._kept = frozenset(kept)
        self._titles: set[str] = set()

    # --- searching ---

    def learn(self, entries: Sequence[Entry], summary: Summary) -> None:
        """Search an exchange for values."""
        if self._lists_sections:
            for section in sections_of(entries, summary):
                self._note_section(section)
        for text in (*_texts_of_facts(entries), *_reply_texts(entries, summary)):
            self._search(text)
        for text in _texts_of_frames(entries):
            # A frame may contain the end of an address whose beginning arrived before: that is not an address of its
            # own.
            self._search(text, is_piece=True)

    def _note_section(self, section: ArchiveSection) -> None:
        name = section.id
        listed = self.sections_listed.get(name)
        if listed is None:
            is_left_out = name not in self._kept and not self._sections.isdisjoint((section.kind, name))
            size = sum(map(len, section.texts))
            listed = ListedSection(name, section.kind, section.label, size, is_left_out)
            self.sections_listed[name] = listed
            if is_left_out and section.kind == "user":
                self._titles.update(" ".join(text.split()) for text in section.texts)
        listed.places += 1
        if listed.is_left_out:
            for text in section.texts:
                self._note(SECTION, text, f"[{section.kind} {{}} left out]")

    def check_sections(self) -> None:
        """To be called after everything was read: raises a fault if a section that should be left out was not found."""
        for name in self._sections:
            if name not in SECTIONS and name not in self.sections_listed:
                hint = "`sightline export --preview --sections` lists them, with their ids."
                raise Fault(Code.USAGE, f"there is no section {name!r} in what is shared", hint=hint)

    def _search(self, text: str, *, is_piece: bool = False) -> None:
        for kind, value, stand_in in self._search_once(text):
            if not (is_piece and any(value in known for known in self.found)):
                self._note(kind, value, stand_in)

    def _search_once(self, text: str) -> Sequence[tuple[str, str, str]]:
        """The values in a text, cached. Each request of a conversation repeats the one before: 60 turns of 20 MB took
        7.5 s of searching, and take 2 s with the cache."""
        if len(text) < _MIN_SECTION_CHARS:
            return list(self._values_in(text))
        key = sha256(text.encode("utf-8", "surrogatepass")).digest()
        known = self._searched.get(key)
        if known is None:
            known = self._searched[key] = list(self._values_in(text))
        return known

    def _values_in(self, text: str) -> Iterator[tuple[str, str, str]]:
        for kind, pattern, stand_in in self._patterns:
            if kind == _E_MAIL and "@" not in text:
                continue  # as in the pictures of a request: 8 MB of base64 take 4 s
            for match in pattern.finditer(text):
                yield kind, match[pattern.groups and 1], stand_in
        for kind, find in self._finders.items():
            for value in find(text):
                yield kind, value, f"{kind}-{{}}"

    def _note(self, kind: str, value: str, stand_in: str) -> None:
        if (
            not value
            or value in self._kept
            or (kind == "user name" and (len(value) < _SHORTEST_NAME or value.lower() in _GENERIC_USERS))
        ):
            return
        known = self.found.get(value)
        if known is None:
            self._counts[kind] = number = self._counts.get(kind, 0) + 1
            known = self.found[value] = Redacted(kind, value, stand_in.format(number))
            self._pattern = None
        known.places += 1

    # --- rewriting ---

    def replace(self, text: str) -> str:
        """The text with stand-ins."""
        whole = self.found.get(text)
        return self._replace_within(text) if whole is None else whole.stand_in

    def _replace_within(self, text: str) -> str:
        """The text with stand-ins for values in it; a short section may be in it by chance, and stays."""
        if self._pattern is None:
            self._prepare()
        assert self._pattern is not None
        pieces, done, match = [], 0, self._pattern.search(text)
        while match is not None:
            at = match.start()
            value = next((each for each in self._by_head[match[0]] if _is_at(each, text, at)), None)
            if value is None:
                match = self._pattern.search(text, at + 1)
            else:
                pieces += [text[done:at], value.stand_in]
                done = at + len(value.value)
                match = self._pattern.search(text, done)
        return "".join([*pieces, text[done:]]) if pieces else text

    def _prepare(self) -> None:
        """Make the pattern of the first characters of all values, and list the values for each, the longest first: an
        address contains a name."""
        certain = [
            each for each in self.found.values() if each.kind != SECTION or len(each.value) >= _MIN_SECTION_CHARS
        ]
        certain.sort(key=lambda each: -len(each.value))
        self._by_head = {each.value[:_HEAD]: [] for each in certain}
        short = [each for each in certain if len(each.value) < _HEAD]
        for each in certain:
            self._by_head[each.value[:_HEAD]].append(each)
        for head, values in self._by_head.items():
            values += [each for each in short if head != each.value and head.startswith(each.value)]
        self._pattern = re.compile(_any_of(list(self._by_head)) if self._by_head else r"(?!)")

    def redact(self, entries: Sequence[Entry], summary: Summary) -> list[Entry]:
        """The entries of one exchange with stand-ins; bodies have new hashes, and facts refer to those."""
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
                    value["owner"] = ""  # the owner is of no use to a reader
                with _readable_again():
                    redacted.append(msgspec.structs.replace(entry, fact=msgspec.convert(value, Fact)))
        return redacted

    def summary(self, summary: Summary) -> Summary:
        """The summary of an exchange with stand-ins. Its title is the beginning of a text, and may end within a
        value."""
        title = summary.title.removesuffix("…")
        if title and any(" ".join(title.split()) in text for text in self._titles):
            return self.summary(msgspec.structs.replace(summary, title=""))
        ends = (value[:size] for value in self.found for size in range(_SHORTEST_NAME, min(len(value), len(title) + 1)))
        cut = max((end for end in ends if title.endswith(end)), key=len, default="")
        if cut and not any(title.endswith(value) for value in self.found):
            summary = msgspec.structs.replace(summary, title=title.removesuffix(cut) + "…")
        fields = self._replace_fields(msgspec.to_builtins(summary), {})
        with _readable_again():
            return msgspec.convert(fields, Summary)

    def replace_bytes(self, data: bytes) -> bytes:
        """Redact a body, or a line of a stream: JSON string by string, so that escapes hide nothing, everything else as
        text."""
        try:
            value = json.loads(data)
        except ValueError:
            return self.replace(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        redacted = self._replace_json(value, {})
        return data if redacted == value else json.dumps(redacted, ensure_ascii=False).encode("utf-8", "surrogatepass")

    def _replace_fields(self, value: dict[str, Json], hashes: dict[str, str]) -> dict[str, Json]:
        """Redact the fields of a fact or a summary; their names, and the fields that Sightline itself reads, stay."""
        return {
            name: each if name in _UNREDACTED_FIELDS else self._replace_json(each, hashes)
            for name, each in value.items()
        }

    def _replace_json(self, value: Json, hashes: dict[str, str]) -> Json:
        match value:
            case str():
                return hashes.get(value) or self._replace_text(value)
            case list() | tuple():  # keeps the type, because replies are compared afterwards
                return type(value)(self._replace_json(each, hashes) for each in value)
            case dict():
                return {
                    self._replace_within(name): self._replace_within(each)
                    if name in _STRUCTURAL_FIELDS and isinstance(each, str)
                    else self._replace_json(each, hashes)
                    for name, each in value.items()
                }
            case _:
                return value

    def _replace_text(self, text: str) -> str:
        """Redact a text of a document, which may be a JSON document itself."""
        if (value := _json_in(text)) is not None:
            redacted = self._replace_json(value, {})
            text = text if redacted == value else json.dumps(redacted, ensure_ascii=False)
        return self.replace(text)

    def _frames(self, facts: Sequence[FactEntry], summary: Summary) -> list[bytes]:
        """The frames with stand-ins, as many as there were; if a value is split over them, the first contains
        everything."""
        old = [entry.fact.data for entry in facts if isinstance(entry.fact, FrameArrived)]
        if not old:
            return []
        is_cut = any(not frame.endswith(b"\n") for frame in old[:-1])
        new = [self._stream(b"".join(old)), *(b"" for _ in old[1:])] if is_cut else [self._stream(each) for each in old]
        if b"".join(new) == b"".join(old):
            new = old
        recorded, rewritten = with_frames(facts, summary), with_frames(facts, summary, new)
        reply, now = read_reply(recorded), read_reply(rewritten)
        wanted = None if reply is None else self._replace_json(_choices(reply), {})
        is_written_anew = reply is not None and reply.fault is None and not recorded.is_raw
        if reply is not None and is_written_anew and (now is None or _choices(now) != wanted):
            with _readable_again():
                choices = msgspec.convert(wanted, tuple[Choice, ...])
            client = Client(id=reply.id or summary.id, model=reply.model or summary.model, created=int(summary.at))
            written = msgspec.structs.replace(reply, choices=choices)
            data = write_reply(written, recorded.spoken, client, is_stream=summary.is_stream)
            new = [data, *(b"" for _ in old[1:])]
        return new

    def _stream(self, raw: bytes) -> bytes:
        """Redact a reply, or whole lines of it."""
        if not raw.lstrip().startswith((b"data:", b"event:", b"id:", b":")):
            return self.replace_bytes(raw)
        lines = []
        for line in raw.split(b"\n"):
            name, colon, value = line.partition(b":")
            lines.append(name + colon + b" " + self.replace_bytes(value.strip()) if name == b"data" else line)
        return b"\n".join(lines)

    def check(self, texts: Iterable[str]) -> None:
        """Search what was written once more; raises a fault if a value is left."""
        for text in texts:
            if self._replace_within(text) != text:
                hint = "Nothing was written. Leave the exchange out with a filter, or delete the section in question."
                raise Fault(Code.CONFIG, "a value that was found would still be written", hint=hint)


def texts_of(entries: Sequence[Entry], summary: Summary) -> Iterator[str]:
    """All texts of an exchange, for a final check."""
    yield from _texts_of_facts(entries)
    yield from _texts_of_frames(entries)
    yield from _reply_texts(entries, summary)


def exchange_of(entries: Sequence[Entry], summary: Summary) -> RecordedExchange | None:
    """The exchange that these entries describe; None if a body is missing."""
    facts = tuple(entry for entry in entries if isinstance(entry, FactEntry))
    bodies = {entry.sha256: entry.data for entry in entries if isinstance(entry, BodyEntry)}
    received, sent = hashes_of(facts)
    if received not in bodies or sent not in bodies:
        return None
    return RecordedExchange(summary, facts, bodies[received], bodies[sent])


@contextmanager
def _readable_again() -> Iterator[None]:
    """Raises a Fault if what was taken apart cannot be put together with its stand-ins: what was replaced is also in a
    word of the record's own, such as the x of `text`."""
    try:
        yield
    except msgspec.ValidationError:
        hint = (
            "Nothing was written. Make the regular expression longer, so that it matches only what is to be replaced."
        )
        raise Fault(Code.CONFIG, "a value to be replaced is also in a word of the record's own", hint=hint) from None


def _is_at(found: Redacted, text: str, at: int) -> bool:
    """Whether a value begins at this position. A user name must be a whole word, otherwise it would damage other
    words."""
    if not text.startswith(found.value, at):
        return False
    around = text[at - 1 : at], text[at + len(found.value) :][:1]
    return found.kind != "user name" or not any(each.isalnum() or each == "_" for each in around)


def _any_of(heads: Sequence[str]) -> str:
    """A pattern of these texts, the longest first if one begins with another. It branches at each character, so that a
    search compares a few characters at each position and not each text: that took minutes for some hundred sections."""
    groups: dict[str, list[str]] = {}
    for head in heads:
        groups.setdefault(head[:1], []).append(head[1:])
    ends = groups.pop("", None) is not None
    parts = [
        re.escape(first) + (re.escape(rest[0]) if len(rest) == 1 else _any_of(rest)) for first, rest in groups.items()
    ]
    return f"(?:{'|'.join(parts)}{'|' if ends else ''})"


def _texts_of_facts(entries: Iterable[Entry]) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, BodyEntry):
            yield from _texts_of_bytes(entry.data)
        elif not isinstance(entry.fact, FrameArrived):
            fact = msgspec.to_builtins(entry.fact)
            yield from _strings([value for name, value in fact.items() if name not in _UNREDACTED_FIELDS])


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


def _json_in(text: str) -> Json:
    """The JSON document in a text, such as the arguments of a call, in which escapes would hide values; None if it is
    not one, or has no escapes."""
    if text[:1] not in ("{", "[") or "\\" not in text:
        return None
    try:
        value: Json = json.loads(text)
    except ValueError:
        return None
    return value


def _strings(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
            if (inner := _json_in(value)) is not None:
                yield from _strings(inner)
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
    reply = read_reply(with_frames(entries, summary))
    if reply is not None:
        yield from _strings(_choices(reply))


def _choices(reply: Reply) -> Json:
    value: Json = msgspec.to_builtins(reply.choices)
    return value
