"""The direct path of a chunk from a provider's socket to a client's, for streams that a client gets unchanged."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from sightline.transport.http.connection import HttpConnection
from sightline.transport.http.framing import AnswerParser, size_line, unframe

_MOST_KEPT = 64
"""How many chunks pass before they are handed on; none of them is large."""


class PausableClient(Protocol):
    """A client that may be slower than its provider."""

    is_writing_paused: bool


class StraightWay:
    """The destination of chunks that a client gets exactly as they arrived: `write` takes each, until the `client` is
    paused. Chunks that passed are kept with their times by `clock`; `flush` passes them to `hand_on`, without the
    framing."""

    def __init__(
        self,
        write: Callable[[bytes], None],
        client: PausableClient,
        clock: Callable[[], float],
        hand_on: Callable[[list[bytes], list[float]], None],
    ) -> None:
        self.write, self.client, self.clock = write, client, clock
        self.chunks: list[bytes] = []
        self.moments: list[float] = []
        self._hand_on = hand_on

    def flush(self) -> None:
        """Hand on what has passed since the last call."""
        if self.chunks:
            data, moments = unframe(self.chunks), self.moments[:]
            self.chunks.clear()
            self.moments.clear()
            self._hand_on(data, moments)


def take_straight(
    connection: HttpConnection,
    answer: AnswerParser,
    way: StraightWay,
    on_data: Callable[[bytes], None],
    on_error: Callable[[Exception], None],
) -> Callable[[bytes], None]:
    """A listener that writes each read that is exactly one chunk straight to the client, and passes all others to
    `on_data`. `on_error` gets what `write` raises, as uvloop's does for a client whose connection has just ended.

    A read is recognized as one chunk by its length: only one size line results in that many bytes. llhttp, which is
    between two chunks, need not see it.
    """
    write, client, clock, time = way.write, way.client, way.clock, asyncio.get_running_loop().time
    keep, note = way.chunks.append, way.moments.append
    left = _MOST_KEPT

    def on_chunk(data: bytes) -> None:
        # This runs for each chunk of each stream, so it does as little as possible: every step runs with cold caches.
        nonlocal left
        line = size_line(len(data))
        if line and answer.is_between_chunks and data.startswith(line) and data.endswith(b"\r\n"):
            connection.heard = time()
            keep(data)
            note(clock())
            try:
                write(data)
            except Exception as error:  # noqa: BLE001 - it must not break the provider's connection
                on_error(error)
                return
            left -= 1
            if left and not client.is_writing_paused:
                return
            data = b""
        left = _MOST_KEPT
        on_data(data)

    return on_chunk
