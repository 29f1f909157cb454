"""What would have helped against a miss: it is worked out on the record, and kept it really helps."""

import asyncio
import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sightline.cli.program import main
from tests.cache_breaks import MARKED_CHANGES, Body, Break, Sending, marked, other_breaks, play_all
from tests.caching_provider import CachingProvider
from tests.desk_stage import DeskStage, desk_stage
from tests.fake_clock import FakeClock

EDITS = {
    "change_system": {"move", "freeze", "strip"},
    "change_tool": {"freeze"},
    "add_tool": {"strip"},
    "swap_tools": {"order"},
    "think": {"option"},
    "choose_tool": {"option"},
    "change_message": {"freeze"},
    "drop_messages": set(),
    "insert_message": set(),
    "unmark": {"mark"},
    "outrun_marks": {"mark"},
    "overmark": {"mark"},
}


@pytest.mark.parametrize(("cause", "change"), MARKED_CHANGES)
def test_the_edits_that_would_have_helped_are_tried_on_the_record(tmp_path: Path, cause: str, change: Any) -> None:
    random_ = random.Random(4)
    sent = [Sending(copy.deepcopy(body)) for body in marked(random_, 3)]
    change(sent[-1].body, random_)
    (report,) = asyncio.run(play_all(tmp_path, [("fix@shop", Break(cause, "anthropic", sent, sent[-1]))]))
    lost = report.turns[-1].autopsy.lost_tokens
    (advice,) = report.advice
    wanted = EDITS[change.__name__]
    assert wanted <= {edit.action for edit in advice.edits} <= wanted | {"move", "strip"}
    for edit in advice.edits:
        assert (edit.saved_tokens, edit.tried, edit.mask.name) == (lost, 1, "fix@shop")
        assert edit.money == pytest.approx(report.money)


@pytest.mark.parametrize(
    ("dialect", "cause", "actions"),
    [
        ("openai-responses", "system", {"move", "freeze", "strip"}),
        ("openai-responses", "tools", {"freeze"}),
        ("openai-responses", "tools_order", {"order"}),
        ("openai-responses", "format", {"option"}),
        ("openai-responses", "cache_key", {"option"}),
        ("gemini", "system", {"move", "freeze", "strip"}),
        ("gemini", "tools", {"freeze"}),
        ("gemini", "tools_order", {"order"}),
    ],
)
def test_edits_help_in_every_dialect(tmp_path: Path, dialect: str, cause: str, actions: set[str]) -> None:
    found = next(each for each in other_breaks(random.Random(6)) if (each.dialect, each.cause) == (dialect, cause))
    (report,) = asyncio.run(play_all(tmp_path, [("fix@shop", found)]))
    (advice,) = report.advice
    assert {edit.action for edit in advice.edits} == actions
    assert min(edit.saved_tokens for edit in advice.edits) >= 0.97 * report.lost_tokens


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[DeskStage]:
    with desk_stage(tmp_path, "anthropic", '[models."large"]\nproviders = ["acme"]\ncache_minimum = 1024\n') as stage:
        stage.person.put("/api/interception", {"mode": "off"})
        stage.upstream.script = [CachingProvider(FakeClock()).play]
        yield stage


def swap(body: Body, number: int) -> None:
    body["tools"] = [*body["tools"][number % 4 :], *body["tools"][: number % 4]]


def say_the_time(body: Body, number: int) -> None:
    body["system"][0]["text"] = f"Be kind.\nIt is 12:0{number} now.\n{body['system'][0]['text']}"


def unmark(body: Body, number: int) -> None:
    del body["system"][0]["cache_control"]
    body["messages"][-1]["content"][-1].pop("cache_control", None)


def think(body: Body, number: int) -> None:
    body["max_tokens"] = 4096
    if number % 2:
        body["thinking"] = {"type": "enabled", "budget_tokens": 1024 + number}


