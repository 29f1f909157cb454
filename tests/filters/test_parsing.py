"""A filter's text: what it means, and where its mistakes are."""

from datetime import timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sightline.errors import Code, Fault
from sightline.filters.expression import (
    EVERYTHING,
    AgeTerm,
    And,
    ContentTerm,
    DateTerm,
    Expression,
    FlagTerm,
    InContext,
    Latest,
    Not,
    NumberTerm,
    Or,
    OwnModel,
    OwnTopic,
    TextTerm,
    TopicTerm,
)
from sightline.filters.fields import FIELDS, WORDS, FilterScope
from sightline.filters.parsing import parse, write_expression
from sightline.filters.terms import Source

BLUE, GREY, FAILED = TextTerm("flag", "blue"), TextTerm("flag", "grey"), FlagTerm("error")
DAY = 86400


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("", EVERYTHING),
        ("  \n", EVERYTHING),
        ("*", EVERYTHING),
        ("b g e", And((BLUE, GREY, FAILED))),
        ("b & g && e", And((BLUE, GREY, FAILED))),
        ("b | g + e || o", Or((BLUE, GREY, FAILED, InContext()))),
        ("b | g & e", Or((BLUE, And((GREY, FAILED))))),
        ("(b | g) & e", And((Or((BLUE, GREY)), FAILED))),
        ("(b|g)e", And((Or((BLUE, GREY)), FAILED))),
        ("!b g", And((Not(BLUE), GREY))),
        ("!(b g)", Not(And((BLUE, GREY)))),
        ("! ! b", BLUE),
        ("!(!b)", BLUE),
        ("b!g", And((BLUE, Not(GREY)))),
        ("((b))", BLUE),
        ("!*", Not(EVERYTHING)),
        # short forms
        ("b", BLUE),
        ("g", GREY),
        ("e", FAILED),
        ("i", NumberTerm("attachments", ">", 0)),
        ("t", OwnTopic()),
        ("t5", OwnTopic(5)),
        ("t'AI...'", TopicTerm(("AI",), has_below=True)),
        ("t'5'", TopicTerm(("5",))),
        ("m", OwnModel()),
        ("m'gpt*'", TextTerm("model", "gpt*")),
        ('m"gpt*"', TextTerm("model", "gpt*")),
        ("s>=2", NumberTerm("stars", ">=", 2)),
        ("s3", NumberTerm("stars", "=", 3)),
        ("s >= 2", NumberTerm("stars", ">=", 2)),
        ("s 2", NumberTerm("stars", "=", 2)),
        ("d<7d", AgeTerm("<", 7 * DAY)),
        ("d<6mo", AgeTerm("<", 180 * DAY)),
        ("d<5min", AgeTerm("<", 300)),
        ("d>24h", AgeTerm(">", DAY)),
        ("d7", AgeTerm("<=", 7 * DAY)),
        ("d 2w", AgeTerm("<=", 14 * DAY)),
        ("d2026-01-31", DateTerm("=", "2026-01-31", 1769817600.0, 1769904000.0)),
        ("D>26-01-31", DateTerm(">", "2026-01-31", 1769817600.0, 1769904000.0)),
        ("c'dad joke'", ContentTerm("dad joke")),
        ("c bug", ContentTerm("bug")),
        ("c  'bug'", ContentTerm("bug")),
        ("r20", Latest(20)),
        ("R20", Latest(20)),
        ("o", InContext()),
        ("o5", InContext(5)),
        ("t'AI'b", And((TopicTerm(("AI",)), BLUE))),
        ('"dad joke" & b', And((ContentTerm("dad joke"), BLUE))),
        ("MODEL : gpt-5", TextTerm("model", "gpt-5")),
        ("losses != 0", Not(NumberTerm("losses", "=", 0))),
        # fields by their names
        ("model:claude-*", TextTerm("model", "claude-*")),
        ("model=GPT-5", TextTerm("model", "GPT-5")),
        (r"model:a\*b", TextTerm("model", r"a\*b")),
        ("session:''", TextTerm("session", "")),
        ("path:/v1/messages", TextTerm("path", "/v1/messages")),
        ("dialect:openai-*", TextTerm("dialect", "openai-*")),
        ("state:HELD", TextTerm("state", "HELD")),
        ("dialect:''", TextTerm("dialect", "")),
        ("tools:Bash", TextTerm("tool", "Bash")),
        ("text:why?", ContentTerm(r"why\?")),
        ("fuzzy", ContentTerm("fuzzy")),
        ("dad joke", And((ContentTerm("dad"), ContentTerm("joke")))),
        ("b & !parser.py", And((TextTerm("flag", "blue"), Not(ContentTerm("parser.py"))))),
        ("m4o", ContentTerm("m4o")),
        ("7d", ContentTerm("7d")),
        ("don't", ContentTerm("don't")),
        ("@someone", ContentTerm("@someone")),
        ("s3'x", ContentTerm("s3'x")),
        ("content:'a*b'", ContentTerm("a*b")),
        ("tokens>50k", NumberTerm("tokens", ">", 50_000)),
        ("tokens:>50k", NumberTerm("tokens", ">", 50_000)),
        ("losses:0", NumberTerm("losses", "=", 0)),
        ("cost>$0.10", NumberTerm("cost", ">", 0.1)),
        ("time>1m30s", NumberTerm("time", ">", 90)),
        ("first<500ms", NumberTerm("first", "<", 0.5)),
        ("elapsed>=2", NumberTerm("time", ">=", 2)),
        ("status:ok", FlagTerm("ok")),
        ("status:Error", FlagTerm("error")),
        ("status!=ok", Not(FlagTerm("ok"))),
        ("status:429", NumberTerm("status", "=", 429)),
        ("status>=500", NumberTerm("status", ">=", 500)),
        ("status:4XX", And((NumberTerm("status", ">=", 400), NumberTerm("status", "<", 500)))),
        ("stream:yes", FlagTerm("stream")),
        ("stream:no", Not(FlagTerm("stream"))),
        ("stream!=no", FlagTerm("stream")),
        ("age<7d", AgeTerm("<", 604_800)),
        ("age:7d", AgeTerm("<=", 604_800)),
        ("age>=1h30m", AgeTerm(">=", 5400)),
        ("at>2026-01-31T15:30", DateTerm(">", "2026-01-31T15:30", 1769873400.0, 1769873460.0)),
        ("latest:20", Latest(20)),
        ("context:5", InContext(5)),
        ("topic:AI", TopicTerm(("AI",))),
        ("t'A > B'", TopicTerm(("A", "B"), is_path=True)),
        ("t'/A/B...'", TopicTerm(("A", "B"), is_path=True, has_below=True)),
        ("t'/A'", TopicTerm(("A",), is_path=True)),
        ("t'TCP/IP'", TopicTerm(("TCP/IP",))),
        (r"t'a \> b'", TopicTerm(("a > b",))),
        (r"t'wait..\.'", TopicTerm(("wait...",))),
        (r"t'A\*'", TopicTerm((r"A\*",))),
        ("t'A ...'", TopicTerm(("A",), has_below=True)),
    ],
)
def test_what_a_text_means(text: str, expression: Expression) -> None:
    assert parse(text) == expression


