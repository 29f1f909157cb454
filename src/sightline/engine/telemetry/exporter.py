"""Spans on their way to a collector: gathered from what is recorded, sent in batches, dropped and never waited for."""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Self

from sightline.engine.telemetry.spans import ENDS, attributes, span
from sightline.errors import Fault
from sightline.model.exchange import Budgeted, FrameArrived
from sightline.model.json import Json
from sightline.store.entries import Entry, Kept, Noted
from sightline.transport.http.client import HttpClient
from sightline.transport.http.timeouts import Timeouts
from sightline.wire.call import HttpRequest
from sightline.wire.jsontext import encode

_LOG = logging.getLogger("sightline.telemetry")
_PATH = "/v1/traces"
_MOST_WAITING = 2048
_MOST_AT_ONCE = 256
_PAUSE = 5.0
_LAST_WORDS = 2.0
_TIMEOUTS = Timeouts(connect=5.0, first_byte=10.0, idle=10.0)
_TRY_AGAIN = frozenset({429, 502, 503, 504})

Ended = tuple[tuple[Noted, ...], dict[str, bytes]]


class Exporter:
    """Give it what is recorded, by `took`. `with_content` sends what was said too; `headers` are the collector's.

    `pause` is the longest that a span waits for others. It belongs to the loop in which it is entered.
    """

    def __init__(
        self,
        client: HttpClient,
        endpoint: str,
        *,
        version: str,
        headers: Mapping[str, str] | None = None,
        with_content: bool = False,
        pause: float = _PAUSE,
    ) -> None:
        self._client = client
        self._url = endpoint if endpoint.endswith(_PATH) else endpoint.rstrip("/") + _PATH
        self._version = version
        self._headers = (("content-type", "application/json"), *(headers or {}).items())
        self._with_content = with_content
        self._pause = pause
        self._open: dict[str, tuple[list[Noted], dict[str, bytes]]] = {}
        self._ready: deque[Ended] = deque()
        self._news = asyncio.Event()
        self._is_full = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._dropped = 0
        self._is_silent = False
        self._is_closing = False

    # --- what is recorded ---

    def took(self, entries: Sequence[Entry]) -> None:
        """These were recorded. Nothing is done with them here but to remember those that are needed."""
        bodies: dict[str, bytes] = {}
        for entry in entries:
            if isinstance(entry, Kept):
                bodies[entry.sha256] = entry.data
            elif isinstance(entry.fact, Budgeted):
                continue  # no span tells of it, and it may come when the span is gone
            elif self._with_content or not isinstance(entry.fact, FrameArrived):
                facts, kept = self._open.setdefault(entry.exchange, ([], {}))
                facts.append(entry)
                if self._with_content:
                    kept.update(bodies)
                if isinstance(entry.fact, ENDS):
                    del self._open[entry.exchange]
                    self._end((tuple(facts), kept))

    def _end(self, ended: Ended) -> None:
        if len(self._ready) >= _MOST_WAITING:
            self._ready.popleft()
            self._dropped += 1
        self._ready.append(ended)
        self._news.set()
        if len(self._ready) >= _MOST_AT_ONCE:
            self._is_full.set()

    # --- and sent ---

    async def __aenter__(self) -> Self:
        self._running = asyncio.get_running_loop().create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Send what is left, unless that takes long."""
        assert self._running is not None
        self._is_closing = True
        self._news.set()
        self._is_full.set()
        try:
            async with asyncio.timeout(_LAST_WORDS):
                await self._running
        except TimeoutError:
            _LOG.warning("%d spans did not reach %s", len(self._ready), self._url)

    async def _run(self) -> None:
        while True:
            await self._news.wait()
            try:
                async with asyncio.timeout(self._pause):
                    await self._is_full.wait()
            except TimeoutError:
                pass
            self._news.clear()
            self._is_full.clear()
            while self._ready and await self._send():
                pass
            if self._is_closing:
                return

    async def _send(self) -> bool:
        """One batch; False where the collector cannot be reached now, and the batch waits for the next time."""
        batch = [self._ready.popleft() for _ in range(min(_MOST_AT_ONCE, len(self._ready)))]
        try:
            is_taken = await self._post(encode(self._document(batch)))
        except Fault as fault:
            is_taken = False
            self._tell(fault.message)
        except asyncio.CancelledError:
            self._ready.extendleft(reversed(batch))
            raise
        if not is_taken:
            self._ready.extendleft(reversed(batch[: _MOST_WAITING - len(self._ready)]))
            self._news.set()
        return is_taken

    async def _post(self, body: bytes) -> bool:
        request = HttpRequest("POST", self._url, self._headers, body)
        async with await self._client.send(request, _TIMEOUTS) as response:
            await response.read()
        if response.status in _TRY_AGAIN:
            self._tell(f"status {response.status}")
            return False
        if response.status >= 300:
            self._tell(f"status {response.status}; these spans are dropped")
        else:
            self._is_silent = False
        return True

    def _document(self, batch: Sequence[Ended]) -> Json:
        return {
            "resourceSpans": [
                {
                    "resource": {"attributes": attributes({"service.name": "sightline"})},
                    "scopeSpans": [
                        {
                            "scope": {"name": "sightline", "version": self._version},
                            "spans": [span(facts, bodies) for facts, bodies in batch],
                        }
                    ],
                }
            ]
        }

    def _tell(self, why: str) -> None:
        """Once for each time that it goes wrong, and not for every batch."""
        if not self._is_silent:
            self._is_silent = True
            _LOG.warning("the collector at %s does not take spans: %s", self._url, why)
