"""A draft: a document under edit as a value, its sections, and the history of drafts for undo."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Generic, Literal, NamedTuple, Protocol, Self, TypeVar

from sightline.dialects.dialect import Problem
from sightline.dialects.registry import dialect
from sightline.editing.changes import apply_operation
from sightline.editing.deletions import Deletions, edit_refusal, nearest_of
from sightline.editing.document import (
    OPTIONS,
    OTHER,
    TOOLS,
    DocumentReading,
    PartIds,
    WholeDocument,
    list_of,
    tools_of,
    type_of,
)
from sightline.editing.operations import AnyOperation, Edit, Redo, Reset, Undo
from sightline.editing.section import (
    CallReference,
    Kind,
    PartDetails,
    Section,
    SectionContent,
    SectionPart,
    can_gain_text,
    category_of,
    details_of,
    kind_of,
    label_of,
    text_of,
)
from sightline.editing.texts import words_of
from sightline.errors import Code, Fault
from sightline.model.json import Json
from sightline.model.parts import CacheBreakpoint, ToolCall
from sightline.model.request import Message, Request
from sightline.wire.jsontext import encode
from sightline.wire.pointer import covers, resolve

MOST_STEPS = 200
MOST_BYTES = 64 * 1024 * 1024
"""How far back undo goes."""


class Draft:
    """A document as it is shown on screen. It never changes: an operation returns another draft.

    `original` is the body as it arrived, `first` the draft of it. `data` is the body as it would be sent, `request` is
    what the dialect reads in it, None if it cannot. `sections` include deleted ones, at their old positions.
    """

    def __init__(self, whole: WholeDocument, dialect: str, model: str, first: "Draft | None" = None) -> None:
        self.whole = whole
        self.dialect = dialect
        self.model = model
        self.first: Draft = self if first is None else first
        self._made: dict[str, _MadeSection] = {} if first is None else first._made

    @classmethod
    def of(cls, data: bytes, dialect: str, model: str = "") -> "Draft":
        """The draft of an unedited body."""
        return cls(WholeDocument.of(data, dialect), dialect, model)

    @property
    def original(self) -> bytes:
        """The body as it arrived."""
        return self.first.data

    @cached_property
    def data(self) -> bytes:
        """The body on screen."""
        return self.whole.deletions.apply_to_bytes(self.whole.data)

    @cached_property
    def sha256(self) -> str:
        """The hash of `data`, in hex."""
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def is_dirty(self) -> bool:
        """Whether the bytes differ from the original."""
        return self.data != self.original

    @property
    def document(self) -> Json:
        """The value on screen; None if it is not JSON."""
        return self.screen.document

    @property
    def request(self) -> Request | None:
        """What the dialect reads in the document, None if it cannot."""
        return self.screen.request

    @property
    def fault(self) -> Fault | None:
        """Why the dialect cannot read the document, None if it can."""
        return self.screen.fault

    @cached_property
    def screen(self) -> DocumentReading:
        whole = self.whole
        if not whole.deletions:
            return whole.reading
        return DocumentReading.of(self.dialect, whole.deletions.apply_to_value(whole.reading.document))

    @cached_property
    def problems(self) -> Sequence[Problem]:
        """What the API would refuse or ignore in the request; empty if the request cannot be read at all."""
        return () if self.request is None else tuple(dialect(self.dialect).problems(self.request))

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The document as the user sees it."""
        # A section is made anew unless all that it is made of equals what the latest one with its id was made of: then
        # the sections of a megabyte of 400 items take 1.2 to 1.5 ms instead of 3.0 to 5.1 (Python 3.11).
        return _Sectioning(self.whole, self._made).make_sections(self.data)

    @property
    def size(self) -> int:
        """An upper bound for the bytes that this draft alone keeps in memory."""
        return len(self.whole.data) + (len(self.data) if self.whole.deletions else 0)

    def release_caches(self) -> None:
        """Free what can be computed again, so that a history of drafts holds little more than their bytes."""
        if self is not self.first:
            for name in ("sections", "screen", "problems"):
                self.__dict__.pop(name, None)

    def with_edit(self, operation: Edit) -> "Draft":
        """The draft after an edit; the same one if that changes nothing. Raises a Fault if the edit is refused."""
        if not isinstance(operation, Reset):
            return apply_operation(self, operation)
        if not self.is_dirty and not self.whole.deletions:
            return self
        first = self.first.whole
        names = first.names.with_count(self.whole.names.count)  # no id is assigned twice
        return Draft(first._replace(names=names), self.dialect, self.model, self.first)

    def with_whole(self, whole: WholeDocument) -> "Draft":
        """The draft of a changed document; the same one if it is the same document."""
        return self if whole is self.whole else Draft(whole, self.dialect, self.model, self.first)

    def section(self, name: str) -> Section:
        """The section with this id. Raises a Fault if there is none."""
        for section in self.sections:
            if section.id == name:
                return section
        raise edit_refusal(f"there is no section {name!r}", "Look at the current request: its sections have ids.")

    def section_at(self, pointer: str) -> str:
        """The id of the section that covers a place of `data`, empty if none does."""
        names, reading = self.whole.names.sections, self.whole.reading
        if reading.request is None:
            return names[OTHER].id
        place = self.whole.deletions.to_whole(pointer)
        if above := nearest_of(place, names):
            return names[above].id
        if place in ("", reading.container):
            return ""
        if any(covers(list_of(tool.at), place) for tool in tools_of(reading)):
            return names[TOOLS].id
        return names[OPTIONS].id if OPTIONS in names else ""


