import pytest

from sightline.evals.core.graders.fields import describe_value
from sightline.model.json import Json
from tests.grading_stage import HERE, fields


def test_a_problem_has_its_place_its_path_and_a_suggestion() -> None:
    it = fields({"vlaue": "x"})
    it.text("value", needed=True, why="Give it.")
    it.close()
    missing, unknown = it.problems
    assert (missing.place, missing.path, missing.message, missing.suggestion) == (
        HERE, "it.value", "value is missing", "Give it.",
    )  # fmt: skip
    assert (unknown.path, unknown.suggestion) == ("it.vlaue", 'Did you mean "value"?')


@pytest.mark.parametrize(
    ("read", "value", "words"),
    [
        ("text", 5, "a text is expected, not 5"),
        ("text", "  ", "a text is expected, not an empty text"),
        ("texts", "a", "a list of texts is expected, not 'a'"),
        ("texts", [], "a list of texts is expected, not an empty list"),
        ("texts", ["a", 1], "a list of texts is expected, not a list"),
        ("number", "1", "a number is expected, not '1'"),
        ("number", True, "a number is expected, not true"),
        ("number", float("nan"), "a number is expected, not nan"),
        ("number", -1, "-1 is not at least 0"),
        ("count", 1.5, "a whole number is expected, not 1.5"),
        ("flag", "yes", "true or false is expected, not 'yes'"),
        ("mapping", [], "an object is expected, not an empty list"),
        ("items", {}, "a list is expected, not an object"),
    ],
)
def test_what_is_of_another_kind_is_told(read: str, value: Json, words: str) -> None:
    it = fields({"a": value})
    assert not getattr(it, read)("a")
    assert [problem.message for problem in it.problems] == [words]
    assert not it.is_sound


@pytest.mark.parametrize(
    ("read", "nothing"),
    [("text", ""), ("texts", ()), ("number", None), ("count", None), ("flag", False), ("mapping", {}), ("items", [])],
)
def test_what_is_not_given_is_nothing_to_tell_of(read: str, nothing: Json) -> None:
    it = fields({})
    assert getattr(it, read)("a") == nothing
    assert it.is_sound


@pytest.mark.parametrize("read", ["text", "texts", "number", "items"])
def test_what_is_needed_and_missing_is_told(read: str) -> None:
    it = fields({})
    getattr(it, read)("a", needed=True)
    assert [problem.message for problem in it.problems] == ["a is missing"]


def test_values_are_read() -> None:
    it = fields({"a": "x", "b": ["x", "y"], "c": 2, "d": 2.0, "e": True, "f": {"g": 1}, "h": [1], "i": " "})
    assert (it.text("a"), it.texts("b"), it.number("c"), it.count("d")) == ("x", ("x", "y"), 2.0, 2)
    assert (it.flag("e"), it.mapping("f"), it.items("h"), it.text("i", blank=True)) == (True, {"g": 1}, [1], " ")
    assert it.problems == []


def test_an_older_name_is_read_too() -> None:
    assert fields({"old": "x"}).text("new", "old") == "x"


def test_ranges_are_told_as_they_are() -> None:
    it = fields({"a": 0, "b": 3})
    assert it.number("a", most=1, above=True) is None
    assert it.number("b", least=1, most=2) is None
    assert [each.message for each in it.problems] == [
        "0 is not above 0 and at most 1",
        "3 is not at least 1 and at most 2",
    ]


def test_words_are_those_that_are_known() -> None:
    it = fields({"a": "exat", "b": "exact"})
    assert it.word("b", words=["exact"]) == "exact"
    assert it.word("a", words=["exact", "ignore"]) == ""
    assert it.word("c", words=["exact"], otherwise="exact") == "exact"
    assert it.word("d", words=["exact"]) == ""
    assert [each.suggestion for each in it.problems] == ['Did you mean "exact"?', "One of: exact."]


def test_what_is_passed_on_is_not_told_of_unless_it_looks_like_a_slip() -> None:
    it = fields({"comand": "x", "colour": "red", "x-note": 1})
    it.raw("command")
    assert it.rest() == {"comand": "x", "colour": "red"}
    assert [(each.path, each.severity) for each in it.problems] == [("it.comand", "warning")]
    assert it.is_sound


def test_objects_within_tell_their_own_path() -> None:
    it = fields({})
    inner = it.inner({"b": 1}, "a[0]")
    inner.close()
    it.tell("", "all of it")
    assert [each.path for each in it.problems] == ["it.a[0].b", "it"]


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "nothing"), ([1], "a list"), ("x" * 50, f"'{'x' * 40}…'"), (1.5, "1.5"), (False, "false")],
)
def test_values_in_few_words(value: Json, words: str) -> None:
    assert describe_value(value) == words
