"""What the caller of a run gets as its answer: the last reply, the rounds before it, and why there is none."""

import pytest

from sightline.agent.core.limits import Reached
from sightline.agent.core.rounds import CallRecord, FinishedRun, Round, answer_of
from sightline.agent.core.tool import text_outcome
from sightline.errors import Code, Fault
from sightline.model.parts import Text, ToolCall
from sightline.model.reply import Choice, Reply, Usage
from sightline.model.request import Request


def reply(*parts: Text | ToolCall, fault: Fault | None = None) -> Reply:
    return Reply(choices=(Choice(parts=parts),), fault=fault)


def record(**more: object) -> CallRecord:
    settings = {"id": "c1", "arguments": '{"n": 1}', "outcome": text_outcome("1"), **more}
    return CallRecord(key="1.1", name="count", fate="ran", **settings)  # type: ignore[arg-type]


def called(*records: CallRecord, context: str = "") -> Round:
    calls = [ToolCall(each.id, each.name, each.arguments, at="/choices/0", extras={"x": 1}) for each in records]
    return Round(number=1, reply=reply(*calls), calls=records, usage=Usage(input_tokens=5), context=context)


def ended(why: str, *rounds: Round, reached: Reached | None = None) -> FinishedRun:
    return FinishedRun(why=why, request=Request(), rounds=rounds, reached=reached)  # type: ignore[arg-type]


def test_the_answer_is_the_last_reply_and_the_rounds_before_it() -> None:
    last = Round(number=2, reply=reply(Text("Done.")), usage=Usage(input_tokens=7, output_tokens=3))
    answer = answer_of(ended("answered", called(record(), context="It rains."), last))
    assert answer.reply == last.reply
    assert answer.usage == Usage(input_tokens=12, output_tokens=3)
    asking, result, context = answer.rounds
    assert asking.parts == (ToolCall("c1", "count", '{"n": 1}'),), "as it can be sent again"
    assert (result.role, result.parts[0].id, result.parts[0].parts) == ("tool", "c1", (Text("1"),))
    assert (context.role, context.parts) == ("user", (Text("It rains."),))


def test_the_calls_of_the_last_reply_are_a_round_under_the_ids_that_were_sent() -> None:
    answer = answer_of(ended("limit", called(record(id="", sent_id="call_2")), reached=Reached("requests", 1, 1)))
    assert answer.reply.choice.parts == (), "its calls are a round, with what came of them"
    assert [part.id for message in answer.rounds for part in message.parts] == ["call_2", "call_2"]


def test_a_call_without_a_result_stays_a_call() -> None:
    cut = Round(number=1, reply=reply(ToolCall("c1", "count", "{}"), ToolCall("c2", "count", "{}")), calls=(record(),))
    asking, result = answer_of(ended("cancelled", cut)).rounds
    assert [part.id for part in asking.parts] == ["c1", "c2"]
    assert [part.id for part in result.parts] == ["c1"]
    (alone,) = answer_of(ended("cancelled", called(record(outcome=None)))).rounds
    assert alone.role == "assistant"


@pytest.mark.parametrize(
    ("ran", "is_edited", "expected"),
    [
        ({"n": 9}, True, '{"n":9}'),
        ("ls -l", True, "ls -l"),
        (None, True, '{"n": 1}'),
        ({"n": 1}, False, '{"n": 1}'),
    ],
)
def test_a_call_that_was_edited_goes_back_as_it_ran(ran: object, is_edited: bool, expected: str) -> None:
    (asking, _) = answer_of(ended("answered", called(record(ran=ran, is_edited=is_edited)))).rounds
    assert asking.parts[0].arguments == expected


def test_a_run_that_did_not_come_to_its_end_says_why() -> None:
    def fault_of(why: str, *, reached: Reached | None = None, fault: Fault | None = None) -> Fault | None:
        return answer_of(ended(why, Round(number=1, reply=reply(Text("So"), fault=fault)), reached=reached)).reply.fault

    reached = fault_of("limit", reached=Reached("requests", 1, 1))
    assert reached.message == "the run has no answer: the limit of 1 model requests is reached"
    assert "one of its limits" in fault_of("limit").message
    assert fault_of("cancelled").code is Code.CANCELLED
    assert fault_of("answered") is None
    own = Fault(Code.NETWORK, "gone")
    assert fault_of("cancelled", fault=own) is own
    with pytest.raises(Fault, match="before anything was asked"):
        answer_of(ended("cancelled"))
