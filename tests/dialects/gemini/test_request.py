"""Thoughts in pieces, and their signatures."""

import base64
import copy
import json
from typing import Any

import pytest

from sightline.catalog.facts import Facts
from sightline.dialects.dialect import Client, Target
from sightline.dialects.gemini import DIALECT
from sightline.dialects.gemini.parts import for_client, read_signature, sign_calls
from sightline.dialects.gemini.reply_write import StreamWriter
from sightline.dialects.gemini.request import is_followed_by_pieces, read_request, with_joined_thoughts, write_request
from sightline.dialects.signatures import UNCHECKED
from sightline.errors import Code, Fault
from sightline.model.events import Ended, Finished, SignatureReceived, TextReceived, ThinkingReceived
from sightline.model.parts import Opaque, Text, Thinking, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import FunctionTool, Message, Options, Request, ToolChoice
from sightline.wire.sse import SseDecoder
from tests.dialects.reports import added_at, named_losses, refused_at


def write(request, **target):
    report = Report()
    body = write_request(request, Target(**target), report)
    return body, named_losses(report)


def test_leading_instructions_become_the_system_instruction():
    request = Request(
        model="m",
        messages=(
            Message("system", (Text("a"),), at="/0"),
            Message("developer", (Text("b"), Text("", at="/1/t")), at="/1"),
            Message("user", (Text("c"),)),
            Message("user", ()),
        ),
        dialect="openai-chat",
    )
    assert write(request) == (
        {
            "systemInstruction": {"parts": [{"text": "a"}, {"text": "b"}]},
            "contents": [{"role": "user", "parts": [{"text": "c"}]}],
        },
        [
            ("/1", "role developer", "identity"),
            ("/1/t", "an empty text", "identity"),
            ("", "a message without content", "identity"),
        ],
    )


def test_the_items_of_one_turn_are_one_content():
    request = Request(
        messages=(
            Message("user", (Text("a"),)),
            Message("assistant", (Thinking("t"),)),
            Message("assistant", (ToolCall("1", "f", "{}"),)),
            Message("assistant", (ToolCall("2", "g", "{}"),)),
            Message("tool", (ToolResult("1", (Text("x"),)),)),
            Message("tool", (ToolResult("2", (Text("y"),)),)),
        ),
        dialect="openai-responses",
    )
    contents = write(request)[0]["contents"]
    assert [(content["role"], len(content["parts"])) for content in contents] == [
        ("user", 1),
        ("model", 3),
        ("user", 2),
    ]
    assert contents[2]["parts"][1] == {"functionResponse": {"id": "2", "name": "g", "response": {"output": "y"}}}


