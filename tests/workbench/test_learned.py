"""What the gateway's traffic teaches, seen and forgotten through the whole program."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.desk_stage import JSON, SSE, DeskStage, desk_stage
from tests.upstream import answer

PRICED = """
[models."acme/claude-opus-5".prices]
input = 4.0
output = 20.0
cache_write = 5.0
cache_write_1h = 8.0
"""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeskStage]:
    with desk_stage(tmp_path_factory.mktemp("learned"), "anthropic", PRICED) as made:
        made.person.put("/api/interception", {"mode": "off"})
        yield made


def request(text: str, model: str = "claude-opus-5", **more: Any) -> dict[str, Any]:
    return {"model": model, "max_tokens": 50, "messages": [{"role": "user", "content": text}], **more}


def replies(stage: DeskStage, usage: dict[str, Any], model: str = "claude-opus-5") -> None:
    reply = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": model, "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Hello."}], "usage": usage,
    }  # fmt: skip
    stage.upstream.script = [answer(200, json.dumps(reply).encode(), JSON)]


def streams_reply(stage: DeskStage, usage: dict[str, Any]) -> None:
    started = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5", "content": []}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**started, "usage": {**usage, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]
    data = b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events)
    stage.upstream.script = [answer(200, data, SSE)]


def lessons(stage: DeskStage) -> dict[str, Any]:
    return {f"{each['model']} {each['kind']}": each for each in stage.person.get("/api/learned")["lessons"]}


def eventually(stage: DeskStage, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The lessons once it is so. A client may have all of a streamed answer a moment before we know that it ended."""
    for _ in range(1000):
        if is_so(told := lessons(stage)):
            return told
    raise AssertionError(told)


def test_counts_for_clients_teach_whole_and_streamed_and_can_be_forgotten(stage: DeskStage) -> None:
    person, key = stage.person, "acme/claude-opus-5 text"
    replies(stage, {"input_tokens": 12, "output_tokens": 5})
    assert stage.ask(request("some words of a prompt")).result().status == 200
    eventually(stage, lambda told: told.get(key, {}).get("seen") == 1)
    streams_reply(stage, {"input_tokens": 14})
    assert stage.ask(request("some other words of it", stream=True)).result().status == 200
    eventually(stage, lambda told: told[key]["seen"] == 2)
    replies(stage, {"input_tokens": 51_890, "output_tokens": 5})
    assert stage.ask(request("what an odd count")).result().status == 200
    told = eventually(stage, lambda told: told[key]["set_aside"] == 1)
    assert (told[key]["seen"], told[key]["added"]) == (2, 0)
    assert person.ask("POST", "/api/learned/forget", {"model": "nobody"}) == (200, {"forgotten": []})
    forgotten = person.ask("POST", "/api/learned/forget", {"model": "claude-opus-5"})
    assert forgotten == (200, {"forgotten": ["acme/claude-opus-5"]})
    assert person.get("/api/learned") == {"lessons": []}
    assert person.ask("POST", "/api/learned/forget", {"modle": "x"})[0] == 422


@pytest.mark.parametrize("is_stream", [False, True])
def test_cache_writes_of_an_hour_have_their_price_whole_and_streamed(stage: DeskStage, *, is_stream: bool) -> None:
    usage = {
        "input_tokens": 1000,
        "cache_creation_input_tokens": 3000,
        "cache_creation": {"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 2000},
        "output_tokens": 5,
    }
    (streams_reply if is_stream else replies)(stage, usage)
    got = stage.ask(request("write it down", stream=is_stream)).result()
    summary = stage.person.ended(got.exchange)
    assert summary["cost"] == pytest.approx((1000 * 4 + 1000 * 5 + 2000 * 8 + 5 * 20) / 1e6)
    reply = stage.person.get(f"/api/exchanges/{got.exchange}/reply")["reply"]
    assert reply["usage"] == {"input_tokens": 4000, "output_tokens": 5, "cache_write_tokens": 3000}


def test_a_server_of_ones_own_is_not_charged_at_the_makers_price(stage: DeskStage) -> None:
    replies(stage, {"input_tokens": 12, "output_tokens": 5}, "claude-opus-5-5")
    got = stage.ask(request("for nothing", model="claude-opus-5-5")).result()
    summary = stage.person.ended(got.exchange)
    assert summary["input_tokens"] == 12
    assert "cost" not in summary or summary["cost"] is None


def test_a_prompt_of_no_tokens_was_not_counted(stage: DeskStage) -> None:
    replies(stage, {"input_tokens": 0, "output_tokens": 5})
    got = stage.ask(request("how many words")).result()
    summary = stage.person.ended(got.exchange)
    assert (summary.get("input_tokens"), summary.get("cost")) == (None, None)
