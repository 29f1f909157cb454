from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

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
        ("s>=2 & nothing", 8, "there is no field"),
        ("\U0001f600", 1, "there is no field"),
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


def test_what_pairs_have_is_offered_before_what_only_exchanges_have(desk: ChatDesk) -> None:
    assert offered(desk, "")[:4] == ["topic:", "stars:", "flag:", "model:"]
    fields = [each for each in offered(desk, "") if each.endswith(":")]
    assert fields.index("id:") < fields.index("client:")
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
