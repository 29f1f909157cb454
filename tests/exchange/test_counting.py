from pathlib import Path

from sightline.catalog.catalog import Catalog
from sightline.catalog.provider import Provider
from sightline.dialects.registry import dialect
from sightline.exchange.memory import Memory
from sightline.exchange.request_counter import MOST_ESTIMATORS, RequestCounter, read_count
from sightline.exchange.routing import route_for
from sightline.wire.jsontext import decode
from tests.relay_stage import asks


def test_large_bodies_are_told_by_their_size_and_small_ones_counted(tmp_path: Path) -> None:
    asked = asks("gemini", provider="acme", body=b'{"generateContentRequest":{"contents":[{"parts":[{"text":"hi"}]}]}}')
    choice = route_for(Catalog(providers={"acme": Provider()}), asked, lambda _: True)
    counter = RequestCounter(Memory(tmp_path, lambda: 0.0))
    tokens, body = counter.answer(asked, choice)
    assert body == {"totalTokens": tokens}
    assert tokens > 0
    request = dialect("anthropic").read_request(decode(asks("anthropic").body))
    assert counter.at_once(choice, request, 1_000_000) == 250_000
    assert 0 < counter.at_once(choice, request, 10) < 100


def test_a_count_that_is_none_is_told() -> None:
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
