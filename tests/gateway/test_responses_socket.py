"""The Responses API over WebSocket: a client's socket, a provider's socket, and what stands on record between them."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import ServerConnection

from tests.gateway_server import Served, served
from tests.person import Person
from tests.socket_upstream import Play, SocketUpstream, answer_all, events, script, socket_upstream

ACME = '[providers.acme]\nbase_url = "{url}"\ndialect = "openai-responses"\n'
ASK = {"type": "response.create", "model": "gpt-5", "input": "hi", "store": False}


@contextmanager
def client_of(server: Served, path: str = "/p/acme/v1/responses", **options: Any) -> Iterator[ClientConnection]:
    with connect(server.url.replace("http", "ws") + path, **options) as socket:
        yield socket


def read_response(socket: ClientConnection) -> list[str]:
    """The frames up to the end of a response."""
    frames: list[str] = []
    while True:
        frame = socket.recv(timeout=30)
        frames.append(frame)
        if json.loads(frame)["type"] in ("response.completed", "response.failed", "response.incomplete", "error"):
            return frames


def exchanges(server: Served) -> list[Any]:
    """All of them, the oldest first."""
    listed = server.api("/api/exchanges")["exchanges"]
    return [server.api(f"/api/exchanges/{each['id']}") for each in reversed(listed)]


@contextmanager
def serving(folder: Path, play: Play, more: str = "", **options: Any) -> Iterator[tuple[Served, SocketUpstream]]:
    """A server in front of a provider that plays this; `more` are further lines of the provider's settings."""
    with (
        socket_upstream(play, **options) as upstream,
        served(folder, ACME.format(url=upstream.url) + more) as server,
    ):
        yield server, upstream


@pytest.fixture
def upstream() -> Iterator[SocketUpstream]:
    with socket_upstream(answer_all) as made:
        yield made


@pytest.fixture
def server(tmp_path: Path, upstream: SocketUpstream) -> Iterator[Served]:
    with served(tmp_path, ACME.format(url=upstream.url)) as made:
        yield made


def test_frames_pass_as_they_are_and_each_request_is_an_exchange(server: Served, upstream: SocketUpstream) -> None:
    headers = {"Authorization": "Bearer sk-client-1", "OpenAI-Beta": "responses_websockets=2026-02-06"}
    asked = ['{"type":"response.create" ,"model":"gpt-5","input":"one"}', json.dumps(ASK)]
    with client_of(server, "/p/acme/s/task/v1/responses?x=1", additional_headers=headers) as socket:
        for number, frame in enumerate(asked, 1):
            socket.send(frame)
            assert read_response(socket) == events(f"resp_{number}", f"answer number {number}")
    assert upstream.frames == asked
    (handshake,) = upstream.handshakes
    assert handshake.path == "/v1/responses?x=1"
    assert handshake.headers["Authorization"] == "Bearer sk-client-1"
    assert handshake.headers["OpenAI-Beta"] == "responses_websockets=2026-02-06"
    assert handshake.headers["Sec-WebSocket-Extensions"].startswith("permessage-deflate; ")
    for frame, each in zip(asked, exchanges(server), strict=True):
        assert (each["state"], each["transport"], each["session"]) == ("finished", "websocket", "task")
        assert each["hashes"]["received"] == each["hashes"]["sent"] == sha256(frame.encode()).hexdigest()
        assert server.body(each["id"], "sent") == frame.encode()
        assert each["input_tokens"] == 3
        assert "sk-client-1" not in json.dumps(each)
    listed = server.api("/api/exchanges?filter=transport:websocket")["exchanges"]
    assert [each["transport"] for each in listed] == ["websocket", "websocket"]
    assert server.api("/api/exchanges?filter=transport:tls")["exchanges"] == []


def test_messages_are_compressed_where_the_client_wants_it_and_proven_as_they_read(
    server: Served, upstream: SocketUpstream
) -> None:
    long = json.dumps({**ASK, "input": "again and again " * 50_000})
    with client_of(server) as socket, client_of(server, compression=None) as plain:
        for each in (socket, plain):
            each.send(long)
            assert read_response(each) == events("resp_1", "answer number 1")
        agreed = [each.protocol.extensions for each in (socket, plain)]
    assert [[extension.name for extension in each] for each in agreed] == [["permessage-deflate"], []]
    assert ["Sec-WebSocket-Extensions" in each.headers for each in upstream.handshakes] == [True, False]
    assert upstream.frames == [long, long]
    for each in exchanges(server):
        assert each["hashes"]["sent"] == sha256(long.encode()).hexdigest()