def test_tools_choice_and_options_have_their_places():
    request = Request(
        messages=(Message("user", (Text("a"),)),),
        tools=(FunctionTool("f"),),
        tool_choice=ToolChoice("required"),
        parallel_tool_calls=False,
        options=Options(seed=1),
        extras={"x": 1},
    )
    assert write(request) == (
        {
            "contents": [{"role": "user", "parts": [{"text": "a"}]}],
            "tools": [{"functionDeclarations": [{"name": "f"}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
            "generationConfig": {"seed": 1},
        },
        [("/parallel_tool_calls", "one call at a time", "option")],
    )
    assert write(Request(messages=request.messages, parallel_tool_calls=True))[1] == []


def test_the_model_is_written_only_where_the_body_named_it():
    document: Any = {"model": "models/a", "contents": []}
    assert write(read_request(document))[0] == document
    assert write(Request(model="a", dialect="gemini"))[0] == {"contents": []}


def test_names_and_ids_of_messages_are_lost_even_where_items_join():
    request = Request(
        messages=(
            Message("user", (Text("a"),), name="Ann", at="/0"),
            Message("assistant", (Thinking("t"),), at="/1"),
            Message("assistant", (Text("b"),), id="msg_1", at="/2"),
        )
    )
    body, lost = write(request)
    assert len(body["contents"]) == 2
    assert lost == [("/0", "name of the speaker", "option"), ("/2", "id of the message", "identity")]


def test_the_flag_against_parallel_calls_is_named_where_it_stood():
    place = {"parallel_tool_calls": "/tool_choice/disable_parallel_tool_use"}
    for tools, severity in (((), "identity"), ((FunctionTool("f"),), "option")):
        request = Request(tools=tools, parallel_tool_calls=False, options=Options(places=place), dialect="anthropic")
        assert write(request)[1][1:] == [("/tool_choice/disable_parallel_tool_use", "one call at a time", severity)]


def test_one_message_for_each_content_and_the_system_instruction_first():
    request = read_request(
        {
            "contents": [
                {"role": "user", "parts": [{"text": "a"}]},
                {"role": "model", "parts": [{"text": "b"}], "new": 1},
                {"parts": []},
            ],
            "systemInstruction": {"parts": [{"text": "s"}]},
        }
    )
    assert request.messages == (
        Message("system", (Text("s", at="/systemInstruction/parts/0"),), at="/systemInstruction"),
        Message("user", (Text("a", at="/contents/0/parts/0"),), at="/contents/0"),
        Message("assistant", (Text("b", at="/contents/1/parts/0"),), at="/contents/1", extras={"new": 1}),
        Message("user", at="/contents/2", extras={"role": None}),
    )
    assert request.dialect == "gemini"


def test_the_short_forms_of_google_s_examples():
    request = read_request({"contents": {"parts": {"text": "a"}}, "system_instruction": {"parts": {"text": "s"}}})
    assert [message.at for message in request.messages] == ["/system_instruction", "/contents"]
    assert request.messages[1].parts == (Text("a", at="/contents/parts"),)
    assert DIALECT.write_request(request, Target(), Report()) == {
        "systemInstruction": {"parts": [{"text": "s"}]},
        "contents": [{"parts": [{"text": "a"}]}],
    }


@pytest.mark.parametrize(
    ("instruction", "parts", "bare", "again"),
    [
        ("s", (Text("s", at="/systemInstruction"),), True, "s"),
        ([{"text": "s"}], (Text("s", at="/systemInstruction/0"),), False, {"parts": [{"text": "s"}]}),
        ({}, (), False, {}),
    ],
)
def test_other_forms_of_the_system_instruction(instruction, parts, bare, again):
    request = read_request({"contents": [], "systemInstruction": instruction})
    assert (request.messages[0].parts, request.messages[0].bare) == (parts, bare)
    written: Any = DIALECT.write_request(request, Target(), Report())
    assert written["systemInstruction"] == again


def test_both_spellings_may_stand_side_by_side():
    document: Any = {
        "contents": [
            {"role": "model", "parts": [{"function_call": {"name": "f", "args": {}}, "thoughtSignature": "S"}]}
        ],
        "generation_config": {
            "max_output_tokens": 5,
            "topK": 3,
            "thinking_config": {"thinking_level": "low", "x_y": 1},
            "speech_config": {},
            "response_mime_type": "application/json",
        },
        "tool_config": {"function_calling_config": {"mode": "ANY"}, "retrieval_config": {}},
        "safety_settings": [],
        "cached_content": "c",
    }
    request = read_request(document)
    assert request.messages[0].parts == (
        ToolCall("", "f", "{}", signature="S", signed_by="gemini", at="/contents/0/parts/0"),
    )
    assert request.tool_choice == ToolChoice("required", at="/tool_config/function_calling_config")
    assert request.extras == {
        "cached_content": "c",
        "generation_config": {"speech_config": {}},
        "tool_config": {"retrieval_config": {}},
    }
    assert request.options.places["max_tokens"] == "/generation_config/max_output_tokens"
    assert DIALECT.write_request(request, Target(), Report()) == {
        "contents": [
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "S"}]}
        ],
        "generationConfig": {
            "maxOutputTokens": 5,
            "topK": 3,
            "thinkingConfig": {"thinkingLevel": "low", "x_y": 1},
            "speech_config": {},
            "responseMimeType": "application/json",
        },
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}, "retrieval_config": {}},
        "safetySettings": [],
        "cachedContent": "c",
    }


