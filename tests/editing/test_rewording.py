"""Another text for a section goes to the right leaves, and to nothing else."""

import json

import pytest

from sightline.editing.draft import Draft
from sightline.editing.operations import Delete, SetText
from sightline.errors import Fault
from sightline.model.json import Json
from sightline.wire.pointer import resolve
from tests.editing.bodies import PNG, anthropic, chat, draft, gemini, raw, responses, round_of_tools, said, text

ASK = said("user", "go")
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}


def after(before: Draft, section: str, words: str, pointer: str, part: str | None = None) -> Json:
    changed = before.with_edit(SetText(section=section, part=part, text=words))
    assert changed.data == changed.data.strip()
    return resolve(json.loads(changed.data), pointer)


@pytest.mark.parametrize(
    ("words", "texts"),
    [("aaaXbbb", "aaaX bbb"), ("Xaaabbb", "Xaaa bbb"), ("aabb", "aa bb"), ("aZbbb", "aZ bbb"), ("", " ")],
)
def test_an_edit_spreads_over_the_parts_around_a_picture(words: str, texts: str) -> None:
    content = after(anthropic(said("user", [text("aaa"), PNG, text("bbb")])), "s1", words, "/messages/0/content")
    first, last = texts.split(" ")
    assert content == [text(first), PNG, text(last)]


def test_one_part_can_be_set_alone() -> None:
    before = anthropic(said("user", [text("aaa"), PNG, text("bbb")]))
    assert after(before, "s1", "c", "/messages/0/content/2/text", "s1.p3") == "c"


def test_a_deleted_part_keeps_out_of_an_edit_of_its_section_and_is_restored_by_one_of_its_own() -> None:
    before = anthropic(said("user", [text("aaa"), text("bbb")])).with_edit(Delete(section="s1", part="s1.p1"))
    assert after(before, "s1", "ccc", "/messages/0/content") == [text("ccc")]
    assert after(before, "s1", "x", "/messages/0/content", "s1.p1") == [text("x"), text("bbb")]


OPAQUE = {"type": "container_upload", "file_id": "f1"}


def test_a_message_of_opaque_parts_can_be_given_a_text() -> None:
    before = anthropic(said("user", [OPAQUE]))
    assert before.section("s1").editable
    assert after(before, "s1", "look", "/messages/0/content") == [text("look"), OPAQUE]
    value = {"type": 2, "value": {"a": 1}}
    assert after(raw({"role": 1, "content": [value]}), "s1", "look", "/messages/0/content") == [
        {"type": 1, "text": "look"},
        value,
    ]


def test_an_item_that_is_opaque_as_a_whole_has_no_place_for_a_text() -> None:
    before = responses(ASK, {"type": "image_generation_call", "id": "i1", "status": "completed", "result": "AAAA"})
    assert not before.section("s2").editable
    with pytest.raises(Fault, match="no text of its own"):
        before.with_edit(SetText(section="s2", text="x"))


def test_bare_strings_stay_bare() -> None:
    assert after(anthropic(ASK, system="be good"), "s1", "be better", "/system") == "be better"
    assert after(draft("openai-responses", {"model": "m", "input": "hi"}), "s1", "ho", "/input") == "ho"
    assert after(gemini({"parts": [{"text": "a"}]}, systemInstruction="s"), "s1", "t", "/systemInstruction") == "t"


def test_a_section_of_one_call_or_result_is_edited_as_such() -> None:
    before = anthropic(ASK, *round_of_tools(), ASK)
    assert after(before, "s2", '{"command": "pwd"}', "/messages/1/content/0/input") == {"command": "pwd"}
    assert after(before, "s3", "none", "/messages/2/content/0/content") == "none"
    assert before.with_edit(SetText(section="s2", text='{"command" : "ls"}')) is before, "it says the same"
    with pytest.raises(Fault, match="not JSON"):
        before.with_edit(SetText(section="s2", text="{"))


def test_arguments_that_were_left_out_are_put_in() -> None:
    before = gemini(
        {"parts": [{"text": "a"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f"}}]},
        {"parts": [{"functionResponse": {"name": "f", "response": {}}}]},
    )
    assert after(before, "s2", '{"a":1}', "/contents/1/parts/0/functionCall/args") == {"a": 1}
    assert after(before, "s3", '{"b":1}', "/contents/2/parts/0/functionResponse/response") == {"b": 1}


def test_tools_and_options_are_edited_as_json() -> None:
    before = anthropic(ASK, tools=[{"name": "f", "input_schema": {"type": "object"}}])
    tool = '{"name":"g","input_schema":{"type":"object"}}'
    assert after(before, "s2", tool, "/tools/0/name", "s2.p1") == "g"
    assert after(before, "s3", "200", "/max_tokens", "s3.p2") == 200
    for section in ("s2", "s3"):
        with pytest.raises(Fault, match="no text of its own"):
            before.with_edit(SetText(section=section, text="x"))


@pytest.mark.parametrize(
    ("before", "pointer", "value"),
    [
        (anthropic(said("user", [PNG])), "/messages/0/content", [text("x"), PNG]),
        (chat(said("user", [IMAGE])), "/messages/0/content", [text("x"), IMAGE]),
        (chat(said("assistant", None), ASK), "/messages/0/content", [text("x")]),
        (chat({"role": "assistant"}, ASK), "/messages/0", {"role": "assistant", "content": [text("x")]}),
        (raw({"role": 1, "content": []}), "/messages/0/content", [{"type": 1, "text": "x"}]),
        (responses(said("user", [])), "/input/0/content", [{"type": "input_text", "text": "x"}]),
        (gemini({"role": "user"}), "/contents/0", {"role": "user", "parts": [{"text": "x"}]}),
        (anthropic(ASK, system=[]), "/system", [text("x")]),
    ],
)
def test_a_message_without_words_gets_them_in_front(before: Draft, pointer: str, value: Json) -> None:
    assert before.section("s1").editable
    assert after(before, "s1", "x", pointer) == value
    assert before.with_edit(SetText(section="s1", text="")) is before


def test_where_no_list_could_take_words_it_is_refused() -> None:
    media = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
    with pytest.raises(Fault, match="no list"):
        gemini({"parts": media}).with_edit(SetText(section="s1", text="x"))


def test_sections_of_several_calls_have_no_text() -> None:
    calls = [{"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}} for name in "ab"]
    before = chat(ASK, {"role": "assistant", "tool_calls": calls})
    assert not before.section("s2").editable
    with pytest.raises(Fault, match="no text of its own"):
        before.with_edit(SetText(section="s2", text="x"))


def test_an_edit_may_pass_by_what_is_signed_but_not_touch_it() -> None:
    parts = [{"text": "signed words", "thoughtSignature": "c2ln"}, {"text": " and others"}]
    before = gemini({"parts": [{"text": "a"}]}, {"role": "model", "parts": parts}, {"parts": [{"text": "b"}]})
    assert after(before, "s2", "signed words and more", "/contents/1/parts/1/text") == " and more"
    with pytest.raises(Fault, match="read-only"):
        before.with_edit(SetText(section="s2", text="other words and others"))
    with pytest.raises(Fault, match="read-only"):
        before.with_edit(SetText(section="s2", part="s2.p1", text="other"))
    with pytest.raises(Fault, match="no text that can be edited"):
        anthropic(said("user", [PNG])).with_edit(SetText(section="s1", part="s1.p1", text="x"))
