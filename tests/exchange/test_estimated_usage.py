"""What a provider does not count is estimated, recorded and marked; what was counted is left as it is."""

import json
from pathlib import Path
from typing import Any

import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Model
from sightline.catalog.provider import Provider
from sightline.dialects.registry import dialect
from sightline.exchange.memory import Memory
from sightline.exchange.request_counter import RequestCounter
from sightline.exchange.routing import route_for
from sightline.model.reply import Reply, Usage
from tests.relay_stage import Stage, asks, open_stage
from tests.upstream import LAST, chunk, cut, head, pieces, says, stall

SSE = [("Content-Type", "text/event-stream")]
WORDS = "The quick brown fox jumps over the lazy dog, and then it rests in the shade of a tree."


def frame(delta: dict[str, Any], **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": more.pop("finish_reason", None)}
    body = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def whole(**more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": WORDS}, "finish_reason": "stop"}
    return {"id": "r", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **more}


STREAM = [frame({"content": WORDS}), frame({}, finish_reason="stop"), b"data: [DONE]\n\n"]
NOTHING = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
NEGATIVE = {"prompt_tokens": -3, "completion_tokens": 2, "total_tokens": -1}
COUNTED = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}


def usage_in(stage: Stage) -> Usage | None:
    return stage.facts()[-1].usage


async def usage_of(folder: Path, reply: dict[str, Any], **settings: Any) -> Usage | None:
    """What is on record of a request with this reply."""
    async with open_stage(folder, **settings) as stage:
        stage.upstream.script = [says(reply)]
        await stage.ask(asks("openai-chat"))
        return usage_in(stage)


def check_estimate(usage: Usage | None) -> None:
    """About as many tokens as the words have: a word has one or two."""
    assert usage.is_estimated
    assert 1 <= usage.input_tokens < 60
    assert 15 <= usage.output_tokens <= 40


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(says(whole()), id="whole"),
        pytest.param(says(whole(usage=None)), id="null"),
        pytest.param(says(whole(usage=NOTHING)), id="zeros"),
        pytest.param(says(whole(usage=NEGATIVE)), id="negative"),
        pytest.param(pieces(head(200, SSE), *map(chunk, STREAM), LAST), id="stream"),
    ],
)
async def test_an_answer_without_a_count_has_an_estimate_on_record(tmp_path: Path, answer: Any) -> None:
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [answer]
        got = await stage.ask(asks("openai-chat", stream=True))
        assert got.status == 200
        assert b"is_estimated" not in got.body  # the client gets what the provider wrote
        check_estimate(usage_in(stage))


async def test_a_count_stays_as_it_is(tmp_path: Path) -> None:
    usage = await usage_of(tmp_path, whole(usage=COUNTED))
    assert (usage.input_tokens, usage.output_tokens, usage.is_estimated) == (9, 4, False)


@pytest.mark.parametrize(("count", "is_odd"), [(5_000, True), (900, False)])
async def test_a_prompt_larger_than_the_window_and_than_the_request_can_be_is_no_count(
    tmp_path: Path, count: int, is_odd: bool
) -> None:
    window = Model(providers=("acme",), context_window=1_000)
    reply = whole(usage={**COUNTED, "prompt_tokens": count, "total_tokens": count + 4})
    usage = await usage_of(tmp_path, reply, models={"m": window})
    assert usage.is_estimated == is_odd
    assert (usage.input_tokens < 60) == is_odd


async def test_half_a_count_is_kept_and_the_other_half_estimated(tmp_path: Path) -> None:
    usage = await usage_of(tmp_path, whole(usage={"prompt_tokens": 7}))
    check_estimate(usage)
    assert usage.input_tokens == 7


async def test_an_answer_that_breaks_off_has_used_what_had_come(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [cut(head(200, SSE), chunk(STREAM[0]))]
        await stage.ask(asks("openai-chat", stream=True))
        assert stage.kinds()[-1] == "failed"
        check_estimate(usage_in(stage))


async def test_a_client_that_leaves_has_used_what_had_come(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [stall(head(200, SSE), chunk(STREAM[0]))]
        async with await stage.relay.start(asks("openai-chat", stream=True)) as relayed:
            await anext(aiter(relayed))
        assert stage.kinds()[-1] == "cancelled"
        check_estimate(usage_in(stage))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(says({"error": {"message": "no"}}, 429), id="refused"),
        pytest.param(
            pieces(head(200, SSE), chunk(b'data: {"error":{"message":"no"}}\n\n'), LAST), id="error-in-stream"
        ),
    ],
)
async def test_what_was_refused_has_used_nothing(tmp_path: Path, answer: Any) -> None:
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [answer]
        await stage.ask(asks("openai-chat", stream=True))
        assert stage.kinds()[-1] == "failed"
        assert usage_in(stage) is None


async def test_a_body_that_takes_too_long_to_count_is_not_estimated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such an exchange is counted beside the sums."""
    monkeypatch.setattr("sightline.exchange.request_counter._LARGEST_COUNTED", 10)
    assert await usage_of(tmp_path, whole()) is None


@pytest.mark.parametrize(
    ("spoken", "body"),
    [
        (
            "openai-chat",
            {
                "messages": [
                    {"role": "developer", "content": "Be brief."},
                    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                    {"role": "assistant", "content": ""},
                ],
                "temperature": 0.5,
                "max_tokens": 5,
                "stream": True,
                "stream_options": {"include_usage": True},
            },
        ),
        (
            "anthropic",
            {
                "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
                "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": []}],
                "max_tokens": 5,
            },
        ),
    ],
)
def test_a_request_of_texts_is_known_again_by_the_quick_reader(tmp_path: Path, spoken: str, body: Any) -> None:
    catalog = Catalog(providers={"acme": Provider(dialect=spoken)})
    choice = route_for(catalog, asks(spoken, provider="acme"), lambda _: True)
    counter, data = RequestCounter(Memory(tmp_path, lambda: 0.0)), json.dumps(body).encode()
    quick = dialect(spoken).plain_texts
    assert quick.request(data) is not None
    counter.note(choice, dialect(spoken).read_request(body), 7_777)
    usage = counter.estimate_usage(choice, data, Reply())
    assert usage.input_tokens == 7_777


async def test_estimates_teach_nothing(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [says(whole())]
        await stage.ask(asks("openai-chat"))
        await stage.relay.wait_until_learned()
        assert not list(stage.relay.counter.memory.lessons())
