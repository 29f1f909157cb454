"""Deleting takes along what cannot stand alone, visibly, and restoring brings exactly that back."""

from sightline.editing.draft import Draft
from sightline.editing.operations import Delete, Restore
from sightline.model.json import Json, JsonObject
from tests.editing.bodies import anthropic, chat, gemini, raw, responses, round_of_tools, said, text

ASK = said("user", "go")


def gone(draft: Draft) -> list[str]:
    """What is not on screen: whole sections, and parts of others."""
    found: list[str] = []
    for section in draft.sections:
        if section.deleted:
            found.append(section.id)
        else:
            found += [part.id for part in section.parts if part.deleted]
    return found


def deleted(draft: Draft, section: str, part: str | None = None) -> list[str]:
    after = draft.with_edit(Delete(section=section, part=part))
    restored = after.with_edit(Restore(section=section, part=part))
    assert restored.data == draft.data
    assert not restored.is_dirty
    assert restored.sections == draft.sections
    return gone(after)


def test_a_call_and_its_result_go_together() -> None:
    draft = anthropic(ASK, *round_of_tools(1, "I look."), said("user", "thanks"))
    assert deleted(draft, "s2", "s2.p2") == ["s2.p2", "s3"]
    assert deleted(draft, "s3") == ["s2.p2", "s3"]
    assert deleted(draft, "s2") == ["s2", "s3"]
    alone = anthropic(ASK, *round_of_tools(), said("user", "thanks"))
    assert deleted(alone, "s3") == ["s2", "s3"], "a message left without parts goes whole"


def test_a_thought_does_not_stand_without_what_it_led_to() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    call, result = round_of_tools()
    call["content"].insert(0, thought)  # type: ignore[index,call-overload,union-attr]
    draft = anthropic(ASK, call, result, said("user", "thanks"))
    assert deleted(draft, "s3") == ["s2", "s3"]
    assert deleted(draft, "s2", "s2.p1") == ["s2.p1"]


def test_words_can_be_deleted_part_by_part() -> None:
    draft = anthropic(said("user", [text("a"), text("b")]), said("user", "c"))
    after = draft.with_edit(Delete(section="s1", part="s1.p1"))
    assert after.section("s1").text == "b"
    assert gone(after.with_edit(Delete(section="s1", part="s1.p2"))) == ["s1"]


def test_a_cache_mark_can_be_deleted_alone() -> None:
    marked = {**text("a"), "cache_control": {"type": "ephemeral"}}
    draft = anthropic(said("user", [marked]))
    assert draft.section("s1").has_cache_mark
    assert deleted(draft, "s1", "s1.p2") == ["s1.p2"]
    assert b"cache_control" not in draft.with_edit(Delete(section="s1", part="s1.p2")).data


