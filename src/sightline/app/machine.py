"""The system's clock, randomness, commands and process names, and the ids made from them."""

import asyncio
import os
import random
import secrets
import shlex
import shutil
import socket
import sysconfig
import time
from collections.abc import Callable

from sightline.platform.processes import is_running, start_time


class SystemClock:
    """The system's clock."""

    # Called at every step of every exchange, so there is no wrapper.
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def random_digits() -> Callable[[], str]:
    """A source of six random hexadecimal digits. They need not be secret, so the system's randomness is used only for
    the seed."""
    source = random.Random(secrets.randbits(128))
    return lambda: f"{source.getrandbits(24):06x}"


def process_name() -> str:
    """A name for this process that no other process has, on any machine, at any time."""
    return f"{socket.gethostname()}:{os.getpid()}:{start_time(os.getpid())}"


def own_command() -> str:
    """How a shell starts this program: by its name if the shell finds it, otherwise by the path next to this Python."""
    if shutil.which("sightline") is None and (path := shutil.which("sightline", path=sysconfig.get_path("scripts"))):
        return shlex.quote(path)
    return "sightline"


def is_alive(process: str) -> bool:
    """Whether the process with this name runs on this machine. Always False for processes of other machines."""
    host, _, rest = process.partition(":")
    number, _, started = rest.partition(":")
    if host != socket.gethostname() or not number.isdecimal():
        return False
    return is_running(int(number)) and start_time(int(number)) == started


class Ids:
    """Ids for exchanges that sort by creation: strictly increasing microseconds since 1970, and random digits to tell
    apart processes that share a record."""

    def __init__(self, nanoseconds: Callable[[], int], digits: Callable[[], str]) -> None:
        self._nanoseconds = nanoseconds
        self._digits = digits
        self._last = 0

    def __call__(self) -> str:
        self._last = max(self._last + 1, self._nanoseconds() // 1000)
        return f"x_{self._last:014x}{self._digits()}"
