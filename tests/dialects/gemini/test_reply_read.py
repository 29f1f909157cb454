import json
from typing import Any

import pytest

from sightline.dialects.gemini import DIALECT
from sightline.dialects.gemini.parts import for_client
from sightline.dialects.gemini.reply_read import ReplyMachine, read_reply
from sightline.errors import Code
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Failed,
    FieldReceived,
    Finished,
    FrameBroken,
    LogprobsReceived,
    PartReceived,
    SignatureReceived,
    Started,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    ToolCallCompleted,
    UsageReceived,
)
from sightline.model.fold import fold
from sightline.model.parts import Document, Link, Text, Thinking
from sightline.model.reply import TokenLogprob, Usage
from sightline.wire.sse import Frame, SseDecoder
from tests.dialects.reports import refused_at

PARTS = "/candidates/0/content/parts"


def candidate(*parts, **more):
    return {"content": {"parts": list(parts), "role": "model"}, **more}


def read(*parts, finish="STOP", **more):
    """The events between the start and the end of a reply with one candidate."""
    events = read_reply({"candidates": [candidate(*parts, finishReason=finish, **more)]})
    assert (events[0], events[-1]) == (Started(), Ended())
    return events[1:-1]


def finished(finish="stop", detail=None):
    return Finished(finish, detail=detail, at="/candidates/0/finishReason")


def test_reply_identity_and_usage_are_read():
    events = read_reply(
        {
            "candidates": [candidate({"text": "a"}, finishReason="STOP")],
            "usageMetadata": {"promptTokenCount": 2, "trafficType": "x"},
            "responseId": "r",
            "modelVersion": "m",
            "createTime": "2026-03-10T14:54:45.066123Z",
        }
    )
    assert events == [
        Started("r", "m", 1773154485, {"id": "/responseId", "model": "/modelVersion", "created": "/createTime"}),
        UsageReceived(Usage(input_tokens=2, at="/usageMetadata", extras={"trafficType": "x"})),
        TextReceived(0, "a", at=f"{PARTS}/0"),
        finished(),
        Ended(),
    ]


@pytest.mark.parametrize(("time", "seconds"), [("1970-01-01T00:01:00", 60), ("soon", None)])
def test_a_time_is_read_where_it_can_be(time, seconds):
    events = read_reply({"candidates": [], "promptFeedback": {"blockReason": "OTHER"}, "createTime": time})
    assert events[0].created == seconds
    assert (FieldReceived("/createTime", time) in events) == (seconds is None)


def test_text_of_one_kind_is_one_part_and_a_signature_closes_it():
    events = read(
        {"text": "t1", "thought": True},
        {"text": "t2", "thought": True},
        {"text": "a"},
        {"text": ""},
        {"text": "b", "thoughtSignature": "S"},
        {"text": "c"},
        {"text": "", "thought": True},
    )
    assert events == [
        ThinkingReceived(0, "t1", at=f"{PARTS}/0"),
        ThinkingReceived(0, "t2"),
        TextReceived(1, "a", at=f"{PARTS}/2"),
        TextReceived(1, "b", at=f"{PARTS}/4"),
        SignatureReceived(1, "S", "gemini"),
        TextReceived(2, "c", at=f"{PARTS}/5"),
        finished(),
    ]


def test_a_signature_may_come_alone():
    assert fold(read({"text": "a", "thought": True}, {"text": "", "thoughtSignature": "S"})).choice.parts == (
        Thinking("a", at=f"{PARTS}/0"),
        Text("", signature="S", signed_by="gemini", at=f"{PARTS}/1"),
    )


def test_wrapped_signatures_are_unwrapped():
    bound = for_client("ENC", "openai-responses", "rs_1")
    redacted = for_client("DATA", "anthropic", "redacted")
    parts = fold(
        read(
            {"text": "a", "thought": True, "thoughtSignature": bound},
            {"text": "", "thought": True, "thoughtSignature": redacted},
        )
    ).choice.parts
    assert parts == (
        Thinking("a", id="rs_1", signature="ENC", signed_by="openai-responses", at=f"{PARTS}/0"),
        Thinking("", signature="DATA", signed_by="anthropic", redacted=True, at=f"{PARTS}/1"),
    )


