"""Reading streams: frames to events, text deltas, and answers that turn out to be whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.registry import dialect
from sightline.dialects.streaming import (
    Machine,
    Sequencer,
    StreamReader,
    TextDeltas,
    fault_of_broken_frame,
    finish_for_content,
    no_reply,
    truncation_fault,
)
from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Failed,
    Finished,
    FrameBroken,
    SignatureReceived,
    Started,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    ToolCallCompleted,
)
from sightline.model.fold import fold
from sightline.model.json import JsonObject
from sightline.model.parts import Citation
from sightline.model.reply import Finish
from sightline.model.report import Report
from sightline.wire.jsontext import encode
from sightline.wire.sse import Frame
from tests.dialects.reports import losses


class Scripted(Machine):
    """A machine that says what its frames tell it to."""

    def read(self, document: JsonObject, index: int) -> list[StreamEvent]:
        match document.get("say"):
            case "text":
                return [TextReceived(0, str(index))]
            case "other":
                return [TextReceived(0, "x", choice=1)]
            case "late":
                return [SignatureReceived(0, "s", "d")]
            case "finish":
                return [Finished("stop")]
            case "fail":
                return [TextReceived(0, "x"), Failed(Fault(Code.OVERLOADED, "full")), TextReceived(0, "never")]
            case "over":
                self.is_over = True
                return [Finished("stop")]
            case _:
                raise Fault(Code.INVALID_REQUEST, "odd shape", pointer=f"/{index}/say")

    def read_done_marker(self) -> list[StreamEvent]:
        return [Finished("length")]


def frame(word: str) -> Frame:
    return Frame(b'{"say":"%b"}' % word.encode())


def test_frames_are_counted_and_the_end_comes_once() -> None:
    reader = StreamReader(Scripted())
    assert reader.feed(frame("text")) == [TextReceived(0, "0")]
    assert reader.feed(frame("text")) == [TextReceived(0, "1")]
    assert reader.feed(frame("finish")) == []
    assert reader.close() == [Finished("stop"), Ended()]
    assert reader.close() == []
    assert reader.feed(frame("text")) == []


def test_a_stream_is_complete_when_all_that_began_has_finished() -> None:
    reader = StreamReader(Scripted())
    assert not reader.is_complete
    reader.feed(frame("text"))
    assert not reader.is_complete
    reader.feed(frame("finish"))
    assert reader.is_complete
    reader.feed(frame("other"))
    assert not reader.is_complete


def test_finishes_come_last_because_parts_may_come_behind_them() -> None:
    reader = StreamReader(Scripted())
    reader.feed(frame("finish"))
    assert reader.feed(frame("late")) == [SignatureReceived(0, "s", "d")]
    assert reader.close() == [Finished("stop"), Ended()]


def test_every_choice_that_has_begun_must_finish() -> None:
    reader = StreamReader(Scripted())
    reader.feed(frame("finish"))
    reader.feed(frame("other"))
    assert reader.close() == [Failed(truncation_fault()), Ended()]


def test_bytes_that_stop_without_a_finish_are_a_failure() -> None:
    reader = StreamReader(Scripted())
    reader.feed(frame("text"))
    assert reader.close() == [Failed(truncation_fault()), Ended()]


def test_the_done_marker_lets_the_machine_finish() -> None:
    reader = StreamReader(Scripted())
    assert reader.feed(Frame(b"[DONE]")) == [Finished("length"), Ended()]


def test_a_legal_last_frame_ends_at_once() -> None:
    assert StreamReader(Scripted()).feed(frame("over")) == [Finished("stop"), Ended()]


def test_frames_after_a_failure_are_ignored() -> None:
    reader = StreamReader(Scripted())
    assert reader.feed(frame("fail")) == [TextReceived(0, "x"), Failed(Fault(Code.OVERLOADED, "full")), Ended()]
    assert reader.feed(frame("text")) == []


@pytest.mark.parametrize(
    ("data", "at"), [(b"{", "/0"), (b"[1]", "/0"), (b'{"say":"nonsense"}', "/0/say"), (b"\xff", "/0")]
)
def test_unreadable_frame_is_reported_and_skipped(data: bytes, at: str) -> None:
    reader = StreamReader(Scripted())
    (event,) = reader.feed(Frame(data))
    assert isinstance(event, FrameBroken)
    assert event.at == at
    reader.feed(frame("finish"))
    assert reader.close() == [Finished("stop"), Ended()]
    assert fault_of_broken_frame(event).code == Code.UPSTREAM_PROTOCOL


@pytest.mark.parametrize(
    ("finish", "has_calls", "expected"),
    [
        ("stop", True, "tool_calls"),
        ("stop", False, "stop"),
        ("tool_calls", False, "stop"),
        ("tool_calls", True, "tool_calls"),
        ("length", True, "length"),
    ],
)
def test_a_finish_agrees_with_the_content(finish: Finish, has_calls: bool, expected: Finish) -> None:
    assert finish_for_content(finish, has_calls=has_calls) == expected


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\n<!DOCTYPE html>\n<p>Sign in", "the answer is a web page: <!DOCTYPE html> <p>Sign in"),
        (b"<HTML>502", "the answer is a web page: <HTML>502"),
        (b"upstream\tfailed", "the answer is no reply of the provider's API: upstream failed"),
        (b" \r\n", "the answer is empty"),
    ],
)
def test_non_reply_body_is_described_in_the_error(data: bytes, message: str) -> None:
    fault = no_reply(data)
    assert (fault.code, fault.message) == (Code.UPSTREAM_PROTOCOL, message)
    assert "base URL" in fault.hint


ONE = b'{"delta":{"content":"one"}}'


def grown(first: bytes, event: TextReceived | ThinkingReceived) -> TextDeltas:
    growth = TextDeltas()
    growth.learn(first, event)
    return growth


def test_a_frame_like_the_last_is_its_text() -> None:
    growth = grown(ONE, TextReceived(3, "one", 1))
    assert growth.read(b'{"delta":{"content":"two \\"quoted\\" \\u00e9"}}') == TextReceived(3, 'two "quoted" \u00e9', 1)
    assert growth.read(ONE) == TextReceived(3, "one", 1)


def test_thinking_grows_alike() -> None:
    assert grown(ONE, ThinkingReceived(0, "one")).read(ONE) == ThinkingReceived(0, "one")


@pytest.mark.parametrize(
    "frame",
    [
        b'{"delta":{"content":""}}',
        b'{"delta":{"content":"one"},"more":1}',
        b'{"delta":{"content":null}}',
        b'{"delta":{"content":"a","content":"b"}}',
        b'{"delta":{"content":"\\ud800"}}',
        b'{"delta":{"content":"\xff"}}',
        b'{"delta":{"content":"}}',
        b"[DONE]",
    ],
)
def test_any_other_frame_has_to_be_taken_apart_and_so_has_the_next(frame: bytes) -> None:
    growth = grown(ONE, TextReceived(0, "one"))
    assert growth.read(frame) is None
    assert growth.read(ONE) is None


def test_nothing_is_learned_if_the_text_position_is_ambiguous() -> None:
    assert grown(b'{"model":"one","content":"one"}', TextReceived(0, "one")).read(ONE) is None
    assert grown(b'{"content":"\\u006fne"}', TextReceived(0, "one")).read(b'{"content":"two"}') is None
    assert grown(ONE, TextReceived(0, "\ud800")).read(ONE) is None
    assert grown(b'{"content":":"}', TextReceived(0, ":")).read(b'{"content": ":"}') is None


@pytest.mark.parametrize(
    ("frame", "next_frame"),
    [
        (b'{"content":"\\u006fne","note":"one"}', b'{"content":"\\u006fne","note":"two"}'),
        (b'{"note":"one","content":"\\u006fne"}', b'{"note":"two","content":"\\u006fne"}'),
        (b'{"one":"\\u006fne"}', b'{"two":"\\u006fne"}'),
    ],
)
def test_a_string_that_equals_a_text_with_an_escape_is_not_taken_for_it(frame: bytes, next_frame: bytes) -> None:
    assert grown(frame, TextReceived(0, "one")).read(next_frame) is None


def test_learning_stops_for_streams_that_number_their_frames() -> None:
    growth = TextDeltas()
    for number in range(4):
        growth.learn(b'{"n":%d,"text":"one"}' % number, TextReceived(0, "one"))
        assert growth.read(b'{"n":%d,"text":"one"}' % (number + 1)) is None
    growth.learn(b'{"n":9,"text":"one"}', TextReceived(0, "one"))
    assert growth.read(b'{"n":9,"text":"two"}') is None


@given(st.lists(st.text(), max_size=8), st.booleans())
def test_a_stream_says_the_same_however_it_is_read(texts: list[str], has_role: bool) -> None:
    role = {"role": "assistant"} if has_role else {}
    frames = [
        encode({"id": "i", "model": "m", "choices": [{"index": 0, "delta": {**role, "content": text}}]})
        for text in texts
    ]
    frames.append(encode({"id": "i", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
    reader = dialect("openai-chat").stream_reader()
    reply = fold([event for frame in frames for event in reader.feed(Frame(frame))] + reader.close())
    assert "".join(part.text for part in reply.choice.parts if hasattr(part, "text")) == "".join(texts)
    assert reply.choice.finish == "stop"


def frames(*texts: bytes) -> list[Frame]:
    return [Frame(b'{"delta":{"content":"%b"}}' % text) for text in texts]


def test_several_frames_like_the_last_are_one_text() -> None:
    growth = grown(ONE, TextReceived(3, "one", 1))
    run = [*frames(b"a", b"b ", b"c"), Frame(b"[DONE]")]
    assert growth.read_run(run, 0) == (TextReceived(3, "ab c", 1), 3)
    assert growth.read_run(run, 1) == (TextReceived(3, "b c", 1), 2)
    assert growth.read_run(run, 2) == (None, 0)
    assert growth.read(run[2].data) == TextReceived(3, "c", 1)


@pytest.mark.parametrize("text", [b"\\u00", b"\\", b'"', b"\xc3", b""])
def test_what_may_be_cut_in_two_is_read_by_itself(text: bytes) -> None:
    growth = grown(ONE, TextReceived(0, "one"))
    assert growth.read_run(frames(b"a", text, b"b", b"c"), 0) == (None, 0)
    assert growth.read_run(frames(b"a", b"b", text), 0) == (TextReceived(0, "ab"), 2)


def test_a_run_that_is_no_json_has_to_be_taken_apart() -> None:
    growth = grown(ONE, TextReceived(0, "one"))
    assert growth.read_run(frames(b"a", b"\n"), 0) == (None, 0)
    assert growth.read_run(frames(b"a", b"b"), 0) == (None, 0)


def sequenced(*events: StreamEvent) -> tuple[list[StreamEvent], Report]:
    report = Report()
    sequencer = Sequencer(report, "anthropic")
    return [out for event in events for out in sequencer.feed(event)], report


def test_parts_are_numbered_in_the_order_in_which_they_are_written() -> None:
    out, _ = sequenced(Started("id"), TextReceived(3, "a"), TextReceived(3, "b"), TextReceived(7, "c"), Ended())
    assert out == [Started("id"), TextReceived(0, "a"), TextReceived(0, "b"), TextReceived(1, "c"), Ended()]


def test_interleaved_calls_come_out_one_after_the_other() -> None:
    out, _ = sequenced(
        ToolCallBegun(1, "c1", "a"),
        ToolCallBegun(2, "c2", "b"),
        ArgumentsReceived(1, "x"),
        ArgumentsReceived(2, "y"),
        TextReceived(0, "late"),
        ToolCallCompleted(2),
        ArgumentsReceived(1, "z"),
        ToolCallCompleted(1),
        Finished("tool_calls"),
    )
    assert out == [
        ToolCallBegun(0, "c1", "a"),
        ArgumentsReceived(0, "x"),
        ArgumentsReceived(0, "z"),
        ToolCallCompleted(0),
        ToolCallBegun(1, "c2", "b"),
        ArgumentsReceived(1, "y"),
        ToolCallCompleted(1),
        TextReceived(2, "late"),
        Finished("tool_calls"),
    ]


def test_incomplete_calls_are_written_at_the_end() -> None:
    fault = Failed(Fault(Code.NETWORK, "gone"))
    out, _ = sequenced(ToolCallBegun(1, "c1", "a"), ToolCallBegun(2, "c2", "b"), ToolCallBegun(3, "c3", "c"), fault)
    assert out == [ToolCallBegun(0, "c1", "a"), ToolCallBegun(1, "c2", "b"), ToolCallBegun(2, "c3", "c"), fault]


def test_other_choices_are_a_loss() -> None:
    finished = Finished("stop", 1, at="/7/choices/1/finish_reason")
    out, report = sequenced(TextReceived(0, "a"), TextReceived(0, "b", choice=1), finished)
    assert out == [TextReceived(0, "a")]
    assert losses(report) == [("/7/choices/1", "content")]


def test_a_citation_of_a_text_that_is_written_is_reported() -> None:
    report = Report()
    sequencer = Sequencer(report, "d")
    sequencer.feed(TextReceived(0, "a"))
    assert sequencer.feed(CitationReceived(0, Citation("u"))) == [CitationReceived(0, Citation("u"))]
    sequencer.feed(TextReceived(1, "b"))
    assert sequencer.feed(CitationReceived(0, Citation("u", at="/c"))) == []
    assert losses(report) == [("/c", "option")]
