"""Drafts that are not requests of a dialect: the tool calls of a reply (as a JSON list, one section each, and the reply
that results), and a raw request (its head, which is only shown, and its body, whose JSON can be edited by pointers).
"""

from collections.abc import Callable
from functools import cached_property, reduce
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from sightline.dialects.validity import is_object
from sightline.editing.fixes import Fix
from sightline.editing.operations import (
    Batch,
    Delete,
    Edit,
    Insert,
    Move,
    Remove,
    Reset,
    Restore,
    Set,
    SetBody,
    SetText,
)
from sightline.editing.section import Section, SectionPart
from sightline.editing.validity import Validity, ValidityFinding
from sightline.errors import Code, Fault
from sightline.model.json import Json
from sightline.model.parts import Part, ToolCall
from sightline.model.reply import Choice, Reply
from sightline.wire.document import WireDocument
from sightline.wire.jsontext import MISFIT, decode, encode

_HINT = 'The calls are a JSON list of {"id", "name", "arguments": "a string"}; each id is one of the reply\'s own.'
_REFUSED = "Change the arguments, or delete the call; more cannot be done to the calls of a reply."


class _Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One call on screen."""

    id: str
    name: str
    arguments: str


class _EditedCall(msgspec.Struct, frozen=True):
    """A call and whether it is deleted. `section` is its id while it is held; `is_free` is set if its tool takes any
    text and not only a JSON object."""

    section: str
    call: _Call
    is_free: bool
    is_deleted: bool = False


class _BytesDraft:
    """Bytes under edit: `original` as they arrived, and `data` as they are on screen. A draft is immutable: an
    operation returns a new one. It has the interface of the draft of a request; `request` is always None, because this
    is not one."""

    request = None

    def __init__(self, original: bytes, data: bytes) -> None:
        self.original = original
        self.data = data

    @cached_property
    def sha256(self) -> str:
        """The hash of `data`, in hex."""
        return sha256(self.data).hexdigest()

    @property
    def size(self) -> int:
        """How many bytes it takes in memory."""
        return len(self.data)

    @property
    def is_dirty(self) -> bool:
        """Whether it differs from the original."""
        return self.data != self.original

    def release_caches(self) -> None:
        """Free the sections, which are computed again on demand."""
        self.__dict__.pop("sections", None)


class CallsDraft(_BytesDraft):
    """The calls of a reply, as a JSON list."""

    def __init__(self, original: tuple[_EditedCall, ...], shown: tuple[_EditedCall, ...]) -> None:
        super().__init__(_calls_json(original), _calls_json(shown))
        self._original = original
        self._shown = shown

    @classmethod
    def of(cls, reply: Reply) -> "CallsDraft":
        """The calls of a reply, unedited."""
        named: dict[str, _EditedCall] = {}
        for number, call in enumerate((call for choice in reply.choices for call in choice.tool_calls), 1):
            # Some APIs have no ids for calls, and some models give two calls the same id.
            name = f"call_{number}" if not call.id or call.id in named else call.id
            while name in named:
                name += "_"
            named[name] = _EditedCall(f"s{number}", _Call(name, call.name, call.arguments), call.kind == "custom")
        shown = tuple(named.values())
        return cls(shown, shown)

    @cached_property
    def first(self) -> "CallsDraft":
        """The unedited draft."""
        return CallsDraft(self._original, self._original)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """One section for each call; deleted ones keep their places."""
        sections: list[Section] = []
        place = 0
        for shown in self._shown:
            pointer = "" if shown.is_deleted else f"/{place}"
            place += not shown.is_deleted
            sections.append(_section(shown, pointer))
        return tuple(sections)

    def with_edit(self, operation: Edit) -> "CallsDraft":
        """The draft after an edit; the same draft if nothing changes. Raises a fault if the edit is refused."""
        match operation:
            case SetText(section=section, text=text):
                shown = self._find(section)
                if shown.is_deleted:
                    raise Fault(Code.INVALID_REQUEST, "this call is deleted", hint="Restore it first.", status=422)
                after = self._with(replace(shown, call=replace(shown.call, arguments=text)))
            case Delete(section=section) | Restore(section=section):
                after = self._with(replace(self._find(section), is_deleted=isinstance(operation, Delete)))
            case Set(pointer=pointer, value=value):
                after = self._replace_all(WireDocument(self.data).set(pointer, value).data)
            case SetBody(body=body):
                after = self._replace_all(_encode_text(body, _invalid_calls))
            case Reset():
                after = self._original
            case Batch(operations=operations):
                after = reduce(CallsDraft.with_edit, operations, self)._shown
            case _:
                raise Fault(Code.INVALID_REQUEST, "this cannot be done to a tool call", hint=_REFUSED, status=422)
        return self if after == self._shown else CallsDraft(self._original, after)

    def _find(self, section: str) -> _EditedCall:
        for shown in self._shown:
            if shown.section == section:
                return shown
        hint = "The view lists the sections."
        raise Fault(Code.INVALID_REQUEST, f"there is no section {section!r}", hint=hint, status=422)

    def _with(self, changed: _EditedCall) -> tuple[_EditedCall, ...]:
        return tuple(changed if each.section == changed.section else each for each in self._shown)

    def _replace_all(self, data: bytes) -> tuple[_EditedCall, ...]:
        """The calls of an edited list; calls that it omits are deleted. Raises a fault if the list is invalid."""
        try:
            calls = msgspec.convert(decode(data), tuple[_Call, ...])
        except MISFIT as error:
            raise _invalid_calls(str(error)) from None
        written = {call.id: call for call in calls}
        known = [each.call.id for each in self._shown]
        if len(written) < len(calls) or not set(written) <= set(known):
            raise _invalid_calls("an id is there twice, or is not one of the reply's calls")
        if [call.id for call in calls] != [name for name in known if name in written]:
            raise _invalid_calls("the calls are not in the order of the reply")
        return tuple(
            replace(each, call=written.get(each.call.id, each.call), is_deleted=each.call.id not in written)
            for each in self._shown
        )

    # --- the result ---

    @property
    def validity(self) -> Validity:
        """The calls that a client could not run: those whose arguments are not a JSON object. What the model itself
        wrote may always be passed on."""
        before = {each.section: each.call.arguments for each in self._original}
        problems = tuple(
            ValidityFinding(
                pointer=f"{section.pointer}/arguments",
                section=section.id,
                message=f"the arguments of {section.parts[0].name!r} are not a JSON object",
                severity="warning" if section.text == before[section.id] else "error",
                fixes=(
                    Fix("as the model wrote them", (SetText(section=section.id, text=before[section.id]),)),
                    Fix("drop this call", (Delete(section=section.id),)),
                ),
            )
            for section, shown in zip(self.sections, self._shown, strict=True)
            if not (shown.is_deleted or shown.is_free or is_object(section.text))
        )
        return Validity(ok=all(each.severity == "warning" for each in problems), problems=problems)

    def reply(self, reply: Reply) -> Reply:
        """The reply with these calls in place of its own. If no call is left, its finish reason is "stop"."""
        kept = {each.section: each.call for each in self._shown if not each.is_deleted}
        number = 0
        choices: list[Choice] = []
        for choice in reply.choices:
            parts: list[Part] = []
            for part in choice.parts:
                if not isinstance(part, ToolCall):
                    parts.append(part)
                    continue
                number += 1
                if (call := kept.get(f"s{number}")) is not None:
                    parts.append(replace(part, name=call.name, arguments=call.arguments))
            has_calls = any(isinstance(part, ToolCall) for part in parts)
            finish = "stop" if choice.finish == "tool_calls" and not has_calls else choice.finish
            choices.append(replace(choice, parts=tuple(parts), finish=finish, detail=None))
        return replace(reply, choices=tuple(choices))


def _calls_json(shown: tuple[_EditedCall, ...]) -> bytes:
    plain: Json = [msgspec.to_builtins(each.call) for each in shown if not each.is_deleted]
    return encode(plain)


def _section(shown: _EditedCall, pointer: str) -> Section:
    call, is_deleted = shown.call, shown.is_deleted
    part = SectionPart(
        id=f"{shown.section}.p1",
        type="tool_call",
        pointer=pointer,
        text=call.arguments,
        editable=not is_deleted,
        deleted=is_deleted,
        call_id=call.id,
        name=call.name,
    )
    return Section(
        id=shown.section,
        kind="tool_call",
        role="assistant",
        label=f"Calls {call.name}",
        pointer=pointer,
        text=call.arguments,
        editable=not is_deleted,
        deleted=is_deleted,
        parts=(part,),
        category="user",
    )


def _invalid_calls(why: str) -> Fault:
    return Fault(Code.INVALID_REQUEST, f"these are not the calls of the reply: {why}", hint=_HINT, status=422)


def _encode_text(text: str, refuse: Callable[[str], Fault]) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise refuse("half of a surrogate pair cannot be encoded") from None


HEAD, BODY = "s1", "s2"
_RAW_HINT = "Change its JSON by a pointer, or send another body with set_body."
_MOST_SHOWN = 256 * 1024


class RawDraft(_BytesDraft):
    """The body of a raw request. `head` is its request line with the headers. Without `is_whole`, only the beginning of
    the body is available, which cannot be changed."""

    validity = Validity(ok=True, problems=())

    def __init__(self, head: str, original: bytes, data: bytes | None = None, *, is_whole: bool = True) -> None:
        super().__init__(original, original if data is None else data)
        self.head = head
        self.is_whole = is_whole

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The head, and the body if there is one."""
        why = "The head is sent as it came."
        head = Section(id=HEAD, kind="other", label="Head", text=self.head, category="user", reason=why)
        text = self._text
        shown = f"{len(self.data):,} bytes that are no text" if text is None else text
        reason = "" if text is not None and self.is_whole else "Only a whole body of text can be changed."
        body = Section(
            id=BODY, kind="other", label="Body", text=shown, editable=not reason, category="user", reason=reason
        )
        return (head, body) if self.data else (head,)

    @property
    def _text(self) -> str | None:
        try:
            return self.data.decode() if self.is_whole else self.data[:_MOST_SHOWN].decode("utf-8", "replace")
        except UnicodeDecodeError:
            return None

    def with_edit(self, operation: Edit) -> "RawDraft":
        """The draft after an edit; the same draft if nothing changes. Raises a fault if the edit is refused."""
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
                data = _encode_text(text, _refusal)
            case SetText(section=section, text=text) if section == BODY and self._text is not None:
                data = _encode_text(text, _refusal)
            case Reset():
                data = self.original
            case Batch(operations=operations):
                data = reduce(RawDraft.with_edit, operations, self).data
            case _:
                raise _refusal("this cannot be done to a request that is forwarded unchanged")
        return self if data == self.data else RawDraft(self.head, self.original, data)


def _refusal(why: str) -> Fault:
    return Fault(Code.INVALID_REQUEST, why, hint=_RAW_HINT, status=422)
