from sightline.dialects.openai_chat import DIALECT, names
from sightline.dialects.registry import dialect


def test_the_name_is_the_one_under_which_the_registry_knows_the_dialect():
    assert dialect(names.NAME) is DIALECT
    assert names.NAME in names.OPENAI


def test_every_field_of_reasoning_is_known_and_the_usual_one_comes_first():
    assert names.THINKING_TEXT[0] == "reasoning_content"
    assert {*names.THINKING_TEXT, names.SEAL, names.SEAL_ID} == names.THINKING


def test_reasoning_comes_before_words_and_words_before_calls():
    order = [names.THINKING_PART, names.TEXT_PART, names.REFUSAL_PART, names.AUDIO_PART, names.FIRST_CALL]
    assert order == sorted(set(order))
