"""Converts JSON arguments to a Python function's types, and its value or exception into an outcome."""

import base64
from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import PurePath
from traceback import walk_tb
from types import TracebackType
from typing import TypeAlias, cast, get_type_hints

import msgspec

from sightline.agent.core.output import ResultPart, ToolOutcome, text_outcome
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Audio, Document, Image, Inline, Text
from sightline.wire.jsontext import encode
from sightline.wire.media_type import encoding_of, is_text, sniff


def convert_arguments(function: Callable[..., object], arguments: Mapping[str, Json] | str) -> dict[str, object]:
    """Convert arguments to the types of the function's hints, such as a dataclass, a date or a set. A text is the only
    argument of a free-text tool.

    The agent loop has validated them against the schema of the same hints; what still does not fit raises
    msgspec.ValidationError.
    """
    if isinstance(arguments, str):
        return {next(iter(signature(function).parameters)): arguments}
    hints = get_type_hints(function)
    return {name: msgspec.convert(value, hints[name]) if name in hints else value for name, value in arguments.items()}


_Picture: TypeAlias = Callable[[], bytes | None]
_READABLE_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_LONGEST_COMPLAINT = 4000


def outcome_of(value: object) -> ToolOutcome:
    """The outcome of a returned value.

    Text is text; an object (a dict, a dataclass, a struct) is structured; None is empty; any other JSON is its text.
    Bytes become an image, a PDF, audio or text by their content. A list with bytes becomes one part for each member.
    Anything else raises TypeError.
    """
    if isinstance(value, ToolOutcome):
        return value
    if value is None:
        return ToolOutcome()
    if isinstance(value, list | tuple) and any(_bytes_of(each) is not None for each in value):
        return ToolOutcome(tuple(_part(each) for each in value))
    if isinstance(value, str) or _bytes_of(value) is not None:
        return ToolOutcome((_part(value),))
    plain = _plain(value)
    return ToolOutcome(structured=plain) if isinstance(plain, dict) else text_outcome(encode(plain).decode())


def failure_of(error: BaseException, file: str, shown: str) -> ToolOutcome:
    """The outcome of an exception, with the line in the function's file; `shown` is the file's name for the model."""
    words = str(error) or "it gave no reason"
    place = _place(error.__traceback__, file)
    where = f" ({shown}, line {place[0]}, in {place[1]})" if place else ""
    return text_outcome(f"{type(error).__name__}: {words[:_LONGEST_COMPLAINT]}{where}", is_error=True)


def last_line(error: BaseException, file: str) -> int:
    """The last line of this file in the exception's traceback; 0 if there is none."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno or 0
    place = _place(error.__traceback__, file)
    return place[0] if place else 0


def part_of(data: bytes, name: str = "") -> ResultPart | None:
    """Bytes as a part for a model; None if their type is not supported."""
    kind = sniff(data, name)
    inline = Inline(kind, base64.b64encode(data).decode())
    if kind in _READABLE_IMAGES:
        return Image(inline)
    if kind == "application/pdf":
        return Document(inline, title=name or None)
    if kind.startswith("audio/"):
        return Audio(inline)
    return Text(data.decode(encoding_of(data))) if is_text(kind) or kind == "image/svg+xml" else None


def _part(value: object) -> ResultPart:
    if isinstance(value, str):
        return Text(value)
    data = _bytes_of(value)
    if data is None:
        plain = _plain(value)
        return Text(encode(plain).decode())
    part = part_of(data)
    if part is None:
        raise TypeError(f"the tool returned {len(data)} bytes of {sniff(data, '')}, which no model can read")
    return part


def _bytes_of(value: object) -> bytes | None:
    """The value's bytes, or its image by the `_repr_png_` protocol of notebooks."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    draw = None if isinstance(value, type) else cast("_Picture | None", getattr(value, "_repr_png_", None))
    return draw() if callable(draw) else None


def _plain(value: object) -> Json:
    plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_encode_unusual)
    return cast("Json | JsonObject", plain)


def _encode_unusual(value: object) -> object:
    if isinstance(value, PurePath | complex | BaseException):
        return str(value)
    raise TypeError(f"the tool returned a value that JSON cannot say: {type(value).__name__}")


def _place(traceback: TracebackType | None, file: str) -> tuple[int, str] | None:
    places = [(line, frame.f_code.co_name) for frame, line in walk_tb(traceback) if frame.f_code.co_filename == file]
    return places[-1] if places else None
