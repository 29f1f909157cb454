"""Where the words of every kind of part stand, in every dialect."""

from sightline.dialects.dialect import Target
from sightline.dialects.registry import dialect
from sightline.editing.leaves import EditableText, Leaf, as_text, words_of, words_of_option, words_of_tool
from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.parts import Refusal, Thinking, ToolCall
from sightline.model.report import Report
from sightline.model.request import Request
from tests.editing.bodies import said


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


def test_thinking_can_be_edited_where_nobody_sealed_it() -> None:
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
    assert "sealed" in found[1].reason
    assert "elsewhere" in found[2].reason
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    assert not first("openai-chat", {"messages": [said("user", [image])]}).is_editable


def test_tools_and_options_are_json() -> None:
    document: Json = {
        "contents": [],
        "tools": [{"functionDeclarations": [{"name": "f"}], "googleSearch": {}}, {"codeExecution": {}}],
    }
    tools = dialect("gemini").read_request(document).tools
    found = [words_of_tool(tool, document) for tool in tools]
    assert [each.is_editable for each in found] == [True, False, True]
    assert found[1].shown == '{"googleSearch":{}}'
    assert words_of_option("/a", {"b": "é"}).leaves == (Leaf("/a", '{"b":"é"}', is_json=True),)
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
