from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.dialects.dialect import Client
from sightline.dialects.openai_responses import DIALECT
from sightline.dialects.openai_responses.names import NAME
from sightline.errors import Code, Fault
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
    RefusalReceived,
    SignatureReceived,
    Started,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    ToolCallCompleted,
    UsageReceived,
)
from sightline.model.fold import fold
from sightline.model.parts import Citation, Opaque, Thinking
from sightline.model.reply import TokenLogprob, Usage
from sightline.model.report import Report
from sightline.wire.sse import SseDecoder
from tests.contract.essence import essence
from tests.dialects.openai_responses.cases import CLIENT, read_sse, types, written
from tests.dialects.reports import named_losses

START = Started("resp_1", "m", 5)


def body_of(frames):
    return frames[-1]["response"]


def test_the_events_of_a_text():
    frames = written([START, TextReceived(0, "H"), TextReceived(0, "i"), UsageReceived(Usage(input_tokens=3))])
    assert types(frames) == [
        *(
            "created",
            "in_progress",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.delta",
        ),
        *("output_text.done", "content_part.done", "output_item.done", "completed"),
    ]
    assert [frame["sequence_number"] for frame in frames] == list(range(len(frames)))
    assert body_of(frames)["output"] == [frames[-2]["item"]]
    assert body_of(frames)["usage"]["input_tokens"] == 3


def test_every_frame_names_its_type():
    writer = DIALECT.stream_writer(CLIENT, Report())
    data = writer.feed(START) + writer.feed(Finished("stop")) + writer.feed(Ended())
    frames = SseDecoder().feed(data)
    assert [frame.event for frame in frames] == ["response.created", "response.in_progress", "response.completed"]
    assert writer.feed(TextReceived(0, "late")) == b""


RICH = [
    START,
    ThinkingReceived(0, "s", summary=True),
    ThinkingReceived(0, "t", piece=1, summary=True),
    ThinkingReceived(0, "long"),
    SignatureReceived(0, "sig", "anthropic"),
    TextReceived(1, "Hello"),
    CitationReceived(1, Citation(url="u", title="t", start=0, end=5)),
    LogprobsReceived((TokenLogprob("Hello", -0.1, (72,)),)),
    TextReceived(2, "!"),
    PartReceived(3, Thinking(signature="data", signed_by="anthropic", redacted=True)),
    PartReceived(4, Opaque(NAME, {"type": "web_search_call", "id": "ws", "status": "completed"})),
    ToolCallBegun(5, "c1", "f"),
    SignatureReceived(5, "gem", "gemini"),
    ArgumentsReceived(5, '{"a"'),
    ArgumentsReceived(5, ":1}"),
    ToolCallCompleted(5),
    ToolCallBegun(6, "c2", "g", kind="custom", namespace="ns", item="ctc_own"),
    ArgumentsReceived(6, "raw"),
    ToolCallCompleted(6),
    UsageReceived(Usage(input_tokens=1, output_tokens=2)),
    FieldReceived("/x", 1),
    FrameBroken("/9", "bad"),
    UsageReceived(Usage(output_tokens=5)),
    Finished("tool_calls"),
    Ended(),
]


def test_the_stream_is_the_whole_reply():
    frames = written(RICH)
    whole = DIALECT.write_reply(fold(RICH), CLIENT, Report())
    assert body_of(frames) == whole
    writer = DIALECT.stream_writer(CLIENT, Report())
    data = b"".join(writer.feed(event) for event in RICH)
    assert essence(fold(read_sse(data))) == essence(fold(DIALECT.read_reply(whole)))
    done = [frame["item"] for frame in frames if frame["type"] == "response.output_item.done"]
    assert done == whole["output"]


def test_calls_that_arrive_at_once_leave_one_after_the_other():
    frames = written(
        [
            ToolCallBegun(0, "a", "f"),
            ToolCallBegun(1, "b", "g"),
            ArgumentsReceived(0, '{"x":'),
            ArgumentsReceived(1, "{}"),
            ArgumentsReceived(0, "1}"),
            ToolCallCompleted(1),
            ToolCallCompleted(0),
            Finished("tool_calls"),
        ]
    )
    assert [item["arguments"] for item in body_of(frames)["output"]] == ['{"x":1}', "{}"]
    indexes = [frame["output_index"] for frame in frames if "output_index" in frame]
    assert indexes == sorted(indexes)


