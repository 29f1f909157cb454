import pytest

from sightline.dialects.anthropic.names import finish_of, stop_reason_of


@pytest.mark.parametrize(
    ("word", "sequence", "finish", "detail"),
    [
        ("end_turn", None, "stop", None),
        ("stop_sequence", "END", "stop", None),
        ("stop_sequence", None, "stop", "stop_sequence"),
        ("max_tokens", None, "length", None),
        ("model_context_window_exceeded", None, "length", "model_context_window_exceeded"),
        ("tool_use", None, "tool_calls", None),
        ("refusal", None, "refusal", None),
        ("pause_turn", None, "pause", None),
        ("compaction", None, "pause", "compaction"),
        ("a_word_of_tomorrow", None, "stop", "a_word_of_tomorrow"),
    ],
)
def test_every_stop_reason_is_understood(word, sequence, finish, detail):
    assert finish_of(word, sequence) == (finish, detail)


@pytest.mark.parametrize("word", ["end_turn", "max_tokens", "model_context_window_exceeded", "refusal", "pause_turn"])
def test_a_stop_reason_comes_back_as_it_was(word):
    assert stop_reason_of(*finish_of(word, None), None, has_calls=False) == word


def test_tool_use_is_said_if_and_only_if_there_is_a_call():
    assert stop_reason_of("stop", None, None, has_calls=True) == "tool_use"
    assert stop_reason_of("tool_calls", None, None, has_calls=False) == "end_turn"


def test_a_stop_sequence_is_told():
    assert stop_reason_of("stop", None, "END", has_calls=False) == "stop_sequence"


def test_another_providers_word_is_not_ours():
    assert stop_reason_of("content_filter", "SAFETY", None, has_calls=False) == "refusal"


@pytest.mark.parametrize("finish", ["error", "cancelled"])
def test_a_failure_has_no_stop_reason(finish):
    assert stop_reason_of(finish, None, None, has_calls=False) is None
