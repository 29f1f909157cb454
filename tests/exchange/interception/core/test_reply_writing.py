import json
from typing import Any

import pytest

from sightline.dialects.dialect import Client
from sightline.errors import Code, Fault
from sightline.exchange.interception.core.reply_writing import (
    events_of,
    failure_frame,
    hand_written,
    write_failed_stream,
    write_reply,
)
from sightline.model.fold import fold
from sightline.model.parts import Text, ToolCall
from sightline.model.reply import Choice, Reply, TokenLogprob, Usage, reply_json
from tests.reply_samples import heard

DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini", "raw")
TOLD: dict[str, Any] = {
    "role": "assistant",
    "parts": [
        {"type": "text", "text": "I look."},
        {"type": "tool_call", "id": "c1", "name": "Bash", "arguments": '{"command":"ls"}'},
    ],
    "usage": {"input_tokens": 3, "output_tokens": 2},
    "model": "by-hand",
    "id": "r1",
}
CLIENT = Client(id="x_1", model="m", created=7)


def written(told: Any) -> Reply:
    return hand_written(told, model="m", name="x_1", created=7)


@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize("spoken", DIALECTS)
def test_a_client_hears_what_a_person_wrote(spoken: str, is_stream: bool) -> None:
    reply = heard(spoken, write_reply(written(TOLD), spoken, CLIENT, is_stream=is_stream))
    assert reply.fault is None
    assert [part.text for part in reply.choice.parts if isinstance(part, Text)] == ["I look."]
    (call,) = reply.choice.tool_calls
    assert (call.name, json.loads(call.arguments)) == ("Bash", {"command": "ls"})
    assert reply.choice.finish == "tool_calls"


@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize("spoken", DIALECTS)
def test_a_few_words_are_enough(spoken: str, is_stream: bool) -> None:
    reply = written({"parts": [{"type": "text", "text": "No."}]})
    assert (reply.id, reply.model, reply.created, reply.choice.finish) == ("x_1", "m", 7, "stop")
    again = heard(spoken, write_reply(reply, spoken, CLIENT, is_stream=is_stream))
    assert (again.fault, again.choice.finish) == (None, "stop")


def test_a_call_without_an_id_gets_one_and_the_finish_agrees_with_the_calls() -> None:
    call = {"type": "tool_call", "name": "Read", "arguments": "{}"}
    reply = written({"parts": [call, call], "finish": "stop"})
    assert [each.id for each in reply.choice.tool_calls] == ["call_1_1", "call_1_2"]
    assert reply.choice.finish == "tool_calls"


def test_a_folded_reply_is_read_back() -> None:
    reply = written(TOLD)
    assert written(reply_json(reply)) == reply


def test_a_custom_call_stays_one() -> None:
    reply = written({"parts": [{"type": "tool_call", "id": "c", "name": "sh", "arguments": "ls", "kind": "custom"}]})
    again = fold(events_of(reply))
    assert again.choice.tool_calls == (ToolCall("c", "sh", "ls", kind="custom"),)


@pytest.mark.parametrize("spoken", DIALECTS)
def test_a_call_with_nothing_to_say_has_an_empty_object(spoken: str) -> None:
    reply = written({"parts": [{"type": "tool_call", "name": "now", "arguments": ""}]})
    (call,) = heard(spoken, write_reply(reply, spoken, CLIENT, is_stream=True)).choice.tool_calls
    assert call.arguments == "{}"


def test_all_choices_and_their_logprobs_are_written() -> None:
    odds = (TokenLogprob("a", -0.5),)
    choices = (
        Choice(parts=(Text("a"),), finish="stop", logprobs=odds),
        Choice(parts=(Text("b"),), finish="length", detail="max", stop_sequence="!"),
        Choice(),
    )
    reply = Reply(choices=choices, usage=Usage(input_tokens=1))
    again = fold(events_of(reply))
    assert again.choices[:2] == choices[:2]
    assert again.choices[2].finish == "stop"


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (3, "no reply"),
        ({}, "parts"),
        ({"parts": []}, "no parts"),
        ({"parts": ["hi"]}, "no reply"),
        ({"parts": [{"type": "song"}]}, "song"),
        ({"parts": [{"type": "tool_call", "name": "a", "arguments": {"b": 1}}]}, "arguments"),
        ({"parts": [{"type": "tool_call", "name": "Bash", "arguments": "{"}]}, "'Bash' are not a JSON object"),
        ({"parts": [{"type": "tool_call", "name": "Bash", "arguments": "[1]"}]}, "'Bash' are not a JSON object"),
        ({"parts": [{"type": "text", "text": "a"}], "finish": "error"}, "drop the request"),
        ({"parts": [{"type": "text", "text": "a"}], "fault": {}}, "fault"),
        ({"parts": [{"type": "\ud800"}]}, "no reply"),
    ],
)
def test_what_is_no_reply_is_refused(told: Any, words: str) -> None:
    with pytest.raises(Fault, match=words) as caught:
        written(told)
    assert (caught.value.status, bool(caught.value.hint)) == (422, True)


@pytest.mark.parametrize("spoken", DIALECTS)
def test_a_stream_may_say_nothing_but_that_it_failed(spoken: str) -> None:
    reply = heard(spoken, write_failed_stream(Fault(Code.INVALID_REQUEST, "it was dropped"), spoken, CLIENT))
    assert "it was dropped" in reply.fault.message


@pytest.mark.parametrize("spoken", DIALECTS)
def test_one_frame_says_that_a_stream_has_failed(spoken: str) -> None:
    frame = failure_frame(spoken, Fault(Code.NETWORK, "gone"), Reply(id="r_9"), b"")
    assert frame.count(b"data: ") == 1
    assert frame.endswith(b"\n\n")
    assert b"gone" in frame


def test_frames_that_are_numbered_go_on_to_be() -> None:
    last = b'data: {"type":"response.output_text.delta","sequence_number":4}\n\n'
    frame = failure_frame("openai-responses", Fault(Code.NETWORK, "gone"), Reply(id="r_9"), last)
    assert b"event: response.failed" in frame
    assert b'"sequence_number":5' in frame
    assert b'"id":"r_9"' in frame
