"""Exchanges that no task serves: they are recorded and answered as those of `run_exchange` are."""

import asyncio
import gzip
import json
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sightline.catalog.provider import Route
from sightline.exchange import direct
from sightline.exchange import hub as hubs
from sightline.model.exchange import AttemptStarted, ExchangeCancelled, ExchangeFailed, ExchangeFinished, Fact, Received
from sightline.store.digest import read_reply
from sightline.store.whole import join_entries
from tests.exchange.direct_stage import JSON, REPLIES, DirectStage, at_once, open_direct_stage, reply_of
from tests.relay_stage import DIALECTS, KEY
from tests.upstream import LAST, Play, Talk, chunk, cut, head, pieces

CHAT = "openai-chat"
CLIENT_KEY = "sk-of-the-client-99"


def said(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    return reply_of(CHAT, choices=[{"index": 0, "message": message, "finish_reason": "stop"}])


CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
CALLS = [{"index": 0, "message": {"role": "assistant", "tool_calls": [CALL]}, "finish_reason": "tool_calls"}]
ERROR = {"error": {"message": "no", "type": "server_error", "code": None}}

ANSWERS: dict[str, Callable[[], Play]] = {
    "usual": lambda: at_once(said("hello")),
    "with the headers of a real provider": lambda: at_once(
        said("hello"),
        [
            ("Date", "Tue, 17 Nov 2026 10:00:00 GMT"),
            *JSON,
            ("x-request-id", "req_1"),
            ("openai-version", "1"),
            ("x-ratelimit-remaining-requests", "9"),
            ("x-ratelimit-limit-requests", "10"),
            ("Set-Cookie", "a=b; path=/"),
        ],
    ),
    "with an address in a header": lambda: at_once(said("hello"), [*JSON, ("x-who", "me@example.org")]),
    "with a header of ours": lambda: at_once(said("hello"), [*JSON, ("x-sightline-exchange", "x_9")]),
    "with calls of tools": lambda: at_once(reply_of(CHAT, choices=CALLS)),
    "without usage": lambda: at_once(reply_of(CHAT, usage=None)),
    "with impossible usage": lambda: at_once(reply_of(CHAT, usage={"prompt_tokens": 0, "completion_tokens": 3})),
    "with an error in place of a reply": lambda: at_once(json.dumps(ERROR).encode()),
    "of two choices": lambda: at_once(reply_of(CHAT, choices=[*CALLS, {**CALLS[0], "index": 1}])),
    "that is no JSON": lambda: at_once(b"<html>hello</html>", [("Content-Type", "text/html")]),
    "that is JSON of another kind": lambda: at_once(b"[1, 2]"),
    "without a body": lambda: at_once(b""),
    "of white space": lambda: at_once(b"  \n "),
    "with the key of the client": lambda: at_once(said(f"you are {CLIENT_KEY}")),
    "with a configured key": lambda: at_once(said(f"we are {KEY}")),
    "with an escaped key": lambda: at_once(said("we are X").replace(b"X", KEY.replace("s", "\\u0073", 1).encode())),
    "with a key in a header": lambda: at_once(said("hello"), [*JSON, ("x-echo", CLIENT_KEY)]),
    "with a configured key in a header": lambda: at_once(said("hello"), [*JSON, ("x-echo", KEY)]),
    "in gzip": lambda: at_once(gzip.compress(said("hello"), mtime=0), [*JSON, ("Content-Encoding", "gzip")]),
    "in chunks": lambda: pieces(head(200, JSON) + chunk(said("hello")) + LAST),
    "in two pieces": lambda: pieces(
        head(200, JSON, framing=str(len(said("hello")))), lambda: asyncio.sleep(0.01), said("hello")
    ),
    "over a connection that is kept": lambda: at_once(said("hello"), [*JSON, ("Connection", "keep-alive")]),
    "with half a character": lambda: at_once(reply_of(CHAT, model="HALF").replace(b"HALF", b"\\ud800")),
    "that ends its connection": lambda: pieces(head(200, JSON, framing="close") + said("hello"), then="eof"),
    "cut off": lambda: cut(head(200, JSON, framing="5000") + said("hello"), how="eof"),
    "that never comes": lambda: cut(how="eof"),
    "of another length": lambda: pieces(head(200, JSON, framing="2") + said("hello"), then="eof"),
    "with status 201": lambda: at_once(said("hello"), status=201),
    "with status 204": lambda: pieces(head(204, JSON, framing="0")),
    "with status 302": lambda: at_once(b"", [("Location", "http://elsewhere.test/")], 302),
    "with status 400": lambda: at_once(json.dumps(ERROR).encode(), status=400),
    "with status 401": lambda: at_once(json.dumps(ERROR).encode(), status=401),
    "with status 407": lambda: at_once(json.dumps(ERROR).encode(), status=407),
    "with status 500": lambda: at_once(json.dumps(ERROR).encode(), status=500),
    "that is no HTTP": lambda: cut(b"SSH-2.0-OpenSSH_9.6\r\n", how="eof"),
    "of events that no one asked for": lambda: at_once(b"data: [DONE]\n\n", [("Content-Type", "text/event-stream")]),
}


TAKEN = {
    "usual", "with the headers of a real provider", "with an address in a header", "with a header of ours",
    "with calls of tools", "without usage", "with impossible usage", "of two choices", "in gzip", "in chunks",
    "over a connection that is kept",
}  # fmt: skip


def frame(**more: Any) -> bytes:
    return (
        b"data: "
        + json.dumps({"id": "c_1", "object": "chat.completion.chunk", "model": "m-1", **more}).encode()
        + b"\n\n"
    )


def delta(text: str, finish: str | None = None) -> bytes:
    return frame(choices=[{"index": 0, "delta": {"content": text}, "finish_reason": finish}])


COUNTED = frame(choices=[], usage={"prompt_tokens": 8, "completion_tokens": 2, "total_tokens": 10})
DONE = b"data: [DONE]\n\n"
EVENTS = [("Content-Type", "text/event-stream")]


def stream_at_once(*frames: bytes) -> Play:
    return pieces(head(200, EVENTS) + b"".join(map(chunk, frames)) + LAST)


STREAMS: dict[str, Callable[[], Play]] = {
    "at once": lambda: stream_at_once(delta("hel"), delta("lo"), delta("", "stop"), COUNTED, DONE),
    "at once, not counted": lambda: stream_at_once(delta("hel"), delta("lo", "stop"), DONE),
    "at once, without its end": lambda: stream_at_once(delta("hel"), delta("lo", "stop")),
    "at once, with a call": lambda: stream_at_once(
        frame(choices=[{"index": 0, "delta": {"tool_calls": [{"index": 0, **CALL}]}, "finish_reason": None}]),
        delta("", "tool_calls"),
        DONE,
    ),
    "at once, with an error": lambda: stream_at_once(delta("hel"), frame(**ERROR)),
    "at once, with a key in two frames": lambda: stream_at_once(delta(KEY[:9]), delta(KEY[9:], "stop"), DONE),
    "at once, with the client's key in two frames": lambda: stream_at_once(
        delta(CLIENT_KEY[:9]), delta(CLIENT_KEY[9:], "stop"), DONE
    ),
    "at once, with a key": lambda: stream_at_once(delta(f"we are {KEY}", "stop"), DONE),
    "empty": lambda: stream_at_once(DONE),
    "of no events": lambda: at_once(said("hello")),
    "that is refused": lambda: at_once(json.dumps(ERROR).encode(), status=429),
    "cut off": lambda: cut(head(200, EVENTS) + chunk(delta("hel")), how="eof"),
    "with a length": lambda: at_once(delta("hello", "stop") + DONE, EVENTS),
}


TAKEN_STREAMS = {"at once", "at once, not counted", "with a length"}


async def outcome(
    folder: Path, spoken: str, step: Play, *, is_direct: bool, **more: Any
) -> tuple[bytes, list[str], Any, int, int]:
    """What the client got, what was recorded, what the ledger says, and how many exchanges were begun and ended
    directly. The provider takes a quarter of a second."""
    async with open_direct_stage(
        folder, spoken, is_direct=is_direct, routes=(Route(provider="acme", retries=0),)
    ) as opened:
        await opened.warm_up()
        before, taken = len(opened.direct), len(opened.taken)

        async def late(talk: Talk) -> None:
            opened.stage.clock.time += 0.25
            await step(talk)

        for _ in range(3):  # of a shape that is seen the third time, the head is not parsed
            opened.stage.upstream.script = [late]
            response = await opened.ask(**more)
            if b"connection: close" in response or b"<cut>" in response:
                opened.writer.close()
                await opened.connect()
        usage = opened.stage.memory.ledger.usage("acme", "m", opened.stage.clock.now())
        port = f":{opened.stage.upstream.port}"  # with the colon: a hash may have the same digits
        recorded = [str(fact).replace(port, "PORT") for fact in opened.facts()]
        response = response.replace(port.encode(), b"PORT")
        return response, recorded, usage, len(opened.direct) - before, len(opened.taken) - taken


async def compare(folder: Path, step: Play, spoken: str = CHAT, *, is_taken: bool, **more: Any) -> int:
    """Play a step with and without a task, expect the same outcome, and return how many exchanges ended directly."""
    usual = await outcome(folder / "usual", spoken, step, is_direct=False, **more)
    direct = await outcome(folder / "direct", spoken, step, is_direct=True, **more)
    assert direct[:3] == usual[:3]
    assert (usual[3], direct[3] > 0, direct[4] > 0) == (0, True, is_taken)
    return direct[4]


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_has_the_same_outcome_with_and_without_a_task(tmp_path: Path, kind: str) -> None:
    asyncio.run(compare(tmp_path, ANSWERS[kind](), is_taken=kind in TAKEN))


@pytest.mark.parametrize("kind", STREAMS)
def test_a_stream_has_the_same_outcome_with_and_without_a_task(tmp_path: Path, kind: str) -> None:
    asyncio.run(compare(tmp_path, STREAMS[kind](), is_taken=kind in TAKEN_STREAMS, stream=True))


async def test_a_stream_is_recorded_with_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[str] = []

    def join(count: int, *encoded: bytes, words: str = "") -> bytes:
        recorded.append(words)
        return join_entries(count, *encoded, words=words)

    monkeypatch.setattr(direct, "join_entries", join)
    async with warmed_up(tmp_path) as opened:
        whole = recorded[-1]
        opened.stage.upstream.script = [STREAMS["at once"]()]
        for _ in range(3):
            await opened.ask(stream=True)
        assert (whole, recorded[-1]) == ("", "hello")
        raw = b"".join((delta("hel"), delta("lo"), delta("", "stop"), COUNTED, DONE))
        assert read_reply(CHAT, raw) == ("hello", "")


@pytest.mark.parametrize("spoken", DIALECTS)
def test_every_dialect_has_direct_exchanges_with_the_same_outcome(tmp_path: Path, spoken: str) -> None:
    assert asyncio.run(compare(tmp_path, at_once(reply_of(spoken)), spoken, is_taken=True)) == 3


@asynccontextmanager
async def warmed_up(folder: Path, **settings: Any) -> AsyncIterator[DirectStage]:
    async with open_direct_stage(folder, **settings) as opened:
        await opened.warm_up()
        yield opened


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - the record has no event to wait for
            await asyncio.sleep(0.001)


def kinds(facts: list[Fact]) -> list[type]:
    return [type(fact) for fact in facts]


async def test_the_bytes_that_leave_are_those_of_a_usual_exchange(tmp_path: Path) -> None:
    async with warmed_up(tmp_path) as opened:
        seen = opened.stage.upstream.seen
        usual, direct = seen[0], seen[-1]
        assert opened.direct
        assert [name for name, _ in usual.headers] == [name for name, _ in direct.headers]
        assert direct.json()["user"] == "number 00004"


async def test_a_failed_attempt_is_made_again_within_the_budget_of_its_route(tmp_path: Path) -> None:
    async with warmed_up(tmp_path, routes=(Route(provider="acme", retries=2),)) as opened:
        opened.stage.upstream.script = [at_once(json.dumps(ERROR).encode(), status=500), at_once(said("at last"))]
        opened.stage.upstream._played = 0
        assert b"at last" in await opened.ask()
        assert kinds(opened.facts()) == [Received, AttemptStarted, AttemptStarted, ExchangeFinished]


async def test_a_client_that_leaves_ends_the_exchange_and_its_connection(tmp_path: Path) -> None:
    async with warmed_up(tmp_path) as opened:
        upstream = opened.stage.upstream
        upstream.script = [pieces(then="stall")]
        count = len(upstream.seen)
        opened.writer.write(opened.request())
        await until(lambda: len(upstream.seen) > count)
        opened.writer.close()
        await until(lambda: isinstance(opened.facts()[-1], ExchangeCancelled))
        assert kinds(opened.facts()) == [Received, AttemptStarted, ExchangeCancelled]
        await upstream.connections[-1].gone.wait()
        assert not opened.stage.relay._active


async def test_a_shutdown_tells_the_client(tmp_path: Path) -> None:
    async with warmed_up(tmp_path) as opened:
        upstream = opened.stage.upstream
        upstream.script = [pieces(then="stall")]
        count = len(upstream.seen)
        opened.writer.write(opened.request())
        await until(lambda: len(upstream.seen) > count)
        opened.listening.end()
        response = await opened.read_response()
        assert response.startswith(b"HTTP/1.1 503 ")
        assert b"shutting down" in response
        assert kinds(opened.facts()) == [Received, AttemptStarted, ExchangeFailed]


async def test_what_takes_longer_is_on_record_before_its_answer(tmp_path: Path) -> None:
    async with warmed_up(tmp_path) as opened:
        upstream, answered = opened.stage.upstream, asyncio.Event()
        upstream.script = [pieces(answered, head(200, JSON, framing=str(len(said("late")))) + said("late"))]
        commits = len(opened.stage.commits)
        opened.writer.write(opened.request())
        await until(lambda: len(opened.stage.commits) > commits)
        assert kinds(opened.facts()) == [Received, AttemptStarted]
        answered.set()
        assert b"late" in await opened.read_response()
        assert kinds(opened.facts()) == [Received, AttemptStarted, ExchangeFinished]
        assert len(opened.stage.commits) == commits + 2


async def test_a_fault_that_comes_late_follows_what_is_on_record(tmp_path: Path) -> None:
    async with warmed_up(tmp_path, routes=(Route(provider="acme", retries=0),)) as opened:
        upstream, answered = opened.stage.upstream, asyncio.Event()
        body = json.dumps(ERROR).encode()
        upstream.script = [pieces(answered, head(500, JSON, framing=str(len(body))) + body)]
        commits = len(opened.stage.commits)
        opened.writer.write(opened.request())
        await until(lambda: len(opened.stage.commits) > commits)
        answered.set()
        assert (await opened.read_response()).startswith(b"HTTP/1.1 500 ")
        assert kinds(opened.facts()) == [Received, AttemptStarted, ExchangeFailed]


async def test_the_record_that_fails_is_written_later_and_the_client_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hubs, "TRY_AGAIN", 0.01)
    async with warmed_up(tmp_path) as opened:

        def full(_entries: object) -> None:
            raise OSError(28, "No space left on device")

        hub = opened.stage.hub
        hub._record = full
        response = await opened.ask()
        assert b"hello" in response
        assert b"x-sightline-exchange" not in response
        hub._record = opened.stage.record
        await until(lambda: isinstance(opened.facts()[-1], ExchangeFinished))
        assert kinds(opened.facts()) == [Received, AttemptStarted, ExchangeFinished]


