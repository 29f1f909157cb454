import pytest

from sightline.catalog.facts import Facts, Prices
from sightline.editing.cost import EditCost, cost_of
from sightline.model.message import Message
from sightline.model.parts import Text
from sightline.model.request import Request
from sightline.tokens.estimator import Estimator

LONG = "The quick brown fox jumps over the lazy dog. " * 200
FACTS = Facts(prices=Prices(input=3.0, output=15.0, cached=0.3))
ESTIMATOR = Estimator(FACTS, dialect="openai-chat")


def said(role: str, text: str, at: str = "") -> Message:
    return Message(role, (Text(text),), at=at)


def request(*messages: Message) -> Request:
    return Request(model="m", messages=messages, dialect="openai-chat")


SYSTEM = said("system", LONG, "/messages/0")
FIRST = said("user", f"One. {LONG}", "/messages/1")
ANSWER = said("assistant", "Well.", "/messages/2")
SECOND = said("user", "Two.", "/messages/3")
PREVIOUS = request(SYSTEM, FIRST)
ORIGINAL = request(SYSTEM, FIRST, ANSWER, SECOND)


def test_the_first_request_of_a_conversation_breaks_nothing() -> None:
    assert cost_of(None, ORIGINAL, ORIGINAL, ESTIMATOR, FACTS) == EditCost()


def test_an_unedited_request_that_goes_on_keeps_all() -> None:
    cost = cost_of(PREVIOUS, ORIGINAL, ORIGINAL, ESTIMATOR, FACTS)
    assert cost.kept_tokens > 2000
    assert (cost.broken_tokens, cost.broken_by_edit, cost.reason, cost.section) == (0, 0, "", "")
    assert (cost.money, cost.money_by_edit) == (0, 0)


def test_an_edit_of_the_past_costs_what_stood_behind_it() -> None:
    edited = request(SYSTEM, said("user", "One, shortened.", "/messages/1"), ANSWER, SECOND)
    cost = cost_of(PREVIOUS, ORIGINAL, edited, ESTIMATOR, FACTS, section_at={"/messages/1": "s2"}.__getitem__)
    assert (cost.section, cost.pointer, cost.reason) == ("s2", "/messages/1", "an earlier message changed")
    assert cost.broken_by_edit == cost.broken_tokens > 1000
    assert cost.money_by_edit == cost.money == pytest.approx(cost.broken_tokens * 2.7e-6)


def test_an_edit_of_the_last_message_costs_nothing() -> None:
    edited = request(SYSTEM, FIRST, ANSWER, said("user", "Two, please."))
    assert cost_of(PREVIOUS, ORIGINAL, edited, ESTIMATOR, FACTS).broken_tokens == 0


def test_what_the_client_broke_itself_is_not_the_edits_doing() -> None:
    own = request(said("system", "Changed by the client."), FIRST, ANSWER, SECOND)
    edited = request(said("system", "Changed by the client and by me."), FIRST, ANSWER, SECOND)
    cost = cost_of(PREVIOUS, own, edited, ESTIMATOR, Facts())
    assert cost.broken_tokens > 2000
    assert (cost.broken_by_edit, cost.reason, cost.section) == (0, "system prompt changed", "")
    assert cost.money is None
