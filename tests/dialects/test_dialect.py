import pytest

from sightline.dialects.dialect import Client, Problem, Target
from sightline.dialects.registry import NAMES, dialect


def test_settings_have_defaults_that_add_nothing() -> None:
    assert Target().system == "in_place"
    assert Target().thinking_field == ""
    assert Client().include_usage
    assert Problem("/a", "no").severity == "error"


@pytest.mark.parametrize("name", NAMES)
def test_every_dialect_goes_by_its_own_name(name: str) -> None:
    assert dialect(name).name == name


def test_one_dialect_says_its_model_in_the_url() -> None:
    assert [name for name in NAMES if dialect(name).model_in_path] == ["gemini"]
