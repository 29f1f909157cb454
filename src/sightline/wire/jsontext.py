"""JSON text to values and back, at msgspec's speed, without losing what real clients send.

JavaScript clients send lone surrogate escapes, which are legal JSON and which msgspec refuses; the standard library
reads and writes those. Whatever neither can read is one `Fault` that says where the text goes wrong.
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
# A walk over a value needs up to two frames a level, and begins some way down already. Decoders count with the limit
# too, and stop short of it.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 4 * MOST_LEVELS))

MISFIT = (msgspec.ValidationError, UnicodeEncodeError)
"""What `msgspec.convert` raises for a value of another shape; half a character in a name is the second."""

_DECODER = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder()
_STRING_OR_ATOM = re.compile(r'"(?:[^"\\]++|\\.)*+"|[^\s"\[\]{},:]++', re.DOTALL)


class _UnreadableNumber(ValueError):
    """A number that Python cannot hold exactly or finitely, or a word that stands for one."""


def decode(data: bytes | str) -> Json:
    """The value of one JSON text; a leading byte order mark is tolerated, integers are exact."""
    try:
        value: Json = _DECODER.decode(data)
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        value = _decode_patiently(data)
    if may_be_deep(data):
        _check_levels(value)
    return value


def encode(value: Json) -> bytes:
    """The compact UTF-8 text of a value; a string that UTF-8 cannot carry makes it ASCII with escapes."""
    try:
        return _ENCODER.encode(value)
    except RecursionError:
        raise _too_deep() from None
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")


def may_be_deep(data: bytes | str) -> bool:
    """Whether so many lists and objects begin in it that they could be nested too deep."""
    if len(data) <= 2 * MOST_LEVELS:
        return False  # a level takes two characters
    if isinstance(data, str):
        return data.count("[") + data.count("{") > MOST_LEVELS
    # What is to be taken out is searched for; `count` looks at each byte, which takes several times as long.
    most = MOST_LEVELS + 1
    left = len(data.replace(b"[", b"", most)) + len(data.replace(b"{", b"", most))
    return 2 * len(data) - left > MOST_LEVELS


def _check_levels(value: Json) -> None:
    """Refuse what Python code could not follow to its end."""
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


def _decode_patiently(data: bytes | str) -> Json:
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
    except UnicodeDecodeError as error:
        # What stands before the bad byte did decode, so the place can be counted in characters.
        before = error.object[: error.start].decode("utf-8")
        raise _not_json("invalid UTF-8", *_place(before)) from None
    text = text.removeprefix("\ufeff")
    try:
        value: Json = json.loads(text, parse_constant=_refuse, parse_float=_finite, parse_int=_exact)
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


def _finite(literal: str) -> float:
    value = float(literal)
    return value if math.isfinite(value) else _refuse(literal)


def _exact(literal: str) -> int:
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
