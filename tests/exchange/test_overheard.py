import pytest

from sightline.exchange.hub import Hub
from sightline.exchange.observed_hub import ObservedHub
from sightline.model.exchange import AttemptStarted, FrameArrived, Received
from sightline.store.entries import BodyEntry, Entry, FactEntry

ENTRIES: list[Entry] = [
    BodyEntry("aa", b"{}"),
    FactEntry("x_1", 0, 1.0, Received("anthropic", "m", "aa")),
    FactEntry("x_1", 1, 1.0, AttemptStarted(1, "acme", "aa")),
    FactEntry("x_1", 2, 1.0, FrameArrived(b"data", 0.1)),
]


def test_facts_are_told_once_they_are_on_record_and_frames_are_not() -> None:
    recorded: list[Entry] = []
    told: list[FactEntry] = []

    def tell(noted: FactEntry) -> None:
        assert recorded == ENTRIES
        told.append(noted)

    ObservedHub(Hub(recorded.extend), tell).record(ENTRIES)
    assert told == ENTRIES[1:3]


def test_whoever_watches_all_of_it_hears_of_this_one_too() -> None:
    hub = Hub(lambda _entries: None)
    overheard = ObservedHub(hub, lambda _noted: None)
    assert not overheard.is_watched
    with hub.watch() as watch:
        assert overheard.is_watched
        overheard.record(ENTRIES)
        frame = ENTRIES[3]
        assert isinstance(frame, FactEntry)
        overheard.show(frame)
        assert watch._waiting.qsize() == 3


def test_a_record_that_fails_keeps_nobody_in_the_dark() -> None:
    def full(_entries: object) -> None:
        raise OSError(28, "No space left on device")

    told: list[FactEntry] = []
    with pytest.raises(OSError, match="No space left"):
        ObservedHub(Hub(full), told.append).record(ENTRIES)
    assert len(told) == 2
