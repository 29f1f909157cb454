import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.filters.expression import Expression
from sightline.filters.parsing import parse
from sightline.filters.predicate import Known, matches
from sightline.filters.selection import Context, select
from tests.filters.expressions import CHAT_TERMS, NOW, SINGLE_TERMS, SUBJECTS, joined

PAIRS = [
    Known({"id": str(number), "at": NOW - 100 + number, "topic": topic, "stars": stars, "flag": flag, "model": model})
    for number, (topic, stars, flag, model) in enumerate(
        [
            (("AI",), 3, "blue", "gpt-5"),
            (("AI",), 0, "grey", "gpt-5"),
            (("AI", "Research"), 2, "blue", "claude-5"),
            (("Home",), 1, "grey", "claude-5"),
            (("AI",), 2, "blue", "claude-5"),
            (("Home",), 3, "blue", "gpt-5"),
        ]
    )
]


def taken(text: str, fitting: int = 2) -> str:
    context: Context[Known] = Context(NOW, topic=("AI",), model="GPT-5", fitting=lambda _shown: fitting)
    return "".join(str(pair.value("id")) for pair in select(parse(text), PAIRS, context=context))


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", "012345"),
        ("r2", "45"),
        ("r0", ""),
        ("r99", "012345"),
        ("!r2", "0123"),
        ("r3 & s>=3", "5"),
        ("t", "014"),
        ("t2", "14"),
        ("t0", ""),
        ("!t", "235"),
        ("m", "015"),
        ("m & b", "05"),
        ("t'AI...' & !s0", "024"),
        ("(b | s3) & t'*Research'", "2"),
    ],
)
def test_places_in_the_whole_list(text: str, ids: str) -> None:
    assert taken(text) == ids


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("o", "45"),
        ("o1", "345"),
        ("o99", "012345"),
        ("!o", "0123"),
        ("!o1", "012"),
        ("b & o", "45"),
        ("b & !o", "02"),
        ("(s>=2 | b) & o1", "245"),
        ("g | o", "13"),
        ("!(b & o)", "012345"),
        ("r3 & o", "45"),
    ],
)
def test_what_goes_along_is_found_last_among_what_is_shown(text: str, ids: str) -> None:
    assert taken(text) == ids


@pytest.mark.parametrize(("fitting", "ids"), [(-1, ""), (0, ""), (6, "012345"), (99, "012345")])
def test_a_boundary_outside_the_list_is_its_end(fitting: int, ids: str) -> None:
    assert taken("o", fitting) == ids


def test_without_a_boundary_everything_goes_along() -> None:
    assert select(parse("o"), PAIRS, context=Context(NOW)) == PAIRS
    assert select(parse("m"), PAIRS, context=Context(NOW)) == []
    assert select(parse("m"), [Known()], context=Context(NOW)) == [Known()]


@given(joined(SINGLE_TERMS), st.lists(SUBJECTS, max_size=5))
def test_without_such_terms_it_is_the_predicate(expression: Expression, subjects: list[Known]) -> None:
    assert select(expression, subjects, context=Context(NOW)) == [
        each for each in subjects if matches(expression, each, now=NOW)
    ]


@given(joined(SINGLE_TERMS | CHAT_TERMS), st.lists(SUBJECTS, max_size=5), st.integers(0, 5))
def test_the_order_stays_and_nothing_is_doubled(expression: Expression, subjects: list[Known], fitting: int) -> None:
    context: Context[Known] = Context(NOW, topic=("a",), model="a", fitting=lambda _shown: fitting)
    chosen = [id(each) for each in select(expression, subjects, context=context)]
    rest = iter([id(each) for each in subjects])
    assert all(each in rest for each in chosen)
