import pytest

from sightline.dialects.openai_responses.usage import read_usage, write_usage
from sightline.errors import Fault
from sightline.model.report import Report
from sightline.model.usage import Usage

BODY = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 8},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 12},
    "total_tokens": 120,
}


def test_counts_go_both_ways_without_counting_anything_twice():
    usage = read_usage(BODY, "/usage")
    assert (usage.input_tokens, usage.cached_tokens, usage.cache_write_tokens) == (100, 64, 8)
    assert (usage.output_tokens, usage.reasoning_tokens) == (20, 12)
    report = Report()
    assert write_usage(usage, report) == BODY
    assert not report.additions


def test_finer_counts_are_kept_unless_they_count_nothing():
    finer = {**BODY, "output_tokens_details": {"reasoning_tokens": 1, "audio_tokens": 0, "image_tokens": 3}, "cost": 1}
    assert read_usage(finer, "/usage").extras == {"output_tokens_details": {"image_tokens": 3}, "cost": 1}


def test_every_count_must_stand_in_a_reply_and_those_that_nobody_told_are_listed():
    report = Report()
    assert write_usage(Usage(output_tokens=2), report) == {
        "input_tokens": 0,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 2,
    }
    assert [(addition.pointer, addition.severity) for addition in report.additions] == [
        ("/usage/input_tokens", "identity"),
        ("/usage/input_tokens_details/cached_tokens", "identity"),
        ("/usage/input_tokens_details/cache_write_tokens", "identity"),
        ("/usage/output_tokens_details/reasoning_tokens", "identity"),
    ]


def test_a_count_that_is_no_number_is_refused():
    with pytest.raises(Fault) as caught:
        read_usage({"input_tokens": "many"}, "/usage")
    assert caught.value.pointer == "/usage/input_tokens"
