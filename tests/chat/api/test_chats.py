"""Several chats over HTTP: each with its own pairs, and deleted so that no file has them any more."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chat.api.http_stage import ChatDesk, chat_desk


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("chats")


@pytest.fixture(scope="module")
def desk(folder: Path) -> Iterator[ChatDesk]:
    with chat_desk(folder) as made:
        yield made


def call(desk: ChatDesk, method: str, path: str, value: Any = None, status: int = 200) -> Any:
    got, told = desk.person.ask(method, f"/api/{path}", value)
    assert got == status, told
    return told


def files_holding(folder: Path, words: str) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and words.encode() in path.read_bytes()]


def ask(desk: ChatDesk, chat: str, text: str) -> Any:
    call(desk, "PUT", f"chats/{chat}/views/v", {"model": "acme/large"})
    pair = call(desk, "POST", f"chats/{chat}/send", {"view": "v", "text": text})["pair"]
    return desk.person.until(
        lambda: call(desk, "GET", f"chats/{chat}/pairs/{pair}"), lambda shown: shown["state"] != "sending"
    )


def test_a_chat_of_its_own_is_made_named_asked_found_forked_and_deleted(desk: ChatDesk, folder: Path) -> None:
    desk.ask("In the first chat.")
    made = call(desk, "POST", "chats", {"name": "Fjords"})
    first = ask(desk, made["id"], "Where is the glowing halibut?")
    ask(desk, made["id"], "And the second one?")
    assert [message["content"] for message in desk.sent[-1]["messages"]] == [
        "Where is the glowing halibut?",
        "Hello there.",
        "And the second one?",
    ], "nothing of the first chat is sent"
    renamed = call(desk, "PUT", f"chats/{made['id']}", {"name": "Deep fjords"})
    assert (renamed["title"], renamed["pairs"]) == ("Deep fjords", 2)
    assert [(each["id"], each["found_in"]) for each in call(desk, "GET", "chats?text=HALIBUT")] == [
        (made["id"], first["id"])
    ]
    fork = call(desk, "POST", f"chats/{made['id']}/fork", {"pair": first["id"]})
    assert (fork["title"], fork["pairs"]) == ("Deep fjords (fork)", 1)
    assert [row["user_text"] for row in desk.rows()] == ["In the first chat."]

    assert files_holding(folder, "halibut"), "or the test below could not fail"
    in_record = desk.person.get(f"/api/exchanges?filter=session:{made['session']}")["exchanges"]
    assert len(in_record) == 2
    assert call(desk, "DELETE", f"chats/{fork['id']}")["exchanges"] == 0
    gone = call(desk, "DELETE", f"chats/{made['id']}?requests=1")
    assert gone["exchanges"] == 2
    assert [each["id"] for each in call(desk, "GET", "chats")] == ["main"]
    for path in ("", "/views/v", "/fork"):
        method, body = ("POST", {"pair": "x"}) if path == "/fork" else ("GET", None)
        error = call(desk, method, f"chats/{made['id']}{path}", body, status=404)["error"]
        assert "there is no chat" in error["message"]
    assert files_holding(folder, "halibut") == []
    assert files_holding(folder, "fjords") == []


def test_the_main_chat_can_be_deleted_and_is_empty_then(desk: ChatDesk) -> None:
    desk.ask("To be forgotten.")
    call(desk, "DELETE", "chats/main")
    desk.look()
    assert desk.rows() == []
    assert desk.ask("Afresh.")["state"] == "complete"
