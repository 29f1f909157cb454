import pytest

from sightline.dialects.gemini.reply_fields import FAILURES, FILTERS, failure, read_finish, write_finish
from sightline.errors import Code
from sightline.model.events import Finished
from sightline.model.reply import Choice
from sightline.model.report import Report


@pytest.mark.parametrize(
    ("word", "finish", "detail"),
    [
        ("STOP", "stop", None),
        ("MAX_TOKENS", "length", None),
        ("CONTINUATION", "pause", "CONTINUATION"),
        ("SAFETY", "content_filter", "SAFETY"),
        ("SPII", "content_filter", "SPII"),
        ("SOMETHING_NEW", "content_filter", "SOMETHING_NEW"),
    ],
)
def test_every_reason_is_read(word, finish, detail):
    assert read_finish(word) == (finish, detail)


@pytest.mark.parametrize("word", sorted(FILTERS))
def test_a_filter_is_written_by_its_own_word(word):
    report = Report()
    assert write_finish(Finished("content_filter", detail=word), "content_filter", report) == word
    assert report.losses == ()


@pytest.mark.parametrize(
    ("finish", "detail", "stop", "word", "lost"),
    [
        ("stop", None, None, "STOP", []),
        ("tool_calls", None, None, "STOP", []),
        ("length", None, None, "MAX_TOKENS", []),
        ("content_filter", None, None, "SAFETY", []),
        ("content_filter", "JAILBREAK", None, "SAFETY", ["identity"]),
        ("refusal", None, None, "SAFETY", ["option"]),
        ("pause", None, None, "STOP", ["option"]),
        ("pause", "CONTINUATION", None, "CONTINUATION", []),
        ("stop", None, "END", "STOP", ["identity"]),
        ("error", None, None, "OTHER", []),
    ],
)
def test_every_finish_is_written(finish, detail, stop, word, lost):
    report = Report()
    ending = Finished(finish, detail=detail, stop_sequence=stop, at="/f", stop_at="/s" if stop else "")
    assert write_finish(ending, finish, report) == word
    assert [loss.severity for loss in report.losses] == lost
    assert all(loss.pointer == ("/s" if stop else "/f") for loss in report.losses)
    choice = Choice(finish=finish, detail=detail, stop_sequence=stop, finish_at="/f")
    assert write_finish(choice, finish, report) == word


def test_a_failure_keeps_the_words_of_the_provider():
    told = failure("MALFORMED_FUNCTION_CALL", "bad call", "/f")
    assert told.code is Code.UPSTREAM_ERROR
    assert told.message == "MALFORMED_FUNCTION_CALL: bad call"
    assert told.pointer == "/f"
    assert failure("OTHER", None, "/f").message == "the model stopped with OTHER"
    assert not FAILURES & FILTERS