@pytest.mark.parametrize(
    "more",
    [
        {"model": "models/gemini-3-pro"},
        {"tools": []},
        {"generationConfig": {}},
        {"generationConfig": {"responseMimeType": "text/x.enum", "responseSchema": {"enum": ["a"]}}},
        {"generationConfig": {"responseJsonSchema": {"type": "object"}, "responseSchema": {"type": "STRING"}}},
        {"toolConfig": {}},
        {"toolConfig": {"functionCallingConfig": {}}},
        {"contents": [{"role": "model"}]},
        {"contents": [{"role": "function", "parts": []}]},
    ],
)
def test_odd_documents_come_back_as_they_were(more):
    document = {"contents": [{"role": "user", "parts": [{"text": "a"}]}], **more}
    request = read_request(document)
    assert DIALECT.write_request(request, Target(), Report()) == document
    assert request.model == document.get("model", "")


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        (None, ""),
        ([], ""),
        ({}, "/contents"),
        ({"contents": "hello"}, "/contents"),
        ({"messages": []}, "/contents"),
        ({"contents": [5]}, "/contents/0"),
        ({"contents": [{"role": "assistant"}]}, "/contents/0/role"),
        ({"contents": [{"role": 5}]}, "/contents/0/role"),
        ({"contents": [{"parts": "a"}]}, "/contents/0/parts"),
        ({"contents": [], "system_instruction": 5}, "/system_instruction"),
        ({"contents": [], "tools": {}}, "/tools"),
        ({"contents": [], "model": 5}, "/model"),
        ({"contents": [], "generation_config": 5}, "/generation_config"),
        ({"contents": [], "toolConfig": []}, "/toolConfig"),
        ({"contents": [], "generationConfig": {"seed": "x"}}, "/generationConfig/seed"),
    ],
)
def test_a_body_that_is_not_of_the_dialect_fails_with_a_pointer(document, pointer):
    with pytest.raises(Fault) as caught:
        read_request(document)
    assert (caught.value.code, caught.value.pointer) == (Code.INVALID_REQUEST, pointer)


ASK = {"role": "user", "parts": [{"text": "go"}]}
A, B = {"text": "a ", "thought": True}, {"text": "b", "thought": True}
SEAL = {"text": "", "thought": True, "thoughtSignature": "c2Vs"}
THINKING_WORDS = {"text": "Hi"}


def model(*parts):
    return {"role": "model", "parts": list(parts)}


def thoughts(*contents):
    request = read_request({"contents": [ASK, *contents, ASK]})
    return [
        (part.text, part.signature, part.at)
        for message in request.messages
        for part in message.parts
        if isinstance(part, Thinking)
    ]


@pytest.mark.parametrize(
    "contents",
    [
        [model(A, B, SEAL, THINKING_WORDS)],
        [model(A), model(B), model(SEAL), model(THINKING_WORDS)],
        [model(A), model(B, SEAL, THINKING_WORDS)],
    ],
)
def test_the_pieces_of_a_thought_are_one_thought_and_go_back_as_they_came(contents):
    document = {"contents": [ASK, *contents, ASK]}
    assert thoughts(*contents) == [("a b", "c2Vs", "/contents/1/parts/0")]
    report = Report()
    assert write_request(read_request(document), Target(), report) == document
    assert not report.losses


@pytest.mark.parametrize(
    ("contents", "texts"),
    [
        ([model(A, THINKING_WORDS, SEAL)], ["a ", ""]),
        ([model(A), ASK, model(SEAL)], ["a ", ""]),
        ([model(A, {**SEAL, "text": "own words"})], ["a ", "own words"]),
        ([model(A, {**SEAL, "extra": 1})], ["a ", ""]),
        ([model(SEAL, SEAL)], ["", ""]),
        ([model(A, B)], ["a ", "b"]),
    ],
)
def test_what_does_not_belong_together_stays_apart(contents, texts):
    assert [text for text, _, _ in thoughts(*contents)] == texts


def test_the_echo_of_a_stream_brings_words_and_a_foreign_signature_back_together():
    writer = StreamWriter(Client(), Report())
    events = [
        ThinkingReceived(0, "let me "),
        ThinkingReceived(0, "see"),
        SignatureReceived(0, "sig", "anthropic"),
        TextReceived(1, "Hi"),
        Finished("stop"),
        Ended(),
    ]
    frames = SseDecoder().feed(b"".join(writer.feed(event) for event in events))
    echoed = [json.loads(frame.data)["candidates"][0]["content"] for frame in frames]
    request = read_request({"contents": [ASK, *(content for content in echoed if content["parts"]), ASK]})
    (whole,) = [part for message in request.messages for part in message.parts if isinstance(part, Thinking)]
    assert (whole.text, whole.signature, whole.signed_by) == ("let me see", "sig", "anthropic")
    # Google itself gets the words, never another provider's signature.
    report = Report()
    body = json.dumps(write_request(request, Target(), report))
    assert "thoughtSignature" not in body
    assert [loss.what for loss in report.losses] == ["signature"]


