import datetime
from typing import Annotated, Literal

import msgspec
import pytest

from sightline.agent.tools.functions import convert_arguments


def plan(
    day: datetime.date,
    tags: set[str],
    how: Annotated[Literal["a", "b"], "the way"] = "a",
    loose=None,
    **more: int,
) -> None: ...


def test_what_json_spells_becomes_what_the_hints_say() -> None:
    given = {"day": "2026-02-03", "tags": ["x", "x"], "how": "b", "loose": {"any": 1}, "extra": 7}
    assert convert_arguments(plan, given) == {
        "day": datetime.date(2026, 2, 3),
        "tags": {"x"},
        "how": "b",
        "loose": {"any": 1},
        "extra": 7,
    }


def test_what_does_not_fit_is_an_error() -> None:
    with pytest.raises(msgspec.ValidationError):
        convert_arguments(plan, {"day": "tomorrow"})


def test_a_text_is_the_only_argument() -> None:
    def query(text: str) -> None: ...

    assert convert_arguments(query, "select 1") == {"text": "select 1"}
