import msgspec

from sightline.model.exchange import (
    AttemptStarted,
    ExchangeFinished,
    Fact,
    FrameArrived,
    Held,
    Received,
    Released,
)

SENT = AttemptStarted(1, "acme", "aa")


def test_facts_survive_being_written_down() -> None:
    received = Received("anthropic", "claude", "aa")
    facts = (received, Held(), Released("aa"), SENT, FrameArrived(b"\x00\xff"), ExchangeFinished("stop"))
    assert msgspec.json.decode(msgspec.json.encode(facts), type=tuple[Fact, ...]) == facts
    older = b'{"kind":"attempt","number":1,"provider":"acme","sha256":"aa"}'
    assert msgspec.json.decode(older, type=AttemptStarted) == SENT
