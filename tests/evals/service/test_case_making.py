import asyncio
from pathlib import Path

import pytest

from sightline.errors import Fault
from sightline.evals.core.making.recording import RecordedExchange
from sightline.evals.service.suite_files import conversation, make_masked_case, turns_in
from sightline.store.entries import Entry
from tests.recordings import exchange, store_with
from tests.store.traffic import NOON, chat_body, chat_stream

KEY = "the-secret-key"


def told(folder: Path, ids: list[str], *entries: list[Entry]) -> tuple[RecordedExchange, ...]:
    async def read() -> tuple[RecordedExchange, ...]:
        async with store_with(folder, *entries) as store:
            return await conversation(store, ids, now=NOON)

    return asyncio.run(read())


def test_exchanges_become_a_case_without_keys(tmp_path: Path) -> None:
    first = exchange("x_1", chat_body(f"My key is {KEY}."), chat_stream("I ", "see."))
    second = exchange("x_2", chat_body("Hi", "Hello.", f"My key is {KEY}."), chat_stream("So ", "it is."), at=NOON + 60)
    both = told(tmp_path, ["2", "x_1"], first, second)
    assert turns_in(both) == 2
    made = make_masked_case(both, "about keys", [KEY])
    assert made.case["id"] == "about-keys"
    assert made.case["expected_output"] == "So it is."
    assert KEY not in made.text
    live = make_masked_case(both, "about keys", [KEY], from_turn=2)
    assert len(live.case["turns"]) == 1  # type: ignore[arg-type]


def test_one_that_was_not_answered_has_no_expectation(tmp_path: Path) -> None:
    (only,) = told(tmp_path, ["x_1"], exchange("x_1", chat_body("Hi")))
    assert only.reply is None


def test_a_count_is_no_conversation(tmp_path: Path) -> None:
    counted = exchange(
        "x_1", b'{"model":"m","messages":[]}', [b"{}"], spoken="anthropic", path="/v1/messages/count_tokens"
    )
    with pytest.raises(Fault, match="x_1 only counts tokens"):
        told(tmp_path, ["x_1"], counted)


def test_an_exchange_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="there is no exchange"):
        told(tmp_path, ["x_9"])
