"""Comparing drafts, and finding the same place in another request."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.editing.anchors import CONTEXT, Anchors, Hunk, apply_patch, find, hunks_between
from sightline.editing.comparing import SectionChange, carry_over, changes_between, compare_drafts
from sightline.editing.draft import Draft
from sightline.editing.operations import Delete, Edit, Insert, Remove, SetText
from sightline.model.parts import Image, Inline, Text, ToolCall, ToolResult
from sightline.model.request import Message
from tests.contract.cases import Case, cases
from tests.editing.conversations import chat, claude, drafted, ids


def changes(before: Draft, after: Draft) -> list[tuple[str, str]]:
    return [(line.change, line.label) for line in compare_drafts(before, after) if line.change != "same"]


@pytest.mark.parametrize("case", cases("request.json"), ids=str)
def test_a_request_is_the_same_as_itself(case: Case) -> None:
    data = case.file("request.json")
    lines = compare_drafts(Draft.of(data, case.dialect), Draft.of(data, case.dialect))
    assert lines
    assert {line.change for line in lines} == {"same"}
    assert all(line.before == line.after for line in lines)


def test_an_edited_section_is_changed_and_the_rest_is_not() -> None:
    draft = drafted(chat(), "openai-chat")
    user = ids(draft, "user")[0]
    edited = draft.with_edit(SetText(section=user, text="What is 1+2?"))
    (line,) = [line for line in compare_drafts(draft, edited) if line.change != "same"]
    assert (line.change, line.kind) == ("changed", "user")
    assert (line.before.text, line.after.text) == ("What is 1+1?", "What is 1+2?")
    assert (line.before.section, line.after.section) == (user, user)


def test_a_deleted_pair_is_removed() -> None:
    draft = drafted(chat(), "openai-chat")
    less = draft.with_edit(Delete(section=ids(draft, "tool_result")[0]))
    removed = [line for line in compare_drafts(draft, less) if line.change == "removed"]
    assert [line.kind for line in removed] == ["tool_call", "tool_result"]
    assert [line.before.text for line in removed] == ['add({"a": 1})', "2"]
    assert all(line.after is None for line in removed)


def test_the_next_turn_only_adds() -> None:
    turn = chat()
    more = [{"role": "assistant", "content": "Bye."}, {"role": "user", "content": "Wait."}]
    later = chat(messages=[*turn["messages"], *more])
    lines = changes(drafted(turn, "openai-chat"), drafted(later, "openai-chat"))
    assert [change for change, _ in lines] == ["added", "added"]


def test_section_in_another_position_is_shown_as_moved() -> None:
    turn = chat()
    messages = turn["messages"]
    moved = chat(messages=[messages[0], *messages[2:5], messages[1], messages[5]])
    lines = compare_drafts(drafted(turn, "openai-chat"), drafted(moved, "openai-chat"))
    (line,) = [line for line in lines if line.change != "same"]
    assert (line.change, line.before.text, line.after.text) == ("moved", "What is 1+1?", "What is 1+1?")


def test_what_is_another_kind_of_thing_is_not_a_change_of_it() -> None:
    turn = chat()
    other = chat(messages=[turn["messages"][0], {"role": "assistant", "content": "Hello."}, *turn["messages"][2:]])
    lines = changes(drafted(turn, "openai-chat"), drafted(other, "openai-chat"))
    assert [change for change, _ in lines] == ["removed", "added"]


def test_each_tool_and_option_is_a_line_of_its_own() -> None:
    turn = claude()
    other = claude(tools=[turn["tools"][0]], max_tokens=500, temperature=0)
    lines = changes(drafted(turn), drafted(other))
    assert lines == [("removed", "Tool · sub"), ("changed", "Option · max_tokens"), ("added", "Option · temperature")]


def test_a_deleted_tool_is_gone_from_the_lines() -> None:
    draft = drafted(claude())
    tools = draft.section(ids(draft, "tools")[0])
    less = draft.with_edit(Delete(section=tools.id, part=tools.parts[1].id))
    assert changes(draft, less) == [("removed", "Tool · sub")]


def test_pictures_and_thinking_are_shown_in_words() -> None:
    document = claude()
    document["messages"][0]["content"] = [
        {"type": "text", "text": "Look:", "cache_control": {"type": "ephemeral"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
    ]
    lines = compare_drafts(drafted(document), drafted(document))
    assert lines[1].after.text == "Look:\n[image image/png]"
    assert lines[2].after.text == 'I add.\nLet me see.\nadd({"a":1})'


def test_bodies_that_cannot_be_read_are_compared_whole() -> None:
    one, other = drafted({"messages": "none"}), drafted({"messages": "nothing"})
    (line,) = compare_drafts(one, other)
    assert (line.before.text, line.after.text) == ('{"messages": "none"}', '{"messages": "nothing"}')


PICTURE = Image(Inline("image/png", "aGk="))
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
TALK: tuple[dict[str, Any], ...] = (
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "found it"},
    {"role": "assistant", "content": "Done."},
    {"role": "user", "content": "go"},
)
SAME = (
    Message("system", (Text("Be kind."),)),
    Message("user", (Text("go"),)),
    Message("assistant", (ToolCall("c1", "look", '{"a": 1}'), ToolCall("c2", "look", '{"a": 1}'))),
    Message("tool", (ToolResult("c2", (Text("other"),)), ToolResult("c1", (PICTURE, Text("found it"))))),
    Message("assistant", (Text("Do"), PICTURE, Text("ne."))),
    Message("user", (Text("go"),)),
)


def conversation_draft() -> Draft:
    return Draft.of(json.dumps({"model": "m", "messages": TALK}).encode(), "openai-chat")


def changes_in_conversation(*edits: Edit) -> tuple[SectionChange, ...]:
    draft = now = conversation_draft()
    for edit in edits:
        now = now.with_edit(edit)
    return changes_between(draft, now)


def at(number: int) -> str:
    return conversation_draft().sections[number].id


def test_what_is_the_same_or_added_is_no_change() -> None:
    assert changes_in_conversation() == ()
    assert changes_in_conversation(Insert(pointer="/messages/-", value={"role": "user", "content": "more"})) == ()


def test_change_names_the_speaker_and_the_occurrence_of_equal_texts() -> None:
    first, second = changes_in_conversation(SetText(section=at(1), text="start"), SetText(section=at(5), text="stop"))
    assert first == SectionChange(who="user", old="go", new="start", nth=0, count=1)
    assert second == SectionChange(who="user", old="go", new="stop", nth=1, count=1, is_question=True)
    (call,) = changes_in_conversation(SetText(section=at(2), text='{"a": 2}'))
    assert (call.who, call.new) == ("call", '{"a": 2}')
    (result,) = changes_in_conversation(SetText(section=at(3), text="nothing"))
    assert (result.who, result.old) == ("tool", "found it")


def test_what_was_deleted_or_removed_has_no_words_left() -> None:
    for edit in (Delete(section=at(4)), Remove(pointer="/messages/4")):
        (change,) = changes_in_conversation(edit)
        assert (change.old, change.new, change.gone) == ("Done.", "", (0,))


def test_a_document_without_a_question_has_none() -> None:
    draft = Draft.of(b'{"model":"m","messages":[{"role":"system","content":"Be kind."}]}', "openai-chat")
    now = draft.with_edit(SetText(section=draft.sections[0].id, text="Be terse."))
    assert [change.is_question for change in changes_between(draft, now)] == [False]


def test_changes_are_carried_over_to_where_their_words_are() -> None:
    found = changes_in_conversation(
        SetText(section=at(0), text="Be terse."),
        SetText(section=at(2), text='{"a": 2}'),
        SetText(section=at(3), text="found nothing"),
        SetText(section=at(4), text="Gone."),
        SetText(section=at(5), text="stop"),
    )
    after = carry_over(SAME, found)
    assert after[0].parts == (Text("Be terse."),)
    assert after[1] == SAME[1]
    assert [part.arguments for part in after[2].parts] == ['{"a": 2}', '{"a": 1}']
    assert after[3].parts == (SAME[3].parts[0], ToolResult("c1", (PICTURE, Text("found nothing"))))
    assert [part.text for part in after[4].parts if isinstance(part, Text)] == ["Go", "ne."]
    assert after[4].parts[1] == PICTURE
    assert after[5].parts == (Text("stop"),)


def test_words_that_are_not_there_and_words_that_were_deleted_change_nothing() -> None:
    assert carry_over(SAME, changes_in_conversation(Delete(section=at(4)))) == SAME
    assert carry_over(SAME[:5], changes_in_conversation(SetText(section=at(5), text="stop"))) == SAME[:5]


TEXTS = st.text("ab \n", max_size=40)


@given(old=TEXTS, new=TEXTS)
def test_a_patch_makes_of_the_old_text_the_new_one(old: str, new: str) -> None:
    assert apply_patch(old, hunks_between(old, new)) == new


def test_a_text_without_a_difference_has_no_hunks() -> None:
    assert hunks_between("the same", "the same") == ()


def test_a_hunk_has_the_rest_of_its_line_as_context() -> None:
    (hunk,) = hunks_between("one\nYou are a kind helper.\ntwo", "one\nYou are a terse helper.\ntwo")
    assert hunk == Hunk("You are a ", "kind", "terse", " helper.")
    assert (hunk.sought, hunk.made) == ("You are a kind helper.", "You are a terse helper.")


KIND = Hunk("Be ", "kind", "terse", ".")
BEHIND, BEFORE = Hunk("Be kind.", "", " And brief.", ""), Hunk("", "", "Listen. ", "Be kind.")


@pytest.mark.parametrize(
    ("text", "patch", "after"),
    [
        ("Be kind.\nGit: 2 files\n", hunks_between("Be kind.\nGit", "Be terse.\nGit"), "Be terse.\nGit: 2 files\n"),
        ("Be kind. Be kind.", [KIND], None),
        # An insertion is not made where it is made already.
        ("Be kind.", [BEHIND], "Be kind. And brief."),
        ("Be kind. And brief.", [BEHIND], None),
        ("Listen. Be kind.", [BEFORE], None),
        ("Be kind. And brief. Be kind.", [BEHIND], "Be kind. And brief. Be kind. And brief."),
        # A hunk without anything to find is for an empty text.
        ("", [Hunk(new="words")], "words"),
        ("other", [Hunk(new="words")], None),
        # Two hunks cannot have the same words.
        ("Be kind.", [Hunk("Be ", "kind", "a", "."), Hunk("", "Be kind", "b", ".")], None),
    ],
)
def test_a_patch_is_applied_where_each_hunk_has_one_place(text: str, patch: Sequence[Hunk], after: str | None) -> None:
    assert apply_patch(text, patch) == after


def test_several_places_are_several_hunks_and_all_of_them_are_needed() -> None:
    patch = hunks_between("first line\nsecond\nthird line\n", "1st line\nsecond\n3rd line\n")
    assert len(patch) == 2
    assert apply_patch("third line\nfirst line\n", patch) == "3rd line\n1st line\n"
    assert apply_patch("first line only\n", patch) is None


def test_a_long_line_is_no_context_as_a_whole() -> None:
    (hunk,) = hunks_between(f"{'x' * 200} kind {'y' * 200}", f"{'x' * 200} terse {'y' * 200}")
    assert (len(hunk.before), len(hunk.after)) == (CONTEXT, CONTEXT)


def test_words_that_occur_twice_get_more_context_until_they_are_one_place() -> None:
    old = "alpha\nBe kind.\nbeta\nBe kind.\ngamma"
    (hunk,) = hunks_between(old, "alpha\nBe kind.\nbeta\nBe terse.\ngamma")
    assert "beta" in hunk.before
    assert apply_patch(old, (hunk,)) == "alpha\nBe kind.\nbeta\nBe terse.\ngamma"


def test_a_blank_line_is_no_context() -> None:
    (hunk,) = hunks_between("one\n\ntwo", "one\n\n\ntwo")
    assert hunk.sought.strip()


def test_context_that_is_gone_or_there_twice_is_no_place() -> None:
    assert find("Be good.", KIND) == []
    assert find("Be kind. Be kind.", KIND) == [3, 12]
    assert find("Now. Be kind.", KIND) == [8]
    assert find("aaa", Hunk(old="aa", new="b")) == [0, 1]


def test_very_many_lines_are_one_hunk(monkeypatch) -> None:
    monkeypatch.setattr("sightline.editing.texts._MOST_LINES", 4)
    assert len(hunks_between("a\nb\nc\n", "A\nb\nC\n")) == 1


def contents(draft) -> list[str]:
    return [anchor.content for anchor in Anchors(draft).sections.values()]


def test_a_section_is_the_same_in_the_next_turn() -> None:
    turn = claude()
    later = claude(messages=[*turn["messages"], {"role": "assistant", "content": "Bye."}])
    assert set(contents(drafted(turn))) < set(contents(drafted(later)))


def test_words_count_and_marks_and_spellings_do_not() -> None:
    listed = claude()
    listed["messages"][0] = {
        "role": "user",
        "content": [{"type": "text", "text": "What is 1+1?", "cache_control": {"type": "ephemeral"}}],
    }
    usual, bare, brief = (contents(drafted(each)) for each in (claude(), claude(system="Be kind."), claude(system="x")))
    assert usual[:2] == bare[:2] == contents(drafted(listed))[:2]
    assert usual[0] != brief[0]


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
