from sightline.filters.expression import (
    EVERYTHING,
    And,
    InContext,
    Latest,
    Not,
    NumberTerm,
    Or,
    OwnModel,
    OwnTopic,
    TextTerm,
    both,
    either,
    negate,
    set_terms,
)

CLAUDE = TextTerm("model", "claude-*")
LONG = NumberTerm("tokens", ">", 50_000)
STARRED = NumberTerm("stars", ">=", 2)


def test_all_of_one_thing_is_that_thing() -> None:
    assert both(CLAUDE) == CLAUDE == either(CLAUDE)


def test_all_of_nothing_is_everything() -> None:
    assert both() == EVERYTHING == both(EVERYTHING, EVERYTHING)


def test_what_says_nothing_is_left_out_of_a_conjunction() -> None:
    assert both(EVERYTHING, CLAUDE, LONG) == And((CLAUDE, LONG))


def test_an_alternative_that_takes_everything_is_everything() -> None:
    assert either(CLAUDE, EVERYTHING) == EVERYTHING


def test_what_is_joined_in_the_same_way_is_joined_once() -> None:
    assert both(both(CLAUDE, LONG), STARRED) == And((CLAUDE, LONG, STARRED))
    assert either(CLAUDE, either(LONG, STARRED)) == Or((CLAUDE, LONG, STARRED))
    assert both(CLAUDE, either(LONG, STARRED)) == And((CLAUDE, Or((LONG, STARRED))))


def test_the_opposite_of_the_opposite_is_the_thing() -> None:
    assert negate(CLAUDE) == Not(CLAUDE)
    assert negate(negate(CLAUDE)) == CLAUDE


def test_terms_about_a_list_are_found_at_any_depth() -> None:
    deep = both(either(Latest(20), CLAUDE), negate(both(InContext(), OwnTopic(3))), OwnModel())
    assert set_terms(deep) == (Latest(20), InContext(), OwnTopic(3), OwnModel())
    assert set_terms(both(CLAUDE, LONG)) == ()
