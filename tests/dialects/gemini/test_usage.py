import pytest

from sightline.dialects.gemini.reply_fields import read_usage, write_usage
from sightline.errors import Fault
from sightline.model.report import Report
from sightline.model.usage import Usage

COUNTS = {
    "promptTokenCount": 100,
    "toolUsePromptTokenCount": 15,
    "cachedContentTokenCount": 60,
    "candidatesTokenCount": 20,
    "thoughtsTokenCount": 7,
    "totalTokenCount": 142,
}


def test_thoughts_are_part_of_the_output_and_tool_use_of_the_input():
    usage = read_usage(COUNTS | {"promptTokensDetails": []}, "/u")
    assert usage == Usage(
        input_tokens=115,
        output_tokens=27,
        cached_tokens=60,
        reasoning_tokens=7,
        at="/u",
        extras={"toolUsePromptTokenCount": 15, "promptTokensDetails": []},
    )
    assert write_usage(usage, Report()) == COUNTS


def test_what_is_not_counted_stays_unknown():
    assert read_usage({"promptTokenCount": 3, "totalTokenCount": 3}, "") == Usage(input_tokens=3)
    assert read_usage({"thoughts_token_count": 3}, "") == Usage(output_tokens=3, reasoning_tokens=3)
    assert write_usage(Usage(), Report()) == {}
    assert write_usage(Usage(output_tokens=3), Report()) == {"candidatesTokenCount": 3, "totalTokenCount": 3}
    assert write_usage(Usage(input_tokens=3), Report()) == {"promptTokenCount": 3, "totalTokenCount": 3}


def test_tokens_written_to_a_cache_are_lost():
    report = Report()
    write_usage(Usage(input_tokens=9, cache_write_tokens=4, at="/usage"), report)
    assert [(loss.pointer, loss.severity) for loss in report.losses] == [("/usage", "identity")]


def test_a_count_is_a_whole_number():
    with pytest.raises(Fault) as caught:
        read_usage({"prompt_token_count": "three"}, "/u")
    assert caught.value.pointer == "/u/prompt_token_count"
