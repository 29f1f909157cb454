import pytest

from sightline.dialects.registry import NAMES, dialect
from sightline.errors import Code, Fault


def test_the_five_dialects_are_here() -> None:
    assert set(NAMES) == {"openai-chat", "openai-responses", "anthropic", "gemini", "raw"}


def test_a_dialect_is_loaded_once() -> None:
    assert dialect("openai-chat") is dialect("openai-chat")
    assert dialect.__wrapped__("openai-chat") is dialect("openai-chat")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(Fault, match="unknown dialect 'cohere'") as caught:
        dialect("cohere")
    assert caught.value.code == Code.USAGE
    assert "gemini" in caught.value.hint
