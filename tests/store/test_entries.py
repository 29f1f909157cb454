import msgspec

from sightline.store.entries import Entry
from tests.store.traffic import chat_body, whole


def test_entries_tell_facts_from_bodies_in_any_coding() -> None:
    entries = whole("x_1", chat_body("hi"), "yes")
    for coding in (msgspec.json, msgspec.msgpack):
        assert coding.decode(coding.encode(entries), type=list[Entry]) == entries
