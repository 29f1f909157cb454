"""Kept edits that hold a prompt still for the cache: how they are made of two turns, and repeated on later ones."""

import json
from typing import Any

import pytest

from sightline.editing.cache_edits import CacheEdit, FixedSpan, TurnPair, find_span, spans_between
from sightline.editing.draft import Draft
from sightline.editing.masks import Mask, MaskOutcome, apply_masks, read_masks, with_id
from sightline.errors import Fault

TOOLS = [{"name": name, "description": f"It does {name}.", "input_schema": {"type": "object"}} for name in "abc"]


def body(system: str = "Be kind.", *said: Any, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": each} if isinstance(each, str) else each for each in said or ("Hi.",)]
    return {"model": "m", "max_tokens": 9, "tools": TOOLS, "system": system, "messages": messages, **more}


def draft(value: dict[str, Any], dialect: str = "anthropic") -> Draft:
    return Draft.of(json.dumps(value).encode(), dialect, "m")


def keep(value: dict[str, Any], edit: CacheEdit, dialect: str = "anthropic") -> tuple[dict[str, Any], MaskOutcome]:
    mask = with_id(Mask(kind="cache", scope="all", cache=edit))
    after, (outcome,) = apply_masks(draft(value, dialect), (mask,), session="", project="")
    return json.loads(after.data), outcome


def two(before: dict[str, Any], now: dict[str, Any], pointer: str = "/system", dialect: str = "anthropic") -> TurnPair:
    return TurnPair(draft(before, dialect), draft(now, dialect), pointer)


# --- words ---


@pytest.mark.parametrize(
    ("old", "new", "later", "says"),
    [
        ("It is Monday. Be kind.", "It is Tuesday. Be kind.", "It is Wednesday. Be kind.", "It is Monday. Be kind."),
        ("At 12:05 now", "At 12:07 now", "At 13:10 now", "At 12:05 now"),
        ("12:05 it is", "12:07 it is", "9:00 it is", "12:05 it is"),
        ("Now 12:05", "Now 12:07", "Now 9", "Now 12:05"),
        ("a\nb 1 b\nc 2 d\ne", "a\nb 3 b\nc 4 d\ne", "a\nb 5 b\nc 6 d\ne", "a\nb 1 b\nc 2 d\ne"),
        ("x 1\ny\nx 2\nz", "x 1\ny\nx 3\nz", "x 1\ny\nx 4\nz", "x 1\ny\nx 2\nz"),
    ],
)
def test_words_that_change_are_frozen_as_the_turn_before_said_them(old: str, new: str, later: str, says: str) -> None:
    edit = two(body(old), body(new)).hold_words("freeze")
    assert edit is not None
    after, outcome = keep(body(later), edit)
    assert (after["system"], outcome.outcome) == (says, "applied")


def test_a_sentence_is_stripped_or_moved_behind_everything() -> None:
    turns = two(body("Be kind. It is Monday. Be brief."), body("Be kind. It is Tuesday. Be brief."))
    later = body("Be kind. It is Friday. Be brief.", "Hi.", {"role": "assistant", "content": "Yes."}, "And?")
    strip, move = turns.hold_words("strip"), turns.hold_words("move")
    assert strip is not None
    assert move is not None
    assert turns.words_of(strip) == ("It is Tuesday.",)
    assert keep(later, strip)[0]["system"] == "Be kind.  Be brief."
    after, outcome = keep(later, move)
    assert after["system"] == "Be kind.  Be brief."
    assert after["messages"][-1]["content"] == [
        {"type": "text", "text": "And?"},
        {"type": "text", "text": "It is Friday."},
    ]
    assert outcome.outcome == "applied"


@pytest.mark.parametrize(
    ("last", "held"),
    [
        ({"role": "user", "content": [{"type": "text", "text": "And?"}]}, [{"type": "text", "text": "And?"}]),
        ({"role": "tool", "tool_call_id": "c", "content": "3"}, []),
    ],
)
def test_moved_words_are_behind_what_the_newest_message_holds_or_in_one_of_their_own(last: Any, held: Any) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "a", "arguments": "{}"}}
    said = [{"role": "user", "content": "Hi."}, {"role": "assistant", "tool_calls": [call]}]
    said = [*said, {"role": "tool", "tool_call_id": "c", "content": "3"}] if held else said
    edit = CacheEdit(action="move", section="system", spans=(FixedSpan("is ", " now"),))
    value = {"model": "m", "messages": [{"role": "system", "content": "It is 12 now"}, *said, last]}
    after, outcome = keep(value, edit, "openai-chat")
    assert outcome.outcome == "applied"
    assert after["messages"][-1] == {"role": "user", "content": [*held, {"type": "text", "text": "12"}]}
    assert after["messages"][0]["content"] == "It is  now"


