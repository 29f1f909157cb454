import enum
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import pytest

from sightline.agent.core.arguments import definition_of
from sightline.agent.core.tool import Definition, definition_problems
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject
from sightline.model.request import Grammar


class Unit(enum.Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


@dataclass
class Place:
    city: str
    lat: float | None = None


def schema_of(function: Callable[..., object]) -> JsonObject:
    definition = definition_of(function)
    assert definition_problems(definition) == []
    assert definition.schema is not None
    return definition.schema


def test_hints_become_the_schema_and_the_docstring_its_words() -> None:
    def weather(city: str, days: int = 3, unit: Literal["c", "f"] | None = None) -> str:
        """Look up the weather.

        It may be wrong.

        Args:
            city: Where to look,
                with the country.
            days (int): How far ahead.

        Returns:
            Words.
        """
        return city

    definition = definition_of(weather, is_parallel=True)
    assert (definition.name, definition.description, definition.is_parallel) == (
        "weather",
        "Look up the weather.\n\nIt may be wrong.",
        True,
    )
    assert definition.schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where to look, with the country."},
            "days": {"type": "integer", "description": "How far ahead.", "default": 3},
            "unit": {"anyOf": [{"enum": ["c", "f"]}, {"type": "null"}], "default": None},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


async def fetch(url: Annotated[str, "The address."], tries: Annotated[int, msgspec.Meta(ge=1)] = 1) -> bytes:
    """Fetch it.

    :param url: Not these words.
    :param int tries: How often,
        at most.
    :returns: Bytes.
    """
    raise NotImplementedError


def test_coroutines_and_annotations() -> None:
    properties = schema_of(fetch)["properties"]
    assert properties == {
        "url": {"type": "string", "description": "The address."},
        "tries": {"type": "integer", "minimum": 1, "description": "How often, at most.", "default": 1},
    }


def test_the_third_style_of_docstrings() -> None:
    def add(a: int, b: int) -> int:
        """Add.

        Parameters
        ----------
        a : int
            The first.
        b
            The second,
            on two lines.

        Returns
        -------
        int
        """
        return a + b

    definition = definition_of(add)
    assert definition.description == "Add."
    assert schema_of(add)["properties"] == {
        "a": {"type": "integer", "description": "The first."},
        "b": {"type": "integer", "description": "The second, on two lines."},
    }


def test_structured_types_are_defined_once_and_referred_to() -> None:
    def plan(places: list[Place], home: Place, unit: Unit = Unit.CELSIUS) -> None:
        raise NotImplementedError

    schema = schema_of(plan)
    assert isinstance(schema["$defs"], dict)
    assert set(schema["$defs"]) == {"Place", "Unit"}
    assert schema["properties"]["home"] == {"$ref": "#/$defs/Place"}
    assert schema["properties"]["unit"] == {"$ref": "#/$defs/Unit", "default": "c"}


def test_no_hints_and_no_docstring_leave_everything_open() -> None:
    def anything(a, b: Any = object(), **others):  # noqa: B008
        raise NotImplementedError

    definition = definition_of(anything)
    assert definition.description == ""
    assert definition.schema == {
        "type": "object",
        "properties": {"a": {}, "b": {}},
        "required": ["a"],
        "additionalProperties": True,
    }


def test_a_default_that_json_does_not_have_is_left_out() -> None:
    def wait(most: float = math.inf, least: float = 0.5) -> None: ...

    assert schema_of(wait)["properties"] == {"most": {"type": "number"}, "least": {"type": "number", "default": 0.5}}


def test_a_function_without_parameters() -> None:
    def now() -> str:
        """Tell the time."""
        return ""

    assert schema_of(now) == {"type": "object", "properties": {}, "additionalProperties": False}


def positional(a: int, /) -> None:
    raise NotImplementedError


def several(*a: int) -> None:
    raise NotImplementedError


def unknown(a: "Nowhere") -> None:  # noqa: F821
    raise NotImplementedError


def misspelt(a: "math.integer") -> None:
    raise NotImplementedError


def unfinished(a: "list[") -> None:  # noqa: F722
    raise NotImplementedError


def called(b: int, a: Callable[[], None]) -> None:
    raise NotImplementedError


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (positional, "'a' cannot be given by name"),
        (several, "'a' cannot be given by name"),
        (unknown, "a type hint cannot be read"),
        (misspelt, "a type hint cannot be read: module 'math' has no attribute 'integer'"),
        (unfinished, "a type hint cannot be read"),
        (max, "its parameters are not known"),
        (called, r"a type hint has no JSON Schema \(a: "),
        (lambda: None, "it has no name"),
        (type("Silent", (), {"__call__": lambda self: None})(), "this value cannot be a tool"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_a_way_out(function: Callable[..., object], words: str) -> None:
    with pytest.raises(Fault, match=words) as caught:
        definition_of(function)
    assert caught.value.code is Code.CONFIG
    assert caught.value.hint


def test_words_before_any_parameter_belong_to_none() -> None:
    def odd(a: int) -> None:
        """Odd.

        Args:
            There are arguments.
            a: This one.
        """

    assert schema_of(odd)["properties"] == {"a": {"type": "integer", "description": "This one."}}


# --- attributes that say more ---------------------------------------------------------------------


def test_a_function_for_free_text_has_no_schema() -> None:
    def query(text: str) -> str:
        """Ask the database.

        Args:
            text: a query
        """
        return text

    query.freeform = True
    assert definition_of(query) == Definition(name="query", description="Ask the database.", kind="custom")
    query.freeform = {"syntax": "lark", "definition": "start: /x/"}
    assert definition_of(query).grammar == Grammar("lark", "start: /x/")


def test_free_text_is_one_text_with_a_grammar_that_can_be_read() -> None:
    def two(a: str, b: str) -> None: ...
    def number(a: int) -> None: ...
    def odd(a: str) -> None: ...

    for function, freeform, words in (
        (two, True, "takes one text"),
        (number, True, "takes one text"),
        (odd, {"syntax": "lark"}, "its grammar cannot be read"),
        (odd, "lark", "its grammar cannot be read"),
    ):
        function.freeform = freeform
        with pytest.raises(Fault, match=words):
            definition_of(function)


def test_a_function_can_be_strict() -> None:
    def add(a: int, b: int = 0) -> int:
        return a + b

    assert definition_of(add).strict is None
    add.strict = True
    assert definition_of(add).strict is True
