from sightline.model.exchange import AttemptStarted, ExchangeFailed, ExchangeFinished, Fact, Held, Received, Translated
from sightline.store.entries import FactEntry
from sightline.store.pending_reading import REPLY, REQUEST, reply_dialect, to_read

ASKED = Received("anthropic", "m", "aa")


def read(*facts: Fact) -> int:
    return to_read([FactEntry("x", n, 0.0, fact) for n, fact in enumerate(facts)])


def test_a_request_and_an_end_are_to_be_read() -> None:
    assert read(Held()) == 0
    assert read(ASKED, Held()) == REQUEST
    assert read(ExchangeFailed("network", "cut")) == REPLY
    assert read(ASKED, ExchangeFinished("stop")) == REQUEST | REPLY


def test_the_reply_speaks_the_dialect_that_was_sent() -> None:
    assert reply_dialect([]) == ""
    assert reply_dialect([ASKED, AttemptStarted(1, "acme", "aa")]) == "anthropic"
    assert reply_dialect([ASKED, Translated("gemini", "bb", 0)]) == "gemini"
    sent = AttemptStarted(1, "acme", "aa", dialect="openai-chat")
    assert reply_dialect([ASKED, sent]) == "openai-chat"
    assert reply_dialect([ASKED, sent, Translated("anthropic", "cc", 1)]) == "openai-chat"
