"""The system's clock, randomness and process names, and the ids made of them."""

import asyncio
import os
import random
import secrets
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_SYNCHRONIZE, _ACCESS_DENIED, _WAIT_TIMEOUT = 0x0010_0000, 5, 0x102
"""Windows constants: the right to wait for a process, "access denied", and "the process has not ended"."""


class SystemClock:
    """The system's clock."""

    # Asked for at every step of every exchange, so that there is nothing between.
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


def chance() -> Callable[[], str]:
    """A source of six random hexadecimal digits. They need not be secret, so the system's randomness is used only for
    the seed."""
    source = random.Random(secrets.randbits(128))
    return lambda: f"{source.getrandbits(24):06x}"


def process_name() -> str:
    """A name for this process that no other process has, on any machine, at any time."""
    return f"{socket.gethostname()}:{os.getpid()}:{_start_time(os.getpid())}"


def is_alive(process: str) -> bool:
    """Whether the process of this name runs on this machine. Always False for processes of other machines."""
    host, _, rest = process.partition(":")
    number, _, started = rest.partition(":")
    if host != socket.gethostname() or not number.isdecimal():
        return False
    return _is_running(int(number)) and _start_time(int(number)) == started


def _is_running(number: int) -> bool:
    if sys.platform == "win32":
        return _is_running_on_windows(number)
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's process, and alive
    return True


def _is_running_on_windows(number: int) -> bool:
    """On Windows `os.kill` ends a process whatever the signal is."""
    import ctypes

    kernel: Any = ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore] # other systems have none
    handle = kernel.OpenProcess(_SYNCHRONIZE, 0, number)
    if not handle:
        return bool(kernel.GetLastError() == _ACCESS_DENIED)  # another user's process, and alive
    try:
        return bool(kernel.WaitForSingleObject(handle, 0) == _WAIT_TIMEOUT)
    finally:
        kernel.CloseHandle(handle)


def _start_time(number: int) -> str:
    """The start time of a process, which tells it from later ones with the same number; empty where /proc is
    missing."""
    try:
        # The program's name is in parentheses and may contain parentheses itself.
        return Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19]
    except OSError:
        return ""


class Ids:
    """Ids for exchanges that sort by creation: microseconds since 1970, strictly increasing, and random digits for
    processes that share a record."""

    def __init__(self, nanoseconds: Callable[[], int], chance: Callable[[], str]) -> None:
        self._nanoseconds = nanoseconds
        self._chance = chance
        self._last = 0

    def __call__(self) -> str:
        """The next id."""
        self._last = max(self._last + 1, self._nanoseconds() // 1000)
        return f"x_{self._last:014x}{self._chance()}"
