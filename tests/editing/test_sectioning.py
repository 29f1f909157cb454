"""A request as a person reads it, in every dialect, and made anew only where something changed."""

import json

from sightline.editing.draft import Draft
from sightline.editing.operations import Delete, Remove, Restore, Set, SetText
from sightline.editing.section import CallReference
from sightline.editing.sectioning import Sectioning, SectionList
from tests.editing.bodies import PNG, anthropic, chat, draft, gemini, raw, responses, round_of_tools, said, text

TOOL = {"name": "Bash", "description": "runs", "input_schema": {"type": "object"}}
A, B, C = said("user", "a"), said("assistant", "b"), said("user", "c")


def kinds(edited: Draft) -> list[str]:
    return [section.kind for section in edited.sections]


def test_a_messages_request() -> None:
    edited = anthropic(
        A, *round_of_tools(1, "I look."), B, C, system=[text("s")], tools=[TOOL], tool_choice={"type": "auto"}
    )
    assert kinds(edited) == ["system", "user", "assistant", "tool_result", "assistant", "user", "tools", "options"]
    assert [section.category for section in edited.sections] == [
        "system",
        "history",
        "history",
        "history",
        "history",
        "user",
        "tools",
        "options",
    ]
    result = edited.section("s4")
    assert result.answers == (CallReference("t1", "Bash", '{"command":"ls"}', "s3"),)
    assert result.label == "Result · Bash"
    call = edited.section("s3").parts[1]
    assert (call.type, call.call_id, call.name, call.is_json, call.editable) == ("tool_call", "t1", "Bash", True, True)
    tools, options = edited.section("s7"), edited.section("s8")
    assert (tools.label, tools.pointer, tools.parts[0].name) == ("Tools (1)", "/tools", "Bash")
    assert json.loads(tools.parts[0].text) == TOOL
    assert [part.name for part in options.parts] == ["model", "max_tokens", "tool_choice"]


def test_a_chat_request() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    result = {"role": "tool", "tool_call_id": "c", "content": "done"}
    edited = chat(said("system", "s"), A, {"role": "assistant", "content": None, "tool_calls": [call]}, result)
    assert kinds(edited) == ["system", "user", "tool_call", "tool_result", "options"]
    assert edited.section("s3").text == '{"a": 1}'
    assert edited.section("s4").text == "done"
    assert edited.section("s4").answers[0].arguments == '{"a": 1}'
    assert [section.category for section in edited.sections[:4]] == ["system", "user", "user", "user"]


def test_a_responses_request() -> None:
    items = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"},
        {"type": "web_search_call", "id": "w"},
    ]
    edited = responses(said("user", "a"), *items, instructions="s")
    assert kinds(edited) == ["system", "user", "thinking", "other", "options"]
    assert edited.section("s1").pointer == "/instructions"
    thought = edited.section("s3")
    assert thought.parts[0].text == "hm"
    assert not thought.editable
    assert "sealed" in thought.parts[0].reason
    assert edited.section("s4").label == "Other · web_search_call"


def test_a_gemini_request() -> None:
    edited = gemini(
        {"parts": [{"text": "a"}]},
        {"role": "model", "parts": [{"function_call": {"name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"function_response": {"name": "f", "response": {"output": "x"}}}]},
        system_instruction={"parts": [{"text": "s"}]},
        generationConfig={"temperature": 1},
    )
    assert kinds(edited) == ["system", "user", "tool_call", "tool_result", "options"]
    assert edited.section("s1").pointer == "/system_instruction"
    assert edited.section("s4").answers[0].section == "s3"
    assert [part.name for part in edited.section("s5").parts] == ["generationConfig"]


def test_a_raw_request() -> None:
    edited = raw({"role": 0, "content": [{"type": 1, "text": "s"}]}, {"role": 1, "content": "a"})
    assert kinds(edited) == ["system", "user", "options"]
    bare = draft("raw", [{"role": 1, "content": "a"}])
    assert kinds(bare) == ["user"]
    assert bare.section("s1").pointer == "/0"


def test_pictures_are_attachments() -> None:
    edited = anthropic(said("user", [PNG]), C)
    section = edited.section("s1")
    assert section.category == "attachments"
    assert section.parts[0].url.startswith("data:image/png")
    assert not section.parts[0].editable


def test_what_cannot_be_read_is_shown_as_it_is() -> None:
    for body in (b"{oh", b"[1]", b'"x"', b"\xff", b""):
        edited = Draft.of(body, "openai-chat")
        (section,) = edited.sections
        assert (section.kind, section.editable, section.id) == ("other", False, "s1")
        assert section.text == body.decode("utf-8", "replace")
        assert "cannot be read" in section.reason


def test_only_what_changed_is_made_anew() -> None:
    before = anthropic(A, *round_of_tools(), C, tools=[TOOL])
    after = before.with_edit(SetText(section="s4", text="z"))
    assert [one is two for one, two in zip(before.sections, after.sections, strict=True)] == [True] * 3 + [False] + [
        True
    ] * 2
    other = after.with_edit(Set(pointer="/max_tokens", value=7))
    assert other.section("s5") == after.section("s5")
    assert other.section("s6") != after.section("s6")
    described = after.with_edit(Set(pointer="/tools/0/description", value="walks"))
    assert described.section("s5") != after.section("s5")


def test_sections_behind_a_deleted_one_only_move() -> None:
    before = anthropic(A, B, said("user", [text("c"), text("d")]), B, C)
    after = before.with_edit(Delete(section="s2"))
    assert [section.pointer for section in after.sections[:5]] == [
        "/messages/0",
        "",
        "/messages/1",
        "/messages/2",
        "/messages/3",
    ]
    part = after.with_edit(Delete(section="s3", part="s3.p1"))
    assert [each.pointer for each in part.section("s3").parts] == ["", "/messages/1/content/0"]
    back = part.with_edit(Restore(section="s2"))
    for edited in (
        after,
        part,
        back,
        part.with_edit(Delete(section="s3")),
        back.with_edit(Remove(pointer="/messages/0")),
    ):
        assert edited.sections == Sectioning(edited.whole, SectionList()).make_sections(edited.data).sections


def test_a_deleted_section_shows_what_it_was() -> None:
    gone = anthropic(A, B, C).with_edit(Delete(section="s1")).section("s1")
    # An edit of it restores it.
    assert (gone.deleted, gone.text, gone.editable, gone.pointer) == (True, "a", True, "")


def test_without_words_of_a_person_nothing_is_history() -> None:
    edited = chat(said("assistant", "b"), said("assistant", "c"))
    assert [section.category for section in edited.sections[:2]] == ["user", "user"]