def chat_call(number: int) -> JsonObject:
    return {"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def test_the_last_call_takes_its_list_along() -> None:
    message = {"role": "assistant", "content": "ok", "tool_calls": [chat_call(1), chat_call(2)]}
    results: list[Json] = [{"role": "tool", "tool_call_id": f"c{number}", "content": "x"} for number in (1, 2)]
    draft = chat(ASK, message, *results, ASK)
    assert deleted(draft, "s3") == ["s2.p2", "s3"]
    both = draft.with_edit(Delete(section="s3")).with_edit(Delete(section="s4"))
    assert gone(both) == ["s2.p2", "s2.p3", "s3", "s4"]
    assert b"tool_calls" not in both.data
    assert deleted(draft, "s2", "s2.p1") == ["s2.p1"], "a call needs no words"


TOOLS: list[Json] = [{"type": "function", "function": {"name": name}} for name in ("f", "g")]


def test_the_tools_take_the_choice_along() -> None:
    draft = chat(ASK, tools=TOOLS, tool_choice="auto", parallel_tool_calls=True)
    assert deleted(draft, "s2") == ["s2", "s3.p2", "s3.p3"]
    assert deleted(draft, "s2", "s2.p1") == ["s2.p1"]
    assert deleted(chat(ASK, tools=TOOLS), "s2") == ["s2"]


def test_the_choice_goes_with_the_tool_that_it_names() -> None:
    choice = {"type": "function", "function": {"name": "f"}}
    draft = chat(ASK, tools=TOOLS, tool_choice=choice)
    assert deleted(draft, "s2", "s2.p1") == ["s2.p1", "s3.p2"]
    assert deleted(draft, "s2", "s2.p2") == ["s2.p2"]


def test_the_choice_of_a_built_in_tool_goes_with_it_and_with_no_other() -> None:
    tools = [{"type": "apply_patch"}, {"type": "function", "name": "f", "parameters": {}}]
    draft = responses(ASK, tools=tools, tool_choice={"type": "apply_patch"})
    assert [part.name for part in draft.sections[1].parts] == ["apply_patch", "f"]
    patch, other = draft.sections[1].parts
    choice = next(part for part in draft.sections[2].parts if part.name == "tool_choice")
    assert deleted(draft, "s2", patch.id) == [patch.id, choice.id]
    assert deleted(draft, "s2", other.id) == [other.id]


def test_an_object_of_declarations_goes_with_the_last_of_them() -> None:
    tools: list[Json] = [{"functionDeclarations": [{"name": "f"}]}, {"googleSearch": {}}]
    config = {"functionCallingConfig": {"mode": "AUTO"}}
    draft = gemini({"role": "user", "parts": [{"text": "a"}]}, tools=tools, toolConfig=config)
    after = draft.with_edit(Delete(section="s2", part="s2.p1"))
    assert after.document["tools"] == [{"googleSearch": {}}]  # type: ignore[index,call-overload]
    assert deleted(draft, "s2") == ["s2", "s3"], "the choice was the only option"


def reasoning(number: int) -> JsonObject:
    return {"type": "reasoning", "id": f"rs_{number}", "summary": []}


def output(words: str) -> JsonObject:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": words}]}


def test_an_item_of_reasoning_goes_with_what_it_led_to() -> None:
    draft = responses(ASK, reasoning(1), output("a"), reasoning(2), output("b"), output("c"), ASK)
    assert deleted(draft, "s3") == ["s2", "s3"]
    assert deleted(draft, "s5") == ["s5"], "it still leads to the next one"
    assert deleted(draft, "s2") == ["s2"]
    assert gone(draft.with_edit(Delete(section="s5")).with_edit(Delete(section="s6"))) == ["s4", "s5", "s6"]
    last = responses(ASK, reasoning(1), output("a"))
    assert deleted(last, "s3") == ["s2", "s3"]


def test_what_the_server_did_goes_with_what_it_found() -> None:
    used = {"type": "server_tool_use", "id": "w", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "w", "content": []}
    draft = anthropic(ASK, said("assistant", [used, found, text("so")]), ASK)
    assert deleted(draft, "s2", "s2.p2") == ["s2.p1", "s2.p2"]


def turn(role: str, *parts: Json) -> JsonObject:
    return {"role": role, "parts": list(parts)}


def called(name: str) -> JsonObject:
    return {"functionCall": {"name": name, "args": {}}}


def answered(name: str) -> JsonObject:
    return {"functionResponse": {"name": name, "response": {"output": "x"}}}


def test_calls_without_ids_are_paired_by_name() -> None:
    draft = gemini(
        turn("user", {"text": "a"}),
        turn("model", called("f"), called("g")),
        turn("user", answered("f"), answered("g")),
        turn("user", {"text": "b"}),
    )
    assert deleted(draft, "s3", "s3.p2") == ["s2.p2", "s3.p2"]
    assert deleted(draft, "s3") == ["s2", "s3"]


def test_two_turns_of_the_model_in_a_row_are_one_too_many() -> None:
    draft = gemini(
        turn("user", {"text": "a"}),
        turn("model", {"text": "I look."}, called("f")),
        turn("user", answered("f")),
        turn("model", called("g")),
        turn("user", answered("g"), {"text": "b"}),
        turn("model", {"text": "so"}),
        turn("user", {"text": "c"}),
    )
    assert deleted(draft, "s3") == ["s2", "s3"]
    assert deleted(draft, "s5", "s5.p1") == ["s4", "s5.p1"]


def test_the_pieces_of_a_thought_go_together() -> None:
    words = {"text": "hm", "thought": True}
    seal = {"text": "", "thought": True, "thoughtSignature": "c2ln"}
    draft = gemini(turn("user", {"text": "a"}), turn("model", words, seal, {"text": "so"}), turn("user", {"text": "b"}))
    types = [part.type for part in draft.section("s2").parts]
    assert types == ["opaque", "thinking", "opaque", "text"]
    assert deleted(draft, "s2", "s2.p1") == ["s2.p1", "s2.p2", "s2.p3"]
    assert deleted(draft, "s2", "s2.p4") == ["s2"]


def test_the_raw_schema_cascades_too() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    draft = raw(
        {"role": 1, "content": [{"type": 1, "text": "a"}]},
        {"role": 2, "content": [], "toolCalls": [call]},
        {"role": 3, "content": [{"type": 1, "text": "x"}], "toolCallId": "c"},
        {"role": 1, "content": "b"},
    )
    assert deleted(draft, "s3") == ["s2", "s3"]


def test_deletions_that_overlap_come_back_one_by_one() -> None:
    draft = anthropic(ASK, *round_of_tools(1, "I look."), said("user", "thanks"))
    words = draft.with_edit(Delete(section="s2", part="s2.p1"))
    both = words.with_edit(Delete(section="s3"))
    assert gone(both) == ["s2", "s3"]
    assert gone(both.with_edit(Restore(section="s3"))) == ["s2.p1"]
    assert gone(both.with_edit(Restore(section="s2", part="s2.p1"))) == []
    assert gone(words.with_edit(Restore(section="s2"))) == []
