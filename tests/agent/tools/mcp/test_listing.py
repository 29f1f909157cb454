import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import Tool

from sightline.agent.core.tool import Definition
from sightline.agent.tools.mcp.config import ServerLimits
from sightline.agent.tools.mcp.listing import ToolListing, drop_unsafe_patterns, has_unusable_names, is_risky, is_usable
from sightline.agent.tools.mcp.mcp_tools import ToolNames, fit_name, is_exact
from tests.agent.tools.mcp.hostile import Lies

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def read(tools: Any, bounds: ServerLimits | None = None) -> ToolListing:
    """A list as the SDK reads it once it is sifted."""
    listing = ToolListing(bounds or ServerLimits())
    sifted = listing.filter_page({"tools": tools})
    listing.add([Tool.model_validate(each) for each in sifted["tools"]])
    return listing


def test_a_tool_is_offered_as_it_is_described() -> None:
    tool = {"name": "go", "description": " Goes. ", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}
    listing = read([tool])
    assert listing.tools["go"] == Definition(name="go", description="Goes.", schema=SCHEMA, is_parallel=True)
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
    listing = ToolListing(ServerLimits())
    assert listing.filter_page({"tools": {"a": 1}, "nextCursor": 5, "ttlMs": 0}) == {"tools": [], "ttlMs": 0}
    assert listing.notes == ("its list of tools is none",)
    assert listing.filter_page({"tools": [], "nextCursor": "2"}) == {"tools": [], "nextCursor": "2"}


def test_more_tools_than_are_borne_are_not_even_looked_at() -> None:
    listing = read([{"name": f"t{n}", "inputSchema": SCHEMA} for n in range(1000)], ServerLimits(tools=3))
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


RISKY = "^(a+)+$"


@pytest.mark.parametrize(
    "pattern",
    [
        RISKY,
        "(a*)*b",
        "(?:a|aa)+$",
        "(x+x+)+y",
        "((a+))*",
        "(a|a){10,}",
        "(a+){30}",
        r"([\]a]+)+",
        ".*.*.*.*x",
        "(.*a){2,}",
    ],
)
def test_patterns_that_could_take_for_ever_are_known_by_their_form(pattern: str) -> None:
    assert is_risky(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "^[a-z]+$",
        r"^\d{4}-\d{2}-\d{2}$",
        r"^[^@]+@[^@]+\.[a-z]+$",
        "^(get|put)$",
        "(?:ab)+c",
        r"^(\d{3}-)+\d{4}$",
        r"\(a+\)+",
        "[(a+)+]+",
        "[]()+*|]*",
        "a)b+",
        "[unclosed(+)+",
        "ends\\",
    ],
)
def test_ordinary_patterns_are_not(pattern: str) -> None:
    assert not is_risky(pattern)


def test_a_risky_pattern_is_put_aside_and_nothing_else() -> None:
    schema = {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "pattern": RISKY, "default": {"pattern": RISKY}},
            "date": {"anyOf": [{"pattern": "^[0-9]+$"}, {"pattern": RISKY, "minLength": 1}]},
        },
        "required": ["pattern"],
    }
    assert drop_unsafe_patterns(schema) == (
        {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "default": {"pattern": RISKY}},
                "date": {"anyOf": [{"pattern": "^[0-9]+$"}, {"minLength": 1}]},
            },
            "required": ["pattern"],
        },
        2,
    )


@pytest.mark.parametrize("pattern", ["(", r"\p{L}+", "(?<name>a)", RISKY, "a{99999999999999999999}", "[[a]"])
def test_what_python_cannot_read_is_not_used(pattern: str) -> None:
    assert not is_usable(pattern)
    assert drop_unsafe_patterns({"pattern": pattern}) == ({}, 1)
    assert has_unusable_names({"patternProperties": {pattern: {}}})


def test_names_by_a_risky_pattern_are_found() -> None:
    assert has_unusable_names({"items": [{"patternProperties": {RISKY: {}}}]})
    assert not has_unusable_names({"patternProperties": {"^x-": {}}, "default": {"patternProperties": {RISKY: 1}}})


# What OpenAI, Anthropic and Gemini all take.
TAKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("git", "status", "git__status"),
        ("git", "repo.status", "git__repo_status"),
        ("my server", "füg hinzu", "my_server__f_g_hinzu"),
        ("1st", "go", "_1st__go"),
        ("-", "go", "_-__go"),
    ],
)
def test_tool_name_is_prefixed_with_the_server_name(server: str, tool: str, name: str) -> None:
    assert fit_name(server, tool) == name
    assert is_exact(server, tool) is (name == f"{server}__{tool}")


def test_truncated_long_names_stay_distinct() -> None:
    one, other = fit_name("s", "t" * 100 + "1"), fit_name("s", "t" * 100 + "2")
    assert one != other
    assert len(one) == len(other) == 64


def test_two_tools_never_share_a_name() -> None:
    names = ToolNames()
    first = names.name_for("a", "b__c")
    second = names.name_for("a__b", "c")
    assert first == "a__b__c"
    assert second.startswith("a__b__c_")
    assert names.tool_named(second) == ("a__b", "c")
    assert names.name_for("a", "b__c") == first
    assert names.tool_named("nobody") is None


@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), unique=True))
def test_every_provider_takes_every_name(pairs: list[tuple[str, str]]) -> None:
    names = ToolNames()
    given_names = [names.name_for(*pair) for pair in pairs]
    assert all(TAKEN.fullmatch(name) for name in given_names)
    assert len(set(given_names)) == len(pairs)
    assert [names.tool_named(name) for name in given_names] == pairs
