"""An ordinary request and one that somebody watches or may hold are served by one function: the record is the same."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sightline.model.exchange import Fact
from tests.relay_stage import Got, asks, open_stage
from tests.upstream import LAST, Play, answer, chunk, head, pieces, says, streams

TEXT = {"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}
CALLS = [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
CALLED = {
    "index": 0, "message": {"role": "assistant", "content": None, "tool_calls": CALLS}, "finish_reason": "tool_calls"
}  # fmt: skip
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
LIMITS = [("x-ratelimit-remaining-requests", "9"), ("Content-Type", "application/json")]


def frame(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: %b\n\n" % json.dumps({"id": "r", "model": "m-1", "choices": [choice], **more}).encode()


DONE = b"data: [DONE]\n\n"
WORDS = (frame({"role": "assistant", "content": "Hel"}), frame({"content": "lo."}), frame({}, "stop", usage=USAGE))
WHOLE: dict[str, Play] = {
    "text": says({"id": "r", "model": "m-1", "choices": [TEXT], "usage": USAGE}, headers=LIMITS),
    "without usage": says({"id": "r", "choices": [TEXT]}),
    "call": says({"id": "r", "model": "m-1", "choices": [CALLED], "usage": USAGE}),
    "two choices": says({"id": "r", "choices": [TEXT, {**TEXT, "index": 1}]}),
    "error in a success": says({"error": {"message": "no"}}),
    "refused": answer(400, b'{"error":{"message":"no"}}'),
    "two pieces": pieces(
        head(headers=LIMITS), chunk(b'{"id":"r","choices":['), chunk(json.dumps(TEXT).encode() + b"]}"), LAST
    ),
}  # fmt: skip
STREAMS: dict[str, Play] = {
    "text": streams(*WORDS, DONE),
    "at once": streams(b"".join(WORDS) + DONE),
    "without an end": streams(*WORDS[:2]),
    "broken frame": streams(WORDS[0], b"data: {broken\n\n", WORDS[2], DONE),
    "error": streams(WORDS[0], b'data: {"error":{"message":"no"}}\n\n'),
    "call": streams(
        frame({"role": "assistant", "tool_calls": [{"index": 0, **CALLS[0]}]}), frame({}, "tool_calls"), DONE
    ),
    "key in pieces": streams(
        frame({"role": "assistant", "content": "it is sk-client-"}), frame({"content": "0123456789"}), WORDS[2], DONE
    ),
}
KEY = (("Authorization", "Bearer sk-client-0123456789"), ("Content-Type", "application/json"))


async def served(folder: Path, step: Play, way: str, *, stream: bool) -> tuple[Got, list[Fact], bytes]:
    async with open_stage(folder) as stage:
        stage.upstream.script = [step]
        if way == "watched":
            stage.hub.watch()
        elif way == "rules":
            stage.relay.holds.set_rules([{"filter": "model:another", "action": "hold"}])
        got = await stage.ask(asks("openai-chat", stream=stream, headers=KEY))
        return got, stage.facts(), stage.raw_reply()


def timeless(facts: list[Fact]) -> list[Any]:
    times = {"first_byte": 0, "elapsed": 0, "url": ""}
    return [
        {**(told := msgspec.to_builtins(fact)), **{key: times[key] for key in times.keys() & told}} for fact in facts
    ]


@pytest.mark.parametrize("way", ["watched", "rules"])
@pytest.mark.parametrize(
    ("step", "is_stream"),
    [(step, False) for step in WHOLE.values()] + [(step, True) for step in STREAMS.values()],
    ids=[f"whole, {name}" for name in WHOLE] + [f"stream, {name}" for name in STREAMS],
)
async def test_the_record_and_the_answer_are_the_same_either_way(
    tmp_path: Path, step: Play, way: str, is_stream: bool
) -> None:
    ordinary = await served(tmp_path / "ordinary", step, "ordinary", stream=is_stream)
    other = await served(tmp_path / "other", step, way, stream=is_stream)
    assert timeless(other[1]) == timeless(ordinary[1])
    assert other[2] == ordinary[2]
    assert b"0123456789" not in ordinary[2]
    assert (other[0].status, other[0].body) == (ordinary[0].status, ordinary[0].body)
