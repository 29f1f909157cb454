import json
from typing import Any

import pytest

from sightline.dialects.openai_chat.reply_read import read_plain
from sightline.dialects.openai_chat.usage import read_counts
from sightline.errors import Code
from sightline.model.events import Ended, Failed, FieldReceived, Finished, Started
from sightline.model.parts import Audio, Inline, Opaque, Refusal, Text, Thinking, ToolCall
from sightline.model.reply import Usage
from tests.dialects.openai_chat.telling import fold, read_reply, whole
from tests.dialects.reports import refused_at

AT = "/choices/0/message"


def test_a_plain_answer():
    reply = whole(
        {"role": "assistant", "content": "hi"},
        id="chatcmpl-1",
        model="m",
        created=7,
        usage={"prompt_tokens": 1, "completion_tokens": 2},
    )
    assert reply.choice.parts == (Text("hi", at=f"{AT}/content"),)
    assert (reply.choice.finish, reply.id, reply.model, reply.created) == ("stop", "chatcmpl-1", "m", 7)
    assert reply.usage == Usage(input_tokens=1, output_tokens=2, at="/usage")


def test_reasoning_words_refusal_sound_and_calls_in_the_order_of_their_making():
    reply = whole(
        {
            "content": "w",
            "reasoning_content": "hm",
            "refusal": "no",
            "audio": {"id": "a", "data": "AA==", "transcript": "t", "expires_at": 1},
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        }
    )
    assert reply.choice.parts == (
        Thinking("hm", at=f"{AT}/reasoning_content"),
        Text("w", at=f"{AT}/content"),
        Refusal("no", at=f"{AT}/refusal"),
        Audio(Inline("application/octet-stream", "AA=="), "a", "t", at=f"{AT}/audio", extras={"expires_at": 1}),
        ToolCall("c", "f", "{}", at=f"{AT}/tool_calls/0"),
    )
    assert reply.choice.finish == "tool_calls"


def test_calls_of_every_kind():
    signed = {"google": {"thought_signature": "s"}}
    odd: Any = {"type": "mcp", "mcp": {}}
    reply = whole(
        {
            "tool_calls": [
                {"type": "function", "function": {"name": "f"}, "extra_content": signed, "x": 1},
                {"id": "c", "type": "custom", "custom": {"name": "g", "input": "text"}},
                odd,
            ],
            "function_call": {"name": "old", "arguments": "{}"},
            "audio": {"transcript": "t"},
        },
        "function_call",
    )
    assert reply.choice.parts == (
        Audio(transcript="t", at=f"{AT}/audio"),
        ToolCall("", "f", "", signature="s", signed_by="gemini", at=f"{AT}/tool_calls/0"),
        ToolCall("c", "g", "text", kind="custom", at=f"{AT}/tool_calls/1"),
        Opaque("openai-chat", odd, at=f"{AT}/tool_calls/2"),
        ToolCall("", "old", "{}", at=f"{AT}/function_call"),
    )
    assert [field.at for field in reply.unmodelled] == [f"{AT}/tool_calls/0/x"]
    assert reply.choice.detail == "function_call"


def test_unmodelled_fields_are_reported_with_their_path():
    events = read_reply(
        {
            "object": "chat.completion",
            "choices": [{"message": {"content": None, "role": "tool", "x": 1}, "finish_reason": "stop", "seed": 7}],
        }
    )
    fields = {event.at: event.value for event in events if isinstance(event, FieldReceived)}
    assert fields == {"/object": "chat.completion", f"{AT}/role": "tool", f"{AT}/x": 1, "/choices/0/seed": 7}
    assert events[-2:] == [Finished("stop", at="/choices/0/finish_reason"), Ended()]


def test_several_choices_keep_their_numbers_and_logprobs():
    token = {"token": "a", "logprob": -1.0}
    reply = fold(
        read_reply(
            {
                "choices": [
                    {"index": 1, "message": {"content": "b"}, "finish_reason": "length"},
                    {"index": 0, "message": {"content": "a"}, "logprobs": {"content": [token]}, "finish_reason": None},
                ]
            }
        )
    )
    assert [choice.parts[0].text for choice in reply.choices] == ["a", "b"]
    assert [choice.finish for choice in reply.choices] == ["stop", "length"]
    assert [len(choice.logprobs) for choice in reply.choices] == [1, 0]


def test_a_completion_of_the_older_api_has_its_text_beside_the_choice():
    reply = fold(read_reply({"choices": [{"text": "old", "index": 0, "finish_reason": "stop"}]}))
    assert reply.choice.parts[0].text == "old"


def test_identity_that_a_server_does_not_know_is_none():
    message = {"message": {"content": "a"}}
    assert read_reply({"id": "", "model": "", "created": 0, "choices": [message]})[0] == Started()
    assert read_reply({"created": 1700000000.25, "choices": [message]})[0] == Started(
        created=1700000000, places={"created": "/created"}
    )


def test_sound_is_what_its_bytes_say():
    def kind(data):
        return whole({"audio": {"data": data}}).choice.parts[0].source.media_type

    assert [kind(data) for data in ("UklGRiQAAABXQVZF", "SUQzBAAA", "ZkxhQwAA", "T2dnUwAC", "AAAA")] == [
        "audio/wav",
        "audio/mpeg",
        "audio/flac",
        "audio/ogg",
        "application/octet-stream",
    ]


