import pytest

from sightline.errors import Code
from sightline.model.events import (
    ArgumentsReceived,
    Ended,
    Failed,
    FieldReceived,
    Finished,
    FrameBroken,
    SignatureReceived,
    Started,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
)
from sightline.model.parts import Audio, Inline, Thinking
from tests.dialects.openai_chat.telling import calling, chunk, fold, heard, whole

USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def test_the_ordinary_chunk_is_one_event():
    words, thoughts = chunk({"content": "a"}), chunk({"reasoning": "b"})
    assert heard(words, thoughts, words, thoughts, chunk({"content": ""}), done=False)[:-2] == [
        TextReceived(1, "a", at="/0/choices/0/delta/content"),
        ThinkingReceived(0, "b", at="/1/choices/0/delta/reasoning"),
        TextReceived(1, "a"),
        ThinkingReceived(0, "b"),
    ]


def test_identity_is_reported_as_it_becomes_known():
    events = heard(
        {"choices": [], "id": "", "created": 0},
        {**chunk({"content": "a"}), "model": "m"},
        {**chunk({"content": "b"}), "model": "m"},
        {**chunk({"content": "c"}, "stop"), "model": "m", "id": "chatcmpl-1"},
        {**chunk({}), "id": "another"},
    )
    assert [event for event in events if isinstance(event, Started)] == [
        Started(model="m", places={"model": "/1/model"}),
        Started(id="chatcmpl-1", model="m", places={"id": "/3/id", "model": "/3/model"}),
    ]


