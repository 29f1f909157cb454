"""A raw request under edit."""

import pytest

from sightline.editing.operations import (
    Batch,
    Delete,
    Insert,
    Move,
    Remove,
    Reset,
    Set,
    SetBody,
    SetText,
)
from sightline.errors import Fault
from sightline.exchange.interception.core.drafts import RawDraft

BODY = b'{"a": 1,  "b": [2]}'


def test_json_is_changed_by_its_places_and_nowhere_else() -> None:
    draft = RawDraft("POST /x", BODY)
    assert draft.with_edit(Set(pointer="/a", value=5)).data == b'{"a": 5,  "b": [2]}'
    assert draft.with_edit(Insert(pointer="/b/-", value=3)).data == b'{"a": 1,  "b": [2,3]}'
    assert b'"b"' not in draft.with_edit(Remove(pointer="/b")).data
    assert draft.with_edit(Move(source="/b/0", pointer="/c")).data.endswith(b'"c": 2}')
    both = Batch(operations=(Set(pointer="/a", value=2), Remove(pointer="/b")))
    assert draft.with_edit(both).with_edit(Reset()).data == BODY
    assert draft.with_edit(Set(pointer="/a", value=1)) is draft


def test_another_body_is_sent_exactly_as_it_is_written() -> None:
    draft = RawDraft("POST /x", BODY)
    edited = draft.with_edit(SetBody(body="plain"))
    assert (edited.data, edited.original, edited.is_dirty, edited.size) == (b"plain", BODY, True, 5)
    assert edited.sha256 != draft.sha256
    assert draft.with_edit(SetText(section="s2", text="ü")).data == "ü".encode()
    assert draft.validity.ok


def test_the_head_and_the_body_are_shown() -> None:
    head, body = RawDraft("POST /x\nhost: y", BODY).sections
    assert (head.text, head.editable, body.text, body.editable) == ("POST /x\nhost: y", False, BODY.decode(), True)
    assert [section.label for section in RawDraft("GET /x", b"").sections] == ["Head"]
    draft = RawDraft("POST /x", b"\xff\0")
    assert (draft.sections[1].text, draft.sections[1].editable) == ("2 bytes that are no text", False)
    draft.release_caches()
    assert not RawDraft("POST /x", b"half \xc3", is_whole=False).sections[1].editable


@pytest.mark.parametrize(
    ("draft", "operation"),
    [
        (RawDraft("POST /x", BODY), Delete(section="s2")),
        (RawDraft("POST /x", BODY), SetText(section="s1", text="x")),
        (RawDraft("POST /x", BODY), SetBody(body="\ud800")),
        (RawDraft("POST /x", b"\xff"), SetText(section="s2", text="x")),
        (RawDraft("POST /x", BODY, is_whole=False), Set(pointer="/a", value=1)),
        (RawDraft("POST /x", b"text"), Set(pointer="/a", value=1)),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused(draft: RawDraft, operation: SetBody) -> None:
    with pytest.raises(Fault):
        draft.with_edit(operation)
