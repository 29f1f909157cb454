"""A way for a grading command to ask a model without a key: an address on loopback that lives as long as the command.

It speaks what graders written for AgentV speak: `GET /info`, `POST /invoke` and `POST /invokeBatch`, with the token of
this one command. Other than there, a batch of which one question fails is refused as a whole: words about a failure in
the place of an answer would be graded as one.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Self, TypeAlias

from httptools import HttpParserError, HttpRequestParser

from sightline.errors import Code, Fault
from sightline.evals.core.graders.steps import Judged
from sightline.model.json import Json, JsonObject
from sightline.wire.jsontext import decode, encode

URL = "AGENTV_TARGET_PROXY_URL"
TOKEN = "AGENTV_TARGET_PROXY_TOKEN"
MOST_BYTES = 16 << 20
_HOST = "127.0.0.1"
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 413: "Content Too Large"}
_REASONS |= {429: "Too Many Requests", 500: "Internal Server Error"}


@dataclass(frozen=True, slots=True)
class ProxyQuestion:
    """One question of a command. An empty `target` is the one that judges; `before` is how often it asked just this."""

    question: str
    system: str = ""
    target: str = ""
    before: int = 0


Ask: TypeAlias = Callable[[ProxyQuestion], Awaitable[Judged]]
_Told: TypeAlias = tuple[int, JsonObject]


class ModelProxy:
    """Answers as long as it is entered. `names` are the targets that may be asked, the first where none is named;
    `most` is how many questions there may be, and `judged` what came of them."""

    def __init__(self, ask: Ask, names: tuple[str, ...], most: int, token: str) -> None:
        self._ask = ask
        self._names = names
        self._most = most
        self._token = token
        self._count = 0
        self._asked: dict[tuple[str, str, str], int] = {}
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._url = ""
        self.judged: list[Judged] = []

    @property
    def environment(self) -> dict[str, str]:
        """What the command finds it by."""
        return {URL: self._url, TOKEN: self._token}

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, _HOST, 0)
        self._url = f"http://{_HOST}:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        # Nobody is there any more who could read an answer.
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            request = await _read(reader)
            status, value = request if isinstance(request, tuple) else await self._answer(request)
            writer.write(_response_bytes(status, value))
            await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass  # whoever asked has gone, or is to go
        finally:
            self._serving.discard(task)
            writer.close()

    async def _answer(self, request: "_Request") -> _Told:
        if not hmac.compare_digest(request.token, f"Bearer {self._token}".encode()):
            return _wrong(401, "Unauthorized")
        match request.method, request.path:
            case b"GET", b"/info":
                return 200, self._about()
            case b"POST", b"/invoke":
                return await self._invoke(request.body, is_batch=False)
            case b"POST", b"/invokeBatch":
                return await self._invoke(request.body, is_batch=True)
            case _:
                return _wrong(404, "Not found")

    def _about(self) -> JsonObject:
        return {
            "targetName": self._names[0],
            "maxCalls": self._most,
            "callCount": self._count,
            "availableTargets": list(self._names),
        }

    async def _invoke(self, body: bytes, *, is_batch: bool) -> _Told:
        try:
            value = decode(body)
            listed = _batch(value) if is_batch else [value]
            questions = [self._question(each) for each in listed]
        except Fault as fault:
            return _wrong(400, fault.message)
        if self._count + len(questions) > self._most:
            return _wrong(429, f"Max calls exceeded (limit: {self._most})")
        self._count += len(questions)
        try:
            answers: list[Json] = [await self._ask_model(each) for each in questions]
        except Fault as fault:
            return _wrong(500, f"{fault.message} ({fault.hint})" if fault.hint else fault.message)
        return 200, {"responses": answers} if is_batch else _first(answers)

    def _question(self, value: Json) -> ProxyQuestion:
        asked = value if isinstance(value, dict) else {}
        question, system, target = (asked.get(name) or "" for name in ("question", "systemPrompt", "target"))
        if not isinstance(question, str) or not question:
            raise _refusal("Missing required field: question")
        if not isinstance(system, str) or not isinstance(target, str):
            raise _refusal("systemPrompt and target are texts")
        if target and target not in self._names:
            raise _refusal(f"Unknown target '{target}'. Available: {', '.join(self._names)}")
        key = question, system, target
        self._asked[key] = self._asked.get(key, -1) + 1
        return ProxyQuestion(question, system, target, self._asked[key])

    async def _ask_model(self, asked: ProxyQuestion) -> JsonObject:
        judged = await self._ask(asked)
        self.judged.append(judged)
        told: JsonObject = {"output": [{"role": "assistant", "content": judged.text}], "rawText": judged.text}
        usage = judged.usage
        if usage is not None and usage.input_tokens is not None and usage.output_tokens is not None:
            told["tokenUsage"] = {"input": usage.input_tokens, "output": usage.output_tokens}
        return told


class _Request:
    """A request as llhttp reads it."""

    def __init__(self) -> None:
        self.method = b""
        self.path = b""
        self.token = b""
        self.body = b""
        self.is_complete = False

    def on_url(self, url: bytes) -> None:
        self.path += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"authorization":
            self.token = value

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.is_complete = True


async def _read(reader: asyncio.StreamReader) -> "_Request | _Told":
    """The one request of a connection, or what is wrong with it."""
    request, size = _Request(), 0
    parser = HttpRequestParser(request)
    while not request.is_complete:
        data = await reader.read(1 << 16)
        size += len(data)
        if not data:
            raise ConnectionResetError
        if size > MOST_BYTES:
            return _wrong(413, f"more than {MOST_BYTES >> 20} MB")
        try:
            parser.feed_data(data)
        except HttpParserError as error:
            return _wrong(400, f"no HTTP: {error}")
    request.method = parser.get_method()
    return request


def _batch(value: Json) -> list[Json]:
    requests = value.get("requests") if isinstance(value, dict) else None
    if not isinstance(requests, list):
        raise _refusal("Missing required field: requests (array)")
    return requests


def _first(answers: list[Json]) -> JsonObject:
    answer = answers[0]
    assert isinstance(answer, dict)
    return answer


def _refusal(words: str) -> Fault:
    return Fault(Code.INVALID_REQUEST, words)


def _wrong(status: int, words: str) -> _Told:
    return status, {"error": words}


def _response_bytes(status: int, value: JsonObject) -> bytes:
    body = encode(value)
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
