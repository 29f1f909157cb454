"""Typed access to foreign JSON: a wrong shape becomes a `Fault` with the pointer of the offending value. Data URLs are
read into bytes and media type."""

import math
import re
from collections.abc import Collection

from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Inline, Link

_DATA_URL = re.compile(r"data:([^,]*);base64,", re.IGNORECASE)


def from_url(url: str) -> Inline | Link:
    """A data URL as inline bytes, any other URL as a link; a media type keeps its parameters."""
    match = _DATA_URL.match(url)
    if match is None:
        return Link(url)
    return Inline(match[1], url[match.end() :])


def to_url(source: Inline | Link) -> str:
    """The URL for this source."""
    return source.url if isinstance(source, Link) else f"data:{source.media_type};base64,{source.data}"


_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def wrong(value: Json, at: str, expected: str) -> Fault:
    """The fault for a value of the wrong shape."""
    return Fault(
        Code.INVALID_REQUEST,
        f"{at or 'the document'}: expected {expected}, found {_NAMES[type(value)]}",
        hint="Check that the body is of the dialect that was named.",
        pointer=at,
    )


def unknown(value: str, at: str, what: str, known: Collection[str]) -> Fault:
    """The fault for a word that is not one of the known ones."""
    return Fault(
        Code.INVALID_REQUEST,
        f"{at}: unknown {what} {value!r}",
        hint=f"Known here: {', '.join(sorted(known))}.",
        pointer=at,
    )


def as_object(value: Json, at: str) -> JsonObject:
    """The value, which must be an object."""
    if type(value) is not dict:
        raise wrong(value, at, "an object")
    return value


def as_list(value: Json, at: str) -> list[Json]:
    """The value, which must be a list."""
    if type(value) is not list:
        raise wrong(value, at, "a list")
    return value


def as_str(value: Json, at: str) -> str:
    """The value, which must be a string."""
    if type(value) is not str:
        raise wrong(value, at, "a string")
    return value


def str_of(holder: JsonObject, key: str, at: str) -> str:
    """The string under this key, which must exist."""
    value = holder.get(key)
    if type(value) is not str:
        raise wrong(value, f"{at}/{key}", "a string")
    return value


def word_of(holder: JsonObject, key: str) -> str:
    """The string under this key; empty if there is none."""
    value = holder.get(key)
    return value if type(value) is str else ""


def opt_str(holder: JsonObject, key: str, at: str) -> str | None:
    """The string under this key, or None if it is absent or null."""
    value = holder.get(key)
    if value is None or type(value) is str:
        return value
    raise wrong(value, f"{at}/{key}", "a string")


_NUMBER = re.compile(r"\s*-?\d+(\.\d+)?([eE][+-]?\d+)?\s*", re.ASCII)
_MOST = 2**53
"""Floats beyond this do not identify a whole number."""


def any_number(value: Json) -> int | float | None:
    """The value as a number, or None if it is not one.

    Protocol buffers' JSON (Gemini) also has numbers in quotes, and many servers take them.
    """
    if type(value) is int or type(value) is float:
        return value
    if type(value) is not str or not _NUMBER.fullmatch(value):
        return None
    number = float(value)
    if not math.isfinite(number):
        return None
    return int(number) if value.strip().lstrip("-").isdecimal() and abs(number) <= _MOST else number


def whole_number(value: Json) -> int | None:
    """The value as a whole number, in any spelling: 64, 64.0, 6.4E1 and "64" are the same. None if it is not one."""
    number = any_number(value)
    if type(number) is float and number.is_integer() and abs(number) <= _MOST:
        return int(number)
    return number if type(number) is int else None


def opt_int(holder: JsonObject, key: str, at: str) -> int | None:
    """The whole number under this key, or None if it is absent or null."""
    value = holder.get(key)
    if value is None or type(value) is int:
        return value
    number = whole_number(value)
    if number is None:
        raise wrong(value, f"{at}/{key}", "a whole number")
    return number


def opt_bool(holder: JsonObject, key: str, at: str) -> bool | None:
    """The boolean under this key, or None if it is absent or null."""
    value = holder.get(key)
    if value is None or type(value) is bool:
        return value
    raise wrong(value, f"{at}/{key}", "a boolean")


def opt_object(holder: JsonObject, key: str, at: str) -> JsonObject | None:
    """The object under this key, or None if it is absent or null."""
    value = holder.get(key)
    if value is None or type(value) is dict:
        return value
    raise wrong(value, f"{at}/{key}", "an object")


def opt_list(holder: JsonObject, key: str, at: str) -> list[Json]:
    """The list under this key, empty if it is absent or null."""
    value = holder.get(key)
    if value is None:
        return []
    if type(value) is list:
        return value
    raise wrong(value, f"{at}/{key}", "a list")


_NOTHING: JsonObject = {}


def objects_in(value: Json) -> list[tuple[int, JsonObject]]:
    """The objects of a list with their positions; empty for anything else."""
    return [(index, each) for index, each in enumerate(value) if type(each) is dict] if type(value) is list else []


def object_at(value: Json, *keys: str) -> JsonObject:
    """The object under these nested keys; an empty one if there is none."""
    for key in keys:
        value = value.get(key) if type(value) is dict else None
    return value if type(value) is dict else {}


def rest(holder: JsonObject, known: frozenset[str]) -> JsonObject:
    """The fields that are not modelled."""
    if holder.keys() <= known:
        return _NOTHING
    return {key: value for key, value in holder.items() if key not in known}


def nest_extras(extras: JsonObject, key: str, inner: JsonObject) -> JsonObject:
    """The extras with the unread fields of an inner object added under its key."""
    return {**extras, key: inner} if inner else extras


def compact(holder: JsonObject) -> JsonObject:
    """The object without the fields that are None."""
    return {key: value for key, value in holder.items() if value is not None}


def merge(document: JsonObject, extras: JsonObject) -> JsonObject:
    """Put unmodelled fields back, also into nested objects; fields that are already there stay."""
    for key, value in extras.items():
        present = document.get(key)
        if type(present) is dict and type(value) is dict:
            merge(present, value)
        else:
            document.setdefault(key, value)
    return document
