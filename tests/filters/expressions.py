"""Random expressions, in the form in which the parser makes them, and things to try them on."""

from datetime import UTC

from hypothesis import strategies as st

from sightline.filters.expression import (
    EVERYTHING,
    AgeTerm,
    ContentTerm,
    Expression,
    FlagTerm,
    InContext,
    Latest,
    NumberTerm,
    OwnModel,
    OwnTopic,
    TextTerm,
    TopicTerm,
    both,
    either,
    negate,
)
from sightline.filters.fields import FIELDS, Kind, parse_date
from sightline.filters.predicate import Known, canonical

NOW = 1_800_000_000.0
DAY = 86400.0

OPERATORS = st.sampled_from(["=", "<", "<=", ">", ">="])
# Few letters, so that patterns and values meet; each of them is special somewhere.
LETTERS = "aAbß%_!*?\\ÄäİKkσςΣ'\"/>. \n&"
TEXTS = st.text(alphabet=LETTERS, max_size=6)
PATTERNS = st.text(alphabet=f"**??{LETTERS}", max_size=6).map(canonical)
NAMES = [field.name for field in FIELDS if field.kind is Kind.TEXT and not field.values()]
MARKS = [field.name for field in FIELDS if field.kind is Kind.YES_NO]
COUNTS = [field.name for field in FIELDS if field.kind in (Kind.NUMBER, Kind.MONEY, Kind.SECONDS, Kind.STATUS)]
NUMBERS = st.sampled_from([0.0, 0.1, 1.0, 90.0, 200.0, 400.0, 86400.5, 50_000.0])
DAYS = ["2026-12-31", "2027-01-15", "27-01-15T08:00", "2027-01-16"]

SINGLE_TERMS: st.SearchStrategy[Expression] = st.one_of(
    st.builds(TextTerm, st.sampled_from(NAMES), PATTERNS),
    st.builds(TextTerm, st.just("state"), st.sampled_from(["failed", "finished", "f*", ""])),
    st.builds(NumberTerm, st.sampled_from(COUNTS), OPERATORS, NUMBERS),
    st.builds(FlagTerm, st.sampled_from(MARKS)),
    st.builds(ContentTerm, TEXTS.filter(bool).map(lambda text: canonical(text, "*"))),
    st.builds(AgeTerm, st.sampled_from(["<", "<=", ">", ">="]), st.sampled_from([0.0, 0.25, 60.0, DAY, 180 * DAY])),
    st.builds(lambda operator, day: parse_date(operator, day, UTC), OPERATORS, st.sampled_from(DAYS)),
)
NAMES_OF_TOPICS = PATTERNS.map(str.strip).filter(bool)
CHAT_TERMS: st.SearchStrategy[Expression] = st.one_of(
    st.builds(TopicTerm, NAMES_OF_TOPICS.map(lambda name: (name,)), has_below=st.booleans()),
    st.builds(
        TopicTerm,
        st.lists(NAMES_OF_TOPICS, min_size=1, max_size=3).map(tuple),
        is_path=st.just(True),
        has_below=st.booleans(),
    ),
    st.builds(Latest, st.integers(0, 5)),
    st.builds(OwnTopic, st.none() | st.integers(0, 5)),
    st.builds(OwnModel),
    st.builds(InContext, st.integers(0, 5)),
)


def joined(terms: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    """Expressions made of such terms."""
    return st.recursive(
        terms | st.just(EVERYTHING),
        lambda inner: st.one_of(
            inner.map(negate),
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: both(*parts)),
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: either(*parts)),
        ),
        max_leaves=8,
    )


SUBJECTS: st.SearchStrategy[Known] = st.builds(
    Known,
    st.fixed_dictionaries(
        {"at": st.sampled_from([NOW, NOW - 1, NOW - 60, NOW - DAY, NOW - 180 * DAY])},
        optional={
            **{name: TEXTS for name in NAMES if name != "tool"},
            **{name: NUMBERS for name in COUNTS if name != "tokens"},
            "tool": st.lists(TEXTS, max_size=3).map(tuple),
            "state": st.sampled_from(["received", "failed", "finished"]),
            "stream": st.booleans(),
            "side": st.booleans(),
        },
    ),
    TEXTS,
)
