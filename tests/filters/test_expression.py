"""The terms of a filter: how they are joined, written, completed, and read from numbers, times and dates."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.filters.expression import (
    EVERYTHING,
    AgeTerm,
    And,
    DateTerm,
    Expression,
    FlagTerm,
    InContext,
    Latest,
    Not,
    NumberTerm,
    Operator,
    Or,
    OwnModel,
    OwnTopic,
    TextTerm,
    both,
    either,
    meaning,
    negate,
    set_terms,
)
from sightline.filters.fields import (
    BY_NAME,
    FIELDS,
    SUMS,
    WORDS,
    FilterScope,
    number,
    number_text,
    parse_date,
    seconds,
    seconds_text,
)
from sightline.filters.parsing import MOST, completions, parse, term_start, write_expression
from tests.filters.expressions import CHAT_TERMS, SINGLE_TERMS, joined

CLAUDE = TextTerm("model", "claude-*")
LONG = NumberTerm("tokens", ">", 50_000)
STARRED = NumberTerm("stars", ">=", 2)


@pytest.mark.parametrize(
    ("expression", "simple"),
    [
        (both(CLAUDE), CLAUDE),
        (either(CLAUDE), CLAUDE),
        (both(), EVERYTHING),
        (both(EVERYTHING, EVERYTHING), EVERYTHING),
        (both(EVERYTHING, CLAUDE, LONG), And((CLAUDE, LONG))),
        (either(CLAUDE, EVERYTHING), EVERYTHING),
        (both(both(CLAUDE, LONG), STARRED), And((CLAUDE, LONG, STARRED))),
        (either(CLAUDE, either(LONG, STARRED)), Or((CLAUDE, LONG, STARRED))),
        (both(CLAUDE, either(LONG, STARRED)), And((CLAUDE, Or((LONG, STARRED))))),
        (negate(CLAUDE), Not(CLAUDE)),
        (negate(negate(CLAUDE)), CLAUDE),
    ],
)
def test_expressions_are_joined_to_their_simple_form(expression: Expression, simple: Expression) -> None:
    assert expression == simple


def test_terms_about_a_list_are_found_at_any_depth() -> None:
    deep = both(either(Latest(20), CLAUDE), negate(both(InContext(), OwnTopic(3))), OwnModel())
    assert set_terms(deep) == (Latest(20), InContext(), OwnTopic(3), OwnModel())
    assert set_terms(both(CLAUDE, LONG)) == ()


def test_what_marks_mean() -> None:
    bad = NumberTerm("status", ">=", 400)
    assert meaning(FlagTerm("error"), 0) == Or((TextTerm("state", "failed"), bad))
    assert meaning(FlagTerm("ok"), 0) == And((TextTerm("state", "finished"), Not(bad)))
    assert meaning(FlagTerm("stream"), 0) == FlagTerm("stream")


@pytest.mark.parametrize(("older", "earlier"), [("<", ">"), ("<=", ">="), (">", "<"), (">=", "<=")])
def test_older_is_earlier(older: str, earlier: str) -> None:
    assert meaning(AgeTerm(older, 60), 1000) == NumberTerm("at", earlier, 940)


@pytest.mark.parametrize(
    ("operator", "meant"),
    [
        ("=", And((NumberTerm("at", ">=", 10), NumberTerm("at", "<", 20)))),
        ("<", NumberTerm("at", "<", 10)),
        ("<=", NumberTerm("at", "<", 20)),
        (">", NumberTerm("at", ">=", 20)),
        (">=", NumberTerm("at", ">=", 10)),
    ],
)
def test_a_day_is_from_its_start_to_its_end(operator: Operator, meant: Expression) -> None:
    assert meaning(DateTerm(operator, "a day", 10, 20), 0) == meant


@pytest.mark.parametrize(
    ("text", "plainly"),
    [
        ("", ""),
        ("*", ""),
        ("!*", "!*"),
        ("m'gpt*' d<7d s>=2", "model:gpt* & age<7d & stars>=2"),
        ("(b | g) !(e i)", "(flag:blue | flag:grey) & !(error & attachments>0)"),
        ("b & e | g", "flag:blue & error | flag:grey"),
        ("session:'a b'", 'session:"a b"'),
        ('text:"say \\"hi\\"\\nnow"', 'text:"say \\"hi\\"\\nnow"'),
        ("time>90 first<500ms", "time>1min30s & first<0.5s"),
        ("status:5xx", "status>=500 & status<600"),
        ("r20 t t5 m o o5", "r20 & t & t5 & m & o & o5"),
        ("t'A > B...'", 'topic:"/A/B..."'),
        ("t'TCP/IP'", 'topic:"TCP\\/IP"'),
        ("t'wait..\\.'", 'topic:"wait..\\."'),
        ("date>=26-1-5", "date>=2026-01-05"),
    ],
)
def test_the_plain_form(text: str, plainly: str) -> None:
    assert write_expression(parse(text)) == plainly
    assert parse(plainly) == parse(text)


@given(joined(SINGLE_TERMS | CHAT_TERMS))
def test_every_expression_reads_back(expression: Expression) -> None:
    assert parse(write_expression(expression)) == expression


KNOWN = {"model": ["gpt-9", "claude opus", "gpt-9", "", "odd*name"], "session": ["a"]}


def offered(text: str, at: int | None = None, scope: FilterScope = FilterScope.TRAFFIC) -> list[str]:
    return [each.text for each in completions(text, len(text) if at is None else at, scope=scope, known=KNOWN)]


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("", 0), ("model:x", 0), ("model:x sta", 8), ("a&(b|!c", 6), ('text:"some words', 0), ("text:'it' sta", 10),
        ('text:"it\'s" & s', 14),
    ],
)  # fmt: skip
def test_a_term_begins_behind_what_parts_terms_outside_of_quotes(text: str, start: int) -> None:
    assert term_start(text, len(text)) == start


def test_fields_are_offered_by_how_any_of_their_names_begins() -> None:
    assert offered("mo") == ["model:"]
    assert offered("elap") == ["time:"]
    assert offered("model:x & DIA") == ["dialect:"]
    assert offered("nothing-like-it") == []
    assert set(offered("")) == {f"{field.name}:" for field in FIELDS if FilterScope.TRAFFIC in field.scopes}
    assert "latest:" not in offered("", scope=FilterScope.RULES)


def test_some_fields_can_be_offered_first() -> None:
    found = [each.label for each in completions("t", 1, scope=FilterScope.CHAT, first=("topic", "text"))]
    assert found == ["topic", "text", "tool", "tokens", "time"]


def test_what_is_offered_takes_the_place_of_the_term_before_the_cursor() -> None:
    text = "model:x & sta & ok"
    found = completions(text, 13, scope=FilterScope.TRAFFIC)
    assert [(each.start, each.text) for each in found] == [(10, "status:"), (10, "state:")]
    assert found[1].help == "the state of the exchange"


def test_values_are_the_choices_and_what_there_has_been() -> None:
    assert offered("state:he") == ["state:held"]
    assert offered("error:") == ["error:yes", "error:no"]
    assert [each.label for each in completions("model:", 6, scope=FilterScope.TRAFFIC, known=KNOWN)] == [
        "gpt-9", "claude opus", "odd*name",
    ]  # fmt: skip
    assert offered('model:"opus') == ['model:"claude opus"']
    assert offered("nofield:x") == []
    assert offered("latest:", scope=FilterScope.RULES) == []
    assert completions("model:", 6, scope=FilterScope.TRAFFIC) == []


def test_every_offer_can_be_read() -> None:
    for field in FIELDS:
        if FilterScope.TRAFFIC in field.scopes:
            for text in offered(f"{field.name}:"):
                parse(text, scope=FilterScope.TRAFFIC)
    assert parse(offered("model:odd")[0]) == parse('model:"odd\\*name"')


def test_a_long_list_is_cut() -> None:
    many = {"model": [f"m{number}" for number in range(MOST + 5)]}
    assert len(completions("model:", 6, scope=FilterScope.TRAFFIC, known=many)) == MOST


PAGE = Path(__file__).parents[2] / "docs" / "reference" / "filters.md"


def test_no_name_means_two_things_and_short_forms_are_one_letter() -> None:
    names = [name for field in FIELDS for name in field.names]
    assert len(names) == len(set(names)) == len(BY_NAME)
    assert not set(WORDS) & set(BY_NAME)
    assert all(len(name) > 1 for field in FIELDS for name in (field.name, *field.aliases))
    assert all(len(field.letter) <= 1 for field in FIELDS)


def test_shorthand_terms_refer_to_known_fields() -> None:
    assert {term.field for term in WORDS.values()} | {part for parts in SUMS.values() for part in parts} <= set(BY_NAME)


def test_every_field_is_documented() -> None:
    text = PAGE.read_text()
    names = [name for field in FIELDS for name in field.names] + list(WORDS)
    assert not [name for name in names if f"`{name}`" not in text]


DAY = 86400


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("50k", 50_000),
        ("1.5M", 1_500_000),
        ("$0.10", 0.1),
        ("2$", 2),
        (".5", 0.5),
        ("1_000", 1000),
        ("-1", -1),
        ("0.29k", 290),
        ("1000000000m", 1e15),
        *((wrong, None) for wrong in ("", "k", "5x", "5kk", "1e9", "٣", "--1", "1000000001m", "9" * 31, "1__0", "5.")),
    ],
)
def test_numbers(text: str, value: float | None) -> None:
    assert number(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7d", 7 * DAY),
        ("6mo", 180 * DAY),
        ("5min", 300),
        ("5m", 300),
        ("24h", DAY),
        ("2w", 14 * DAY),
        ("1y", 365 * DAY),
        ("1h30m", 5400),
        ("1y6mo", 545 * DAY),
        ("500ms", 0.5),
        ("1.5H", 5400),
        ("3", 3 * DAY),
        (".5", DAY / 2),
        *((wrong, None) for wrong in ("", "d", "7x", "7d5", "-7d", "1h 30m", "9999999999999999y")),
    ],
)
def test_times(text: str, value: float | None) -> None:
    assert seconds(text, "d") == value


EAST, BERLIN = timezone(timedelta(hours=9)), ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "zone", "moment", "start", "length"),
    [
        ("2026-01-31", EAST, "2026-01-31", datetime(2026, 1, 31, tzinfo=EAST), DAY),
        ("26-1-31", EAST, "2026-01-31", datetime(2026, 1, 31, tzinfo=EAST), DAY),
        ("2026-03-29", BERLIN, "2026-03-29", datetime(2026, 3, 29, tzinfo=BERLIN), 23 * 3600),
        ("2026-01-31T15:30", UTC, "2026-01-31T15:30", datetime(2026, 1, 31, 15, 30, tzinfo=UTC), 60),
    ],
)
def test_a_date_is_a_day_or_a_minute_of_its_zone(
    text: str, zone: tzinfo, moment: str, start: datetime, length: int
) -> None:
    since = start.timestamp()
    assert parse_date("<", text, zone) == DateTerm("<", moment, since, since + length)


@pytest.mark.parametrize("text", ["", "7d", "2026-13-01", "2026-02-30", "1969-01-01", "9999-12-31", "2026-01-01T25:00"])
def test_no_dates(text: str) -> None:
    assert parse_date("=", text, UTC) is None


@given(st.decimals(-(10**15), 10**15, places=9).map(float))
def test_a_number_reads_back(value: float) -> None:
    assert number(number_text(value)) == value


@given(st.decimals(0, 10**12, places=3).map(float))
def test_a_time_reads_back(value: float) -> None:
    assert seconds(seconds_text(value), "s") == value


def test_times_are_written_for_people() -> None:
    written = [seconds_text(value) for value in (0.0, 0.5, 90.0, 5400.0, 7.0 * DAY, 7.0 * DAY + 1)]
    assert written == ["0s", "0.5s", "1min30s", "1h30min", "7d", "7d1s"]
