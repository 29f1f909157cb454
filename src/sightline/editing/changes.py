"""What each operation does to a draft, and what it deletes along with its target so that the rest stays valid.

Places in operations are places on screen.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias, assert_never

from sightline.dialects.dialect import Problem
from sightline.dialects.registry import dialect
from sightline.editing.deletions import Deletions, edit_refusal, nearest_of, parent_of
from sightline.editing.document import DocumentReading, WholeDocument
from sightline.editing.operations import (
    Batch,
    Delete,
    Duplicate,
    EditTarget,
    Insert,
    Move,
    Remove,
    Reset,
    Restore,
    Set,
    SetBody,
    SetRole,
    SetText,
    replace_text,
    target_of,
    with_role,
)
from sightline.errors import Code, Fault
from sightline.model.parts import CacheBreakpoint, Opaque, Part, Thinking, ToolCall
from sightline.model.request import Message, OpaqueTool, Request, Tool
from sightline.wire import jsontext
from sightline.wire.document import WireDocument, spells
from sightline.wire.pointer import covers, index, join, parse_pointer, refusal, resolve

if TYPE_CHECKING:
    from sightline.editing.draft import Draft


_NUMBER = re.compile("[0-9]+")


def check_readable(before: "Draft", after: "Draft") -> None:
    """Raise a Fault if an operation makes a readable request unreadable."""
    fault = after.fault
    if fault is not None and before.fault is None:
        message = f"the request could not be read any more: {fault.message}"
        raise edit_refusal(message, fault.hint, pointer=fault.pointer)


def check_sound(before: "Draft", after: "Draft", *, restores: bool = False) -> None:
    """Raise a Fault if an operation introduces an error that was neither there before nor in what the client sent.

    Restoring may bring back errors that the document has with nothing deleted.
    """
    if after is before:
        return
    check_readable(before, after)
    found = errors_among(after.problems)
    if not found:
        return
    undeleted = before.whole.reading.request if restores and before.whole.deletions else None
    allowed = [before.problems, before.first.problems, dialect(before.dialect).problems(undeleted) if undeleted else []]
    known = Counter[str]()
    for problems in allowed:
        known |= Counter(map(_mask_numbers, errors_among(problems)))
    # Ids and numbers are masked, because it is enough to know how often a message occurs.
    new = Counter(map(_mask_numbers, found)) - known
    if new:
        why = next(message for message in found if _mask_numbers(message) in new)
        raise edit_refusal(
            f"the request would be rejected: {why}", "Change what the message names first. Nothing was done."
        )


def errors_among(problems: Sequence[Problem]) -> list[str]:
    """The messages of the problems for which an API refuses a request."""
    return [problem.message for problem in problems if problem.severity == "error"]


def _mask_numbers(message: str) -> str:
    return _NUMBER.sub("#", message)


def cascade_of(
    reading: DocumentReading, request: Request, deletions: Deletions, targets: frozenset[str]
) -> frozenset[str]:
    """Every place that must go with these targets, without those that are already gone."""
    cascade = _Cascade(reading, request, deletions)
    cascade.gone |= targets
    count = 0
    while count != len(cascade.gone):
        count = len(cascade.gone)
        cascade.follow()
    return frozenset(
        place for place in cascade.gone if place not in deletions.places and not cascade.holds(parent_of(place))
    )


class _Cascade:
    def __init__(self, reading: DocumentReading, request: Request, deletions: Deletions) -> None:
        self._reading = reading
        self._request = request
        self._before = deletions
        self._messages = {message.at: message for message in request.messages}
        self.gone: set[str] = set(deletions.places)

    def holds(self, pointer: str) -> bool:
        """Whether a place is gone."""
        return nearest_of(pointer, self.gone) != ""

    def follow(self) -> None:
        """Go one step further."""
        for one, other in self._reading.pairs:
            self._together([one, other])
        for pieces in _thoughts(self._request):
            self._together(pieces)
        for at in {nearest_of(parent_of(place), self._messages) for place in self.gone} - {""}:
            # A message that has lost something goes too if only marks or thinking are left in it.
            message = self._messages[at]
            is_touched = not self.holds(at) and any(self.holds(part.at) for part in message.parts)
            if is_touched and all(
                self.holds(part.at)
                or isinstance(part, CacheBreakpoint | Thinking)
                or (isinstance(part, Opaque) and part.mirrored)
                for part in message.parts
            ):
                self.gone.add(at)
        self._reasoning()
        self._drop_orphan_text()
        self._tools()
        self._drop_empty_holders()

    def _together(self, parts: list[Part]) -> None:
        if any(self.holds(part.at) for part in parts):
            self.gone |= {part.at for part in parts if not self.holds(part.at)}

    def _reasoning(self) -> None:
        """Delete an item of reasoning with what it led to, in dialects where reasoning is an item."""
        if not dialect(self._reading.name).editing.drops_reasoning:
            return
        messages = self._request.messages
        before = [message for message in messages if not self._before.holds(message.at)]
        followers = dict(pairwise(message.at for message in before))
        after = [message for message in messages if not self.holds(message.at)]
        for message, follower in zip(after, (*after[1:], None), strict=False):
            led_to = followers.get(message.at)
            is_left = follower is None or follower.role != "assistant" or _is_reasoning(follower)
            if is_left and _is_reasoning(message) and led_to is not None and self.holds(led_to):
                self.gone.add(message.at)

    def _drop_orphan_text(self) -> None:
        """In dialects where two turns of the model must not follow each other, delete a text whose call is gone."""
        if not dialect(self._reading.name).editing.alternates:
            return
        after = [message for message in self._request.messages if not self.holds(message.at)]
        for message, follower in pairwise(after):
            is_doubled = message.role == follower.role == "assistant" and self._has_call(follower, gone=False)
            if is_doubled and self._has_call(message, gone=True):
                self.gone.add(message.at)

    def _has_call(self, message: Message, *, gone: bool) -> bool:
        return any(isinstance(part, ToolCall) and self.holds(part.at) == gone for part in message.parts)

    def _tools(self) -> None:
        """Delete the tool choice with the tools, or with the tool that it names."""
        request = self._request
        lost = [tool for tool in request.tools if self.holds(tool.at)]
        if not lost:
            return
        kept = [tool for tool in request.tools if not self.holds(tool.at)]
        choice = request.tool_choice
        names = {name for tool in kept for name in _names(tool)}
        is_lost = any(name not in names for tool in lost for name in _names(tool))
        if choice is not None and (not kept or (is_lost and choice.names and not names.issuperset(choice.names))):
            self._drop(choice.at)
        if not kept and request.parallel_tool_calls is not None:
            self._drop(request.parallel_at)

    def _drop(self, place: str) -> None:
        if not self.holds(place):
            self.gone.add(place)

    def _drop_empty_holders(self) -> None:
        """Delete a list or an object with the last thing in it, except the conversation and the document."""
        for holder in {parent_of(place) for place in self.gone}:
            if holder in ("", self._reading.container) or self.holds(holder):
                continue
            value = resolve(self._reading.document, holder)
            if sum(parent_of(place) == holder for place in self.gone) == len(value):  # type: ignore[arg-type]
                self.gone.add(holder)


def _names(tool: Tool) -> list[str]:
    """The names under which a tool choice can refer to a tool."""
    return [function.name for function in tool.functions] if isinstance(tool, OpaqueTool) else [tool.name]


def _is_reasoning(message: Message) -> bool:
    return any(isinstance(part, Thinking) for part in message.parts)


def _thoughts(request: Request) -> Iterator[list[Part]]:
    """The pieces of each thought that is split into pieces: the API refuses one without the others."""
    keys = dialect(request.dialect).editing.signature_keys
    pieces: list[Part] = []
    for message in request.messages:
        for part in message.parts:
            if keys and isinstance(part, Opaque) and part.mirrored:
                pieces.append(part)
                if isinstance(part.value, dict) and not keys.isdisjoint(part.value):
                    yield pieces
                    pieces = []


SingleChange: TypeAlias = SetText | Set | Insert | Remove | Move | Delete | Restore | Duplicate | SetRole | SetBody
Change: TypeAlias = SingleChange | Batch


def apply_operation(draft: "Draft", operation: Change) -> "Draft":
    """The draft after an operation, with the checks that belong to that operation."""
    after = _apply(draft, operation)
    match operation:
        case SetText():
            if after.whole.deletions == draft.whole.deletions:
                check_readable(draft, after)
            else:  # the edit restored its target
                check_sound(draft, after, restores=True)
        case Delete() | Duplicate() | SetRole():
            check_sound(draft, after)
        case Restore():
            check_sound(draft, after, restores=True)
        case Batch():
            # Single steps may be invalid, as long as the result is valid.
            structural = (Delete, Restore, Duplicate, SetRole)
            changes_structure = any(isinstance(each, structural) for each in operation.operations)
            if changes_structure or after.whole.deletions != draft.whole.deletions:
                check_sound(draft, after, restores=True)
        case _:
            pass
    return after


def _apply(draft: "Draft", operation: Change) -> "Draft":
    if not isinstance(operation, Batch):
        return draft.with_whole(_change(draft, operation))
    for each in operation.operations:
        draft = draft.with_edit(each) if isinstance(each, Reset) else _apply(draft, each)
    return draft


def _change(draft: "Draft", operation: SingleChange) -> WholeDocument:
    match operation:
        case SetText():
            return _set_text(draft, operation)
        case Delete():
            return _delete(draft.whole, target_of(draft.whole, operation.section, operation.part))
        case Restore():
            return _restore(draft.whole, target_of(draft.whole, operation.section, operation.part))
        case Duplicate():
            return _duplicate(draft, operation)
        case SetRole():
            return _set_role(draft.whole, operation)
        case Set():
            return _set(draft, operation)
        case Insert():
            return _insert(draft, operation)
        case Remove():
            return draft.whole.remove(_existing_place(draft, operation.pointer))
        case Move():
            return _move(draft, operation)
        case SetBody():
            return _set_body(draft, operation)
        case unreachable:
            assert_never(unreachable)


def _existing_place(draft: "Draft", pointer: str) -> str:
    """A place on screen as a place of the whole document. Raises a Fault if there is nothing."""
    resolve(draft.document, pointer)
    return draft.whole.deletions.to_whole(pointer)


def _set_text(draft: "Draft", operation: SetText) -> WholeDocument:
    """Replace a text. A deleted target is restored, with everything that was deleted along with it."""
    target = target_of(draft.whole, operation.section, operation.part)
    whole = draft.whole
    if target.places and all(whole.deletions.holds(place) for place in target.places):
        whole = _restore(whole, target)
    return replace_text(whole, target, operation.text)


def _set(draft: "Draft", operation: Set) -> WholeDocument:
    text = jsontext.encode(operation.value)
    if not operation.pointer:
        return draft.whole if spells(draft.data, text) else draft.whole.replace_document(text)
    place = _existing_place(draft, operation.pointer)
    # Deleted values inside the value are not on screen, and so are not a difference.
    if jsontext.encode(resolve(draft.document, operation.pointer)) == text:
        return draft.whole
    return draft.whole.set(place, operation.value)


def _insert(draft: "Draft", operation: Insert) -> WholeDocument:
    whole, pointer = draft.whole, operation.pointer
    if not pointer:
        raise refusal(pointer, "the document is there already", hint="Set it to another value.")
    parse_pointer(pointer)
    holder, token = resolve(draft.document, parent_of(pointer)), parse_pointer(pointer)[-1]
    if isinstance(holder, list) and token != "-":
        index(token, len(holder) + 1, pointer)
    place = whole.deletions.to_whole(pointer)
    if isinstance(holder, dict) and token not in holder and whole.deletions.holds(place):
        # The new value replaces a deleted one, which could not be restored beside it.
        whole = whole.remove(place)
    return whole.insert(place, operation.value)


def _move(draft: "Draft", operation: Move) -> WholeDocument:
    parse_pointer(operation.pointer)
    source = _existing_place(draft, operation.source)
    if operation.source == operation.pointer:
        return draft.whole
    if covers(operation.source, operation.pointer):
        raise refusal(operation.pointer, f"{operation.source!r} cannot be moved into itself")
    if not operation.pointer:
        raise refusal(operation.pointer, "the document is there already", hint="Set it to another value.")
    return draft.whole.move(source, operation.pointer)


def _delete(whole: WholeDocument, target: EditTarget) -> WholeDocument:
    request = whole.reading.request
    if request is None or not target.places:
        raise edit_refusal("this cannot be deleted as a whole", "Delete its parts, or remove a value by its place.")
    if all(whole.deletions.holds(place) for place in target.places):
        return whole
    deleted = cascade_of(whole.reading, request, whole.deletions, frozenset(target.places))
    return whole.with_deletions(Deletions.of((*whole.deletions.groups, deleted), whole.reading.document))


def _restore(whole: WholeDocument, target: EditTarget) -> WholeDocument:
    deletions = whole.deletions
    for place in target.places:
        deletions = deletions.restore(place)
    return whole if deletions is whole.deletions else whole.with_deletions(deletions)


def _duplicate(draft: "Draft", operation: Duplicate) -> WholeDocument:
    whole = draft.whole
    message = target_of(whole, operation.section, None).message
    if message is None or not _is_item(whole, message.at):
        raise edit_refusal("this cannot be duplicated", "Only an item of the conversation can be duplicated.")
    if whole.deletions.holds(message.at):
        raise edit_refusal("what is deleted cannot be duplicated", "Restore it first.")
    shown = whole.deletions.to_screen(message.at)
    text = WireDocument(draft.data).text_of(shown)
    behind = f"{parent_of(message.at)}/{int(parse_pointer(message.at)[-1]) + 1}"
    return whole.insert(behind, resolve(draft.document, shown), text)


def _is_item(whole: WholeDocument, place: str) -> bool:
    return parent_of(place) == whole.reading.container and parse_pointer(place)[-1].isdecimal()


def _set_role(whole: WholeDocument, operation: SetRole) -> WholeDocument:
    message = target_of(whole, operation.section, None).message
    if message is None or not _is_item(whole, message.at):
        raise edit_refusal("this has no role of its own to change", "Only an item of the conversation has one.")
    if whole.deletions.holds(message.at):
        raise edit_refusal("what is deleted cannot be edited", "Restore it first.")
    item = resolve(whole.reading.document, message.at)
    assert isinstance(item, dict)
    for key, value in with_role(whole.reading.name, message, item, operation.role).items():
        whole = whole.set(join(message.at, key), value) if key in item else whole.insert(join(message.at, key), value)
    return whole


def _set_body(draft: "Draft", operation: SetBody) -> WholeDocument:
    try:
        data = operation.body.encode("utf-8")
    except UnicodeEncodeError:
        message = "the body holds half a surrogate pair, which UTF-8 cannot carry"
        hint = "Write that character as an escape, \\ud800 for example."
        raise Fault(Code.INVALID_REQUEST, message, hint=hint, status=400) from None
    return draft.whole if data == draft.data else draft.whole.replace_document(data)
