"""The terminal that a program was started from, read by line or by key while everything else continues."""

import asyncio
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

_AT_ONCE = 4096
_CONTROLLING = "CONIN$" if sys.platform == "win32" else "/dev/tty"


class TerminalReader:
    """Reads from an open terminal without blocking the event loop. The loop of Windows cannot watch a terminal
    (`can_watch` False): there a thread waits for input, and input that arrives after the caller has stopped waiting is
    returned by the next call."""

    def __init__(self, descriptor: int, *, can_watch: bool = sys.platform != "win32") -> None:
        self._descriptor = descriptor
        self._can_watch = can_watch
        self._reading: asyncio.Future[bytes] | None = None

    async def read(self) -> bytes:
        """What was typed; empty at the end of input, and if the terminal was closed."""
        if not self._can_watch:
            if self._reading is None:
                self._reading = self._start_reading()
            data = await asyncio.shield(self._reading)
            self._reading = None
            return data
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
        return self._read_now()

    def _start_reading(self) -> asyncio.Future[bytes]:
        loop = asyncio.get_running_loop()
        result: asyncio.Future[bytes] = loop.create_future()

        def wait() -> None:
            data = self._read_now()
            with suppress(RuntimeError):  # the loop is closed: no one waits any more
                loop.call_soon_threadsafe(result.set_result, data)

        # A thread of its own, because the program does not wait for it at exit.
        threading.Thread(target=wait, daemon=True).start()
        return result

    def _read_now(self) -> bytes:
        try:
            return os.read(self._descriptor, _AT_ONCE)
        except OSError:  # the terminal has been closed
            return b""


@contextmanager
def keys_at_once(descriptor: int) -> Iterator[bool]:
    """Make the terminal deliver each key at once, without echo; Ctrl-C works as usual. Yields False if keys arrive only
    with Enter: on Windows, and if it is not a terminal."""
    if sys.platform == "win32":
        yield False
    else:
        import termios

        try:
            before = termios.tcgetattr(descriptor)
        except termios.error:  # it is not a terminal
            yield False
            return
        mode = termios.tcgetattr(descriptor)
        mode[3] &= ~(termios.ICANON | termios.ECHO)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        try:
            # Without a flush: what was typed earlier is meant for this question too.
            termios.tcsetattr(descriptor, termios.TCSANOW, mode)
            yield True
        finally:
            with suppress(termios.error):  # it has been closed
                termios.tcsetattr(descriptor, termios.TCSANOW, before)


@contextmanager
def open_terminal() -> Iterator[int | None]:
    """The terminal of this process, open for reading, even if stdin is something else; None if there is none."""
    try:
        descriptor = os.open(_CONTROLLING, os.O_RDONLY | getattr(os, "O_NOCTTY", 0))
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def has_screen(environment: Mapping[str, str], platform: str = sys.platform) -> bool:
    """Whether a browser can show a window to this user."""
    return platform in ("darwin", "win32") or any(map(environment.get, ("DISPLAY", "WAYLAND_DISPLAY")))


def is_in_foreground() -> bool:
    """Whether this process is in the foreground of a terminal, which sends Ctrl-C to it and to its children alike."""
    with open_terminal() as terminal:
        if terminal is None:
            return False
        if sys.platform == "win32":
            return True  # a console has no background
        else:  # noqa: RET505 - a type checker for Windows must see that this is not reached there
            try:
                return os.tcgetpgrp(terminal) == os.getpgrp()
            except OSError:
                return False
