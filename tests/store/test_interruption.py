from sightline.model.exchange import ExchangeCancelled, ExchangeFailed
from sightline.store.entries import FactEntry
from sightline.store.interruption import Unfinished, interruptions


def test_a_hold_is_cancelled_and_anything_else_has_failed() -> None:
    held, sent = interruptions([Unfinished("x_1", 2, "held"), Unfinished("x_2", 3, "sending")], at=7.0)
    assert held == FactEntry("x_1", 2, 7.0, ExchangeCancelled("interrupted"))
    assert (sent.exchange, sent.n, sent.at) == ("x_2", 3, 7.0)
    assert isinstance(sent.fact, ExchangeFailed)
    assert (sent.fact.code, sent.fact.hint) == ("interrupted", "Send it again.")