@pytest.mark.parametrize(
    ("change", "action"),
    [(swap, "order"), (say_the_time, "freeze"), (say_the_time, "move"), (say_the_time, "strip"), (unmark, "mark"),
     (think, "option")],
)  # fmt: skip
def test_a_kept_edit_raises_the_cached_share_of_the_next_turns(desk: DeskStage, change: Any, action: str) -> None:
    bodies = marked(random.Random(9), 5)
    for number, body in enumerate(bodies):
        change(body, number)

    def send(these: list[Body]) -> None:
        for body in these:
            assert desk.ask(body, "fix@shop").result().status == 200

    send(bodies[:3])
    before = desk.person.get("/api/cache?session=fix%40shop")
    edits = [edit for advice in before["advice"] for edit in advice["edits"]]
    mask = next(edit["mask"] for edit in edits if edit["action"] == action)
    desk.person.ask("POST", "/api/masks", mask)
    send(bodies[3:])
    turns = desk.person.get("/api/cache?session=fix%40shop")["turns"]
    shares = [turn["autopsy"]["read_tokens"] / turn["input_tokens"] for turn in turns]
    assert max(shares[:3]) + 0.1 < shares[-1], shares
    assert shares[-1] > 0.9, shares
    (kept,) = desk.person.get("/api/masks")
    assert (kept["applied"], kept["missed"], kept["cache"]["action"]) == (3, 0, action)
    assert desk.person.ask("POST", "/api/masks", {"kind": "cache"})[0] == 422


@pytest.mark.parametrize(
    ("sessions", "scope", "name"), [(("a@shop", "b@shop"), "project", "shop"), (("a@shop", "b@mill"), "all", "")]
)
def test_an_edit_that_helps_in_several_sessions_is_kept_for_all_of_them(
    desk: DeskStage, sessions: tuple[str, str], scope: str, name: str
) -> None:
    for session in sessions:
        for number, body in enumerate(marked(random.Random(ord(session[0])), 2)):
            say_the_time(body, number)
            assert desk.ask(body, session).result().status == 200
    report = desk.person.get("/api/cache?filter=tokens%3E0&by=session")
    assert [row["key"] for row in report["causes"] if row["cause"] == "system"] == sorted(sessions)
    masks = [edit["mask"] for advice in report["advice"] for edit in advice["edits"]]
    assert {(mask["scope"], mask.get("name", "")) for mask in masks} == {(scope, name)}


def test_a_message_that_changes_every_turn_is_frozen_as_the_turn_before_said_it(desk: DeskStage) -> None:
    bodies = marked(random.Random(9), 4)
    for number, body in enumerate(bodies):
        body["messages"][0]["content"][0]["text"] += f"\n<env>\nFiles: {number}\n</env>"
    for body in bodies[:2]:
        desk.ask(body, "env@shop").result()
    (advice,) = desk.person.get("/api/cache?session=env%40shop")["advice"]
    desk.person.ask("POST", "/api/masks", next(edit["mask"] for edit in advice["edits"] if edit["action"] == "freeze"))
    for body in bodies[2:]:
        desk.ask(body, "env@shop").result()
    last = desk.person.get("/api/cache?session=env%40shop")["turns"][-1]
    assert last["autopsy"]["cause"] == ""
    assert b"Files: 0" in desk.sent[-1]


def test_the_command_keeps_an_edit_in_the_running_server(
    desk: DeskStage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bodies = marked(random.Random(9), 3)
    for number, body in enumerate(bodies):
        say_the_time(body, number)
    for body in bodies[:2]:
        desk.ask(body, "fix@shop").result()
    (config,) = tmp_path.rglob("*.toml")
    words = ["cache", "fix@shop", "--config", str(config), "--data", str(tmp_path / "data")]
    assert main(words) == 0
    assert "--keep 1  Move to the end “It is 12:01 now.”" in capsys.readouterr().out
    assert main([*words, "--keep", "1"]) == 0
    assert [mask["cache"]["action"] for mask in desk.person.get("/api/masks")] == ["move"]
    desk.ask(bodies[2], "fix@shop").result()
    assert b"12:02" in desk.sent[-1].rpartition(b"messages")[2]
