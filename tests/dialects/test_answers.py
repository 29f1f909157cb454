from sightline.dialects.conversation import with_answers
from sightline.model.message import Message
from sightline.model.parts import Part, Text, ToolCall, ToolResult
from sightline.model.report import Report

USER = Message("user", (Text("and?"),), at="/u")


def called(*ids: str) -> Message:
    return Message("assistant", tuple(ToolCall(each, "f", "{}") for each in ids))


def result(call_id: str) -> ToolResult:
    return ToolResult(call_id, at=f"/r-{call_id}")


def answered(*parts: Part) -> Message:
    return Message("tool", parts)


def put(*turns: Message) -> tuple[tuple[Message, ...], list[str]]:
    report = Report()
    out = with_answers(turns, report, "gemini")
    return out, [loss.pointer for loss in report.losses]


def test_answers_in_their_place_are_left_alone() -> None:
    turns = (USER, called("a", "b"), answered(result("a")), Message("user", (result("b"), Text("x"))), USER)
    assert put(*turns) == (turns, [])


def test_a_late_answer_is_moved_behind_its_call() -> None:
    out, lost = put(called("a"), USER, answered(result("a")))
    assert out == (called("a"), Message("tool", (result("a"),), at="/r-a"), USER)
    assert lost == ["/r-a"]


def test_it_joins_the_answers_that_are_there_already() -> None:
    late = Message("user", (result("b"), Text("x")))
    out, _ = put(called("a", "b"), answered(result("a")), USER, late)
    assert out == (called("a", "b"), answered(result("a"), result("b")), USER, Message("user", (Text("x"),)))


def test_answers_of_several_turns_find_each_their_own() -> None:
    out, lost = put(called("a"), USER, called("b"), answered(result("b"), result("a")))
    assert out == (called("a"), Message("tool", (result("a"),), at="/r-a"), USER, called("b"), answered(result("b")))
    assert lost == ["/r-a"]


def test_an_answer_to_nothing_stays_where_it_is() -> None:
    turns = (USER, answered(result("x")), Message("user", ()), called("a"), USER, answered(result("a")))
    out, lost = put(*turns)
    assert out == (*turns[:4], Message("tool", (result("a"),), at="/r-a"), USER)
    assert lost == ["/r-a"]


def test_without_ids_nothing_is_known_to_be_late() -> None:
    turns = (called(""), USER, answered(result("")))
    assert put(*turns) == (turns, [])


def test_an_id_that_is_used_again_is_answered_again() -> None:
    turns = (called("a"), answered(result("a")), called("a"), answered(result("a")), answered(result("a")))
    assert put(*turns) == (turns, [])