def test_a_provider_that_does_not_compress_is_not_asked_twice(tmp_path: Path) -> None:
    with serving(tmp_path, answer_all, compression=None) as (server, upstream), client_of(server) as socket:
        socket.send(json.dumps(ASK))
        assert read_response(socket) == events("resp_1", "answer number 1")
        assert [extension.name for extension in socket.protocol.extensions] == ["permessage-deflate"]
    assert len(upstream.handshakes) == 1


def test_close_codes_and_reasons_pass_both_ways(server: Served, upstream: SocketUpstream) -> None:
    with client_of(server) as socket:
        socket.close(4001, "enough")
    assert upstream.closed.wait(30)
    assert upstream.closes == [(4001, "enough")]


def test_the_providers_close_reaches_the_client(tmp_path: Path) -> None:
    def play(connection: ServerConnection, upstream: SocketUpstream) -> None:
        upstream.take(connection)
        connection.close(4002, "over the limit")

    with serving(tmp_path, play) as (server, _), client_of(server) as socket:
        socket.send('{"type":"response.cancel"}')
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=30)
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4002, "over the limit")


def test_a_refused_handshake_is_what_the_client_gets(server: Served, upstream: SocketUpstream) -> None:
    upstream.refusal = lambda connection: connection.respond(401, '{"error":{"message":"no such key"}}')
    with pytest.raises(InvalidStatus) as refused, client_of(server):
        pass
    assert refused.value.response.status_code == 401
    assert refused.value.response.body == b'{"error":{"message":"no such key"}}'
    assert exchanges(server) == []


def test_a_provider_that_is_not_there_is_a_502(tmp_path: Path) -> None:
    with (
        served(tmp_path, ACME.format(url="http://127.0.0.1:1/v1")) as server,
        pytest.raises(InvalidStatus) as refused,
        client_of(server),
    ):
        pass
    assert refused.value.response.status_code == 502


def test_lanes_run_side_by_side(tmp_path: Path) -> None:
    first, second = events("resp_a", "one two", stream_id="a"), events("resp_b", "three four", stream_id="b")
    mixed = [frame for pair in zip(first, second, strict=True) for frame in pair]
    with serving(tmp_path, script(None, None, *mixed, None)) as (server, _):
        with client_of(server) as socket:
            for lane in ("a", "b"):
                socket.send(json.dumps({**ASK, "stream_id": lane}))
            got = [socket.recv(timeout=30) for _ in mixed]
        assert sorted(got) == sorted(mixed)
        assert [each for each in got if '"stream_id":"a"' in str(each)] == first
        assert [each for each in got if '"stream_id":"b"' in str(each)] == second
        shown = exchanges(server)
    assert [each["state"] for each in shown] == ["finished", "finished"]
    assert [each["hashes"]["sent"] for each in shown] == [
        sha256(json.dumps({**ASK, "stream_id": lane}).encode()).hexdigest() for lane in ("a", "b")
    ]


def test_cancel_goes_to_the_provider_while_the_response_is_under_way(tmp_path: Path) -> None:
    frames = events("resp_1", "a b")
    last = json.dumps({"type": "response.incomplete", "response": {"id": "resp_1", "status": "cancelled"}})
    cancel = '{"type":"response.cancel","response_id":"resp_1"}'
    with serving(tmp_path, script(None, frames[0], None, last, None)) as (server, upstream):
        with client_of(server) as socket:
            socket.send(json.dumps(ASK))
            assert socket.recv(timeout=30) == frames[0]
            socket.send(cancel)
            assert socket.recv(timeout=30) == last
        assert upstream.frames[1] == cancel


