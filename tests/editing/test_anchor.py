from sightline.editing.anchor import Anchors
from sightline.editing.operations import Delete
from tests.editing.conversations import chat, claude, drafted, ids


def contents(draft) -> list[str]:
    return [anchor.content for anchor in Anchors(draft).sections.values()]


def test_a_section_is_the_same_in_the_next_turn() -> None:
    turn = claude()
    later = claude(messages=[*turn["messages"], {"role": "assistant", "content": "Bye."}])
    assert set(contents(drafted(turn))) < set(contents(drafted(later)))


def test_marks_and_spellings_do_not_count() -> None:
    marked = claude(system="Be kind.")
    listed = claude()
    listed["messages"][0] = {
        "role": "user",
        "content": [{"type": "text", "text": "What is 1+1?", "cache_control": {"type": "ephemeral"}}],
    }
    assert contents(drafted(marked))[:2] == contents(drafted(claude()))[:2] == contents(drafted(listed))[:2]


def test_words_count() -> None:
    assert contents(drafted(claude(system="Be brief.")))[0] != contents(drafted(claude()))[0]


def test_each_knows_its_neighbour_and_its_kind() -> None:
    anchors = list(Anchors(drafted(chat(), "openai-chat")).sections.values())
    assert anchors[0].before == ""
    assert [anchor.before for anchor in anchors[1:]] == [anchor.content for anchor in anchors[:-1]]
    assert [anchor.kind for anchor in anchors][:3] == ["system", "user", "tool_call"]


def test_what_is_deleted_has_no_anchor() -> None:
    draft = drafted(claude())
    less = draft.with_edit(Delete(section=ids(draft, "system")[0]))
    assert len(Anchors(less).sections) == len(Anchors(draft).sections) - 1


def test_parts_have_anchors_of_their_own() -> None:
    draft = drafted(claude())
    answer = draft.section(ids(draft, "assistant")[0])
    anchors = Anchors(draft).parts(answer)
    assert [anchor.kind for anchor in anchors.values()] == ["thinking", "text", "tool_call"]
    assert len({anchor.content for anchor in anchors.values()}) == 3
    system = draft.section(ids(draft, "system")[0])
    assert [anchor.kind for anchor in Anchors(draft).parts(system).values()] == ["text"]


def test_tools_and_options_are_known_by_what_they_are() -> None:
    draft, other = drafted(claude()), drafted(claude(max_tokens=1000, temperature=0.5))
    for kind in ("tools", "options"):
        here = Anchors(draft).parts(draft.section(ids(draft, kind)[0]))
        there = Anchors(other).parts(other.section(ids(other, kind)[0]))
        assert {anchor.content for anchor in here.values()} <= {anchor.content for anchor in there.values()}


def test_a_body_that_cannot_be_read_has_one_anchor() -> None:
    draft = drafted({"messages": "none"})
    assert len(Anchors(draft).sections) == 1
    assert Anchors(draft).parts(draft.sections[0]) == {}