def test_a_call_comes_whole_and_makes_the_finish():
    events = read(
        {"functionCall": {"id": "1", "name": "f", "args": {"a": 1}, "willContinue": False}, "thoughtSignature": "S"},
        {"function_call": {"name": "g"}, "partMetadata": {"k": 1}},
    )
    assert events == [
        ToolCallBegun(0, "1", "f", at=f"{PARTS}/0"),
        SignatureReceived(0, "S", "gemini"),
        ArgumentsReceived(0, '{"a":1}'),
        ToolCallCompleted(0),
        FieldReceived(f"{PARTS}/0/functionCall/willContinue", False),
        ToolCallBegun(1, "", "g", at=f"{PARTS}/1"),
        ArgumentsReceived(1, "{}"),
        ToolCallCompleted(1),
        FieldReceived(f"{PARTS}/1/partMetadata", {"k": 1}),
        finished("tool_calls"),
    ]


def test_other_parts_come_whole():
    part = {"fileData": {"fileUri": "u"}}
    assert read({"text": "a"}, part, {"text": "b"}) == [
        TextReceived(0, "a", at=f"{PARTS}/0"),
        PartReceived(1, Document(Link("u"), at=f"{PARTS}/1")),
        TextReceived(2, "b", at=f"{PARTS}/2"),
        finished(),
    ]


def test_one_part_may_stand_without_a_list_and_content_may_be_missing():
    reply: Any = {
        "candidates": [{"content": {"parts": {"text": "a"}, "new": 1}, "finish_reason": "STOP"}, {"index": 1}]
    }
    assert read_reply(reply) == [
        Started(),
        TextReceived(0, "a", at=PARTS),
        FieldReceived("/candidates/0/content/new", 1),
        Finished("stop", at="/candidates/0/finish_reason"),
        Ended(),
    ]
    assert read_reply({"candidates": [{"content": {}, "finishReason": "STOP"}]})[1:] == [finished(), Ended()]


def test_every_candidate_is_a_choice():
    reply: Any = {
        "candidates": [
            candidate({"text": "a"}, finishReason="STOP", index=1, safetyRatings=[1]),
            candidate({"text": "b"}, finishReason="MAX_TOKENS", index=0, safetyRatings=[2]),
            candidate({"text": "c"}, finishReason="SAFETY"),
        ]
    }
    folded: Any = fold(read_reply(reply))
    assert [(choice.parts[0].text, choice.finish, choice.detail) for choice in folded.choices] == [
        ("b", "length", None),
        ("a", "stop", None),
        ("c", "content_filter", "SAFETY"),
    ]
    assert [field.at for field in folded.unmodelled] == ["/candidates/0/safetyRatings", "/candidates/1/safetyRatings"]


def test_citations_belong_to_the_text_that_they_name():
    source: Any = {"startIndex": 1, "endIndex": 2, "uri": "u"}
    metadata = {"citationSources": [source, source], "more": 1}
    events = read({"text": "abc"}, citationMetadata=metadata)
    citation = next(event for event in events if isinstance(event, CitationReceived))
    assert (citation.part, citation.citation.url, citation.citation.start) == (0, "u", 1)
    assert events[2:] == [FieldReceived("/candidates/0/citationMetadata/more", 1), finished()]
    assert read(citation_metadata={"citations": [source]}) == [
        FieldReceived("/candidates/0/citation_metadata/citations/0", source),
        finished(),
    ]
    assert read(citationMetadata={}) == [finished()]


def test_probabilities():
    result = {"chosenCandidates": [{"token": "a", "logProbability": -1, "tokenId": 7}], "logProbabilitySum": -1}
    at = "/candidates/0/logprobsResult"
    assert read(logprobsResult=result) == [
        LogprobsReceived((TokenLogprob("a", -1.0),), at=at),
        FieldReceived(f"{at}/logProbabilitySum", -1),
        FieldReceived(f"{at}/chosenCandidates/0/tokenId", 7),
        finished(),
    ]


def test_a_failed_answer_is_no_success():
    events = read({"text": "a"}, finish="MALFORMED_FUNCTION_CALL", finishMessage="bad")
    assert events[0] == TextReceived(0, "a", at=f"{PARTS}/0")
    assert isinstance(events[1], Failed)
    assert (events[1].fault.code, events[1].fault.message) == (Code.UPSTREAM_ERROR, "MALFORMED_FUNCTION_CALL: bad")
    assert len(events) == 2
    assert FieldReceived("/candidates/0/finishMessage", "m") in read(finishMessage="m")