async def test_requests_that_come_ahead_are_answered_in_their_order(tmp_path: Path) -> None:
    async with warmed_up(tmp_path) as opened:
        first, second, third = opened.request(), opened.request(), opened.request()
        opened.writer.write(first)
        await asyncio.sleep(0)
        opened.writer.write(second + third)
        for _ in range(3):
            assert (await opened.read_response()).startswith(b"HTTP/1.1 200 ")
        users = [each.json()["user"] for each in opened.stage.upstream.seen[-3:]]
        assert users == sorted(users)


async def test_who_watches_sees_the_facts_of_a_direct_exchange(tmp_path: Path) -> None:
    async with warmed_up(tmp_path) as opened:
        count = len(opened.direct)
        with opened.stage.hub.watch() as watch:
            await opened.ask()
            shown = watch.take_waiting()
        assert len(opened.direct) == count + 1
        assert [getattr(each, "n", None) for each in shown] == [0, 1, 2, 3]


@pytest.mark.parametrize("more", [{"model": 3}, {"model": ""}, {"deep": json.loads("[" * 40 + "]" * 40)}])
async def test_what_is_not_usual_about_a_request_is_for_a_task(tmp_path: Path, more: dict[str, Any]) -> None:
    async with warmed_up(tmp_path) as opened:
        count = len(opened.direct)
        opened.writer.write(opened.request(**more))
        assert (await opened.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 ")
        assert len(opened.direct) == count + ("deep" in more)


async def test_a_connection_that_the_provider_closed_is_not_taken(tmp_path: Path) -> None:
    async with warmed_up(tmp_path) as opened:
        for talk in opened.stage.upstream.connections:
            talk.end("eof")
        await asyncio.sleep(0.01)
        assert b"hello" in await opened.ask()
        assert kinds(opened.facts()) == [Received, AttemptStarted, ExchangeFinished]


async def send_and_wait(opened: DirectStage, **more: Any) -> None:
    """Send a request, and wait until the provider has it."""
    count = len(opened.stage.upstream.seen)
    opened.writer.write(opened.request(**more))
    await until(lambda: len(opened.stage.upstream.seen) > count)


@pytest.mark.parametrize("is_direct", [False, True])
async def test_a_client_that_leaves_as_an_error_comes_leaves_nothing_behind(tmp_path: Path, is_direct: bool) -> None:
    async with warmed_up(tmp_path, is_direct=is_direct) as opened:
        upstream, relay, body = opened.stage.upstream, opened.stage.relay, json.dumps(ERROR).encode()
        upstream.script = [pieces(then="stall")]
        await send_and_wait(opened)
        with socket.socket(fileno=os.dup(opened.writer.get_extra_info("socket").fileno())) as client:
            client.shutdown(socket.SHUT_WR)  # both are read in the same turn of the loop
            upstream.connections[-1].transport.write(head(400, JSON, framing=str(len(body))) + body)
            await until(lambda: not relay._active)
            await until(lambda: isinstance(opened.facts()[-1], ExchangeCancelled | ExchangeFailed))
        assert not opened.stage.hub._unwritten


@pytest.mark.parametrize("is_direct", [False, True])
async def test_a_stream_that_begins_during_a_shutdown_may_finish(tmp_path: Path, is_direct: bool) -> None:
    async with warmed_up(tmp_path, is_direct=is_direct) as opened:
        begin, end = asyncio.Event(), asyncio.Event()
        last = chunk(delta("lo", "stop")) + chunk(DONE) + LAST
        opened.stage.upstream.script = [pieces(begin, head(200, EVENTS) + chunk(delta("hel")), end, last)]
        await send_and_wait(opened, stream=True)
        closing = asyncio.create_task(opened.stage.relay.close(5))
        await asyncio.sleep(0)
        begin.set()
        assert (await opened.reader.readuntil(b"hel")).startswith(b"HTTP/1.1 200 ")
        assert not closing.done()
        end.set()
        await opened.reader.readuntil(b"[DONE]")
        await closing
        assert isinstance(opened.facts()[-1], ExchangeFinished)


@pytest.mark.parametrize("is_direct", [False, True])
async def test_a_response_during_a_shutdown_says_that_the_connection_ends(tmp_path: Path, is_direct: bool) -> None:
    async with warmed_up(tmp_path, is_direct=is_direct) as opened:
        answered, body = asyncio.Event(), said("late")
        opened.stage.upstream.script = [pieces(answered, head(200, JSON, framing=str(len(body))) + body)]
        await send_and_wait(opened)
        for connection in opened.listening.connections:
            connection.shut_down()
        answered.set()
        assert b"\r\nconnection: close\r\n\r\n" in await opened.read_response()
        assert await opened.reader.read() == b""


@pytest.mark.parametrize("is_direct", [False, True])
async def test_the_ledger_counts_a_request_whose_client_has_left(tmp_path: Path, is_direct: bool) -> None:
    async with warmed_up(tmp_path, is_direct=is_direct) as opened:
        stage = opened.stage
        stage.upstream.script = [pieces(then="stall")]
        await send_and_wait(opened)
        opened.writer.close()
        await until(lambda: isinstance(opened.facts()[-1], ExchangeCancelled))
        assert stage.memory.ledger.usage("acme", "m", stage.clock.now()).rpm == 5


@pytest.mark.parametrize("is_direct", [False, True])
async def test_a_client_that_leaves_is_noticed_although_more_came_from_it(tmp_path: Path, is_direct: bool) -> None:
    async with warmed_up(tmp_path, is_direct=is_direct) as opened:
        opened.stage.upstream.script = [pieces(then="stall")]
        await send_and_wait(opened)
        opened.writer.write(b"\r\n")
        opened.writer.close()
        await until(lambda: isinstance(opened.facts()[-1], ExchangeCancelled))


async def test_a_client_is_answered_whatever_the_ledger_does(tmp_path: Path) -> None:
    async with warmed_up(tmp_path) as opened:
        failures: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: failures.append(repr(context.get("exception"))))

        def fail(*_: object) -> None:
            raise ZeroDivisionError

        opened.stage.memory.ledger.settle = fail  # type: ignore[method-assign, assignment]
        assert b"hello" in await opened.ask()
        assert kinds(opened.facts()) == [Received, AttemptStarted, ExchangeFinished]
        assert failures == ["ZeroDivisionError()"], "it is in the log"
        assert not opened.stage.relay._active


