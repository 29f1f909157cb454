from typing import Any

import pytest

from sightline.dialects.openai_chat import choices
from sightline.dialects.signatures import wrap
from sightline.errors import Fault
from sightline.model.events import FieldReceived, SignatureReceived, TextReceived, ThinkingReceived
from sightline.model.parts import Citation, Refusal
from sightline.model.reply import Choice, TokenLogprob

chat: Any = choices


@pytest.mark.parametrize(
    ("word", "has_calls", "has_refusal", "finish", "detail"),
    [
        ("stop", False, False, "stop", None),
        ("stop", True, False, "tool_calls", None),
        ("stop", False, True, "refusal", None),
        ("tool_calls", False, False, "stop", None),
        ("tool_calls", True, True, "tool_calls", None),
        ("function_call", True, False, "tool_calls", "function_call"),
        ("length", True, False, "length", None),
        ("content_filter", False, True, "content_filter", None),
        ("model_length", False, False, "length", "model_length"),
        ("eos", False, False, "stop", "eos"),
    ],
)
def test_a_finish_agrees_with_what_was_said(word, has_calls, has_refusal, finish, detail):
    assert chat.read_finish(word, has_calls=has_calls, has_refusal=has_refusal) == finish
    assert chat.finish_detail(word) == detail


@pytest.mark.parametrize(
    ("finish", "parts", "word"),
    [
        ("stop", (), "stop"),
        ("tool_calls", (), "tool_calls"),
        ("length", (), "length"),
        ("content_filter", (), "content_filter"),
        ("refusal", (Refusal("no"),), "stop"),
        ("refusal", (), "content_filter"),
        ("pause", (), "stop"),
        (None, (), "stop"),
    ],
)
def test_every_finish_has_a_word(finish, parts, word):
    assert chat.write_finish(Choice(finish=finish, parts=parts)) == word


def test_a_choice_has_its_number_or_its_position():
    assert chat.read_index({"index": 3}, 0, "/c") == 3
    assert chat.read_index({}, 2, "/c") == 2


@pytest.mark.parametrize("index", [-1, 128, 10**30, "x", 1.5])
def test_a_number_that_no_choice_has_is_a_fault(index):
    with pytest.raises(Fault) as caught:
        chat.read_index({"index": index}, 0, "/c")
    assert caught.value.pointer == "/c/index"


def test_content_is_a_string_or_a_list_of_words_and_reasoning():
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "h"}, {"type": "text", "text": "m"}]}
    unknown: Any = {"type": "image", "url": "x"}
    strange: Any = {"type": "thinking", "thinking": [{"type": "reference", "ids": [1]}]}
    assert chat.read_content("hi", 0, "/m") == [TextReceived(1, "hi", at="/m")]
    assert chat.read_content("", 0, "/m") == chat.read_content(None, 0, "/m") == []
    parts = [thought, {"type": "text", "text": "yes"}, unknown, strange, {"type": "thinking"}]
    assert chat.read_content(parts, 2, "/m") == [
        ThinkingReceived(0, "hm", 2, at="/m/0"),
        TextReceived(1, "yes", 2, at="/m/1/text"),
        FieldReceived("/m/2", unknown),
        FieldReceived("/m/3", strange),
        FieldReceived("/m/4", {"type": "thinking"}),
    ]


@pytest.mark.parametrize("content", [7, {"type": "text"}, ["words"]])
def test_other_content_is_a_fault(content):
    with pytest.raises(Fault):
        chat.read_content(content, 0, "/m")


