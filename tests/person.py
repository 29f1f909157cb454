"""A person at the workbench: everything over the API, as the page does it."""

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from tests.gateway_server import Served
from tests.http_call import call


class Person:
    """Sees what is held and decides about it. `facts` is told every fact while `listening`."""

    def __init__(self, server: Served) -> None:
        self._server = server

    def ask(self, method: str, path: str, value: Any = None) -> tuple[int, Any]:
        """One call: status, JSON."""
        answer = call(method, self._server.url + path, value, token=self._server.token)
        return answer.status, answer.json()

    def get(self, path: str) -> Any:
        """What a call answers that must succeed."""
        status, told = self.ask("GET", path)
        assert status == 200, told
        return told

    def put(self, path: str, value: Any) -> Any:
        """The same, with something to put in place."""
        status, told = self.ask("PUT", path, value)
        assert status == 200, told
        return told

    def view(self, exchange: str) -> Any:
        """An exchange as the page opens it."""
        return self.get(f"/api/exchanges/{exchange}?frames=0")

    def edit(self, exchange: str, query: str = "", **operation: Any) -> tuple[int, Any]:
        """One edit."""
        return self.ask("POST", f"/api/exchanges/{exchange}/edits{query}", operation)

    def edited(self, exchange: str, **operation: Any) -> Any:
        """The view after an edit that is taken."""
        status, told = self.edit(exchange, **operation)
        assert status == 200, told
        return told

    def release(self, exchange: str, sha256: str = "") -> tuple[int, Any]:
        """Send what is on screen."""
        wanted = sha256 or self.view(exchange)["body_sha256"]
        return self.ask("POST", f"/api/exchanges/{exchange}/release", {"body_sha256": wanted})

    def act(self, exchange: str, what: str, value: Any = None) -> tuple[int, Any]:
        """Drop it, answer it, or anything else."""
        return self.ask("POST", f"/api/exchanges/{exchange}/{what}", value or {})

    def held(self, count: int = 1) -> list[str]:
        """The ids of so many holds, as soon as they are there."""
        return self.until(lambda: self.get("/api/holds"), lambda found: len(found) >= count)

    def ended(self, exchange: str) -> Any:
        """The view of an exchange that is over."""
        over = ("finished", "failed", "dropped", "cancelled")
        return self.until(lambda: self.view(exchange), lambda view: view["state"] in over)

    def until(self, look: Callable[[], Any], is_so: Callable[[Any], bool]) -> Any:
        """What a look shows once it is so: every fact is a reason to look again."""
        with self.listening() as facts:
            while not is_so(seen := look()):
                facts.get(timeout=60)
            return seen

    @contextmanager
    def listening(self, query: str = "") -> Iterator["SimpleQueue[Any]"]:
        """Every fact from now on, or those that the query asks for."""
        facts: SimpleQueue[Any] = SimpleQueue()
        host, _, port = self._server.url.removeprefix("http://").partition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        connection.request("GET", f"/api/events{query}", headers={"authorization": f"Bearer {self._server.token}"})
        answer = connection.getresponse()
        answer.readline()

        def hear() -> None:
            try:
                while line := answer.readline():
                    if line.startswith(b"data: "):
                        facts.put(json.loads(line[6:]))
            except (OSError, ValueError, AttributeError):
                return  # the test has heard enough

        thread = threading.Thread(target=hear)
        thread.start()
        try:
            yield facts
        finally:
            if connection.sock is not None:
                connection.sock.shutdown(2)
            thread.join(60)
            answer.close()
            connection.close()