def test_unknown_fields_of_content_in_parts_are_reported_once():
    """Mistral says of its reasoning whether it is closed."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "closed": True}
    said = {"type": "text", "text": "a", "mood": 1}
    reply = fold(heard(chunk({"content": [thought]}), chunk({"content": [thought, said]}, "stop")))
    assert [(each.at, each.value) for each in reply.unmodelled] == [
        ("/0/choices/0/delta/content/0/closed", True),
        ("/1/choices/0/delta/content/1/mood", 1),
    ]
    reply = whole({"role": "assistant", "content": [thought, said]})
    assert [each.at for each in reply.unmodelled] == [
        "/choices/0/message/content/0/closed",
        "/choices/0/message/content/1/mood",
    ]


def test_a_signature_before_the_name_of_its_call_waits_for_it():
    """A call whose signature came first was read as a thought, and the call itself was gone."""
    signed = {"google": {"thought_signature": "s"}}
    begun = {"index": 0, "id": "a", "type": "function", "extra_content": signed, "function": {"arguments": "{"}}
    rest = {"index": 0, "function": {"name": "f", "arguments": "}"}}
    reply = fold(heard(calling(begun), calling(rest, finish="stop")))
    (call,) = reply.choice.tool_calls
    assert (call.id, call.name, call.arguments, call.signature) == ("a", "f", "{}", "s")


def test_usage_may_follow_the_finish():
    reply = fold(heard(chunk({"content": "a"}, "stop"), {"choices": [], "usage": USAGE}, {"choices": None}))
    assert (reply.usage.input_tokens, reply.choice.finish) == (3, "stop")


def test_done_finishes_what_has_no_finish_and_an_empty_stream_is_a_failure():
    assert fold(heard(chunk({"content": "a"}))).choice.finish == "stop"
    assert fold(heard()).fault.code is Code.UPSTREAM_PROTOCOL
    assert fold(heard(done=False)).fault.code is Code.UPSTREAM_PROTOCOL


def test_the_end_of_the_bytes_after_a_finish_is_legal():
    assert fold(heard(chunk({"content": "a"}, "stop"), done=False)).fault is None


def test_an_error_ends_the_stream_with_or_without_choices():
    error = {"error": {"message": "busy", "code": 503}}
    for document in (error, {**chunk({"content": "b"}, "error"), **error}):
        events = heard(chunk({"content": "a"}), document, chunk({"content": "c"}, "stop"))
        assert isinstance(events[-2], Failed)
        assert events[-1] == Ended()
        assert "c" not in fold(events).choice.parts[0].text


@pytest.mark.parametrize("more", [{}, {"choices": []}, {"object": "error", "id": "req_1"}])
def test_an_error_that_nothing_wraps_ends_the_stream_with_its_words(more):
    error = {"message": "quota exceeded", "code": 429, **more}
    *_, failed, ended = heard(chunk({"content": "a"}), error, chunk({"content": "c"}, "stop"))
    assert (failed.fault.code, failed.fault.message, failed.fault.status) == (Code.RATE_LIMITED, "quota exceeded", 429)
    assert (failed.fault.details, ended) == (error, Ended())


@pytest.mark.parametrize("more", [{"id": "r"}, {"object": "chat.completion.chunk"}])
def test_a_message_in_a_chunk_is_no_error(more):
    reply = fold(heard({"message": "queued", **more}, chunk({"content": "a"}, "stop")))
    assert (reply.fault, reply.choice.parts[0].text) == (None, "a")


def test_a_finish_word_that_says_failure_is_a_failure():
    for document in (chunk({}, "network_error"), chunk({}, None, error={"message": "died", "code": 502})):
        reply = fold(heard(chunk({"content": "a"}), document))
        assert (reply.choice.finish, reply.fault.code) == ("error", Code.UPSTREAM_ERROR)


def test_choices_by_number_or_by_position():
    events = heard(
        {"choices": [{"delta": {"content": "a"}}, {"delta": {"content": "b"}}]},
        {"choices": [{"delta": {"content": "c"}, "finish_reason": "stop"}]},
        chunk({"content": "d"}, "length", index=1),
    )
    assert [choice.parts[0].text for choice in fold(events).choices] == ["ac", "bd"]
    assert [choice.finish for choice in fold(events).choices] == ["stop", "length"]


def test_after_the_finish_only_reasoning_is_read_and_the_rest_is_a_field():
    events = heard(
        chunk({"content": "a"}, "stop"),
        chunk({"role": "assistant", "content": "late", "reasoning_text": "hm", "x": None}),
        chunk({"cot_id": "cot_1"}),
    )
    reply = fold(events)
    assert [part.text for part in reply.choice.parts] == ["hm", "a"]
    assert reply.choice.parts[0].id == "cot_1"
    assert FieldReceived("/1/choices/0/delta/content", "late") in events
    assert len([event for event in events if isinstance(event, Finished)]) == 1


def test_a_legacy_call_that_the_server_answered_may_be_followed_by_words():
    reply = fold(
        heard(
            chunk({"function_call": {"name": "f", "arguments": "{"}}),
            chunk({"function_call": {"arguments": "}"}}),
            chunk({}, "function_call"),
            chunk({"role": "function", "content": "result"}),
            chunk({"role": "assistant", "content": "words"}, "stop"),
        )
    )
    assert [call.arguments for call in reply.choice.tool_calls] == ["{}"]
    assert reply.choice.parts[0].text == "words"
    assert (reply.choice.finish, reply.choice.detail) == ("tool_calls", "function_call")
    assert [field.value for field in reply.unmodelled] == [{"role": "function", "content": "result"}]


def test_signature_and_its_id_from_separate_chunks_are_combined():
    events = heard(
        chunk({"reasoning_text": "hm", "reasoning_opaque": "c2ln"}), chunk({"cot_id": "cot_1", "content": "a"}, "stop")
    )
    assert [event for event in events if isinstance(event, SignatureReceived)] == [
        SignatureReceived(0, "c2ln", "openai-chat"),
        SignatureReceived(0, "c2ln", "openai-chat", 0, "cot_1"),
    ]


def test_sound_arrives_in_pieces():
    reply = fold(
        heard(
            chunk({"audio": {"id": "a1", "transcript": "He"}}),
            chunk({"audio": {"id": "a1", "transcript": "y", "data": "AA"}}),
            chunk({"audio": {"data": "BB", "expires_at": 9}}),
            chunk({}, "stop"),
        )
    )
    place = "/0/choices/0/delta/audio"
    assert reply.choice.parts == (
        Audio(Inline("application/octet-stream", "AABB"), "a1", "Hey", at=place, extras={"expires_at": 9}),
    )


@pytest.mark.parametrize("end", [[{"error": {"message": "busy"}}], [{"message": "busy"}], [chunk({}, "error")], []])
def test_audio_received_before_a_failure_is_reported_before_it(end):
    over = chunk({"audio": {"id": "a2"}}, "stop", index=1)
    *_, told, failed, _ = heard(over, chunk({"audio": {"id": "a1", "data": "AA"}}), *end, done=False)
    assert (told.part, told.choice, told.value.id) == (3, 0, "a1")
    assert isinstance(failed, Failed)


def test_reasoning_that_is_withheld_is_a_block_of_its_own():
    seal = {"reasoning_opaque": "sightline:anthropic:redacted:s"}
    [block] = fold(heard(chunk(seal, "stop"))).choice.parts
    assert block == Thinking(
        signature="s", signed_by="anthropic", redacted=True, at="/0/choices/0/delta/reasoning_opaque"
    )
    [block] = fold(heard(chunk({"reasoning_content": "hm"}), chunk(seal, "stop"))).choice.parts
    assert (block.text, block.signature, block.id, block.redacted) == ("hm", "s", None, False)


def test_the_first_words_and_thoughts_have_a_place_whatever_came_before_them():
    thinking = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]
    events = heard(chunk({"content": thinking}), chunk({"content": "a"}), chunk({"content": "b"}, "stop"))
    assert next(event.at for event in events if isinstance(event, TextReceived)) == "/1/choices/0/delta/content"
    events = heard(chunk({"reasoning_opaque": "s"}), chunk({"reasoning": "hm"}), chunk({}, "stop"))
    place = "/1/choices/0/delta/reasoning"
    assert [event.at for event in events if isinstance(event, ThinkingReceived)] == [place]


def test_a_signature_beside_a_call_belongs_to_that_call():
    signed = {"index": 0, "extra_content": {"google": {"thought_signature": "s"}}}
    begun = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    [call] = fold(heard(calling(begun), calling(signed), chunk({}, "stop"))).choice.tool_calls
    assert (call.signature, call.signed_by) == ("s", "gemini")
    kinds = [type(event) for event in heard(calling(begun | signed), chunk({}, "stop"))]
    assert kinds[:3] == [ToolCallBegun, SignatureReceived, ArgumentsReceived]


def test_unmodelled_fields_are_reported_once():
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}", "y": 1}, "x": 1, "extra_content": 5}
    events = heard(
        {**chunk({"content": "a", "d": 1}, c=1), "b": 1},
        {**chunk({"content": "a", "d": 1}, c=1), "b": 1},
        calling(call),
        chunk({}, "tool_calls"),
    )
    assert [event.at for event in events if isinstance(event, FieldReceived)] == [
        "/0/b",
        "/0/choices/0/c",
        "/0/choices/0/delta/d",
        "/2/choices/0/delta/tool_calls/0/extra_content",
        "/2/choices/0/delta/tool_calls/0/x",
        "/2/choices/0/delta/tool_calls/0/function/y",
    ]


def test_the_older_completions_and_whole_messages_are_understood():
    older = {"choices": [{"text": "foo", "index": 0, "finish_reason": None}]}
    assert fold(heard(older, {"choices": [{"index": 0, "finish_reason": "stop"}]})).choice.parts[0].text == "foo"
    message = {"choices": [{"index": 0, "message": {"content": "whole"}, "finish_reason": "stop"}]}
    assert fold(heard(message)).choice.parts[0].text == "whole"


@pytest.mark.parametrize(
    ("delta", "kept"),
    [
        ({"tool_calls": [7]}, False),
        ({"tool_calls": {"a": 1}}, False),
        ({"tool_calls": [{"index": 0, "function": 7}]}, False),
        ({"tool_calls": [{"index": 0, "function": {"arguments": 7}}]}, False),
        ({"tool_calls": [{"index": 0, "function": {"arguments": ""}}]}, True),
        ({"tool_calls": []}, True),
        ({"content": 7}, False),
        ({"annotations": "odd"}, True),
        ({"x_other": "odd"}, True),
        ({"audio": {"data": 7}}, False),
    ],
)
def test_delta_of_the_wrong_shape_is_skipped_and_reported(delta, kept):
    events = heard(chunk({"content": "a"}), chunk(delta), chunk({"content": "b"}, "stop"))
    assert [event.at.startswith("/1/choices/0/delta") for event in events if isinstance(event, FrameBroken)] == (
        [] if kept else [True]
    )
    assert fold(events).choice.parts[0].text == "ab"


@pytest.mark.parametrize("document", [{"choices": 7}, {"choices": [7]}, chunk(index=-1), chunk(index=10**9)])
def test_chunk_of_the_wrong_shape_is_skipped_and_reported(document):
    events = heard(document, chunk({"content": "b"}, "stop"))
    assert isinstance(events[0], FrameBroken)
    assert fold(events).choice.finish == "stop"


BEGUN = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}
GROWN = {"index": 0, "function": {"arguments": "{}"}}


@pytest.mark.parametrize(
    ("document", "place"),
    [
        (chunk({"tool_calls": [BEGUN]}, logprobs={"content": 7}), "/0/choices/0/logprobs/content"),
        ({**calling(BEGUN), "usage": 7}, "/0/usage"),
        (calling(BEGUN, 7), "/0/choices/0/delta/tool_calls/1"),  # type: ignore[arg-type] # wrong on purpose
        (chunk({"tool_calls": [BEGUN], "function_call": 7}), "/0/choices/0/delta/function_call"),
        ({"choices": [calling(BEGUN)["choices"][0], 7]}, "/0/choices/1"),
    ],
)
def test_content_before_the_fault_in_a_chunk_is_kept(document, place):
    events = heard(document, calling(GROWN), chunk({}, "tool_calls"))
    assert [event.at for event in events if isinstance(event, FrameBroken)] == [place]
    [call] = fold(events).choice.tool_calls
    assert (call.id, call.name, call.arguments) == ("a", "f", "{}")


def test_missing_finish_is_placed_at_the_chunk_where_its_choice_began():
    finished = [event for event in heard(chunk({}), chunk({"content": "b"}, index=1)) if isinstance(event, Finished)]
    assert [event.at for event in finished] == ["/0/choices/0/finish_reason", "/1/choices/0/finish_reason"]
