"""Decodes and encodes JSON text at msgspec's speed, without losing anything that real clients send.

JavaScript clients send lone surrogate escapes, which are legal JSON but which msgspec refuses; the standard library
reads and writes those. A text that neither can read raises a `Fault` that reports where it goes wrong.
"""

import json
import math
import re
import sys
from typing import NoReturn

import msgspec

from sightline.errors import Code, Fault
from sightline.model.json import Json

BOM = b"\xef\xbb\xbf"

MOST_LEVELS = 1000
# A walk over a value needs up to two frames per level, and starts some way down the stack already. Decoders use the
# limit too, and stop short of it.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 4 * MOST_LEVELS))

_SHORT = 2 * MOST_LEVELS
"""A text of this length or less cannot be nested too deep, since each level takes two characters."""

MISFIT = (msgspec.ValidationError, UnicodeEncodeError)
"""What `msgspec.convert` raises for a value of another shape. The second is for a lone surrogate in a name."""

_DECODER = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder()
_STRING_OR_ATOM = re.compile(r'"(?:[^"\\]++|\\.)*+"|[^\s"\[\]{},:]++', re.DOTALL)


class _UnreadableNumber(ValueError):
    """A number that Python cannot represent exactly or finitely, or a word such as NaN."""


def decode(data: bytes | str) -> Json:
    """The value of a JSON text. A leading byte order mark is accepted; integers are exact."""
    try:
        value: Json = _DECODER.decode(data)
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        value = _decode_with_stdlib(data)
    if len(data) > _SHORT and may_be_deep(data):  # spares the many small frames of a stream the call
        _check_levels(value)
    return value


def encode(value: Json) -> bytes:
    """The compact UTF-8 text of a value; ASCII with escapes if it has a string that UTF-8 cannot encode."""
    try:
        return _ENCODER.encode(value)
    except RecursionError:
        raise _too_deep() from None
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")


def may_be_deep(data: bytes | str) -> bool:
    """Whether enough lists and objects begin in the text that they could be nested too deep."""
    if isinstance(data, str):
        return data.count("[") + data.count("{") > MOST_LEVELS
    # `replace` searches for what it removes; `count` looks at every byte, which takes several times as long.
    most = MOST_LEVELS + 1
    left = len(data.replace(b"[", b"", most)) + len(data.replace(b"{", b"", most))
    return 2 * len(data) - left > MOST_LEVELS


def _check_levels(value: Json) -> None:
    """Raise a Fault if the value is nested deeper than recursive Python code can follow."""
    level = [value]
    for _ in range(MOST_LEVELS):
        inner: list[Json] = []
        for holder in level:
            if isinstance(holder, dict):
                inner += [each for each in holder.values() if type(each) in (dict, list)]
            elif isinstance(holder, list):
                inner += [each for each in holder if type(each) in (dict, list)]
        if not inner:
            return
        level = inner
    raise _too_deep()


def _decode_with_stdlib(data: bytes | str) -> Json:
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
    except UnicodeDecodeError as error:
        # The bytes before the bad one did decode, so the place can be counted in characters.
        before = error.object[: error.start].decode("utf-8")
        raise _not_json("invalid UTF-8", *_place(before)) from None
    text = text.removeprefix("\ufeff")
    try:
        value: Json = json.loads(text, parse_constant=_refuse, parse_float=_parse_float, parse_int=_parse_int)
        return value
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError as error:
        reason = error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
        raise _not_json(reason, error.lineno, error.colno) from None
    except _UnreadableNumber as error:
        literal = str(error)
        at = next(token.start() for token in _STRING_OR_ATOM.finditer(text) if token[0].startswith(literal))
        shown = literal if len(literal) <= 40 else f"{literal[:40]}…"
        raise _not_json(f"no usable number: {shown}", *_place(text[:at])) from None


def _refuse(literal: str) -> NoReturn:
    raise _UnreadableNumber(literal)


def _parse_float(literal: str) -> float:
    value = float(literal)
    return value if math.isfinite(value) else _refuse(literal)


def _parse_int(literal: str) -> int:
    try:
        return int(literal)
    except ValueError:
        _refuse(literal)


def _place(before: str) -> tuple[int, int]:
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def _not_json(reason: str, line: int, column: int) -> Fault:
    return Fault(
        Code.INVALID_REQUEST,
        f"not JSON: {reason} at line {line}, column {column}",
        hint="Correct the text at that place; the body must be one JSON value in UTF-8.",
    )


def _too_deep() -> Fault:
    return Fault(
        Code.INVALID_REQUEST,
        "not JSON that can be read: it is nested too deep, 1,000 levels is the limit",
        hint="Flatten the value, or send the inner part as a string.",
    )
