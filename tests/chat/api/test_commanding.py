from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.chat.api.http_stage import ChatDesk, chat_desk


@pytest.fixture
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatDesk]:
    with chat_desk(tmp_path_factory.mktemp("commands")) as made:
        yield made


def filled(desk: ChatDesk, count: int) -> list[str]:
    """So many pairs from elsewhere."""
    text = "\n".join(f"## User\n\nquestion {n}\n\n## Assistant\n\nanswer {n}\n" for n in range(count))
    assert desk.raw("POST", "import?name=many.md", f"# Many\n\n{text}".encode()).json()["pairs"] == count
    return [row["id"] for row in desk.rows()]


def run(desk: ChatDesk, text: str, *, dry: bool = False) -> Any:
    return desk.done("POST", "command", {"view": "v", "text": text, "dry_run": dry})


def test_more_than_fifty_go_only_with_force(desk: ChatDesk) -> None:
    filled(desk, 51)
    told = run(desk, ":delete")
    assert (told["count"], told["needs_force"], told["done"]) == (51, True, False)
    assert "--force" in told["message"]
    assert told["sample"] == [f"question {n}" for n in range(5)]
    assert len(desk.rows()) == 51
    told = run(desk, ":delete --force", dry=True)
    assert (told["needs_force"], told["done"], len(desk.rows())) == (False, False, 51)
    told = run(desk, ":delete --force --no-confirm")
    assert told["done"] is True
    assert desk.rows() == []
    desk.done("POST", "restore", {"ids": told["ids"]})
    assert len(desk.rows()) == 51, "what is gone can be brought back by its ids"


def test_a_dry_run_can_be_written_into_the_line(desk: ChatDesk) -> None:
    filled(desk, 2)
    assert run(desk, ":delete --dry-run")["done"] is False
    assert len(desk.rows()) == 2
    assert "confirm" not in run(desk, ":delete --dry-run --no-confirm")


def test_a_hand_does_not_put_a_pair_among_those_that_are_deleted(desk: ChatDesk) -> None:
    first, second = filled(desk, 2)
    desk.done("POST", "mark", {"ids": [first], "hand": "in"})
    assert run(desk, 'text:"question 1" :delete')["count"] == 1
    assert [row["id"] for row in desk.rows()] == [first]
    assert run(desk, "s3 :delete")["message"] == "no pairs to delete"
    assert second not in [row["id"] for row in desk.rows()]


@pytest.mark.parametrize("text", ["r1 :delete", "t :delete", "o :delete", "t5 & s0 :delete"])
def test_nothing_is_deleted_by_what_changes_by_itself(desk: ChatDesk, text: str) -> None:
    error = desk.refused(422, "POST", "command", {"view": "v", "text": text})
    assert error["details"]["column"] == 1
    assert "a moment later" in error["message"]


def test_pairs_go_to_another_topic_which_can_be_made(desk: ChatDesk) -> None:
    filled(desk, 2)
    home = [row["topic_path"] for row in desk.rows()]
    wanted = {"view": "v", "text": ':tchange "A > B"'}
    assert "--create" in desk.refused(422, "POST", "command", wanted)["hint"]
    told = run(desk, ':tchange "A > B" --create', dry=True)
    assert told["message"] == '2 pairs to move to "A > B", which is made'
    assert [row["topic_path"] for row in desk.rows()] == home
    told = run(desk, ':tchange "A > B" --create')
    assert (told["done"], told["message"]) == (True, '2 pairs moved to "A > B"')
    assert all(row["topic_path"] == ["A", "B"] for row in desk.rows())
    assert "Did you mean" in desk.refused(422, "POST", "command", {"view": "v", "text": ":tchange 'A > C'"})["hint"]
    run(desk, "t'A > B' :tchange /A/B/C --create")
    assert all(row["topic_path"] == ["A", "B", "C"] for row in desk.rows())
    run(desk, ":tchange /")
    assert all(row["topic_path"] == [] for row in desk.rows())
    topic = next(each["id"] for each in desk.done("GET", "topics") if each["path"] == ["A"])
    desk.look(topic=topic)
    assert run(desk, ":tchange", dry=True)["message"] == '2 pairs to move to "A"'
    run(desk, ":tchange")
    assert all(row["topic_path"] == ["A"] for row in desk.rows())
    assert run(desk, "s3 :tchange /New --create")["message"] == 'no pairs moved to "New"'
    assert ["New"] not in [each["path"] for each in desk.done("GET", "topics")]


def test_an_export_is_an_address(desk: ChatDesk) -> None:
    filled(desk, 2)
    told = run(desk, "text:\"question 1\" :export md --filename 'my notes.md'")
    assert (told["count"], told["done"], told["message"]) == (1, True, "1 pair to export")
    at = urlsplit(told["export"])
    assert at.path == "/api/chat/export"
    assert parse_qs(at.query) == {
        "view": ["v"],
        "filter": ['text:"question 1"'],
        "as": ["markdown"],
        "name": ["my notes.md"],
    }
    answer = desk.raw("GET", told["export"].removeprefix("/api/chat/"))
    assert 'filename="my notes.md"' in answer.headers["content-disposition"]
    assert answer.body.count(b"### User") == 1
    whole = run(desk, ":export jsonl --whole-topics")["export"]
    assert len(desk.raw("GET", whole.removeprefix("/api/chat/")).body.splitlines()) == 1


def test_the_panel_and_a_summary_are_for_the_page_to_show(desk: ChatDesk) -> None:
    ids = filled(desk, 2)
    assert run(desk, ":hud off") == {
        "command": "hud",
        "count": 0,
        "sample": [],
        "needs_force": False,
        "message": "the panel is off",
        "done": True,
        "hud": False,
    }
    told = run(desk, ":compact")
    assert (told["compact"], told["message"]) == (ids, "2 pairs to sum up")


@pytest.mark.parametrize(
    ("text", "column"), [("e :delte", 3), ("nothing :delete", 1), (":export txt", 9), ("c'open :delete", 2)]
)
def test_a_line_that_cannot_be_read_says_where(desk: ChatDesk, text: str, column: int) -> None:
    error = desk.refused(422, "POST", "command", {"view": "v", "text": text})
    assert error["details"]["column"] == column


def test_a_line_without_a_command_is_none(desk: ChatDesk) -> None:
    desk.refused(422, "POST", "command", {"view": "v", "text": "e & d<24h"})
    desk.refused(404, "POST", "command", {"view": "none", "text": ":delete"})
