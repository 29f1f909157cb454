"""An agent's turn from provider bytes to the next prompt: words, two edits of files, and what came of them.

The streams are written as each provider sends them; every byte boundary gives the same turn.
"""

import json

import msgspec
import pytest

from sightline.agent.core.run import ToolLoop
from sightline.agent.core.steps import AskModel, Replied, Use, Used
from sightline.agent.core.tool import text_outcome
from sightline.dialects.dialect import Target
from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.dialects.translate import restore_names, write_request
from sightline.model.fold import fold
from sightline.model.json import Json
from sightline.model.parts import Thinking, ToolCall, ToolResult
from sightline.model.reply import Reply
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.wire.jsontext import decode
from tests.loop_stage import EDIT, errors, plan

PROVIDERS = ("openai-chat", "openai-responses", "anthropic", "gemini")
WORDS = ("I'll make two changes:", "\n1. Add a multiply function to test.js")
FIRST = {"filePath": "/path/test.js", "code": "function multiply(a,b) { return a*b; }"}
SECOND = {"filePath": "/path/server.js", "code": "...dad jokes..."}
IDS = ("tooluse_448k6WHnTpS28K0Bd1bhgA", "tooluse_2SRF2HShTXOoLdGrjWuGiw")
ANSWERS = ("Added multiply function to /path/test.js", "Modified /path/server.js")
SEAL = "RXFRQkNrWUlCeGdDS2tE"


def frames(*events: Json, named: bool = False, done: bool = False) -> bytes:
    """These events as a stream."""
    out = b""
    for event in events:
        out += f"event: {event['type']}\n".encode() if named else b""
        out += b"data: " + json.dumps(event).encode() + b"\n\n"
    return out + (b"data: [DONE]\n\n" if done else b"")


def halves(arguments: dict[str, str]) -> tuple[str, str]:
    text = json.dumps(arguments)
    return text[:20], text[20:]


def anthropic() -> bytes:
    def block(index: int, start: Json, *deltas: Json) -> list[Json]:
        return [
            {"type": "content_block_start", "index": index, "content_block": start},
            *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": index},
        ]

    def tool(index: int, call_id: str, arguments: dict[str, str]) -> list[Json]:
        start = {"type": "tool_use", "id": call_id, "name": "edit_file", "input": {}}
        pieces = [{"type": "input_json_delta", "partial_json": piece} for piece in halves(arguments)]
        return block(index, start, *pieces)

    begun = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-v1", "content": []}
    thought = [{"type": "thinking_delta", "thinking": "Two files."}, {"type": "signature_delta", "signature": SEAL}]
    return frames(
        {"type": "message_start", "message": {**begun, "usage": {"input_tokens": 20, "output_tokens": 1}}},
        *block(0, {"type": "thinking", "thinking": "", "signature": ""}, *thought),
        *block(1, {"type": "text", "text": ""}, *({"type": "text_delta", "text": text} for text in WORDS)),
        *tool(2, IDS[0], FIRST),
        *tool(3, IDS[1], SECOND),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 40}},
        {"type": "message_stop"},
        named=True,
    )


def openai_chat() -> bytes:
    def chunk(delta: Json, finish: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}

    def tool(index: int, call_id: str, arguments: dict[str, str]) -> list[Json]:
        head, tail = halves(arguments)
        begun = {"name": "edit_file", "arguments": head}
        return [
            chunk({"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": begun}]}),
            chunk({"tool_calls": [{"index": index, "function": {"arguments": tail}}]}),
        ]

    return frames(
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "Two files."}),
        *(chunk({"content": text}) for text in WORDS),
        *tool(0, IDS[0], FIRST),
        *tool(1, IDS[1], SECOND),
        chunk({}, "tool_calls"),
        done=True,
    )


def openai_responses() -> bytes:
    def item(index: int, value: dict[str, Json], *deltas: dict[str, Json]) -> list[Json]:
        place = {"output_index": index, "item_id": value["id"]}
        return [
            {"type": "response.output_item.added", "output_index": index, "item": value},
            *({**delta, **place} for delta in deltas),
        ]

    reasoning: dict[str, Json] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SEAL}
    content: Json = [{"type": "output_text", "text": "".join(WORDS), "annotations": []}]
    message: dict[str, Json] = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    events: list[Json] = [{"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}]
    events += [*item(0, reasoning), {"type": "response.output_item.done", "output_index": 0, "item": reasoning}]
    said_: list[dict[str, Json]] = [
        {"type": "response.output_text.delta", "content_index": 0, "delta": text} for text in WORDS
    ]
    events += item(1, {**message, "content": []}, *said_)
    output: list[Json] = [reasoning, {**message, "content": content}]
    events.append({"type": "response.output_item.done", "output_index": 1, "item": output[1]})
    for index, (call_id, arguments) in enumerate(zip(IDS, (FIRST, SECOND), strict=True), 2):
        call: dict[str, Json] = {"type": "function_call", "id": f"fc_{index}", "call_id": call_id, "name": "edit_file"}
        pieces: list[dict[str, Json]] = [
            {"type": "response.function_call_arguments.delta", "delta": piece} for piece in halves(arguments)
        ]
        events += item(index, {**call, "arguments": ""}, *pieces)
        output.append({**call, "arguments": json.dumps(arguments), "status": "completed"})
        events.append({"type": "response.output_item.done", "output_index": index, "item": output[-1]})
    events.append({"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": output}})
    return frames(*events, named=True)


def gemini() -> bytes:
    def content(*parts: Json, finish: str | None = None) -> Json:
        candidate: dict[str, Json] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
        return {"candidates": [candidate | ({"finishReason": finish} if finish else {})], "responseId": "r"}

    def call(arguments: dict[str, str], call_id: str) -> dict[str, Json]:
        return {"functionCall": {"id": call_id, "name": "edit_file", "args": dict(arguments)}}

    return frames(
        *(content({"text": text}) for text in WORDS),
        content({**call(FIRST, IDS[0]), "thoughtSignature": SEAL}),
        content(call(SECOND, IDS[1]), finish="STOP"),
    )


STREAMS = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
    "gemini": gemini,
}

