import asyncio
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway_server import Served, served
from tests.http_call import call
from tests.person import Person
from tests.store.traffic import chat_body, chat_stream
from tests.upstream import LAST, Upstream, chunk, head, pieces, says, streams

KEY = "the-configured-key-0815"
SSE = [("Content-Type", "text/event-stream")]
FRAMES = chat_stream("Hel", "lo")
BODY = chat_body("hi", stream=True)
MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "c", "content": [{"type": "text", "text": "Hi"}],
    "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 1},
}  # fmt: skip


@pytest.fixture
def server(acme: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("ACME_KEY", KEY)
    monkeypatch.delenv("UNSET_KEY", raising=False)
    config = (
        f'[providers.acme]\nbase_url = "{acme.url}/v1"\nkey_env = "ACME_KEY"\nstream_max_retries = 0\n'
        f'[providers.own]\nbase_url = "{acme.url}/v1"\n'
        f'[providers.claude]\nbase_url = "{acme.url}"\ndialect = "anthropic"\nkey_env = "ACME_KEY"\n'
        f'[providers.unset]\nbase_url = "{acme.url}/v1"\nkey_env = "UNSET_KEY"\n'
    )
    with served(tmp_path, config) as gateway:
        yield gateway


def asked(server: Served, body: bytes = BODY, provider: str = "acme", **headers: str) -> str:
    """The id of a new exchange."""
    sent = {"content-type": "application/json", **headers}
    answer = call("POST", f"{server.url}/p/{provider}/v1/chat/completions", body, headers=sent)
    assert answer.status == 200, answer
    return answer.headers["x-sightline-exchange"]


def replayed(server: Served, exchange: str, order: object) -> tuple[int, Any]:
    return server.post(f"/api/exchanges/{exchange}/replay", json.dumps(order).encode())


def test_the_same_again_is_a_new_exchange_that_names_the_old_one(acme: Upstream, server: Served) -> None:
    acme.script = [streams(*FRAMES)]
    old = asked(server)
    status, told = replayed(server, old, {})
    assert status == 200
    assert set(told) == {"id"}
    view = Person(server).ended(told["id"])
    assert (view["origin"], view["state"], view["provider"]) == (old, "finished", "acme")
    assert [seen.body for seen in acme.seen] == [BODY, BODY]
    assert acme.seen[1].header("authorization") == f"Bearer {KEY}"
    assert server.body(told["id"], "reply") == b"".join(FRAMES)
    status, empty = server.post(f"/api/exchanges/{told['id']}/replay", b"")
    assert status == 200
    assert Person(server).ended(empty["id"])["origin"] == told["id"]


def test_an_edited_body_goes_out_exactly(acme: Upstream, server: Served) -> None:
    acme.script = [streams(*FRAMES)]
    old = asked(server)
    body = BODY.decode().replace("hi", "h\u00ef  \U0001f600")
    _, told = replayed(server, old, {"body": body})
    view = Person(server).ended(told["id"])
    assert acme.seen[1].body == body.encode()
    assert view["hashes"]["sent"] == view["hashes"]["received"] == view["body_sha256"]
    assert server.body(told["id"], "sent") == body.encode()


def test_other_model_is_requested_in_its_own_dialect(acme: Upstream, server: Served) -> None:
    acme.script = [streams(*FRAMES), says(MESSAGE)]
    old = asked(server)
    _, told = replayed(server, old, {"model": "claude/c"})
    view = Person(server).ended(told["id"])
    assert (view["origin"], view["provider"]) == (old, "claude")
    assert (acme.seen[1].target, acme.seen[1].json()["model"]) == ("/v1/messages", "c")


@pytest.mark.parametrize("waits", [True, False])
def test_replay_may_finish_at_shutdown_unless_shutdown_is_forced(acme: Upstream, tmp_path: Path, waits: bool) -> None:
    goes_on = asyncio.Event()
    acme.script = [streams(*FRAMES), pieces(head(200, SSE), chunk(FRAMES[0]), goes_on, *map(chunk, FRAMES[1:]), LAST)]
    config = f'[providers.acme]\nbase_url = "{acme.url}/v1"\n'
    with served(tmp_path, config) as server:
        _, told = replayed(server, asked(server), {})
        # It is named before its answer is there.
        assert server.api(f"/api/exchanges/{told['id']}")["state"] == "sending"
        server.listening.end()
        if waits:
            acme._loop.call_soon_threadsafe(goes_on.set)
            assert server.ended.wait(60)  # leaving the server's block asks it to end a second time
        else:
            server.listening.end()  # as a second Ctrl-C does
    with served(tmp_path, config) as server:
        assert server.api(f"/api/exchanges/{told['id']}")["state"] == ("finished" if waits else "failed")


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ([], "not a JSON object"),
        ({"modell": "m"}, 'the body has no key "modell"'),
        ({"model": "m", "body": "{}"}, "cannot be combined"),
        ({"model": 3}, "model must be text"),
        ({"model": ""}, "model must be text, not empty text"),
        ({"body": {}}, "body must be text, not an object"),
        ({"body": None}, "body must be text, not nothing"),
        ({"masks": "yes"}, "masks must be true or false"),
        ({"body": "{"}, ""),
        ({"body": "{}"}, "names no model"),
        ({"body": "\ud800"}, "half a surrogate"),
    ],
)
def test_wrong_orders_are_refused_and_nothing_is_sent(
    acme: Upstream, server: Served, order: object, words: str
) -> None:
    acme.script = [streams(*FRAMES)]
    old = asked(server)
    status, told = replayed(server, old, order)
    assert (status, told["error"]["code"]) == (400, "invalid_request")
    assert words in told["error"]["message"]
    assert told["error"]["hint"]
    assert len(acme.seen) == 1
    assert len(server.api("/api/exchanges")["exchanges"]) == 1


