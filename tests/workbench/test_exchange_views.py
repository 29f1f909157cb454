import asyncio
import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from sightline.catalog.catalog import Catalog
from sightline.errors import Fault
from sightline.exchange.interception.holds import Holds
from sightline.exchange.interception.viewer import Viewer
from sightline.exchange.memory import Memory
from sightline.exchange.recording.exchange_record import RecordedExchange
from sightline.exchange.recording.records import Records
from sightline.model.exchange import RAW_HTTP, AttemptStarted, BodyPassed, Received
from sightline.store.entries import FactEntry
from sightline.store.summary import find_prices, summary_of
from sightline.web.bodies import Query
from sightline.workbench.exchange_views import Showing, view
from tests.desk_stage import DeskStage, desk_stage
from tests.http_call import call
from tests.reply_samples import SAYS, streamed
from tests.server.running import ListStore
from tests.store.traffic import NOON, answered, chat_body, chat_stream, noted, received
from tests.upstream import LAST, chunk, head, pieces

SSE = [("Content-Type", "text/event-stream")]
LONG = "A long instruction. " * 400


def body(*words: str, **more: object) -> bytes:
    return chat_body(*words, system=LONG, **more)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeskStage]:
    facts = "[models.large]\ncontext_window = 200000\nmax_output = 16000\n"
    with desk_stage(tmp_path_factory.mktemp("showing"), config=facts) as made:
        yield made


def sent(stage: DeskStage, data: bytes, session: str = "one") -> str:
    """The id of an exchange that is over."""
    exchange, waiting = stage.hold(data, session=session)
    assert stage.person.release(exchange)[0] == 200
    waiting.result(20)
    stage.person.ended(exchange)
    return exchange


def test_what_is_held_is_shown_with_all_that_a_person_needs(stage: DeskStage) -> None:
    exchange, waiting = stage.hold(body("hi"), session="shown@lab")
    view = stage.person.view(exchange)
    assert (view["id"], view["state"], view["provider"], view["session"]) == (exchange, "held", "acme", "shown@lab")
    assert [section["kind"] for section in view["sections"]] == ["system", "user", "options"]
    assert view["sections"][0]["tokens"]["tokens"] > 500
    tokens = view["tokens"]
    assert (tokens["window"], tokens["reserve"]) == (200000, 16000)
    assert tokens["low"] <= tokens["estimate"] <= tokens["high"]
    assert sum(category["tokens"] for category in tokens["categories"]) == tokens["estimate"]
    assert view["validity"] == {"ok": True, "problems": []}
    assert (view["dirty"], view["can_undo"], view["can_redo"]) == (False, False, False)
    hold = view["hold"]
    assert (hold["phase"], hold["deadline"], hold["queue"]) == ("request", None, [exchange])
    assert view["hashes"] == {"received": view["body_sha256"], "sent": None, "reply": None}
    assert (view["losses"], view["additions"], view["replays"], view["masks"]) == ([], [], [], [])
    stage.person.release(exchange)
    waiting.result(20)


def test_what_is_over_is_shown_as_it_was_sent_and_cannot_be_edited(stage: DeskStage) -> None:
    exchange = sent(stage, body("hi there"))
    view = stage.person.view(exchange)
    assert view["state"] == "finished"
    assert [section["text"] for section in view["sections"][:2]] == [LONG, "hi there"]
    assert not any(section["editable"] for section in view["sections"])
    assert not any(part["editable"] for section in view["sections"] for part in section["parts"])
    assert (view["tokens"]["input_tokens"], view["tokens"]["window"]) == (11, 200000)
    assert "hold" not in view
    assert view["validity"]["ok"] is True
    again = stage.person.view(exchange)
    assert again["sections"] == view["sections"]


def test_frames_can_be_left_out(stage: DeskStage) -> None:
    exchange = sent(stage, body("frames?"))
    (full,) = [fact for fact in stage.person.get(f"/api/exchanges/{exchange}")["facts"] if fact["kind"] == "frame"]
    (bare,) = [fact for fact in stage.person.view(exchange)["facts"] if fact["kind"] == "frame"]
    assert full.pop("data")
    assert full == bare
    assert bare["size"] > 100


def test_each_text_can_be_asked_for_once(stage: DeskStage) -> None:
    exchange = sent(stage, body("once?"))
    full = stage.person.view(exchange)
    short = stage.person.get(f"/api/exchanges/{exchange}?frames=0&texts=once")
    joined = short.pop("joined")
    assert joined
    for section in short["sections"]:
        if section["id"] in joined:
            assert section["text"] == ""
            section["text"] = "".join(part["text"] for part in section["parts"])
    assert short == full