def test_calls_without_ids_have_none():
    call: Any = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
    reply = whole({"tool_calls": [call, {**call, "id": ""}]}, "tool_calls", id="chatcmpl-1")
    assert [part.id for part in reply.choice.tool_calls] == ["", ""]


def test_a_reply_that_failed_still_tells_its_counts():
    body: Any = {"choices": [{"message": {"content": "a"}, "finish_reason": "error"}], "usage": {"prompt_tokens": 1}}
    reply = fold(read_reply(body))
    assert (reply.choice.finish, reply.usage.input_tokens) == ("error", 1)


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}},
        {"object": "error", "message": "Rate limit reached", "type": "rate_limit_error"},
        {"error": {"message": "Rate limit reached", "code": 429}, "choices": []},
        {"message": "Rate limit reached", "code": 429},
        {"id": "req_1", "message": "Rate limit reached", "code": "429", "choices": []},
    ],
)
def test_an_error_body_is_a_failure(body):
    failed, ended = read_reply(body)
    assert (failed.fault.code, failed.fault.message, ended) == (Code.RATE_LIMITED, "Rate limit reached", Ended())


@pytest.mark.parametrize(
    "choice",
    [
        {"message": {"content": "part"}, "finish_reason": "error"},
        {"message": {"content": "part"}, "finish_reason": "insufficient_system_resource"},
        {"message": {"content": "part"}, "finish_reason": "stop", "error": {"message": "died", "code": 502}},
    ],
)
def test_an_answer_that_its_server_calls_broken_is_no_success(choice):
    events = read_reply({"choices": [choice, {"message": {"content": "other"}}]})
    assert isinstance(events[-2], Failed)
    reply = fold(events)
    assert (reply.choice.finish, reply.choice.parts[0].text) == ("error", "part")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ([], ""),
        ({}, "/choices"),
        ({"choices": []}, "/choices"),
        ({"choices": ["a"]}, "/choices/0"),
        ({"choices": [{}]}, "/choices/0/message"),
        ({"choices": [{"message": {"content": 1}}]}, f"{AT}/content"),
        ({"choices": [{"index": -1, "message": {}}]}, "/choices/0/index"),
        ({"choices": [{"message": {}}], "usage": 3}, "/usage"),
    ],
)
def test_what_is_no_reply_of_this_dialect_is_a_fault_with_its_place(body, pointer):
    assert refused_at(read_reply, body) == pointer


PLAIN: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 7,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "hi", "refusal": None, "annotations": []},
            "logprobs": None,
            "finish_reason": "length",
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, "a/b": 1},
    "x/y": 1,
}


def changed(pointer: str, value: Any) -> dict[str, Any]:
    document: Any = json.loads(json.dumps(PLAIN))
    *parents, last = pointer[1:].split("/")
    place = document
    for key in parents:
        place = place[int(key) if key.isdigit() else key]
    place[last] = value
    return document  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/id", ""),
        ("/usage", None),
        ("/error", None),
        ("/choices/0/message", {"role": "assistant", "content": "hi"}),
        ("/choices/0/message/tool_calls", []),
        ("/choices/0/message/reasoning_content", None),
        ("/choices/0/finish_reason", "a word of its own"),
    ],
)
def test_a_reply_that_is_one_text_is_read_at_once_as_by_its_events(pointer: str, value: Any) -> None:
    document = changed(pointer, value)
    assert read_plain(document, "openai-chat") == fold(read_reply(document), "openai-chat")


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/error", {}),
        ("/choices", None),
        ("/choices", []),
        ("/choices/0/index", 1),
        ("/choices/0/index", False),
        ("/choices/0/text", "hi"),
        ("/choices/0/logprobs", {"content": []}),
        ("/choices/0/logprobs", {}),
        ("/choices/0/message", None),
        ("/choices/0/message/content", ""),
        ("/choices/0/message/content", [{"type": "text", "text": "hi"}]),
        ("/choices/0/message/role", "user"),
        ("/choices/0/message/refusal", "no"),
        ("/choices/0/message/more", None),
        ("/choices/0/message/audio", []),
        ("/choices/0/message/reasoning_content", []),
        ("/choices/0/finish_reason", None),
        ("/choices/0/finish_reason", ""),
        ("/choices/0/finish_reason", "error"),
    ],
)
def test_any_other_reply_is_left_to_its_events(pointer: str, value: Any) -> None:
    assert read_plain(changed(pointer, value), "openai-chat") is None
    assert read_plain([PLAIN], "openai-chat") is None
    assert read_plain({**PLAIN, "choices": ["hi"]}, "openai-chat") is None


def test_counts_are_read_under_the_names_of_either_api() -> None:
    holder = {"in_tokens": 3, "out_tokens": 4, "out_tokens_details": {"reasoning_tokens": 2}}
    counts = read_counts(holder, "/usage", "in_tokens", "out_tokens")
    assert (counts.input_tokens, counts.output_tokens, counts.reasoning_tokens) == (3, 4, 2)
