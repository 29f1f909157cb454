"""Cache marks in requests of agents whose own API needs none."""

from typing import Any

import msgspec

from sightline.catalog.facts import Facts
from sightline.dialects.anthropic.cache_marks import place_marks
from sightline.dialects.dialect import Target
from sightline.dialects.translate import translate_request, write_request
from sightline.model.parts import CacheBreakpoint, Text
from sightline.model.report import Report
from sightline.model.request import FunctionTool, Message, Request
from sightline.wire.jsontext import decode, encode

LONG = "word " * 1200
TOOLS = [{"type": "function", "name": "f", "description": LONG, "parameters": {"type": "object", "properties": {}}}]
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c", "output": "r"}
MARK = {"type": "ephemeral"}


def said(text: str = "hi", role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


def marks(source: dict[str, Any], settings: Target | None = None, spoken: str = "openai-responses") -> list[str]:
    """The places of all marks, each of which is listed as an addition."""
    written = translate_request(encode({"model": "m", **source}), spoken, "anthropic", settings=settings)
    found: list[str] = []

    def look(value: Any, at: str) -> None:
        if isinstance(value, dict):
            if "cache_control" in value:
                assert value["cache_control"] == MARK
                found.append(at)
            for key, inner in value.items():
                look(inner, f"{at}/{key}")
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                look(inner, f"{at}/{index}")

    body = decode(written.data)
    look(body, "")
    listed = [each.pointer for each in written.report.additions if each.what == "a cache mark"]
    assert sorted(listed) == sorted(f"{at}/cache_control" for at in found)
    return sorted(found)


def test_tools_system_prompt_and_the_last_two_turns_are_marked() -> None:
    items = [
        said(),
        CALL,
        RESULT,
        said("b", "assistant"),
        said("c"),
        CALL | {"call_id": "d"},
        RESULT | {"call_id": "d"},
    ]
    assert marks({"tools": TOOLS, "instructions": LONG, "input": items}) == [
        "/messages/4/content/0",
        "/messages/6/content/0",
        "/system/0",
        "/tools/0",
    ]


def test_a_mark_stays_where_the_request_before_had_it() -> None:
    items = [said("a")]
    assert marks({"tools": TOOLS, "input": items}) == ["/messages/0/content/0", "/tools/0"]
    items += [said("b", "assistant"), said("c"), said("d")]
    assert marks({"tools": TOOLS, "input": items}) == ["/messages/0/content/0", "/messages/3/content/0", "/tools/0"]
    items += [said("e", "assistant"), said("f")]
    assert marks({"tools": TOOLS, "input": items}) == ["/messages/3/content/0", "/messages/5/content/0", "/tools/0"]


def test_a_system_message_behind_the_last_turn_gets_no_mark() -> None:
    items = [said("a"), said("be brief", "system")]
    assert marks({"tools": TOOLS, "input": items}) == ["/messages/0/content/0", "/tools/0"]


def test_a_prefix_that_is_too_short_gets_no_mark() -> None:
    short = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
    assert marks({"tools": short, "input": [said()]}) == []
    assert marks({"tools": short, "instructions": LONG, "input": [said()]}) == ["/messages/0/content/0", "/system/0"]
    assert marks({"tools": short, "instructions": "brief", "input": [said(LONG)]}) == ["/messages/0/content/0"]
    facts = Facts(cache_minimum=4096, chars_per_token=2)
    assert marks({"tools": TOOLS, "input": [said()]}, Target(facts=facts)) == []
    assert marks({"tools": TOOLS, "input": [said(LONG)]}, Target(facts=facts)) == ["/messages/0/content/0"]
    assert marks({"tools": short, "input": [said("x" * 50)]}, Target(facts=Facts(cache_minimum=8))) != []


def test_only_an_agent_is_marked_and_only_if_it_may() -> None:
    assert marks({"input": [said(LONG)]}) == []
    assert marks({"tools": TOOLS, "input": [said(LONG)]}, Target(cache="off")) == []


def test_a_request_with_marks_of_its_own_gets_no_others() -> None:
    tool, mark = FunctionTool("f", LONG, {"type": "object"}), CacheBreakpoint()
    for tools, parts in (
        ((msgspec.structs.replace(tool, cache=mark),), (Text("hi"),)),
        ((tool,), (Text("hi"), mark)),
    ):
        report = Report()
        request = Request("m", (Message("user", parts),), tools, dialect="raw")
        assert write_request(request, "anthropic", Target(), report).count(b"cache_control") == 1
        assert not [each for each in report.additions if each.what == "a cache mark"]


def test_a_request_of_our_own_is_sent_as_it_was_composed() -> None:
    request = Request("m", (Message("user", (Text(LONG),)),), (FunctionTool("f", LONG, {"type": "object"}),))
    assert b"cache_control" not in write_request(request, "anthropic", Target(), Report())


def blocks(count: int, **more: object) -> list[dict[str, object]]:
    return [{"type": "text", "text": f"b{n}", **more} for n in range(count)]


def test_marks_are_placed_as_far_apart_as_one_finds_what_was_written() -> None:
    marked = blocks(50)
    marked[3]["cache_control"] = {"type": "ephemeral"}
    body = {"system": [{"type": "text", "text": "S"}], "messages": [{"role": "user", "content": marked}]}
    mark = {"type": "ephemeral"}
    assert place_marks(body, "") == [
        ("/messages/0/content/3/cache_control", None),
        ("/system/0/cache_control", mark),
        ("/messages/0/content/11/cache_control", mark),
        ("/messages/0/content/30/cache_control", mark),
        ("/messages/0/content/49/cache_control", mark),
    ]


def test_a_lifetime_is_set_in_the_marks_that_are_there() -> None:
    hour = {"type": "ephemeral", "ttl": "1h"}
    body = {"messages": [{"role": "user", "content": blocks(1)}], "cache_control": {"type": "ephemeral"}}
    assert place_marks(body, "1h") == [("/cache_control", hour)]
    bare = {"tools": [{"name": "f"}], "system": "S", "messages": [{"role": "user", "content": "Hi."}]}
    assert place_marks(bare, "1h") == [
        ("/system", [{"type": "text", "text": "S", "cache_control": hour}]),
        ("/messages/0/content", [{"type": "text", "text": "Hi.", "cache_control": hour}]),
    ]


def test_thoughts_and_empty_texts_are_not_marked() -> None:
    content = [*blocks(1), {"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": ""}]
    body = {"messages": [{"role": "assistant", "content": content}]}
    assert place_marks(body, "") == [("/messages/0/content/0/cache_control", {"type": "ephemeral"})]
