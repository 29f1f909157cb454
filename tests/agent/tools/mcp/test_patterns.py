import pytest

from sightline.agent.tools.mcp.listing import drop_unsafe_patterns, has_unusable_names, is_risky, is_usable

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
