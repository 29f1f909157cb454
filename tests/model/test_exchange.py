import msgspec
import pytest

from sightline.model.exchange import (
    Answered,
    AttemptStarted,
    Budgeted,
    Dropped,
    Edited,
    ExchangeCancelled,
    ExchangeFailed,
    ExchangeFinished,
    ExchangeHistory,
    Fact,
    FrameArrived,
    Held,
    Received,
    Released,
    State,
    Translated,
)

RECEIVED = Received("anthropic", "claude", "aa")
SENT = AttemptStarted(1, "acme", "aa")


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ((), "received"),
        ((RECEIVED, Translated("openai-chat", "bb", 2)), "received"),
        ((RECEIVED, Held()), "held"),
        ((RECEIVED, Held(), Edited("set_text", "aa", "bb")), "held"),
        ((RECEIVED, Held(), Released("bb")), "sending"),
        ((RECEIVED, Held(), Dropped("no")), "dropped"),
        ((RECEIVED, SENT, FrameArrived(b"x")), "sending"),
        ((RECEIVED, SENT, ExchangeFinished("stop")), "finished"),
        ((RECEIVED, SENT, ExchangeFailed("network", "gone")), "failed"),
        ((RECEIVED, SENT, ExchangeCancelled()), "cancelled"),
        ((RECEIVED, SENT, Held("tool_calls")), "held"),
        ((RECEIVED, Held(), Answered("cc")), "sending"),
        ((RECEIVED, SENT, ExchangeFinished("stop"), Budgeted({"stage": "success"})), "finished"),
    ],
)
def test_the_state_is_a_fold_over_the_facts(facts: tuple[Fact, ...], state: State) -> None:
    assert ExchangeHistory("x1", facts).state == state


def test_facts_survive_being_written_down() -> None:
    exchange = ExchangeHistory(
        "x1", (RECEIVED, Held(), Released("aa"), SENT, FrameArrived(b"\x00\xff"), ExchangeFinished("stop"))
    )
    assert msgspec.json.decode(msgspec.json.encode(exchange), type=ExchangeHistory) == exchange
    older = b'{"kind":"attempt","number":1,"provider":"acme","sha256":"aa"}'
    assert msgspec.json.decode(older, type=AttemptStarted) == SENT