def test_cancel_goes_to_the_provider_of_its_response_if_there_are_several(tmp_path: Path) -> None:
    first, second = events("resp_1", "a", stream_id="one"), events("resp_2", "b", stream_id="two")
    last = json.dumps({"type": "response.incomplete", "stream_id": "one", "response": {"id": "resp_1"}})
    cancel = '{"type":"response.cancel","response_id":"resp_1"}'
    routes = '[[routes]]\nmodel = "o*"\nprovider = "other"\n[[routes]]\nmodel = "*"\nprovider = "acme"\n'
    with socket_upstream(script(None, *second, None)) as other:
        config = ACME.replace("acme", "other").format(url=other.url) + routes
        with serving(tmp_path, script(None, first[0], None, last, None), config) as (server, upstream):
            with client_of(server, "/v1/responses") as socket:
                socket.send(json.dumps({**ASK, "stream_id": "one"}))
                assert socket.recv(timeout=30) == first[0]
                socket.send(json.dumps({**ASK, "model": "o3", "stream_id": "two"}))
                assert read_response(socket) == second
                socket.send(cancel)
                assert socket.recv(timeout=30) == last
            assert upstream.frames[1:] == [cancel]
        assert len(other.frames) == 1


def test_what_follows_a_steered_response_is_an_exchange_of_its_own(tmp_path: Path) -> None:
    first, second = events("resp_1", "a b"), events("resp_2", "c d")
    steered = json.dumps({"type": "response.incomplete", "response": {"id": "resp_1", "status": "incomplete"}})
    accepted = json.dumps({"type": "response.steer.accepted", "steer": {"id": "s", "previous_response_id": "resp_1"}})
    steer = '{"type":"response.steer","previous_response_id":"resp_1","input":"shorter"}'
    play = script(None, first[0], None, accepted, steered, *second, None)
    with serving(tmp_path, play) as (server, _):
        with client_of(server) as socket:
            socket.send(json.dumps(ASK))
            assert socket.recv(timeout=30) == first[0]
            socket.send(steer)
            got = [socket.recv(timeout=30) for _ in range(2 + len(second))]
        assert got == [accepted, steered, *second]
        before, after = exchanges(server)
        assert (before["state"], after["state"]) == ("finished", "finished")
        assert server.body(after["id"], "sent") == steer.encode()
        assert b"resp_2" in server.body(after["id"], "reply")


def test_a_cut_in_the_middle_is_an_error_and_no_success(tmp_path: Path) -> None:
    frames = events("resp_1", "a b c")[:5]

    def play(connection: ServerConnection, upstream: SocketUpstream) -> None:
        script(None, *frames)(connection, upstream)
        connection.socket.shutdown(2)

    with serving(tmp_path, play) as (server, _):
        with client_of(server) as socket:
            socket.send(json.dumps(ASK))
            got = read_response(socket)
            with pytest.raises(ConnectionClosed) as closed:
                socket.recv(timeout=30)
        assert got[:5] == frames
        assert json.loads(got[5])["type"] == "response.failed"
        assert closed.value.rcvd.code == 1011
        (shown,) = exchanges(server)
        assert (shown["state"], shown["fault"]["code"]) == ("failed", "network")


def test_a_provider_that_stalls_is_given_up(tmp_path: Path) -> None:
    gate = threading.Event()

    def play(connection: ServerConnection, upstream: SocketUpstream) -> None:
        script(None, events("resp_1", "a")[0])(connection, upstream)
        gate.wait(30)

    with serving(tmp_path, play, "stream_idle_timeout_ms = 200\n") as (server, _):
        with client_of(server) as socket:
            socket.send(json.dumps(ASK))
            assert json.loads(read_response(socket)[-1])["type"] == "response.failed"
        (shown,) = exchanges(server)
        assert (shown["state"], shown["fault"]["code"]) == ("failed", "timeout_idle")
        gate.set()


def test_frames_with_line_ends_and_large_ones_pass_as_they_are(tmp_path: Path) -> None:
    frames = events("resp_1", "a")
    frames[1] = json.dumps(json.loads(frames[1]), indent=2).replace("\n", "\r\n")
    frames.insert(2, json.dumps({"type": "response.custom", "data": "é" * 3_000_000}))

    def play(connection: ServerConnection, upstream: SocketUpstream) -> None:
        script(None, frames[0])(connection, upstream)
        connection.send(iter([frames[1][:7], frames[1][7:]]))  # fragments
        script(*frames[2:], None)(connection, upstream)

    with serving(tmp_path, play) as (server, upstream):
        with client_of(server, max_size=None) as socket:
            socket.send(json.dumps({**ASK, "input": "y" * 5_000_000}))
            assert read_response(socket) == frames
        assert len(upstream.frames[0]) > 5_000_000


