import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.desk_stage import DeskStage, desk_stage
from tests.gateway_server import served
from tests.person import Person

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
RULE = {
    "filter": "model:claude-*", "action": "hold", "phase": "request", "once": True, "timeout_s": 30.0,
    "on_timeout": "drop",
}  # fmt: skip


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeskStage]:
    with desk_stage(tmp_path_factory.mktemp("interceptions")) as made:
        yield made


@pytest.fixture(autouse=True)
def cleared(stage: DeskStage) -> Iterator[None]:
    yield
    stage.person.put("/api/rules", [])
    stage.person.put("/api/masks", [])
    stage.person.put("/api/interception", {"mode": "rules"})


def test_rules_are_put_in_place_whole_and_read_back(stage: DeskStage) -> None:
    person = stage.person
    assert person.put("/api/rules", [RULE, {"filter": ""}]) == person.get("/api/rules")
    first, second = person.get("/api/rules")
    assert first == RULE
    assert second == {
        "filter": "", "action": "hold", "phase": "request", "once": False, "timeout_s": None, "on_timeout": "send",
    }  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        5,
        [5],
        [RULE, {"filter": "model:("}],
        [{"filter": "nofield:x"}],
        [{"filter": "latest:5"}],
        [{"filter": "", "action": "shout"}],
        [{"filter": "", "phase": "reply"}],
        [{"filter": "", "timeout_s": -1}],
        [{"filter": "", "colour": "red"}],
        [{"filter": "", "\ud800": "red"}],
    ],
)
def test_a_bad_list_is_refused_whole(stage: DeskStage, wrong: Any) -> None:
    stage.person.put("/api/rules", [RULE])
    status, told = stage.person.ask("PUT", "/api/rules", wrong)
    assert status == 422
    assert told["error"]["hint"]
    assert stage.person.get("/api/rules") == [RULE]


def test_invalid_filter_is_reported_with_its_rule_and_position(stage: DeskStage) -> None:
    _, told = stage.person.ask("PUT", "/api/rules", [RULE, {"filter": "model:x & colour:red"}])
    assert "rule 2" in told["error"]["message"]
    assert "^" in told["error"]["hint"]


def test_next_holds_one_request_and_every_holds_all(stage: DeskStage) -> None:
    person = stage.person
    assert person.put("/api/interception", {"mode": "next"}) == {"mode": "next"}
    exchange, waiting = stage.hold(BODY)
    assert person.get("/api/interception") == {"mode": "rules"}
    assert stage.ask(BODY).result(20).status == 200
    person.put("/api/interception", {"mode": "off"})
    assert person.view(exchange)["state"] == "held", "a hold does not end because the mode does"
    person.release(exchange)
    assert waiting.result(20).status == 200
    for wrong in ({}, {"mode": "sometimes"}, {"mode": 5}, {"mode": "off", "more": 1}):
        assert person.ask("PUT", "/api/interception", wrong)[0] == 422


def test_masks_are_put_in_place_whole(stage: DeskStage) -> None:
    person = stage.person
    strip = {"scope": "all", "kind": "strip", "strip": {"class": "tool", "tool": "rm"}}
    (kept,) = person.put("/api/masks", [strip])
    assert kept["id"]
    assert person.get("/api/masks") == [kept]
    for wrong in ({"scope": "all", "kind": "delete"}, {**strip, "scope": "session"}, {**strip, "x": 1}, 5):
        assert person.ask("PUT", "/api/masks", [strip, wrong])[0] == 422
    assert person.ask("PUT", "/api/masks", {})[0] == 422
    assert person.get("/api/masks") == [kept]
    tools = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
        for name in ("rm", "ls")
    ]
    assert stage.ask({**BODY, "tools": tools}).result(20).status == 200
    assert [tool["function"]["name"] for tool in json.loads(stage.sent[-1])["tools"]] == ["ls"]


def test_a_mask_always_says_whom_it_is_for(stage: DeskStage) -> None:
    strip = {"kind": "strip", "strip": {"class": "thinking"}}
    masks = [{**strip, "scope": "session", "name": "s"}, {**strip, "scope": "project", "name": "p"}]
    for told in (stage.person.put("/api/masks", masks), stage.person.get("/api/masks")):
        assert [(mask["scope"], mask["name"]) for mask in told] == [("session", "s"), ("project", "p")]


def test_rules_mode_and_masks_survive_a_restart_and_holds_do_not(tmp_path: Path) -> None:
    strip = {"scope": "all", "kind": "strip", "strip": {"class": "thinking"}}
    with desk_stage(tmp_path) as stage:
        stage.person.put("/api/rules", [RULE])
        stage.person.put("/api/masks", [strip])
        exchange, waiting = stage.hold(BODY)
        stage.server.listening.end()
        assert waiting.result(20).status == 503
    kept = tmp_path / "data" / "interception.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    with served(tmp_path, (tmp_path / "sightline.toml").read_text()) as server:
        person = Person(server)
        assert person.get("/api/rules") == [RULE]
        assert [mask["strip"] for mask in person.get("/api/masks")] == [{"class": "thinking"}]
        assert person.get("/api/interception") == {"mode": "every"}
        assert person.get("/api/holds") == []
        assert person.view(exchange)["state"] == "cancelled"


# --- masks ------------------------------------------------------------------------------------------

TERSE = {"scope": "all", "kind": "patch", "anchor": {"kind": "system"}, "hunks": [{"old": "kind", "new": "terse"}]}
KIND = {"model": "m", "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}]}


def test_a_mask_reports_how_often_it_was_applied_and_is_removed_by_its_id(stage: DeskStage) -> None:
    person = stage.person
    person.put("/api/interception", {"mode": "off"})
    strip = {"scope": "session", "name": "one", "kind": "strip", "strip": {"class": "tool", "tool": "weigh"}}
    first, second = person.put("/api/masks", [TERSE, strip])
    assert (first["applied"], first["missed"], first["last_exchange"]) == (0, 0, None)
    exchange = stage.ask(KIND, session="one").result(30).exchange
    stage.ask(BODY, session="two").result(30)
    first, second = person.get("/api/masks")
    assert {key: first[key] for key in ("scope", "kind", "applied", "missed", "last_exchange")} == {
        "scope": "all", "kind": "patch", "applied": 1, "missed": 1, "last_exchange": exchange,
    }  # fmt: skip
    assert (second["applied"], second["missed"], second["last_exchange"]) == (0, 1, None)
    assert "at" in first
    assert person.put("/api/masks", [second, first])[1]["applied"] == 1  # what was read can be put back
    assert person.ask("DELETE", f"/api/masks/{second['id']}") == (200, [first])
    status, told = person.ask("DELETE", f"/api/masks/{second['id']}")
    assert (status, told["error"]["hint"]) == (404, "GET /api/masks lists them with their ids.")
    assert person.ask("GET", f"/api/masks/{first['id']}")[0] == 405


def test_counts_are_there_after_a_restart(tmp_path: Path) -> None:
    with desk_stage(tmp_path) as stage:
        stage.person.put("/api/interception", {"mode": "off"})
        stage.person.put("/api/masks", [TERSE])
        exchange = stage.ask(KIND).result(30).exchange
    with served(tmp_path, (tmp_path / "sightline.toml").read_text()) as server:
        (mask,) = Person(server).get("/api/masks")
    assert (mask["applied"], mask["missed"], mask["last_exchange"]) == (1, 0, exchange)
