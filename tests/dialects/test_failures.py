"""Failures in every dialect: errors in place of replies, and replies and streams that do not come to their end."""

import pytest

from sightline.dialects.dialect import Client
from sightline.dialects.registry import NAMES, dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.errors import Code, Fault
from sightline.model.events import Ended, Failed, Finished, Started, StreamEvent, TextReceived
from sightline.model.fold import fold
from sightline.model.parts import Text
from sightline.model.reply import Choice, Reply
from sightline.model.report import Report
from tests.dialects.reports import losses

BUSY = Fault(Code.OVERLOADED, "busy")


def streamed(name: str, *events: StreamEvent) -> list[StreamEvent]:
    """What a reader of the stream hears that these events are written as."""
    writer, decoder = dialect(name).stream_writer(Client(), Report()), ReplyDecoder(dialect(name))
    return decoder.feed(b"".join([writer.feed(event) for event in events])) + decoder.close()


def fault_in(events: list[StreamEvent]) -> Fault:
    *_, failed, ended = events
    assert isinstance(failed, Failed)
    assert ended == Ended()
    return failed.fault


@pytest.mark.parametrize("name", NAMES)
def test_an_error_body_is_a_failure(name: str) -> None:
    fault = fault_in(dialect(name).read_reply(dialect(name).write_error(BUSY)[1]))
    assert (fault.code, fault.message) == (Code.OVERLOADED, "busy")


@pytest.mark.parametrize("name", ["anthropic", "gemini", "openai-chat"])
def test_a_failed_reply_is_an_error_body_and_its_partial_text_is_a_loss(name: str) -> None:
    report = Report()
    choice = Choice(parts=(Text("half", at="/t"),), finish="error")
    body = dialect(name).write_reply(Reply(choices=(choice,), fault=BUSY), Client(), report)
    assert body == dialect(name).write_error(BUSY)[1]
    assert losses(report) == [("/t", "content")]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("told", [[], [Started("r", "m")], [Started("r", "m"), TextReceived(0, "half")]])
def test_a_stream_that_stops_without_a_finish_has_failed(name: str, told: list[StreamEvent]) -> None:
    assert fault_in(streamed(name, *told)).code is Code.UPSTREAM_PROTOCOL


@pytest.mark.parametrize("name", NAMES)
def test_a_failure_ends_a_stream_and_what_came_before_it_is_kept(name: str) -> None:
    events = streamed(name, TextReceived(0, "half"), Failed(BUSY), Ended())
    assert (fault_in(events).code, fault_in(events).message) == (Code.OVERLOADED, "busy")
    assert [getattr(part, "text", "") for part in fold(events).choice.parts] == ["half"]


@pytest.mark.parametrize("name", ["anthropic", "gemini", "openai-responses"])
def test_an_end_without_a_finish_is_written_as_a_failure(name: str) -> None:
    assert "before the reply was complete" in fault_in(streamed(name, TextReceived(0, "half"), Ended())).message
    assert isinstance(streamed(name, TextReceived(0, "half"), Finished("stop"), Ended())[-2], Finished)
