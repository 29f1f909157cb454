import pytest

from sightline.errors import Fault
from sightline.evals.core.options import RunOptions
from sightline.evals.core.result import CaseObservation, CaseResult, CaseScore, Check, Score, ToolUse
from sightline.evals.core.run_state import (
    CaseDone,
    CaseStarted,
    EvalBegan,
    EvalEnded,
    EvalFact,
    EvalTaken,
    Reopened,
    read,
    write,
)
from sightline.evals.core.suite import (
    CallSegment,
    Case,
    CaseMessage,
    CaseTurn,
    FileSegment,
    GraderSpec,
    ImageSegment,
    Suite,
    TextSegment,
)
from sightline.evals.core.target import CommandSpec, TargetSpec
from sightline.model.message import Message
from sightline.model.parts import Text, ToolCall

MESSAGE = CaseMessage(
    role="user",
    segments=(TextSegment("a"), FileSegment("f.md", "d/f.md"), ImageSegment("p.png"), CallSegment("t", {"x": [1]})),
)
BEGAN = EvalBegan(
    suite=Suite(
        name="s",
        cases=(
            Case(
                id="a",
                messages=(MESSAGE,),
                turns=(CaseTurn(messages=(MESSAGE,)),),
                graders=(GraderSpec(type="contains", config={"value": "x"}),),
                expected_value={"k": None},
            ),
        ),
    ),
    targets=(TargetSpec(name="t", model="m", cli=CommandSpec(command=("a", "b"))),),
    judges=(TargetSpec(name="j", mock="yes"),),
    options=RunOptions(trials=2, tags=("x",)),
    files={"d/f.md": "00"},
    at=1.5,
)
SCORE = CaseScore(
    verdict="pass",
    score=1.0,
    scores=(Score(name="n", type="contains", verdict="pass", score=1.0, checks=(Check("c", True),)),),
    turns=(CaseScore(verdict="skip"),),
)


def done(text: str) -> CaseDone:
    observation = CaseObservation(
        messages=(Message("assistant", (Text(text), ToolCall("1", "t", "{}"))),),
        text=text,
        tools=(ToolUse(name="t", arguments={}),),
    )
    return CaseDone(CaseResult(case="a", target="t", status="ok", score=SCORE, observation=observation))


@pytest.mark.parametrize(
    "fact",
    [
        BEGAN,
        EvalTaken("here:1"),
        CaseStarted("a", "t", 1),
        done("Paris ü"),
        done("half a character: \ud83d"),
        Reopened((("a", "t", 0),)),
        EvalEnded("budget"),
    ],
)
def test_a_fact_is_read_as_it_was_written(fact: EvalFact) -> None:
    assert read(write(fact)) == fact


@pytest.mark.parametrize("data", [b'{"kind":"eval_moved"}', b'{"kind":"case_done"}', b'{"kind":"reopened","keys":[1]}'])
def test_what_another_version_wrote_is_told_as_such(data: bytes) -> None:
    with pytest.raises(Fault, match="not a fact of a run of evals") as caught:
        read(data)
    assert "another version" in caught.value.hint
