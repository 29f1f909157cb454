import http.client
import json
import re
from collections.abc import Iterator

import pytest

from sightline.errors import Code, Fault
from sightline.model.exchange import AttemptStarted, ExchangeFinished, FrameArrived, Received
from sightline.store.entries import BodyEntry, FactEntry
from tests.server.running import TOKEN, Running, running


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as made:
        made.store.record(
            [
                BodyEntry("aa", b'{"model":"m"}'),
                FactEntry("x_1", 0, 1.0, Received("anthropic", "m", "aa")),
                FactEntry("x_1", 1, 1.0, AttemptStarted(1, "acme", "aa")),
                FactEntry("x_1", 2, 1.0, FrameArrived(b"<script>", 0.1)),
                FactEntry("x_1", 3, 2.0, ExchangeFinished("stop", 200)),
            ]
        )
        yield made


def test_health_needs_no_token(server: Running) -> None:
    status, headers, body = server.ask("GET", "/api/health")
    assert status == 200
    assert json.loads(body)["status"] == "ok"
    assert headers["cache-control"] == "no-store"
    assert server.ask("POST", "/api/health", b"")[0] == 405


def test_health_says_what_keeps_the_record_from_being_written(server: Running) -> None:
    assert "store" not in json.loads(server.ask("GET", "/api/health")[2])
    server.store.trouble = Fault(Code.CONFIG, "the disk is full", hint="Free some space.")
    status, _, body = server.ask("GET", "/api/health")
    server.store.trouble = None
    assert (status, json.loads(body)["store"]) == (200, {"trouble": "the disk is full"})


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/exchanges", "/api/exchanges/x_1", "/api/events", "/api/rules"])
@pytest.mark.parametrize("shown", [{}, {"authorization": "Bearer wrong"}, {"cookie": "sightline_1=wrong"}])
def test_everything_else_does(server: Running, path: str, shown: dict[str, str]) -> None:
    for method in ("GET", "POST", "PUT", "DELETE"):
        status, headers, body = server.ask(method, path, None, shown)
        assert status == 401
        assert json.loads(body)["error"]["code"] == "auth"
        assert headers["cache-control"] == "no-store"
        assert "set-cookie" not in headers


def test_the_printed_link_leaves_a_cookie_that_opens_the_page(server: Running) -> None:
    status, headers, body = server.ask("GET", f"/?token={TOKEN}")
    assert (status, headers["location"], body) == (303, "/", b"")
    assert "HttpOnly" in headers["set-cookie"]
    assert "SameSite=Strict" in headers["set-cookie"]
    cookie = {"cookie": headers["set-cookie"].partition(";")[0]}
    status, headers, body = server.ask("GET", "/", None, cookie)
    assert status == 200
    assert "unsafe-inline" not in headers["content-security-policy"]
    named = re.search(rb'src="(/ui/[0-9a-f]+/app.js)"', body)
    assert named is not None
    status, headers, _ = server.ask("GET", named[1].decode())
    assert (status, headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    assert server.ask("POST", named[1].decode(), b"")[0] == 405
    assert server.ask("GET", "/api/exchanges", None, cookie)[0] == 200


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=wrong", f"/?Token={TOKEN}"])
def test_without_it_the_page_shows_nothing_and_sets_nothing(server: Running, path: str) -> None:
    status, headers, body = server.ask("GET", path)
    assert status == 401
    assert "set-cookie" not in headers
    assert b"exchange" not in body


def test_clients_that_knock_get_an_answer(server: Running) -> None:
    assert server.ask("HEAD", "/")[0] == 200
    assert server.ask("GET", "/favicon.ico")[0] == 204
    assert server.ask("POST", "/", b"")[0] == 405


def test_lists_views_and_bodies(server: Running) -> None:
    status, told = server.api("/api/exchanges?limit=5")
    assert status == 200
    assert {"id", "state", "dialect", "provider", "model", "session", "at", "status"} <= set(told["exchanges"][0])
    status, told = server.api("/api/exchanges/x_1")
    assert (status, told["id"], told["state"]) == (200, "x_1", "finished")
    status, told = server.api("/api/exchanges/x_1/body")
    assert (status, told) == (200, {"model": "m"})
    status, headers, body = server.ask(
        "GET", "/api/exchanges/x_1/body?of=reply", None, {"authorization": f"Bearer {TOKEN}"}
    )
    assert (status, body) == (200, b"<script>")
    assert headers["content-type"].startswith("text/plain")
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/exchanges/x_9", 404),
        ("GET", "/api/exchanges/x_9/body", 404),
        ("GET", "/api/exchanges/x_1/body?of=x", 400),
        ("GET", "/api/exchanges?limit=x", 400),
        ("GET", "/api/exchanges?filter=model:(", 400),
        ("GET", "/api/nothing", 404),
        ("GET", "/api", 404),
        ("GET", "/api/rules", 404),
        ("PUT", "/api/rules", 404),
        ("POST", "/api/exchanges/x_1/edits", 409),
        ("POST", "/api/exchanges/x_1/release", 409),
        ("POST", "/api/exchanges/x_1/drop", 409),
        ("POST", "/api/exchanges/x_1/replay", 409),
        ("GET", "/api/exchanges/x_1/replay", 405),
        ("POST", "/api/exchanges", 409),
        ("PUT", "/api/exchanges", 405),
        ("DELETE", "/api/exchanges/x_1", 405),
        ("POST", "/api/exchanges/x_1/body", 405),
        ("POST", "/api/events", 405),
    ],
)
def test_what_is_not_there_is_told_in_one_shape(server: Running, method: str, path: str, status: int) -> None:
    got, told = server.api(path, method)
    assert got == status
    assert set(told["error"]) == {"code", "message", "hint"}
    assert told["error"]["hint"]


def test_facts_are_heard_live(server: Running) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("GET", "/api/events", headers={"authorization": f"Bearer {TOKEN}"})
    answer = connection.getresponse()
    assert answer.readline() == b": listening\n"
    assert answer.readline() == b"\n"
    noted = FactEntry("x_7", 0, 3.0, Received("gemini", "m", "cc"))
    server.loop.call_soon_threadsafe(server.hub.record, [noted])
    told = json.loads(answer.readline().removeprefix(b"data: "))
    assert (told["exchange"], told["kind"], told["dialect"]) == ("x_7", "received", "gemini")
    answer.close()
    connection.close()
