"""Stop reasons and token counts, both ways."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.anthropic.names import finish_of, stop_reason_of
from sightline.dialects.anthropic.usage import Counter, write_usage
from sightline.errors import Fault
from sightline.model.usage import Usage


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


WIRE: dict[str, Any] = {
    "input_tokens": 4,
    "cache_creation_input_tokens": 310,
    "cache_read_input_tokens": 18200,
    "output_tokens": 143,
    "output_tokens_details": {"thinking_tokens": 21},
    "cache_creation": {"ephemeral_1h_input_tokens": 310},
    "service_tier": "standard",
    "server_tool_use": None,
}


def test_cached_tokens_are_part_of_the_input():
    usage = Counter().read(WIRE, "/usage")
    assert usage == Usage(
        input_tokens=18514,
        output_tokens=143,
        cached_tokens=18200,
        cache_write_tokens=310,
        reasoning_tokens=21,
        cache_write_1h_tokens=310,
        at="/usage",
        extras={"cache_creation": {"ephemeral_1h_input_tokens": 310}, "service_tier": "standard"},
    )
    assert write_usage(usage, 0) == {key: value for key, value in WIRE.items() if value is not None}


def test_finer_counts_are_kept():
    usage = Counter().read({"output_tokens_details": {"thinking_tokens": 1, "poetry_tokens": 2}, "rhymes": 3}, "/u")
    assert usage == Usage(
        reasoning_tokens=1, at="/u", extras={"output_tokens_details": {"poetry_tokens": 2}, "rhymes": 3}
    )


def test_running_totals_replace_one_another():
    counter = Counter()
    counter.read({"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}, "/0")
    usage = counter.read({"output_tokens": 50}, "/9")
    assert usage == Usage(input_tokens=15, output_tokens=50, cached_tokens=5, at="/9")
    assert counter.read({"input_tokens": 12, "cache_read_input_tokens": 5}, "/10").input_tokens == 17


def test_a_stream_says_once_how_long_the_cache_keeps_what_was_written():
    counter = Counter()
    kept = {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200}
    counter.read({"input_tokens": 1, "cache_creation_input_tokens": 300, "cache_creation": kept}, "/0")
    usage = counter.read({"output_tokens": 50}, "/9")
    assert (usage.input_tokens, usage.cache_write_tokens, usage.cache_write_1h_tokens) == (301, 300, 200)


def test_what_was_written_is_the_sum_where_only_its_parts_are_told():
    usage = Counter().read({"input_tokens": 1, "cache_creation": {"ephemeral_5m_input_tokens": 100}}, "/u")
    assert (usage.input_tokens, usage.cache_write_tokens, usage.cache_write_1h_tokens) == (101, 100, None)


@pytest.mark.parametrize("odd", [None, "none", 5, [], {"ephemeral_1h_input_tokens": "many"}])
def test_an_odd_account_of_the_cache_is_carried_and_teaches_nothing(odd: Any):
    usage = Counter().read({"input_tokens": 1, "cache_creation": odd}, "/u")
    assert (usage.input_tokens, usage.cache_write_tokens, usage.cache_write_1h_tokens) == (1, None, None)
    assert usage.extras == ({} if odd is None else {"cache_creation": odd})


def test_nothing_counted_is_an_estimate_and_no_output():
    assert write_usage(None, 7) == {"input_tokens": 7, "output_tokens": 0}


def test_counts_of_another_provider_are_not_ours():
    assert write_usage(Usage(input_tokens=3, output_tokens=1, extras={"audio_tokens": 1}), 9) == {
        "input_tokens": 3,
        "output_tokens": 1,
    }


def test_a_count_is_a_number():
    with pytest.raises(Fault) as caught:
        Counter().read({"input_tokens": "four"}, "/usage")
    assert caught.value.pointer == "/usage/input_tokens"


@given(st.integers(0, 10**9), st.none() | st.integers(0, 10**9), st.none() | st.integers(0, 10**9))
def test_counts_come_back_exactly(fresh, written, cached):
    whole = fresh + (written or 0) + (cached or 0)
    usage = Usage(input_tokens=whole, output_tokens=1, cached_tokens=cached, cache_write_tokens=written, at="/u")
    assert Counter().read(write_usage(usage, 0), "/u") == usage
