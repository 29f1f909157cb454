from typing import Any

from mcp_types import Tool

from sightline.agent.core.tool import Definition
from sightline.agent.tools.mcp.config import Bounds
from sightline.agent.tools.mcp.listing import ToolListing
from tests.agent.tools.mcp.hostile import Lies

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def read(tools: Any, bounds: Bounds | None = None) -> ToolListing:
    """A list as the SDK reads it once it is sifted."""
    listing = ToolListing(bounds or Bounds())
    sifted = listing.filter_page({"tools": tools})
    listing.add([Tool.model_validate(each) for each in sifted["tools"]])
    return listing


def test_a_tool_is_offered_as_it_is_described() -> None:
    tool = {"name": "go", "description": " Goes. ", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}
    listing = read([tool])
    wanted = Definition(name="s__go", description="Goes.", schema=SCHEMA, is_parallel=True)
    assert listing.tools["go"].definition_as("s__go") == wanted
    assert listing.notes == ()


def test_only_a_tool_that_says_it_reads_runs_beside_others() -> None:
    hints = [{"readOnlyHint": False}, {"readOnlyHint": "yes"}, {"idempotentHint": True}, "all", None]
    listing = read([{"name": f"t{n}", "inputSchema": SCHEMA, "annotations": hint} for n, hint in enumerate(hints)])
    assert [tool.is_parallel for tool in listing.tools.values()] == [False] * 5


def test_without_a_description_its_title_is_one() -> None:
    assert read([{"name": "go", "title": "Go!", "inputSchema": SCHEMA}]).tools["go"].description == "Go!"


def test_a_description_is_cut_and_says_so() -> None:
    listing = read([{"name": "go", "description": "x" * 1_000_000, "inputSchema": SCHEMA}])
    description = listing.tools["go"].description
    assert len(description) <= 4000
    assert "characters are left out here" in description


def test_what_lies_is_left_out_with_a_note_and_takes_nothing_along() -> None:
    listing = read(list(Lies.tools))
    assert list(listing.tools) == ["good", "tree", "wordy"]
    assert listing.tools["good"].schema == {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert len(listing.notes) == 11
    assert listing.notes[-1] == "4 more such notes"
    assert any("leads nowhere" in note for note in listing.notes)


def test_a_list_that_is_none_is_empty() -> None:
    listing = ToolListing(Bounds())
    assert listing.filter_page({"tools": {"a": 1}, "nextCursor": 5, "ttlMs": 0}) == {"tools": [], "ttlMs": 0}
    assert listing.notes == ("its list of tools is none",)
    assert listing.filter_page({"tools": [], "nextCursor": "2"}) == {"tools": [], "nextCursor": "2"}


def test_more_tools_than_are_borne_are_not_even_looked_at() -> None:
    listing = read([{"name": f"t{n}", "inputSchema": SCHEMA} for n in range(1000)], Bounds(tools=3))
    assert list(listing.tools) == ["t0", "t1", "t2"]
    assert listing.is_full
    assert listing.notes == ("3 of its tools are the most that are taken, and the rest is left out",)


def test_a_pattern_that_could_take_for_ever_is_not_checked() -> None:
    slow = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    worse = {"type": "object", "patternProperties": {"^(a+)+$": {}}}
    listing = read([{"name": "slow", "inputSchema": slow}, {"name": "worse", "inputSchema": worse}])
    assert listing.tools["slow"].schema == {"type": "object", "properties": {"a": {"type": "string"}}}
    assert listing.notes == (
        "a pattern of its tool 'slow' cannot be read or could take for ever: it is not checked",
        "its tool 'worse' is left out: a pattern in its schema cannot be read or could take for ever",
    )
