import pytest

from sightline.tokens.estimate import NOTHING
from sightline.tokens.text_count import ENGLISH, WEIGHTS, count_by_classes, features
from sightline.tokens.tokenizer import count_tokens
from tests.contract.sample_texts import FIT, WRITTEN

PROSE = WRITTEN["english"][0] + " " + WRITTEN["technical"][0]


def test_classes_are_read_off_the_bytes() -> None:
    found = features("Ab1 c++\n  é Ж 漢 😀")
    seen = {name: times for name, times in found.items() if times}
    assert seen == {
        "letter": 3,
        "capital": 1,
        "switch": 1,
        "digit": 1,
        "mark": 2,
        "run": 1,
        "line": 1,
        "indent": 1,
        "accented": 1,
        "cyrillic": 1,
        "han": 1,
        "pictograph": 1,
    }


def test_plain_ascii_is_not_searched_for_other_scripts() -> None:
    assert "han" not in features("plain")
    assert set(features("ünplain")) == set(WEIGHTS)


def test_the_three_weights_of_a_class_are_in_order() -> None:
    assert all(0 <= low <= likely <= high for low, likely, high in WEIGHTS.values())


def test_nothing_is_nothing_and_anything_is_a_token() -> None:
    assert count_by_classes("") == NOTHING
    estimate = count_by_classes(" ")
    assert (estimate.low, estimate.tokens) == (1, 1)


def test_english_prose_has_the_characters_for_a_token_that_it_is_said_to_have() -> None:
    assert len(PROSE) / count_by_classes(PROSE).tokens == pytest.approx(ENGLISH, rel=0.05)


def test_a_model_with_fewer_characters_for_a_token_has_more_tokens() -> None:
    usual, dense = count_by_classes(PROSE), count_by_classes(PROSE, chars_per_token=ENGLISH / 2)
    assert dense.tokens == pytest.approx(2 * usual.tokens, abs=1)
    assert len(PROSE) / count_by_classes(PROSE, chars_per_token=3.5).tokens == pytest.approx(3.5, rel=0.05)


def test_scripts_and_noise_are_told_apart_from_prose() -> None:
    for name in ("chinese", "base64", "greek", "digits"):
        truth = count_tokens("qwen3", FIT[name])
        plain, classes = len(FIT[name]) / 3.5, count_by_classes(FIT[name])
        assert abs(classes.tokens - truth) < abs(plain - truth), name
        assert classes.low <= truth <= classes.high


def test_a_lone_surrogate_is_no_obstacle() -> None:
    assert count_by_classes("a\ud800b").tokens >= 1
