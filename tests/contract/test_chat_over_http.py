"""A whole chat over HTTP, as the page has it: asked, streamed, broken off, asked again, filtered, summed up, kept."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chat.api.http_stage import ChatDesk, chat_desk, spoken
from tests.upstream import streams


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[ChatDesk]:
    with chat_desk(tmp_path) as made:
        yield made


def said(sent: Any) -> list[tuple[str, str]]:
    """Who says what in a request."""
    return [(each["role"], each["content"]) for each in sent["messages"]]


def test_what_is_visible_is_what_is_sent(desk: ChatDesk) -> None:
    first = desk.ask("one")
    assert (first["state"], first["answer"]["text"], first["answer"]["model"]) == ("complete", "Hello there.", "large")
    assert first["answer"]["usage"]["input_tokens"] == 11
    assert first["answer"]["cost"] == pytest.approx((11 * 1.0 + 7 * 2.0) / 1_000_000)
    desk.done("POST", "mark", {"ids": [first["id"]], "star": 3})
    second = desk.ask("two")
    assert said(desk.sent[-1]) == [("user", "one"), ("assistant", "Hello there."), ("user", "two")]
    assert desk.look(filter="s0")["counter"]["text"] == "1 / 1"
    desk.ask("three")
    assert said(desk.sent[-1]) == [("user", "two"), ("assistant", "Hello there."), ("user", "three")]
    assert desk.rows()[0]["id"] == second["id"]
    assert desk.person.view(first["exchange"])["session"] == "chat"


def test_the_answer_streams_over_the_events_and_can_be_broken_off(desk: ChatDesk) -> None:
    desk.stops_after("Once ", "upon")
    with desk.person.listening() as news:
        pair = desk.done("POST", "send", {"view": "v", "text": "Tell me."})["pair"]
        told, words = [], ""
        while words != "Once upon":
            each = news.get(timeout=20)
            told.append(each)
            if each.get("kind") == "delta":
                assert (each["pair"], each["block"], each["type"]) == (pair, 0, "text")
                assert each["offset"] == len(words)
                words += each["text"]
    assert any(each.get("kind") == "changed" and pair in each["ids"] for each in told)
    shown = desk.pair(pair)
    assert (shown["state"], shown["answer"]["blocks"]) == ("sending", [{"type": "text", "text": "Once upon"}])
    assert desk.done("GET", "views/v")["sending"] == pair
    assert desk.refused(409, "POST", "send", {"view": "v", "text": "more"})["code"] == "already_sending"
    desk.done("POST", "cancel", {})
    shown = desk.pair(pair)
    assert (shown["state"], shown["answer"]["text"], shown["answer"]["finish"]) == (
        "complete",
        "Once upon",
        "cancelled",
    )
    assert shown["answer"]["is_partial"] is True
    desk.refused(409, "POST", "cancel", {})


def test_the_preview_is_the_body_that_is_sent(desk: ChatDesk) -> None:
    desk.ask("one")
    preview = desk.done("POST", "preview", {"view": "v", "text": "two"})
    body = preview["body"].encode()
    assert hashlib.sha256(body).hexdigest() == preview["body_sha256"]
    assert (preview["dialect"], preview["provider"], preview["model"]) == ("openai-chat", "acme", "large")
    assert (preview["included"], preview["left_out_preflight"], preview["trouble"]) == (1, 0, None)
    assert preview["url"] == f"{desk.upstream.url}/v1/chat/completions"
    wrong = {"view": "v", "text": "three", "expect_sha256": preview["body_sha256"]}
    assert desk.refused(409, "POST", "send", wrong)["code"] == "preview_outdated"
    pair = desk.ask("two", expect_sha256=preview["body_sha256"])
    assert desk.upstream.seen[-1].body == body
    assert desk.person.view(pair["exchange"])["hashes"]["sent"] == preview["body_sha256"]


def test_a_command_is_tried_and_then_done(desk: ChatDesk) -> None:
    ids = [desk.ask(word)["id"] for word in ("one", "two")]
    desk.done("POST", "mark", {"ids": ids[:1], "star": 2})
    wanted = {"view": "v", "text": "s2 :delete", "dry_run": True}
    told = desk.done("POST", "command", wanted)
    assert told == {
        "command": "delete",
        "count": 1,
        "sample": ["one"],
        "needs_force": False,
        "message": "1 pair to delete",
        "done": False,
        "confirm": True,
    }
    assert len(desk.rows()) == 2
    assert desk.done("POST", "command", wanted | {"dry_run": False})["done"] is True
    assert [row["id"] for row in desk.rows()] == ids[1:]
    desk.done("POST", "restore", {"ids": ids[:1]})
    assert [row["id"] for row in desk.rows()] == ids


def test_what_is_exported_comes_in_again_whole(desk: ChatDesk, tmp_path: Path) -> None:
    topic = desk.done("POST", "topics", {"name": "Cities"})["id"]
    desk.look(topic=topic)
    pair = desk.ask("Where is Rome?")
    exported = desk.raw("GET", "export?view=v&filter=&as=json")
    assert exported.headers["content-disposition"].startswith('attachment; filename="chat.json"')
    (tmp_path / "other").mkdir()
    with chat_desk(tmp_path / "other") as other:
        tried = other.raw("POST", "import?name=chat.json&dry_run=1", exported.body).json()
        assert tried == {"pairs": 1, "topics": 1, "skipped": 0, "format": "sightline", "problems": []}
        assert other.rows() == []
        assert other.raw("POST", "import?name=chat.json", exported.body).json() == tried
        [shown] = other.rows()
        assert (shown["user_text"], shown["answer"]["text"]) == ("Where is Rome?", "Hello there.")
        assert (shown["topic_path"], shown["at"]) == (["Cities"], pair["at"])
        again = other.raw("POST", "import?name=chat.json", exported.body).json()
        assert (again["pairs"], again["skipped"], again["topics"]) == (0, 1, 0)


def test_all_of_it_is_there_after_a_restart(tmp_path: Path) -> None:
    with chat_desk(tmp_path) as desk:
        pair = desk.ask("one")
        desk.done("PUT", "preferences", {"settings": {"maxTrimAttempts": 3}, "saved_filters": []})
        before = desk.rows()
    with chat_desk(tmp_path) as desk:
        assert json.dumps(desk.rows()) == json.dumps(before)
        assert desk.done("GET", "preferences")["settings"]["maxTrimAttempts"] == 3
        again = desk.pair(pair["id"])["telemetry"]
        assert [each["stage"] for each in again] == [each["stage"] for each in pair["telemetry"]]
        assert again[0] == pair["telemetry"][0]


def test_the_history_keeps_what_was_sent_of_a_request_that_was_edited_while_it_was_held(desk: ChatDesk) -> None:
    desk.ask("My name is Ada Byron.")
    asked = desk.done("POST", "send", {"view": "v", "text": "Mail me at ada@example.org.", "hold": True})["pair"]
    (exchange,) = desk.person.held()
    sections = {section["text"]: section["id"] for section in desk.person.view(exchange)["sections"]}
    edits = (
        ("Mail me at ada@example.org.", "Mail me."),
        ("My name is Ada Byron.", "My name is Ada."),
        ("Hello there.", "Hello."),
    )
    for old, new in edits:
        desk.person.edited(exchange, op="set_text", section=sections[old], text=new)
    desk.person.release(exchange)
    shown = desk.ended(asked)
    assert (shown["user_text"], shown["is_edited"], shown["answer"]["text"]) == ("Mail me.", True, "Hello there.")
    first, _ = desk.rows()
    assert (first["user_text"], first["answer"]["text"], first["is_edited"]) == ("My name is Ada.", "Hello.", True)
    desk.ask("And now?")
    assert said(desk.sent[-1]) == [
        ("user", "My name is Ada."),
        ("assistant", "Hello."),
        ("user", "Mail me."),
        ("assistant", "Hello there."),
        ("user", "And now?"),
    ]
    assert desk.rows()[-1]["is_edited"] is False


def test_a_preview_shows_the_body_after_masks_and_another_one_is_not_sent(desk: ChatDesk) -> None:
    patch = {"scope": "all", "kind": "patch", "anchor": {"kind": "user"}, "hunks": [{"old": "tea", "new": "water"}]}
    plain = desk.done("POST", "preview", {"view": "v", "text": "Some tea, please."})
    desk.person.put("/api/masks", [patch])
    preview = desk.done("POST", "preview", {"view": "v", "text": "Some tea, please."})
    assert "Some water, please." in preview["body"]
    assert hashlib.sha256(preview["body"].encode()).hexdigest() == preview["body_sha256"]
    wrong = {"view": "v", "text": "Some tea, please.", "expect_sha256": plain["body_sha256"]}
    assert desk.refused(409, "POST", "send", wrong)["code"] == "preview_outdated"
    pair = desk.ask("Some tea, please.", expect_sha256=preview["body_sha256"])
    assert desk.upstream.seen[-1].body == preview["body"].encode()
    assert desk.person.view(pair["exchange"])["hashes"]["sent"] == preview["body_sha256"]


def test_the_estimate_is_of_the_body_after_masks_and_the_answer_keeps_it(desk: ChatDesk) -> None:
    longer = [{"old": "tea", "new": "tea and " * 50}]
    desk.person.put("/api/masks", [{"scope": "all", "kind": "patch", "anchor": {"kind": "user"}, "hunks": longer}])
    question = {"view": "v", "text": "Some tea, please."}
    sized, preview = desk.done("POST", "estimate", question), desk.done("POST", "preview", question)
    assert [sized[key] for key in ("tokens", "low", "high")] == [preview[key] for key in ("tokens", "low", "high")]
    assert desk.ask("Some tea, please.")["answer"]["predicted"] == sized["tokens"]


def test_the_band_is_one_figure_on_the_send_button_in_the_preview_and_in_the_held_request(desk: ChatDesk) -> None:
    """Also after the provider has counted the conversation, whose number then leads."""
    question = {"view": "v", "text": "And what of the sea? " * 9}
    for turn in range(3):
        desk.upstream.script = [streams(*spoken("Deep.", used=70 * (turn + 1)))]
        sized, preview = desk.done("POST", "estimate", question), desk.done("POST", "preview", question)
        pair = desk.done("POST", "send", {**question, "hold": True})["pair"]
        (exchange,) = desk.person.held()
        bar = desk.person.view(exchange)["tokens"]
        bands = [[shown[key] for key in ("tokens", "low", "high")] for shown in (sized, preview)]
        assert bands == [[bar["estimate"], bar["low"], bar["high"]]] * 2, f"turn {turn}"
        assert bar["low"] > 70 * turn, "what was counted is certain"
        desk.person.release(exchange)
        assert desk.ended(pair)["answer"]["predicted"] == sized["tokens"]