def test_only_the_assistants_role_is_taken_for_granted():
    assert (
        chat.read_role({"role": "assistant"}, "/m")
        == chat.read_role({}, "/m")
        == chat.read_role({"role": None}, "/m")
        == []
    )
    assert chat.read_role({"role": "function"}, "/m") == [FieldReceived("/m/role", "function")]


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "reasoning_text", "cot_summary", "thinking"])
def test_reasoning_goes_by_many_names(key):
    assert chat.read_thinking({key: "hm"}, 1, "/m") == [ThinkingReceived(0, "hm", 1, at=f"/m/{key}")]
    assert chat.read_thinking({key: {"text": "hm"}}, 1, "/m") == [ThinkingReceived(0, "hm", 1, at=f"/m/{key}")]
    assert chat.read_thinking({key: ["odd"]}, 1, "/m") == [FieldReceived(f"/m/{key}", ["odd"])]
    assert chat.read_thinking({key: {"odd": 1}}, 1, "/m") == [FieldReceived(f"/m/{key}", {"odd": 1})]
    assert chat.read_thinking({key: ""}, 1, "/m") == chat.read_thinking({key: None}, 1, "/m") == []


def test_the_same_reasoning_under_two_names_is_said_once():
    assert len(chat.read_thinking({"reasoning": "hm", "reasoning_content": "hm"}, 0, "/m")) == 1
    assert len(chat.read_thinking({"reasoning": "hm", "reasoning_content": "well"}, 0, "/m")) == 2


def test_a_seal_is_told_with_its_maker_and_its_id():
    assert chat.read_thinking({"reasoning_opaque": "c2ln", "cot_id": "cot_1"}, 0, "/m") == [
        SignatureReceived(0, "c2ln", "openai-chat", 0, "cot_1")
    ]
    assert chat.read_seal({"cot_id": "cot_1"}, "/m") == (None, "openai-chat", "cot_1")
    assert chat.read_seal({"reasoning_opaque": wrap("sig", "anthropic", "th_1")}, "/m") == ("sig", "anthropic", "th_1")
    assert chat.read_seal({}, "/m") is None


def test_an_annotation_is_a_citation_with_its_place_in_the_text():
    inner = {"url": "https://example.org", "title": "T", "start_index": 2, "end_index": 5}
    note: Any = {"type": "url_citation", "url_citation": inner}
    [event] = chat.read_citations([note], 0, "/a")
    assert event.citation == Citation(url="https://example.org", title="T", start=2, end=5, value=note, at="/a/0")
    assert chat.write_citation(event.citation, 10)["url_citation"]["start_index"] == 12


def test_annotations_of_other_kinds_are_kept_as_they_are():
    [event] = chat.read_citations([{"type": "file_citation", "url_citation": {"url": "x"}}], 0, "/a")
    assert (event.citation.url, event.citation.start) == ("", None)
    assert chat.write_citation(event.citation, 0) is None
    odd: Any = {"CodeVulnerability": [1]}
    assert chat.read_citations(odd, 0, "/a") == [FieldReceived("/a", odd)]
    assert chat.read_citations(None, 0, "/a") == []


def test_logprobs_survive_reading_and_writing():
    token = {"token": "é", "logprob": -1, "bytes": [195, 169], "top_logprobs": [{"token": "e", "logprob": -2.5}]}
    [event] = chat.read_logprobs({"content": [token], "refusal": [{"token": "no", "logprob": -0.5}]}, 1, "/l")
    assert (event.choice, event.at) == (1, "/l")
    assert event.tokens == (
        TokenLogprob("é", -1.0, (195, 169), (TokenLogprob("e", -2.5),)),
        TokenLogprob("no", -0.5),
    )
    assert chat.write_token(event.tokens[0]) == {
        "token": "é",
        "logprob": -1.0,
        "bytes": [195, 169],
        "top_logprobs": [{"token": "e", "logprob": -2.5, "bytes": None}],
    }


def test_a_logprob_that_no_double_holds_is_none():
    for odd in (-(10**400), "x"):
        [event] = chat.read_logprobs({"content": [{"token": "a", "logprob": odd}]}, 0, "/l")
        assert event.tokens[0].logprob == 0.0


def test_logprobs_of_another_form_are_told_apart():
    assert chat.read_logprobs(None, 0, "/l") == chat.read_logprobs([], 0, "/l") == []
    assert chat.read_logprobs([-0.5], 0, "/l") == [FieldReceived("/l", [-0.5])]
    older = chat.read_logprobs({"content": None, "tokens": ["a"]}, 0, "/l")
    assert older[1:] == [FieldReceived("/l/tokens", ["a"])]
