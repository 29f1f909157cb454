"""What the chat adds to the exchanges of a send."""

from collections.abc import Sequence

import msgspec
import pytest

from sightline.chat.core.sending import Delivered
from sightline.chat.core.telemetry import SendTelemetry
from sightline.chat.service.answer_progress import SendTracing
from sightline.errors import Code, Fault
from sightline.exchange.hub import Hub
from sightline.model.exchange import Budgeted, Dropped, ExchangeCancelled
from sightline.store.entries import Entry, FactEntry
from tests.chat.core.stage import answered, driven, history_of, planned, view_of


def telemetry() -> tuple[SendTelemetry, ...]:
    _, ending = driven(planned(view_of(history_of(answered("a"))), "my secret"), [Delivered()])
    return ending.telemetry


def test_what_is_told_before_an_attempt_goes_along_and_what_came_of_it_is_added() -> None:
    entries: list[Entry] = []
    tracing = SendTracing(Hub(entries.extend), lambda: 7.0, lambda text: text.replace("secret", "•"))
    attempt, success = telemetry()
    (first,) = tracing.plan_telemetry((attempt,))
    assert first["messages"][-1] == {"role": "user", "content": "my •"}  # type: ignore[index,call-overload]
    tracing.add((success,))
    assert entries == [], "there was no exchange"
    tracing.on_recorded(FactEntry("x", 4, 1.0, ExchangeCancelled()))
    assert tracing.plan_telemetry((success, attempt)) == (first,)
    (noted,) = entries
    assert isinstance(noted, FactEntry)
    assert (noted.exchange, noted.n, noted.at) == ("x", 5, 7.0)
    assert isinstance(noted.fact, Budgeted)
    assert noted.fact.telemetry == msgspec.to_builtins(msgspec.structs.replace(success, messages=())) | {
        "messages": [],
        "selection": [{"id": "a", "model": "acme", "tokens": 20}],
        "trimmingRemoved": [],
    }
    tracing.add((success,))
    assert isinstance(entries[1], FactEntry)
    assert entries[1].n == 6


def test_a_drop_is_remembered_until_something_else_happens() -> None:
    tracing = SendTracing(Hub(lambda _entries: None), lambda: 7.0, str)
    tracing.on_recorded(FactEntry("x", 1, 1.0, Dropped("no")))
    assert tracing.was_dropped
    tracing.on_recorded(FactEntry("y", 0, 1.0, ExchangeCancelled()))
    assert not tracing.was_dropped


def test_a_record_that_cannot_be_written_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def full(_entries: Sequence[Entry]) -> None:
        raise Fault(Code.CONFIG, "the disk is full")

    tracing = SendTracing(Hub(full), lambda: 7.0, str)
    tracing.on_recorded(FactEntry("x", 1, 1.0, ExchangeCancelled()))
    tracing.add(telemetry()[-1:])
    assert "could not be recorded: the disk is full" in caplog.text
