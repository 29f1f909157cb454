"""Files as parts of a message.

Only files that the user names are sent, and never their location: an absolute path is reduced to the file name.
"""

from collections.abc import Iterable
from pathlib import PurePath

from sightline.chat.core.attachment import attachment
from sightline.cli.terminal import open_input, unusable
from sightline.errors import Code, Fault
from sightline.model.parts import Part

MOST_BYTES = 64 * 1024 * 1024
"""The limit of all files together; providers allow less."""


def parts_from_files(paths: Iterable[str]) -> tuple[Part, ...]:
    """A part for each file, in their order."""
    names: set[str] = set()
    parts: list[Part] = []
    room = MOST_BYTES
    for path in paths:
        data = _content(path, room)
        room -= len(data)
        name = _unique_name(_display_path(path), names)
        names.add(name)
        parts.append(attachment(data, name, path))
    return tuple(parts)


def _content(path: str, room: int) -> bytes:
    if path == "-":
        raise Fault(Code.USAGE, "-f: stdin cannot be attached", hint="Give - as the prompt, or name a file.")
    with open_input(path) as stream:
        try:
            data = stream.read(room + 1)
        except OSError as error:
            raise unusable(path, error) from None
    if not data:
        raise Fault(Code.USAGE, f"{path}: the file is empty", hint="Leave it out, or check that it was saved.")
    if len(data) > room:
        most = f"{MOST_BYTES // 1024 // 1024} MiB"
        raise Fault(
            Code.USAGE, f"{path}: the files are larger than {most} together", hint="Attach fewer or smaller files."
        )
    return data


def _display_path(path: str) -> str:
    """The path as given if it leads down from the current folder, else the file name."""
    pure = PurePath(path)
    shown = pure.name if pure.is_absolute() or ".." in pure.parts else pure.as_posix()
    # A line break in a name would end the line that names the file.
    return "".join(letter if letter.isprintable() else "?" for letter in shown)


def _unique_name(name: str, taken: set[str]) -> str:
    pure = PurePath(name)
    number = 1
    while name in taken:
        number += 1
        name = pure.with_name(f"{pure.stem} ({number}){pure.suffix}").as_posix()
    return name
