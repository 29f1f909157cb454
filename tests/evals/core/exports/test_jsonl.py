import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Code, Fault
from sightline.evals.core.exports import ResultLines, read_jsonl, to_jsonl, to_line
from sightline.evals.core.result import CaseObservation, CaseResult, CaseScore, Check, Score, ToolUse
from sightline.model.parts import Image, Inline, Text, ToolCall, ToolResult
from sightline.model.reply import Usage
from sightline.model.request import Message
from tests.evals.core.rows import failed, row

FULL = CaseResult(
    case="x",
    target="a",
    trial=2,
    suite="demo",
    group="g",
    tags=("smoke",),
    status="quality_failure",
    score=CaseScore(
        verdict="fail",
        score=0.5,
        scores=(Score(name="s", type="equals", verdict="fail", score=0.5, checks=(Check("is 4", False, "5"),)),),
    ),
    observation=CaseObservation(
        asked=(Message("user", (Text("2+2?"), Image(Inline("image/png", "iVBORw0KGgo=")))),),
        messages=(
            Message("assistant", (ToolCall("c1", "sum", '{"a": 2}'),)),
            Message("tool", (ToolResult("c1", (Text("5"),)),)),
        ),
        text="5 \u2028 \U0001f600",
        tools=(ToolUse(name="sum", arguments={"a": [1, None, 2.5]}, seconds=0.1),),
        usage=Usage(input_tokens=9, output_tokens=1),
        cost=0.25,
        seconds=1.5,
        extras={"note": {"deep": [True]}},
    ),
    turns=(CaseObservation(text="first"),),
    cached=True,
    at=12.5,
    seconds=2.0,
)


def test_lines_are_read_back_whole() -> None:
    results = (FULL, failed("y"), row("z", None, reason="no JSON"))
    assert read_jsonl(to_jsonl(results)) == ResultLines(results)


def test_the_stable_fields_are_always_there() -> None:
    full, bare = (json.loads(to_line(result)) for result in (FULL, failed("y")))
    assert list(full) == list(bare)
    assert list(full)[:-1] == [
        "v", "suite", "case", "target", "trial", "group", "tags", "status", "verdict", "score", "input_tokens",
        "output_tokens", "cost_usd", "seconds", "cached", "error", "at",
    ]  # fmt: skip
    assert (full["score"], full["input_tokens"], full["cost_usd"], full["cached"]) == (0.5, 9, 0.25, True)
    assert (bare["score"], bare["input_tokens"], bare["cost_usd"], bare["error"]) == (
        None,
        None,
        None,
        "connection reset",
    )


def test_a_result_is_one_line_whatever_it_says() -> None:
    assert to_line(row("x", 1.0, seen=CaseObservation(text="a\nb\r\n\u2028"))).count(b"\n") == 1


@given(st.text(st.characters()))
def test_any_text_comes_back(text: str) -> None:
    result = row("x", 1.0, seen=CaseObservation(text=text))
    assert read_jsonl(to_line(result)).results == (result,)


def test_half_a_character_comes_back() -> None:
    result = row("x", 1.0, seen=CaseObservation(text="\ud83d"))
    assert read_jsonl(to_line(result)).results == (result,)


def test_truncated_line_is_left_out_and_reported() -> None:
    data = to_jsonl([FULL, FULL])
    assert read_jsonl(data[:-40]) == ResultLines((FULL,), is_cut=True)
    assert read_jsonl(data[:-1]) == ResultLines((FULL, FULL))
    assert read_jsonl(b"\n") == ResultLines(())


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "not JSON"),
        (b"[]", "holds no result"),
        (b'{"case":"x"}', "holds no result"),
        (b'{"v":2,"result":{}}', "version 2"),
        (b'{"v":1,"result":{"case":1}}', "Expected"),
    ],
)
def test_a_line_in_the_middle_that_is_none_is_a_fault_with_its_number(line: bytes, why: str) -> None:
    with pytest.raises(Fault, match="line 2 of the results") as caught:
        read_jsonl(to_line(FULL) + line + b"\n" + to_line(FULL))
    assert caught.value.code is Code.USAGE
    assert why in caught.value.message
