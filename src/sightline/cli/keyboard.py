"""What a person types, line by line, while everything else goes on."""

import asyncio
import os
import shlex
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from sightline.cli.terminal import is_terminal, say

_CHUNK = 4096
_TERMINAL = "/dev/tty"


class Typing(Protocol):
    """Where a person answers."""

    async def line(self, prompt: str) -> str | None:
        """What is typed up to the next Enter; None if nobody will type any more."""
        ...

    async def edited(self, text: str, suffix: str) -> str | None:
        """The text as somebody leaves it in an editor; None where there is none."""
        ...


class Keyboard:
    """The terminal that the program was started from. While an editor `is_lent` it, Ctrl-C is the editor's."""

    def __init__(self, descriptor: int, *, editor: str = "", owns: bool = False) -> None:
        self._descriptor = descriptor
        self._editor = editor
        self._owns = owns
        self._typed = bytearray()
        self.is_lent = False

    def close(self) -> None:
        """Let it go."""
        if self._owns:
            os.close(self._descriptor)

    async def line(self, prompt: str) -> str | None:
        """What is typed up to the next Enter. Who stops waiting leaves the next line to whoever asks next."""
        say(prompt, end="")
        while b"\n" not in self._typed:
            data = await self._some()
            if not data:
                say("")
                return None
            self._typed += data
        line, _, rest = bytes(self._typed).partition(b"\n")
        self._typed[:] = rest
        return line.decode("utf-8", "replace").strip()

    async def edited(self, text: str, suffix: str) -> str | None:
        """What an editor makes of it."""
        if not self._editor:
            return None
        with tempfile.TemporaryDirectory(prefix="sightline-edit-") as folder:
            file = Path(folder) / f"arguments{suffix}"
            file.write_text(text, "utf-8")
            if not await self._edit(file):
                return text
            with suppress(OSError, UnicodeDecodeError):
                return file.read_text("utf-8")
        return text

    async def _edit(self, file: Path) -> bool:
        """Whether the editor ended well."""
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
            say(f"note: the editor ended with {code}; nothing is changed")
        return code == 0

    async def _some(self) -> bytes:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()

        def settle() -> None:
            if not ready.done():
                ready.set_result(None)

        loop.add_reader(self._descriptor, settle)
        try:
            await ready
        finally:
            loop.remove_reader(self._descriptor)
        try:
            return os.read(self._descriptor, _CHUNK)
        except OSError:  # the terminal has been closed
            return b""


def keyboard() -> Keyboard | None:
    """The person's, if there is one who sees what is asked; stdin may be busy with something else."""
    if not is_terminal(sys.stderr):
        return None
    editor = os.environ.get("VISUAL", "").strip() or os.environ.get("EDITOR", "").strip()
    if is_terminal(sys.stdin):
        return Keyboard(sys.stdin.fileno(), editor=editor)
    try:
        return Keyboard(os.open(_TERMINAL, os.O_RDONLY | os.O_NOCTTY), editor=editor, owns=True)
    except OSError:
        return None
