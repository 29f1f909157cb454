import asyncio
import json
from pathlib import Path

import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import ModelChoice
from sightline.catalog.facts import Facts, Family
from sightline.catalog.provider import Provider
from sightline.dialects.registry import dialect
from sightline.exchange import responder as learning_module
from sightline.exchange.memory import Memory
from sightline.exchange.request_counter import MOST_ESTIMATORS, RequestCounter, read_count
from sightline.exchange.responder import LARGEST_BODY, MOST_WAITING, TrafficLearning
from sightline.exchange.routing import route_for
from sightline.model.reply import Usage
from sightline.wire.jsontext import decode
from tests.relay_stage import asks


def test_large_bodies_are_estimated_by_size_and_small_ones_counted(tmp_path: Path) -> None:
    asked = asks("gemini", provider="acme", body=b'{"generateContentRequest":{"contents":[{"parts":[{"text":"hi"}]}]}}')
    choice = route_for(Catalog(providers={"acme": Provider()}), asked, lambda _: True)
    counter = RequestCounter(Memory(tmp_path, lambda: 0.0))
    tokens, body = counter.answer(asked, choice)
    assert body == {"totalTokens": tokens}
    assert tokens > 0
    request = dialect("anthropic").read_request(decode(asks("anthropic").body))
    assert counter.at_once(choice, request, 1_000_000) == 250_000
    assert 0 < counter.at_once(choice, request, 10) < 100


def test_missing_token_count_is_reported() -> None:
    assert read_count("gemini", b'{"totalTokens": 3}') == (3, None)
    count, fault = read_count("gemini", b"{}")
    assert count is None
    assert fault is not None


def test_few_estimators_are_kept_and_those_in_use_stay(tmp_path: Path) -> None:
    counter = RequestCounter(Memory(tmp_path, lambda: 0.0))
    catalog = Catalog(providers={"acme": Provider()})

    def estimate(model: str) -> None:
        asked = asks("openai-chat", provider="acme", model=model)
        counter.estimate(
            route_for(catalog, asked, lambda _: True), dialect("openai-chat").read_request(decode(asked.body))
        )

    for number in range(MOST_ESTIMATORS * 2):
        estimate("m")
        estimate(f"m{number}")
    assert len(counter._estimators) == MOST_ESTIMATORS
    assert ("acme", "m", "openai-chat") in counter._estimators


CHOICE = ModelChoice("acme", Provider(dialect="openai-chat"), "m", Facts(context_window=1000), Family())
OTHER = ModelChoice("acme", Provider(dialect="openai-chat"), "other", Facts(), Family())
USAGE = Usage(input_tokens=12, output_tokens=3)


def body(text: str = "some words of a prompt", **more: object) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": text}], **more}).encode()


async def taught(memory: Memory, *noted: tuple[bytes, Usage]) -> int:
    """How many counts of the model are believed or set aside after these."""
    learning = TrafficLearning(memory)
    for data, usage in noted:
        learning.note(CHOICE, data, usage)
    await learning.wait_until_idle()
    return sum(lesson.seen + lesson.set_aside for lesson in memory.lessons())


async def test_what_a_provider_counted_for_a_client_is_learned(tmp_path: Path) -> None:
    memory = Memory(tmp_path, lambda: 0.0)
    assert await taught(memory, (body(), USAGE), (body("and others"), USAGE)) == 2
    assert memory.ratio("acme", "m", tools=False) is not None


@pytest.mark.parametrize(
    ("data", "usage"),
    [
        (body(), Usage(output_tokens=3)),
        (body(), Usage(input_tokens=0)),
        (body(), Usage(input_tokens=1001)),
        (b"no json", USAGE),
        (b"[]", USAGE),
        (b'{"messages": 5}', USAGE),
        (body("x" * LARGEST_BODY), USAGE),
    ],
)
async def test_what_cannot_be_read_or_meant_teaches_nothing(tmp_path: Path, data: bytes, usage: Usage) -> None:
    assert await taught(Memory(tmp_path, lambda: 0.0), (data, usage)) == 0


async def test_where_more_come_than_can_be_looked_at_the_oldest_are_left_out(tmp_path: Path) -> None:
    noted = [(body(f"words {number}"), USAGE) for number in range(MOST_WAITING * 3)]
    assert await taught(Memory(tmp_path, lambda: 0.0), *noted) == MOST_WAITING


async def test_of_many_requests_at_once_the_first_are_looked_at_and_then_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning_module, "MOST_WAITING", 1000)
    monkeypatch.setattr(learning_module, "_MODELS", 1)
    memory = Memory(tmp_path, lambda: 0.0)
    loop, learning = asyncio.get_running_loop(), TrafficLearning(memory)
    times = iter([0.0] * 100 + [1.5] * 100)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "time", lambda: next(times))
        pauses = [learning.note(CHOICE, body(), USAGE) for _ in range(200)]
    learning.note(OTHER, body(), USAGE)
    await learning.wait_until_idle()
    assert pauses.count(0.0) == learning_module.FIRST_LESSONS + 1
    assert "acme/other" in [lesson.model for lesson in memory.lessons()]


async def test_close_waits_for_at_most_one_pending_lesson(tmp_path: Path) -> None:
    learning = TrafficLearning(Memory(tmp_path, lambda: 0.0))
    await learning.close()
    for _ in range(5):
        learning.note(CHOICE, body(), USAGE)
    await learning.close()
