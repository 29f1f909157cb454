import pytest

from sightline.evals.core.graders.expectation import calls_told, compact, has_rounds, pretty, shorten, transcript
from sightline.evals.core.result import ToolUse
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    Image,
    Link,
    Opaque,
    Part,
    PlainText,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from tests.grading_stage import message

CALL = ToolCall(id="1", name="search", arguments='{"q": "x"}')


def test_values_as_json() -> None:
    assert (pretty([1]), compact({"a": 1})) == ("[\n  1\n]", '{"a":1}')


def test_what_is_long_is_shortened_and_says_so() -> None:
    assert shorten("abc", 3) == "abc"
    assert shorten("abcdefgh", 4) == "ab\n[… 4 characters left out …]\ngh"


def test_calls_are_told_with_what_came_of_them() -> None:
    uses = [
        ToolUse(name="search", arguments={"q": "x"}, result="found"),
        ToolUse(name="shell", arguments="ls", result="no", is_error=True),
    ]
    assert calls_told(uses) == '- search {"q":"x"}\n  answered: found\n- shell ls\n  failed: no'


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Text(text="hello"), "hello"),
        (Refusal(text="no"), "no"),
        (CALL, '[calls search with {"q": "x"}]'),
        (ToolResult(id="1", parts=(Text(text="found"),)), "[the tool answered: found]"),
        (ToolResult(id="1", structured={"n": 1}, is_error=True), '[the tool failed: {"n":1}]'),
        (Image(source=Link(url="u")), "[an image]"),
        (Document(source=PlainText(text="inside"), title="a"), "[a document a]\ninside"),
        (Document(source=Link(url="u")), "[a document ]"),
        (Audio(transcript="spoken"), "spoken"),
        (Audio(), "[sound]"),
    ],
)
def test_every_part_that_can_be_read_is_in_a_transcript(part: Part, words: str) -> None:
    assert transcript([message("assistant", part)]) == f"assistant: {words}"


def test_what_nobody_said_is_not_in_a_transcript() -> None:
    hidden = message("assistant", Thinking(text="hm"), CacheBreakpoint(), Opaque(dialect="x", value=1))
    assert transcript([message("user", "hi"), hidden, message("assistant", "ho")]) == "user: hi\n\nassistant: ho"


def test_tool_rounds_are_more_than_an_answer() -> None:
    assert has_rounds([message("assistant", CALL)])
    assert has_rounds([message("tool", "found")])
    assert not has_rounds([message("assistant", "hi")])
