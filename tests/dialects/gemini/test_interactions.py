"""Google's interactions: what an answer says, whole and streamed, in its present and its older form."""

import json
from typing import Any

import pytest

from sightline.dialects.endpoint import has_readable_reply, read_raw_reply
from sightline.dialects.gemini.interactions import read_interaction
from sightline.model.fold import fold
from sightline.model.parts import Opaque, Text, Thinking, ToolCall
from sightline.model.reply import Reply, Usage

USAGE = {
    "total_input_tokens": 10, "total_tool_use_tokens": 2, "total_output_tokens": 5, "total_thought_tokens": 3,
    "total_cached_tokens": 4,
}  # fmt: skip
COUNTED = Usage(input_tokens=12, output_tokens=8, cached_tokens=4, reasoning_tokens=3)
WHOLE: dict[str, Any] = {
    "id": "i_1",
    "model": "gemini-3-pro",
    "created": "2026-03-01T10:00:00Z",
    "status": "requires_action",
    "steps": [
        {"type": "user_input", "content": [{"type": "text", "text": "the weather?"}]},
        {"type": "thought", "summary": [{"type": "text", "text": "I look."}], "signature": "c2ln"},
        {"type": "model_output", "content": [{"type": "text", "text": "One moment."}]},
        {"type": "function_call", "id": "c_1", "name": "weather", "arguments": {"city": "Rome"}},
        {"type": "google_search_call", "id": "s_1", "arguments": {"queries": ["rome"]}},
    ],
    "usage": USAGE,
}
CALL = {"type": "function_call", "id": "c", "name": "f", "arguments": {"a": 1}}


def event(kind: str, index: int | None = None, **fields: Any) -> dict[str, Any]:
    return {"event_type": kind, **({} if index is None else {"index": index}), **fields}


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return event("step.delta", index, delta={"type": kind, **fields})


STREAM = [
    event("interaction.created", interaction={"id": "i_1", "model": "gemini-3-pro", "status": "in_progress"}),
    event("step.start", 0, step={"type": "thought"}),
    delta(0, "thought_summary", content={"type": "text", "text": "I "}),
    delta(0, "thought_summary", content={"type": "text", "text": "look."}),
    delta(0, "thought_signature", signature="c2ln"),
    event("step.stop", 0),
    event("step.start", 1, step={"type": "model_output"}),
    delta(1, "text", text="One "),
    delta(1, "text", text="moment."),
    event("step.stop", 1),
    event("step.start", 2, step={"type": "function_call", "id": "c_1", "name": "weather", "arguments": {}}),
    delta(2, "arguments_delta", arguments='{"city":'),
    delta(2, "arguments_delta", arguments='"Rome"}'),
    event("step.stop", 2),
    event("interaction.status_update", interaction_id="i_1", status="requires_action"),
    event("interaction.completed", interaction={"id": "i_1", "status": "requires_action", "usage": USAGE}),
]


def sse(*events: Any) -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(each).encode() for each in events) + b"data: [DONE]\n\n"


def read(data: bytes) -> Reply:
    return fold(read_interaction(data))


def essence(reply: Reply) -> list[tuple[str, ...]]:
    told: list[tuple[str, ...]] = []
    for part in reply.choice.parts:
        match part:
            case Text(text=text):
                told.append(("text", text))
            case Thinking(text=text, signature=signature):
                told.append(("thinking", text, signature or ""))
            case ToolCall(id=name, name=tool, arguments=arguments):
                told.append(("call", name, tool, "".join(arguments.split())))
            case _:
                told.append(("other",))
    return told


TOLD = [("thinking", "I look.", "c2ln"), ("text", "One moment."), ("call", "c_1", "weather", '{"city":"Rome"}')]


def test_a_whole_interaction_is_a_reply() -> None:
    reply = read(json.dumps(WHOLE).encode())
    assert essence(reply) == [*TOLD, ("other",)]
    assert isinstance(reply.choice.parts[-1], Opaque)
    assert (reply.id, reply.model, reply.created) == ("i_1", "gemini-3-pro", 1_772_359_200)
    assert (reply.choice.finish, reply.usage, reply.fault) == ("tool_calls", COUNTED, None)


