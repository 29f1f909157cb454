"""Why a candidate ended, token counts and probabilities, both ways."""

from typing import Any

import pytest

from sightline.dialects.gemini.reply_fields import (
    FAILURES,
    FILTERS,
    failure,
    read_citation,
    read_finish,
    read_grounding,
    read_logprobs,
    read_usage,
    write_citations,
    write_finish,
    write_logprobs,
    write_usage,
)
from sightline.errors import Code
from sightline.model.json import JsonObject
from sightline.model.parts import Citation
from sightline.model.reply import Choice, TokenLogprob, Usage
from sightline.model.report import Report
from tests.dialects.reports import losses, refused_at


@pytest.mark.parametrize(
    ("word", "finish", "detail"),
    [
        ("STOP", "stop", None),
        ("MAX_TOKENS", "length", None),
        ("CONTINUATION", "pause", "CONTINUATION"),
        ("SAFETY", "content_filter", "SAFETY"),
        ("SPII", "content_filter", "SPII"),
        ("SOMETHING_NEW", "content_filter", "SOMETHING_NEW"),
    ],
)
def test_every_reason_is_read(word, finish, detail):
    assert read_finish(word) == (finish, detail)


@pytest.mark.parametrize("word", sorted(FILTERS))
def test_a_filter_is_written_by_its_own_word(word):
    report = Report()
    assert write_finish(Choice(finish="content_filter", detail=word), "content_filter", report) == word
    assert report.losses == ()


@pytest.mark.parametrize(
    ("finish", "detail", "stop", "word", "lost"),
    [
        ("stop", None, None, "STOP", []),
        ("tool_calls", None, None, "STOP", []),
        ("length", None, None, "MAX_TOKENS", []),
        ("content_filter", None, None, "SAFETY", []),
        ("content_filter", "JAILBREAK", None, "SAFETY", ["identity"]),
        ("refusal", None, None, "SAFETY", ["option"]),
        ("pause", None, None, "STOP", ["option"]),
        ("pause", "CONTINUATION", None, "CONTINUATION", []),
        ("stop", None, "END", "STOP", ["identity"]),
        ("error", None, None, "OTHER", []),
    ],
)
def test_every_finish_is_written(finish, detail, stop, word, lost):
    report = Report()
    choice = Choice(finish=finish, detail=detail, stop_sequence=stop, finish_at="/f", stop_at="/s" if stop else "")
    assert write_finish(choice, finish, report) == word
    assert losses(report) == [("/s" if stop else "/f", severity) for severity in lost]


def test_a_failure_keeps_the_words_of_the_provider():
    told = failure("MALFORMED_FUNCTION_CALL", "bad call", "/f")
    assert told.code is Code.UPSTREAM_ERROR
    assert told.message == "MALFORMED_FUNCTION_CALL: bad call"
    assert told.pointer == "/f"
    assert failure("OTHER", None, "/f").message == "the model stopped with OTHER"
    assert not FAILURES & FILTERS


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
    assert losses(report) == [("/usage", "identity")]


def test_a_count_is_a_whole_number():
    assert refused_at(read_usage, {"prompt_token_count": "three"}, "/u") == "/u/prompt_token_count"


RESULT: Any = {
    "chosenCandidates": [{"token": "a", "logProbability": -0.5}, {"token": "b", "logProbability": -1.0}],
    "topCandidates": [
        {"candidates": [{"token": "a", "logProbability": -0.5}, {"token": "c", "logProbability": -2.0}]},
        {"candidates": []},
    ],
}
TOKENS = (TokenLogprob("a", -0.5, top=(TokenLogprob("a", -0.5), TokenLogprob("c", -2.0))), TokenLogprob("b", -1.0))


def test_tokens_and_their_rivals_are_read_and_written():
    assert read_logprobs(RESULT, "") == (TOKENS, [])
    assert write_logprobs(TOKENS) == RESULT


def test_rivals_may_be_missing():
    chosen: Any = {"chosen_candidates": [{"token": "a", "log_probability": -1}]}
    assert read_logprobs(chosen, "") == ((TokenLogprob("a", -1.0),), [])
    assert write_logprobs((TokenLogprob("a", -1.0),)) == {"chosenCandidates": [{"token": "a", "logProbability": -1.0}]}


def test_a_probability_is_a_number():
    assert (
        refused_at(read_logprobs, {"chosenCandidates": [{"token": "a"}]}, "/l")
        == "/l/chosenCandidates/0/logProbability"
    )


def test_unmodelled_logprob_fields_are_reported_with_their_path():
    token = {"token": "a", "logProbability": -1.0, "tokenId": 7}
    result: Any = {"chosenCandidates": [token], "topCandidates": [{"candidates": [token]}], "logProbabilitySum": -1.0}
    assert read_logprobs(result, "/l")[1] == [
        ("/l/logProbabilitySum", -1.0),
        ("/l/topCandidates/0/candidates/0/tokenId", 7),
        ("/l/chosenCandidates/0/tokenId", 7),
    ]


TEXTS = [(0, "Süß! "), (2, "A sentence.")]


