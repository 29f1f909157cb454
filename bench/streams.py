"""One streamed answer of about 2,000 chunks, told in four dialects: thinking, a long text, one tool call."""

import json
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bench.documents import WORDS

Object = dict[str, Any]

THINKING, TEXT, ARGUMENTS = 400, 1200, 400
SIGNATURE = "c2ln" * 60
CALL_ID, TOOL = "call_000001", "read_file_0"
USAGE_IN, USAGE_OUT = 41_000, 2_000


def _words(count: int) -> list[str]:
    chance = random.Random(count)
    return [f" {chance.choice(WORDS)}" for _ in range(count)]


def _argument_fragments() -> list[str]:
    written = json.dumps({"path": "src/main.py", "note": "".join(_words(ARGUMENTS))})
    step = -(-len(written) // ARGUMENTS)
    return [written[start : start + step] for start in range(0, len(written), step)]


def anthropic() -> Iterator[Object]:
    usage = {"input_tokens": USAGE_IN, "output_tokens": 1}
    message: Object = {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    yield {"type": "message_start", "message": message}
    blocks: list[tuple[Object, list[Object]]] = [
        (
            {"type": "thinking", "thinking": "", "signature": ""},
            [
                *({"type": "thinking_delta", "thinking": word} for word in _words(THINKING)),
                {"type": "signature_delta", "signature": SIGNATURE},
            ],
        ),
        ({"type": "text", "text": ""}, [{"type": "text_delta", "text": word} for word in _words(TEXT)]),
        (
            {"type": "tool_use", "id": CALL_ID, "name": TOOL, "input": {}},
            [{"type": "input_json_delta", "partial_json": piece} for piece in _argument_fragments()],
        ),
    ]
    for index, (block, deltas) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": "tool_use", "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": USAGE_OUT}}
    yield {"type": "message_stop"}


def openai_chat() -> Iterator[Object]:
    def chunk(delta: Object, finish: str | None = None) -> Object:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _chat_chunk([choice])

    yield chunk({"role": "assistant", "content": ""})
    for word in _words(THINKING):
        yield chunk({"reasoning_content": word})
    for word in _words(TEXT):
        yield chunk({"content": word})
    begun = {"index": 0, "id": CALL_ID, "type": "function", "function": {"name": TOOL, "arguments": ""}}
    yield chunk({"tool_calls": [begun]})
    for piece in _argument_fragments():
        yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls")
    usage = {"prompt_tokens": USAGE_IN, "completion_tokens": USAGE_OUT, "total_tokens": USAGE_IN + USAGE_OUT}
    yield _chat_chunk([]) | {"usage": usage}


def _chat_chunk(choices: list[Object]) -> Object:
    return {
        "id": "chatcmpl-01",
        "object": "chat.completion.chunk",
        "created": 1767225600,
        "model": "gpt-5.2",
        "system_fingerprint": "fp_01",
        "choices": choices,
    }


def openai_responses() -> Iterator[Object]:
    for number, event in enumerate(_response_events()):
        yield event | {"sequence_number": number}


def _response_events() -> Iterator[Object]:
    def response(status: str, output: list[Object], usage: Object | None) -> Object:
        about = {"id": "resp_01", "object": "response", "created_at": 1767225600, "model": "gpt-5.2"}
        return about | {"status": status, "error": None, "output": output, "usage": usage}

    thought, text, written = "".join(_words(THINKING)), "".join(_words(TEXT)), "".join(_argument_fragments())
    yield {"type": "response.created", "response": response("in_progress", [], None)}

    reasoning: Object = {"id": "rs_01", "type": "reasoning", "summary": []}
    place: Object = {"item_id": "rs_01", "output_index": 0, "summary_index": 0}
    summary = {"type": "summary_text", "text": thought}
    yield {"type": "response.output_item.added", "output_index": 0, "item": reasoning}
    yield {"type": "response.reasoning_summary_part.added", **place, "part": {"type": "summary_text", "text": ""}}
    for word in _words(THINKING):
        yield {"type": "response.reasoning_summary_text.delta", **place, "delta": word}
    yield {"type": "response.reasoning_summary_text.done", **place, "text": thought}
    yield {"type": "response.reasoning_summary_part.done", **place, "part": summary}
    reasoning = reasoning | {"summary": [summary], "encrypted_content": SIGNATURE}
    yield {"type": "response.output_item.done", "output_index": 0, "item": reasoning}

    message: Object = {"id": "msg_01", "type": "message", "status": "in_progress", "role": "assistant", "content": []}
    place = {"item_id": "msg_01", "output_index": 1, "content_index": 0}
    part = {"type": "output_text", "text": text, "annotations": []}
    yield {"type": "response.output_item.added", "output_index": 1, "item": message}
    yield {"type": "response.content_part.added", **place, "part": part | {"text": ""}}
    for word in _words(TEXT):
        yield {"type": "response.output_text.delta", **place, "delta": word}
    yield {"type": "response.output_text.done", **place, "text": text}
    yield {"type": "response.content_part.done", **place, "part": part}
    message = message | {"status": "completed", "content": [part]}
    yield {"type": "response.output_item.done", "output_index": 1, "item": message}

    call: Object = {"id": "fc_01", "type": "function_call", "call_id": CALL_ID, "name": TOOL}
    begun = call | {"status": "in_progress", "arguments": ""}
    place = {"item_id": "fc_01", "output_index": 2}
    yield {"type": "response.output_item.added", "output_index": 2, "item": begun}
    for piece in _argument_fragments():
        yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
    yield {"type": "response.function_call_arguments.done", **place, "arguments": written}
    call = call | {"status": "completed", "arguments": written}
    yield {"type": "response.output_item.done", "output_index": 2, "item": call}

    usage = {"input_tokens": USAGE_IN, "output_tokens": USAGE_OUT, "total_tokens": USAGE_IN + USAGE_OUT}
    yield {"type": "response.completed", "response": response("completed", [reasoning, message, call], usage)}


def gemini() -> Iterator[Object]:
    def chunk(parts: list[Object], **candidate: str) -> Object:
        return {
            "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0, **candidate}],
            "usageMetadata": {"promptTokenCount": USAGE_IN, "totalTokenCount": USAGE_IN + USAGE_OUT},
            "modelVersion": "gemini-3-pro",
            "responseId": "resp-01",
        }

    for word in _words(THINKING):
        yield chunk([{"text": word, "thought": True}])
    # Gemini sends a call whole, so the text takes the chunks that are fragments elsewhere.
    for word in _words(TEXT + ARGUMENTS):
        yield chunk([{"text": word}])
    arguments = json.loads("".join(_argument_fragments()))
    call = {"id": CALL_ID, "name": TOOL, "args": arguments}
    yield chunk([{"functionCall": call, "thoughtSignature": SIGNATURE}], finishReason="STOP")


def _named(chunk: Object) -> str:
    return f"event: {chunk['type']}\n{_unnamed(chunk)}"


def _unnamed(chunk: Object) -> str:
    return f"data: {json.dumps(chunk, ensure_ascii=False, separators=(',', ':'))}\n\n"


TELLINGS: Mapping[str, Callable[[], str]] = {
    "anthropic": lambda: "".join(map(_named, anthropic())),
    "openai-chat": lambda: "".join(map(_unnamed, openai_chat())) + "data: [DONE]\n\n",
    "openai-responses": lambda: "".join(map(_named, openai_responses())),
    "gemini": lambda: "".join(map(_unnamed, gemini())),
}


def stream(dialect: str) -> bytes:
    """The answer as server-sent events."""
    return TELLINGS[dialect]().encode()
