"""The gateway in other people's applications: mounted in Starlette, served by uvicorn."""

import asyncio
import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

import sightline
from sightline.errors import Fault
from sightline.testing import ServedProvider, scripted_provider
from tests.http_call import call

QUESTION = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


def gateway_of(provider: ServedProvider, folder: Path) -> sightline.GatewayApp:
    config = folder / "sightline.toml"
    config.write_text(f'[providers.acme]\nbase_url = "{provider.url}/v1"\n[[routes]]\nprovider = "acme"\n')
    return sightline.GatewayApp(config=str(config), data=str(folder / "data"))


@contextmanager
def listening(app: Any) -> Iterator[str]:
    """An application on uvicorn, in a thread of its own; its address."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning", ws="none", timeout_keep_alive=1))
    started = threading.Event()
    server.startup, begin = (lambda sockets=None: _begin(begin, started)), server.startup  # type: ignore[method-assign]
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    assert started.wait(60)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


async def _begin(begin: Any, started: threading.Event) -> None:
    await begin()
    started.set()


def post(url: str, body: dict[str, Any], **headers: str) -> tuple[int, bytes]:
    answer = call("POST", url, body, headers=headers)
    return answer.status, answer.body


def test_a_mounted_gateway_answers_whole_and_streamed_and_records_both(tmp_path: Path) -> None:
    with scripted_provider("Hello", "Bye") as provider:
        gateway = gateway_of(provider, tmp_path)

        @sightline_lifespan(gateway)
        async def lifespan(_app: Starlette) -> Any:
            yield

        async def home(_request: Any) -> PlainTextResponse:
            return PlainTextResponse("mine")

        app = Starlette(lifespan=lifespan, routes=[Route("/", home), Mount("/llm", gateway)])
        with listening(app) as url:
            assert urllib.request.urlopen(f"{url}/", timeout=60).read() == b"mine"
            status, told = post(f"{url}/llm/v1/chat/completions", QUESTION)
            assert (status, json.loads(told)["choices"][0]["message"]["content"]) == (200, "Hello")
            status, told = post(f"{url}/llm/s/demo/v1/chat/completions", {**QUESTION, "stream": True})
            assert (status, b'"Bye"' in told, told.endswith(b"data: [DONE]\n\n")) == (200, True, True)
            assert post(f"{url}/llm/v1/nonsense", QUESTION)[0] == 404
    newest, oldest = sightline.find_exchanges(data=str(tmp_path / "data"))
    assert (newest.session, newest.state, oldest.session) == ("demo", "finished", "")


def sightline_lifespan(gateway: sightline.GatewayApp) -> Any:
    """The lifespan of an application that has a gateway."""
    from contextlib import asynccontextmanager

    def decorate(call: Any) -> Any:
        @asynccontextmanager
        async def lifespan(app: Starlette) -> Any:
            async with gateway:
                async for _ in call(app):
                    yield

        return lifespan

    return decorate


def test_a_server_opens_a_gateway_that_it_runs_alone(tmp_path: Path) -> None:
    with scripted_provider("Hello") as provider, listening(gateway_of(provider, tmp_path)) as url:
        assert post(f"{url}/v1/chat/completions", QUESTION)[0] == 200


def test_pages_and_names_of_others_are_refused(tmp_path: Path) -> None:
    with scripted_provider() as provider, listening(gateway_of(provider, tmp_path)) as url:
        assert post(f"{url}/v1/chat/completions", QUESTION, origin="http://evil.example")[0] == 403
        assert post(f"{url}/v1/chat/completions", QUESTION, host="evil.example")[0] == 403
        assert provider.requests == []


async def test_a_gateway_that_is_not_open_says_so(tmp_path: Path) -> None:
    with scripted_provider() as provider:
        gateway = gateway_of(provider, tmp_path)
    scope = {"type": "http", "method": "GET", "path": "/v1/models", "headers": []}
    with pytest.raises(Fault, match="the gateway is not open") as refused:
        await gateway(scope, None, None)  # type: ignore[arg-type]
    assert "lifespan" in refused.value.hint


async def test_a_client_that_leaves_ends_the_request_to_the_provider(tmp_path: Path) -> None:
    body = json.dumps({**QUESTION, "stream": True}).encode()
    gone, sent = asyncio.Event(), []

    async def receive() -> dict[str, Any]:
        if not sent and not gone.is_set() and not receive.asked:  # type: ignore[attr-defined]
            receive.asked = True  # type: ignore[attr-defined]
            return {"type": "http.request", "body": body, "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    receive.asked = False  # type: ignore[attr-defined]

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)
        gone.set()

    with scripted_provider({"deltas": ["a", "b", "c"] * 20}, delay=30) as provider:
        async with gateway_of(provider, tmp_path) as gateway:
            headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
            scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": headers}
            await gateway(scope, receive, send)
    assert sent[0]["status"] == 200
    assert not any(message.get("more_body") is False for message in sent)
    (exchange,) = await sightline.find_exchanges_async(data=str(tmp_path / "data"))
    assert exchange.state == "cancelled"