# --- a person in between ----------------------------------------------------------------------------


HOLD = {"filter": "", "action": "hold", "phase": "request"}


def test_a_held_frame_is_edited_and_what_was_shown_is_sent(server: Served, upstream: SocketUpstream) -> None:
    person = Person(server)
    person.put("/api/rules", [HOLD])
    with client_of(server) as socket:
        socket.send(json.dumps(ASK))
        socket.send('{"type":"response.cancel"}')
        (held,) = person.held()
        pong = socket.ping()
        assert pong.wait(30)
        assert upstream.frames == []
        shown = person.edited(held, op="set", pointer="/input", value="bye")
        assert person.release(held, shown["body_sha256"])[0] == 200
        assert read_response(socket) == events("resp_1", "answer number 1")
    (shown_at_end,) = exchanges(server)
    asked, cancel = upstream.frames
    assert json.loads(asked) == {**ASK, "input": "bye"}
    assert cancel == '{"type":"response.cancel"}'
    assert shown_at_end["hashes"]["sent"] == shown["body_sha256"] == sha256(asked.encode()).hexdigest()


def test_a_held_request_whose_socket_has_ended_meanwhile_can_be_steered(tmp_path: Path) -> None:
    first, second = events("resp_1", "a b"), events("resp_2", "c d")
    steered = json.dumps({"type": "response.incomplete", "response": {"id": "resp_1", "status": "incomplete"}})
    steer = '{"type":"response.steer","previous_response_id":"resp_1","input":"shorter"}'
    is_held = threading.Event()

    def play(connection: ServerConnection, upstream: SocketUpstream) -> None:
        if len(upstream.handshakes) == 1:
            is_held.wait(30)
        else:
            script(None, first[0], None, steered, *second, None)(connection, upstream)

    with serving(tmp_path, play) as (server, upstream):
        person = Person(server)
        person.put("/api/rules", [HOLD])
        with client_of(server) as socket:
            socket.send(json.dumps(ASK))
            (held,) = person.held()
            is_held.set()
            assert upstream.closed.wait(30)
            assert person.release(held)[0] == 200
            assert socket.recv(timeout=30) == first[0]
            socket.send(steer)
            assert [socket.recv(timeout=30) for _ in range(1 + len(second))] == [steered, *second]
        assert upstream.frames == [json.dumps(ASK), steer]


def test_a_frame_with_half_a_surrogate_pair_is_held_like_any_other(server: Served, upstream: SocketUpstream) -> None:
    asked = json.dumps({**ASK, "input": "cut in the middle of a smile: \ud83d"})
    person = Person(server)
    person.put("/api/rules", [HOLD])
    with client_of(server) as socket:
        socket.send(asked)
        (held,) = person.held()
        assert upstream.frames == []
        assert person.release(held)[0] == 200
        assert read_response(socket) == events("resp_1", "answer number 1")
    (shown,) = exchanges(server)
    assert upstream.frames == [asked]
    assert shown["hashes"]["sent"] == sha256(asked.encode()).hexdigest()


@pytest.mark.parametrize(
    "frame",
    [
        '{"type":"response.create","input":"hi","top_p":NaN}',
        '{"type":"response.create","input":"hi","model":["gpt-5"]}',
    ],
)
def test_a_frame_that_cannot_be_read_does_not_pass_unseen(server: Served, upstream: SocketUpstream, frame: str) -> None:
    with client_of(server) as socket:
        socket.send(frame)
        (error,) = map(json.loads, read_response(socket))
        assert (error["type"], error["status"]) == ("error", 400)
        socket.send(json.dumps(ASK))
        assert read_response(socket) == events("resp_1", "answer number 1")
    assert upstream.frames == [json.dumps(ASK)]