def test_a_saved_filter_of_the_chat_cannot_name_another() -> None:
    with pytest.raises(Fault, match="there is no field"):
        parse("@other", scope=FilterScope.CHAT)


def test_days_are_those_of_the_zone() -> None:
    term = parse("date=2026-01-31", zone=timezone(timedelta(hours=1)))
    assert term == DateTerm("=", "2026-01-31", 1769814000.0, 1769900400.0)


@pytest.mark.parametrize(
    ("text", "column", "message", "hint"),
    [
        ("modle:gpt", 1, 'there is no field "modle"', 'Did you mean "model"?'),
        ("fuzzy:logic", 1, 'there is no field "fuzzy"', "text:fuzzy"),
        ("b and g", 3, '"and" is not how terms are joined', "Write & for it."),
        ("b AND g", 3, '"AND" is not how terms are joined', "Write & for it."),
        ("b &", 4, "a term is missing here", "model:claude-*"),
        ("b | | g", 5, "a term is missing here", "take out the sign"),
        ("()", 2, "a term is missing here", ""),
        (")", 1, "there is no ( for this )", "Take it out"),
        ("b )", 3, "there is no ( for this )", "Take it out"),
        ("b & (g", 5, "the ( is not closed", "Put a )"),
        (":gpt", 1, "there is no field before :", "Write its name"),
        ("b = 1", 1, "b takes no value", "Write b alone"),
        ("b'x'", 1, "b takes no value", "Write b alone"),
        ("model:", 1, '"model" needs a value', "model:name"),
        ("model: & b", 1, '"model" needs a value', "model:name"),
        ("model:(a|b)", 1, '"model" needs a value', "(model:one | model:other)"),
        ("status:!ok", 1, '"status" needs a value', "!status:value"),
        ("c", 1, '"c" needs a value', 'c:"some words"'),
        ("c & b", 1, '"c" needs a value', ""),
        ("session foo", 1, '"session" needs a value', "session:name"),
        ("text:'dad", 6, "the quote ' is not closed", "Put a '"),
        ("s3b", 2, '"3b" is no number', "parted by a blank or &"),
        ("t5x", 2, '"5x" is no count', "whole number"),
        # values that are not of their field's kind
        ("model>5", 1, '> compares numbers and times, and "model" is a text', "Write model:5."),
        ("c<'a'", 1, '< compares numbers and times, and "c" is a text', "Write c:a."),
        ("t<''", 1, '< compares numbers and times, and "t" is a topic', "Write t:value."),
        ("stream>1", 1, '> compares numbers and times, and "stream" is either so or not', ""),
        ("r>20", 1, '> compares numbers and times, and "r" is a count', "Write r:20."),
        ("text:''", 6, "there are no words to look for", 'text:"some words"'),
        ("t'...'", 2, "there is no name of a topic", "t'name...'"),
        ("dialect:openai", 9, 'there is no dialect "openai"', 'Did you mean "openai-chat"?'),
        ("state:zzz*", 7, 'there is no state "zzz*"', "Known: received, held"),
        ("tokens>5x", 8, '"5x" is no number', "50k"),
        ("cost>cheap", 6, '"cheap" is no number', "$2"),
        ("time>5x", 6, '"5x" is no length of time', "ms, s, m, min, h, d, w, mo, y"),
        ("age<7x", 5, '"7x" is no length of time', "1h30m"),
        ("age=7d", 1, "nothing is exactly that old", "age<7d or age>7d"),
        ("age!=7d", 1, "nothing is exactly that old", "age<7d or age>7d"),
        ("age<2026-01-01", 5, "an age is a length of time, not a date", "date>2026-01-01"),
        ("date<7d", 6, '"7d" is no date', "age<7d"),
        ("d2026-02-30", 2, '"2026-02-30" is no date', "2026-01-31"),
        ("status:okay", 8, '"okay" is no status', 'Did you mean "ok"?'),
        ("status:fine", 8, '"fine" is no status', "status:4xx"),
        ("status>4xx", 8, '"4xx" is no status', "status>=500"),
        ("stream:maybe", 8, '"stream" is either so or not', "!stream"),
        ("r:many", 3, '"many" is no count', "r20"),
        ("r9999999999", 2, '"9999999999" is no count', "whole number"),
    ],
)
def test_a_mistake_has_a_place_and_a_way_out(text: str, column: int, message: str, hint: str) -> None:
    with pytest.raises(Fault) as caught:
        parse(text)
    fault = caught.value
    assert fault.code is Code.USAGE
    assert fault.message == f"filter, column {column}: {message}"
    advice, line, carets = fault.hint.split("\n")
    assert hint in advice
    assert line.strip() == text.strip()
    assert carets.index("^") == column + 1


