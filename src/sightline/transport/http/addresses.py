"""From a host name to a connected socket: the addresses of a host are tried in turn, each with a short head start."""

import asyncio
import contextlib
import ipaddress
import socket
import threading
from asyncio.staggered import staggered_race
from functools import partial
from itertools import chain, zip_longest
from typing import TypeAlias

_HEAD_START = 0.25
_Found: TypeAlias = tuple[int, int, int, str, tuple[str | int | bytes, ...]]
_Address: TypeAlias = tuple[int, tuple[str | int | bytes, ...]]


async def connect_socket(loop: asyncio.AbstractEventLoop, host: str, port: int) -> socket.socket:
    """A socket that is connected to the host, or the OSError that tells most about why there is none.

    asyncio's own `create_connection` can lose a socket that connects in the moment in which the wait for it ends; here
    every one that is not handed out is closed.
    """
    addresses = await _addresses(loop, host, port)
    if len(addresses) == 1:
        return await _connect(loop, addresses[0])
    made: list[socket.socket] = []
    chosen: socket.socket | None = None

    async def attempt(address: _Address) -> socket.socket:
        raw = await _connect(loop, address)
        made.append(raw)
        return raw

    try:
        chosen, _, errors = await staggered_race([partial(attempt, address) for address in addresses], _HEAD_START)
    finally:
        for raw in made:
            if raw is not chosen:
                raw.close()
    if chosen is None:
        raise _most_telling([error for error in errors if isinstance(error, OSError)])
    return chosen


async def _addresses(loop: asyncio.AbstractEventLoop, host: str, port: int) -> list[_Address]:
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).version == 4:
            return [(socket.AF_INET, (host, port))]
        return [(socket.AF_INET6, (host, port, 0, 0))]
    found = await _look_up(loop, host, port)
    addresses = [(family, address) for family, _, _, _, address in found]
    # Both kinds in turn, so that one that leads nowhere costs one head start only. The system's first stays first.
    first = [each for each in addresses if each[0] == addresses[0][0]]
    second = [each for each in addresses if each[0] != addresses[0][0]]
    return [each for each in chain.from_iterable(zip_longest(first, second)) if each is not None]


async def _look_up(loop: asyncio.AbstractEventLoop, host: str, port: int) -> list[_Found]:
    """What the system knows of a name.

    The look-up cannot be cancelled, and asyncio's own would hold up the end of the program until the name server has
    answered; this one has a thread that nobody waits for.
    """
    answer: asyncio.Future[list[_Found]] = loop.create_future()

    def settle(found: list[_Found] | Exception) -> None:
        if answer.cancelled():
            return
        if isinstance(found, Exception):
            answer.set_exception(found)
        else:
            answer.set_result(found)

    def look_up() -> None:
        found: list[_Found] | Exception
        try:
            found = list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as error:  # noqa: BLE001 - whatever it is, the one who waits must hear of it
            found = error
        with contextlib.suppress(RuntimeError):  # the loop has closed meanwhile
            loop.call_soon_threadsafe(settle, found)

    threading.Thread(target=look_up, name=f"look up {host}", daemon=True).start()
    return await answer


async def _connect(loop: asyncio.AbstractEventLoop, address: _Address) -> socket.socket:
    family, where = address
    # asyncio turns off the delay of small writes only for a socket that says that it is TCP.
    raw = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    is_connected = False
    try:
        raw.setblocking(False)
        await loop.sock_connect(raw, where)
        is_connected = True
    finally:
        if not is_connected:
            raw.close()
    return raw


def _most_telling(errors: list[OSError]) -> OSError:
    """Whoever refuses is there; that an address of another kind has no route says nothing beside it."""
    return next((error for error in errors if isinstance(error, ConnectionRefusedError)), errors[0])
