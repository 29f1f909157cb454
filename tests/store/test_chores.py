from sightline.model.exchange import AttemptStarted, ExchangeFailed, ExchangeFinished, Fact, Held, Received, Translated
from sightline.store.chores import REPLY, REQUEST, spoken, to_read
from sightline.store.entries import Noted

ASKED = Received("anthropic", "m", "aa")


def read(*facts: Fact) -> int:
    return to_read([Noted("x", n, 0.0, fact) for n, fact in enumerate(facts)])


def test_a_request_and_an_end_are_to_be_read() -> None:
    assert read(Held()) == 0
    assert read(ASKED, Held()) == REQUEST
    assert read(ExchangeFailed("network", "cut")) == REPLY
    assert read(ASKED, ExchangeFinished("stop")) == REQUEST | REPLY


def test_the_reply_speaks_the_dialect_that_was_sent() -> None:
    assert spoken([]) == ""
    assert spoken([ASKED, AttemptStarted(1, "acme", "aa")]) == "anthropic"
    assert spoken([ASKED, Translated("gemini", "bb", 0)]) == "gemini"
    sent = AttemptStarted(1, "acme", "aa", dialect="openai-chat")
    assert spoken([ASKED, sent]) == "openai-chat"
    assert spoken([ASKED, sent, Translated("anthropic", "cc", 1)]) == "openai-chat"
