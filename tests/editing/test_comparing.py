import pytest

from sightline.editing.comparing import compare_drafts
from sightline.editing.draft import Draft
from sightline.editing.operations import Delete, SetText
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


def test_what_stands_elsewhere_has_moved() -> None:
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
