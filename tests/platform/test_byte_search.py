from collections.abc import Iterator
from random import Random

import pytest

from sightline.platform import files


@pytest.fixture(params=["linux", "other"])
def _each_platform(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if request.param == "other":
        monkeypatch.setattr(files.sys, "platform", "other")
    files._find_function.cache_clear()
    yield
    files._find_function.cache_clear()


@pytest.mark.usefixtures("_each_platform")
def test_bytes_are_found_where_they_are_and_nowhere_else() -> None:
    chance = Random(1)
    for _ in range(2000):
        text = bytes(chance.choices(b"ab\0\xff", k=chance.randrange(40)))
        needle = bytes(chance.choices(b"ab\0\xff", k=chance.randrange(6)))
        assert files.contains(text, needle) is (text.find(needle) >= 0)
