import pytest

from sightline.dialects.raw.finishes import read_finish, write_finish
from sightline.errors import Code
from sightline.model.events import Failed, Finished


@pytest.mark.parametrize("word", ["stop", "length", "content_filter", "refusal", "pause"])
def test_our_own_words_are_said_exactly(word):
    holder = write_finish(word, "DETAIL", "END")
    assert holder == {"finishReason": word, "finishDetail": "DETAIL", "stopSequence": "END"}
    assert read_finish(holder, 1, "/0", has_calls=False) == Finished(
        word, 1, "DETAIL", "END", at="/0/finishReason", stop_at="/0/stopSequence"
    )


@pytest.mark.parametrize(
    ("word", "has_calls", "finish", "detail"),
    [
        ("tool_calls", True, "tool_calls", None),
        ("tool_calls", False, "stop", None),
        ("stop", True, "tool_calls", None),
        ("function_call", True, "tool_calls", "function_call"),
        ("DONE", False, "stop", "DONE"),
        ("Iteration Done", False, "stop", "Iteration Done"),
        (None, False, "stop", None),
    ],
)
def test_the_end_agrees_with_the_content(word, has_calls, finish, detail):
    event = read_finish({"finishReason": word}, 0, "", has_calls=has_calls)
    assert isinstance(event, Finished)
    assert (event.finish, event.detail) == (finish, detail)


@pytest.mark.parametrize(("word", "code"), [("error", Code.UPSTREAM_ERROR), ("cancelled", Code.CANCELLED)])
def test_a_failure_is_never_a_finish(word, code):
    event = read_finish({"finishReason": word}, 0, "", has_calls=False)
    assert isinstance(event, Failed)
    assert event.fault.code is code


def test_nothing_is_said_where_nothing_is_known():
    assert write_finish(None, None, None) == {}
