"""Vocabularies are large: some 40 MB each, and the tests here load all of them."""

from collections.abc import Iterator

import pytest

from sightline.tokens import text_count


@pytest.fixture(scope="package", autouse=True)
def _forget_vocabularies() -> Iterator[None]:
    """Free them when the tests of the package are over, so that a worker does not keep half a gigabyte."""
    yield
    text_count._load.cache_clear()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that went to the tokenizer."""
    seen: list[str] = []
    real = text_count.count_tokens

    def counting(name: str, text: str) -> int:
        seen.append(text)
        return real(name, text)

    monkeypatch.setattr(text_count, "count_tokens", counting)
    return seen
