"""The page while it shows the traffic: the calls that it makes beside a load, at the moments when it makes them.

A browser would take the core of the upstream and the load. So this does what `kit/events.js`, `views/traffic/feed.js`
and `views/interception/kept-edits.js` of the page do, and nothing with what it gets.
"""

import http.client
import re
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.peers import workshop

EVENTS = "/api/events?frames=0&brief=1"
FIRST_PAGE = "/api/exchanges?filter=&limit=500&evals=0"
SOME_LINES = "/api/exchanges?filter=&limit={}&evals=0"
SUMS = ("/api/costs?by=model&filter=&evals=only", "/api/costs?by=model&filter=&evals=0")
MASKS = "/api/masks"
_TOGETHER, _MORE, _AGAIN, _MASKS_SOON = 0.12, 1.0, 1.5, 0.4
_REST = 50
_EXCHANGE = re.compile(rb'"exchange":"([^"]+)"')


class Page(threading.Thread):
    """Reads the live events of a server, and asks for what the page asks for, until its connection is shut down."""

    def __init__(self, port: int, token: str) -> None:
        super().__init__(daemon=True)
        self._token = {"authorization": f"Bearer {token}"}
        self._api = http.client.HTTPConnection("127.0.0.1", port)
        self.events = socket.create_connection(("127.0.0.1", port))
        self._touched: set[bytes] = set()
        self._due: dict[str, float] = {}
        """When to do what next, by the name of the method."""
        self._asking_took = 0.0
        lines = (f"GET {EVENTS} HTTP/1.1", f"Host: 127.0.0.1:{port}", f"Authorization: Bearer {token}", "", "")
        self.events.sendall("\r\n".join(lines).encode())
        if b" 200 " not in self.events.recv(1 << 16):
            raise workshop.MissingError("it shows no live events")

    def run(self) -> None:
        """Go on until the events end."""
        with suppress(OSError, http.client.HTTPException):
            self._get(FIRST_PAGE)
            while True:
                now = time.monotonic()
                for name in [name for name, due in self._due.items() if due <= now]:
                    if self._due.pop(name, None) is not None:
                        getattr(self, name)()
                wait = min(self._due.values(), default=now + 60) - time.monotonic()
                if select.select([self.events], [], [], max(0, wait))[0]:
                    data = self.events.recv(1 << 20)
                    if not data:
                        return
                    self._notice(data)

    def _notice(self, data: bytes) -> None:
        now = time.monotonic()
        exchanges = _EXCHANGE.findall(data)
        if exchanges:
            self._touched.update(exchanges)
            self._due.setdefault("_catch_up", now + _TOGETHER)
        if exchanges or b"event: more" in data:
            self._due["_ask_for_masks"] = now + _MASKS_SOON
        if b"event: more" in data:
            self._due.setdefault("_read_again", now + _MORE)
            self._sum_up_later()

    def _catch_up(self) -> None:
        self._sum_up_later()
        if "_read_again" in self._due:
            return
        count, self._touched = len(self._touched), set()
        self._get(SOME_LINES.format(min(max(2 * count, 20), 500)))

    def _read_again(self) -> None:
        self._touched = set()
        self._get(FIRST_PAGE)

    def _sum_up_later(self) -> None:
        now = time.monotonic()
        self._due.setdefault("_sum_up", now + max(_AGAIN, _REST * self._asking_took))
        self._due["_sum_up_at_rest"] = now + _AGAIN

    def _sum_up_at_rest(self) -> None:
        self._due.pop("_sum_up", None)
        self._sum_up()

    def _sum_up(self) -> None:
        self._due.pop("_sum_up_at_rest", None)
        began = time.monotonic()
        for path in SUMS:
            self._get(path)
        self._asking_took = time.monotonic() - began

    def _ask_for_masks(self) -> None:
        self._get(MASKS)

    def _get(self, path: str) -> None:
        self._api.request("GET", path, headers=self._token)
        answer = self._api.getresponse()
        answer.read()
        if answer.status != 200:
            raise workshop.MissingError(f"{path} has status {answer.status}")


@contextmanager
def open_page(folder: Path, port: int) -> Iterator[None]:
    """The page, open beside a load."""
    page = Page(port, (folder / "data" / "token").read_text().strip())
    page.start()
    yield
    page.events.shutdown(socket.SHUT_RDWR)
    page.join()
    page.events.close()
