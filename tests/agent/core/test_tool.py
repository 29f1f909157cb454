"""Tools, and the outcomes of their calls within bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.agent.core.tool import (
    NOTHING,
    Cap,
    Definition,
    Toolbox,
    ToolOutcome,
    cap_outcome,
    definition_problems,
    replace_refused_parts,
    text_outcome,
    truncate,
    words_of,
)
from sightline.catalog.facts import Facts, Modality
from sightline.errors import Code, Fault
from sightline.model.parts import Audio, Image, Inline, Link, Text
from sightline.model.request import CustomTool, FunctionTool, Grammar, OpaqueTool
from tests.loop_stage import TOOLBOX


def test_tools_are_offered_without_those_that_are_disabled() -> None:
    grammar = Grammar("lark", "start: /x/")
    toolbox = Toolbox(
        (
            Definition(name="a", description="A."),
            Definition(name="b", kind="custom", grammar=grammar),
            *TOOLBOX.definitions,
        )
    )
    first, second, *others = toolbox.tools_for()
    assert first == FunctionTool("a", "A.", {"type": "object", "properties": {}})
    assert second == CustomTool("b", None, grammar)
    assert "format_disk" not in [tool.name for tool in others if not isinstance(tool, OpaqueTool)]


def test_a_tool_that_the_request_has_already_stays_as_it_is_written_there() -> None:
    own, server = FunctionTool("count", "Mine."), OpaqueTool("anthropic", {"type": "web_search"})
    offered = TOOLBOX.tools_for((server, own))
    assert offered[:2] == (server, own)
    assert [tool.name for tool in offered[2:] if not isinstance(tool, OpaqueTool)] == ["edit_file", "shell"]


def test_the_nearest_names_come_first_and_all_of_them_where_none_is_near() -> None:
    assert TOOLBOX.nearest("Edit_Files") == ("edit_file",)
    assert TOOLBOX.nearest("zzzz") == ("edit_file", "count", "shell")
    assert TOOLBOX.nearest("format_disk")[0] != "format_disk"


def test_tools_are_found_by_name() -> None:
    assert TOOLBOX.find("nope") is None
    assert TOOLBOX.find("format_disk") is not None


def test_bad_tools_are_reported_all_at_once() -> None:
    TOOLBOX.check()
    bad = Definition(name="bad", schema={"type": "nothing"})
    toolbox = Toolbox((bad, bad, Definition(name="words", kind="custom", schema={})))
    with pytest.raises(Fault) as caught:
        toolbox.check()
    assert caught.value.code is Code.CONFIG
    for words in ("bad: /type", "words: a tool for free text has no schema", "there are 2 tools named 'bad'"):
        assert words in caught.value.message


def test_a_tool_without_a_schema_takes_any_object() -> None:
    assert definition_problems(Definition(name="x")) == []


def test_a_tool_that_the_api_has_by_itself_is_offered_once_in_whatever_dialect() -> None:
    toolbox = Toolbox((Definition(name="web_search", hosted="web_search"), Definition(name="f", strict=True)))
    search, function = toolbox.tools_for()
    assert search == OpaqueTool("openai-responses", {"type": "web_search"})
    assert function.strict is True
    there = OpaqueTool("gemini", {"googleSearch": {}})
    assert toolbox.tools_for((there,)) == (there, function)
    assert [each.is_remote for each in toolbox.definitions] == [True, False]


SMALL = Image(Inline("image/png", "aGk="))


def test_what_fits_stays_as_it_is() -> None:
    outcome = ToolOutcome((Text("a"), SMALL, Text("b")), is_error=True)
    assert cap_outcome(outcome, Cap()) == outcome
    assert truncate("abc", 3) == "abc"


def test_a_long_text_keeps_its_head_and_more_of_its_tail_and_says_what_is_missing() -> None:
    text = "".join(chr(0x4E00 + n) for n in range(1000))
    short = truncate(text, 150)
    head, mark, tail = short.split("\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert 0 < len(head) < len(tail)
    assert mark == f"[{1000 - len(head) - len(tail)} of 1000 characters are left out here]"


@given(st.text(max_size=400), st.integers(0, 400))
def test_a_cut_text_is_no_longer_than_it_may_be_but_for_the_words_that_say_so(text: str, most: int) -> None:
    short = truncate(text, most)
    assert len(short) <= max(most, len(truncate("x" * len(text), 0)))
    assert (short == text) == (len(text) <= most)


def test_several_texts_are_cut_as_one() -> None:
    outcome = cap_outcome(ToolOutcome((Text("a" * 100), SMALL, Text("b" * 100))), Cap(characters=90))
    words, picture = outcome.parts
    assert words.text.startswith("aa")
    assert words.text.endswith("bb")
    assert picture is SMALL


def test_a_tool_that_says_nothing_is_answered_for() -> None:
    assert cap_outcome(ToolOutcome(), Cap()) == text_outcome(NOTHING)
    assert cap_outcome(ToolOutcome((Text(" \n"),)), Cap()) == text_outcome(NOTHING)
    assert cap_outcome(ToolOutcome(structured={"a": 1}), Cap()) == ToolOutcome(structured={"a": 1})


def test_an_object_that_is_too_large_is_cut_as_text() -> None:
    outcome = cap_outcome(ToolOutcome(structured={"a": "x" * 200}), Cap(characters=100))
    assert outcome.structured is None
    (words,) = outcome.parts
    assert len(words.text) <= 100


def test_pictures_beyond_their_bound_are_named_instead() -> None:
    linked = Image(Link("https://example.com/a.png"))
    parts = (SMALL, SMALL, linked, Audio(Inline("audio/wav", "aGk=")), Audio(id="a"))
    kept = cap_outcome(ToolOutcome(parts), Cap(media=6)).parts
    assert (kept[0], kept[2], kept[4]) == (SMALL, linked, Audio(id="a"))
    assert kept[1] == Text("[image of 4 characters left out: more than the 2 that are left]")
    assert kept[3] == Text("[audio of 4 characters left out: more than the 2 that are left]")


def test_an_outcome_in_words_is_its_text_or_its_json() -> None:
    assert words_of(ToolOutcome((Text("a"), Text("b")), structured={"n": 1})) == "a\nb"
    assert words_of(ToolOutcome(structured={"n": 1})) == '{"n":1}'
    assert words_of(ToolOutcome()) == ""


@pytest.mark.parametrize(("modalities", "is_kept"), [(None, True), (("text", "image"), True), (("text",), False)])
def test_a_picture_is_replaced_for_a_model_that_cannot_see(
    modalities: tuple[Modality, ...] | None, *, is_kept: bool
) -> None:
    picture = Image(Inline("image/png", "aGk="))
    first, second = replace_refused_parts(ToolOutcome((Text("Here:"), picture)), Facts(input=modalities)).parts
    assert first == Text("Here:")
    assert (second == picture) is is_kept
    assert is_kept or "cannot take an image" in str(second)
