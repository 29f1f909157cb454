"""A provider on loopback that speaks HTTP over bare sockets, for what passes as it is: chunks, trailers, heads, cuts.

`with raw_upstream(handle) as upstream:` serves each request by `handle(request)`, in a thread for each connection. What
it was asked is in `upstream.seen` from the moment the head has come.
"""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256


@dataclass
class RawRequest:
    """A request whose body is read on demand."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    talk: socket.socket
    rest: bytes
    trailers: list[tuple[str, str]] = field(default_factory=list)
    size: int = 0
    digest: str = ""

    def header(self, name: str) -> str:
        """The first value of a header, or nothing."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    def say(self, data: bytes) -> None:
        """Write these bytes."""
        self.talk.sendall(data)

    def answer(self, status: int = 200, body: bytes = b"", *headers: tuple[str, str]) -> None:
        """A whole answer of known length."""
        self.say(head(status, *headers, ("content-length", str(len(body)))) + body)

    def reset(self) -> None:
        """Hang up at once."""
        self.talk.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.talk.close()

    def pieces(self) -> Iterator[bytes]:
        """The body as it comes."""
        digest = sha256()
        for piece in self._chunks() if self.header("transfer-encoding") else self._sized():
            digest.update(piece)
            self.size += len(piece)
            yield piece
        self.digest = digest.hexdigest()

    def read(self) -> bytes:
        """The whole body."""
        return b"".join(self.pieces())

    def _more(self) -> bytes:
        data = self.talk.recv(1 << 16)
        if not data:
            raise ConnectionError
        return data

    def _sized(self) -> Iterator[bytes]:
        left = int(self.header("content-length") or 0)
        while left:
            data = self.rest or self._more()
            self.rest = data[left:]
            yield data[:left]
            left -= len(data[:left])

    def _line(self) -> bytes:
        while b"\r\n" not in self.rest:
            self.rest += self._more()
        line, _, self.rest = self.rest.partition(b"\r\n")
        return line

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self._line(), 16):
            while len(self.rest) < size + 2:
                self.rest += self._more()
            yield self.rest[:size]
            self.rest = self.rest[size + 2 :]
        while line := self._line():
            name, _, value = line.decode().partition(":")
            self.trailers.append((name, value.strip()))


def head(status: int, *headers: tuple[str, str]) -> bytes:
    """The head of an answer."""
    return "".join(
        [f"HTTP/1.1 {status} Told\r\n", *(f"{name}: {value}\r\n" for name, value in headers), "\r\n"]
    ).encode()


Handle = Callable[[RawRequest], None]


@dataclass
class RawUpstream:
    """`handle` can be set anew."""

    handle: Handle
    port: int = 0
    seen: list[RawRequest] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def serve(self, talk: socket.socket) -> None:
        """Serve the requests of one connection."""
        rest = b""
        with talk, suppress(OSError, ValueError):
            while True:
                while b"\r\n\r\n" not in rest:
                    data = talk.recv(1 << 16)
                    if not data:
                        return
                    rest += data
                lines, _, rest = rest.partition(b"\r\n\r\n")
                first, *fields = lines.decode("latin-1").split("\r\n")
                method, target, _ = first.split(" ")
                headers = [(name, value.strip()) for name, _, value in (each.partition(":") for each in fields)]
                request = RawRequest(method, target, headers, talk, rest)
                self.seen.append(request)
                self.handle(request)
                rest = request.rest


@contextmanager
def raw_upstream(handle: Handle) -> Iterator[RawUpstream]:
    """A provider that is listening."""
    upstream = RawUpstream(handle)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        upstream.port = listening.getsockname()[1]
        threads: list[threading.Thread] = []
        talks: list[socket.socket] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    talk, _ = listening.accept()
                    talks.append(talk)
                    threads.append(threading.Thread(target=upstream.serve, args=(talk,)))
                    threads[-1].start()

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield upstream
        finally:
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            listening.close()
            for talk in talks:
                with suppress(OSError):
                    talk.shutdown(socket.SHUT_RDWR)
            for thread in [accepting, *threads]:
                thread.join(30)
                assert not thread.is_alive()
