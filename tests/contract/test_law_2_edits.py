"""Law 2, surgical, for the editor: whatever is done to a request, in any order, nothing else in it changes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.dialects.registry import NAMES, dialect
from sightline.editing.document import DocumentReading
from sightline.editing.draft import Draft, EditHistory
from sightline.editing.operations import (
    AnyOperation,
    Delete,
    Duplicate,
    Insert,
    Move,
    Redo,
    Remove,
    Reset,
    Restore,
    Set,
    SetBody,
    SetRole,
    SetText,
    Undo,
)
from sightline.errors import Fault
from sightline.model.report import Report
from sightline.wire.document import WireDocument
from sightline.wire.jsontext import decode
from tests.contract.cases import Case, cases
from tests.contract.generated import TARGET, requests, spaced
from tests.contract.leaves import leaves
from tests.examples import examples

MOST_STEPS = 8
WORDS = st.sampled_from(
    ("", "x", "aaaXbbb", "quite another text", 'é\n"\\ \N{GRINNING FACE} \ud800', "{}", '{"b": 1.50}')
)
VALUES = st.one_of(WORDS, st.integers(), st.none(), st.just({"a": [1.0, "é"]}), st.just([]))


@st.composite
def operations(draw: st.DrawFn, draft: Draft) -> AnyOperation:
    """Something that a person might do to this draft, sensible or not."""
    if not draft.sections:
        return Undo()
    section = draw(st.sampled_from(draft.sections))
    part = draw(st.none() | st.sampled_from([part.id for part in section.parts])) if section.parts else None
    places = [at for at, _ in leaves(draft.document) if at] or [""]
    place = draw(st.sampled_from(places))
    holder = place[: place.rfind("/")]
    return draw(
        st.one_of(
            st.builds(SetText, section=st.just(section.id), part=st.just(part), text=WORDS),
            st.just(SetText(section=section.id, text=f"{section.text[:3]}Z{section.text[4:]}")),
            st.just(Delete(section=section.id, part=part)),
            st.just(Restore(section=section.id, part=part)),
            st.just(Duplicate(section=section.id)),
            st.builds(SetRole, section=st.just(section.id), role=st.sampled_from(("user", "assistant", "system"))),
            st.builds(Set, pointer=st.sampled_from((place, holder)), value=VALUES),
            st.builds(
                Insert, pointer=st.sampled_from((f"{holder}/0", f"{holder}/-", f"{holder}/new~1key")), value=VALUES
            ),
            st.builds(Remove, pointer=st.sampled_from((place, holder))),
            st.builds(Move, source=st.sampled_from((place, holder)), pointer=st.sampled_from(places)),
            st.just(SetBody(body=draft.data.decode("utf-8", "replace") + " ")),
            st.just(Reset()),
            st.sampled_from((Undo(), Redo())),
        )
    )


def check_consistent(draft: Draft) -> None:
    """What an edit gives is what reading the bytes on screen gives."""
    document = decode(draft.data)
    assert draft.document == document
    assert list(leaves(draft.document)) == list(leaves(document)), "the order of keys is the one in the bytes"
    read = DocumentReading.of(draft.dialect, document)
    assert (draft.request, draft.fault) == (read.request, read.fault)
    assert draft.sections == Draft(draft.whole, draft.dialect, draft.model).sections
    assert len({section.id for section in draft.sections}) == len(draft.sections)
    for section in draft.sections:
        assert len({part.id for part in section.parts}) == len(section.parts)
        for part in section.parts:
            if not part.deleted:
                WireDocument(draft.data).text_of(part.pointer)
                assert draft.section_at(part.pointer) == section.id


def check_surgical(before: Draft, operation: AnyOperation, after: Draft) -> None:
    """The bytes differ where the operation says and nowhere else."""
    if isinstance(operation, Set):
        assert after.data == WireDocument(before.data).set(operation.pointer, operation.value).data
    elif isinstance(operation, SetBody):
        assert after.data == operation.body.encode()
    elif isinstance(operation, Insert):
        expected = WireDocument(before.data).insert(operation.pointer, operation.value)
        assert after.document == expected.document
    elif isinstance(operation, Remove):
        assert after.document == WireDocument(before.data).remove(operation.pointer).document
    elif isinstance(operation, Move):
        assert after.document == WireDocument(before.data).move(operation.source, operation.pointer).document
    elif isinstance(operation, SetText):
        check_text(before, operation, after)
    elif isinstance(operation, Delete) and after is not before:
        restored = after.with_edit(Restore(section=operation.section, part=operation.part))
        if before.section(operation.section) == restored.section(operation.section):
            assert restored.data == before.data


def check_text(before: Draft, operation: SetText, after: Draft) -> None:
    section = after.section(operation.section)
    old = before.section(operation.section)
    target = old if operation.part is None else next(part for part in old.parts if part.id == operation.part)
    if target.deleted:  # an edit of what is deleted restores it, with what was deleted together with it
        before = before.with_edit(Restore(section=operation.section, part=operation.part))
    if operation.part is None:
        shown, is_json = section.text, any(part.is_json for part in section.parts)
    else:
        part = next(part for part in section.parts if part.id == operation.part)
        shown, is_json = part.text, part.is_json
    if is_json:
        assert shown == operation.text or decode(shown) == decode(operation.text)
    else:
        assert shown == operation.text
    others = {each.id: each for each in before.sections if each.id != section.id}
    for each in after.sections:
        if each.id in others:
            assert each.parts == others[each.id].parts
    kept = {at: value for at, value in leaves(before.document) if not _within(at, section.pointer)}
    assert kept.items() <= dict(leaves(after.document)).items()


def _within(at: str, pointer: str) -> bool:
    return not pointer or at == pointer or at.startswith(f"{pointer}/")


def story(data: bytes, name: str, pick: st.DataObject) -> None:
    editing = EditHistory(Draft.of(data, name))
    check_consistent(editing.draft)
    for _ in range(pick.draw(st.integers(1, MOST_STEPS))):
        before = editing.draft
        operation = pick.draw(operations(before))
        try:
            after = editing.apply(operation)
        except Fault:
            assert editing.draft is before
            continue
        check_consistent(after)
        check_surgical(before, operation, after)
    last = editing.draft
    while editing.can_undo:
        editing.apply(Undo())
    assert editing.draft.data == data
    assert not editing.draft.is_dirty
    while editing.can_redo:
        editing.apply(Redo())
    if editing.draft is not last:  # it was undone before the end of the story
        check_consistent(editing.draft)
    assert editing.apply(Reset()).data == data


@pytest.mark.parametrize("case", cases("request.json"), ids=str)
@settings(max_examples=examples(3))
@given(pick=st.data())
def test_edits_of_a_real_request_touch_nothing_else(case: Case, pick: st.DataObject) -> None:
    story(case.file("request.json"), case.dialect, pick)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(15))
@given(request=requests(), random=st.randoms(), pick=st.data())
def test_edits_of_a_generated_request_touch_nothing_else(name, request, random, pick) -> None:
    body = dialect(name).write_request(request, TARGET, Report())
    story(spaced(body, random), name, pick)
