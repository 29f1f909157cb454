"""A program at a terminal of its own, and a person who reads what it shows and types."""

import fcntl
import os
import pty
import select
import subprocess
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.server_process import PROGRAM

_PATIENCE = 30
CTRL_C = "\x03"


class Seat:
    """What stands on the screen so far is `shown`. With `is_piped` stdout goes elsewhere, and is `out` at the end."""

    def __init__(self, process: "subprocess.Popen[bytes]", terminal: int) -> None:
        self.process = process
        self.shown = ""
        self.out = b""
        self._terminal = terminal
        self._read = 0

    def until(self, text: str) -> str:
        """What is shown up to and with this text, since the last time."""
        while (found := self.shown.find(text, self._read)) < 0:
            assert self._more(), f"{text!r} is not in what was shown:\n{self.shown}"
        piece, self._read = self.shown[self._read : found + len(text)], found + len(text)
        return piece

    def type(self, text: str) -> None:
        """Type."""
        os.write(self._terminal, text.encode())

    def answer(self, question: str, text: str) -> None:
        """Wait for a question, and answer it."""
        self.until(question)
        self.type(f"{text}\n")

    def ended(self) -> int:
        """The exit code, once the program has ended."""
        if self.process.stdout is not None:
            self.out = self.process.stdout.read()
        while self._more():
            pass
        return self.process.wait(_PATIENCE)

    def _more(self) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], _PATIENCE)
        assert ready, f"nothing more is shown:\n{self.shown}"
        try:
            data = os.read(self._terminal, 65536)
        except OSError:  # how Linux says that nobody is at the other end
            return False
        self.shown += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)


@contextmanager
def seated(
    words: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    is_piped: bool = False,
    stdin: Path | None = None,
) -> Iterator[Seat]:
    """The program with these words, at a terminal that is its own. `stdin` is a file in place of the keyboard."""
    ours, theirs = pty.openpty()

    def take() -> None:
        fcntl.ioctl(2, termios.TIOCSCTTY, 0)
        if stdin is not None:
            os.dup2(os.open(stdin, os.O_RDONLY), 0)

    process = subprocess.Popen(
        [*PROGRAM, *words],
        cwd=folder,
        env=dict(environment),
        stdin=theirs,
        stdout=subprocess.PIPE if is_piped else theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=take,
    )
    os.close(theirs)
    try:
        yield Seat(process, ours)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
        os.close(ours)
