import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.background import upstream_in_background
from tests.gateway_server import Served, served
from tests.upstream import Upstream, says

MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "c", "content": [{"type": "text", "text": "Hi"}],
    "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 1},
}  # fmt: skip
RAW = [
    {"role": 0, "content": [{"type": 1, "text": "Be brief."}]},
    {"role": 1, "content": [{"type": 1, "text": "Hello?"}]},
]


@pytest.fixture
def acme() -> Iterator[Upstream]:
    with upstream_in_background() as upstream:
        upstream.script = [says(MESSAGE)]
        yield upstream


@pytest.fixture
def server(acme: Upstream, tmp_path: Path) -> Iterator[Served]:
    config = f'[providers.claude]\nbase_url = "{acme.url}"\ndialect = "anthropic"\n'
    with served(tmp_path, config) as gateway:
        yield gateway


def opened(server: Served, **order: object) -> tuple[int, Any]:
    return server.post("/api/exchanges", json.dumps(order).encode())


def test_a_raw_document_is_opened_in_the_editor_edited_and_sent(acme: Upstream, server: Served) -> None:
    status, made = opened(server, dialect="raw", body=json.dumps(RAW), model="claude/c", session="mine")
    assert status == 200
    view = server.api(f"/api/exchanges/{made['id']}")
    assert (view["state"], view["dialect"], view["session"]) == ("held", "raw", "mine")
    assert [section["text"] for section in view["sections"][:2]] == ["Be brief.", "Hello?"]
    edit = {"op": "set_text", "section": view["sections"][1]["id"], "text": "Hello there?"}
    _, edited = server.post(f"/api/exchanges/{made['id']}/edits", json.dumps(edit).encode())
    assert acme.seen == [], "nothing is sent before a person sends it"
    release = json.dumps({"body_sha256": edited["body_sha256"]}).encode()
    assert server.post(f"/api/exchanges/{made['id']}/release", release)[0] == 200
    while (view := server.api(f"/api/exchanges/{made['id']}"))["state"] == "sending":
        pass
    assert view["state"] == "finished"
    sent = acme.seen[0].json()
    assert (sent["model"], sent["messages"][0]["content"][0]["text"]) == ("c", "Hello there?")
    assert view["hashes"]["sent"] == edited["body_sha256"]


def test_a_document_of_the_providers_dialect_is_held_byte_for_byte(server: Served) -> None:
    body = '{"model" : "c", "max_tokens":9, "messages":[{"role":"user","content":"x"}]}'
    status, made = opened(server, dialect="anthropic", body=body, model="claude/c")
    assert status == 200
    assert json.loads(server.body(made["id"], "sent"))["model"] == "c"
    assert server.body(made["id"], "sent").startswith(b'{"model" : ')
    assert server.post(f"/api/exchanges/{made['id']}/drop")[0] == 200


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ({"dialect": "raw"}, "body"),
        ({"dialect": "french", "body": "[]"}, "unknown dialect"),
        ({"dialect": "raw", "body": "["}, "JSON"),
        ({"dialect": "raw", "body": "[]"}, "no model"),
        ({"dialect": "raw", "body": '[{"role":9}]', "model": "m"}, "role"),
        ({"dialect": "raw", "body": "[]", "modle": "m"}, "modle"),
        ({"dialect": "raw", "body": '["\ud800"]', "model": "m"}, "surrogate"),
    ],
)
def test_what_cannot_be_opened_says_why(server: Served, order: dict[str, object], words: str) -> None:
    status, answer = opened(server, **order)
    assert status == 400
    assert words in answer["error"]["message"]
    assert answer["error"]["hint"]
    assert server.api("/api/exchanges")["exchanges"] == []