def test_a_filter_has_an_end() -> None:
    with pytest.raises(Fault, match="10001 characters"):
        parse("b" * 10_001)
    with pytest.raises(Fault, match="too many terms"):
        parse("b " * 251)
    with pytest.raises(Fault, match="nested too deep"):
        parse("(" * 51 + "b" + ")" * 51)
    assert parse("(" * 50 + "b" + ")" * 50) == BLUE
    assert isinstance(parse("b " * 250), And)


@pytest.mark.parametrize(
    ("text", "scope", "what"),
    [
        ("s>=2", FilterScope.TRAFFIC, '"s" (stars) means nothing for traffic'),
        ("s2", FilterScope.TRAFFIC, '"s2" (stars) means nothing for traffic'),
        ("b", FilterScope.RULES, '"b" (flag) means nothing for rules'),
        ("r20", FilterScope.RULES, '"r20" (latest) means nothing for rules'),
        ("o", FilterScope.TRAFFIC, '"o" (context) means nothing for traffic'),
        ("m", FilterScope.TRAFFIC, '"m" needs a value'),
        ("tokens>50k", FilterScope.RULES, '"tokens" means nothing for rules'),
        ("!ok", FilterScope.RULES, '"ok" means nothing for rules'),
        ("e", FilterScope.RULES, '"e" (error) means nothing for rules'),
    ],
)
def test_some_things_exist_only_elsewhere(text: str, scope: FilterScope, what: str) -> None:
    with pytest.raises(Fault) as caught:
        parse(text, scope=scope)
    assert what in caught.value.message
    parse(text, scope=FilterScope.CHAT)


