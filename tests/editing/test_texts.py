"""Editing the text of a section or a part."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.dialect import Target
from sightline.dialects.registry import dialect
from sightline.editing.draft import Draft
from sightline.editing.operations import Delete, Edit, Remove, Set, SetText, target_of, with_role
from sightline.editing.section import Option
from sightline.editing.texts import EditableText, Leaf, as_text, divide_over_parts, words_of
from sightline.errors import Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Refusal, Text, Thinking, ToolCall
from sightline.model.report import Report
from sightline.model.request import Message, Request
from sightline.wire.pointer import resolve
from tests.editing.bodies import PNG, anthropic, chat, draft, gemini, raw, responses, round_of_tools, said, text


def words(name: str, document: Json) -> list[EditableText]:
    request = dialect(name).read_request(document)
    return [words_of(part, document, name) for message in request.messages for part in message.parts]


def first(name: str, document: Json) -> EditableText:
    return words(name, document)[0]


def test_texts_stand_as_strings_or_in_a_member() -> None:
    for content, at in (("x", ""), ([{"type": "text", "text": "x"}], "/0/text")):
        found = first("openai-chat", {"messages": [said("user", content)]})
        assert found.leaves == (Leaf(f"/messages/0/content{at}", "x"),)
        assert (found.shown, found.is_editable, found.is_json) == ("x", True, False)


def test_a_refusal_can_be_edited() -> None:
    message = {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}], "refusal": "never"}
    assert [each.leaves[0].pointer for each in words("openai-chat", {"messages": [message]})] == [
        "/messages/0/content/0/refusal",
        "/messages/0/refusal",
    ]


def test_what_the_raw_schema_only_carries_has_no_leaf() -> None:
    request = Request(messages=(Message("assistant", (Refusal("no"), ToolCall("c", "f", "free", "custom"))),))
    document = dialect("raw").write_request(request, Target(), Report())
    assert first("raw", document) == EditableText()


def test_what_is_signed_is_read_only() -> None:
    parts = [{"text": "x", "thoughtSignature": "c2ln"}, {"functionCall": {"name": "f"}, "thoughtSignature": "c2ln"}]
    signed, call = words("gemini", {"contents": [{"role": "model", "parts": parts}]})
    assert signed.shown == "x"
    assert not signed.is_editable
    assert "signed" in call.reason


def test_unsigned_thinking_can_be_edited() -> None:
    sealed = {"type": "thinking", "thinking": "hm", "signature": "s"}
    open_ = {"type": "thinking", "thinking": "hm"}
    found = words("anthropic", {"messages": [said("assistant", [sealed, open_])]})
    assert [each.is_editable for each in found] == [False, True]
    assert found[0].shown == "hm"
    assert found[1].leaves == (Leaf("/messages/0/content/1/thinking", "hm"),)
    message = {"role": "assistant", "content": "x", "reasoning_content": "hm"}
    assert first("openai-chat", {"messages": [message]}).leaves[0].pointer == "/messages/0/reasoning_content"
    pieces = {"type": 2, "value": {"type": "thinking", "thinking": {"text": ["a", "b"]}}}
    whole = {"type": 2, "value": {"type": "thinking", "thinking": {"text": "a"}}}
    found = words("raw", {"messages": [{"role": 2, "content": [pieces, whole]}]})
    assert "pieces" in found[0].reason
    assert found[1].leaves[0].pointer == "/messages/0/content/1/value/thinking/text"


def test_arguments_are_a_string_or_an_object() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    custom = {"id": "d", "type": "custom", "custom": {"name": "g", "input": "free"}}
    found = words("openai-chat", {"messages": [{"role": "assistant", "tool_calls": [call, custom]}]})
    assert [each.leaves[0] for each in found] == [
        Leaf("/messages/0/tool_calls/0/function/arguments", '{"a": 1}'),
        Leaf("/messages/0/tool_calls/1/custom/input", "free"),
    ]
    block = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}
    found = words("anthropic", {"messages": [said("assistant", [block])]})
    assert found[0].leaves == (Leaf("/messages/0/content/0/input", '{"a":1}', is_json=True),)
    assert found[0].is_json


def test_arguments_that_are_left_out_can_be_put_in() -> None:
    parts = [{"functionCall": {"name": "f"}}, {"function_call": {"name": "f", "args": None}}]
    found = words("gemini", {"contents": [{"role": "model", "parts": parts}]})
    assert [each.leaves[0] for each in found] == [
        Leaf("/contents/0/parts/0/functionCall/args", "{}", is_json=True, is_there=False),
        Leaf("/contents/0/parts/1/function_call/args", "{}", is_json=True),
    ]
    call = {"id": "c", "type": "function", "function": {"name": "f"}}
    found = words("openai-chat", {"messages": [{"role": "assistant", "tool_calls": [call]}]})
    assert found[0].leaves == (Leaf("/messages/0/tool_calls/0/function/arguments", "", is_there=False),)
    assert words_of(ToolCall("c", "f", "{}", at="/x"), {"x": {}}, "openai-chat").leaves == ()


def test_results_are_their_texts_or_their_object() -> None:
    block = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "a"}, {"type": "x"}]}
    found = first("anthropic", {"messages": [said("user", [block])]})
    assert found.leaves == (Leaf("/messages/0/content/0/content/0/text", "a"),)
    answers = [
        {"functionResponse": {"name": "f", "response": {"output": "a"}}},
        {"functionResponse": {"name": "f", "response": {"b": 1}}},
        {"functionResponse": {"name": "f"}},
    ]
    found_all = words("gemini", {"contents": [{"role": "user", "parts": answers}]})
    assert [each.leaves for each in found_all] == [
        (Leaf("/contents/0/parts/0/functionResponse/response/output", "a"),),
        (Leaf("/contents/0/parts/1/functionResponse/response", '{"b":1}', is_json=True),),
        (),
    ]


def test_what_only_its_dialect_knows_is_json() -> None:
    items = [
        {"type": "web_search_call", "id": "w"},
        {"type": "compaction", "encrypted_content": "x"},
        {"type": "additional_tools", "tools": []},
    ]
    found = words("openai-responses", {"input": items})
    assert found[0].leaves == (Leaf("/input/0", '{"type":"web_search_call","id":"w"}', is_json=True),)
    assert "signed" in found[1].reason
    assert "elsewhere" in found[2].reason
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    assert not first("openai-chat", {"messages": [said("user", [image])]}).is_editable


def test_tools_and_options_are_json() -> None:
    document: Json = {
        "contents": [],
        "tools": [{"functionDeclarations": [{"name": "f"}], "googleSearch": {}}, {"codeExecution": {}}],
    }
    tools = dialect("gemini").read_request(document).tools
    found = [words_of(tool, document, "gemini") for tool in tools]
    assert [each.is_editable for each in found] == [True, False, True]
    assert found[1].shown == '{"googleSearch":{}}'
    assert words_of(Option("/a", {"b": "é"}), {}, "gemini").leaves == (Leaf("/a", '{"b":"é"}', is_json=True),)
    assert as_text("\ud800") == '"\\ud800"'
    assert words_of(Thinking("x", at="/a"), {"a": {"b": "y"}}, "openai-chat").shown == "x"


def test_calls_and_results_of_built_in_tools_are_edited_in_their_own_fields() -> None:
    items: list[Json] = [
        {"type": "shell_call", "call_id": "a", "action": {"commands": []}},
        {"type": "shell_call_output", "call_id": "a", "output": [{"stdout": "x"}]},
        {"type": "computer_call", "call_id": "b", "actions": [{"type": "wait"}]},
        {"type": "computer_call_output", "call_id": "b", "output": {"type": "computer_screenshot", "file_id": "f"}},
        {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file"}},
        {"type": "apply_patch_call_output", "call_id": "c", "status": "completed"},
        {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "no"},
        {"type": "tool_search_output", "execution": "client", "call_id": "d", "tools": []},
    ]
    found = words("openai-responses", {"input": items})
    assert [each.leaves[0] if each.leaves else each.reason for each in found] == [
        Leaf("/input/0/action", '{"commands":[]}', is_json=True),
        Leaf("/input/1/output", '[{"stdout":"x"}]', is_json=True),
        Leaf("/input/2/actions", '[{"type":"wait"}]', is_json=True),
        Leaf("/input/3/output", '{"type":"computer_screenshot","file_id":"f"}', is_json=True),
        Leaf("/input/4/operation", '{"type":"delete_file"}', is_json=True),
        Leaf("/input/5/output", "", is_there=False),
        Leaf("/input/6/output", "no"),
        Leaf("/input/7/tools", "[]", is_json=True),
    ]


OTHER = "other words " * 30


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        (["aaa", "bbb"], "aaabbb", ["aaa", "bbb"]),
        (["aaa", "bbb"], "aaaXbbb", ["aaaX", "bbb"]),
        (["aaa", "bbb"], "aaabbbX", ["aaa", "bbbX"]),
        (["aaa", "bbb"], "Xaaabbb", ["Xaaa", "bbb"]),
        (["aaa", "bbb"], "aabb", ["aa", "bb"]),
        (["aaa", "bbb"], "aZbbb", ["aZ", "bbb"]),
        (["aaa", "bbb"], "", ["", ""]),
        (["aaa", "bbb"], "updated aggregate text", ["updated aggregate text", ""]),
        (["aaa"], "quite another", ["quite another"]),
        # Several hunks go to several parts, one over three parts belongs to the first.
        (["a b c d", "e f g h"], "a X c de Y g h", ["a X c d", "e Y g h"]),
        (["long head ", "middle", " long tail"], "long heXg tail", ["long heX", "", "g tail"]),
        # An insertion goes to the left, also before other changes of a part, and past an empty one.
        (["aaa", "bcbb"], "aaaXbYbb", ["aaaX", "bYbb"]),
        (["aaa", "", "bbb"], "aaaXbbb", ["aaaX", "", "bbb"]),
        (["", "aaa"], "Xaaa", ["X", "aaa"]),
        # A rewrite leaves the parts at both ends that are in it too.
        (["Hello.", "abc", "def", "Bye."], f"Hello.{OTHER}Bye.", ["Hello.", OTHER, "", "Bye."]),
        (["First.", "Last."], "Something else, and longer too", ["Something else, and longer too", ""]),
        (["x", "y"], f"x{OTHER}", ["x", OTHER]),
        (["ab", "ab"], f"ab{'z' * 25}ab", [f"ab{'z' * 25}", "ab"]),
    ],
)
def test_the_worked_values(old: list[str], new: str, parts: list[str]) -> None:
    assert divide_over_parts(old, new) == parts


def lines(random: Random, count: int) -> list[str]:
    return [" ".join(random.choices(("alpha", "beta", "gamma", "delta"), k=12)) + "\n" for _ in range(count)]


def test_long_texts_are_compared_by_lines_first() -> None:
    random = Random(7)
    one, two = lines(random, 200), lines(random, 200)
    changed = [*one[:50], "new line\n", *one[51:], *two[:100], *two[110:]]
    parts = divide_over_parts(["".join(one), "".join(two)], "".join(changed))
    assert parts == ["".join([*one[:50], "new line\n", *one[51:]]), "".join([*two[:100], *two[110:]])]


def test_a_long_change_within_a_long_text_is_one_hunk() -> None:
    random = Random(8)
    one, two, new = lines(random, 100), lines(random, 100), "x" * 5000 + "\n"
    parts = divide_over_parts(
        ["".join(one), "".join(two)], "".join([one[0], new, *one[2:], *two[:50], "!\n", *two[51:]])
    )
    assert parts == ["".join([one[0], new, *one[2:]]), "".join([*two[:50], "!\n", *two[51:]])]


def test_too_many_lines_are_not_compared() -> None:
    one, two = ["\n"] * 3000, ["a\n"] * 3000
    new = "b" + "".join(one) + "c\n" + "".join(two[:-1])
    parts = divide_over_parts(["".join(one), "".join(two)], new)
    assert "".join(parts) == new


@given(st.lists(st.text("ab ", max_size=6), min_size=1, max_size=4), st.text("abX ", max_size=20))
def test_nothing_is_lost_and_no_part_vanishes(old: list[str], new: str) -> None:
    parts = divide_over_parts(old, new)
    assert "".join(parts) == new
    assert len(parts) == len(old)
    assert divide_over_parts(parts, new) == parts


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


WORDS = Message("user", (Text("x"),))


@pytest.mark.parametrize(
    ("name", "item", "role", "changed"),
    [
        ("openai-chat", {"role": "user", "content": "x"}, "developer", {"role": "developer"}),
        ("openai-chat", {"role": "user", "content": "x"}, "user", {}),
        ("gemini", {"parts": []}, "assistant", {"role": "model"}),
        ("raw", {"role": 1, "content": []}, "assistant", {"role": 2}),
        ("openai-responses", {"role": "user", "content": "x"}, "assistant", {"role": "assistant"}),
        ("openai-responses", {"role": "user", "content": [1]}, "assistant", {"role": "assistant"}),
        (
            "openai-responses",
            {"role": "user", "content": [{"type": "input_text", "text": "x"}, {"type": "input_image"}]},
            "assistant",
            {
                "role": "assistant",
                "content": [{"type": "output_text", "text": "x", "annotations": []}, {"type": "input_image"}],
            },
        ),
        (
            "openai-responses",
            {"role": "assistant", "content": [{"type": "output_text", "text": "x", "annotations": [], "logprobs": []}]},
            "user",
            {"role": "user", "content": [{"type": "input_text", "text": "x"}]},
        ),
        (
            "openai-responses",
            {"role": "user", "content": [{"type": "input_text", "text": "x"}]},
            "system",
            {"role": "system"},
        ),
    ],
)
def test_another_role(name: str, item: JsonObject, role: str, changed: JsonObject) -> None:
    assert with_role(name, WORDS, item, role) == changed


@pytest.mark.parametrize(
    ("name", "message", "item", "role"),
    [
        ("gemini", WORDS, {"role": "user"}, "system"),
        ("raw", WORDS, {"role": 1}, "tool"),
        ("openai-chat", Message("assistant", (ToolCall("c", "f", "{}"),)), {"role": "assistant"}, "user"),
        ("openai-responses", WORDS, {"type": "compaction"}, "user"),
    ],
)
def test_a_role_that_cannot_be_given(name: str, message: Message, item: JsonObject, role: str) -> None:
    with pytest.raises(Fault) as refused:
        with_role(name, message, item, role)
    assert refused.value.status == 422


TOOL = {"name": "f", "input_schema": {"type": "object"}}
DRAFT = anthropic(said("user", [text("a"), PNG, text("b")]), tools=[TOOL, {**TOOL, "name": "g"}])


def test_ids_name_places() -> None:
    whole = DRAFT.whole
    assert target_of(whole, "s1", None).places == ("/messages/0",)
    assert target_of(whole, "s1", "s1.p2").places == ("/messages/0/content/1",)
    assert target_of(whole, "s2", None).places == ("/tools/0", "/tools/1")
    assert target_of(whole, "s2", "s2.p2").places == ("/tools/1",)
    assert target_of(whole, "s3", None).places == ()
    assert target_of(whole, "s3", "s3.p1").places == ("/model",)


@pytest.mark.parametrize(("section", "part"), [("s9", None), ("", None), ("s1", "s1.p9"), ("s1", "s2.p1")])
def test_ids_that_name_nothing_are_refused(section: str, part: str | None) -> None:
    with pytest.raises(Fault) as refused:
        target_of(DRAFT.whole, section, part)
    assert refused.value.status == 422


@pytest.mark.parametrize(
    ("edit", "section", "part"),
    [
        (Set(pointer="/messages/0/content", value=[text("x")]), "s1", "s1.p2"),
        (Set(pointer="/tools", value=[TOOL]), "s2", "s2.p2"),
        (Remove(pointer="/tools/1"), "s2", "s2.p2"),
        (Set(pointer="", value={"messages": [said("user", "x")], "max_tokens": 1}), "s3", "s3.p1"),
        (Remove(pointer="/model"), "s3", "s3.p1"),
    ],
)
def test_what_is_no_more_has_no_target(edit: Edit, section: str, part: str) -> None:
    with pytest.raises(Fault):
        target_of(DRAFT.with_edit(edit).whole, section, part)


def test_while_nothing_can_be_read_there_is_one_section() -> None:
    broken = DRAFT.with_edit(Set(pointer="/messages", value=5))
    assert [section.kind for section in broken.sections] == ["other"]
    with pytest.raises(Fault):
        target_of(broken.whole, "s1", None)
    assert target_of(broken.whole, broken.sections[0].id, None).places == ()
