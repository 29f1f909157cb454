"""What pairs say, remembered until they say something else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.chat.core.matching import FIELDS, Matching, PairSubject, PairWords, latest, of_model, of_topic
from sightline.chat.core.pair import ChatAnswer, MessagePair, Trouble, text_answer
from sightline.chat.core.topics import Topic, Topics
from sightline.filters.expression import Expression, set_terms
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse
from sightline.filters.predicate import Value, matches
from sightline.model.parts import Image, Link, Text, ToolCall
from sightline.model.reply import Usage
from sightline.model.request import Message
from tests.chat.core.stage import NOW
from tests.filters.expressions import CHAT_TERMS, SINGLE_TERMS, joined

TOPICS = Topics()
for _topic in (Topic(id="ai", name="AI"), Topic(id="re", name="Research", parent="ai"), Topic(id="ho", name="Home")):
    TOPICS.add(_topic)

PAIRS = [
    MessagePair(id="0", topic="ai", model="gpt-5", user_text="A bug\nhere", star=3, state="complete", at=NOW - 5),
    MessagePair(id="1", topic="re", model="claude-5", answer=text_answer("Fixed the BUG"), star=1, at=NOW - 86400 * 9),
    MessagePair(id="2", topic="ho", flag="grey", state="error", trouble=Trouble("auth", "no"), at=NOW - 3600),
    MessagePair(id="3", model="", answer=ChatAnswer(finish="stop", usage=Usage(input_tokens=50, output_tokens=9))),
    MessagePair(id="4", topic="ai", model="GPT-5", user_text="straße", answer=text_answer("ü"), state="sending"),
]


def both_ways(expression: Expression) -> tuple[list[bool], list[bool]]:
    members = {term: frozenset({"0", "3"}) for term in set_terms(expression)}
    test = Matching(TOPICS, NOW, members).test(expression)
    slow = [
        matches(
            expression,
            PairSubject(pair, TOPICS.path(pair.topic)),
            now=NOW,
            belongs=lambda term, pair=pair: pair.id in members[term],
        )
        for pair in PAIRS
    ]
    return [test(pair) for pair in PAIRS], slow


@pytest.mark.parametrize(
    "text",
    [
        "", "s>=2", "s=1", "s<3", "b", "g & !e", "e", "ok", "m'gpt*'", 'model:""', "c'bug'", "c'bug*here'", "tokens>10",
        "c'a bug\\nhere'", "status:429", "cost>0", "input>=50", "i", "d<7d", "d>1h", "date>=2027-01-01", "t'AI...'",
        "t'AI > Research'", "t'home'", "stream", "fault:auth", "finish:stop", "r2 | t", "o & !m", "state:sending",
        "(b | s3) & t'*Research'", "c'STRASSE'", "c'ü'", "tool:look_up",
    ],
)  # fmt: skip
def test_a_prepared_filter_means_what_the_language_says(text: str) -> None:
    fast, slow = both_ways(parse(text))
    assert fast == slow


@given(joined(st.one_of(SINGLE_TERMS, CHAT_TERMS)))
def test_any_prepared_filter_means_what_the_language_says(expression: Expression) -> None:
    fast, slow = both_ways(expression)
    assert fast == slow


def test_places_in_the_list() -> None:
    assert latest(PAIRS, 2) == {"3", "4"}
    assert latest(PAIRS, 0) == frozenset()
    assert latest(PAIRS, 99) == {"0", "1", "2", "3", "4"}
    assert of_topic(PAIRS, "ai", None) == {"0", "4"}
    assert of_topic(PAIRS, "ai", 1) == {"4"}
    assert of_model(PAIRS, "gpt-5") == {"0", "4"}


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
BARE = PairSubject(MessagePair(id="b", state="error", trouble=Trouble("auth", "no", status=401)), ())


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
        ("status", 200, 401),
        ("session", None, None),
    ],
)
def test_a_pair_has_the_fields_that_filters_ask_for(name: str, whole: Value, bare: Value) -> None:
    assert (WHOLE.value(name), BARE.value(name)) == (whole, bare)
    assert (name in FIELDS) == (name not in ("topic", "session"))


def test_an_answer_without_counts_has_none() -> None:
    assert PairSubject(MessagePair(id="a", answer=text_answer("x")), ()).value("input") is None


def test_words_are_looked_for_on_both_sides() -> None:
    assert WHOLE.says("why is")
    assert WHOLE.says("BECAUSE")
    assert WHOLE.says("so?*because")
    assert not WHOLE.says("never")


def test_question_and_answer_are_indexed_as_one_lowercase_text() -> None:
    pair = MessagePair(id="p", user_text="Why BLUE?", answer=text_answer("Σκέψου."))
    assert PairWords().of(pair) == "why blue?\nσκέψου."


def test_a_pair_that_has_changed_is_read_anew() -> None:
    words = PairWords()
    before, after = MessagePair(id="p", user_text="red"), MessagePair(id="p", user_text="blue")
    assert words.hold("red", before)
    assert words.hold("red", before)
    assert not words.hold("red", after)
    assert words.hold("blue", after)


def test_what_is_known_is_not_read_again() -> None:
    words, pair = PairWords(), MessagePair(id="p", user_text="red")
    assert words.of(pair) is words.of(pair)


def test_the_status_of_a_send_is_that_of_its_provider() -> None:
    limited = MessagePair(id="a", state="error", trouble=Trouble("rate_limited", "slow down", status=429))
    waiting, failed = (
        MessagePair(id="b", state="sending"),
        MessagePair(id="c", state="error", trouble=Trouble("net", "x")),
    )
    older = MessagePair(id="d", state="error", trouble=Trouble("rate_limited", "written before a status was kept"))
    told = [PairSubject(pair, ()).value("status") for pair in (limited, waiting, failed, older)]
    assert told == [429, None, None, 429]
    assert matches(parse("status:429", scope=FilterScope.CHAT), PairSubject(limited, ()), now=0.0)
    assert not matches(parse("status:429", scope=FilterScope.CHAT), WHOLE, now=0.0)