@pytest.mark.parametrize("text", ["session:x", "provider:acme", "cost>1", "losses>0", "side", "!stream"])
def test_chat_filters_refuse_what_only_exchanges_have(text: str) -> None:
    with pytest.raises(Fault, match="means nothing for chat"):
        parse(text, scope=FilterScope.CHAT)
    parse(text, scope=FilterScope.TRAFFIC)


def test_suggestions_are_those_of_the_place() -> None:
    with pytest.raises(Fault) as caught:
        parse("starz>2", scope=FilterScope.TRAFFIC)
    assert "stars" not in caught.value.hint
    assert parse("r20 model:x text:y", scope=FilterScope.TRAFFIC) == parse("r20 model:x text:y")


PIECES = [name for field in FIELDS for name in field.names] + list(WORDS)
PIECES += [*"&|!()+'\"\\:<>=*? ", "!=", ">=", "7d", "20", "50k", "2026-01-31", "ok", "yes", "...", "/A/B", "ä", "\0"]


@given(st.text() | st.lists(st.sampled_from(PIECES)).map("".join) | st.lists(st.sampled_from(PIECES)).map(" ".join))
@example("!" * 9000)
@example("(" * 9000)
@example("\\")
@example("\ud800:\udfff")
@example("d>" + "9" * 5000 + "y")
def test_any_text_is_a_filter_or_a_mistake(text: str) -> None:
    mistake: Fault | None = None
    try:
        expression = parse(text)
    except Fault as fault:
        mistake = fault
    if mistake is None:
        assert parse(write_expression(expression)) == expression
    else:
        assert mistake.code is Code.USAGE
        assert mistake.hint


def test_a_saved_filter_is_called_by_its_name() -> None:
    saved = {"good": Or((BLUE, GREY))}
    assert parse("@good & e", saved=saved) == And((Or((BLUE, GREY)), FAILED))
    assert parse("!@Good", saved=saved) == Not(Or((BLUE, GREY)))


@pytest.mark.parametrize(
    ("text", "saved", "hint"), [("e @god", {"good": BLUE}, 'Did you mean "@good"?'), ("e @god", {}, "Save one first.")]
)
def test_a_saved_filter_that_is_not_there(text: str, saved: dict[str, Expression], hint: str) -> None:
    with pytest.raises(Fault, match="filter, column 3: there is no saved filter") as caught:
        parse(text, saved=saved)
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize(
    ("text", "sign"),
    [(":", ":"), (" >= ", ">="), (":>", ">"), ("==", "="), ("<>", "!="), ("!=", "!="), ("=<", "<="), ("=>", ">=")],
)
def test_signs_in_many_hands(text: str, sign: str) -> None:
    assert Source(text).sign() == sign


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'dad joke' b", "dad joke"),
        ('"it\'s"', "it's"),
        (r"'it\'s'", r"it\'s"),
        (r'"a\nb\tc\rd"', "a\nb\tc\rd"),
        (r'"C:\Users"', r"C:\\Users"),
        (r'"\*\\"', r"\*\\"),
        ("don't stop", "don't"),
        ("a&b", "a"),
        (r"a\ b", r"a\ b"),
        ("a\\", "a\\\\"),
        ("''", ""),
    ],
)
def test_values(text: str, value: str) -> None:
    piece = Source(text).value()
    assert piece is not None
    assert piece.text == value


def pointed(text: str, start: int, end: int) -> list[str]:
    fault = Source(text).wrong(start, end, "message", "Hint.")
    assert fault.code is Code.USAGE
    assert fault.details == {"column": start + 1, "length": max(1, end - start)}
    return fault.hint.split("\n")[1:]


def test_carets_are_below_the_mistake_or_behind_the_end() -> None:
    assert pointed("b & modle:x", 4, 9) == ["  b & modle:x", "      ^^^^^"]
    assert pointed("b &", 3, 3) == ["  b &", "     ^"]


def test_of_a_long_text_the_part_around_is_shown() -> None:
    line, carets = pointed("a" * 100 + "XY" + "b" * 100, 100, 102)
    assert line.startswith("  …a")
    assert line.endswith("b…")
    assert line[carets.index("^") :].startswith("XY")
    assert carets.count("^") == 2
    line, carets = pointed("a" * 100, 90, 100)
    assert line.startswith("  …a")
    assert not line.endswith("…")
    assert pointed("a" * 100, 0, 100)[1] == "  " + "^" * 72


def test_wide_and_control_characters_keep_the_carets_aligned() -> None:
    assert pointed("話:x", 2, 3) == ["  話:x", "     ^"]
    assert pointed("話", 0, 1) == ["  話", "  ^^"]
    assert pointed("\x1b[31mred", 5, 8) == ["   [31mred", "       ^^^"]