def test_a_refusal_without_words_is_a_filtered_answer_in_both_forms():
    events = [START, RefusalReceived(0, ""), Finished("refusal", at="/stop_reason"), Ended()]
    streamed, whole = Report(), Report()
    frames = written(events, streamed)
    assert types(frames) == ["created", "in_progress", "incomplete"]
    assert body_of(frames) == DIALECT.write_reply(fold(events), CLIENT, whole)
    assert body_of(frames)["incomplete_details"] == {"reason": "content_filter"}
    assert named_losses(streamed) == named_losses(whole) == [("/stop_reason", "refusal", "identity")]


def test_signatures_that_have_no_field_go_before_their_part_or_are_lost():
    report = Report()
    frames = written(
        [
            TextReceived(0, "words", at="/t"),
            SignatureReceived(0, "lost", "gemini"),
            TextReceived(1, ""),
            SignatureReceived(1, "kept", "gemini"),
            TextReceived(2, ""),
            TextReceived(2, "more"),
            SignatureReceived(3, None, "gemini"),
        ],
        report,
    )
    output = body_of(frames)["output"]
    assert [item["type"] for item in output] == ["message", "reasoning", "message", "reasoning"]
    assert output[1]["encrypted_content"] == "sightline:gemini:next:kept"
    assert named_losses(report) == [("/t", "signature", "identity")]


def test_identity_is_fixed_when_the_stream_opens():
    frames = written([Started(), Started(model="late"), TextReceived(0, "a"), Started("too late", "x", 1)])
    assert {frame["response"]["id"] for frame in frames if "response" in frame} == {"resp_c"}
    assert body_of(frames)["model"] == "late"
    frames = written([TextReceived(0, "a"), Started(model="later")], client=Client(id="i"))
    assert body_of(frames)["model"] == "later"
    frames = written([TextReceived(0, "a"), Started(created=9)], client=Client(id="i"))
    assert body_of(frames)["created_at"] == 9


def test_a_failure_is_the_last_frame_and_keeps_what_came():
    fault = Fault(Code.OVERLOADED, "busy")
    frames = written(
        [START, TextReceived(0, "so far"), ToolCallBegun(1, "c", "f"), ArgumentsReceived(1, "{"), Failed(fault)]
    )
    assert types(frames)[-1] == "failed"
    assert body_of(frames)["error"] == {"code": "server_is_overloaded", "message": "busy"}
    assert [item["status"] for item in body_of(frames)["output"]] == ["completed", "incomplete"]
    assert types(frames).count("completed") == 0


def test_a_failure_before_anything_came_is_a_stream_too():
    assert types(written([Failed(Fault(Code.AUTH, "no"))])) == ["created", "in_progress", "failed"]


texts = st.text(max_size=5)
events = st.one_of(
    st.builds(TextReceived, st.integers(0, 3), texts),
    st.builds(RefusalReceived, st.integers(0, 3), texts),
    st.builds(ThinkingReceived, st.integers(0, 3), texts, piece=st.integers(0, 2), summary=st.booleans()),
    st.builds(SignatureReceived, st.integers(0, 3), st.none() | texts, st.sampled_from([NAME, "gemini"])),
    st.builds(ToolCallBegun, st.integers(0, 3), texts, texts, kind=st.sampled_from(["function", "custom"])),
    st.builds(ArgumentsReceived, st.integers(0, 3), texts),
    st.builds(ToolCallCompleted, st.integers(0, 3)),
    st.builds(CitationReceived, st.integers(0, 3), st.builds(Citation, url=texts, start=st.just(0), end=st.just(1))),
)


@given(st.lists(events, max_size=20))
@settings(max_examples=200)
def test_whatever_comes_the_snapshot_is_what_was_streamed(drawn):
    frames = written([*drawn, Finished("stop"), Ended()])
    assert [frame["sequence_number"] for frame in frames] == list(range(len(frames)))
    items = {}
    for frame in frames:
        if frame["type"] == "response.output_item.done":
            items[frame["output_index"]] = frame["item"]
    assert body_of(frames)["output"] == [items[index] for index in sorted(items)]
    assert types(frames)[-1] == "completed"