def test_an_answer_is_folded_while_it_comes(stage: DeskStage) -> None:
    frames = streamed("openai-chat", SAYS)
    loop = stage.upstream._loop
    gate = asyncio.run_coroutine_threadsafe(_event(), loop).result(60)
    stage.upstream.script = [pieces(head(200, SSE), chunk(frames[0]), gate, *map(chunk, frames[1:]), LAST)]
    person = stage.person
    try:
        exchange, waiting = stage.hold(body("stream", stream=True))
        person.release(exchange)
        reply = person.until(
            lambda: person.get(f"/api/exchanges/{exchange}/reply"),
            lambda told: bool(told["reply"]) and bool(told["reply"]["parts"]),
        )
        assert reply["reply"]["parts"] == [{"type": "text", "text": "Hello "}]
        assert not {"finish", "fault"} & set(reply["reply"]), "it is on its way, and has not failed"
        assert reply["raw"].startswith("data: ")
        view = person.view(exchange)
        assert view["state"] == "sending"
        assert [fact["kind"] for fact in view["facts"]][-1] == "frame"
        loop.call_soon_threadsafe(gate.set)
        assert waiting.result(20).body == b"".join(frames)
        person.ended(exchange)
        whole = person.get(f"/api/exchanges/{exchange}/reply")
        assert (whole["reply"]["parts"][0]["text"], whole["reply"]["finish"]) == ("Hello there.", "stop")
        assert whole["events"] > reply["events"]
        assert whole["by_hand"] is False
    finally:
        loop.call_soon_threadsafe(gate.set)
        stage.says()


async def _event() -> asyncio.Event:
    return asyncio.Event()


def test_what_has_not_been_sent_has_no_reply(stage: DeskStage) -> None:
    exchange, waiting = stage.hold(body("wait"))
    assert stage.person.get(f"/api/exchanges/{exchange}/reply") == {
        "reply": None, "raw": "", "events": 0, "by_hand": False,
    }  # fmt: skip
    stage.person.act(exchange, "drop")
    waiting.result(20)


def test_an_edit_costs_what_it_breaks_of_the_prefix_that_the_request_before_has_left(stage: DeskStage) -> None:
    person = stage.person
    first = sent(stage, body("one"), session="turns")
    exchange, waiting = stage.hold(body("one", "Hello there.", "two"), session="turns")
    view = person.view(exchange)
    assert (view["thread"]["previous"], view["previous"]) == (first, first)
    assert view["edit_cost"]["kept_tokens"] >= 1024
    assert view["edit_cost"]["broken_by_edit"] == 0
    told = person.edit(
        exchange, "?changed=1", op="set_text", section=view["sections"][0]["id"], text=LONG.replace("A", "An", 1)
    )[1]
    cost = told["edit_cost"]
    assert cost["broken_by_edit"] >= 1024
    assert cost["section"] == view["sections"][0]["id"]
    diff = person.get(f"/api/exchanges/{exchange}/diff?against=previous")
    changes = [(item["change"], item["kind"]) for item in diff["items"] if item["change"] != "same"]
    assert changes == [("changed", "system"), ("added", "assistant"), ("added", "user")]
    assert diff["prefix"] == cost
    original = person.get(f"/api/exchanges/{exchange}/diff?against=original")
    assert [item["change"] for item in original["items"]].count("changed") == 1
    other = person.get(f"/api/exchanges/{exchange}/diff?against={first}")
    assert (other["against"], other["prefix"]) == (first, None)
    person.release(exchange)
    waiting.result(20)
    person.ended(exchange)
    over = person.get(f"/api/exchanges/{exchange}/diff?against=original")
    assert [item["change"] for item in over["items"]] == [item["change"] for item in original["items"]]
    before = person.get(f"/api/exchanges/{exchange}/diff?against=previous")
    assert [item["change"] for item in before["items"]] == [item["change"] for item in diff["items"]]


def test_the_first_request_of_a_conversation_has_none_before_it(stage: DeskStage) -> None:
    exchange = sent(stage, body("alone"), session="alone")
    for against in ("previous", "x_nothing"):
        status, told = stage.person.ask("GET", f"/api/exchanges/{exchange}/diff?against={against}")
        assert (status, bool(told["error"]["hint"])) == (404, True)
    assert stage.person.get(f"/api/exchanges/{exchange}/diff")["prefix"] is None


