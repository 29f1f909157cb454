"""A draft: one document under edit, as a value, and the history of drafts that makes undo."""

import hashlib
from functools import cached_property
from typing import Generic, Protocol, Self, TypeVar

from sightline.editing.changes import apply_operation
from sightline.editing.deletions import edit_refusal, parent_of
from sightline.editing.document import WholeDocument
from sightline.editing.operations import AnyOperation, Edit, Redo, Reset, Undo
from sightline.editing.reading import OPTIONS, OTHER, TOOLS, DocumentReading, list_of, tools_of
from sightline.editing.section import Section
from sightline.editing.sectioning import Sectioning
from sightline.errors import Code, Fault
from sightline.model.json import Json
from sightline.model.request import Request
from sightline.wire.pointer import covers

MOST_STEPS = 200
MOST_BYTES = 64 * 1024 * 1024
"""How far back undo reaches."""


class Draft:
    """A document as it is shown on screen. It never changes: an operation gives another draft.

    `original` is the body as it came, `first` the draft of it. `data` is the body as it would be sent,
    `request` what the dialect reads in it, None where it cannot. `sections` show what was deleted too, where it was.
    """

    def __init__(self, whole: WholeDocument, dialect: str, model: str, first: "Draft | None" = None) -> None:
        self.whole = whole
        self.dialect = dialect
        self.model = model
        self.first: Draft = self if first is None else first

    @classmethod
    def of(cls, data: bytes, dialect: str, model: str = "") -> "Draft":
        """The draft of an unedited body."""
        return cls(WholeDocument.of(data, dialect), dialect, model)

    @property
    def original(self) -> bytes:
        """The body as it came."""
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
        """The reading of the document on screen."""
        whole = self.whole
        if not whole.deletions:
            return whole.reading
        return DocumentReading.of(self.dialect, whole.deletions.apply_to_value(whole.reading.document))

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The document as a person reads it."""
        # Nothing is carried over from the draft before. With a megabyte of 400 items an edit takes 3 to 5 ms to apply,
        # 7 to 10 ms for the sections, 4 to 7 ms for the tokens and 2 to 20 ms for the checks (Python 3.11, one core of
        # a busy server): too little to notice while typing, and caches by identity would have to be right everywhere.
        return Sectioning(self.whole).make_sections(self.data)

    @property
    def size(self) -> int:
        """How many bytes this draft alone keeps in memory, at most."""
        return len(self.whole.data) + (len(self.data) if self.whole.deletions else 0)

    def release_caches(self) -> None:
        """Free what can be made again, so that a history of drafts holds little more than their bytes."""
        if self is not self.first:
            self.__dict__.pop("sections", None)
            self.__dict__.pop("screen", None)

    def with_edit(self, operation: Edit) -> "Draft":
        """The draft after an edit; the same one if that changes nothing. A fault if it is refused."""
        if isinstance(operation, Reset):
            return self._reset()
        return apply_operation(self, operation)

    def with_whole(self, whole: WholeDocument) -> "Draft":
        """The draft of a changed document; the same one if it is the same document."""
        return self if whole is self.whole else Draft(whole, self.dialect, self.model, self.first)

    def section(self, name: str) -> Section:
        """The section of this id; a fault if there is none."""
        for section in self.sections:
            if section.id == name:
                return section
        raise edit_refusal(f"there is no section {name!r}", "Look at the request as it stands: its sections have ids.")

    def section_at(self, pointer: str) -> str:
        """The id of the section that covers a place of `data`, empty if none does."""
        names, reading = self.whole.names.sections, self.whole.reading
        if reading.request is None:
            return names[OTHER].id
        place = self.whole.deletions.to_whole(pointer)
        above = place
        while above:
            if above in names:
                return names[above].id
            above = parent_of(above)
        if place in ("", reading.container):
            return ""
        if any(covers(list_of(tool.at), place) for tool in tools_of(reading)):
            return names[TOOLS].id
        return names[OPTIONS].id if OPTIONS in names else ""

    def _reset(self) -> "Draft":
        """The first draft, with no id given out twice."""
        first = self.first.whole
        if not self.is_dirty and not self.whole.deletions:
            return self
        names = first.names.with_count(self.whole.names.count)
        return Draft(first._replace(names=names), self.dialect, self.model, self.first)


class Editable(Protocol):
    """A document that never changes: an edit gives another one."""

    @property
    def size(self) -> int:
        """How many bytes it keeps in memory, at most."""
        ...

    def with_edit(self, operation: Edit) -> Self:
        """The document after an edit; the same one if that changes nothing."""
        ...

    def release_caches(self) -> None:
        """Free what can be computed again; called when the document moves into the undo history."""
        ...


D = TypeVar("D", bound=Editable)


class EditHistory(Generic[D]):
    """The history of one document under edit: what it is now, and the steps back and forth."""

    def __init__(self, draft: D) -> None:
        self.draft = draft
        self._past: list[D] = []
        self._future: list[D] = []

    @property
    def can_undo(self) -> bool:
        """Whether there is a step back."""
        return bool(self._past)

    @property
    def can_redo(self) -> bool:
        """Whether there is a step forward again."""
        return bool(self._future)

    @property
    def earlier(self) -> tuple[D, ...]:
        """The drafts that undo leads to, the oldest first."""
        return tuple(self._past)

    def copy(self) -> "EditHistory[D]":
        """The same history, to try something on."""
        again = EditHistory(self.draft)
        again._past, again._future = self._past[:], self._future[:]
        return again

    def apply(self, operation: AnyOperation) -> D:
        """Do it, and give the draft as it is then; a fault leaves everything as it was."""
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
                Code.INVALID_REQUEST, f"there is nothing to {word}", hint="The document is as it stands.", status=409
            )
        target.append(self.draft)
        self.draft = source.pop()

    def _forget(self) -> None:
        """Drop the oldest steps, so that a long evening does not fill the memory. The last one stays, whatever its
        size: a slip can be undone in any document."""
        del self._past[:-MOST_STEPS]
        size = sum(draft.size for draft in self._past)
        while size > MOST_BYTES and len(self._past) > 1:
            size -= self._past.pop(0).size
