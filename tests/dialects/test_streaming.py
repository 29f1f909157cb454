import pytest

from sightline.dialects.streaming import (
    StreamReader,
    broken_frame_fault,
    finish_for_content,
    no_reply,
    truncation_fault,
)
from sightline.errors import Code, Fault
from sightline.model.events import Ended, Failed, Finished, FrameBroken, SignatureReceived, StreamEvent, TextReceived
from sightline.model.json import JsonObject
from sightline.model.reply import Finish
from sightline.wire.sse import Frame


class Scripted:
    """A machine that says what its frames tell it to."""

    def __init__(self) -> None:
        self.over = False

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
                self.over = True
                return [Finished("stop")]
            case _:
                raise Fault(Code.INVALID_REQUEST, "odd shape", pointer=f"/{index}/say")

    def read_done_marker(self) -> list[StreamEvent]:
        return [Finished("length")]

    def is_over(self) -> bool:
        return self.over


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


def test_nothing_is_heard_after_a_failure() -> None:
    reader = StreamReader(Scripted())
    assert reader.feed(frame("fail")) == [TextReceived(0, "x"), Failed(Fault(Code.OVERLOADED, "full")), Ended()]
    assert reader.feed(frame("text")) == []


@pytest.mark.parametrize(
    ("data", "at"), [(b"{", "/0"), (b"[1]", "/0"), (b'{"say":"nonsense"}', "/0/say"), (b"\xff", "/0")]
)
def test_a_frame_that_cannot_be_read_is_told_and_passed_over(data: bytes, at: str) -> None:
    reader = StreamReader(Scripted())
    (event,) = reader.feed(Frame(data))
    assert isinstance(event, FrameBroken)
    assert event.at == at
    reader.feed(frame("finish"))
    assert reader.close() == [Finished("stop"), Ended()]
    assert broken_frame_fault(event).code == Code.UPSTREAM_PROTOCOL


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
def test_what_is_no_reply_is_told_by_what_it_is(data: bytes, message: str) -> None:
    fault = no_reply(data)
    assert (fault.code, fault.message) == (Code.UPSTREAM_PROTOCOL, message)
    assert "base URL" in fault.hint
