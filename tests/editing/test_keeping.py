import json

import msgspec
import pytest

from sightline.editing.draft import Draft
from sightline.editing.mask_making import MaskMaker, check_counts, check_repeats, is_same, keeper_beside, unkeepable
from sightline.editing.masks import Mask, Strip, apply_masks, apply_strip
from sightline.editing.operations import Batch, Delete, Duplicate, Edit, Insert, Restore, Set, SetRole, SetText
from sightline.errors import Fault
from tests.editing.conversations import chat, claude, drafted, ids, part_of


def edited(draft: Draft, *operations: Edit) -> Draft:
    for operation in operations:
        draft = draft.with_edit(operation)
    return draft


def between(start: Draft, now: Draft) -> list[Mask]:
    return [mask for _, mask in MaskMaker(now.first, "session", "work").between(start, now)]


def repeated(now: Draft, masks: list[Mask]) -> Draft:
    check_repeats(now, masks, session="work", project="")
    return apply_masks(now.first, masks, session="work", project="")[0]


def test_all_that_was_changed_is_kept_and_comes_out_the_same() -> None:
    draft = drafted(chat(), "openai-chat")
    system, user, result = ids(draft, "system")[0], ids(draft, "user")[0], ids(draft, "tool_result")[0]
    option = next(part.id for part in draft.section(ids(draft, "options")[0]).parts if part.name == "temperature")
    now = edited(
        draft,
        SetText(section=system, text="Be terse."),
        SetText(section=user, text="What is 1+2?"),
        Delete(section=result),
        SetText(section=ids(draft, "options")[0], part=option, text="0"),
    )
    masks = between(draft, now)
    assert sorted(mask.kind for mask in masks) == ["delete", "delete", "patch", "patch", "set_text"]
    assert repeated(now, masks).data == now.data


def test_untouched_sections_get_no_mask() -> None:
    draft = drafted(chat(), "openai-chat")
    start = draft.with_edit(SetText(section=ids(draft, "system")[0], text="By another mask."))
    now = start.with_edit(SetText(section=ids(draft, "user")[0], text="Mine."))
    (mask,) = between(start, now)
    assert mask.anchor.kind == "user"
    assert between(start, start) == []


def test_parts_are_kept_as_parts() -> None:
    draft = drafted(claude())
    tool, thinking = part_of(draft, "tool", 1), part_of(draft, "thinking")
    words = next(part.id for part in draft.section(thinking[0]).parts if part.type == "text")
    now = edited(
        draft,
        Delete(section=tool[0], part=tool[1]),
        Delete(section=thinking[0], part=thinking[1]),
        SetText(section=thinking[0], part=words, text="Let me look."),
    )
    masks = between(draft, now)
    assert [(mask.kind, mask.part is not None) for mask in masks] == [
        ("delete", True),
        ("patch", True),
        ("delete", True),
    ]
    assert repeated(now, masks).data == now.data


def test_a_part_that_is_no_words_is_kept_beside_words_that_are() -> None:
    draft = drafted(claude())
    section = ids(draft, "assistant")[0]
    call = next(part.id for part in draft.section(section).parts if part.type == "tool_call")
    now = edited(
        draft, SetText(section=section, text="Let me look."), SetText(section=section, part=call, text='{"a": 3}')
    )
    masks = between(draft, now)
    assert [mask.part is None for mask in masks] == [True, False]
    assert json.loads(repeated(now, masks).data) == json.loads(now.data)


def test_the_arguments_of_a_call_that_is_alone_are_the_text_of_their_section() -> None:
    draft = drafted(chat(), "openai-chat")
    now = draft.with_edit(SetText(section=ids(draft, "tool_call")[0], text='{"a": 2}'))
    (mask,) = between(draft, now)
    assert (mask.kind, mask.part) == ("patch", None)
    assert repeated(now, [mask]).data == now.data


