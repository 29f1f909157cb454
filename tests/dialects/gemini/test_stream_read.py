import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.gemini.reply_read import read_reply, stream_reader
from sightline.errors import Code
from sightline.model.events import (
    Ended,
    Failed,
    FieldReceived,
    Finished,
    FrameBroken,
    Started,
    TextReceived,
    UsageReceived,
)
from sightline.model.fold import fold
from sightline.wire.sse import Frame, SseDecoder

CASES = Path(__file__).parents[2] / "wire_cases" / "gemini"
STREAMS = sorted(CASES.glob("*/stream.sse"))


def events_of(data, *cuts):
    frames, reader = SseDecoder(), stream_reader()
    events = []
    for start, end in zip((0, *cuts), (*cuts, len(data)), strict=True):
        events += [event for frame in frames.feed(data[start:end]) for event in reader.feed(frame)]
    events += [event for frame in frames.close() for event in reader.feed(frame)]
    return [*events, *reader.close()]


def comparable(reply):
    """A reply without the places in its source, and without what we do not model."""

    def stripped(value):
        if isinstance(value, dict):
            return {
                key: stripped(inner)
                for key, inner in value.items()
                if key not in ("at", "finish_at", "logprobs_at", "places", "unmodelled")
            }
        return [stripped(inner) for inner in value] if isinstance(value, (list, tuple)) else value

    fault = reply.fault
    shown = stripped(msgspec.to_builtins(msgspec.structs.replace(reply, fault=None)))
    return shown, None if fault is None else (fault.code, fault.message)


def feed(*documents):
    """The events of each frame, and those of the end."""
    reader = stream_reader()
    told = [reader.feed(Frame(json.dumps(document).encode())) for document in documents]
    return [*told, reader.close()]


def chunk(*parts, **more):
    return {"candidates": [{"content": {"parts": list(parts), "role": "model"}, **more}]}


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.parent.name)
def test_a_stream_amounts_to_its_whole(path):
    whole = read_reply(json.loads((path.parent / "reply.json").read_bytes()))
    assert comparable(fold(events_of(path.read_bytes()))) == comparable(fold(whole))


@given(st.sampled_from(STREAMS), st.lists(st.integers(0, 5000), max_size=6))
def test_any_split_of_the_bytes_gives_the_same_events(path, cuts):
    data = path.read_bytes()
    assert events_of(data, *sorted(min(cut, len(data)) for cut in cuts)) == events_of(data)


def test_text_grows_over_the_frames():
    assert feed(chunk({"text": "a"}), chunk({"text": "b"}, finishReason="STOP")) == [
        [Started(), TextReceived(0, "a", at="/0/candidates/0/content/parts/0")],
        [TextReceived(0, "b")],
        [Finished("stop", at="/1/candidates/0/finishReason"), Ended()],
    ]


def test_who_answers_is_told_once_and_counts_when_they_change():
    first = {"responseId": "r", "usageMetadata": {"promptTokenCount": 1}}
    told = feed(first, first, {"usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2}, "responseId": "r"})
    assert [type(event) for event in told[0]] == [Started, UsageReceived]
    assert told[1] == []
    assert [type(event) for event in told[2]] == [UsageReceived]


def test_an_unknown_field_is_told_once():
    told = feed(chunk(safetyRatings=[1]), chunk(safetyRatings=[2]), {"new": 1}, {"new": 2})
    assert told[0][1:] == [FieldReceived("/0/candidates/0/safetyRatings", [1])]
    assert (told[1], told[3]) == ([], [])
    assert FieldReceived("/2/new", 1) in told[2]


def test_a_finish_that_is_told_again_is_told_once():
    told = feed(chunk(finishReason="STOP"), chunk(finishReason="STOP"), {"usageMetadata": {"promptTokenCount": 1}})
    assert told[1] == []
    assert told[3] == [Finished("stop", at="/1/candidates/0/finishReason"), Ended()]


def test_an_error_frame_ends_the_stream():
    told = feed(chunk({"text": "a"}), {"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}}, {})
    assert isinstance(told[1][-2], Failed)
    assert told[1][-2].fault.code is Code.RATE_LIMITED
    assert told[1][-1] == Ended()
    assert told[2:] == [[], []]


@pytest.mark.parametrize("marker", [b"", b"data: [DONE]\n\n"])
def test_bytes_that_end_without_a_finish_are_a_failure(marker):
    data = b"data: " + json.dumps(chunk({"text": "a"})).encode() + b"\n\n" + marker
    *_, failed, ended = events_of(data)
    assert isinstance(failed, Failed)
    assert (failed.fault.code, ended) == (Code.UPSTREAM_PROTOCOL, Ended())


def test_a_frame_that_is_not_of_the_dialect_is_told():
    told = feed({"candidates": 5}, chunk(finishReason="STOP"))
    assert isinstance(told[0][0], FrameBroken)
    assert told[0][0].at == "/0/candidates"
    assert told[2] == [Finished("stop", at="/1/candidates/0/finishReason"), Ended()]