QUESTION = "Add a multiply function and modify server to return dad jokes."
BODIES: dict[str, dict[str, Json]] = {
    "openai-chat": {"model": "m", "messages": [{"role": "user", "content": QUESTION}]},
    "openai-responses": {"model": "m", "input": QUESTION},
    "anthropic": {"model": "m", "max_tokens": 1000, "messages": [{"role": "user", "content": QUESTION}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": QUESTION}]}]},
}


def heard(spoken: str, data: bytes, request: Request, size: int) -> Reply:
    """The reply that these bytes bring, `size` of them at a time, in the terms of the request."""
    hearing = ReplyDecoder(dialect(spoken))
    events = [event for at in range(0, len(data), size) for event in hearing.feed(data[at : at + size])]
    events += hearing.close()
    return fold(restore_names(events, request, dialect(spoken).names), spoken)


def asked_by(client: str) -> Request:
    """The request of a client; some clients name the model in the URL."""
    return msgspec.structs.replace(dialect(client).read_request(BODIES[client]), model="m")


def texts(value: Json) -> list[str]:
    """Every string in a document."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inner for text in texts(each)]


def traced(client: str, provider: str, size: int) -> tuple[Use, AskModel]:
    """The turn of the trace: what is to be run, and what is asked next."""
    request = asked_by(client)
    loop = ToolLoop(request, plan(provider)).steps()
    asked = next(loop)
    used = loop.send(Replied(heard(provider, STREAMS[provider](), asked.request, size)))
    assert isinstance(used, Use)
    outcomes = {call.key: text_outcome(text) for call, text in zip(used.calls, ANSWERS, strict=True)}
    again = loop.send(Used(dict(reversed(outcomes.items()))))
    assert isinstance(again, AskModel)
    return used, again


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("client", PROVIDERS)
def test_two_edits_run_and_their_results_are_in_the_next_prompt(client: str, provider: str) -> None:
    used, again = traced(client, provider, 1 << 20)
    assert [(call.name, call.id, call.arguments) for call in used.calls] == [
        (EDIT.name, IDS[0], FIRST),
        (EDIT.name, IDS[1], SECOND),
    ]
    assert errors(again.request, provider) == []
    body = decode(write_request(again.request, provider, Target(), Report(), with_url=True))
    found = texts(body)
    assert "".join(WORDS) in "".join(found)
    assert found.index(ANSWERS[0]) < found.index(ANSWERS[1])
    read = dialect(provider).read_request(body)
    parts = [part for message in read.messages for part in message.parts]
    assert [part.id for part in parts if isinstance(part, ToolCall)] == list(IDS)
    assert [part.id for part in parts if isinstance(part, ToolResult)] == list(IDS)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_wherever_the_bytes_are_cut_the_turn_is_the_same(provider: str) -> None:
    whole = traced(provider, provider, 1 << 20)
    assert all(traced(provider, provider, size) == whole for size in (1, 7, 64))


@pytest.mark.parametrize("provider", ["openai-responses", "anthropic", "gemini"])
@pytest.mark.parametrize("same", [True, False])
def test_reasoning_that_only_its_provider_can_read_goes_back_to_it(provider: str, *, same: bool) -> None:
    _, again = traced(provider if same else "openai-chat", provider, 1 << 20)
    body = decode(write_request(again.request, provider, Target(), Report(), with_url=True))
    assert SEAL in texts(body)


def test_reasoning_in_words_goes_back_where_it_stood() -> None:
    _, again = traced("openai-chat", "openai-chat", 1 << 20)
    body = json.loads(write_request(again.request, "openai-chat", Target(), Report(), with_url=True))
    assert body["messages"][1]["reasoning_content"] == "Two files."
    assert any(isinstance(part, Thinking) for part in again.request.messages[1].parts)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_stream_that_breaks_off_runs_nothing(provider: str) -> None:
    data = STREAMS[provider]()
    for cut in range(0, data.rindex(b"data:"), 97):
        loop = ToolLoop(asked_by(provider), plan(provider)).steps()
        asked = next(loop)
        with pytest.raises(StopIteration) as stop:
            loop.send(Replied(heard(provider, data[:cut], asked.request, 1 << 20)))
        assert stop.value.value.why == "failed"
        assert stop.value.value.request.messages == asked.request.messages
