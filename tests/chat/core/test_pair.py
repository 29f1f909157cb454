import base64

import pytest

from sightline.chat.core.facts import CANCELLED, INTERRUPTED
from sightline.chat.core.pair import (
    ChatAnswer,
    MessagePair,
    Trouble,
    answer_of,
    attachment,
    filter_changed,
    kind_of,
    name_of,
    overflow_after_trimming,
    prompt_too_large,
    text_answer,
    text_in,
    trouble_of,
)
from sightline.errors import Code, Fault, Numbers
from sightline.model.parts import (
    Audio,
    Citation,
    Document,
    Image,
    Inline,
    Link,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.reply import Choice, Reply, Usage
from sightline.model.request import Message

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


def test_what_no_provider_is_to_blame_for_is_called_what_it_is() -> None:
    assert CANCELLED.line.startswith("[error: cancelled] ")
    assert INTERRUPTED.line.startswith("[error: interrupted] ")


LAST = Fault(Code.CONTEXT_OVERFLOW, "maximum context length is 100", status=400, numbers=Numbers(limit=100))


@pytest.mark.parametrize(
    ("fault", "code", "label"),
    [
        (Fault(Code.AUTH, "no"), "auth", "auth"),
        (Fault(Code.RATE_LIMITED, "slow down"), "rate_limited", "quota"),
        (Fault(Code.NETWORK, "gone"), "network", "net"),
        (Fault(Code.MODEL_UNKNOWN, "who?"), "model_unknown", "model"),
        (Fault(Code.OVERLOADED, "busy"), "overloaded", "unknown"),
        (prompt_too_large(200, 100, 0), "user_prompt_too_large", "quota"),
        (overflow_after_trimming(LAST, 2, 2), "context_overflow_after_trimming", "quota"),
        (filter_changed(LAST), "filter_changed", "unknown"),
        (Fault(Code.CONTEXT_OVERFLOW, "x", details={"code": "context_length_exceeded"}), "context_overflow", "quota"),
        (Fault(Code.CANCELLED, "x", details="text"), "cancelled", "unknown"),
    ],
)
def test_every_failure_has_a_code_and_a_coarse_class(fault: Fault, code: str, label: str) -> None:
    trouble = trouble_of(fault)
    assert (trouble.code, trouble.label, trouble.message, trouble.hint) == (code, label, fault.message, fault.hint)


def test_a_prompt_that_is_too_large_says_by_how_much() -> None:
    assert "2,000 tokens and the model takes 1,000" in prompt_too_large(2000, 1000, 0).message
    assert "300 are taken by the system prompt" in prompt_too_large(2000, 1000, 300).message
    assert "Nothing was sent" in prompt_too_large(2000, 1000, 300).hint


@pytest.mark.parametrize(
    ("trimmed", "attempts", "told"),
    [
        (0, 0, "nothing more could be left out"),
        (1, 1, "1 pair was left out in 1 further attempt;"),
        (3, 2, "3 pairs were left out in 2 further attempts;"),
    ],
)
def test_an_overflow_after_trimming_says_what_was_tried(trimmed: int, attempts: int, told: str) -> None:
    fault = overflow_after_trimming(LAST, trimmed, attempts)
    assert told in fault.message
    assert LAST.message in fault.message
    assert (fault.status, fault.numbers) == (400, LAST.numbers)
    assert "larger window" in fault.hint


PNG, PDF, WAV = b"\x89PNG\r\n\x1a\n rest", b"%PDF-1.7 rest", b"RIFF\0\0\0\0WAVE rest"


def inline(kind: str, data: bytes) -> Inline:
    return Inline(kind, base64.b64encode(data).decode())


@pytest.mark.parametrize(
    ("data", "name", "part", "kind"),
    [
        (b"a = 1\n", "a.py", Text("File: a.py\n```\na = 1\n```\n"), "text"),
        (b"```\nx\n```", "x.md", Text("File: x.md\n````\n```\nx\n```\n````\n"), "text"),
        (b"<svg/>", "a.svg", Text("File: a.svg\n```\n<svg/>\n```\n"), "text"),
        (PNG, "a.txt", Image(inline("image/png", PNG)), "image"),
        (PDF, "a.pdf", Document(inline("application/pdf", PDF), "a.pdf"), "document"),
        (WAV, "a.wav", Audio(inline("audio/wav", WAV)), "audio"),
    ],
)
def test_a_file_is_what_its_bytes_are(data: bytes, name: str, part: Part, kind: str) -> None:
    made = attachment(data, name)
    assert (made, kind_of(made)) == (part, kind)


def test_what_was_put_around_a_text_can_be_taken_off_again() -> None:
    made = attachment(b"one\ntwo\n", "notes.txt")
    assert (name_of(made), text_in(made.text)) == ("notes.txt", "one\ntwo")
    assert (name_of(Text("only words")), text_in("only words")) == ("", "only words")


def test_what_it_is_called() -> None:
    assert name_of(attachment(PDF, "a.pdf")) == "a.pdf"
    assert name_of(Document(inline("application/pdf", PDF))) == ""
    assert name_of(Image(inline("image/png", PNG))) == ""
    assert kind_of(Refusal("no")) == "other"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b" \n", "a.bin: the file has no text"),
        (b"PK\x03\x04", "a.bin: application/zip cannot be attached"),
        (b"\0\0\0", "a.bin: an unknown kind of file cannot be attached"),
        (b"caf\xe9", "a.bin: this is not valid UTF-8 text: byte 3"),
        (b"\xff\xfea\0\0\0", "a.bin: an unknown kind of file cannot be attached"),
    ],
)
def test_what_cannot_be_attached(data: bytes, message: str) -> None:
    with pytest.raises(Fault) as caught:
        attachment(data, "a.bin")
    assert (caught.value.code, caught.value.message) == (Code.USAGE, message)
    assert caught.value.hint


def test_a_mistake_names_the_place_where_the_file_lies() -> None:
    with pytest.raises(Fault, match="over/there: "):
        attachment(b"\0", "there", "over/there")
