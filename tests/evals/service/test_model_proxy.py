import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from sightline.errors import Code, Fault
from sightline.evals.core.graders.finding import Judged
from sightline.evals.service.grading import MOST_BYTES, TOKEN, URL, ModelProxy, ProxyQuestion
from sightline.model.reply import Usage

KEY = "a token of this command"
Call = Callable[..., Awaitable[tuple[int, Any]]]


async def sent(url: str, data: bytes) -> bytes:
    """All that comes back for these bytes."""
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(data)
        return await reader.read()
    finally:
        writer.close()


@asynccontextmanager
async def talking(most: int = 3) -> AsyncIterator[tuple[ModelProxy, Call, list[ProxyQuestion]]]:
    """A proxy whose model answers with the question in capitals, a way to call it, and what the model was asked."""
    asked: list[ProxyQuestion] = []

    async def ask(question: ProxyQuestion) -> Judged:
        asked.append(question)
        if "trouble" in question.question:
            raise Fault(Code.RATE_LIMITED, "too much", hint="Wait.")
        usage = Usage(input_tokens=3, output_tokens=1) if question.system else None
        return Judged(text=question.question.upper(), usage=usage)

    async with ModelProxy(ask, ("judge", "other"), most, KEY) as proxy:
        assert proxy.environment[TOKEN] == KEY

        async def call(method: str, path: str, body: Any = None, token: str = KEY) -> tuple[int, Any]:
            data = b"" if body is None else json.dumps(body).encode()
            head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
            raw = await sent(proxy.environment[URL], f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
            before, _, after = raw.partition(b"\r\n\r\n")
            return int(before.split()[1]), json.loads(after)

        yield proxy, call, asked


async def test_a_command_asks_and_is_answered_in_the_words_of_agentv() -> None:
    async with talking() as (proxy, call, asked):
        body = {"question": "is it?", "systemPrompt": "Judge.", "evalCaseId": None, "attempt": 1, "target": "other"}
        assert await call("POST", "/invoke", body) == (
            200,
            {
                "output": [{"role": "assistant", "content": "IS IT?"}],
                "rawText": "IS IT?",
                "tokenUsage": {"input": 3, "output": 1},
            },
        )
        assert asked == [ProxyQuestion("is it?", "Judge.", "other")]
        status, told = await call("POST", "/invokeBatch", {"requests": [{"question": "a"}, {"question": "a"}]})
        assert (status, [each["rawText"] for each in told["responses"]]) == (200, ["A", "A"])
        assert "tokenUsage" not in told["responses"][0]
        assert [each.before for each in asked[1:]] == [0, 1]  # the second time, it wants another answer
        assert await call("GET", "/info") == (
            200,
            {"targetName": "judge", "maxCalls": 3, "callCount": 3, "availableTargets": ["judge", "other"]},
        )
        assert [each.text for each in proxy.judged] == ["IS IT?", "A", "A"]


async def test_there_are_no_more_calls_than_the_grader_may_make() -> None:
    async with talking(most=2) as (_proxy, call, asked):
        questions = [{"question": str(number)} for number in range(3)]
        assert (await call("POST", "/invokeBatch", {"requests": questions}))[0] == 429
        assert asked == []
        assert (await call("POST", "/invoke", {"question": "one"}))[0] == 200
        assert (await call("POST", "/invoke", {"question": "two"}))[0] == 200
        assert await call("POST", "/invoke", {"question": "three"}) == (429, {"error": "Max calls exceeded (limit: 2)"})
        assert len(asked) == 2


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/invoke", {}, "Missing required field: question"),
        ("/invoke", [], "Missing required field: question"),
        ("/invoke", {"question": 3}, "Missing required field: question"),
        ("/invoke", {"question": "x", "systemPrompt": 3}, "systemPrompt and target are texts"),
        ("/invoke", {"question": "x", "target": "nobody"}, "Unknown target 'nobody'. Available: judge, other"),
        ("/invokeBatch", {"question": "x"}, "Missing required field: requests (array)"),
        ("/invokeBatch", {"requests": [{"question": "x"}, {}]}, "Missing required field: question"),
    ],
)
async def test_invalid_question_is_rejected_without_a_model_request(path: str, body: Any, words: str) -> None:
    async with talking() as (_proxy, call, asked):
        assert await call("POST", path, body) == (400, {"error": words})
        assert asked == []


async def test_requests_without_the_token_are_rejected() -> None:
    async with talking() as (proxy, call, asked):
        for token in ("", "another", KEY[:-1]):
            assert (await call("POST", "/invoke", {"question": "x"}, token=token))[0] == 401
        assert b" 401 " in await sent(proxy.environment[URL], b"GET /info HTTP/1.1\r\nHost: x\r\n\r\n")
        assert asked == []
        assert (await call("GET", "/invoke"))[0] == 404
        assert (await call("POST", "/else", {}))[0] == 404


async def test_a_failure_is_never_an_answer() -> None:
    async with talking() as (proxy, call, _asked):
        assert await call("POST", "/invoke", {"question": "trouble"}) == (500, {"error": "too much (Wait.)"})
        batch = {"requests": [{"question": "fine"}, {"question": "trouble"}]}
        assert await call("POST", "/invokeBatch", batch) == (500, {"error": "too much (Wait.)"})
        assert [each.text for each in proxy.judged] == ["FINE"]  # it has cost something all the same


async def test_what_is_no_http_or_too_much_of_it_is_refused() -> None:
    async with talking() as (proxy, _call, asked):
        url = proxy.environment[URL]
        assert b" 400 " in await sent(url, b"this is no HTTP\r\n\r\n")
        head = f"POST /invoke HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n".encode()
        assert b" 400 " in await sent(url, head + b"Content-Length: 3\r\n\r\n{a}")
        large = head + b"Content-Length: 99999999\r\n\r\n"
        assert b" 413 " in await sent(url, large + b" " * (MOST_BYTES + 1 - len(large)))
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(head)
        writer.write_eof()
        assert await reader.read() == b""  # gone before it had asked anything
        writer.close()
        assert asked == []


async def test_what_is_still_being_answered_ends_with_the_command() -> None:
    asking, ended = asyncio.Event(), asyncio.Event()

    async def ask(_asked: ProxyQuestion) -> Judged:
        asking.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    async with ModelProxy(ask, ("judge",), 1, KEY) as proxy:
        url = proxy.environment[URL]
        body = b'{"question": "x"}'
        head = f"POST /invoke HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Length: {len(body)}\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(f"{head}\r\n".encode() + body)
        await asking.wait()
    assert ended.is_set()
    assert await reader.read() == b""
    writer.close()
    with pytest.raises(OSError):  # nobody listens any more
        await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
