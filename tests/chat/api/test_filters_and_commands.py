from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from sightline.chat.api.filters import FIRST
from sightline.filters.fields import FIELDS
from tests.chat.api.http_stage import ChatDesk, chat_desk


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatDesk]:
    with chat_desk(tmp_path_factory.mktemp("filters")) as made:
        topic = made.done("POST", "topics", {"name": "Cities"})["id"]
        made.look(topic=topic)
        made.ask("one")
        yield made


def looked(desk: ChatDesk, text: str, cursor: int | None = None) -> Any:
    query = {"text": text, **({} if cursor is None else {"cursor": cursor})}
    return desk.done("GET", f"filter?{urlencode(query)}")


def offered(desk: ChatDesk, text: str, cursor: int | None = None) -> list[str]:
    return [each["text"] for each in looked(desk, text, cursor)["completions"]]


@pytest.mark.parametrize("text", ["", "s>=2 & o5", "t'Cities...'", "e & d<24h :delete", ":hud on", "r5 :export md"])
def test_what_can_be_read(desk: ChatDesk, text: str) -> None:
    told = looked(desk, text)
    assert (told["ok"], told["error"]) == (True, None)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("s>=2 & nothing:x", 8, "there is no field"),
        ("\U0001f600:x", 1, "there is no field"),
        ("c'\U0001f600' :nothing", 7, "there is no command"),
        ("r5 :delete", 1, "a moment later"),
        ("c'open", 2, "is not closed"),
        ("e :export txt", 11, "is nothing to export to"),
    ],
)
def test_what_is_wrong_and_where(desk: ChatDesk, text: str, column: int, message: str) -> None:
    error = looked(desk, text)["error"]
    assert error["column"] == column
    assert message in error["message"]
    assert error["hint"]


def test_terms_are_offered_with_values_of_this_chat(desk: ChatDesk) -> None:
    assert "topic:" in offered(desk, "top")
    assert 'topic:"Cities"' in offered(desk, "topic:ci") or "topic:Cities" in offered(desk, "topic:ci")
    assert "model:acme/large" in offered(desk, "b & model:lar")
    assert "finish:stop" in offered(desk, "finish:")


def test_what_pairs_have_is_offered_and_what_only_exchanges_have_is_not(desk: ChatDesk) -> None:
    assert offered(desk, "")[:4] == ["topic:", "stars:", "flag:", "model:"]
    fields = [each for each in offered(desk, "") if each.endswith(":")]
    assert "id:" in fields
    assert "client:" not in fields
    assert {each.name for each in FIELDS} >= set(FIRST)


def test_commands_are_offered_behind_a_colon_and_where_a_term_could_begin(desk: ChatDesk) -> None:
    assert ":delete" in offered(desk, "")
    assert offered(desk, "e :de") == [":delete"]
    told = looked(desk, "e :")["completions"]
    assert [each["text"] for each in told] == [":export", ":tchange", ":delete", ":hud", ":compact"]
    assert {each["from"] for each in told} == {2}
    assert offered(desk, "e :delete --f") == ["--force"]
    assert "--create" in offered(desk, "e :tchange ")
    assert offered(desk, "e :nothing ") == []
    assert "state:" in offered(desk, "st :delete", 2)


def test_while_a_quote_is_open_nothing_is_a_command(desk: ChatDesk) -> None:
    assert ":delete" not in offered(desk, "c'a :de")


def test_a_cursor_is_a_number(desk: ChatDesk) -> None:
    desk.refused(400, "GET", "filter?text=a&cursor=x")


@pytest.fixture
def commanding_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatDesk]:
    with chat_desk(tmp_path_factory.mktemp("commands")) as made:
        yield made


def filled(commanding_desk: ChatDesk, count: int) -> list[str]:
    """So many pairs from elsewhere."""
    text = "\n".join(f"## User\n\nquestion {n}\n\n## Assistant\n\nanswer {n}\n" for n in range(count))
    assert commanding_desk.raw("POST", "import?name=many.md", f"# Many\n\n{text}".encode()).json()["pairs"] == count
    return [row["id"] for row in commanding_desk.rows()]


def run(commanding_desk: ChatDesk, text: str, *, dry: bool = False) -> Any:
    return commanding_desk.done("POST", "command", {"view": "v", "text": text, "dry_run": dry})


def test_more_than_fifty_go_only_with_force(commanding_desk: ChatDesk) -> None:
    filled(commanding_desk, 51)
    told = run(commanding_desk, ":delete")
    assert (told["count"], told["needs_force"], told["done"]) == (51, True, False)
    assert "--force" in told["message"]
    assert told["sample"] == [f"question {n}" for n in range(5)]
    assert len(commanding_desk.rows()) == 51
    told = run(commanding_desk, ":delete --force", dry=True)
    assert (told["needs_force"], told["done"], len(commanding_desk.rows())) == (False, False, 51)
    told = run(commanding_desk, ":delete --force --no-confirm")
    assert told["done"] is True
    assert commanding_desk.rows() == []
    commanding_desk.done("POST", "restore", {"ids": told["ids"]})
    assert len(commanding_desk.rows()) == 51, "what is gone can be brought back by its ids"


