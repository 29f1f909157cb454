"""One HTTP request on a connection of its own."""

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Answer:
    """An answer as it came; the names of its headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def call(
    method: str, url: str, body: Any = None, *, token: str = "", headers: Mapping[str, str] | None = None
) -> Answer:
    """The answer to a request. A body that is not bytes goes as JSON."""
    sent = {"authorization": f"Bearer {token}"} if token else {}
    if body is not None and not isinstance(body, bytes):
        sent["content-type"] = "application/json"
        body = json.dumps(body).encode()
    at = urlsplit(url)
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=300)
    try:
        connection.request(method, f"{at.path}?{at.query}" if at.query else at.path, body, {**sent, **(headers or {})})
        answer = connection.getresponse()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()
