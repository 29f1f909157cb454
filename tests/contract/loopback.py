"""A provider on this machine that says what it is told to, and remembers what it was asked."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Provider:
    """Answers every POST with the same status and bytes; `requests` are the decoded bodies that came."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.answer = b"{}"
        self.status = 200
        self.content_type = "application/json"
        self.url = ""

    def says(self, answer: bytes, *, status: int = 200, content_type: str = "application/json") -> None:
        """What it answers from now on."""
        self.answer, self.status, self.content_type = answer, status, content_type

    def streams(self, answer: bytes) -> None:
        """The server-sent events that it answers from now on."""
        self.says(answer, content_type="text/event-stream")


@contextmanager
def provider() -> Iterator[Provider]:
    """A provider that is listening."""
    told = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(told.status)
            self.send_header("content-type", told.content_type)
            self.send_header("content-length", str(len(told.answer)))
            self.end_headers()
            self.wfile.write(told.answer)

        def log_message(self, *_: object) -> None:
            """Tests are quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