def test_bytes_of_the_candidate_become_characters_of_the_part():
    wire: Any = {"startIndex": 7, "endIndex": 10, "uri": "https://a", "title": "A", "license": "MIT"}
    assert read_citation(wire, "/c", TEXTS) == (
        2,
        Citation(url="https://a", title="A", start=0, end=3, value=wire, at="/c", extras={"license": "MIT"}),
    )
    wire = {"endIndex": 6, "uri": "https://a"}
    part, citation = read_citation(wire, "/c", TEXTS)
    assert (part, citation.start, citation.end) == (0, 0, 4)


def test_a_place_behind_all_texts_belongs_to_the_last():
    part, citation = read_citation({"startIndex": 99, "endIndex": 120}, "", TEXTS)
    assert (part, citation.start, citation.end) == (2, 11, 11)


def test_without_text_and_without_a_place():
    part, citation = read_citation({"uri": "u"}, "", [])
    assert part is None
    assert (citation.start, citation.end) == (None, None)


def test_characters_of_a_part_become_bytes_of_the_candidate():
    report = Report()
    citations = [
        (2, Citation(url="https://a", start=0, end=3)),
        (0, Citation(title="T", cited_text="words", at="/1")),
        (7, Citation(cited_text="words", at="/2")),
    ]
    assert write_citations(citations, TEXTS, report) == [
        {"startIndex": 7, "endIndex": 10, "uri": "https://a"},
        {"title": "T"},
    ]
    assert [(loss.pointer, loss.what) for loss in report.losses] == [
        ("/1", "cited text"),
        ("/1", "what is cited"),
        ("/2", "cited text"),
        ("/2", "what is cited"),
    ]


TEXTS_GROUNDING = [(0, "Süß ist es. "), (2, "Das Ende.")]
ROME: JsonObject = {"web": {"uri": "https://rome.example", "title": "Rome", "domain": "rome.example"}}
FILE: JsonObject = {"retrievedContext": {"uri": "gs://f", "title": "F", "text": "quoted"}, "new": 1}


def support(numbers: Any, **segment: Any) -> JsonObject:
    return {"segment": segment, "groundingChunkIndices": numbers}


def test_words_and_their_sources_are_citations() -> None:
    metadata: JsonObject = {
        "webSearchQueries": ["rome"],
        "groundingChunks": [ROME, FILE],
        "groundingSupports": [
            {**support([0, 1], endIndex=5, text="Süß"), "confidenceScores": [0.5]},
            support([1], startIndex=14, endIndex=17, text="other", new=2),
        ],
    }
    found, left = read_grounding(metadata, "/g", TEXTS_GROUNDING)
    assert found == [
        (0, Citation("https://rome.example", "Rome", "", 0, 3, value=ROME, at="/g")),
        (0, Citation("gs://f", "F", "quoted", 0, 3, value=FILE, at="/g")),
        (2, Citation("gs://f", "F", "quoted", 0, 3, value=FILE, at="/g")),
    ]
    assert left == [
        ("/g/webSearchQueries", ["rome"]),
        ("/g/groundingSupports/0/confidenceScores", [0.5]),
        ("/g/groundingSupports/1/segment/text", "other"),
        ("/g/groundingSupports/1/segment/new", 2),
        ("/g/groundingChunks/0/web/domain", "rome.example"),
        ("/g/groundingChunks/1/new", 1),
    ]


def test_a_source_that_no_words_rest_on_is_cited_by_the_answer() -> None:
    found, left = read_grounding({"grounding_chunks": [{"maps": {"uri": "u"}}]}, "/g", TEXTS_GROUNDING)
    assert found == [(2, Citation("u", value={"maps": {"uri": "u"}}, at="/g"))]
    assert left == []


@pytest.mark.parametrize(
    "odd", [7, support("0"), {"segment": 7}, support([9]), support([None]), support([1], endIndex=2)]
)
def test_a_support_that_names_no_source_is_left(odd: Any) -> None:
    chunks: list[Any] = [ROME, {"image": {}}]
    found, left = read_grounding({"groundingChunks": chunks, "groundingSupports": [odd]}, "/g", TEXTS_GROUNDING)
    assert [citation.start for _, citation in found] == [None]
    assert ("/g/groundingSupports/0", odd) in left
    assert ("/g/groundingChunks/1", {"image": {}}) in left


@pytest.mark.parametrize(
    ("metadata", "texts"),
    [
        ({"groundingChunks": [ROME]}, []),
        ({"groundingChunks": 7}, TEXTS_GROUNDING),
        ({"groundingChunks": [], "groundingSupports": 7}, TEXTS_GROUNDING),
        ({"searchEntryPoint": {}}, TEXTS_GROUNDING),
    ],
)
def test_without_words_or_sources_everything_is_left(metadata: JsonObject, texts: Any) -> None:
    found, left = read_grounding(metadata, "/g", texts)
    assert found == []
    assert left == [(f"/g/{key}", value) for key, value in metadata.items()]


def test_a_chunk_may_be_anything() -> None:
    assert read_grounding({"groundingChunks": [7]}, "/g", TEXTS_GROUNDING) == ([], [("/g/groundingChunks/0", 7)])
