"""A provider with a WebSocket on loopback, which does what a script says; and clients of ours for its frames.

`with socket_upstream(play) as upstream:` listens in a thread. `play` gets each connection (`websockets.sync`) in a
thread of its own. What came is in `upstream.handshakes` and `upstream.frames`.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

Play = Callable[[ServerConnection, "SocketUpstream"], None]


@dataclass
class SocketUpstream:
    """What came. `refusal` is what a handshake gets in place of a socket."""

    port: int = 0
    handshakes: list[Request] = field(default_factory=list)
    frames: list[str | bytes] = field(default_factory=list)
    closes: list[tuple[int, str]] = field(default_factory=list)
    closed: threading.Event = field(default_factory=threading.Event)
    refusal: Callable[[ServerConnection], Response] | None = None

    @property
    def url(self) -> str:
        """The base URL of its API."""
        return f"http://127.0.0.1:{self.port}/v1"

    def take(self, connection: ServerConnection) -> Any:
        """The next frame, as JSON where it is that."""
        frame = connection.recv(timeout=30)
        self.frames.append(frame)
        return json.loads(frame)


@contextmanager
def socket_upstream(play: Play, **options: Any) -> Iterator[SocketUpstream]:
    """A provider that plays this with each connection."""
    upstream = SocketUpstream()

    def look(connection: ServerConnection, request: Request) -> Response | None:
        upstream.handshakes.append(request)
        return None if upstream.refusal is None else upstream.refusal(connection)

    def handle(connection: ServerConnection) -> None:
        try:
            play(connection, upstream)
        except ConnectionClosed:
            pass
        finally:
            connection.close()
            upstream.closes.append((connection.close_code or 0, connection.close_reason or ""))
            upstream.closed.set()

    with serve(handle, "127.0.0.1", 0, process_request=look, max_size=None, **options) as server:
        upstream.port = server.socket.getsockname()[1]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield upstream
        finally:
            server.shutdown()
            thread.join(30)


def events(name: str, text: str, **more: Any) -> list[str]:
    """The events of a response that says this text, as the frames of a provider."""
    item = {"type": "message", "id": f"msg_{name}", "role": "assistant", "status": "completed"}
    part = {"type": "output_text", "text": text, "annotations": []}
    response = {"id": name, "object": "response", "created_at": 1, "model": "gpt-5", "status": "in_progress"}
    where = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    done = {**item, "content": [part]}
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    told: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.content_part.added", **where, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **where, "delta": word} for word in text.split(" ")),
        {"type": "response.output_text.done", **where, "text": text},
        {"type": "response.content_part.done", **where, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {
            "type": "response.completed",
            "response": {**response, "status": "completed", "output": [done], "usage": usage},
        },
    ]
    # Spaces as a provider has them: what is passed on must be these bytes, and not others that mean the same.
    return [
        json.dumps({"sequence_number": number, **each, **more}, separators=(", ", ":"))
        for number, each in enumerate(told)
    ]


def script(*steps: str | None) -> Play:
    """Plays these steps: a frame is sent, and None takes one of the client's."""

    def play(connection: ServerConnection, upstream: SocketUpstream) -> None:
        for step in steps:
            if step is None:
                upstream.take(connection)
            else:
                connection.send(step)

    return play


def answer_all(connection: ServerConnection, upstream: SocketUpstream) -> None:
    """Answer each request with its last word."""
    number = 0
    while True:
        asked = upstream.take(connection)
        if asked["type"] == "response.create":
            number += 1
            lane = {"stream_id": asked["stream_id"]} if "stream_id" in asked else {}
            for frame in events(f"resp_{number}", f"answer number {number}", **lane):
                connection.send(frame)
