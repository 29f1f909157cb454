import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.agent.tools.mcp.mcp_tools import ToolNames, fit_name, is_exact

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
def test_the_server_stands_before_the_tool(server: str, tool: str, name: str) -> None:
    assert fit_name(server, tool) == name
    assert is_exact(server, tool) is (name == f"{server}__{tool}")


def test_long_names_are_told_apart() -> None:
    one, other = fit_name("s", "t" * 100 + "1"), fit_name("s", "t" * 100 + "2")
    assert one != other
    assert len(one) == len(other) == 64


def test_two_tools_never_share_a_name() -> None:
    names = ToolNames()
    first = names.name_for("a", "b__c")
    second = names.name_for("a__b", "c")
    assert first == "a__b__c"
    assert second.startswith("a__b__c_")
    assert names.meant(second) == ("a__b", "c")
    assert names.name_for("a", "b__c") == first
    assert names.meant("nobody") is None


@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), unique=True))
def test_every_provider_takes_every_name(pairs: list[tuple[str, str]]) -> None:
    names = ToolNames()
    given_names = [names.name_for(*pair) for pair in pairs]
    assert all(TAKEN.fullmatch(name) for name in given_names)
    assert len(set(given_names)) == len(pairs)
    assert [names.meant(name) for name in given_names] == pairs
