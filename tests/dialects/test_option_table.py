import pytest

from sightline.dialects.option_table import KINDS, options_of, read_options, set_path, top_level_keys, write_options
from sightline.errors import Fault
from sightline.model.json import Json, JsonObject
from sightline.model.options import Options
from sightline.model.report import Report

TABLE = {
    "max_tokens": (("config", "maxTokens"), ("max_tokens",)),
    "stop": (("stop",),),
    "temperature": (("temperature",),),
    "metadata": (("metadata",),),
    "safety_settings": (("safety",),),
    "store": (("store",),),
    "user": (("user",),),
}


def test_options_are_read_from_their_places() -> None:
    found, places = read_options({"config": {"maxTokens": 5}, "stop": ["a", "b"], "temperature": 1}, TABLE)
    assert found == {"max_tokens": 5, "stop": ("a", "b"), "temperature": 1}
    assert places == {"max_tokens": "/config/maxTokens", "stop": "/stop", "temperature": "/temperature"}
    assert options_of(found, places) == Options(max_tokens=5, stop=("a", "b"), temperature=1, places=places)


def test_of_two_spellings_the_first_is_taken() -> None:
    found, _ = read_options({"config": {"maxTokens": 5}, "max_tokens": 9}, TABLE)
    assert found == {"max_tokens": 5}
    assert read_options({"config": 3, "max_tokens": 9}, TABLE)[0] == {"max_tokens": 9}


def test_null_is_unset_and_one_string_is_a_list_of_one() -> None:
    assert read_options({"stop": None, "temperature": None}, TABLE)[0] == {}
    assert read_options({"stop": "END"}, TABLE)[0] == {"stop": ("END",)}


@pytest.mark.parametrize(
    ("name", "value"),
    [("stop", [1]), ("stop", 5), ("temperature", True), ("metadata", []), ("safety", {}), ("store", 1), ("user", 1)],
)
def test_a_wrong_type_names_the_place(name: str, value: Json) -> None:
    with pytest.raises(Fault, match=f"^/{name}: expected"):
        read_options({name: value}, TABLE)


def test_options_are_written_to_their_first_place_and_the_rest_is_lost() -> None:
    report = Report()
    document: JsonObject = {}
    options = Options(max_tokens=5, stop=("a",), seed=7, cache_key="k", top_p=0.5, places={"seed": "/from/seed"})
    write_options(options, TABLE, document, report, dialect="d", same=False, skip=frozenset({"top_p"}))
    assert document == {"config": {"maxTokens": 5}, "stop": ["a"]}
    assert {loss.pointer: loss.severity for loss in report.losses} == {"/from/seed": "option", "/cache_key": "identity"}


def test_a_conversation_that_the_provider_keeps_is_content() -> None:
    report = Report()
    options = Options(previous_response_id="resp_1")
    write_options(options, TABLE, {}, report, dialect="d", same=False, skip=frozenset())
    assert [(loss.pointer, loss.severity) for loss in report.losses] == [("/previous_response_id", "content")]


def test_in_the_same_dialect_an_option_goes_back_where_it_stood() -> None:
    document: JsonObject = {}
    options = Options(max_tokens=5, stop=("a",), places={"max_tokens": "/max_tokens"})
    write_options(options, TABLE, document, Report(), dialect="d", same=True, skip=frozenset())
    assert document == {"max_tokens": 5, "stop": ["a"]}


def test_a_path_never_runs_through_a_scalar() -> None:
    with pytest.raises(Fault, match="/a/b: expected an object"):
        set_path({"a": 1}, ("a", "b"), 2)


def test_top_level_keys_are_those_that_are_read_whole() -> None:
    assert top_level_keys(TABLE) == {"max_tokens", "stop", "temperature", "metadata", "safety", "store", "user"}


def test_every_plain_option_has_a_kind() -> None:
    assert set(KINDS) | {"format", "reasoning", "places"} == set(Options.__struct_fields__)
