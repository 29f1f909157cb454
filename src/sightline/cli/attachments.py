"""Files as parts of a message: text in place under its name, images, PDFs and sound as what they are.

Only what a person named goes out, and never where it lies on this machine: an absolute path is cut to the name.
"""

import base64
import re
from collections.abc import Iterable
from pathlib import PurePath

from sightline.cli.terminal import opened, unusable
from sightline.errors import Code, Fault
from sightline.model.parts import Audio, Document, Image, Inline, Part, Text
from sightline.wire.media_type import BINARY, encoding_of, is_text, sniff

MOST_BYTES = 64 * 1024 * 1024
"""Of all files together; providers take less."""

_POSSIBLE = "Text, images (PNG, JPEG, GIF, WebP), PDFs and audio (WAV, MP3) can be attached."
_FENCES = re.compile(r"`{3,}")


def attached(paths: Iterable[str]) -> tuple[Part, ...]:
    """A part for each file, in their order."""
    names: set[str] = set()
    parts: list[Part] = []
    room = MOST_BYTES
    for path in paths:
        data = _content(path, room)
        room -= len(data)
        name = _told_apart(_shown(path), names)
        names.add(name)
        parts.append(_part(data, name, path))
    return tuple(parts)


def _content(path: str, room: int) -> bytes:
    if path == "-":
        raise Fault(Code.USAGE, "-f: stdin cannot be attached", hint="Give - as the prompt, or name a file.")
    with opened(path) as stream:
        try:
            data = stream.read(room + 1)
        except OSError as error:
            raise unusable(path, error) from None
    if not data:
        raise Fault(Code.USAGE, f"{path}: the file is empty", hint="Leave it out, or check that it was saved.")
    if len(data) > room:
        most = f"{MOST_BYTES // 1024 // 1024} MiB"
        raise Fault(Code.USAGE, f"{path}: the files are larger than {most} together", hint="Attach less of them.")
    return data


def _shown(path: str) -> str:
    """The path as it was given if it leads down from here, else the bare name."""
    pure = PurePath(path)
    shown = pure.name if pure.is_absolute() or ".." in pure.parts else pure.as_posix()
    # A line break in a name would end the line that names the file.
    return "".join(letter if letter.isprintable() else "?" for letter in shown)


def _told_apart(name: str, taken: set[str]) -> str:
    pure = PurePath(name)
    number = 1
    while name in taken:
        number += 1
        name = pure.with_name(f"{pure.stem} ({number}){pure.suffix}").as_posix()
    return name


def _part(data: bytes, name: str, path: str) -> Part:
    kind = sniff(data, name)
    if is_text(kind):
        return Text(_fenced(data.decode(encoding_of(data)), name, path))
    inline = Inline(kind, base64.b64encode(data).decode())
    if kind == "application/pdf":
        return Document(inline, name)
    match kind.partition("/")[0]:
        case "image":
            return Image(inline)
        case "audio":
            return Audio(inline)
        case _:
            raise _refusal(data, kind, path)


def _fenced(text: str, name: str, path: str) -> str:
    """The text under its name, between fences that are longer than any in it."""
    if not text.strip():
        raise Fault(Code.USAGE, f"{path}: there is no text in the file", hint="Leave it out.")
    fence = max(_FENCES.findall(text), key=len, default="``") + "`"
    end = "" if text.endswith("\n") else "\n"
    return f"File: {name}\n{fence}\n{text}{end}{fence}\n"


def _refusal(data: bytes, kind: str, path: str) -> Fault:
    encoding = encoding_of(data).removesuffix("-sig")  # so that a byte order mark counts among the bytes
    if kind == BINARY and (encoding != "utf-8" or b"\0" not in data):
        try:
            data.decode(encoding)
        except UnicodeDecodeError as error:
            message = f"{path}: this is not valid {encoding.upper()} text: byte {error.start}"
            return Fault(Code.USAGE, message, hint=f"Save it as UTF-8. {_POSSIBLE}")
    what = "an unknown kind of file" if kind == BINARY else kind
    return Fault(Code.USAGE, f"{path}: {what} cannot be attached", hint=_POSSIBLE)
