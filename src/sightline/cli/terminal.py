"""The three streams of a command: input, output with its tables, and messages; and what the user types, read by line or
by key while everything else continues."""

import contextlib
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, TextIO

from sightline.errors import Code, Fault

_LARGEST = 64 << 20
_CONTROL = re.compile(r"\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def say(text: str, *, end: str = "\n", style: str = "") -> None:
    """Print a message to stderr; if stderr is closed or full, the message is lost. Control characters are escaped;
    `style` is our own, and is left out if there are no colours."""
    if sys.stderr is not None:
        style = style if has_colours(sys.stderr) else ""
        with contextlib.suppress(OSError):
            print(f"{style}{harmless(text)}".encode("utf-8", "replace").decode(), file=sys.stderr, flush=True, end=end)


def is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def has_colours(stream: TextIO | None) -> bool:
    """Whether this stream is a terminal whose user wants colours: https://no-color.org."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def harmless(text: str) -> str:
    """Text for a terminal: control characters, which could move the cursor or worse, are escaped."""
    return _CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)


def many(count: int, what: str) -> str:
    """A number of things: `1 round`, `2 rounds`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def money(cost: float | None, *, is_estimated: bool = False) -> str:
    """US dollars, with a tilde if they are estimated; empty if unknown."""
    about = "~" if is_estimated else ""
    if cost is None:
        return ""
    if 0 < cost < 0.0001:
        return f"{about}<$0.0001"
    return f"{about}${cost:.2f}" if cost >= 1 or cost == 0 else f"{about}${cost:.4f}"


def size_of(count: int) -> str:
    if count < 1000:
        return many(count, "byte")
    return f"{count / 1000:,.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:,.1f} MB"


def open_page(link: str) -> None:
    """Open the page in a browser without waiting for it, if there is a desktop."""
    # Every command loads this module, and these load asyncio and more, which takes half as long as all of `--help`.
    import threading
    import webbrowser

    from sightline.platform.terminal import has_screen

    if has_screen(os.environ) and is_terminal(sys.stdout):
        threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()


def ask(question: str, hint: str) -> str:
    """What the user types. Raises a Fault if there is no terminal to ask at; `hint` says how to avoid the question."""
    if not is_terminal(sys.stdin):
        raise Fault(Code.USAGE, "there is no terminal to ask at", hint=hint)
    say(question, end="")
    return sys.stdin.readline().strip()


def confirm(question: str, hint: str = "") -> bool:
    """Whether the user says yes."""
    return ask(f"{question} [y/N] ", hint).lower() in ("y", "yes")


def print_fault(fault: Fault) -> None:
    """Print an error: what happened, what to do next, and notes."""
    say(f"error[{fault.code}]: {' '.join(fault.message.split())}")
    if fault.hint:
        say(f"hint: {fault.hint}")
    for note in getattr(fault, "__notes__", ()):
        say(note)


def write(data: bytes, *, ends_line: bool = True) -> None:
    """Write exactly these bytes to stdout at once. On a terminal a line break follows, unless the line continues."""
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


def table(rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> list[str]:
    """Format rows as a table; the first row is the header, columns in `right` are right-aligned."""
    cells = [[harmless(cell).replace("\n", " ") for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def write_lines(lines: Iterable[str]) -> None:
    write(("\n".join(lines) + "\n").encode("utf-8", "replace"))


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """Open the file at this path, or stdin for `-`."""
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
    """Read the whole file, up to 64 MiB."""
    data = read_beginning(path, _LARGEST + 1)
    if len(data) > _LARGEST:
        name = "stdin" if path == "-" else path
        raise Fault(Code.USAGE, f"{name} is larger than {_LARGEST >> 20} MiB", hint="Give less input.")
    return data


def read_beginning(path: str, size: int) -> bytes:
    """Read the first bytes of a file, up to this size."""
    with open_input(path) as stream:
        try:
            return stream.read(size)
        except OSError as error:
            raise unusable(path, error) from None


def read_available(stream: BinaryIO) -> bytes:
    """Read what is available, without waiting for more."""
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