def test_an_error_about_half_a_surrogate_pair_leaves_the_socket_open(server: Served, upstream: SocketUpstream) -> None:
    with client_of(server) as socket:
        socket.send(json.dumps({"type": "response.create", "stream_id": "\ud83d", "input": "for no model"}))
        (error,) = map(json.loads, read_response(socket))
        assert (error["type"], error["stream_id"]) == ("error", "\ud83d")
        socket.send(json.dumps(ASK))
        assert read_response(socket) == events("resp_1", "answer number 1")
    assert upstream.frames == [json.dumps(ASK)]


def test_events_with_half_a_surrogate_pair_belong_to_their_response(tmp_path: Path) -> None:
    said = events("resp_1", "smile \ud83d")
    with serving(tmp_path, script(None, *said, None)) as (server, _), client_of(server) as socket:
        socket.send(json.dumps(ASK))
        assert read_response(socket) == said
        (shown,) = exchanges(server)
        assert shown["state"] == "finished"


def test_a_held_frame_that_is_dropped_is_an_error_event(server: Served, upstream: SocketUpstream) -> None:
    person = Person(server)
    person.put("/api/rules", [{**HOLD, "once": True}])
    with client_of(server) as socket:
        socket.send(json.dumps({**ASK, "stream_id": "a"}))
        (held,) = person.held()
        assert person.ask("POST", f"/api/exchanges/{held}/drop", {})[0] == 200
        (error,) = [json.loads(frame) for frame in read_response(socket)]
        assert (error["type"], error["status"], error["stream_id"]) == ("error", 400, "a")
        assert "dropped" in error["error"]["message"]
        socket.send(json.dumps(ASK))
        assert read_response(socket) == events("resp_1", "answer number 1")
    assert len(upstream.frames) == 1


def test_a_held_frame_can_be_answered_by_hand(server: Served, upstream: SocketUpstream) -> None:
    person = Person(server)
    person.put("/api/rules", [HOLD])
    with client_of(server) as socket:
        socket.send(json.dumps(ASK))
        (held,) = person.held()
        reply = {"reply": {"parts": [{"type": "text", "text": "by a person"}]}}
        assert person.ask("POST", f"/api/exchanges/{held}/answer", reply)[0] == 200
        frames = [json.loads(frame) for frame in read_response(socket)]
    assert frames[-1]["response"]["output"][0]["content"][0]["text"] == "by a person"
    assert upstream.frames == []


def test_a_client_that_leaves_ends_its_hold(server: Served) -> None:
    person = Person(server)
    person.put("/api/rules", [HOLD])
    with client_of(server) as socket:
        socket.send(json.dumps(ASK))
        (held,) = person.held()
        socket.socket.close()
    shown = person.ended(held)
    assert (shown["state"], shown["reason"]) == ("cancelled", "client_gone")


def test_tool_calls_are_held_before_the_client_sees_them(tmp_path: Path) -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "rm", "arguments": '{"path":"/"}'}
    head = {"id": "resp_1", "object": "response", "model": "gpt-5", "status": "in_progress", "output": []}
    frames = [
        {"type": "response.created", "response": head},
        {"type": "response.output_item.added", "output_index": 0, "item": {**call, "arguments": ""}},
        {
            "type": "response.function_call_arguments.delta",
            "item_id": "fc_1",
            "output_index": 0,
            "delta": '{"path":"/"}',
        },
        {"type": "response.output_item.done", "output_index": 0, "item": call},
        {"type": "response.completed", "response": {**head, "status": "completed", "output": [call]}},
    ]
    with serving(tmp_path, script(None, *map(json.dumps, frames), None)) as (server, _):
        person = Person(server)
        person.put("/api/rules", [{**HOLD, "phase": "tool_calls"}])
        with client_of(server) as socket:
            socket.send(json.dumps(ASK))
            (held,) = person.held()
            section = person.view(held)["sections"][0]["id"]
            shown = person.edited(held, op="set_text", section=section, text='{"path":"/tmp"}')
            assert person.release(held, shown["body_sha256"])[0] == 200
            got = read_response(socket)
    assert json.loads(got[-1])["response"]["output"][0]["arguments"] == '{"path":"/tmp"}'
    assert '"/"' not in "".join(got)


