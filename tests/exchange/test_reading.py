import gzip

from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.errors import Code, Fault
from sightline.exchange.reply_reader import BodyDecoder, ReplyReader
from tests.reply_samples import streamed, whole

BROKEN = b"data: {\n\n"


def test_a_stream_and_a_whole_answer_are_read() -> None:
    for data in (b"".join(streamed("anthropic")), whole("anthropic")):
        reading = ReplyReader("anthropic")
        reading.feed(data)
        reading.close()
        assert reading.reply.choice.finish == "tool_calls"
        assert (reading.warning, reading.has_failed) == ("", False)


def test_frames_that_cannot_be_read_are_a_warning_of_bounded_length() -> None:
    reading = ReplyReader("openai-chat")
    reading.feed(BROKEN * 5 + b"".join(streamed("openai-chat")))
    assert reading.warning.count("cannot be read") == 3
    assert reading.warning.endswith("and 2 more")
    assert reading.has_ended


def test_a_mistake_of_ours_is_a_warning() -> None:
    for method in ("feed", "close"):
        reading = ReplyReader("openai-chat")

        def spoilt(*_: object) -> None:
            raise RuntimeError("a mistake")

        assert isinstance(reading._hearing, ReplyDecoder)
        setattr(reading._hearing, method, spoilt)
        reading.feed(b"data: {}\n\n")
        reading.close()
        reading.fail(Fault(Code.NETWORK, "x"))
        assert reading.warning == "the reply could not be read: RuntimeError: a mistake"
        assert reading.reply.fault is None


def test_a_failure_is_read_once() -> None:
    reading = ReplyReader("openai-chat")
    reading.fail(Fault(Code.NETWORK, "gone"))
    assert reading.has_failed
    reading.give_up("no more")
    reading.give_up("no more")
    assert reading.warning == "no more"


def test_a_coding_is_undone_as_long_as_that_goes() -> None:
    undoing = BodyDecoder(" GZIP")
    data = gzip.compress(b"abc")
    assert undoing.feed(data[:5]) + undoing.feed(data[5:]) == b"abc"
    assert undoing.feed(b"rubbish") == b""
    assert "gzip" in undoing.trouble
    assert undoing.feed(b"more") == b"more"
    assert "br" in BodyDecoder("br").trouble