def test_words_are_not_moved_behind_what_the_model_has_begun() -> None:
    edit = CacheEdit(action="move", section="system", spans=(FixedSpan("is ", " now"),))
    value = body("It is 12 now", "Hi.", {"role": "assistant", "content": "Well"})
    after, outcome = keep(value, edit)
    assert (after, outcome.outcome) == (value, "missing")
    nothing = keep(body("It is  now", "Hi."), edit)
    assert (nothing[0]["messages"], nothing[1].outcome) == (body()["messages"], "applied")


def test_words_of_a_tool_and_of_a_message_are_found_by_their_place() -> None:
    changed = [*TOOLS[:1], {**TOOLS[1], "description": "It does b 2 times."}, TOOLS[2]]
    turns = two(body(), body(tools=changed), "/tools/1")
    edit = turns.hold_words("freeze")
    assert edit is not None
    assert (edit.section, edit.part) == ("tools", "b")
    later = [{**TOOLS[1], "description": "It does b 2 times."}, TOOLS[0]]
    assert keep(body(tools=later), edit)[0]["tools"][0] == TOOLS[1]
    assert keep(body(tools=TOOLS[:1]), edit)[1].outcome == "missing"
    second = two(body("", "Hi.", "It is 1."), body("", "Hi.", "It is 2."), "/messages/1").hold_words("freeze")
    assert second is not None
    assert second.index == 1
    assert keep(body("", "Hi."), second)[1].outcome == "missing"


@pytest.mark.parametrize(
    ("turns", "why"),
    [
        (two(body(), body(), ""), "there is no place"),
        (two(body(), body(tools=TOOLS[:2]), "/tools"), "no tool says something else"),
        (two(body("", "Hi."), body("", "Hi.", "Go."), "/messages/1"), "the turn before had no such section"),
        (two(body("same"), body("same")), "nothing differs"),
    ],
)
def test_what_is_no_few_words_is_not_held(turns: TurnPair, why: str) -> None:
    assert turns.hold_words("freeze") is None, why


def test_of_a_sentence_without_end_only_the_words_are_stripped() -> None:
    rest = " and so on" * 50
    edit = two(body(f"It is 1 {rest}"), body(f"It is 2 {rest}")).hold_words("strip")
    assert edit is not None
    assert keep(body(f"It is 3 {rest}"), edit)[0]["system"] == f"It is  {rest}"


def test_spans_that_are_there_more_than_once_or_too_long_are_not_found() -> None:
    assert find_span("a 1 b a 2 b", FixedSpan("a ", " b")) is None
    assert find_span("a " + "x" * 5000 + " b", FixedSpan("a ", " b")) is None
    assert find_span("a 1", FixedSpan("a ", " b")) is None
    assert find_span("a 1 b", FixedSpan("a ", " b")) == (2, 3)
    assert spans_between("one two", "one two") is None
    assert spans_between("a\n" * 30 + "x 1", "a\n" * 30 + "x 2") is not None
    assert spans_between("1 a " * 200 + "2", "1 a " * 100 + "3 a " + "1 a " * 99 + "2") is None


