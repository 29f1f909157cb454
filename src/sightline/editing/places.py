"""Where things are after others came, went or moved: pointers through a change, and values with one place changed."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from sightline.errors import Code, Fault
from sightline.model.json import Json
from sightline.wire.pointer import covers, join, parse_pointer

Shift: TypeAlias = Callable[[str], str | None]
"""A place before a change as it is called after it; None for a place that is gone."""


def edit_refusal(message: str, hint: str, *, pointer: str | None = None) -> Fault:
    """The fault of an operation that cannot be done to this document."""
    return Fault(Code.INVALID_REQUEST, message, hint=hint, pointer=pointer, status=422)


def parent_of(pointer: str) -> str:
    """The place that holds this one."""
    return pointer[: pointer.rfind("/")]


def shift_by_insertion(pointer: str) -> Shift:
    """What an insertion before this position does to places; the position is a number."""
    parent, at = parent_of(pointer), int(parse_pointer(pointer)[-1])
    return lambda place: _step_position(place, parent, at, 1)


def shift_by_removal(pointer: str, *, in_array: bool) -> Shift:
    """What the removal of this place does to places."""
    if not in_array:
        return lambda place: None if covers(pointer, place) else place
    parent, at = parent_of(pointer), int(parse_pointer(pointer)[-1])
    return lambda place: None if covers(pointer, place) else _step_position(place, parent, at, -1)


def shift_by_move(source: str, pointer: str, gone: Shift, come: Shift) -> Shift:
    """What a move does: `gone` is what the removal does, `come` what the insertion does."""

    def shift(place: str) -> str | None:
        if covers(source, place):
            return pointer + place[len(source) :]
        left = gone(place)
        return None if left is None else come(left)

    return shift


def shift_by_replacement(pointer: str) -> Shift:
    """What another value at this place does: nothing within it is what it was."""
    return lambda place: None if covers(pointer, place) and place != pointer else place


def _step_position(place: str, parent: str, at: int, step: int) -> str:
    """A place with its position in `parent` moved by a step, if it stands there at `at` or behind it."""
    if len(place) <= len(parent) or not covers(parent, place):
        return place
    token, slash, inner = place[len(parent) + 1 :].partition("/")
    if not token.isdecimal():  # a place from when this was an object, kept for when it is one again
        return place
    position = int(token)
    return f"{parent}/{position + step}{slash}{inner}" if position >= at else place


def with_change(value: Json, tokens: Sequence[str], change: Callable[[Json], Json]) -> Json:
    """The value with what stands at a place changed; everything beside the way there is shared."""
    if not tokens:
        return change(value)
    token, *rest = tokens
    if isinstance(value, list):
        position = int(token)
        return [*value[:position], with_change(value[position], rest, change), *value[position + 1 :]]
    assert isinstance(value, dict)
    return {**value, token: with_change(value[token], rest, change)}


def with_entry(container: Json, token: str, value: Json) -> Json:
    """The container with an entry more."""
    if isinstance(container, list):
        position = int(token)
        return [*container[:position], value, *container[position:]]
    assert isinstance(container, dict)
    return {**container, token: value}


def without_entries(container: Json, tokens: set[str]) -> Json:
    """The container without some of its entries."""
    if isinstance(container, list):
        gone = {int(token) for token in tokens}
        return [value for position, value in enumerate(container) if position not in gone]
    assert isinstance(container, dict)
    return {key: value for key, value in container.items() if key not in tokens}


def resolve_position(document: Json, pointer: str) -> str:
    """The pointer with a `-` at its end read as the position that it stands for."""
    tokens = parse_pointer(pointer)
    if not tokens or tokens[-1] != "-":
        return pointer
    holder: Json = document
    for token in tokens[:-1]:
        if isinstance(holder, dict) and token in holder:
            holder = holder[token]
        elif isinstance(holder, list) and token.isdecimal() and int(token) < len(holder):
            holder = holder[int(token)]
        else:
            return pointer
    return join(parent_of(pointer), len(holder)) if isinstance(holder, list) else pointer
