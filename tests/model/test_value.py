import pytest

from sightline.model.value import Value


def test_a_value_knows_its_place_and_what_stood_beside_it() -> None:
    value = Value(at="/messages/0", extras={"x": 1})
    assert (value.at, value.extras) == ("/messages/0", {"x": 1})


def test_values_do_not_share_their_extras() -> None:
    first, second = Value(), Value()
    first.extras["x"] = 1
    assert second.extras == {}


def test_a_value_is_frozen() -> None:
    with pytest.raises(AttributeError):
        Value().at = "/x"  # type: ignore[misc] # that it is refused is the point
