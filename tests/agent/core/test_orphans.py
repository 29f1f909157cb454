from sightline.agent.core.conversation import NO_RESULT, pair_calls
from sightline.model.message import Message
from sightline.model.parts import CacheBreakpoint, Part, Text, ToolCall, ToolResult

ASKED = Message("user", (Text("Do it."),))


def called(*ids: str, name: str = "f") -> Message:
    return Message("assistant", tuple(ToolCall(each, name, "{}") for each in ids))


def answered(*ids: str, name: str | None = None) -> Message:
    return Message("tool", tuple(ToolResult(each, (Text("ok"),), name) for each in ids))


def missing(call_id: str, name: str | None = None) -> ToolResult:
    return ToolResult(call_id, (Text(NO_RESULT),), name, is_error=True)


def test_a_whole_conversation_stays_the_very_same() -> None:
    messages = (ASKED, called("a", "b"), answered("b", "a"), ASKED, called("a"), answered("a"))
    assert pair_calls(messages, named=False) == (messages, ())


def test_a_call_that_nobody_answered_is_answered_behind_its_turn() -> None:
    messages, amendments = pair_calls((ASKED, called("a"), ASKED), named=False)
    assert messages == (ASKED, called("a"), Message("tool", (missing("a"),)), ASKED)
    assert [(each.kind, each.why) for each in amendments] == [("missing_result", "every call needs one")]


def test_an_answer_that_is_missing_joins_those_that_are_there() -> None:
    messages, _ = pair_calls((called("a", "b"), answered("a")), named=False)
    assert messages[1].parts == (*answered("a").parts, missing("b"))


def test_calls_in_items_of_their_own_are_one_turn() -> None:
    messages, _ = pair_calls((called("a"), called("b"), answered("b"), ASKED), named=False)
    assert messages == (called("a"), called("b"), Message("tool", (*answered("b").parts, missing("a"))), ASKED)


def test_results_in_the_user_s_name_belong_to_the_turn_too() -> None:
    result = Message("user", answered("b").parts)
    messages, _ = pair_calls((called("a", "b"), result), named=False)
    assert messages == (called("a", "b"), result, Message("tool", (missing("a"),)))


def test_a_result_that_answers_nothing_is_taken_out_and_told() -> None:
    stray = ToolResult("x", (Text("ok"),), at="/messages/1")
    mixed: tuple[Part, ...] = (stray, Text("And now?"))
    messages, amendments = pair_calls((ASKED, Message("user", mixed)), named=False)
    assert messages == (ASKED, Message("user", (Text("And now?"),)))
    assert [(each.kind, each.pointer) for each in amendments] == [("orphan_result", "/messages/1")]


def test_a_message_of_which_nothing_is_left_goes_with_it() -> None:
    marked = Message("tool", (ToolResult("x"), CacheBreakpoint()))
    assert pair_calls((ASKED, marked), named=False)[0] == (ASKED,)


def test_a_second_answer_to_one_call_answers_nothing() -> None:
    messages, _ = pair_calls((called("a"), answered("a"), answered("a")), named=False)
    assert messages == (called("a"), answered("a"))


def test_a_provider_that_knows_more_may_know_the_call() -> None:
    messages = (answered("x"), ASKED)
    assert pair_calls(messages, named=False, stateful=True) == (messages, ())


def test_without_ids_the_name_tells_what_is_answered() -> None:
    messages = (called("", name="f"), answered("", name="f"))
    assert pair_calls(messages, named=True) == (messages, ())
    assert pair_calls((called("", name="f"),), named=False)[0][1].parts == (missing("", "f"),)


def test_where_results_have_names_the_missing_ones_have_too() -> None:
    assert pair_calls((called("a"),), named=True)[0][1].parts == (missing("a", "f"),)
