import pytest

from sightline.errors import Code, Fault
from sightline.filters.expression import (
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
    TextTerm,
    TopicTerm,
)
from sightline.filters.parsing import parse


@pytest.mark.parametrize(
    ("text", "expression"),
    [
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
def test_terms(text: str, expression: Expression) -> None:
    assert parse(text) == expression


@pytest.mark.parametrize(
    ("text", "column", "message", "hint"),
    [
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
def test_a_value_must_be_of_its_fields_kind(text: str, column: int, message: str, hint: str) -> None:
    with pytest.raises(Fault) as caught:
        parse(text)
    assert caught.value.code is Code.USAGE
    assert caught.value.message == f"filter, column {column}: {message}"
    assert hint in caught.value.hint
