from collections.abc import Callable

import pytest

from sightline.dialects.fields import (
    any_number,
    as_list,
    as_object,
    as_str,
    compact,
    merge,
    object_at,
    objects_in,
    opt_bool,
    opt_int,
    opt_list,
    opt_object,
    opt_str,
    rest,
    str_of,
    unknown,
    whole_number,
)
from sightline.errors import Fault
from sightline.model.json import Json

HOLDER = {"s": "x", "i": 1, "b": True, "o": {"a": 1}, "l": [1], "n": None}


def test_values_of_the_right_shape_are_given() -> None:
    assert as_object({"a": 1}, "") == {"a": 1}
    assert as_list([1], "") == [1]
    assert as_str("x", "") == "x"
    assert str_of(HOLDER, "s", "") == "x"
    assert opt_str(HOLDER, "s", "") == "x"
    assert opt_int(HOLDER, "i", "") == 1
    assert opt_bool(HOLDER, "b", "") is True
    assert opt_object(HOLDER, "o", "") == {"a": 1}
    assert opt_list(HOLDER, "l", "") == [1]


@pytest.mark.parametrize("read", [opt_str, opt_int, opt_bool, opt_object])
@pytest.mark.parametrize("key", ["n", "missing"])
def test_null_and_absence_are_one(read: Callable[..., object], key: str) -> None:
    assert read(HOLDER, key, "") is None
    assert opt_list(HOLDER, key, "") == []


@pytest.mark.parametrize(
    ("read", "key", "expected"),
    [
        (str_of, "i", "a string, found a number"),
        (str_of, "n", "a string, found null"),
        (opt_str, "o", "a string, found an object"),
        (opt_int, "b", "a whole number, found a boolean"),
        (opt_bool, "i", "a boolean, found a number"),
        (opt_object, "l", "an object, found a list"),
        (opt_list, "s", "a list, found a string"),
    ],
)
def test_a_wrong_shape_names_the_place(read: Callable[..., object], key: str, expected: str) -> None:
    with pytest.raises(Fault, match=f"/at/{key}: expected {expected}") as caught:
        read(HOLDER, key, "/at")
    assert caught.value.pointer == f"/at/{key}"


@pytest.mark.parametrize(("read", "value"), [(as_object, []), (as_list, {}), (as_str, 1.5)])
def test_a_wrong_document_is_refused(read: Callable[[Json, str], object], value: Json) -> None:
    with pytest.raises(Fault, match="the document: expected"):
        read(value, "")


def test_an_unknown_word_lists_the_known_ones() -> None:
    fault = unknown("narrator", "/role", "role", ("user", "assistant"))
    assert fault.message == "/role: unknown role 'narrator'"
    assert fault.hint == "Known here: assistant, user."


def test_the_rest_is_what_is_not_known() -> None:
    assert rest({"a": 1, "b": 2}, frozenset({"a"})) == {"b": 2}
    assert rest({"a": 1}, frozenset({"a", "b"})) == {}


def test_compact_leaves_out_what_is_none() -> None:
    assert compact({"a": None, "b": 0, "c": ""}) == {"b": 0, "c": ""}


def test_merge_puts_unknown_fields_back_and_never_overwrites() -> None:
    merged = merge({"a": 1, "inner": {"b": 2}}, {"a": 9, "c": 3, "inner": {"b": 9, "d": 4}})
    assert merged == {"a": 1, "inner": {"b": 2, "d": 4}, "c": 3}


@pytest.mark.parametrize("value", [64, 64.0, "64", "64.0", "6.4e1", "6.4E+1", " 64 "])
def test_a_whole_number_may_be_spelled_as_some_json_writers_do(value: Json) -> None:
    assert whole_number(value) == 64
    assert opt_int({"n": value}, "n", "") == 64


@pytest.mark.parametrize("value", [64.5, "64.5", "", "x", "1_000", "0x40", True, None, [64], "1e999", 1e300, "nan"])
def test_what_is_no_whole_number_is_none(value: Json) -> None:
    assert whole_number(value) is None


@pytest.mark.parametrize(("value", "number"), [(0.5, 0.5), ("0.5", 0.5), ("2", 2), (3, 3), ("-1e-1", -0.1)])
def test_a_number_may_be_a_string(value: Json, number: float) -> None:
    assert any_number(value) == number
    assert type(any_number(value)) is type(number)


@pytest.mark.parametrize("value", ["", "x", True, None, "inf", "1e999"])
def test_what_is_no_number_is_none(value: Json) -> None:
    assert any_number(value) is None


def test_objects_are_found_where_they_are_and_nothing_is_demanded():
    assert objects_in([{"a": 1}, 7, {}]) == [(0, {"a": 1}), (2, {})]
    assert objects_in({"a": 1}) == objects_in(None) == []
    document = {"a": {"b": {"c": 1}}}
    assert object_at(document, "a", "b") == {"c": 1}
    assert object_at(document) is document
    assert object_at(document, "a", "b", "c") == object_at(document, "x", "y") == object_at(7, "a") == {}
