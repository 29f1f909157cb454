import pytest
from hypothesis import given

from sightline.errors import Code, Fault
from sightline.filters.expression import Expression, Latest, TopicTerm, both, either, negate
from sightline.filters.parsing import parse
from sightline.filters.predicate import Known, alone, is_filed, matches
from tests.filters.expressions import CHAT_TERMS, NOW, SINGLE_TERMS, SUBJECTS, joined

CLAUDE = Known(
    {
        "model": "claude-sonnet-5",
        "dialect": "anthropic",
        "session": "foo",
        "status": 200,
        "state": "finished",
        "tool": ("Bash", "Read"),
        "input": 60_000,
        "output": 400,
        "cost": 0.12,
        "losses": 0,
        "stream": True,
        "side": False,
        "fault": "",
        "at": NOW - 3600,
    },
    text="Tell me a dad joke.",
)
REFUSED = Known({"model": "gpt-5", "status": 429, "state": "finished", "fault": "rate_limited", "at": NOW - 9 * 86400})
WAITING = Known({"model": "gpt-5", "state": "held", "at": NOW})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "model:claude-* & tokens>50k & status:ok",
        "tool:Bash",
        "tool:read",
        'text:"dad joke"',
        '"DAD*joke"',
        "age<7d",
        "session:foo",
        "cost>0.10",
        "dialect:anthropic",
        "losses=0",
        "stream !side",
        "side:no",
        "tokens=60400",
        "model:gpt* | model:claude*",
        "!tool:Write",
        'fault:"" & !fault:*',
        'origin:"" & !origin:*',
        "date=2027-01-15",
        "m'CLAUDE*'",
    ],
)
def test_it_is_taken(text: str) -> None:
    assert matches(parse(text), CLAUDE, now=NOW)
    assert not matches(parse(f"!({text or '*'})"), CLAUDE, now=NOW)


@pytest.mark.parametrize(
    "text",
    ["model:gpt* | tool:Write", "age>7d", "cost>1", "first>1s", "cached>=0", "e", 'tool:""', "date<2027-01-15"],
)
def test_it_is_not_taken(text: str) -> None:
    assert not matches(parse(text), CLAUDE, now=NOW)


def test_a_refused_request_is_an_error_though_its_exchange_is_finished() -> None:
    assert matches(parse("e & status:error & !status:ok & status:4xx & fault:rate_limited & d>1w"), REFUSED, now=NOW)


def test_what_is_under_way_is_neither_ok_nor_an_error() -> None:
    assert matches(parse("!status:ok & !status:error & !(status<400) & !(status>=400)"), WAITING, now=NOW)


def test_no_tools_are_asked_for_with_nothing() -> None:
    assert matches(parse("tool:''"), WAITING, now=NOW)
    assert matches(parse("tool:''"), Known({"tool": ()}), now=NOW)


def test_what_is_known_of_the_tokens_counts() -> None:
    assert matches(parse("tokens>50"), Known({"input": 60}), now=NOW)
    assert not matches(parse("tokens>=0"), Known(), now=NOW)


def test_a_value_of_another_kind_does_not_match() -> None:
    assert not matches(
        parse("tokens>0 | model:* | stream | t'x'"), Known({"input": "1", "model": 5, "topic": "x"}), now=0
    )


@pytest.mark.parametrize(
    ("text", "path", "taken"),
    [
        ("t'AI'", ("AI",), True),
        ("t'ai'", ("Work", "AI"), True),
        ("t'AI'", ("AI", "Research"), False),
        ("t'AI...'", ("AI", "Research"), True),
        ("t'*Research'", ("AI", "Old Research"), True),
        ("t'AI > Research'", ("AI", "Research"), True),
        ("t'/AI/Research'", ("AI", "Research"), True),
        ("t'/AI/Research'", ("Work", "AI", "Research"), False),
        ("t'/AI'", ("AI", "Research"), False),
        ("t'/AI...'", ("AI", "Research", "2026"), True),
        ("t'/AI/Research...'", ("AI",), False),
        ("t'A > *'", ("A", "B"), True),
        ("t'AI'", (), False),
    ],
)
def test_topics(text: str, path: tuple[str, ...], *, taken: bool) -> None:
    assert matches(parse(text), Known({"topic": path}), now=NOW) is taken
    term = parse(text)
    assert isinstance(term, TopicTerm)
    assert is_filed(term, path) is taken


def test_a_place_in_a_list_is_not_known_to_one_thing_alone() -> None:
    with pytest.raises(Fault) as caught:
        matches(parse("r20"), CLAUDE, now=NOW)
    assert caught.value.code is Code.USAGE
    assert "Leave out" in caught.value.hint
    with pytest.raises(Fault):
        alone(Latest(1))


def test_whoever_knows_the_list_can_answer() -> None:
    assert matches(parse("r20 & !r1"), CLAUDE, now=NOW, belongs=lambda term: term == Latest(20))


@given(joined(SINGLE_TERMS | CHAT_TERMS), joined(SINGLE_TERMS), SUBJECTS)
def test_joining_means_what_it_means_in_logic(one: Expression, other: Expression, subject: Known) -> None:
    def holds(expression: Expression) -> bool:
        return matches(expression, subject, now=NOW, belongs=lambda term: hash(term) % 2 == 0)

    assert holds(both(one, other)) == (holds(one) and holds(other))
    assert holds(either(one, other)) == (holds(one) or holds(other))
    assert holds(negate(one)) == (not holds(one))
