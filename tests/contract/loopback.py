"""Providers on this machine that speak a dialect of ours."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Protocol

from sightline.dialects.dialect import Client, Dialect
from sightline.errors import Fault
from sightline.model.events import StreamEvent
from sightline.model.fold import fold
from sightline.model.report import Report
from sightline.wire.jsontext import encode
from tests.background import handling
from tests.gateway_server import Served, served


class Answering(Protocol):
    """Whoever answers requests; `url` is where it listens."""

    url: str

    def answer_to(self, path: str, body: Any) -> tuple[int, str, bytes]:
        """The status, content type and bytes of the answer."""


class Upstream:
    """Answers every POST with the events it was given, streamed or whole as it was asked, or with a fault."""

    def __init__(self, dialect: Dialect, client: Client) -> None:
        self._dialect = dialect
        self._client = client
        self.events: list[StreamEvent] = []
        self.fault: Fault | None = None
        self.bodies: list[Any] = []
        self.url = ""

    def answer_to(self, path: str, body: Any) -> tuple[int, str, bytes]:
        """What the dialect makes of the events."""
        self.bodies.append(body)
        if self.fault is not None:
            status, error = self._dialect.write_error(self.fault)
            return status, "application/json", encode(error)
        if body.get("stream") or ":stream" in path:
            writer = self._dialect.stream_writer(self._client, Report())
            return 200, "text/event-stream", b"".join(writer.feed(event) for event in self.events)
        return 200, "application/json", encode(self._dialect.write_reply(fold(self.events), self._client, Report()))


@contextmanager
def speaking(dialect: Dialect, client: Client) -> Iterator[Upstream]:
    """An upstream of this dialect that is listening."""
    upstream = Upstream(dialect, client)
    with _listening(upstream):
        yield upstream


@contextmanager
def gateway_to(upstreams: Mapping[str, Answering], folder: Path) -> Iterator[Served]:
    """A gateway with a provider `to-NAME` of each of these, by the name of its dialect, that is asked once; they listen
    as long."""
    with ExitStack() as stack:
        for upstream in upstreams.values():
            stack.enter_context(_listening(upstream))
        tables = [
            f'[providers.to-{name}]\ndialect = "{name}"\nbase_url = "{each.url}{"/v1" if "openai" in name else ""}"\n'
            "request_max_retries = 0\nstream_max_retries = 0\n"
            for name, each in upstreams.items()
        ]
        yield stack.enter_context(served(folder, "\n".join(tables)))


@contextmanager
def _listening(answering: Answering) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, content_type, data = answering.answer_to(self.path, body)
            self.send_response(status)
            self.send_header("content-type", content_type)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    with handling(Handler) as answering.url:
        yield