def test_a_translated_request_is_shown_in_the_words_of_its_provider(stage: DeskStage) -> None:
    asked = {"model": "large", "max_tokens": 9, "top_k": 3, "messages": [{"role": "user", "content": "hi"}]}
    exchange, waiting = stage.hold(asked, spoken="anthropic")
    view = stage.person.view(exchange)
    assert [loss["what"] for loss in view["losses"]] == ["top_k"]
    assert view["dirty"] is False
    document = json.loads(stage.server.body(exchange, "sent"))
    assert document["messages"] == [{"role": "user", "content": "hi"}]
    assert "top_k" not in document
    stage.person.edited(exchange, op="set_text", section=view["sections"][0]["id"], text="ho")
    stage.person.release(exchange)
    assert waiting.result(20).json()["type"] == "message"
    shown = stage.person.ended(exchange)
    assert sha256(stage.sent[-1]).hexdigest() == shown["hashes"]["sent"]
    assert json.loads(stage.server.body(exchange, "received")) == asked
    (changed,) = [
        item for item in stage.person.get(f"/api/exchanges/{exchange}/diff")["items"] if item["change"] != "same"
    ]
    assert (changed["before"]["text"], changed["after"]["text"]) == ("hi", "ho")


def test_replays_are_named_by_the_one_that_they_repeat(stage: DeskStage) -> None:
    old = sent(stage, body("again"))
    _, told = stage.person.act(old, "replay")
    (new,) = stage.person.held()
    assert new == told["id"]
    stage.person.release(new)
    stage.person.ended(new)
    assert stage.person.view(old)["replays"] == [new]
    assert stage.person.view(new)["origin"] == old


def test_half_a_letter_that_a_client_sends_can_be_shown(stage: DeskStage) -> None:
    exchange, waiting = stage.hold(b'{"model":"m","messages":[{"role":"user","content":"odd \\ud83d half"}]}')
    assert stage.person.view(exchange)["sections"][0]["text"] == "odd \ud83d half"
    stage.person.release(exchange)
    waiting.result(20)


def test_a_body_that_its_dialect_cannot_read_is_shown_all_the_same(stage: DeskStage) -> None:
    exchange, waiting = stage.hold(b'{"model":"m","messages":5}')
    view = stage.person.view(exchange)
    assert [section["kind"] for section in view["sections"]] == ["other"]
    assert view["validity"]["ok"] is True, "what the client sent may be sent as it came"
    stage.person.act(exchange, "drop")
    waiting.result(20)


# --- records with holes ----------------------------------------------------------------------------


def over(store: ListStore) -> Showing:
    memory = Memory(Path("/nonexistent"), lambda: NOON)
    records = Records(store, lambda: NOON, lambda _provider, _model: None)
    holds = Holds(memory, lambda: NOON)
    return Showing(holds, records, Viewer(holds, records, Catalog(), memory))


def test_an_exchange_whose_bodies_are_gone_is_shown_without_sections() -> None:
    store = ListStore()
    data = chat_body("hi")
    store.record([*received("x_1", data), *answered("x_1", data, chat_stream("Hello"))])
    shown = over(store)
    assert asyncio.run(shown.view("x_1"))["sections"]
    assert asyncio.run(shown.diff("x_1", Query(""))).items
    store.entries = [each for each in store.entries if isinstance(each, FactEntry)]
    view = asyncio.run(over(store).view("x_1"))
    assert (view["state"], view["sections"]) == ("finished", [])
    for showing in (over(store), shown):
        with pytest.raises(Fault) as caught:
            asyncio.run(showing.diff("x_1", Query("against=original")))
        assert caught.value.status == 404


def test_a_look_at_an_exchange_takes_no_room_in_the_cache_of_prices() -> None:
    data = chat_body("hi")
    entries = [*received("x_1", data), *answered("x_1", data, chat_stream("Hello"))]
    facts = tuple(each for each in entries if isinstance(each, FactEntry))
    recorded = RecordedExchange(summary_of("x_1", facts, lambda _provider, _model: None), facts, b"", b"")
    view(recorded)
    known = find_prices.cache_info().misses
    view(recorded)
    assert find_prices.cache_info().misses == known


def test_a_body_that_passed_while_it_arrived_has_not_been_changed() -> None:
    digest = sha256(b"file").hexdigest()
    passed = BodyPassed("request", digest, size=4, kept=4, kept_sha256=digest)
    facts = [Received(RAW_HTTP, "", "", path="/v1/files", method="POST"), AttemptStarted(1, "acme", ""), passed]
    store = ListStore()
    store.record(noted("x_1", facts))
    view = asyncio.run(over(store).view("x_1"))
    assert (view["body_sha256"], view["dirty"], view["hashes"]["received"]) == (digest, False, digest)


def test_the_api_is_never_kept(stage: DeskStage) -> None:
    told = call("GET", f"{stage.server.url}/api/about", token=stage.server.token)
    assert (told.status, told.headers["cache-control"]) == (200, "no-store")
