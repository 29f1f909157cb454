"""Questions to the user at the terminal: lines, keys, and texts in an editor, while everything else continues."""

import asyncio
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sightline.cli.terminal import is_terminal, say
from sightline.platform.terminal import TerminalReader, keys_at_once, open_terminal

_SPECIAL = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.)?")
"""The escape sequences of arrows and function keys, or Escape alone."""


class Keyboard:
    """The terminal that the program was started from. While `is_lent` to an editor, Ctrl-C belongs to the editor."""

    def __init__(self, descriptor: int, *, editor: str = "") -> None:
        self._descriptor = descriptor
        self._terminal = TerminalReader(descriptor)
        self._editor = editor
        self._typed = bytearray()
        self.is_lent = False

    async def line(self, prompt: str) -> str | None:
        """The next line, or None at the end of input. If the caller stops waiting, the next call gets it."""
        say(prompt, end="")
        while b"\n" not in self._typed:
            data = await self._terminal.read()
            if not data:
                say("")
                return None
            self._typed += data
        line, _, rest = bytes(self._typed).partition(b"\n")
        self._typed[:] = rest
        return line.decode("utf-8", "replace").strip()

    async def key(self, prompt: str) -> str | None:
        """The next key, without Enter; a line if keys cannot be read one by one. None at the end of input."""
        with keys_at_once(self._descriptor) as is_possible:
            if not is_possible:
                return await self.line(prompt)
            say(prompt, end="")
            while (pressed := self._next_key()) is None:
                data = await self._terminal.read()
                if not data or data.startswith(b"\x04"):
                    say("")
                    return None
                self._typed += data
        say(pressed)
        return pressed

    def _next_key(self) -> str | None:
        """The first key of what was typed; None if there is none yet. Enter, and anything typed before it, belongs to
        the key, because many people type `y` and Enter. Arrows and the like are several bytes, and are ignored."""
        text = _SPECIAL.sub(b"", self._typed).lstrip(b" \r\n").decode("utf-8", "ignore")
        if not text:
            if len(self._typed) > 4:  # longer than any character
                self._typed.clear()  # not UTF-8 at all
            return None
        _, enter, rest = text[1:].partition("\n")
        self._typed[:] = rest.encode() if enter else text[1:].encode()
        return text[0]

    async def edit(self, text: str, suffix: str) -> str | None:
        """The text as the user leaves it in the editor; None if no editor is set."""
        if not self._editor:
            return None
        with tempfile.TemporaryDirectory(prefix="sightline-edit-") as folder:
            file = Path(folder) / f"arguments{suffix}"
            file.write_text(text, "utf-8")
            if not await self._edit(file):
                return text
            try:
                return file.read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                say(f"note: what the editor left is no UTF-8 text; nothing was changed: {error}")
                return text

    async def _edit(self, file: Path) -> bool:
        """Whether the editor ended without an error."""
        self.is_lent = True
        try:
            editor = await asyncio.create_subprocess_exec(*shlex.split(self._editor), str(file))
            code = await editor.wait()
        except (OSError, ValueError) as error:
            say(f"note: the editor {self._editor!r} cannot be started: {error}")
            return False
        finally:
            self.is_lent = False
        if code:
            say(f"note: the editor ended with {code}; nothing was changed")
        return code == 0


@contextmanager
def open_keyboard() -> Iterator[Keyboard | None]:
    """The user's terminal, or None if questions cannot be seen there. Stdin may be in use for something else."""
    if not is_terminal(sys.stderr):
        yield None
        return
    editor = os.environ.get("VISUAL", "").strip() or os.environ.get("EDITOR", "").strip()
    if is_terminal(sys.stdin):
        yield Keyboard(sys.stdin.fileno(), editor=editor)
        return
    with open_terminal() as descriptor:
        yield None if descriptor is None else Keyboard(descriptor, editor=editor)
