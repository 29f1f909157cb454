import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.chat.core import commands
from sightline.errors import Code, Fault
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse


@pytest.mark.parametrize(
    ("text", "filter_text"),
    [
        (":delete", ""),
        ("e :delete", "e"),
        ("e:delete", None),
        ("model:x :delete", "model:x"),
        ("model: x :delete", "model: x"),
        ("model : x", None),
        ("(e|b):delete", "(e|b)"),
        ("(e | b :delete)", None),
        ("((b)) & (t'A > B') :delete", "((b)) & (t'A > B')"),
        ("c'a :delete' :delete", "c'a :delete'"),
        ("m'gpt*':delete", "m'gpt*'"),
        ("'some :words' :delete", "'some :words'"),
        ('c"it\\"s :x" :delete', 'c"it\\"s :x"'),
        ("text:it's :delete", "text:it's"),
        ("d<7d & e :delete", "d<7d & e"),
        ("s >= 2 :delete", "s >= 2"),
        ("!b + g :delete", "!b + g"),
        ("< 2 :delete", "< 2"),
        (") :delete", ")"),
        ("b & date:2026-01-31T15:30", None),
        ("", None),
        ("  ", None),
        ("b", None),
    ],
)
def test_the_first_colon_outside_of_quotes_and_parentheses_begins_the_command(
    text: str, filter_text: str | None
) -> None:
    found = commands.read_command(text)
    assert (None if found is None else found.filter) == filter_text


@pytest.mark.parametrize(
    ("text", "action"),
    [
        (":export", commands.Export("json")),
        (":export md", commands.Export("markdown")),
        (":export Markdown --filename notes.md", commands.Export("markdown", "notes.md")),
        (":export --filename='my notes.jsonl' jsonl --whole-topics", commands.Export("jsonl", "my notes.jsonl", True)),
        (":tchange", commands.MoveToTopic()),
        (':tchange "AI > Agents"', commands.MoveToTopic(("AI", "Agents"))),
        (":tchange /AI/Agents --create", commands.MoveToTopic(("AI", "Agents"), True)),
        (":tchange /", commands.MoveToTopic(())),
        (":delete", commands.DeletePairs()),
        (":delete --force", commands.DeletePairs(True)),
        (":hud", commands.Hud(True)),
        (":hud on", commands.Hud(True)),
        (":HUD OFF", commands.Hud(False)),
        (":compact", commands.Compact()),
    ],
)
def test_what_a_command_does(text: str, action: commands.Action) -> None:
    command = commands.read_command(text)
    assert command.action == action
    assert command.name == text[1:].split()[0].lower()


def test_a_command_can_be_tried_and_can_go_without_a_question() -> None:
    plain, tried = commands.read_command("e :delete"), commands.read_command("e :delete --dry-run --no-confirm")
    assert (plain.is_dry, plain.is_sure) == (False, False)
    assert (tried.is_dry, tried.is_sure) == (True, True)


@pytest.mark.parametrize(
    ("text", "column", "length", "message", "hint"),
    [
        ("e :delte", 3, 6, 'there is no command ":delte"', 'Did you mean "delete"?'),
        ("e :", 3, 1, 'there is no command ":"', "There are :export, :tchange, :delete, :hud, :compact."),
        (": delete", 1, 8, 'there is no command ":delete"', "There are :export"),
        ("model :gpt-5", 7, 6, 'there is no command ":gpt-5"', "directly after its field: model:name."),
        (":export txt", 9, 3, '"txt" is nothing to export to', "Known: markdown, md, json, jsonl."),
        (":export --filename", 9, 10, "--filename needs a value", "Write --filename NAME."),
        (":export --filename ../x", 20, 4, "cannot be the name of a file", "without folders"),
        (":export --filename=..", 9, 13, "cannot be the name of a file", "without folders"),
        (":export --filename ' '", 20, 3, "cannot be the name of a file", "without folders"),
        (":export md json", 12, 4, '"json" is one argument too many', "Leave it out."),
        (":delete --forse", 9, 7, ':delete does not know "--forse"', 'Did you mean "--force"?'),
        (":compact zzz", 10, 3, ':compact does not know "zzz"', "It knows: --dry-run, --no-confirm."),
        (":hud maybe", 6, 5, '"maybe" is neither on nor off', "Write :hud on or :hud off."),
        ("b :hud off", 1, 2, ":hud is about no pairs", "Take out the filter"),
        (":tchange 'A > B", 10, 1, "the quote ' is not closed", "Put a ' behind the words."),
    ],
)
def test_a_mistake_says_where_it_is_and_what_to_do(
    text: str, column: int, length: int, message: str, hint: str
) -> None:
    with pytest.raises(Fault) as caught:
        commands.read_command(text)
    fault = caught.value
    assert fault.code is Code.USAGE
    assert fault.details == {"column": column, "length": length}
    assert fault.message.startswith(f"command, column {column}: ")
    assert message in fault.message
    assert hint in fault.hint


def test_a_quote_of_the_filter_that_is_not_closed_is_a_mistake_of_the_filter() -> None:
    with pytest.raises(Fault, match="filter, column 2: the quote ' is not closed"):
        commands.read_command("c'open :delete")


@pytest.mark.parametrize("text", ["r20", "b & o", "!(t | s3)", "t5", "o3 | r1"])
def test_nothing_is_deleted_by_a_filter_that_changes_by_itself(text: str) -> None:
    with pytest.raises(Fault, match="would take other pairs a moment later") as caught:
        commands.check_deletable(text, parse(text, scope=FilterScope.CHAT))
    assert caught.value.details == {"column": 1, "length": len(text)}


@pytest.mark.parametrize("text", ["", "e & d<24h", "t'AI...' & m", "s0"])
def test_by_any_other_filter_pairs_can_be_deleted(text: str) -> None:
    commands.check_deletable(text, parse(text, scope=FilterScope.CHAT))


def test_more_than_fifty_need_force() -> None:
    assert not commands.DeletePairs().needs_force(50)
    assert commands.DeletePairs().needs_force(51)
    assert not commands.DeletePairs(force=True).needs_force(5000)


@pytest.mark.parametrize(
    ("text", "path"), [("A", ("A",)), ("A > B", ("A", "B")), ("/A/B > C", ("A", "B > C")), ("", ()), (" / ", ())]
)
def test_the_path_of_a_topic(text: str, path: tuple[str, ...]) -> None:
    assert commands.topic_path(text) == path


def test_every_command_says_what_it_is_for() -> None:
    for name in commands.COMMANDS:
        assert commands.read_command(f":{name}") is not None
        assert "--dry-run" in commands.options_of(name)
    assert commands.options_of("nothing") == ()


@given(st.text(alphabet="ab :'\"()&|!<=\\t--exportdl\n", max_size=40))
def test_any_text_is_a_filter_a_command_or_a_mistake_with_a_place(text: str) -> None:
    mistake = None
    try:
        place, command = commands.command_place(text), commands.read_command(text)
    except Fault as fault:
        mistake = fault
    else:
        assert (place is None) == (command is None)
    if mistake is not None:
        assert 1 <= mistake.details["column"] <= len(text) + 1
