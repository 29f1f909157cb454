import pytest

from sightline.chat.core.imports.loose_json import member, members, moment, text
from sightline.model.json import Json


def test_what_is_not_as_expected_is_not_there() -> None:
    holder: dict[str, Json] = {"a": "x", "b": 1, "c": {"d": 2}, "e": [{"f": 3}, 4]}
    assert (text(holder, "a"), text(holder, "b"), text(holder, "z")) == ("x", "", "")
    assert (member(holder, "c"), member(holder, "a")) == ({"d": 2}, {})
    assert (members(holder["e"]), members(holder["a"])) == ([{"f": 3}], [])


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (1_700_000_000, 1_700_000_000.0),
        (1_700_000_000.5, 1_700_000_000.5),
        (1_700_000_000_500, 1_700_000_000.5),
        ("2023-11-14T22:13:20Z", 1_700_000_000.0),
        ("2023-11-14T22:13:20.500+00:00", 1_700_000_000.5),
        ("2023-11-14T22:13:20", 0.0),
        ("yesterday", 0.0),
        ("0001-01-01T00:00:00Z", 0.0),
        (None, 0.0),
        (True, 0.0),
        (-5, 0.0),
        (10**13, 10.0**10),
        (9 * 10**13, 0.0),
        (10**400, 0.0),
        ("0001-01-01T00:00:00+14:00", 0.0),
    ],
)
def test_times_are_read_however_they_are_written(value: Json, seconds: float) -> None:
    assert moment(value) == seconds