async def test_a_mistake_of_ours_is_logged_and_the_client_served_as_usual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    async with warmed_up(tmp_path) as opened:
        monkeypatch.setattr(direct, "plain_usage", fail)
        assert b"hello" in await opened.ask()
        assert kinds(opened.facts()) == [Received, AttemptStarted, ExchangeFinished]
        assert "could not be ended directly" in caplog.text


async def test_a_body_that_the_provider_takes_slowly_is_sent_to_its_end(tmp_path: Path) -> None:
    async with warmed_up(tmp_path) as opened:
        failures: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: failures.append(context))
        talk = opened.stage.upstream.connections[-1]
        (pool,) = opened.stage.client._pools.values()
        (idle,) = pool._idle
        assert idle._transport is not None
        for end, option in ((idle._transport, socket.SO_SNDBUF), (talk.transport, socket.SO_RCVBUF)):
            end.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, option, 4096)
        talk.transport.pause_reading()
        (connection,) = opened.listening.connections
        count = len(opened.direct)
        connection.data_received(opened.request(padding="x" * 200_000))  # in one read
        talk.transport.resume_reading()
        assert b"hello" in await opened.read_response()
        assert len(opened.direct) == count + 1
        assert not failures
        assert connection._direct_parts is None, "an idle connection keeps no body"


async def test_a_route_whose_exchanges_do_not_remain_direct_is_tried_now_and_then(tmp_path: Path) -> None:
    async with warmed_up(tmp_path, routes=(Route(provider="acme", retries=0),)) as opened:
        opened.stage.upstream.script = [at_once(json.dumps(ERROR).encode(), status=400)]
        for _ in range(40):
            await opened.ask()
        assert 5 <= len(opened.direct) - len(opened.taken) <= 8
        opened.stage.upstream.script = [at_once(said("hello"))]
        count = len(opened.taken)
        for _ in range(40):
            await opened.ask()
        assert len(opened.taken) > count + 5


def test_the_replies_of_the_tests_are_what_each_dialect_says() -> None:
    assert set(REPLIES) == set(DIALECTS)