def test_a_dry_run_can_be_written_into_the_line(commanding_desk: ChatDesk) -> None:
    filled(commanding_desk, 2)
    assert run(commanding_desk, ":delete --dry-run")["done"] is False
    assert len(commanding_desk.rows()) == 2
    assert "confirm" not in run(commanding_desk, ":delete --dry-run --no-confirm")


def test_a_hand_does_not_put_a_pair_among_those_that_are_deleted(commanding_desk: ChatDesk) -> None:
    first, second = filled(commanding_desk, 2)
    commanding_desk.done("POST", "mark", {"ids": [first], "hand": "in"})
    assert run(commanding_desk, 'text:"question 1" :delete')["count"] == 1
    assert [row["id"] for row in commanding_desk.rows()] == [first]
    assert run(commanding_desk, "s3 :delete")["message"] == "no pairs to delete"
    assert second not in [row["id"] for row in commanding_desk.rows()]


@pytest.mark.parametrize(
    ("text", "column", "words"), [("r1 :delete", 1, "a moment later"), ("e :delte", 3, "no command")]
)
def test_a_line_that_cannot_be_carried_out_says_where(desk: ChatDesk, text: str, column: int, words: str) -> None:
    error = desk.refused(422, "POST", "command", {"view": "v", "text": text})
    assert error["details"]["column"] == column
    assert words in error["message"]


def test_pairs_go_to_another_topic_which_can_be_made(commanding_desk: ChatDesk) -> None:
    filled(commanding_desk, 2)
    home = [row["topic_path"] for row in commanding_desk.rows()]
    wanted = {"view": "v", "text": ':tchange "A > B"'}
    assert "--create" in commanding_desk.refused(422, "POST", "command", wanted)["hint"]
    told = run(commanding_desk, ':tchange "A > B" --create', dry=True)
    assert told["message"] == '2 pairs to move to "A > B", which is made'
    assert [row["topic_path"] for row in commanding_desk.rows()] == home
    told = run(commanding_desk, ':tchange "A > B" --create')
    assert (told["done"], told["message"]) == (True, '2 pairs moved to "A > B"')
    assert all(row["topic_path"] == ["A", "B"] for row in commanding_desk.rows())
    assert (
        "Did you mean"
        in commanding_desk.refused(422, "POST", "command", {"view": "v", "text": ":tchange 'A > C'"})["hint"]
    )
    run(commanding_desk, "t'A > B' :tchange /A/B/C --create")
    assert all(row["topic_path"] == ["A", "B", "C"] for row in commanding_desk.rows())
    run(commanding_desk, ":tchange /")
    assert all(row["topic_path"] == [] for row in commanding_desk.rows())
    topic = next(each["id"] for each in commanding_desk.done("GET", "topics") if each["path"] == ["A"])
    commanding_desk.look(topic=topic)
    assert run(commanding_desk, ":tchange", dry=True)["message"] == '2 pairs to move to "A"'
    run(commanding_desk, ":tchange")
    assert all(row["topic_path"] == ["A"] for row in commanding_desk.rows())
    assert run(commanding_desk, "s3 :tchange /New --create")["message"] == 'no pairs moved to "New"'
    assert ["New"] not in [each["path"] for each in commanding_desk.done("GET", "topics")]


def test_an_export_is_an_address(commanding_desk: ChatDesk) -> None:
    filled(commanding_desk, 2)
    told = run(commanding_desk, "text:\"question 1\" :export md --filename 'my notes.md'")
    assert (told["count"], told["done"], told["message"]) == (1, True, "1 pair to export")
    at = urlsplit(told["export"])
    assert at.path == "/api/chat/export"
    assert parse_qs(at.query) == {
        "view": ["v"],
        "filter": ['text:"question 1"'],
        "as": ["markdown"],
        "name": ["my notes.md"],
    }
    answer = commanding_desk.raw("GET", told["export"].removeprefix("/api/chat/"))
    assert 'filename="my notes.md"' in answer.headers["content-disposition"]
    assert answer.body.count(b"### User") == 1
    whole = run(commanding_desk, ":export jsonl --whole-topics")["export"]
    assert len(commanding_desk.raw("GET", whole.removeprefix("/api/chat/")).body.splitlines()) == 1


def test_the_panel_and_a_summary_are_for_the_page_to_show(commanding_desk: ChatDesk) -> None:
    ids = filled(commanding_desk, 2)
    assert run(commanding_desk, ":hud off") == {
        "command": "hud",
        "count": 0,
        "sample": [],
        "needs_force": False,
        "message": "the panel is off",
        "done": True,
        "hud": False,
    }
    told = run(commanding_desk, ":compact")
    assert (told["compact"], told["message"]) == (ids, "2 pairs to sum up")


def test_a_line_without_a_command_is_none(desk: ChatDesk) -> None:
    desk.refused(422, "POST", "command", {"view": "v", "text": "e & d<24h"})
    desk.refused(404, "POST", "command", {"view": "none", "text": ":delete"})