def test_what_a_mask_had_deleted_can_be_restored_for_later_requests() -> None:
    draft = drafted(chat(), "openai-chat")
    system = ids(draft, "system")[0]
    start = draft.with_edit(Delete(section=system))
    (deletion,) = between(draft, start)
    now = start.with_edit(Restore(section=system))
    (mask,) = between(start, now)
    assert (mask.id, mask.hunks) == (deletion.id, ())
    assert repeated(now, [mask]).data == draft.data


def test_a_section_that_had_no_words_gets_them_as_a_whole() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    draft = drafted(chat(messages=[{"role": "user", "content": [picture]}]), "openai-chat")
    now = draft.with_edit(SetText(section=ids(draft, "user")[0], text="What is this?"))
    with pytest.raises(Fault, match="a part was added"):
        between(draft, now.with_edit(Insert(pointer="/messages/0/content/-", value=picture)))
    (mask,) = between(draft, now)
    assert (mask.kind, mask.text) == ("set_text", "What is this?")
    assert repeated(now, [mask]).data == now.data


@pytest.mark.parametrize(
    "operation", [Insert(pointer="/messages/-", value={"role": "user", "content": "Mine."}), Duplicate(section="s2")]
)
def test_what_was_added_cannot_be_kept(operation: Edit) -> None:
    draft = drafted(chat(), "openai-chat")
    with pytest.raises(Fault, match="a section was added") as caught:
        between(draft, draft.with_edit(operation))
    assert caught.value.status == 422
    assert caught.value.hint == unkeepable("").hint


@pytest.mark.parametrize(
    "operation",
    [
        SetRole(section="s2", role="assistant"),
        Batch(operations=(Set(pointer="/model", value="other"), Insert(pointer="/user", value="me"))),
    ],
)
def test_edits_that_masks_cannot_repeat_are_refused(operation: Edit) -> None:
    draft = drafted(chat(messages=chat()["messages"][:2]), "openai-chat")
    now = draft.with_edit(operation)
    with pytest.raises(Fault, match=r"not all of the edits|was added"):
        check_repeats(now, between(draft, now), session="work", project="")


def test_sections_are_the_same_by_what_they_say() -> None:
    draft = drafted(claude())
    tool = part_of(draft, "tool")
    other = draft.with_edit(Delete(section=tool[0], part=tool[1]))
    assert is_same(draft.section(tool[0]), draft.section(tool[0]))
    assert not is_same(draft.section(tool[0]), other.section(tool[0]))
    user = ids(draft, "user")[0]
    assert not is_same(draft.section(user), draft.with_edit(SetText(section=user, text="x")).section(user))


def test_a_mask_repeats_only_what_the_others_do_not() -> None:
    first = drafted(chat(), "openai-chat")
    system = ids(first, "system")[0]
    came = first.section(system).text
    around = {"session": "work@shop", "project": "shop"}

    def kept(scope: str, masks: list[Mask], text: str) -> Mask:
        keeper = keeper_beside(first, masks, scope, **around)
        start, _ = apply_masks(first, masks, **around)
        operation = SetText(section=system, text=text)
        return keeper.of_edit(start, operation, start.with_edit(operation))[1]

    session = kept("session", [], f"Mine.\n{came}")
    everywhere = kept("all", [session], f"Mine.\n{came}\nAll.")
    project = kept("project", [session], f"Mine.\n{came}\nOurs.")
    assert [hunk.new for hunk in everywhere.hunks] == ["\nAll."]
    assert [(project.name, hunk.new) for hunk in project.hunks] == [("shop", "\nOurs.")]
    again = kept("session", [session], f"Mine.\nToo.\n{came}")
    assert (again.id, [hunk.new for hunk in again.hunks]) == (session.id, ["Mine.\nToo.\n"])
    check_counts(first, everywhere, [session, everywhere], **around)
    same_words = kept("all", [session], f"Yours.\n{came}")
    with pytest.raises(Fault, match="narrower scope"):
        check_counts(first, same_words, [session, same_words], **around)


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


def test_on_the_wire_its_class_is_called_class() -> None:
    assert msgspec.to_builtins(Strip(what="tool", tool="add")) == {"class": "tool", "tool": "add"}
