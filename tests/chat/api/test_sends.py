import base64
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.background import wait_until_gone
from tests.chat.api.http_stage import ChatDesk, chat_desk


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatDesk]:
    with chat_desk(tmp_path_factory.mktemp("sends")) as made:
        yield made


def test_attachments_are_sent_and_can_be_downloaded_again(desk: ChatDesk) -> None:
    data = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 48_000  # 12 MB
    coded = base64.b64encode(data).decode()
    files = [
        {"name": "photo.png", "media_type": "image/png", "data": coded},
        {"name": "a.txt", "media_type": "text/plain", "data": base64.b64encode(b"words").decode()},
    ]
    pair = desk.ask("What is this?", attachments=files)
    assert pair["attachments"] == [
        {"n": 0, "kind": "image", "name": "", "media_type": "image/png", "size": len(data)},
        {"n": 1, "kind": "text", "name": "a.txt", "media_type": "text/plain", "size": 5},
    ]
    image, text, words = desk.sent[-1]["messages"][-1]["content"]
    assert image["image_url"]["url"] == f"data:image/png;base64,{coded}"
    assert text["text"] == "File: a.txt\n```\nwords\n```\n"
    assert words["text"] == "What is this?"
    shown = desk.raw("GET", f"pairs/{pair['id']}/media/0?of=question")
    assert (shown.status, shown.headers["content-type"], shown.body) == (200, "image/png", data)
    kept = desk.raw("GET", f"pairs/{pair['id']}/media/1")
    assert (kept.body, kept.headers["content-type"]) == (b"words", "application/octet-stream")
    desk.done("POST", "delete", {"ids": [pair["id"]]})


def test_more_than_the_api_takes_is_refused(desk: ChatDesk) -> None:
    answer = desk.raw("POST", "send", b'{"view":"v","text":"' + b"x" * (128 << 20) + b'"}')
    assert answer.status == 413
    assert answer.json()["error"]["code"] == "request_too_large"


def test_files_that_are_none_are_refused_and_nothing_is_sent(desk: ChatDesk) -> None:
    before = len(desk.upstream.seen)
    files = [{"name": "a.png", "media_type": "image/png", "data": "%%%"}]
    desk.refused(422, "POST", "send", {"view": "v", "text": "x", "attachments": files})
    assert len(desk.upstream.seen) == before


@pytest.mark.parametrize("path", ["send", "pairs/p/reask", "cancel", "resume", "mark", "delete", "command", "preview"])
@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"[" * 1000 + b"]" * 1000, 400),
        (b"[" * 100_000, 400),
        (b'{"text":' * 1001 + b"1" + b"}" * 1001, 400),
        (b'"text"', 400),
        (b"{nonsense", 400),
        (b"\xff\xfe", 400),
        (b'{"view":{"a":[]}}', 422),
        (b'{"view":"v","text":"\\ud800","ids":[1]}', 422),
    ],
)
def test_malformed_body_is_a_client_error(desk: ChatDesk, path: str, data: bytes, status: int) -> None:
    answer = desk.raw("POST", path, data)
    assert answer.status == status, answer.body
    assert answer.json()["error"]["hint"]


def test_half_a_character_is_refused(desk: ChatDesk) -> None:
    answer = desk.raw("POST", "send", b'{"view":"v","text":"cut \\ud83d"}')
    assert answer.status in (400, 422), answer.body
    assert desk.done("GET", "views/v")["sending"] == ""


def test_unknown_pair_cannot_be_reasked_or_replaced(desk: ChatDesk) -> None:
    desk.refused(404, "POST", "pairs/none/reask", {"view": "v"})
    desk.refused(404, "POST", "send", {"view": "v", "text": "x", "replaces": "none"})
    desk.refused(409, "POST", "resume", {"anyway": True})


def test_exhausted_quota_requires_confirmation_before_sending(tmp_path: Path) -> None:
    with chat_desk(tmp_path, '[models."acme/slow"]\ncontext_window = 8000\nrpm = 1\n') as desk:
        desk.look(model="acme/slow")
        desk.ask("one")
        error = desk.refused(429, "POST", "send", {"view": "v", "text": "two"})
        assert error["code"] == "quota_wait"
        assert "requests per minute" in error["details"]["line"]
        assert error["details"]["can_go_at"] > 0
        pair = desk.done("POST", "send", {"view": "v", "text": "two", "quota": "wait"})["pair"]
        shown = desk.person.until(lambda: desk.done("GET", "views/v"), lambda view: view["paused"] is not None)
        assert shown["sending"] == pair
        assert "requests per minute" in shown["paused"]["line"]
        desk.done("POST", "resume", {"anyway": True})
        assert desk.ended(pair)["answer"]["text"] == "Hello there."
        assert desk.ask("three", quota="anyway")["state"] == "complete"


def test_a_send_that_is_held_goes_out_when_it_is_released(desk: ChatDesk) -> None:
    desk.answers("At last.")
    pair = desk.done("POST", "send", {"view": "v", "text": "held", "hold": True})["pair"]
    [exchange] = desk.person.held()
    assert desk.pair(pair)["state"] == "sending"
    desk.person.release(exchange)
    assert desk.ended(pair)["answer"]["text"] == "At last."


def test_client_disconnect_cancels_the_draft(desk: ChatDesk) -> None:
    pair = desk.ask("to be summed up")["id"]
    desk.stops_after("Never ")
    asked = len(desk.upstream.seen)
    body = json.dumps({"view": "v", "ids": [pair]}).encode()
    at = urlsplit(desk.server.url)
    lines = [
        "POST /api/chat/compaction/draft HTTP/1.1",
        f"host: {at.netloc}",
        f"authorization: Bearer {desk.server.token}",
        f"content-length: {len(body)}",
    ]
    head = "\r\n".join([*lines, "", ""])
    with desk.person.listening() as facts, socket.create_connection((at.hostname or "", at.port or 0)) as client:
        client.sendall(head.encode() + body)
        while facts.get(timeout=20).get("kind") != "frame":
            pass
        client.close()
        wait_until_gone(desk.upstream, desk.upstream.seen[asked].connection)
    desk.answers("Fine.")
    assert desk.ask("more")["answer"]["text"] == "Fine."
