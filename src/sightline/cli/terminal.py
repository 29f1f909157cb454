"""The three streams of a command: input, output, and messages."""

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, TextIO

from sightline.errors import Code, Fault

_LARGEST = 64 << 20
_CONTROL = re.compile(r"\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def say(text: str, *, end: str = "\n", style: str = "") -> None:
    """Print a message to stderr; if that is closed or full, the message is lost. Control characters are escaped;
    `style` is our own."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(f"{style}{harmless(text)}".encode("utf-8", "replace").decode(), file=sys.stderr, flush=True, end=end)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether this stream is a terminal."""
    return stream is not None and stream.isatty()


def harmless(text: str) -> str:
    """Text for a terminal: control characters, which could move the cursor or worse, are escaped."""
    return _CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)


def many(count: int, what: str) -> str:
    """A number of things: `1 round`, `2 rounds`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def tell(fault: Fault) -> None:
    """Print an error: what happened, what to do next, and notes."""
    say(f"error[{fault.code}]: {' '.join(fault.message.split())}")
    if fault.hint:
        say(f"hint: {fault.hint}")
    for note in getattr(fault, "__notes__", ()):
        say(note)


def write(data: bytes, *, ends_line: bool = True) -> None:
    """Write exactly these bytes to stdout at once. On a terminal a line end follows, unless more of the line is to
    come."""
    if not data:
        return
    if sys.stdout is None:
        raise Fault(Code.USAGE, "stdout is closed", hint="Redirect the output to a file or a pipe.")
    try:
        sys.stdout.buffer.write(data)
        if ends_line and sys.stdout.isatty() and not data.endswith(b"\n"):
            sys.stdout.buffer.write(b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise unusable("stdout", error) from None


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """Open the file of this path, or stdin for `-`."""
    if path == "-":
        if sys.stdin is None:
            raise Fault(Code.USAGE, "stdin is closed", hint="Name a file, or pipe something in.")
        yield sys.stdin.buffer
        return
    try:
        stream = open(path, "rb")  # noqa: SIM115, PTH123 - closed below; the try must not cover what the caller does
    except OSError as error:
        raise unusable(path, error) from None
    with stream:
        yield stream


def read(path: str) -> bytes:
    """Read all of it, up to 64 MiB."""
    with open_input(path) as stream:
        try:
            data = stream.read(_LARGEST + 1)
        except OSError as error:
            raise unusable(path, error) from None
    if len(data) > _LARGEST:
        name = "stdin" if path == "-" else path
        raise Fault(Code.USAGE, f"{name} is larger than {_LARGEST >> 20} MiB", hint="Give less input.")
    return data


def some(stream: BinaryIO) -> bytes:
    """What is available, without waiting for more."""
    read1 = getattr(stream, "read1", stream.read)
    data: bytes = read1(65536)
    return data


def unusable(path: str, error: OSError) -> Fault:
    """The Fault for a path that the system refuses."""
    return Fault(Code.USAGE, f"{path}: {error.strerror}", hint="Check the path, its permissions and the space left.")


def settle() -> None:
    """Flush buffers now, so that errors can be reported; Python would try again at exit and print its own message."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