def test_words_that_are_not_there_leave_the_request_as_it_is() -> None:
    edit = CacheEdit(action="freeze", section="system", spans=(FixedSpan("It is ", " now"),))
    after, outcome = keep(body("Be brief."), edit)
    assert (after, outcome.outcome) == (body("Be brief."), "missing")
    empty = CacheEdit(action="strip", section="user", spans=(FixedSpan(),))
    assert keep(body(), empty)[1].outcome == "refused"


# --- tools, options, marks ---


def test_tools_come_in_the_order_of_the_turn_before_and_new_ones_last() -> None:
    edit = two(body(), body(tools=TOOLS[::-1])).order_tools()
    assert edit.names == ("a", "b", "c")
    assert two(body(), body()).words_of(edit) == ()
    new = {"name": "d", "description": "New.", "input_schema": {"type": "object"}}
    after, outcome = keep(body(tools=[TOOLS[2], new, TOOLS[0]]), edit)
    assert [tool["name"] for tool in after["tools"]] == ["a", "c", "d"]
    assert outcome.outcome == "applied"
    assert keep(body(), edit)[0] == body()
    assert keep(body(tools=[]), edit)[1].outcome == "missing"
    lists = [{"functionDeclarations": [{"name": name}]} for name in "ba"]
    apart = {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}], "tools": lists}
    assert keep(apart, edit, "gemini")[1].outcome == "missing"


def test_tools_that_were_added_are_named_and_those_that_went_are_not() -> None:
    assert two(body(tools=TOOLS[:1]), body()).new_tools() == ("b", "c")
    assert two(body(), body(tools=TOOLS[:1])).new_tools() == ()


def test_an_option_keeps_its_value() -> None:
    choice = {"type": "auto"}
    turns = two(body(tool_choice=choice), body())
    edit = turns.keep_option(["/max_tokens", "/tool_choice"])
    assert edit == CacheEdit(action="option", pointer="/tool_choice", value=choice)
    assert keep(body(), edit)[0]["tool_choice"] == choice
    assert keep(body(tool_choice={"type": "any"}), edit)[0]["tool_choice"] == choice
    none = two(body(), body(tool_choice=choice)).keep_option(["/tool_choice"])
    assert none is not None
    assert keep(body(tool_choice=choice), none)[0] == body()
    assert keep(body(), none)[0] == body()
    assert turns.keep_option(["/model"]) is None
    assert turns.option_with(9) == "/max_tokens"
    assert turns.option_with("nowhere") == ""


def test_marks_are_set_where_the_dialect_has_them() -> None:
    after, outcome = keep(body(), CacheEdit(action="mark"))
    assert outcome.outcome == "applied"
    mark = {"type": "ephemeral"}
    assert after["system"] == [{"type": "text", "text": "Be kind.", "cache_control": mark}]
    assert after["messages"][0]["content"] == [{"type": "text", "text": "Hi.", "cache_control": mark}]
    chat = {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}
    assert keep(chat, CacheEdit(action="mark"), "openai-chat")[1].outcome == "missing"


@pytest.mark.parametrize(
    "value",
    [
        {"kind": "cache", "scope": "all"},
        {"kind": "cache", "scope": "all", "cache": {"action": "mark"}, "strip": {"class": "thinking"}},
        {"kind": "strip", "scope": "all", "cache": {"action": "mark"}},
        {"kind": "cache", "scope": "all", "cache": {"action": "burn"}},
    ],
)
def test_a_mask_that_lacks_its_edit_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises(Fault):
        read_masks([value])


def test_the_same_place_has_the_same_mask() -> None:
    one, other = (
        with_id(Mask(kind="cache", scope="all", cache=CacheEdit(action="option", pointer="/a", value=value)))
        for value in (1, 2)
    )
    assert one.id == other.id
