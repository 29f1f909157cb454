import pytest

from sightline.agent.core.run import ReplyOutcome, read_reply
from sightline.errors import Code, Fault
from sightline.model.parts import Citation, Text, Thinking, ToolCall
from sightline.model.reply import Choice, Finish, Reply
from tests.loop_stage import count, reply


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "pause"])
def test_calls_of_a_whole_reply_are_used_however_it_says_that_it_ended(finish: Finish) -> None:
    assert read_reply(reply(count(1), finish=finish), "") == ReplyOutcome("use", (count(1),))


def test_a_reply_without_calls_ends_or_pauses() -> None:
    assert read_reply(reply(Text("x")), "") == ReplyOutcome("end", (Text("x"),))
    assert read_reply(reply(Text("x"), finish="pause"), "") == ReplyOutcome("pause", (Text("x"),))
    assert read_reply(reply(finish="pause"), "") == ReplyOutcome("end", ())


@pytest.mark.parametrize("finish", ["length", "content_filter", "refusal"])
def test_of_a_reply_that_was_cut_the_words_stay(finish: Finish) -> None:
    parts = (Thinking("a"), Text("x"), Thinking("b"), count(1))
    assert read_reply(reply(*parts, finish=finish), "") == ReplyOutcome("end", parts[:2], finish, is_cut=True)


def test_of_a_reply_that_was_cut_while_thinking_nothing_stays() -> None:
    assert read_reply(reply(Thinking("a"), finish="length"), "").parts == ()


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (Reply(choices=(Choice(parts=(Text("x"),), finish="stop"),), fault=Fault(Code.NETWORK, "x")), "failed"),
        (Reply(fault=Fault(Code.CANCELLED, "x")), "cancelled"),
        (Reply(choices=(Choice(finish="error"),)), "failed"),
        (Reply(choices=(Choice(finish="cancelled"),)), "cancelled"),
        (Reply(), "failed"),
    ],
)
def test_of_a_broken_reply_nothing_stays(broken: Reply, why: str) -> None:
    assert read_reply(broken, "") == ReplyOutcome("end", (), why, is_cut=True)


def test_in_its_own_dialect_a_part_keeps_its_place_and_what_stood_beside_it() -> None:
    part = Thinking("Hm.", at="/choices/0/message/reasoning_content", extras={"x": 1})
    assert read_reply(reply(part, spoken="openai-chat"), "openai-chat").parts == (part,)


def test_elsewhere_it_has_neither() -> None:
    cited = Text("x", (Citation(url="u", at="/3", extras={"y": 1}),), at="/2", extras={"x": 1})
    call = ToolCall("a", "f", "{}", at="/4")
    read_ = read_reply(reply(cited, call, spoken="anthropic"), "")
    assert read_.parts == (Text("x", (Citation(url="u"),)), ToolCall("a", "f", "{}"))
