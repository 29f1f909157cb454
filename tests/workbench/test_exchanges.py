import asyncio
import json

import pytest

from sightline.errors import Code, Fault
from sightline.exchange.recording.records import Records
from sightline.filters.parsing import parse
from sightline.model.exchange import AttemptStarted, ExchangeFinished, FrameArrived, Received
from sightline.store.entries import BodyEntry, FactEntry
from sightline.workbench.exchanges import Exchanges
from tests.server.running import ListStore


@pytest.fixture
def store() -> ListStore:
    store = ListStore()
    for number in range(5):
        exchange = f"x_{number}"
        store.record(
            [
                BodyEntry("aa", b'{"model": "m"}'),
                BodyEntry("bb", b'{"model":"n"}'),
                FactEntry(exchange, 0, float(number), Received("anthropic", "m", "aa")),
                FactEntry(exchange, 1, 1.0, AttemptStarted(1, "acme", "bb")),
                FactEntry(exchange, 2, 1.0, FrameArrived(b"<b>o", 0.1)),
                FactEntry(exchange, 3, 1.0, FrameArrived(b"k</b>", 0.2)),
                FactEntry(exchange, 4, 2.0, ExchangeFinished("stop", 200)),
            ]
        )
    return store


def over(store: ListStore) -> Exchanges:
    records = Records(store, lambda: 10.0, lambda _provider, _model: None)  # type: ignore[arg-type]
    return Exchanges(records, lambda: 10.0)


def listed(store: ListStore, query: str) -> list[str]:
    found = asyncio.run(over(store).list_exchanges(query))["exchanges"]
    return [each["id"] for each in json.loads(json.dumps(found))]


def test_lists_are_newest_first_and_go_on_from_the_last_seen(store: ListStore) -> None:
    assert listed(store, "") == ["x_4", "x_3", "x_2", "x_1", "x_0"]
    assert listed(store, "limit=2") == ["x_4", "x_3"]
    assert listed(store, "limit=2&before=x_3") == ["x_2", "x_1"]


@pytest.mark.parametrize(
    ("told", "taken"), [("", 100), ("0", 1), ("-3", 1), ("500", 500), ("501", 500), ("9" * 30, 500)]
)
def test_a_limit_out_of_range_is_brought_into_it(store: ListStore, told: str, taken: int) -> None:
    listed(store, f"limit={told}")
    assert store.found[-1] == (parse(""), "", taken)


@pytest.mark.parametrize("told", ["x", "1.5", "1e3", "1;2"])
def test_a_limit_that_is_no_number_is_refused(store: ListStore, told: str) -> None:
    with pytest.raises(Fault) as caught:
        listed(store, f"limit={told}")
    assert caught.value.status == 400


def test_the_filter_is_the_one_language(store: ListStore) -> None:
    listed(store, "filter=model%3Aclaude-*%20%26%20tokens%3E5k")
    assert store.found[-1][0] == parse("model:claude-* & tokens>5k")
    with pytest.raises(Fault) as caught:
        listed(store, "filter=model%3A(")
    assert caught.value.hint


def test_one_exchange_is_told_in_short(store: ListStore) -> None:
    assert asyncio.run(over(store).summary("x_2")).provider == "acme"
    with pytest.raises(Fault) as caught:
        asyncio.run(over(store).summary("x_"))
    assert caught.value.status == 404


@pytest.mark.parametrize(
    ("query", "body"),
    [
        ("", b'{"model":"n"}'),
        ("of=sent", b'{"model":"n"}'),
        ("of=received", b'{"model": "m"}'),
        ("of=original", b'{"model": "m"}'),
        ("of=reply", b"<b>ok</b>"),
    ],
)
def test_bodies_are_exact(store: ListStore, query: str, body: bytes) -> None:
    answer = asyncio.run(over(store).body("x_1", query))
    assert (answer.status, answer.body) == (200, body)
    assert b"html" not in dict(answer.headers)[b"content-type"]


def test_a_body_that_nobody_knows_is_refused(store: ListStore) -> None:
    with pytest.raises(Fault) as caught:
        asyncio.run(over(store).body("x_1", "of=thoughts"))
    assert caught.value.code is Code.INVALID_REQUEST
    for query in ("", "of=held"):
        with pytest.raises(Fault) as caught:
            asyncio.run(over(store).body("x_9", query))
        assert caught.value.status == 404


def test_what_is_not_held_has_no_held_body(store: ListStore) -> None:
    with pytest.raises(Fault) as caught:
        asyncio.run(over(store).body("x_1", "of=held"))
    assert caught.value.status == 409


def test_a_body_that_the_record_has_forgotten_is_not_found(store: ListStore) -> None:
    store.entries = [each for each in store.entries if isinstance(each, FactEntry)]
    with pytest.raises(Fault) as caught:
        asyncio.run(over(store).body("x_1", ""))
    assert caught.value.status == 404


def test_the_newest_few(store: ListStore) -> None:
    assert [each.id for each in asyncio.run(over(store).newest(2))] == ["x_4", "x_3"]