def test_for_another_dialect_the_pieces_are_silent():
    mirror = Opaque("gemini", {"text": "x", "thought": True}, mirrored=True)
    message = Message("assistant", (Thinking("x"), mirror))
    assert is_followed_by_pieces(message.parts, 0)
    assert not is_followed_by_pieces(message.parts, 1)
    report = Report()
    body = write_request(Request(messages=(message,), dialect="openai-chat"), Target(), report)
    assert body == {"contents": [{"role": "model", "parts": [{"text": "x", "thought": True}]}]}
    assert not report.losses


def test_nothing_to_join_changes_nothing():
    messages = [Message("assistant", (Text("a"),))]
    assert with_joined_thoughts(messages, {}) is messages


def test_an_own_signature_is_carried_exactly():
    assert read_signature({"thoughtSignature": "abc+/="}, "") == ("abc+/=", "gemini", None)
    assert read_signature({"thought_signature": "abc"}, "") == ("abc", "gemini", None)
    assert for_client("abc+/=", "gemini") == "abc+/="
    assert for_client(None, None) is None
    assert read_signature({}, "") == (None, None, None)


def test_a_signature_is_text():
    assert refused_at(read_signature, {"thought_signature": 5}, "/p") == "/p/thought_signature"


@pytest.mark.parametrize("item", [None, "rs_1"])
@pytest.mark.parametrize("signature", ["ErUB??>>~~", None])
def test_a_foreign_signature_travels_wrapped_in_base64_and_comes_back(signature, item):
    sent: Any = for_client(signature, "anthropic", item)
    if signature is None and item is None:
        assert sent is None
        return
    assert base64.b64decode(sent).startswith(b"sightline:anthropic:")
    assert read_signature({"thoughtSignature": sent}, "") == (signature, "anthropic", item)
    # the vendor's SDK answers in the URL-safe alphabet
    safe = sent.replace("+", "-").replace("/", "_")
    assert read_signature({"thoughtSignature": safe}, "") == (signature, "anthropic", item)


@pytest.mark.parametrize("broken", ["c2lnaHRsaW5lO", "c2lnaHRsaW5lOv8="])
def test_something_that_only_looks_wrapped_stays_as_it_is(broken):
    assert read_signature({"thoughtSignature": broken}, "") == (broken, "gemini", None)


def content(role: str, *kinds: str) -> dict[str, Any]:
    return {"role": role, "parts": [{kind: {}} if kind != "text" else {"text": "x"} for kind in kinds]}


def test_the_first_call_of_every_step_is_signed_where_the_model_demands_it() -> None:
    report = Report()
    own = {"functionCall": {}, "thoughtSignature": "b3du"}
    contents: list[Any] = [
        content("user", "text"),
        content("model", "functionCall"),
        content("user", "functionResponse"),
        content("user", "text"),
        content("model", "text", "functionCall", "functionCall"),
        content("user", "functionResponse", "text"),
        {"role": "model", "parts": [own]},
        content("user", "functionResponse"),
        content("model", "text"),
    ]
    before = copy.deepcopy(contents)
    sign_calls(contents, report)
    for index, number in ((1, 0), (4, 1)):  # also in an older turn, which had it while it was the current one
        before[index]["parts"][number]["thoughtSignature"] = UNCHECKED
    assert contents == before
    places = ["/contents/1/parts/0/thoughtSignature", "/contents/4/parts/1/thoughtSignature"]
    assert added_at(report) == places


@pytest.mark.parametrize("facts", [Facts(signed_calls=True), Facts(), None])
def test_only_models_that_check_signatures_get_one(facts: Facts | None) -> None:
    messages = (Message("user", (Text("a"),)), Message("assistant", (ToolCall("c", "f", "{}"),)))
    request = Request("m", (*messages, Message("tool", (ToolResult("c", (Text("x"),)),))))
    body: Any = write_request(request, Target(facts=facts), Report())
    assert ("thoughtSignature" in body["contents"][1]["parts"][0]) is bool(facts and facts.signed_calls)
