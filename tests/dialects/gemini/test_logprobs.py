from typing import Any

import pytest

from sightline.dialects.gemini.reply_fields import read_logprobs, write_logprobs
from sightline.errors import Fault
from sightline.model.reply import TokenLogprob

RESULT: Any = {
    "chosenCandidates": [{"token": "a", "logProbability": -0.5}, {"token": "b", "logProbability": -1.0}],
    "topCandidates": [
        {"candidates": [{"token": "a", "logProbability": -0.5}, {"token": "c", "logProbability": -2.0}]},
        {"candidates": []},
    ],
}
TOKENS = (
    TokenLogprob("a", -0.5, top=(TokenLogprob("a", -0.5), TokenLogprob("c", -2.0))),
    TokenLogprob("b", -1.0),
)


def test_tokens_and_their_rivals_are_read_and_written():
    assert read_logprobs(RESULT, "") == (TOKENS, [])
    assert write_logprobs(TOKENS) == RESULT


def test_rivals_may_be_missing():
    chosen: Any = {"chosen_candidates": [{"token": "a", "log_probability": -1}]}
    assert read_logprobs(chosen, "") == ((TokenLogprob("a", -1.0),), [])
    assert write_logprobs((TokenLogprob("a", -1.0),)) == {"chosenCandidates": [{"token": "a", "logProbability": -1.0}]}


def test_a_probability_is_a_number():
    with pytest.raises(Fault) as caught:
        read_logprobs({"chosenCandidates": [{"token": "a"}]}, "/l")
    assert caught.value.pointer == "/l/chosenCandidates/0/logProbability"


def test_what_is_not_modelled_is_told_with_its_place():
    token = {"token": "a", "logProbability": -1.0, "tokenId": 7}
    result: Any = {"chosenCandidates": [token], "topCandidates": [{"candidates": [token]}], "logProbabilitySum": -1.0}
    assert read_logprobs(result, "/l")[1] == [
        ("/l/logProbabilitySum", -1.0),
        ("/l/topCandidates/0/candidates/0/tokenId", 7),
        ("/l/chosenCandidates/0/tokenId", 7),
    ]
