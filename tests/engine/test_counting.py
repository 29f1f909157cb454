from pathlib import Path

from sightline.catalog.catalog import Catalog
from sightline.catalog.provider import Provider
from sightline.engine.counting import Counter, told
from sightline.engine.memory import Memory
from sightline.engine.routing import routed
from tests.relay_stage import asks


def test_large_bodies_are_told_by_their_size_and_small_ones_counted(tmp_path: Path) -> None:
    from sightline.dialects.registry import dialect
    from sightline.wire.jsontext import decode

    asked = asks("gemini", provider="acme", body=b'{"generateContentRequest":{"contents":[{"parts":[{"text":"hi"}]}]}}')
    choice = routed(Catalog(providers={"acme": Provider()}), asked, lambda _: True)
    counter = Counter(Memory(tmp_path, lambda: 0.0))
    tokens, body = counter.answer(asked, choice)
    assert body == {"totalTokens": tokens}
    assert tokens > 0
    request = dialect("anthropic").read_request(decode(asks("anthropic").body))
    assert counter.at_once(choice, request, 1_000_000) == 250_000
    assert 0 < counter.at_once(choice, request, 10) < 100


def test_a_count_that_is_none_is_told() -> None:
    assert told("gemini", b'{"totalTokens": 3}') == (3, None)
    count, fault = told("gemini", b"{}")
    assert count is None
    assert fault is not None
