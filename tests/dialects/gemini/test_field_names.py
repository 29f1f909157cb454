from typing import Any

from sightline.dialects.gemini.field_names import both, either, read_enum, restore_extras, spelling_of
from tests.dialects.reports import refused_at


def test_both_spellings_are_read_and_the_actual_key_is_returned():
    assert either({"functionCall": 1}, "functionCall") == 1
    assert either({"function_call": 2}, "functionCall") == 2
    assert either({"functionCall": None, "function_call": 2}, "functionCall") == 2
    assert spelling_of({"function_call": 2}, "functionCall") == "function_call"
    assert spelling_of({"functionCall": 1, "function_call": 2}, "functionCall") == "functionCall"
    assert spelling_of({}, "functionCall") == "functionCall"


def test_both_adds_the_other_spelling_where_there_is_one():
    assert both("text", "mimeType") == {"text", "mimeType", "mime_type"}


def test_extras_go_back_into_their_containers_in_our_spelling():
    document: Any = {"generationConfig": {"topP": 1}, "role": "user"}
    extras: Any = {
        "generation_config": {"speech_config": {"mime_type": 1}},
        "tool_config": {"retrieval_config": {}},
        "unknown_field": {"mime_type": None},
        "role": "function",
    }
    assert restore_extras(document, extras) == {
        "generationConfig": {"topP": 1, "speech_config": {"mime_type": 1}},
        "toolConfig": {"retrieval_config": {}},
        "unknown_field": {"mime_type": None},
        "role": "function",
    }


def test_a_null_takes_out_what_the_document_did_not_have():
    extras: Any = {"role": None, "functionCall": {"args": None}}
    assert restore_extras({"role": "user", "functionCall": {"args": {}}}, extras) == {"functionCall": {}}


def test_a_word_may_be_its_number():
    words = ("MODE_UNSPECIFIED", "AUTO", "ANY")
    assert read_enum({"mode": 2}, "mode", words, "/t") == "ANY"
    assert read_enum({"mode": "ANY"}, "mode", words, "/t") == "ANY"
    assert read_enum({}, "mode", words, "/t") is None
    assert refused_at(read_enum, {"mode": 3}, "mode", words, "/t") == "/t/mode"
