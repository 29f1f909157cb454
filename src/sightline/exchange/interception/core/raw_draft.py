"""A raw request under edit: its head, which is only shown, and its body, whose JSON can be changed by its places."""

from functools import cached_property
from hashlib import sha256

from sightline.editing.operations import Batch, Edit, Insert, Move, Remove, Reset, Set, SetBody, SetText
from sightline.editing.section import Section
from sightline.editing.validity import Validity
from sightline.errors import Code, Fault
from sightline.wire.document import WireDocument

HEAD, BODY = "s1", "s2"
_HINT = "Change its JSON by a pointer, or send another body with set_body."
_MOST_SHOWN = 256 * 1024


class RawDraft:
    """The body as it is on screen. It never changes: an operation gives another draft. `head` is its request line with
    the headers; with `is_whole` unset only its beginning is here, which cannot be changed.

    It has the surface of the draft of a request; `request` is always None, because nothing of it is understood.
    """

    dialect = ""
    model = ""
    request = None
    validity = Validity(ok=True, problems=())

    def __init__(self, head: str, original: bytes, data: bytes | None = None, *, is_whole: bool = True) -> None:
        self.head = head
        self.original = original
        self.data = original if data is None else data
        self.is_whole = is_whole

    @cached_property
    def sha256(self) -> str:
        """The hash of `data`, in hex."""
        return sha256(self.data).hexdigest()

    @property
    def size(self) -> int:
        """How many bytes it keeps in memory."""
        return len(self.data)

    @property
    def is_dirty(self) -> bool:
        """Whether it differs from what came."""
        return self.data != self.original

    def release_caches(self) -> None:
        """Free the sections, which are computed again when they are needed."""
        self.__dict__.pop("sections", None)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The head and, where it is text, the body."""
        head = Section(id=HEAD, kind="other", role="", label="Head", pointer="", text=self.head, editable=False,
                       deleted=False, parts=(), category="user", reason="The head is sent as it came.")  # fmt: skip
        text = self._text
        shown = f"{len(self.data):,} bytes that are no text" if text is None else text
        reason = "" if text is not None and self.is_whole else "Only a whole body of text can be changed."
        body = Section(id=BODY, kind="other", role="", label="Body", pointer="", text=shown, editable=not reason,
                       deleted=False, parts=(), category="user", reason=reason)  # fmt: skip
        return (head, body) if self.data else (head,)

    @property
    def _text(self) -> str | None:
        try:
            return self.data.decode() if self.is_whole else self.data[:_MOST_SHOWN].decode("utf-8", "replace")
        except UnicodeDecodeError:
            return None

    def with_edit(self, operation: Edit) -> "RawDraft":
        """The draft after an edit; the same one if that changes nothing. A fault if it is refused."""
        if not self.is_whole:
            raise _refusal("only the beginning of this body is here")
        match operation:
            case Set(pointer=pointer, value=value):
                data = WireDocument(self.data).set(pointer, value).data
            case Insert(pointer=pointer, value=value):
                data = WireDocument(self.data).insert(pointer, value).data
            case Remove(pointer=pointer):
                data = WireDocument(self.data).remove(pointer).data
            case Move(source=source, pointer=pointer):
                data = WireDocument(self.data).move(source, pointer).data
            case SetBody(body=text):
                data = _bytes(text)
            case SetText(section=section, text=text) if section == BODY and self._text is not None:
                data = _bytes(text)
            case Reset():
                data = self.original
            case Batch(operations=operations):
                draft = self
                for each in operations:
                    draft = draft.with_edit(each)
                data = draft.data
            case _:
                raise _refusal("this cannot be done to a request that is forwarded unchanged")
        return self if data == self.data else RawDraft(self.head, self.original, data)


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise _refusal("it contains half of a surrogate pair, which cannot be encoded") from None


def _refusal(why: str) -> Fault:
    return Fault(Code.INVALID_REQUEST, why, hint=_HINT, status=422)
