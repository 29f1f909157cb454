"""Embeddings of OpenAI's API and of Google's, read into one value and written again."""

from typing import Any

import pytest

from sightline.dialects.embeddings import GEMINI, OPENAI, EmbeddingRequest, Embeddings, read_raw_usage
from sightline.dialects.fault_codes import status_of
from sightline.errors import Fault
from tests.dialects.reports import losses

BATCH = "/v1beta/models/m:batchEmbedContents"


def test_openais_request_is_one_text_or_several() -> None:
    assert OPENAI.read_request({"input": "a", "model": "m"}, "").texts == ("a",)
    read = OPENAI.read_request(
        {"input": ["a", "b"], "dimensions": 3, "encoding_format": "base64", "user": "u", "x": 1}, ""
    )
    assert (read.texts, read.dimensions, read.in_base64) == (("a", "b"), 3, True)
    assert losses(read.report) == [("/user", "identity"), ("/x", "option")]
    assert OPENAI.read_request({"input": "a", "dimensions": None, "user": None}, "").report.losses == ()


@pytest.mark.parametrize("body", [[], {}, {"input": []}, {"input": [1, 2]}, {"input": [[1]]}])
def test_what_is_no_text_is_refused(body: Any) -> None:
    with pytest.raises(Fault) as caught:
        OPENAI.read_request(body, "")
    assert status_of(caught.value) == 400


def test_googles_request_is_one_content_or_a_list_of_requests() -> None:
    content = {"parts": [{"text": "a"}, {"text": "b"}]}
    one = GEMINI.read_request(
        {"content": content, "taskType": "X", "outputDimensionality": 4}, "/models/m:embedContent"
    )
    assert (one.texts, one.dimensions, one.is_single) == (("a\nb",), 4, True)
    assert [loss.pointer for loss in one.report.losses] == ["/taskType"]
    config = {"embedContentConfig": {"output_dimensionality": 5, "title": "t"}}
    several = GEMINI.read_request(
        {
            "requests": [
                {"content": "a"},
                {"content": {"parts": [{"inlineData": {}}]}, **config},
                {"content": {"parts": {"text": "c"}}},
            ]
        },
        BATCH,
    )
    assert (several.texts, several.dimensions, several.is_single) == (("a", "", "c"), 5, False)
    assert [loss.pointer for loss in several.report.losses] == ["/requests/1/content/parts/0", "/requests/1/title"]
    with pytest.raises(Fault, match="/requests: expected a list"):
        GEMINI.read_request({}, BATCH)
    with pytest.raises(Fault, match="/requests/0: expected an object"):
        GEMINI.read_request({"requests": ["a"]}, BATCH)
    assert GEMINI.read_request({"content": 5}, "").report.losses[0].severity == "content"


def test_requests_are_written_for_each_api() -> None:
    asked = EmbeddingRequest(("a", "b"), 3)
    assert OPENAI.write_request(asked, "m") == {
        "model": "m", "input": ["a", "b"], "encoding_format": "float", "dimensions": 3
    }  # fmt: skip
    assert OPENAI.write_request(EmbeddingRequest(("a",)), "m").keys() == {"model", "input", "encoding_format"}
    first = {"model": "models/m", "content": {"parts": [{"text": "a"}]}}
    assert GEMINI.write_request(EmbeddingRequest(("a",)), "models/m") == {"requests": [first]}
    assert GEMINI.write_request(EmbeddingRequest(("a",), 3), "m") == {
        "requests": [{**first, "outputDimensionality": 3}]
    }


def test_vectors_are_read_and_written() -> None:
    made = Embeddings(((0.5, 1.0), (0.25, 2.0)), 7)
    for in_base64 in (False, True):
        asked = EmbeddingRequest(("a", "b"), in_base64=in_base64)
        assert OPENAI.read_reply(OPENAI.write_reply(made, asked, "m")) == made
    assert GEMINI.read_reply(GEMINI.write_reply(made, EmbeddingRequest(("a", "b")), "m")) == made
    one = Embeddings(((0.5,),))
    single = GEMINI.write_reply(one, EmbeddingRequest(("a",), is_single=True), "m")
    assert single == {"embedding": {"values": [0.5]}}
    assert GEMINI.read_reply(single) == one
    assert OPENAI.write_reply(one, EmbeddingRequest(("a",)), "m")["usage"] == {"prompt_tokens": 0, "total_tokens": 0}


def test_openais_vectors_come_in_the_order_of_their_index() -> None:
    data = [{"index": 1, "embedding": [1]}, {"index": 0, "embedding": [0]}]
    assert OPENAI.read_reply({"data": data}).vectors == ((0.0,), (1.0,))
    assert OPENAI.read_reply({"data": [{"embedding": [3]}], "usage": {"prompt_tokens": True}}).tokens is None


@pytest.mark.parametrize("vector", [[None, None], [0.5, "x"], [True], "no base64!", "AAAA", None])
def test_a_vector_with_anything_but_numbers_is_refused(vector: Any) -> None:
    """llama.cpp sends null where a model's numbers have overflowed. A shorter vector would look like an answer."""
    with pytest.raises(Fault):
        OPENAI.read_reply({"data": [{"embedding": vector}]})
    with pytest.raises(Fault):
        GEMINI.read_reply({"embedding": {"values": vector}})


@pytest.mark.parametrize(
    ("data", "counts"),
    [
        (b'{"data": [], "usage": {"prompt_tokens": 8, "total_tokens": 8}}', (8, 0)),
        (b'{"output": [], "usage": {"input_tokens": 9, "output_tokens": 4}}', (9, 4)),
        (b'{"embedding": {}, "usageMetadata": {"promptTokenCount": 7}}', (7, 0)),
        (b'{"data": []}', None),
        (b'{"usage": "much"}', None),
        (b"no JSON", None),
    ],
)
def test_counts_are_read_out_of_answers_that_no_dialect_reads(data: bytes, counts: tuple[int, int] | None) -> None:
    usage = read_raw_usage(data)
    assert (None if usage is None else (usage.input_tokens, usage.output_tokens)) == counts
