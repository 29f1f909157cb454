"""Realtime, Gemini Live and other sockets, which pass as they are."""

import json
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.server import ServerConnection
from websockets.typing import Subprotocol

from tests.gateway.test_responses_socket import client_of
from tests.gateway_server import Served, served
from tests.person import Person
from tests.socket_upstream import SocketUpstream, socket_upstream

HOME = '[providers.acme]\nbase_url = "{url}"\ndialect = "openai-chat"\nhome = ["openai-chat"]\n'


def echo(connection: ServerConnection, upstream: SocketUpstream) -> None:
    for frame in connection:
        upstream.frames.append(frame)
        connection.send(frame)


def only_exchange(server: Served) -> dict[str, Any]:
    person = Person(server)
    (listed,) = person.get("/api/exchanges")["exchanges"]
    ended: dict[str, Any] = person.ended(listed["id"])
    return ended


def test_realtime_passes_as_it_is_and_is_on_record(tmp_path: Path) -> None:
    with socket_upstream(echo) as upstream, served(tmp_path, HOME.format(url=upstream.url)) as server:
        headers = {"Authorization": "Bearer sk-mine-1234567"}
        with client_of(server, "/s/talk/v1/realtime?model=gpt-realtime", additional_headers=headers) as socket:
            for sent in ('{"type": "session.update",\n "a": 1}', b"\x00\xff audio", "ü" * 70_000):
                socket.send(sent)
                assert socket.recv(timeout=30) == sent
            socket.close(4000, "done here")
        assert upstream.closed.wait(30)
        assert upstream.closes == [(4000, "done here")]
        (handshake,) = upstream.handshakes
        assert handshake.path == "/v1/realtime?model=gpt-realtime"
        assert handshake.headers["Authorization"] == "Bearer sk-mine-1234567"
        shown = only_exchange(server)
        assert (shown["state"], shown["dialect"], shown["transport"]) == ("finished", "raw-http", "websocket")
        assert (shown["session"], shown["status"]) == ("talk", 101)
        record = server.body(str(shown["id"]), "reply")
        assert record.count(b"event: client\n") == record.count(b"event: server\n") == 2
        assert b"event: client.binary\n" in record
        assert b'event: close\ndata: {"code":4000,"reason":"done here"}' in record
        assert b"sk-mine" not in record + json.dumps(shown).encode()
        passed = shown["raw"]["reply"]
        assert (passed["media_type"], passed["size"], passed["kept"]) == ("text/event-stream", len(record), len(record))
        assert passed["sha256"] == sha256(record).hexdigest()
        status, refusal = server.post(f"/api/exchanges/{shown['id']}/replay")
        assert (status, refusal["error"]["code"]) == (422, "usage")


def test_frames_without_room_on_record_are_counted(tmp_path: Path) -> None:
    config = "[store]\nraw_body_mb = 1\n" + HOME
    with socket_upstream(echo) as upstream, served(tmp_path, config.format(url=upstream.url)) as server:
        with client_of(server, "/v1/realtime") as socket:
            for _ in range(2):
                socket.send("a" * 400_000)
                assert socket.recv(timeout=30) == "a" * 400_000
        assert upstream.closed.wait(30)
        shown = only_exchange(server)
        passed = shown["raw"]["reply"]
        assert passed["size"] > 1_600_000
        assert passed["kept"] == 1 << 20 == len(server.body(str(shown["id"]), "reply"))


def test_live_goes_to_gemini_with_the_configured_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEM_KEY", "configured-key-1")
    path = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
    with socket_upstream(echo) as upstream:
        base = upstream.url.removesuffix("/v1")
        config = f'[providers.gem]\nbase_url = "{base}"\ndialect = "gemini"\nkey_env = "GEM_KEY"\nhome = ["gemini"]\n'
        with served(tmp_path, config) as server:
            with client_of(server, f"{path}?key=clients-own") as socket:
                socket.send('{"setup":{}}')
                assert socket.recv(timeout=30) == '{"setup":{}}'
            assert upstream.closed.wait(30)
            only_exchange(server)
    (handshake,) = upstream.handshakes
    assert handshake.path == path
    assert handshake.headers["x-goog-api-key"] == "configured-key-1"


