import pytest

from sightline.evals.core.graders.expectation import ABSENT, alike, describe_json, value_at
from sightline.model.json import Json


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (0, False, False),
        (None, None, True),
        ({"a": [1, {"b": 2}]}, {"a": [1.0, {"b": 2}]}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1}, {"b": 1}, False),
        ([1, 2], [1], False),
        ([True], [1], False),
        ("1", 1, False),
        ({}, [], False),
    ],
)
def test_values_are_alike_as_json_has_it(one: Json, other: Json, same: bool) -> None:
    assert alike(one, other) is same


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b[1].c", 3),
        ("a.b[0]", None),
        ("a.b.1.c", 3),
        ("a.0", "zero"),
        ("a.b[2]", ABSENT),
        ("a.b.x", ABSENT),
        ("a.b[1].c.d", ABSENT),
        ("x", ABSENT),
    ],
)
def test_a_path_leads_to_a_value_or_nowhere(path: str, value: object) -> None:
    assert value_at({"a": {"b": [None, {"c": 3}], "0": "zero"}}, path) == value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "nothing"),
        ({}, "an object"),
        ([1], "a list"),
        ([], "an empty list"),
        ("x" * 50, f"'{'x' * 40}…'"),
        (" ", "an empty text"),
        (1.5, "1.5"),
        (False, "false"),
    ],
)
def test_values_in_few_words(value: Json, words: str) -> None:
    assert describe_json(value) == words
