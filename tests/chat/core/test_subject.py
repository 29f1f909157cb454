import pytest

from sightline.chat.core.matching import FIELDS, PairSubject
from sightline.chat.core.pair import ChatAnswer, MessagePair, Trouble, text_answer
from sightline.filters.predicate import Value
from sightline.model.message import Message
from sightline.model.parts import Image, Link, Text, ToolCall
from sightline.model.usage import Usage

WHOLE = PairSubject(
    MessagePair(
        id="a",
        model="acme",
        user_text="Why is it so?",
        attachments=(Image(Link("https://example.org/a.png")),),
        answer=ChatAnswer(
            messages=(Message("assistant", (Text("Because."), ToolCall("c", "look_up", "{}"))),),
            finish="stop",
            usage=Usage(input_tokens=5, output_tokens=2, cached_tokens=1),
            seconds=1.5,
        ),
        star=2,
        flag="grey",
        state="complete",
        at=9.0,
    ),
    ("AI", "Research"),
)
BARE = PairSubject(MessagePair(id="b", state="error", trouble=Trouble("auth", "no")), ())


@pytest.mark.parametrize(
    ("name", "whole", "bare"),
    [
        ("id", "a", "b"),
        ("topic", ("AI", "Research"), ()),
        ("model", "acme", ""),
        ("stars", 2, 0),
        ("flag", "grey", "blue"),
        ("attachments", 1, 0),
        ("state", "finished", "failed"),
        ("fault", None, "auth"),
        ("finish", "stop", None),
        ("tool", ("look_up",), ()),
        ("time", 1.5, None),
        ("input", 5, None),
        ("output", 2, None),
        ("cached", 1, None),
        ("at", 9.0, 0.0),
        ("status", None, None),
        ("session", None, None),
    ],
)
def test_a_pair_has_the_fields_that_filters_ask_for(name: str, whole: Value, bare: Value) -> None:
    assert (WHOLE.value(name), BARE.value(name)) == (whole, bare)
    assert (name in FIELDS) == (name not in ("topic", "status", "session"))


def test_an_answer_without_counts_has_none() -> None:
    assert PairSubject(MessagePair(id="a", answer=text_answer("x")), ()).value("input") is None


def test_words_are_looked_for_on_both_sides() -> None:
    assert WHOLE.says("why is")
    assert WHOLE.says("BECAUSE")
    assert WHOLE.says("so?*because")
    assert not WHOLE.says("never")
