from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.openai_chat.usage import read_usage, write_usage
from sightline.errors import Fault
from sightline.model.report import Report
from sightline.model.usage import Usage

COUNTS = st.none() | st.integers(0, 10**9)


def test_the_whole_prompt_and_the_whole_output_are_what_the_wire_already_counts():
    details: Any = {"cached_tokens": 60, "audio_tokens": 0}
    usage = read_usage({"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": details}, "/usage")
    assert usage == Usage(input_tokens=100, output_tokens=20, cached_tokens=60, at="/usage")


def test_finer_counts_are_kept_where_they_count_something():
    usage = read_usage(
        {
            "prompt_tokens": 5,
            "completion_tokens": 6,
            "total_tokens": 11,
            "cost": 0.02,
            "completion_tokens_details": {"audio_tokens": 3, "rejected_prediction_tokens": 0, "reasoning_tokens": 2},
        },
        "/usage",
    )
    assert usage.reasoning_tokens == 2
    assert usage.extras == {"cost": 0.02, "completion_tokens_details": {"audio_tokens": 3}}


def test_reasoning_that_is_counted_beside_the_output_becomes_part_of_it():
    details: Any = {"completion_tokens_details": {"reasoning_tokens": 40}}
    usage = read_usage({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 55, **details}, "")
    assert (usage.output_tokens, usage.reasoning_tokens, usage.extras) == (45, 40, {})


def test_a_total_that_is_no_sum_is_kept_as_the_provider_told_it():
    assert read_usage({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 9}, "").extras == {"total_tokens": 9}
    assert read_usage({"total_tokens": 9}, "").extras == {"total_tokens": 9}


def test_a_count_that_is_no_number_is_a_fault_with_its_place():
    with pytest.raises(Fault) as caught:
        read_usage({"prompt_tokens_details": {"cached_tokens": "many"}}, "/usage")
    assert caught.value.pointer == "/usage/prompt_tokens_details/cached_tokens"


@given(COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
def test_counts_survive_writing_and_reading(said, written, cached, stored, thought):
    usage = Usage(
        input_tokens=said,
        output_tokens=written,
        cached_tokens=cached,
        cache_write_tokens=stored,
        reasoning_tokens=thought,
    )
    report = Report()
    again = read_usage(write_usage(usage, report), "")
    assert (again.input_tokens, again.output_tokens) == (said or 0, written or 0)
    assert (again.cached_tokens, again.cache_write_tokens, again.reasoning_tokens) == (cached, stored, thought)
    assert [addition.pointer for addition in report.additions] == [
        f"/usage/{key}" for key, count in (("prompt_tokens", said), ("completion_tokens", written)) if count is None
    ]