class _Source(NamedTuple):
    """What the section of a message is made of, besides the value that the message was read from. `ordinal` counts the
    messages of its kind."""

    message: Message
    ids: PartIds
    answers: Sequence[CallReference]
    deletions: Deletions
    ordinal: int
    is_past: bool


class _MadeSection(NamedTuple):
    """A section, and all that it was made of."""

    source: _Source
    item: Json
    section: Section


def _have_same_text(one: Json, other: Json) -> bool:
    """Whether two values are written alike: Python finds 1, 1.0 and true equal, and keys in any order."""
    return one is other or encode(one) == encode(other)  # an edit leaves everything beside it the same object


class _Sectioning:
    """Makes the sections of one document. `made` has the latest ones by their ids."""

    def __init__(self, whole: WholeDocument, made: dict[str, _MadeSection]) -> None:
        self._reading = whole.reading
        self._names = whole.names
        self._deletions = whole.deletions
        self._made = made

    def make_sections(self, data: bytes) -> tuple[Section, ...]:
        """The sections in the order of the conversation, then the tools and the options."""
        request = self._reading.request
        if request is None:
            return (self._unread(data),)
        sections = self._conversation(request)
        if tools := self._reading.contents.get(TOOLS):
            sections.append(self._bundle("tools", f"Tools ({len(tools)})", list_of(tools[0].at)))
        if OPTIONS in self._reading.contents:
            sections.append(self._bundle("options", "Options", ""))
        return tuple(sections)

    def _conversation(self, request: Request) -> list[Section]:
        answered, kinds = self._calls_by_answer(), [kind_of(message) for message in request.messages]
        # The user's own last message on screen: everything before it is past.
        own = (
            n for n, kind in enumerate(kinds) if kind == "user" and not self._deletions.holds(request.messages[n].at)
        )
        last, counts = max(own, default=0), Counter[str]()
        sections: list[Section] = []
        for number, (message, kind) in enumerate(zip(request.messages, kinds, strict=True)):
            counts[kind] += 1
            ids, answers = self._names.sections[message.at], answered.get(message.at, ())
            source = _Source(message, ids, answers, self._deletions, counts[kind], number < last)
            item, known = resolve(self._reading.document, message.at), self._made.get(ids.id)
            if known is None or known.source != source or not _have_same_text(known.item, item):
                known = self._made[ids.id] = _MadeSection(source, item, self._section(source, kind))
            sections.append(known.section)
        return sections

    def _calls_by_answer(self) -> Mapping[str, Sequence[CallReference]]:
        """The calls that the results of each message answer, by the message's place."""
        sections = self._names.sections
        answered: dict[str, list[CallReference]] = defaultdict(list)
        for call, result in self._reading.pairs:
            if isinstance(call, ToolCall):
                home = sections[nearest_of(call.at, sections)].id
                reference = CallReference(call.id, call.name, call.arguments, home)
                answered[nearest_of(result.at, sections)].append(reference)
        return answered

    def _section(self, source: _Source, kind: Kind) -> Section:
        message = source.message
        is_deleted = self._deletions.holds(message.at)
        parts = self._parts(source.ids, message.at)
        # An edit does not replace deleted parts, unless all are deleted.
        found = text_of([part for part in parts if is_deleted or not part.deleted])
        if found is None:
            can_gain = can_gain_text(message, Deletions() if is_deleted else self._deletions)
            found = "", "" if can_gain else "It has no text of its own: edit its parts one by one."
        text, reason = found
        return Section(
            id=source.ids.id,
            kind=kind,
            role=message.role,
            label=label_of(message, kind, source.ordinal, source.answers),
            pointer="" if is_deleted else self._deletions.to_screen(message.at),
            text=text,
            editable=not reason,
            deleted=is_deleted,
            parts=parts,
            category=category_of(message, kind, is_past=source.is_past),
            answers=tuple(source.answers),
            reason=reason,
            has_cache_mark=CacheBreakpoint in map(type, message.parts),
        )

    def _parts(self, named: PartIds, key: str) -> tuple[SectionPart, ...]:
        contents, keys = self._reading.contents[key], self._reading.outline[key]
        return tuple([self._part(named.parts[key], each) for key, each in zip(keys, contents, strict=True)])

    def _part(self, name: str, content: SectionContent) -> SectionPart:
        is_deleted = self._deletions.holds(content.at)
        words = words_of(content, self._reading.document, self._reading.name)
        details: PartDetails = {"text": words.shown, **details_of(content)}
        return SectionPart(
            id=name,
            type=type_of(content),
            pointer="" if is_deleted else self._deletions.to_screen(content.at),
            editable=words.is_editable,
            deleted=is_deleted,
            reason=words.reason,
            is_json=words.is_json,
            **details,
        )

    def _bundle(self, kind: Literal["tools", "options"], label: str, place: str) -> Section:
        """A section of parts that are edited one by one."""
        named = self._names.sections[kind]
        parts = self._parts(named, kind)
        is_deleted = all(part.deleted for part in parts)
        return Section(
            id=named.id,
            kind=kind,
            label=label,
            pointer="" if is_deleted else self._deletions.to_screen(place),
            deleted=is_deleted,
            parts=parts,
            category=kind,
            reason="Edit its parts one by one.",
        )

    def _unread(self, data: bytes) -> Section:
        fault = self._reading.fault
        return Section(
            id=self._names.sections[OTHER].id,
            kind="other",
            label="Body",
            text=data.decode("utf-8", "replace"),
            category="user",
            reason=f"It cannot be read ({fault.message if fault else ''}): edit it by its places, or as a whole.",
        )


