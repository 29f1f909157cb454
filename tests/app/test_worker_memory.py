"""The memory that a worker shares with the main process."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.app.worker_memory import RING, Sent, WorkerCounts, WorkerLedger, WorkerMemory
from sightline.catalog.facts import Facts
from sightline.tokens.ledger import Ledger

NAMES, VALUES = (b"X-RateLimit-Limit-Requests", b"x-ratelimit-remaining-requests"), (b"9", b"0")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[WorkerMemory]:
    made = WorkerMemory.create(tmp_path)
    yield made
    made.close()


def test_what_a_worker_counts_is_in_the_ledger_of_the_main_process(memory: WorkerMemory) -> None:
    worker, ledger = WorkerLedger(memory), Ledger()
    counts = WorkerCounts(memory, ledger, lambda: 1000.0)
    ledger.catch_up = counts.count_in
    first, second, third = (worker.add_request("acme", "m", 10, 5.0) for _ in range(3))
    assert ledger.usage("acme", "m", 1000.0)[:2] == (3, 30)
    worker.settle(first, 25, 6.0)
    worker.settle(worker.settle(second, 0, 6.0), 4, 7.0)
    worker.unsent(third, 6.0)
    assert ledger.usage("acme", "m", 1000.0)[:2] == (2, 29)
    assert ledger.wait("acme", "m", 1, 1000.0, Facts(rpm=2)).reason == "used_up"


def test_what_a_provider_says_to_a_worker_is_known_to_the_main_process(memory: WorkerMemory) -> None:
    worker, ledger = WorkerLedger(memory), Ledger()
    ledger.catch_up = WorkerCounts(memory, ledger, lambda: 1000.0).count_in
    worker.keep_headers(worker.add_request("acme", "m", 1, 5.0), NAMES, VALUES, 5.0)
    assert ledger.wait("acme", "m", 1, 1000.0).reason == "reported"
    worker.observe_headers("acme", "other", {"retry-after": "30"}, 5.0)
    assert ledger.wait("acme", "other", 1, 1000.0).reason == "asked"


def test_nothing_is_lost_where_the_ring_begins_anew_or_has_no_room(memory: WorkerMemory) -> None:
    long = "m" * 5000
    taken: list[int] = []
    for number in range(3 * RING // len(long)):
        memory.add(Sent(number, "acme", long, 1))
        if number % 100 == 0:
            taken += [change.number for change in memory.take() if isinstance(change, Sent)]
    for number in range(10_000, 10_000 + 2 * RING // len(long)):
        memory.add(Sent(number, "acme", long, 1))
    while changes := memory.take():
        taken += [change.number for change in changes if isinstance(change, Sent)]
        memory.add_late()
    last = 10_000 + 2 * RING // len(long)
    assert taken == [*range(3 * RING // len(long)), *range(10_000, last)]


def test_the_flag_of_the_main_process_is_seen_at_the_other_end(memory: WorkerMemory) -> None:
    other = WorkerMemory(os.dup(memory.file))
    assert not other.wants_all
    memory.set_wants_all(wants_all=True)
    assert other.wants_all
    memory.set_wants_all(wants_all=False)
    assert not other.wants_all
    other.close()
