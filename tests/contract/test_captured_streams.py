"""Real streams that were captured elsewhere, read in place: each folds to what its notes say.

The captures are of a client whose meaning differs from ours in three ways, which are asserted here as ours: a stream
that breaks off, or says nothing at all, is a failure (no false success); it puts a space between text and the first
tool call, which is its display's doing and not the model's; and it ends the same choice twice where a server answered a
legacy function call itself, where for us the answer is one and has a call.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from sightline.dialects.registry import dialect
from sightline.errors import Code
from sightline.model.events import FrameBroken, StreamEvent
from sightline.model.fold import fold
from sightline.model.parts import Text, Thinking
from sightline.model.reply import Choice, Reply
from sightline.wire.sse import SseDecoder

STREAMS = Path(__file__).parents[3] / "shared" / "streams"

if not STREAMS.is_dir():
    pytest.skip(f"the captured streams are not here: {STREAMS}", allow_module_level=True)

SMALL_CASES: list[dict[str, Any]] = json.loads((STREAMS / "small_cases.json").read_text())
CALL_ID = "call_bNK0HIaqlEFyZK6wEz8bXDXJ"
COT_ID = "cot_a3074ac0-a8e8-4a55-bb5b-65cbb1648dcf"


def events_of(*pieces: bytes) -> list[StreamEvent]:
    decoder, reader = SseDecoder(), dialect("openai-chat").stream_reader()
    frames = [frame for piece in pieces for frame in decoder.feed(piece)] + decoder.close()
    return [event for frame in frames for event in reader.feed(frame)] + reader.close()


def captured(stem: str) -> Reply:
    data = (STREAMS / f"{stem}.sse").read_bytes()
    # Any split of the bytes is the same stream.
    whole = events_of(data)
    assert events_of(*(data[at : at + 7] for at in range(0, len(data), 7))) == whole
    return fold(whole)


def expected(stem: str, kind: str) -> Any:
    return json.loads((STREAMS / f"{stem}.expected_{kind}.json").read_text())


def text_of(choice: Choice) -> str:
    return "".join(part.text for part in choice.parts if isinstance(part, Text))


def calls_of(choice: Choice) -> list[dict[str, str]]:
    return [{"name": call.name, "arguments": call.arguments, "id": call.id} for call in choice.tool_calls]


def usage_of(reply: Reply) -> dict[str, int | None] | None:
    usage = reply.usage
    return None if usage is None else {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}


def assert_as_expected(stem: str, finish: str) -> Reply:
    """Text, calls, finish, usage and identity are those of the notes' last word."""
    reply = captured(stem)
    completion = expected(stem, "completions")[0]
    assert reply.fault is None
    assert reply.choice.finish == finish
    assert reply.id == completion["requestId"]["completionId"]
    assert reply.created == completion["requestId"]["created"]
    told = completion.get("usage")
    assert usage_of(reply) == (told and {key: told[key] for key in ("prompt_tokens", "completion_tokens")})
    assert calls_of(reply.choice) == expected(stem, "chunks")[-1]["delta"].get("copilotToolCalls", [])
    return reply


def test_plain_text():
    reply = assert_as_expected("panel_chat_plain_text_assistant_reply", "stop")
    assert text_of(reply.choice) == expected("panel_chat_plain_text_assistant_reply", "chunks")[-1]["text"]


def test_three_choices():
    reply = captured("n_1_intent_detector")
    completions = expected("n_1_intent_detector", "completions")
    assert [choice.finish for choice in reply.choices] == [completion["reason"] for completion in completions]
    assert [text_of(choice) for choice in reply.choices] == ["generate"] * 3
    assert usage_of(reply) is None


def test_a_legacy_function_call():
    reply = captured("single_function_call")
    [call] = expected("single_function_call", "chunks")[0]["delta"]["_deprecatedCopilotFunctionCalls"]
    assert [(found.name, found.arguments) for found in reply.choice.tool_calls] == [(call["name"], call["arguments"])]
    assert (reply.choice.finish, reply.choice.detail, text_of(reply.choice)) == ("tool_calls", "function_call", "")