def test_any_path_below_a_provider_and_its_subprotocol(tmp_path: Path) -> None:
    choice = {"subprotocols": [Subprotocol("realtime")]}
    with (
        socket_upstream(echo, **choice) as upstream,
        served(tmp_path, HOME.format(url=upstream.url)) as server,
        client_of(server, "/p/acme/other/place", **choice) as socket,
    ):
        assert socket.subprotocol == "realtime"
        assert upstream.handshakes[0].path == "/v1/other/place"


def test_a_refusal_is_what_the_client_gets(tmp_path: Path) -> None:
    with socket_upstream(echo) as upstream, served(tmp_path, HOME.format(url=upstream.url)) as server:
        upstream.refusal = lambda connection: connection.respond(403, '{"error":{"message":"not you"}}')
        with pytest.raises(InvalidStatus) as refused, client_of(server, "/v1/realtime"):
            pass
        assert refused.value.response.status_code == 403
        assert refused.value.response.body == b'{"error":{"message":"not you"}}'
        shown = only_exchange(server)
    assert (shown["state"], shown["status"]) == ("failed", 403)


@pytest.mark.parametrize("is_clean", [True, False])
def test_the_end_of_the_provider_is_told(tmp_path: Path, is_clean: bool) -> None:
    gate = threading.Event()

    def play(connection: ServerConnection, upstream: SocketUpstream) -> None:
        connection.send("hello")
        gate.wait(30)
        if is_clean:
            connection.close(4100, "session expired")
        else:
            connection.socket.shutdown(2)

    with socket_upstream(play) as upstream, served(tmp_path, HOME.format(url=upstream.url)) as server:
        with client_of(server, "/v1/realtime") as socket:
            assert socket.recv(timeout=30) == "hello"
            gate.set()
            with pytest.raises(ConnectionClosed) as closed:
                socket.recv(timeout=30)
        shown = only_exchange(server)
    assert closed.value.rcvd.code == (4100 if is_clean else 1011)
    assert shown["state"] == ("finished" if is_clean else "failed")


@pytest.mark.filterwarnings("ignore:connect\\(\\) must be used:DeprecationWarning")  # by the library itself
def test_openais_library_opens_a_realtime_session(tmp_path: Path) -> None:
    created = {"type": "session.created", "event_id": "e1", "session": {"type": "realtime", "model": "gpt-realtime"}}

    def play(connection: ServerConnection, upstream: SocketUpstream) -> None:
        connection.send(json.dumps(created))
        echo(connection, upstream)

    with socket_upstream(play) as upstream, served(tmp_path, HOME.format(url=upstream.url)) as server:
        client = OpenAI(api_key="sk-x", base_url=f"{server.url}/v1")
        with client.realtime.connect(model="gpt-realtime") as connection:
            assert connection.recv().type == "session.created"
            connection.response.create()
            assert connection.recv_bytes() == str(upstream.frames[0]).encode()
        assert upstream.closed.wait(30)
        assert only_exchange(server)["state"] == "finished"
    assert upstream.handshakes[0].path == "/v1/realtime?model=gpt-realtime"


def test_a_cap_that_holds_lets_a_person_decide_before_it_is_opened(tmp_path: Path) -> None:
    cap = '[[caps]]\nname = "daily"\ntokens = 1\naction = "hold"\n'
    with socket_upstream(echo) as upstream, served(tmp_path, HOME.format(url=upstream.url) + cap) as server:
        person = Person(server)
        opened: list[Any] = []

        def connect() -> None:
            try:
                with client_of(server, "/v1/realtime", open_timeout=60) as socket:
                    socket.send("hi")
                    opened.append(socket.recv(timeout=30))
            except InvalidStatus as refused:
                opened.append(refused.response.status_code)

        for decision, got in (("drop", 400), ("release", "hi")):
            client = threading.Thread(target=connect)
            client.start()
            (held,) = person.held()
            shown = person.view(held)
            assert shown["hold"]["reason"].startswith("the cap daily cannot count this request"), shown["hold"]
            assert upstream.handshakes == []
            assert (person.release(held) if decision == "release" else person.act(held, "drop"))[0] == 200
            client.join(60)
            assert opened.pop() == got
