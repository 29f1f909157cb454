"""The bounded cache."""

from sightline.wire.cache import BoundedCache


def test_the_least_recently_used_entry_is_evicted() -> None:
    """`get` and `put` count as use, `peek` and `in` do not."""
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    assert cache.peek("b") == 2
    assert "b" in cache
    cache.put("c", 3)
    assert list(cache) == ["a", "c"]
    assert cache.values() == [1, 3]
    assert cache.items() == [("a", 1), ("c", 3)]
    assert (cache.get("b"), cache.peek("b")) == (None, None)


def test_replacing_and_removing_entries() -> None:
    """A replaced entry is the one used last; removed entries are gone."""
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.put("a", 3)
    assert list(cache) == ["b", "a"]
    assert (cache.pop("b"), cache.pop("b")) == (2, None)
    cache.clear()
    assert len(cache) == 0
