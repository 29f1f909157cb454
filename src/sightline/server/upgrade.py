"""Requests that ask for another protocol on their connection: the offer of HTTP/2 is left out, others are answered."""

import asyncio
import re
from typing import Final

from sightline.web.asgi import Headers, UpgradeReceiver

_MOST_EARLY: Final = 64 * 1024
_OFFER = re.compile(rb"\r\nupgrade:[ \t]*h2c[ \t]*(?=\r\n|\Z)", re.IGNORECASE)


def without_offer(data: bytes) -> bytes:
    """The request without the offer of HTTP/2 that Java's own client makes. httptools takes a request with any upgrade
    for one without a body."""
    head, end, rest = data.partition(b"\r\n\r\n")
    return _OFFER.sub(b"", head) + end + rest


class Upgrade:
    """The rest of a connection behind a request for another protocol. It waits here, as far as there is room, until
    that protocol is spoken; where it is refused, the connection ends."""

    __slots__ = ("_early", "_is_ending", "_receiver", "_transport")

    def __init__(self, transport: asyncio.Transport, early: bytes) -> None:
        self._transport = transport
        self._early = bytearray(early)
        self._receiver: UpgradeReceiver | None = None
        self._is_ending = False

    def feed(self, data: bytes) -> None:
        """Bytes have arrived."""
        if self._receiver is not None:
            self._receiver.feed(data)
            return
        self._early += data
        if len(self._early) > _MOST_EARLY:
            self._transport.pause_reading()

    def accept(self, headers: Headers, receiver: UpgradeReceiver) -> asyncio.Transport:
        """Answer with 101. The receiver gets every byte from now on, and first those that came before their time, but
        not before this has returned."""
        lines = (b"%b: %b\r\n" % each for each in headers)
        self._transport.write(b"".join((b"HTTP/1.1 101 Switching Protocols\r\n", *lines, b"\r\n")))
        asyncio.get_running_loop().call_soon(self._begin, receiver)
        return self._transport

    def _begin(self, receiver: UpgradeReceiver) -> None:
        self._receiver = receiver
        early, self._early = bytes(self._early), bytearray()
        if not self._transport.is_closing():
            self._transport.resume_reading()
        receiver.feed(early)
        if self._is_ending:
            receiver.shut_down()

    def resume_writing(self) -> None:
        """The client takes more."""
        if self._receiver is not None:
            self._receiver.writable_again()

    def shut_down(self) -> None:
        """The server ends."""
        self._is_ending = True
        if self._receiver is not None:
            self._receiver.shut_down()

    def client_gone(self) -> None:
        """The connection has ended."""
        if self._receiver is not None:
            self._receiver.client_gone()