def test_a_frame_is_replayed_over_a_socket_of_its_own(server: Served, upstream: SocketUpstream) -> None:
    asked = json.dumps({**ASK, "stream_id": "a"})
    with client_of(server) as socket:
        socket.send(asked)
        read_response(socket)
    (first,) = exchanges(server)
    person = Person(server)
    status, told = person.act(first["id"], "replay")
    assert status == 200, told
    again = person.ended(told["id"])
    assert (again["state"], again["transport"], again["origin"]) == ("finished", "websocket", first["id"])
    assert upstream.frames == [asked, asked]
    assert again["hashes"]["sent"] == first["hashes"]["sent"]
    assert len(upstream.handshakes) == 2


def test_a_configured_key_is_sent_and_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_KEY", "configured-key-9")
    play = script(None, *events("resp_1", "this configured-key-9 leaks"), None)
    with serving(tmp_path, play, 'key_env = "ACME_KEY"\n') as (server, upstream):
        with client_of(server, additional_headers={"Authorization": "Bearer clients-own"}) as socket:
            socket.send(json.dumps(ASK))
            frames = read_response(socket)
        (shown,) = exchanges(server)
        record = server.body(shown["id"], "reply").decode()
    assert upstream.handshakes[0].headers.get_all("Authorization") == ["Bearer configured-key-9"]
    assert len(frames) == len(events("resp_1", "this configured-key-9 leaks"))
    assert "configured-key-9" not in "".join(frames) + record


def test_calls_that_are_dropped_leave_the_socket_usable(tmp_path: Path) -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "rm", "arguments": "{}"}
    head = {"id": "resp_1", "object": "response", "model": "gpt-5", "status": "completed", "output": [call]}
    calling = [{"type": "response.created", "response": {**head, "output": []}},
               {"type": "response.output_item.done", "output_index": 0, "item": call},
               {"type": "response.completed", "response": head}]  # fmt: skip
    play = script(None, *map(json.dumps, calling), None, *events("resp_2", "fine"), None)
    with serving(tmp_path, play) as (server, _):
        person = Person(server)
        person.put("/api/rules", [{**HOLD, "phase": "tool_calls"}])
        with client_of(server) as socket:
            socket.send(json.dumps(ASK))
            (held,) = person.held()
            assert person.act(held, "drop")[0] == 200
            (error,) = map(json.loads, read_response(socket))
            assert error["type"] == "error"
            socket.send(json.dumps(ASK))
            assert read_response(socket) == events("resp_2", "fine")


def test_a_frame_is_shown_as_a_command_that_asks_the_same_over_http(tmp_path: Path, upstream: SocketUpstream) -> None:
    with served(tmp_path, ACME.format(url=upstream.url)) as server:
        with client_of(server) as socket:
            socket.send(json.dumps(ASK))
            read_response(socket)
        (shown,) = exchanges(server)
    program = [sys.executable, "-c", "from sightline.cli import main; raise SystemExit(main())"]
    options = ["--config", str(tmp_path / "sightline.toml"), "--data", str(tmp_path / "data")]
    done = subprocess.run([*program, "show", shown["id"], "--as", "curl", *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "response.create" not in done.stdout
    assert '"input":"hi"' in done.stdout
    assert '"stream":true' in done.stdout
    assert "content-type: application/json" in done.stdout.lower()


@pytest.mark.filterwarnings("ignore:connect\\(\\) must be used:DeprecationWarning")  # by the library itself
def test_openais_library_speaks_with_the_provider(server: Served, upstream: SocketUpstream) -> None:
    client = OpenAI(api_key="sk-x", base_url=f"{server.url}/p/acme/v1")
    before = None
    with client.responses.connect() as connection:
        for number in (1, 2):
            more = {} if before is None else {"previous_response_id": before}
            connection.response.create(model="gpt-5", input="hi", **more)
            for event in connection:
                if event.type == "response.completed":
                    assert event.response.output_text == f"answer number {number}"
                    before = event.response.id
                    break
        connection.response.steer(previous_response_id=before or "", input="shorter")
    assert upstream.closed.wait(30)
    sent = [json.loads(frame) for frame in upstream.frames]
    assert [each["type"] for each in sent] == ["response.create", "response.create", "response.steer"]
    assert [each["state"] for each in exchanges(server)] == ["finished", "finished"]
