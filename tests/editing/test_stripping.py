import msgspec
import pytest

from sightline.editing.draft import Draft
from sightline.editing.operations import Restore
from sightline.editing.stripping import Strip, apply_strip
from tests.editing.conversations import chat, claude, drafted, ids


def types(draft: Draft) -> list[str]:
    return [
        part.type
        for section in draft.sections
        for part in section.parts
        if not part.deleted and not section.deleted and part.type in ("tool_call", "tool_result", "thinking", "tool")
    ]


def test_all_results_go_with_their_calls() -> None:
    draft = drafted(claude())
    result = apply_strip(draft, Strip(what="tool_results"))
    assert not {"tool_call", "tool_result"} & set(types(result.draft))
    assert result.gone == tuple(ids(draft, "tool_result"))
    assert (result.kept, result.why) == ((), "")


def test_each_pair_can_be_restored_by_itself() -> None:
    draft = drafted(claude())
    less = apply_strip(draft, Strip(what="tool_results")).draft
    again = less.with_edit(Restore(section=ids(draft, "tool_result")[1]))
    assert types(again) == ["thinking", "thinking", "tool_call", "tool_result", "tool", "tool"]
    assert not again.with_edit(Restore(section=ids(draft, "tool_result")[0])).is_dirty


def test_calls_of_one_message_that_is_gone_are_restored_together() -> None:
    document = chat()
    calls = [{"id": name, "type": "function", "function": {"name": "add", "arguments": "{}"}} for name in ("t1", "t2")]
    results = [{"role": "tool", "tool_call_id": name, "content": "2"} for name in ("t1", "t2")]
    document["messages"][2:4] = [{"role": "assistant", "tool_calls": calls}, *results]
    draft = drafted(document, "openai-chat")
    less = apply_strip(draft, Strip(what="tool_results")).draft
    assert types(less) == ["tool"]
    assert not less.with_edit(Restore(section=ids(draft, "tool_result")[1])).is_dirty


def test_the_results_of_the_last_turns_can_stay() -> None:
    draft = drafted(claude())
    assert types(apply_strip(draft, Strip(what="tool_results", older_than=2)).draft).count("tool_result") == 1
    assert types(apply_strip(draft, Strip(what="tool_results", older_than=1)).draft).count("tool_result") == 0
    untouched = apply_strip(draft, Strip(what="tool_results", older_than=9))
    assert (untouched.draft, untouched.gone) == (draft, ())


def test_thinking_goes_and_the_answers_stay() -> None:
    draft = drafted(claude())
    result = apply_strip(draft, Strip(what="thinking"))
    assert types(result.draft) == ["tool_call", "tool_result", "tool_call", "tool_result", "tool", "tool"]


def test_thinking_of_a_turn_that_is_under_way_stays() -> None:
    document = claude()
    del document["messages"][7:]
    assert types(apply_strip(drafted(document), Strip(what="thinking")).draft).count("thinking") == 1


def test_one_tool_goes_by_its_name() -> None:
    draft = drafted(claude())
    result = apply_strip(draft, Strip(what="tool", tool="sub"))
    assert types(result.draft).count("tool") == 1
    assert result.gone == tuple(ids(draft, "tools"))
    assert apply_strip(draft, Strip(what="tool", tool="mul")).draft is draft
    assert apply_strip(draft, Strip(what="tool")).draft is draft


def test_the_choice_of_a_tool_goes_with_it() -> None:
    draft = drafted(claude(tool_choice={"type": "tool", "name": "add"}))
    assert apply_strip(draft, Strip(what="tool", tool="add")).draft.request.tool_choice is None


def test_a_body_without_a_conversation_has_nothing_to_strip() -> None:
    for document in ({"messages": "none"}, {"messages": [], "max_tokens": 1}):
        draft = drafted(document)
        assert all(apply_strip(draft, Strip(what=what)).draft is draft for what in ("tool_results", "thinking", "tool"))


def test_as_much_goes_as_can() -> None:
    document = chat()
    document["messages"] = [*document["messages"][2:4], document["messages"][2], document["messages"][3]]
    document["messages"][2] = {
        "role": "assistant",
        "tool_calls": [{"id": "t2", "type": "function", "function": {"name": "add", "arguments": "{}"}}],
    }
    document["messages"][3] = {"role": "tool", "tool_call_id": "t2", "content": "3"}
    draft = drafted(document, "openai-chat")
    result = apply_strip(draft, Strip(what="tool_results"))
    assert len(result.gone) == len(result.kept) == 1
    assert result.why
    assert types(result.draft).count("tool_result") == 1


@pytest.mark.parametrize(
    ("strip", "label"),
    [
        (Strip(what="tool", tool="add"), "Tool add"),
        (Strip(what="tool_results"), "All tool results"),
        (Strip(what="tool_results", older_than=3), "Tool results older than 3 turns"),
        (Strip(what="thinking"), "All thinking"),
        (Strip(what="thinking", older_than=1), "Thinking older than 1 turns"),
    ],
)
def test_a_strip_says_what_it_is(strip: Strip, label: str) -> None:
    assert strip.label == label


def test_on_the_wire_its_class_is_called_class() -> None:
    assert msgspec.to_builtins(Strip(what="tool", tool="add")) == {"class": "tool", "tool": "add"}