def test_a_stream_is_the_same_reply() -> None:
    reply = read(sse(*STREAM))
    assert essence(reply) == TOLD
    assert (reply.id, reply.model, reply.choice.finish, reply.usage) == ("i_1", "gemini-3-pro", "tool_calls", COUNTED)


@pytest.mark.parametrize("count", range(len(STREAM)))
def test_what_has_come_of_a_stream_is_told_without_an_end(count: int) -> None:
    reply = read(sse(*STREAM[:count]).removesuffix(b"data: [DONE]\n\n"))
    assert reply.choice.finish is None
    assert len(reply.choice.parts) <= len(TOLD)


def test_the_older_form_has_contents_in_place_of_steps() -> None:
    contents = [
        event("interaction.start", interaction={"id": "i_1", "agent": "deep-research"}),
        event("content.start", 0, content={"type": "text"}),
        event("content.delta", 0, delta={"type": "text", "text": "Hi."}),
        event("content.stop", 0),
        event("content.delta", 1, delta=CALL),
        event("content.stop", 1),
        event("interaction.complete", interaction={"status": "completed"}),
    ]
    streamed = read(sse(*contents))
    outputs = [{"type": "text", "text": "Hi."}, CALL]
    whole = read(json.dumps({"id": "i_1", "status": "completed", "outputs": outputs}).encode())
    assert essence(streamed) == essence(whole) == [("text", "Hi."), ("call", "c", "f", '{"a":1}')]
    assert (streamed.model, streamed.usage, streamed.choice.finish) == ("deep-research", None, "stop")


@pytest.mark.parametrize(
    ("status", "finish"),
    [("completed", "stop"), ("incomplete", "length"), ("cancelled", "cancelled"), ("in_progress", None)],
)
def test_its_status_is_why_it_ended(status: str, finish: str | None) -> None:
    assert read(json.dumps({"id": "i", "status": status}).encode()).choice.finish == finish


@pytest.mark.parametrize(
    "data",
    [
        b'{"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}',
        sse({"event_type": "error", "error": {"code": 429, "message": "slow down"}}),
    ],
    ids=["whole", "streamed"],
)
def test_an_error_is_a_fault(data: bytes) -> None:
    fault = read(data).fault
    assert fault is not None
    assert "slow down" in fault.message


@pytest.mark.parametrize(
    "data", [b"", b"{}", b'{"id": "x"}', b"{broken", b"data: {broken\n\n", b"data: 7\n\n", b"[1]", b"no frame"]
)
def test_anything_else_is_no_reply(data: bytes) -> None:
    assert read_interaction(data) == []


def test_a_call_that_comes_again_goes_on_and_empty_thoughts_say_nothing() -> None:
    again = {**CALL, "arguments": None}
    calls = [event("content.delta", 1, delta=each) for each in (again, CALL)]
    frames = [delta(0, "thought_summary"), delta(0, "text", text=""), *calls]
    assert essence(read(sse(*frames, event("content.stop", 1)))) == [("call", "c", "f", '{"a":1}')]


def test_odd_values_are_passed_over() -> None:
    odd = {"status": "completed", "created": "soon", "steps": [7, {"type": None}, {"type": "thought", "summary": 3},
           {"type": "model_output", "content": [{"type": "text", "text": 5}, {"type": "image", "data": "aGk="}]}],
           "usage": {"total_cached_tokens": 1}}  # fmt: skip
    reply = read(json.dumps(odd).encode())
    assert essence(reply) == [("other",)]
    assert reply.usage == Usage(cached_tokens=1)
    assert reply.created is None


@pytest.mark.parametrize(
    ("path", "is_read"),
    [
        ("/v1beta/interactions", True),
        ("/v1beta/interactions/i_1?stream=true", True),
        ("/v1beta/interactions/i_1/cancel", True),
        ("/v1beta1/projects/p/locations/l/interactions", True),
        ("/v1beta/files", False),
        ("/v1beta/interactions/i_1/other/deep", False),
    ],
)
def test_which_paths_have_interactions(path: str, is_read: bool) -> None:
    assert has_readable_reply(path) is is_read
    assert bool(read_raw_reply(path, json.dumps(WHOLE).encode())) is is_read