@pytest.mark.parametrize("stem", ["single_tool_call", "single_tool_call_with_annotations_attached"])
def test_one_tool_call(stem):
    reply = assert_as_expected(stem, "tool_calls")
    assert text_of(reply.choice) == ""
    # Annotations that nobody can read are kept beside the answer, not dropped.
    has_notes = any(field.at.endswith("/annotations") for field in reply.unmodelled)
    assert has_notes == stem.endswith("attached")


def test_tool_calls_sharing_an_index_are_distinguished_by_id():
    reply = assert_as_expected("multiple_tool_calls", "tool_calls")
    assert len({call.id for call in reply.choice.tool_calls}) == 2
    shown = expected("multiple_tool_calls", "chunks")[-1]["text"]
    assert text_of(reply.choice) + " " == shown  # the space is the display's


def test_a_call_that_the_server_answered_itself_and_the_words_after_it():
    stem = "stream_from_github_bing_search_skill"
    reply = captured(stem)
    first, second = expected(stem, "completions")
    assert text_of(reply.choice) == "".join(first["solution"]["text"]) == "".join(second["solution"]["text"])
    [call] = reply.choice.tool_calls
    # Two frames of this capture are not JSON: a piece of the arguments and what the server's own tool said.
    assert (call.name, call.arguments) == ("bing-search", '{\n  "query": "current LTS version of Node.js}')
    assert [field.at for field in reply.unmodelled if "not JSON" in str(field.value)] == ["/13", "/16"]
    # One answer with a call: `tool_calls`, in the provider's own word `function_call`.
    assert (reply.choice.finish, reply.choice.detail) == ("tool_calls", second["reason"])


def test_reasoning_with_an_id_that_comes_after_the_finish():
    reply = captured("stream_containing_cot_summary_and_cot_id")
    thought = reply.choice.parts[0]
    assert isinstance(thought, Thinking)
    assert (thought.text, thought.id, thought.signed_by) == (" Analyzing", COT_ID, "openai-chat")
    assert calls_of(reply.choice) == [{"name": "read_file", "arguments": "arg-part1arg-part2", "id": CALL_ID}]
    assert reply.choice.finish == "tool_calls"


def test_an_id_of_reasoning_without_any_reasoning():
    reply = captured("stream_containing_only_cot_id")
    thought = reply.choice.parts[0]
    assert isinstance(thought, Thinking)
    assert (thought.text, thought.id) == ("", COT_ID)
    assert [call.id for call in reply.choice.tool_calls] == [CALL_ID]
    assert reply.choice.finish == "tool_calls"


def test_a_stream_that_is_cancelled_half_way_is_no_completion():
    stem = "gracefully_handle_cancellation_do_not_emit_completion_without_its_usage"
    data = (STREAMS / f"{stem}.sse").read_bytes()
    lines = data.splitlines(keepends=True)
    cut = fold(events_of(*lines[:2]))
    assert (cut.choice.finish, cut.usage) == ("error", None)
    assert cut.fault.code is Code.UPSTREAM_PROTOCOL
    whole = captured(stem)
    assert (whole.choice.finish, usage_of(whole)) == ("stop", {"prompt_tokens": 965, "completion_tokens": 93})


# What the original calls DONE is a stop that only `[DONE]` said; a stream that just ends is cut.
FINISHES = {"DONE": "stop", "Iteration Done": "error", "client-trimmed": "stop"}


@pytest.mark.parametrize("case", SMALL_CASES, ids=lambda case: case["name"])
def test_small_cases(case):
    events = events_of(*(piece.encode() for piece in case["chunks"]))
    reply = fold(events)
    if not case["expected"]:
        # Nothing was answered: an empty result there, a failure here.
        assert (reply.choice.finish, reply.choice.parts) == ("error", ())
        assert any(isinstance(event, FrameBroken) for event in events) == ("broken JSON" in case["name"])
        return
    assert len(reply.choices) == len(case["expected"])
    for index, told in case["expected"].items():
        choice = reply.choices[int(index)]
        words = "".join(told["chunks"])
        # The reader that stops half way is the caller's; what was sent to it is all there.
        assert text_of(choice).startswith(words) if "finishedCb_returns" in case else text_of(choice) == words
        assert choice.finish == FINISHES.get(told["finishReason"], told["finishReason"])
    if told_usage := case.get("expected_usage"):
        assert usage_of(reply) == {key: told_usage[key] for key in ("prompt_tokens", "completion_tokens")}
