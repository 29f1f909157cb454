"""Delete on the page: one exchange or a filter, while the server runs."""

from pathlib import Path

import pytest

from tests.desk_stage import DeskStage, desk_stage

WORD = "planted-Zq7xKw"


def asked(stage: DeskStage, text: str, session: str) -> str:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    return stage.ask(body, session=session).result(30).exchange


def held(stage: DeskStage, text: str, session: str) -> str:
    return stage.hold({"model": "m", "messages": [{"role": "user", "content": text}]}, session=session)[0]


@pytest.fixture
def stage(tmp_path: Path):  # type: ignore[no-untyped-def]
    with desk_stage(tmp_path) as stage:
        stage.person.put("/api/interception", {"mode": "off"})
        yield stage


def listed(stage: DeskStage) -> list[str]:
    return [each["id"] for each in stage.person.get("/api/exchanges")["exchanges"]]


def test_one_exchange_is_deleted_and_no_file_holds_it(stage: DeskStage, tmp_path: Path) -> None:
    first, second = asked(stage, WORD, "one"), asked(stage, "other", "two")
    before = stage.server.body(second, "sent")
    with stage.person.listening() as told:
        status, gone = stage.person.ask("DELETE", f"/api/exchanges/{first}")
        assert (status, gone["exchanges"], gone["under_way"], gone["copies"]) == (200, 1, 0, [])
        assert gone["bytes"] > 0
        assert told.get(timeout=30) == {"exchanges": [first]}
    assert listed(stage) == [second]
    assert stage.server.body(second, "sent") == before
    assert stage.person.ask("GET", f"/api/exchanges/{first}")[0] == 404
    assert stage.person.ask("DELETE", f"/api/exchanges/{first}")[0] == 404
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert [path.name for path in files if WORD.encode() in path.read_bytes()] == []


def test_a_filter_is_counted_first_and_what_is_under_way_stays(stage: DeskStage) -> None:
    ended, other = asked(stage, "a", "one"), asked(stage, "b", "two")
    stage.person.put("/api/interception", {"mode": "every"})
    waiting = held(stage, "c", "one")
    status, counted = stage.person.ask("POST", "/api/forget", {"filter": "session:one", "dry_run": True})
    assert (status, counted["exchanges"], counted["under_way"]) == (200, 1, 1)
    assert set(listed(stage)) == {ended, other, waiting}
    assert stage.person.ask("POST", "/api/forget", {"filter": "session:one"}) == (200, counted)
    assert set(listed(stage)) == {other, waiting}
    status, refused = stage.person.ask("DELETE", f"/api/exchanges/{waiting}")
    assert status == 409
    assert "under way" in refused["error"]["message"]
    stage.person.ask("POST", f"/api/exchanges/{waiting}/drop")


@pytest.mark.parametrize("order", [{}, {"filter": " "}, {"filter": "model:"}, {"filter": "id:*", "all": True}])
def test_an_order_that_is_not_clear_deletes_nothing(stage: DeskStage, order: dict[str, object]) -> None:
    asked(stage, "a", "one")
    status, _ = stage.person.ask("POST", "/api/forget", order)
    assert status in (400, 422)
    assert len(listed(stage)) == 1


def test_retention_is_set_where_the_record_is_shown(stage: DeskStage, tmp_path: Path) -> None:
    asked(stage, "one", "one")
    record = stage.person.get("/api/record")
    assert (record["exchanges"], record["is_configured"]) == (1, True)
    assert record["bytes"] > 0
    assert Path(record["place"]).is_relative_to(tmp_path)
    wanted = {"days": 30, "megabytes": 0, "rules": [{"filter": "session:demo", "days": 1}]}
    after = stage.person.put("/api/record", wanted)
    assert (after["retention"], after["is_configured"], after["exchanges"]) == (wanted, False, 1)
    for bad in ({"days": -1, "megabytes": 0, "rules": []}, {**wanted, "rules": [{"filter": "colour:red", "days": 1}]}):
        assert stage.person.ask("PUT", "/api/record", bad)[0] == 422
    assert stage.person.get("/api/record")["retention"] == wanted
