"""Responses streams of servers that follow the API loosely say the same as complete ones, in every dialect."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.dialects.translate import StreamTranslation
from sightline.model.fold import fold
from sightline.wire.sse import SseDecoder
from tests.contract.cases import Case, cases, others
from tests.contract.essence import essence

RESPONSES = "openai-responses"
STREAMS = [
    case for case in cases("stream.sse", "reply.json") if case.dialect == RESPONSES and "failed" not in str(case)
]

Frame = dict[str, Any]


def without(*keys: str) -> Callable[[Frame], Frame | None]:
    return lambda frame: {key: value for key, value in frame.items() if key not in keys}


def unless(kind: str, item: str = "") -> Callable[[Frame], Frame | None]:
    return lambda frame: None if frame["type"] == kind and (not item or frame["item"]["type"] == item) else frame


LOOSE: dict[str, Callable[[Frame], Frame | None]] = {
    "no output_index": without("output_index"),
    "no item_id": without("item_id"),
    "no place and no id": without("output_index", "item_id"),
    "no sequence_number": without("sequence_number"),
    "no output_index, no sequence_number": without("output_index", "sequence_number"),
    "no response.created": unless("response.created"),
    "no output_item.added for text": unless("response.output_item.added", "message"),
    "whole numbers with a fraction": lambda frame: {
        key: float(value) if key.endswith("_index") else value for key, value in frame.items()
    },
}


def loosened(case: Case, loosen: Callable[[Frame], Frame | None]) -> bytes:
    frames = [loosen(json.loads(frame.data)) for frame in SseDecoder().feed(case.file("stream.sse"))]
    return b"".join(b"data: %b\n\n" % json.dumps(frame).encode() for frame in frames if frame is not None)


def heard(data: bytes, spoken: str) -> dict[str, Any]:
    hearing = ReplyDecoder(dialect(spoken))
    return essence(fold([*hearing.feed(data), *hearing.close()]))


def translated(data: bytes, target: str) -> dict[str, Any]:
    translation = StreamTranslation(RESPONSES, target)
    return heard(translation.feed(data) + translation.close(), target)


AMBIGUOUS = ("openai-responses-parallel-calls", "no place and no id")
"""Two calls whose arguments come in turns, and nothing says whose they are."""


def test_what_is_ambiguous_is_an_error_and_no_guess() -> None:
    (case,) = [each for each in STREAMS if str(each) == AMBIGUOUS[0]]
    data = loosened(case, LOOSE[AMBIGUOUS[1]])
    for target in others(RESPONSES):
        assert translated(data, target)["fault"]


@pytest.mark.parametrize("loose", LOOSE)
@pytest.mark.parametrize("case", STREAMS, ids=str)
def test_a_loose_stream_says_the_same(case: Case, loose: str) -> None:
    if (str(case), loose) == AMBIGUOUS:
        return
    data = loosened(case, LOOSE[loose])
    assert heard(data, RESPONSES) == heard(case.file("stream.sse"), RESPONSES)
    for target in others(RESPONSES):
        ours, theirs = translated(data, target), translated(case.file("stream.sse"), target)
        if loose == "no response.created":  # who answers is known at the end only, when the client has been told a name
            for name in ("id", "model"):
                ours.pop(name, None)
                theirs.pop(name, None)
        assert ours == theirs
