"""Answers that are no reply, as the vendors' own SDKs see them through the gateway: each of them is an error there."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors, types

from tests.gateway_server import Served, served

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini")


def chunks(*data: bytes) -> bytes:
    return STREAM + b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in data) + b"0\r\n\r\n"


EMPTY = {
    "a stream without a frame": chunks(),
    "a stream of a known length without a byte": STREAM.replace(b"Transfer-Encoding: chunked", b"Content-Length: 0"),
    "comments": chunks(b": one\n\n", b": two\n\n"),
    "white space": chunks(b"\n\n", b"\n"),
    "a bare end": chunks(b"data: [DO", b"NE]\n\n"),
    "an error in a frame without a name": chunks(b'data: {"error": {"message": "no capacity", "code": 503}}\n\n'),
    "a page": JSON.replace(b"application/json", b"text/html") + b"<html>Sign in</html>",
    "an error with status 200": JSON + b'{"error": {"message": "no capacity", "code": 503, "status": "UNAVAILABLE"}}',
    "no byte": JSON.replace(b"Connection: close", b"Content-Length: 0"),
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
}
ODD = {
    "status 600": b"HTTP/1.1 600 Odd\r\nContent-Length: 4\r\n\r\nwhat",
    "status 999": b"HTTP/1.1 999 Denied\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nno",
    "status 99": b"HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n",
    "status 000": b"HTTP/1.1 000 Odd\r\nContent-Length: 0\r\n\r\n",
    "a status that is none": b"HTTP/1.1 2x0 Odd\r\nContent-Length: 0\r\n\r\n",
    "a status of four digits": b"HTTP/1.1 2000 Odd\r\nContent-Length: 0\r\n\r\n",
    "an interim answer alone": b"HTTP/1.1 103 Early Hints\r\n\r\n",
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    "no HTTP at all": b"220 mail.example.com ESMTP\r\n",
    "a header that is none": b"HTTP/1.1 200 OK\r\nx y\x01: 1\r\nContent-Length: 0\r\n\r\n",
    "a control character in a header": JSON.replace(b"Connection", b"x-odd: a\x7fb\x01\r\nConnection") + b"{}",
    "a redirect": b"HTTP/1.1 302 Found\r\nLocation: http://elsewhere.test/\r\nContent-Length: 0\r\n\r\n",
}


class Raw:
    """Says these bytes to whoever asks, and hangs up."""

    answer = b""
    url = ""

    def serve(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                data = b""
                while b"\r\n\r\n" not in data:
                    data += connection.recv(65536)
                head, _, body = data.partition(b"\r\n\r\n")
                size = next(
                    int(line.partition(b":")[2])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length")
                )
                while len(body) < size:
                    body += connection.recv(65536)
                connection.sendall(self.answer)
                connection.shutdown(socket.SHUT_WR)


@contextmanager
def listening() -> Iterator[Raw]:
    raw = Raw()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        raw.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=raw.serve, args=(listener,), daemon=True)
        thread.start()
        try:
            yield raw
        finally:
            listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)


@pytest.fixture(scope="module")
def raw() -> Iterator[Raw]:
    with listening() as raw:
        yield raw


@pytest.fixture(scope="module")
def gateway(raw: Raw, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    tables = [
        f'[providers.to-{name}]\ndialect = "{name}"\nbase_url = "{raw.url}"\n'
        "request_max_retries = 0\nstream_max_retries = 0\n"
        for name in DIALECTS
    ]
    folder: Path = tmp_path_factory.mktemp("gateway")
    with served(folder, "\n".join(tables)) as running:
        yield running


def chat(gateway: Served, *, stream: bool) -> Any:
    client = openai.OpenAI(base_url=f"{gateway.url}/p/to-openai-chat/v1", api_key="sk-own-key-1", max_retries=0)
    with client:
        reply: Any = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}], stream=stream
        )
        return list(reply) if stream else reply


def responses(gateway: Served, *, stream: bool) -> Any:
    client = openai.OpenAI(base_url=f"{gateway.url}/p/to-openai-responses/v1", api_key="sk-own-key-1", max_retries=0)
    with client:
        reply: Any = client.responses.create(model="m", input="hi", stream=stream)
        if not stream:
            return reply
        seen = list(reply)
        # This SDK raises for `error` only; a failed response is an event that its reader looks at.
        if seen and seen[-1].type == "response.failed":
            raise openai.APIError(seen[-1].response.error.message, None, body=None)
        return seen


def messages(gateway: Served, *, stream: bool) -> Any:
    client = anthropic.Anthropic(base_url=f"{gateway.url}/p/to-anthropic", api_key="sk-ant-own-1", max_retries=0)
    with client:
        reply: Any = client.messages.create(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}], stream=stream
        )
        return list(reply) if stream else reply


def gemini(gateway: Served, *, stream: bool) -> Any:
    options = types.HttpOptions(base_url=f"{gateway.url}/p/to-gemini", retry_options=types.HttpRetryOptions(attempts=1))
    # Left to the garbage collector, the client may be found after its socket, which then counts as unclosed.
    with genai.Client(api_key="own-google-key", vertexai=False, http_options=options) as client:
        if stream:
            return list(client.models.generate_content_stream(model="m", contents="hi"))
        return client.models.generate_content(model="m", contents="hi")


ASKS: dict[str, tuple[Callable[..., Any], type[Exception] | tuple[type[Exception], ...]]] = {
    "openai-chat": (chat, openai.APIError),
    "openai-responses": (responses, openai.APIError),
    "anthropic": (messages, anthropic.APIError),
    # Google's reader takes a comment for an error of its own kind.
    "gemini": (gemini, (errors.APIError, errors.UnknownApiResponseError)),
}
PASSED_WHOLE = ("a page", "an error with status 200")
"""To a client of the same dialect that wants no stream these go as they came."""


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("what", "spoken"),
    # What is no answer in HTTP is refused before any dialect looks at it.
    [*product(EMPTY, DIALECTS), *((what, DIALECTS[place % 4]) for place, what in enumerate(ODD))],
)
def test_an_answer_that_is_no_reply_is_an_error(
    gateway: Served, raw: Raw, spoken: str, stream: bool, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    raw.answer = (EMPTY | ODD)[what]
    ask, error = ASKS[spoken]
    if not stream and what in PASSED_WHOLE:
        with suppress(Exception):  # what an SDK makes of the provider's own bytes is its affair
            ask(gateway, stream=stream)
    else:
        with pytest.raises(error) as raised:
            ask(gateway, stream=stream)
        assert "Internal Server Error" not in str(raised.value)
    latest = gateway.api("/api/exchanges?limit=1")["exchanges"][0]
    assert latest["state"] == "failed"
    assert "Traceback" not in caplog.text
