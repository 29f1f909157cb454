"""The whole document under hard changes: bytes, value, deletions and ids move together."""

import pytest

from sightline.editing.deletions import Deletions
from sightline.editing.document import WholeDocument
from sightline.errors import Fault
from sightline.wire.jsontext import decode

DATA = b"""{ "model":"m",
  "messages":[ {"role":"user","content":"a"}, {"role":"assistant","content":"b"},
               {"role":"user","content":[{"type":"text","text":"c"},{"type":"text","text":"d"}]} ] }"""


def whole(*deleted: str) -> WholeDocument:
    made = WholeDocument.of(DATA, "openai-chat")
    return made.with_deletions(Deletions.of([frozenset(deleted)], made.reading.document))


def check(made: WholeDocument, ids: dict[str, str]) -> None:
    assert made.reading.document == decode(made.body.data)
    found = {place: named.id for place, named in made.names.sections.items() if place.startswith("/")}
    assert found == ids


def test_a_value_is_set_in_its_bytes_alone() -> None:
    made = whole().set("/messages/1/content", "z")
    assert made.body.data == DATA.replace(b'"b"', b'"z"')
    check(made, {"/messages/0": "s1", "/messages/1": "s2", "/messages/2": "s3"})


def test_entries_are_inserted_removed_and_moved_with_their_ids() -> None:
    made = whole("/messages/2/content/1").insert("/messages/1", {"role": "user", "content": "n"})
    check(made, {"/messages/0": "s1", "/messages/1": "s5", "/messages/2": "s2", "/messages/3": "s3"})
    assert made.deletions.places == {"/messages/3/content/1"}
    made = made.remove("/messages/0")
    check(made, {"/messages/0": "s5", "/messages/1": "s2", "/messages/2": "s3"})
    assert made.deletions.places == {"/messages/2/content/1"}
    made = made.move("/messages/2", "/messages/0")
    check(made, {"/messages/1": "s5", "/messages/2": "s2", "/messages/0": "s3"})
    assert made.deletions.places == {"/messages/0/content/1"}
    assert b'[{"type":"text","text":"c"},{"type":"text","text":"d"}]' in made.body.data, "its very bytes"


def test_members_come_go_and_move_too() -> None:
    made = whole().insert("/seed", 1).move("/model", "/was").remove("/seed")
    assert decode(made.body.data).keys() == {"messages", "was"}  # type: ignore[union-attr]
    check(made, {"/messages/0": "s1", "/messages/1": "s2", "/messages/2": "s3"})


def test_a_value_may_be_inserted_as_it_is_spelled() -> None:
    assert b'"seed":1.50' in whole().insert("/seed", 1.5, b"1.50").body.data.replace(b" ", b"")


def test_another_conversation_is_matched_by_content() -> None:
    kept = {"role": "assistant", "content": "b"}
    made = whole("/messages/0").set("/messages", [kept, {"role": "user", "content": "new"}])
    check(made, {"/messages/0": "s2", "/messages/1": "s1"})
    assert not made.deletions
    made = whole("/messages/0").set("", {"messages": [kept]})
    check(made, {"/messages/0": "s2"})
    assert not made.deletions


def test_ids_outlive_a_document_that_cannot_be_read() -> None:
    broken = whole().set("/messages/0/role", "nobody")
    assert broken.reading.request is None
    mended = broken.set("/messages/0/role", "user")
    check(mended, {"/messages/0": "s1", "/messages/1": "s2", "/messages/2": "s3"})


def test_ids_outlive_another_body_that_cannot_be_read() -> None:
    broken = whole().replace_document(b'{"messages":[{"role":"user","content":"a"}, 5]}')
    assert broken.reading.request is None
    check(broken, {"/messages/0": "s1", "/messages/1": "s2", "/messages/2": "s3"})
    check(broken.replace_document(b'{"messages":[{"role":"user","content":"a"}]}'), {"/messages/0": "s1"})


def test_what_is_not_json_can_only_be_written_anew() -> None:
    broken = WholeDocument.of(b"{oh", "openai-chat")
    assert broken.reading.fault is not None
    with pytest.raises(Fault):
        broken.set("/model", "m")
    assert broken.set("", {"messages": []}).reading.request is not None
    with pytest.raises(Fault):
        broken.replace_document(b"still not")


def test_a_value_too_deep_to_be_read_is_refused() -> None:
    deep: object = 1
    for _ in range(600):
        deep = [deep]
    once = whole().set("/model", deep)  # type: ignore[arg-type]
    with pytest.raises(Fault):
        once.insert("/model" + "/0" * 599 + "/-", deep)  # type: ignore[arg-type]
