import msgspec
import pytest

from sightline.chat.core.lifecycle import CANCELLED, INTERRUPTED
from sightline.chat.core.pair import ChatAnswer, MessagePair, Trouble, answer_of, text_answer
from sightline.chat.core.trouble import trouble_of
from sightline.errors import Code, Fault
from sightline.model.message import Message
from sightline.model.parts import Citation, Image, Link, Text, Thinking, ToolCall, ToolResult
from sightline.model.reply import Choice, Reply
from sightline.model.usage import Usage

SOURCE = Citation(url="https://example.org")
ROUNDS = ChatAnswer(
    messages=(
        Message("assistant", (Thinking("let me see"), Text("I look it up."), ToolCall("c1", "look_up", "{}"))),
        Message("tool", (ToolResult("c1", (Text("not words of the answer"),)),)),
        Message(
            "assistant",
            (Thinking(""), Text("It is ", citations=(SOURCE,)), Text("blue."), ToolCall("c2", "look_up", "")),
        ),
    )
)


def test_an_answer_is_words_thinking_tools_and_sources() -> None:
    assert ROUNDS.text == "I look it up.\n\nIt is blue."
    assert ROUNDS.thinking == "let me see"
    assert ROUNDS.tools == ("look_up",)
    assert ROUNDS.citations == (SOURCE,)


def test_a_pair_has_no_words_of_an_answer_before_it_comes() -> None:
    assert MessagePair(id="a").assistant_text == ""
    assert MessagePair(id="a", answer=text_answer("yes")).assistant_text == "yes"


def test_an_answer_without_words_says_nothing() -> None:
    assert ChatAnswer(messages=(Message("assistant", (Image(Link("https://example.org/a.png")),)),)).text == ""
    assert ChatAnswer().text == ""


def test_an_answer_that_was_broken_off_is_partial() -> None:
    assert ChatAnswer(finish="cancelled").is_partial
    assert ChatAnswer(finish="error").is_partial
    assert not text_answer("yes").is_partial


def test_a_reply_becomes_an_answer_without_places_in_its_bytes() -> None:
    words = Text("yes", at="/choices/0/message/content", extras={"annotations": []})
    reply = Reply(choices=(Choice(parts=(words,), finish="stop"),), model="acme-1", usage=Usage(input_tokens=7))
    answer = answer_of(reply, exchange="x_1", at=5.0)
    assert answer.messages == (Message("assistant", (Text("yes"),)),)
    assert (answer.model, answer.finish, answer.exchange, answer.at) == ("acme-1", "stop", "x_1", 5.0)
    assert answer.usage == Usage(input_tokens=7)


def test_rounds_with_tools_stand_before_the_last_words() -> None:
    rounds = ROUNDS.messages[:2]
    reply = Reply(choices=(Choice(parts=(Text("done"),)),))
    assert answer_of(reply, rounds=rounds).messages == (*rounds, Message("assistant", (Text("done"),)))


def test_a_reply_of_nothing_is_an_answer_of_nothing() -> None:
    assert answer_of(Reply()).messages == ()


def test_trouble_is_shown_as_one_line() -> None:
    assert Trouble("permission", "no such key", "auth").line == "[error: auth] no such key"


@pytest.mark.parametrize(
    ("code", "word"),
    [
        (Code.AUTH, "auth"),
        (Code.PERMISSION, "auth"),
        (Code.RATE_LIMITED, "quota"),
        (Code.QUOTA, "quota"),
        (Code.CONTEXT_OVERFLOW, "quota"),
        (Code.NETWORK, "net"),
        (Code.TIMEOUT_IDLE, "net"),
        (Code.MODEL_UNKNOWN, "model"),
        (Code.UPSTREAM_PROTOCOL, "unknown"),
    ],
)
def test_a_failed_send_is_shown_by_one_of_five_words(code: Code, word: str) -> None:
    assert trouble_of(Fault(code, "so")).line == f"[error: {word}] so"


def test_what_no_provider_is_to_blame_for_is_called_what_it_is() -> None:
    assert CANCELLED.line.startswith("[error: cancelled] ")
    assert INTERRUPTED.line.startswith("[error: interrupted] ")


def test_a_pair_can_be_kept_and_read_again() -> None:
    pair = MessagePair(id="a", answer=ROUNDS, attachments=(Image(Link("https://example.org/a.png")),), star=3)
    assert msgspec.json.decode(msgspec.json.encode(pair), type=MessagePair) == pair
