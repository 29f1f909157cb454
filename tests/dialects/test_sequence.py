from sightline.dialects.streaming import Sequencer
from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Failed,
    Finished,
    Started,
    StreamEvent,
    TextReceived,
    ToolCallBegun,
    ToolCallCompleted,
)
from sightline.model.parts import Citation
from sightline.model.report import Report


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


def test_calls_that_nobody_completes_are_written_at_the_end() -> None:
    fault = Failed(Fault(Code.NETWORK, "gone"))
    out, _ = sequenced(ToolCallBegun(1, "c1", "a"), ToolCallBegun(2, "c2", "b"), ToolCallBegun(3, "c3", "c"), fault)
    assert out == [ToolCallBegun(0, "c1", "a"), ToolCallBegun(1, "c2", "b"), ToolCallBegun(2, "c3", "c"), fault]


def test_other_choices_are_a_loss() -> None:
    finished = Finished("stop", 1, at="/7/choices/1/finish_reason")
    out, report = sequenced(TextReceived(0, "a"), TextReceived(0, "b", choice=1), finished)
    assert out == [TextReceived(0, "a")]
    assert [(loss.pointer, loss.severity) for loss in report.losses] == [("/7/choices/1", "content")]


def test_a_citation_of_a_text_that_is_written_is_reported() -> None:
    report = Report()
    sequencer = Sequencer(report, "d")
    sequencer.feed(TextReceived(0, "a"))
    assert sequencer.feed(CitationReceived(0, Citation("u"))) == [CitationReceived(0, Citation("u"))]
    sequencer.feed(TextReceived(1, "b"))
    assert sequencer.feed(CitationReceived(0, Citation("u", at="/c"))) == []
    assert [(loss.pointer, loss.severity) for loss in report.losses] == [("/c", "option")]