class Editable(Protocol):
    """A document that never changes: an edit returns another one."""

    @property
    def size(self) -> int:
        """An upper bound for the bytes that it keeps in memory."""
        ...

    def with_edit(self, operation: Edit) -> Self:
        """The document after an edit; the same one if that changes nothing."""
        ...

    def release_caches(self) -> None:
        """Free what can be computed again; called when the document moves into the undo history."""
        ...


D = TypeVar("D", bound=Editable)


class EditHistory(Generic[D]):
    """The history of a document under edit: its current state, and the steps back and forward."""

    def __init__(self, draft: D) -> None:
        self.draft = draft
        self._past: list[D] = []
        self._future: list[D] = []

    @property
    def can_undo(self) -> bool:
        """Whether there is a step to undo."""
        return bool(self._past)

    @property
    def can_redo(self) -> bool:
        """Whether there is a step to redo."""
        return bool(self._future)

    @property
    def earlier(self) -> tuple[D, ...]:
        """The drafts that undo leads to, oldest first."""
        return tuple(self._past)

    def copy(self) -> "EditHistory[D]":
        """A copy of the history, to try something on."""
        again = EditHistory(self.draft)
        again._past, again._future = self._past[:], self._future[:]
        return again

    def apply(self, operation: AnyOperation) -> D:
        """Apply the operation and return the resulting draft. A Fault leaves everything as it was."""
        match operation:
            case Undo():
                self._step(self._past, self._future, "undo")
            case Redo():
                self._step(self._future, self._past, "redo")
            case _:
                draft = self.draft.with_edit(operation)
                if draft is not self.draft:
                    self.draft.release_caches()
                    self._past.append(self.draft)
                    self._future.clear()
                    self.draft = draft
                    self._forget()
        return self.draft

    def _step(self, source: list[D], target: list[D], word: str) -> None:
        if not source:
            raise Fault(
                Code.INVALID_REQUEST, f"there is nothing to {word}", hint="The document is unchanged.", status=409
            )
        target.append(self.draft)
        self.draft = source.pop()

    def _forget(self) -> None:
        """Drop the oldest steps, so that a long session does not fill the memory. The last step stays whatever its
        size, so that a slip can be undone in any document."""
        del self._past[:-MOST_STEPS]
        size = sum(draft.size for draft in self._past)
        while size > MOST_BYTES and len(self._past) > 1:
            size -= self._past.pop(0).size