def test_a_blocked_prompt_is_filtered():
    body: Any = {"promptFeedback": {"blockReason": "SAFETY", "safetyRatings": [1]}}
    assert read_reply(body) == [
        Started(),
        FieldReceived("/promptFeedback/safetyRatings", [1]),
        Finished("content_filter", detail="SAFETY", at="/promptFeedback/blockReason"),
        Ended(),
    ]
    spelled = read_reply({"prompt_feedback": {"block_reason": "SAFETY"}, "candidates": []})
    assert Finished("content_filter", detail="SAFETY", at="/prompt_feedback/block_reason") in spelled
    beside = read_reply({"promptFeedback": {"blockReason": "X"}, "candidates": [candidate(finishReason="STOP")]})
    assert beside[1:3] == [FieldReceived("/promptFeedback/blockReason", "X"), finished()]
    odd = read_reply({"promptFeedback": 5, "candidates": [candidate(finishReason="STOP")]})
    assert odd[1] == FieldReceived("/promptFeedback", 5)


def test_the_other_spelling_of_a_reply():
    body: Any = {
        "candidates": [candidate(finish_reason="STOP")],
        "usage_metadata": {"prompt_token_count": 1},
        "response_id": "r",
        "model_version": "m",
        "new": 1,
    }
    reply = fold(read_reply(body))
    assert (reply.id, reply.model, reply.usage) == ("r", "m", Usage(input_tokens=1, at="/usage_metadata"))
    assert reply.places == {"id": "/response_id", "model": "/model_version"}
    assert [field.at for field in reply.unmodelled] == ["/new"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"candidates": [candidate({"text": "a"})]}, "the stream ended before the reply was complete"),
        (
            {"candidates": [candidate({"text": "a"}), candidate({"text": "b"}, finishReason="STOP")]},
            "the stream ended before the reply was complete",
        ),
        ({"candidates": []}, "the reply holds no candidate"),
        ({"usageMetadata": {}}, "the reply holds no candidate"),
    ],
)
def test_an_answer_without_an_end_is_a_failure(body, message):
    failed = read_reply(body)[-2]
    assert isinstance(failed, Failed)
    assert failed.fault.message == message


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (None, ""),
        ([], ""),
        ({}, "/candidates"),
        ({"choices": []}, "/candidates"),
        ({"candidates": {}}, "/candidates"),
        ({"candidates": [5]}, "/candidates/0"),
        ({"candidates": [{"index": -1}]}, "/candidates/0/index"),
        ({"candidates": [{"index": 10**9}]}, "/candidates/0/index"),
        ({"candidates": [{"index": "x"}]}, "/candidates/0/index"),
        ({"candidates": [{"content": 5}]}, "/candidates/0/content"),
        ({"candidates": [{"content": {"parts": 5}}]}, "/candidates/0/content/parts"),
        ({"candidates": [{"content": {"parts": [5]}}]}, "/candidates/0/content/parts/0"),
        ({"candidates": [{"finishReason": 5}]}, "/candidates/0/finishReason"),
        ({"candidates": [{"citationMetadata": {"citations": 5}}]}, "/candidates/0/citationMetadata/citations"),
        ({"candidates": [{"logprobsResult": 5}]}, "/candidates/0/logprobsResult"),
        ({"usageMetadata": 5}, "/usageMetadata"),
        ({"candidates": [], "responseId": 5}, "/responseId"),
    ],
)
def test_what_is_no_reply_is_refused_with_a_pointer(body, pointer):
    assert refused_at(read_reply, body) == pointer


