import pytest

from sightline.agent.tools.mcp.config import Expansion, UnfilledError, mask_values

ENVIRONMENT = {"KEY": "sk-1234", "EMPTY": "", "ON": "1"}


@pytest.mark.parametrize(
    ("written", "filled"),
    [
        ("plain $KEY", "plain $KEY"),
        ("${KEY}", "sk-1234"),
        ("${env:KEY}", "sk-1234"),
        ("Bearer ${KEY}, ${ON}", "Bearer sk-1234, 1"),
        ("${NONE:-some thing}", "some thing"),
        ("${NONE:-}", ""),
        ("${EMPTY:-other}", "other"),
        ("${KEY:-other}", "sk-1234"),
    ],
)
def test_variables_are_filled_in(written: str, filled: str) -> None:
    assert Expansion(ENVIRONMENT).expand(written) == filled


def test_what_is_filled_in_is_not_filled_in_again() -> None:
    assert Expansion({"A": "${B}", "B": "no"}).expand("${A}") == "${B}"


@pytest.mark.parametrize("written", ["${NONE}", "${input:key}", "${workspaceFolder}/x", "${}", "${EMPTY}"])
def test_what_cannot_be_filled_in_is_named(written: str) -> None:
    with pytest.raises(UnfilledError) as raised:
        Expansion({"KEY": "sk-1234"}).expand(f"${{KEY}} {written}")
    assert "sk-1234" not in str(raised.value)


def test_what_came_from_the_environment_is_remembered() -> None:
    expansion = Expansion(ENVIRONMENT)
    expansion.expand("${KEY} ${ON} ${NONE:-default}")
    assert expansion.values == {"sk-1234"}  # "1" would be missing in every number


def test_a_value_within_another_leaves_nothing_of_it() -> None:
    assert mask_values("sk-1234-5678 and sk-1234", frozenset({"sk-1234", "sk-1234-5678"})) == "*** and ***"