def test_credentials_are_not_on_record(acme: Upstream, server: Served) -> None:
    acme.script = [streams(*FRAMES)]
    old = asked(server, provider="own", authorization="Bearer sk-of-the-client-4711")
    status, told = replayed(server, old, {})
    assert (status, told["error"]["code"]) == (422, "auth")
    assert "key_env" in told["error"]["hint"]
    status, told = replayed(server, old, {"model": "unset/m"})
    assert (status, told["error"]["code"]) == (422, "auth")
    assert "UNSET_KEY" in told["error"]["hint"]
    assert len(acme.seen) == 1
    keyless = asked(server, provider="own")
    assert replayed(server, keyless, {})[0] == 200


def test_what_is_not_there_cannot_be_sent_again(acme: Upstream, server: Served) -> None:
    acme.script = [streams(*FRAMES)]
    old = asked(server)
    assert replayed(server, "x_9", {})[0] == 404
    assert replayed(server, old[:-1], {})[0] == 404
    status, told = replayed(server, old, {"model": "no-such-model"})
    assert (status, told["error"]["code"]) == (422, "model_unknown")
    assert len(acme.seen) == 1


PATCH = {"scope": "all", "kind": "patch", "anchor": {"kind": "user"}, "hunks": [{"old": "hi", "new": "ho"}]}


def test_replay_sends_the_recorded_bytes_unless_masks_are_requested(acme: Upstream, server: Served) -> None:
    acme.script = [streams(*FRAMES)]
    old = asked(server)
    Person(server).put("/api/masks", [PATCH])
    other = BODY.replace(b"hi", b"and hi").decode()
    for order, sent in (
        ({}, BODY),
        ({"body": other}, other.encode()),
        ({"masks": False}, BODY),
        ({"masks": True}, BODY.replace(b"hi", b"ho")),
        ({"masks": True, "body": other}, BODY.replace(b"hi", b"and ho")),
    ):
        _, told = replayed(server, old, order)
        view = Person(server).ended(told["id"])
        assert acme.seen[-1].body == sent
        assert view["hashes"]["sent"] == view["body_sha256"] == hashlib.sha256(sent).hexdigest()


def test_a_request_for_another_model_has_each_mask_once(acme: Upstream, server: Served) -> None:
    acme.script = [streams(*FRAMES), streams(*FRAMES), says(MESSAGE), streams(*FRAMES)]
    person = Person(server)
    person.put("/api/masks", [{**PATCH, "hunks": [{"old": "hi", "new": "hihi"}]}])
    old = asked(server)
    assert acme.seen[0].json()["messages"][-1]["content"] == "hihi"
    for order, words in (({"model": "acme/m"}, "hihi"), ({"model": "claude/c"}, "hihi")):
        _, told = replayed(server, old, order)
        Person(server).ended(told["id"])
        assert words in acme.seen[-1].body.decode()
        assert "hihihi" not in acme.seen[-1].body.decode()


RAW = [
    {"role": 0, "content": [{"type": 1, "text": "Be brief."}]},
    {"role": 1, "content": [{"type": 1, "text": "Hello?"}]},
]


def opened(server: Served, **order: object) -> tuple[int, Any]:
    return server.post("/api/exchanges", json.dumps(order).encode())


def test_a_raw_document_is_opened_in_the_editor_edited_and_sent(acme: Upstream, server: Served) -> None:
    acme.script = [says(MESSAGE)]
    status, made = opened(server, dialect="raw", body=json.dumps(RAW), model="claude/c", session="mine")
    assert status == 200
    view = server.api(f"/api/exchanges/{made['id']}")
    assert (view["state"], view["dialect"], view["session"]) == ("held", "raw", "mine")
    assert [section["text"] for section in view["sections"][:2]] == ["Be brief.", "Hello?"]
    person = Person(server)
    edited = person.edited(made["id"], op="set_text", section=view["sections"][1]["id"], text="Hello there?")
    assert acme.seen == [], "nothing is sent before a person sends it"
    assert person.release(made["id"], edited["body_sha256"])[0] == 200
    view = person.ended(made["id"])
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