@pytest.mark.parametrize(("wrap", "at"), [(lambda body: body, ""), (lambda body: [body], "/0")])
def test_what_an_error_says_besides_its_words_comes_before_it(wrap, at):
    error = {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED", "details": [{"@type": "x"}]}
    events = read_reply(wrap({"error": error, "new": 1, "modelVersion": "g"}))
    assert events[1:3] == [FieldReceived(f"{at}/new", 1), FieldReceived(f"{at}/error/details", [{"@type": "x"}])]
    assert isinstance(events[3], Failed)
    assert events[4:] == [Ended()]


def test_an_error_whose_words_are_no_words():
    assert read_reply({"error": {"message": 5}})[1] == FieldReceived("/error/message", 5)
    assert isinstance(read_reply({"error": "flat"})[1], Failed)


def test_what_a_search_found_is_cited_once_in_the_reply():
    grounding = {
        "groundingChunks": [{"web": {"uri": "https://e.org", "title": "E"}}],
        "groundingSupports": [{"segment": {"endIndex": 2}, "groundingChunkIndices": [0]}],
    }
    candidate = {"content": {"parts": [{"text": "hi there"}]}, "groundingMetadata": grounding}
    reading = ReplyMachine(is_stream=True)
    events = reading.read({"candidates": [candidate]}, 0)
    events += reading.read({"candidates": [{**candidate, "content": {}, "finishReason": "STOP"}]}, 1)
    (text,) = fold(events).choice.parts
    assert [(each.url, each.title, each.start, each.end) for each in text.citations] == [("https://e.org", "E", 0, 2)]


def test_grounding_of_another_shape_is_a_field():
    candidate = {"content": {"parts": [{"text": "a"}]}, "groundingMetadata": 7, "finishReason": "STOP"}
    events = read_reply({"candidates": [candidate]})
    assert FieldReceived("/candidates/0/groundingMetadata", 7) in events


def events_of(data, *cuts):
    frames, reader = SseDecoder(), DIALECT.stream_reader()
    events = []
    for start, end in zip((0, *cuts), (*cuts, len(data)), strict=True):
        events += [event for frame in frames.feed(data[start:end]) for event in reader.feed(frame)]
    events += [event for frame in frames.close() for event in reader.feed(frame)]
    return [*events, *reader.close()]


def feed(*documents):
    """The events of each frame, and those of the end."""
    reader = DIALECT.stream_reader()
    told = [reader.feed(Frame(json.dumps(document).encode())) for document in documents]
    return [*told, reader.close()]


def chunk(*parts, **more):
    return {"candidates": [{"content": {"parts": list(parts), "role": "model"}, **more}]}


def test_text_grows_over_the_frames():
    assert feed(chunk({"text": "a"}), chunk({"text": "b"}, finishReason="STOP")) == [
        [Started(), TextReceived(0, "a", at="/0/candidates/0/content/parts/0")],
        [TextReceived(0, "b")],
        [Finished("stop", at="/1/candidates/0/finishReason"), Ended()],
    ]


def test_identity_is_reported_once_and_usage_only_when_it_changes():
    first = {"responseId": "r", "usageMetadata": {"promptTokenCount": 1}}
    told = feed(first, first, {"usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2}, "responseId": "r"})
    assert [type(event) for event in told[0]] == [Started, UsageReceived]
    assert told[1] == []
    assert [type(event) for event in told[2]] == [UsageReceived]


def test_unknown_field_is_reported_once():
    told = feed(chunk(safetyRatings=[1]), chunk(safetyRatings=[2]), {"new": 1}, {"new": 2})
    assert told[0][1:] == [FieldReceived("/0/candidates/0/safetyRatings", [1])]
    assert (told[1], told[3]) == ([], [])
    assert FieldReceived("/2/new", 1) in told[2]


def test_repeated_finish_reason_gives_one_finish_event():
    told = feed(chunk(finishReason="STOP"), chunk(finishReason="STOP"), {"usageMetadata": {"promptTokenCount": 1}})
    assert told[1] == []
    assert told[3] == [Finished("stop", at="/1/candidates/0/finishReason"), Ended()]


@pytest.mark.parametrize("marker", [b"", b"data: [DONE]\n\n"])
def test_bytes_that_end_without_a_finish_are_a_failure(marker):
    data = b"data: " + json.dumps(chunk({"text": "a"})).encode() + b"\n\n" + marker
    *_, failed, ended = events_of(data)
    assert isinstance(failed, Failed)
    assert (failed.fault.code, ended) == (Code.UPSTREAM_PROTOCOL, Ended())


def test_frame_of_the_wrong_shape_is_reported():
    told = feed({"candidates": 5}, chunk(finishReason="STOP"))
    assert isinstance(told[0][0], FrameBroken)
    assert told[0][0].at == "/0/candidates"
    assert told[2] == [Finished("stop", at="/1/candidates/0/finishReason"), Ended()]
