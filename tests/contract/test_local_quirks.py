"""In what the embedded model's server differs from the APIs that it speaks, as seen on the wire.

The catalogue's flags for `local` rest on these. A new build of the engine that changes one is noticed here. The second
half is what our readers make of its answers.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from sightline.dialects.dialect import Target
from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.model.fold import fold
from sightline.model.parts import Text
from sightline.model.reply import Reply
from sightline.model.report import Report
from sightline.wire.jsontext import encode
from sightline.wire.sse import SseDecoder
from tests.http_call import Answer
from tests.local_model import Served, needs_model, serving

pytestmark = needs_model

WINDOW = 512
HELLO: list[dict[str, Any]] = [{"role": "user", "content": "Say hello."}]
CHAT: dict[str, Any] = {"messages": HELLO, "max_tokens": 4, "temperature": 0}
RESPONSES: dict[str, Any] = {"input": "Say hello.", "max_output_tokens": 4, "temperature": 0}
MESSAGES: dict[str, Any] = {"messages": HELLO, "max_tokens": 4, "temperature": 0}
TOOL = {
    "type": "function",
    "function": {"name": "look_around", "parameters": {"type": "object", "properties": {"where": {"type": "string"}}}},
}
PATHS = {"openai-chat": "/v1/chat/completions", "openai-responses": "/v1/responses", "anthropic": "/v1/messages"}
BODIES = {"openai-chat": CHAT, "openai-responses": RESPONSES, "anthropic": MESSAGES}


@pytest.fixture(scope="module")
def model() -> Iterator[Served]:
    with serving(context_window=WINDOW) as served:
        yield served


def streamed(model: Served, spoken: str, **more: Any) -> Answer:
    return model.ask(PATHS[spoken], {**BODIES[spoken], "stream": True, **more})


def data_of(answer: Answer) -> list[Any]:
    lines = [line.removeprefix(b"data: ") for line in answer.body.split(b"\n") if line.startswith(b"data: ")]
    return [line.decode() if line == b"[DONE]" else json.loads(line) for line in lines]


# --- on the wire ----------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["auto", "required", {"type": "function", "function": {"name": "look_around"}}])
def test_tools_are_ignored_without_a_word(model: Served, choice: Any) -> None:
    plain = model.ask(PATHS["openai-chat"], CHAT).json()
    with_tools = model.ask(PATHS["openai-chat"], {**CHAT, "tools": [TOOL], "tool_choice": choice}).json()
    assert with_tools["usage"]["prompt_tokens"] == plain["usage"]["prompt_tokens"]
    assert with_tools["choices"][0]["message"].keys() == {"role", "content"}
    assert with_tools["choices"][0]["finish_reason"] == "length"


def test_an_unknown_model_is_answered_by_this_one(model: Served) -> None:
    answer = model.ask(PATHS["openai-chat"], {**CHAT, "model": "gpt-of-somebody-else"})
    assert answer.status == 200
    assert answer.json()["model"] == "smollm2-135m-instruct"


def test_an_image_is_the_servers_own_failure(model: Served) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    answer = model.ask(PATHS["openai-chat"], {**CHAT, "messages": [{"role": "user", "content": [image]}]})
    assert answer.status == 500
    assert answer.body == (
        b'{"error":{"code":500,"message":"image input is not supported - hint: if this is unexpected, '
        b'you may need to provide the mmproj","type":"server_error"}}'
    )


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("spoken", PATHS)
def test_an_overflow_has_one_shape_in_every_dialect(model: Served, spoken: str, stream: bool) -> None:
    long = "word " * 2000
    content = {"input": long} if spoken == "openai-responses" else {"messages": [{"role": "user", "content": long}]}
    answer = model.ask(PATHS[spoken], {**BODIES[spoken], **content, "stream": stream})
    assert answer.status == 400
    assert answer.body == (
        b'{"error":{"code":400,"message":"request (2031 tokens) exceeds the available context size (512 tokens), '
        b'try increasing it","type":"exceed_context_size_error","n_prompt_tokens":2031,"n_ctx":512}}'
    )


def test_only_the_prompt_is_held_against_the_window(model: Served) -> None:
    body = {**CHAT, "messages": [{"role": "user", "content": "word " * (WINDOW - 31 - 7)}], "max_tokens": 400}
    body["ignore_eos"] = True
    reply = model.ask(PATHS["openai-chat"], body).json()
    assert reply["choices"][0]["finish_reason"] == "length"
    assert reply["usage"]["total_tokens"] == WINDOW


def test_the_first_delta_has_no_content(model: Served) -> None:
    first, *_, last = data_of(streamed(model, "openai-chat"))
    assert first["choices"] == [{"finish_reason": None, "index": 0, "delta": {"role": "assistant", "content": None}}]
    assert last == "[DONE]"


def test_requested_usage_arrives_in_a_frame_without_choices(model: Served) -> None:
    assert not [frame for frame in data_of(streamed(model, "openai-chat"))[:-1] if frame.get("usage")]
    *_, usage, _ = data_of(streamed(model, "openai-chat", stream_options={"include_usage": True}))
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 4
    assert "timings" in usage


def test_responses_frames_have_no_indices(model: Served) -> None:
    frames = data_of(streamed(model, "openai-responses"))
    assert not [frame for frame in frames if frame.keys() & {"sequence_number", "output_index", "content_index"}]
    assert frames[-1]["type"] == "response.completed"


def test_responses_that_were_cut_are_called_completed(model: Served) -> None:
    reply = model.ask(PATHS["openai-responses"], RESPONSES).json()
    assert reply["usage"]["output_tokens"] == RESPONSES["max_output_tokens"]
    assert reply["status"] == "completed"
    assert "incomplete_details" not in reply


def test_responses_know_an_assistants_text_by_its_type_only(model: Served) -> None:
    turns = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "?"},
    ]
    answer = model.ask(PATHS["openai-responses"], {**RESPONSES, "input": turns})
    assert answer.status == 400
    assert answer.json()["error"]["message"] == "Cannot determine type of 'item'"


def test_anthropic_input_tokens_leave_out_what_was_cached(model: Served) -> None:
    model.ask(PATHS["anthropic"], MESSAGES)
    usage = model.ask(PATHS["anthropic"], MESSAGES).json()["usage"]
    assert usage == {"cache_read_input_tokens": 32, "input_tokens": 1, "output_tokens": 4}


def test_a_missing_key_is_refused_and_malformed_json_too(model: Served) -> None:
    refusal = Served(model.url, "another").ask(PATHS["openai-chat"], CHAT)
    assert refusal.status == 401
    assert refusal.body == b'{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}'
    malformed = model.ask(PATHS["openai-chat"], b"{")
    assert malformed.status == 400
    assert malformed.json()["error"]["type"] == "invalid_request_error"


# --- what our readers make of it ------------------------------------------------------------------


def read_stream(spoken: str, data: bytes) -> Reply:
    decoder, reader = SseDecoder(), dialect(spoken).stream_reader()
    frames = [*decoder.feed(data), *decoder.close()]
    return fold([*(event for frame in frames for event in reader.feed(frame)), *reader.close()])


def text_of(reply: Reply) -> str:
    return "".join(part.text for part in reply.choice.parts if isinstance(part, Text))


@pytest.mark.parametrize("spoken", PATHS)
def test_its_streams_and_whole_replies_say_the_same(model: Served, spoken: str) -> None:
    asked_for = {"stream_options": {"include_usage": True}} if spoken == "openai-chat" else {}
    whole = fold(dialect(spoken).read_reply(model.ask(PATHS[spoken], BODIES[spoken]).json()))
    stream = read_stream(spoken, streamed(model, spoken, **asked_for).body)
    assert text_of(stream) == text_of(whole) != ""
    for reply in (whole, stream):
        assert reply.fault is None
        assert reply.model == "smollm2-135m-instruct"
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (33, 4)
        # Responses do not say that they were cut: the catalogue's flag `reports_length` has to.
        assert reply.choice.finish == ("stop" if spoken == "openai-responses" else "length")


@pytest.mark.parametrize("spoken", PATHS)
def test_a_conversation_that_we_wrote_is_taken(model: Served, spoken: str) -> None:
    turns = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "?"},
    ]
    chat = {"messages": [{"role": "system", "content": "Be brief."}, *turns], "max_tokens": 4}
    request = dialect("openai-chat").read_request(chat)
    body = dialect(spoken).write_request(request, Target(), Report())
    answer = model.ask(PATHS[spoken], encode(body))
    assert answer.status == 200, answer.body
    assert fold(dialect(spoken).read_reply(answer.json())).fault is None


@pytest.mark.parametrize("spoken", PATHS)
def test_its_overflow_is_known_as_one(model: Served, spoken: str) -> None:
    body = {"messages": [{"role": "user", "content": "word " * 2000}], "max_tokens": 4}
    answer = model.ask(PATHS["openai-chat"], body)
    fault = dialect(spoken).read_error(answer.status, answer.json(), answer.headers)
    assert isinstance(fault, Fault)
    assert fault.code is Code.CONTEXT_OVERFLOW
    assert re.search(r"2031 tokens.*512 tokens", fault.message)
