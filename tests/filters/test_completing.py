import pytest

from sightline.filters.completing import MOST, completions, term_start
from sightline.filters.fields import FIELDS, FilterScope
from sightline.filters.parsing import parse

KNOWN = {"model": ["gpt-9", "claude opus", "gpt-9", "", "odd*name"], "session": ["a"]}


def offered(text: str, at: int | None = None, scope: FilterScope = FilterScope.TRAFFIC) -> list[str]:
    return [each.text for each in completions(text, len(text) if at is None else at, scope=scope, known=KNOWN)]


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("", 0),
        ("model:x", 0),
        ("model:x sta", 8),
        ("a&(b|!c", 6),
        ('text:"some words', 0),
        ("text:'it' sta", 10),
        ('text:"it\'s" & s', 14),
    ],
)
def test_a_term_begins_behind_what_parts_terms_outside_of_quotes(text: str, start: int) -> None:
    assert term_start(text, len(text)) == start


def test_fields_are_offered_by_how_any_of_their_names_begins() -> None:
    assert offered("mo") == ["model:"]
    assert offered("elap") == ["time:"]
    assert offered("model:x & DIA") == ["dialect:"]
    assert offered("nothing-like-it") == []
    assert set(offered("")) == {f"{field.name}:" for field in FIELDS if FilterScope.TRAFFIC in field.scopes}
    assert "latest:" not in offered("", scope=FilterScope.RULES)


def test_some_fields_can_be_offered_first() -> None:
    found = [each.label for each in completions("t", 1, scope=FilterScope.CHAT, first=("topic", "text"))]
    assert found == ["topic", "text", "tool", "tokens", "time"]


def test_what_is_offered_takes_the_place_of_the_term_before_the_cursor() -> None:
    text = "model:x & sta & ok"
    found = completions(text, 13, scope=FilterScope.TRAFFIC)
    assert [(each.start, each.text) for each in found] == [(10, "status:"), (10, "state:")]
    assert found[1].help == "where it stands"


def test_values_are_the_choices_and_what_there_has_been() -> None:
    assert offered("state:he") == ["state:held"]
    assert offered("error:") == ["error:yes", "error:no"]
    assert [each.label for each in completions("model:", 6, scope=FilterScope.TRAFFIC, known=KNOWN)] == [
        "gpt-9", "claude opus", "odd*name",
    ]  # fmt: skip
    assert offered('model:"opus') == ['model:"claude opus"']
    assert offered("nofield:x") == []
    assert offered("latest:", scope=FilterScope.RULES) == []
    assert completions("model:", 6, scope=FilterScope.TRAFFIC) == []


def test_every_offer_can_be_read() -> None:
    for field in FIELDS:
        if FilterScope.TRAFFIC in field.scopes:
            for text in offered(f"{field.name}:"):
                parse(text, scope=FilterScope.TRAFFIC)
    assert parse(offered("model:odd")[0]) == parse('model:"odd\\*name"')


def test_a_long_list_is_cut() -> None:
    many = {"model": [f"m{number}" for number in range(MOST + 5)]}
    assert len(completions("model:", 6, scope=FilterScope.TRAFFIC, known=many)) == MOST
