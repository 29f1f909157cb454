import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.evals.core.graders.tool_calls import fits
from sightline.model.json import Json, JsonObject

OBJECTS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 2))


@pytest.mark.parametrize(
    ("expected", "actual", "mode", "held"),
    [
        ({"a": 1}, {"a": 2}, "ignore", True),
        ({"a": 1}, "a=1", "exact", False),
        ({"a": 1}, {"a": 1.0}, "exact", True),
        ({"a": 1}, {"a": 1, "b": 2}, "exact", False),
        ({"a": 1}, {"a": 1, "b": 2}, "superset", True),
        ({"a": 1, "b": 2}, {"a": 1}, "superset", False),
        ({"a": 1, "b": 2}, {"a": 1}, "subset", True),
        ({"a": 1}, {"a": 1, "b": 2}, "subset", False),
        ({"a": {"b": 1}, "c": 2}, {"a": {"b": 1}, "c": 9}, ("a.b", "z"), True),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ("a.b",), False),
        ({"a": 1}, {}, ("a",), False),
    ],
)
def test_arguments_fit_in_the_sense_of_the_mode(expected: JsonObject, actual: Json, mode: object, held: bool) -> None:
    assert fits(expected, actual, mode) is held


@given(OBJECTS, OBJECTS)
def test_exact_is_subset_and_superset_together(expected: JsonObject, actual: JsonObject) -> None:
    assert fits(expected, actual, "exact") is (fits(expected, actual, "subset") and fits(expected, actual, "superset"))
    assert fits(expected, actual, "subset") is fits(actual, expected, "superset")
