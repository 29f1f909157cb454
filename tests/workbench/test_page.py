import asyncio
import http.client
import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from sightline.errors import Code, Fault
from sightline.exchange.hub import Announced, Hub
from sightline.model.exchange import (
    AttemptStarted,
    ExchangeCancelled,
    ExchangeFailed,
    ExchangeFinished,
    Fact,
    FrameArrived,
    Received,
)
from sightline.store.entries import BodyEntry, FactEntry, FramesEntry
from sightline.web.asgi import ResponseChunk, ResponseStart
from sightline.wire.jsontext import encode
from sightline.workbench.exchange_views import fact_shown
from sightline.workbench.workbench import FOLDER, POLICY, Access, Static, event, proof_of, stream
from tests.server.running import TOKEN as SERVER_TOKEN
from tests.server.running import Running, running

TOKEN = "abcdefghijklmnopqrstuvwxyz"
ACCESS = Access(TOKEN, 7700)


@pytest.mark.parametrize(
    ("name", "value", "is_granted"),
    [
        (b"authorization", f"Bearer {TOKEN}", True),
        (b"authorization", f"bearer  {TOKEN} ", True),
        (b"authorization", TOKEN, False),
        (b"authorization", f"Basic {TOKEN}", False),
        (b"authorization", "Bearer ", False),
        (b"authorization", f"Bearer {TOKEN}x", False),
        (b"authorization", "Bearer tök", False),
        (b"cookie", f"sightline_7700={TOKEN}", True),
        (b"cookie", f"other=1; sightline_7700={TOKEN}; last=2", True),
        (b"cookie", f"sightline_7701={TOKEN}", False),
        (b"cookie", "sightline_7700=", False),
        (b"cookie", "sightline_7700", False),
        (b"x-token", TOKEN, False),
    ],
)
def test_the_token_is_shown_by_header_or_cookie(name: bytes, value: str, is_granted: bool) -> None:
    assert ACCESS.is_granted([(b"host", b"localhost"), (name, value.encode("latin-1"))]) is is_granted


@pytest.mark.parametrize(
    ("query", "is_in"), [(f"token={TOKEN}", True), (f"a=b&token={TOKEN}", True), ("token=", False), ("", False)]
)
def test_the_link_holds_the_token(query: str, is_in: bool) -> None:
    assert ACCESS.is_in(query) is is_in


def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites() -> None:
    name, *attributes = ACCESS.cookie.decode().split("; ")
    assert name == f"sightline_7700={TOKEN}"
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(attributes)


def test_the_server_proves_that_it_knows_the_token_without_telling_it() -> None:
    proof = ACCESS.proof("challenge=c1")
    assert proof == proof_of(TOKEN, "c1")
    assert TOKEN not in proof
    assert len({proof, proof_of(TOKEN, "c2"), proof_of("another", "c1")}) == 3
    assert ACCESS.proof("") == ACCESS.proof("challenge=") == ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "ui"
    (made / "views").mkdir(parents=True)
    (made / "index.html").write_text('<script type="module" src="{ui}/app.js"></script>')
    (made / "app.js").write_text("export {};")
    (made / "views" / "list.css").write_text("a {}")
    (made / "api.d.ts").write_text("export {};")
    (tmp_path / "secret.js").write_text("no")
    return made


def address(static: Static) -> str:
    """Where the files are, as the page names it."""
    page = static.page().body.decode()
    return page.partition('src="')[2].partition("/app.js")[0]


def test_the_page_names_its_files_by_what_is_in_them(folder: Path) -> None:
    static = Static(folder)
    before = address(static)
    assert before.startswith("/ui/")
    assert address(static) == before == address(Static(folder))
    (folder / "app.js").write_text("export const changed = 1;")
    assert address(static) != before


def test_files_are_kept_for_good_and_the_page_is_not(folder: Path) -> None:
    static = Static(folder)
    file = static.file(f"{address(static)}/app.js".encode())
    assert (file.status, file.body) == (200, b"export {};")
    told = dict(file.headers)
    assert told[b"content-type"] == b"text/javascript; charset=utf-8"
    assert b"immutable" in told[b"cache-control"]
    assert told[b"x-content-type-options"] == b"nosniff"
    assert dict(static.page().headers)[b"cache-control"] == b"no-store"
    assert dict(static.file(f"{address(static)}/views/list.css".encode()).headers)[b"content-type"].startswith(
        b"text/css"
    )


@pytest.mark.parametrize(
    "name",
    [
        "", "/", "/nothing.js", "/index.html", "/api.d.ts", "/../secret.js", "/views/../app.js", "//app.js", "/app.js/",
        "/%61pp.js", "/..%2fsecret.js", "/views", "/app.js\0", "/\xff.js",
    ],
)  # fmt: skip
def test_nothing_else_is_given_out(folder: Path, name: str) -> None:
    static = Static(folder)
    answer = static.file((address(static) + name).encode("latin-1"))
    assert answer.status == 404
    assert dict(answer.headers)[b"cache-control"] == b"no-store"


def test_an_address_of_yesterday_is_refused_rather_than_answered_with_todays_file(folder: Path) -> None:
    static = Static(folder)
    assert static.file(b"/ui/0123456789abcdef/app.js").status == 404
    assert static.file(b"/ui/app.js").status == 404


def test_a_link_that_leads_out_of_the_folder_is_as_good_as_the_folders_owner_made_it(folder: Path) -> None:
    (folder / "linked.js").symlink_to(folder.parent / "secret.js")
    static = Static(folder)
    assert static.file(f"{address(static)}/linked.js".encode()).body == b"no"


def test_no_script_and_no_style_may_stand_in_the_page() -> None:
    static = Static()
    for answer in (static.page(), static.nothing()):
        assert dict(answer.headers)[b"content-security-policy"] == POLICY
    assert b"unsafe" not in POLICY
    assert static.nothing().status == 401
    assert b"/ui/" not in static.nothing().body


def test_all_that_the_page_asks_for_is_there() -> None:
    static = Static()
    html = static.page().body.decode()
    named = [part.partition('"')[0] for attribute in ('src="', 'href="') for part in html.split(attribute)[1:]]
    assert len(named) >= 8
    assert all(static.file(path.encode()).status == 200 for path in named)
    assert (FOLDER / "vendor" / "codemirror.js").exists()


class Listener:
    """Hears what is sent; `until` waits for some words."""

    def __init__(self) -> None:
        self.started: ResponseStart | None = None
        self.said = b""
        self.is_over = False
        self._more = asyncio.Event()

    async def __call__(self, message: ResponseStart | ResponseChunk) -> None:
        if message["type"] == "http.response.start":
            self.started = message
        else:
            self.said += message["body"]
            self.is_over = not message["more_body"]
        self._more.set()

    async def until(self, words: bytes) -> None:
        while words not in self.said:
            self._more.clear()
            await self._more.wait()


async def test_facts_are_streamed_in_order_until_the_hub_is_closed() -> None:
    hub, listener = Hub(lambda _entries: None), Listener()
    listening = asyncio.ensure_future(stream(hub, listener))
    await listener.until(b": listening\n\n")
    assert (b"content-type", b"text/event-stream") in listener.started["headers"]
    hub.record(
        [FactEntry("x_1", 0, 1.0, Received("anthropic", "m", "aa")), FactEntry("x_1", 1, 2.0, ExchangeCancelled())]
    )
    await listener.until(b"cancelled")
    hub.close()
    await listening
    told = [json.loads(line[6:]) for line in listener.said.split(b"\n\n") if line.startswith(b"data: ")]
    assert [(each["exchange"], each["n"], each["kind"]) for each in told] == [
        ("x_1", 0, "received"),
        ("x_1", 1, "cancelled"),
    ]
    assert listener.is_over


async def test_a_quiet_stream_is_kept_open() -> None:
    hub, listener = Hub(lambda _entries: None), Listener()
    listening = asyncio.ensure_future(stream(hub, listener, ping=0.0))
    await listener.until(b": still here\n\n")
    hub.close()
    await listening


async def test_disconnected_listener_stops_watching() -> None:
    hub, listener = Hub(lambda _entries: None), Listener()
    listening = asyncio.ensure_future(stream(hub, listener))
    await listener.until(b"listening")
    assert hub.is_watched
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    assert not hub.is_watched


def test_an_event_is_one_line() -> None:
    said = event(FactEntry("x_1", 0, 1.0, Received("anthropic", "two\nlines", "aa")))
    assert said.count(b"\n") == 2


@pytest.mark.parametrize(
    "fact",
    [
        Received("anthropic", "m", "aa", headers=(("x-a", "é"),)),
        Received("anthropic", "half a character: \ud800", "aa"),
        FrameArrived(b"\xff", 0.5),
        ExchangeFailed("network", "lost", "Send it again."),
        ExchangeFinished("stop", 200, tools=("look",)),
    ],
)
def test_an_event_says_what_the_record_shows_of_a_fact(fact: Fact) -> None:
    entry = FactEntry("x_1", 3, 1.25, fact)
    said = json.loads(event(entry).removeprefix(b"data: "))
    assert said == json.loads(encode({"exchange": "x_1", **fact_shown(entry)}))


def test_frames_are_an_event_each_or_all_of_them_one_with_their_times_and_sizes() -> None:
    frames = FramesEntry("x_1", 3, [7.0, 7.5], [0.5, 1.0], [b"<script>", b"\xff"])
    first, second = (
        FactEntry("x_1", 3, 7.0, FrameArrived(b"<script>", 0.5)),
        FactEntry("x_1", 4, 7.5, FrameArrived(b"\xff", 1.0)),
    )
    assert event(frames) == event(first) + event(second)
    said = event(frames, with_frames=False)
    assert json.loads(said.removeprefix(b"data: ")) == {
        "exchange": "x_1", "n": 3, "kind": "frames", "at": [7.0, 7.5], "after": [0.5, 1.0], "size": [8, 1],
    }  # fmt: skip


def test_what_is_announced_is_an_event_of_that_name() -> None:
    said = event(Announced("chat", {"kind": "changed", "ids": ["é\n"]}))
    assert said == 'event: chat\ndata: {"kind":"changed","ids":["é\\n"]}\n\n'.encode()


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


def test_the_printed_link_leaves_a_cookie_that_opens_the_page(server: Running) -> None:
    status, headers, body = server.ask("GET", f"/?token={SERVER_TOKEN}")
    assert (status, headers["location"], body) == (303, "/", b"")
    assert "HttpOnly" in headers["set-cookie"]
    assert "SameSite=Strict" in headers["set-cookie"]
    cookie = {"cookie": headers["set-cookie"].partition(";")[0]}
    status, headers, body = server.ask("GET", "/", None, cookie)
    assert status == 200
    assert "unsafe-inline" not in headers["content-security-policy"]
    named = re.search(rb'src="(/ui/[0-9a-f]+/app.js)"', body)
    status, headers, _ = server.ask("GET", named[1].decode())
    assert (status, headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    assert server.ask("POST", named[1].decode(), b"")[0] == 405
    assert server.ask("GET", "/api/exchanges", None, cookie)[0] == 200


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=wrong", f"/?Token={SERVER_TOKEN}"])
def test_without_it_the_page_shows_nothing_and_sets_nothing(server: Running, path: str) -> None:
    status, headers, body = server.ask("GET", path)
    assert status == 401
    assert "set-cookie" not in headers
    assert b"exchange" not in body


def test_clients_that_knock_get_an_answer(server: Running) -> None:
    assert server.ask("HEAD", "/")[0] == 200
    assert server.ask("GET", "/favicon.ico")[0] == 204
    assert server.ask("POST", "/", b"")[0] == 405


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
        ("PUT", "/api/exchanges/x_1", 405),
        ("POST", "/api/exchanges/x_1/body", 405),
        ("POST", "/api/events", 405),
    ],
)
def test_unavailable_endpoints_share_one_error_format(server: Running, method: str, path: str, status: int) -> None:
    got, told = server.api(path, method)
    assert got == status
    assert set(told["error"]) == {"code", "message", "hint"}
    assert told["error"]["hint"]


@contextmanager
def live_events(server: Running, query: str = "") -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("GET", f"/api/events{query}", headers={"authorization": f"Bearer {SERVER_TOKEN}"})
    with closing(connection), connection.getresponse() as answer:
        assert [answer.readline(), answer.readline()] == [b": listening\n", b"\n"]
        yield answer


def test_facts_are_streamed_live(server: Running) -> None:
    with live_events(server) as answer:
        noted = FactEntry("x_7", 0, 3.0, Received("gemini", "m", "cc"))
        server.loop.call_soon_threadsafe(server.hub.record, [noted])
        told = json.loads(answer.readline().removeprefix(b"data: "))
    assert (told["exchange"], told["kind"], told["dialect"]) == ("x_7", "received", "gemini")


def test_a_page_is_sent_no_more_facts_than_it_can_show(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.exchange.hub.FEW", 2)
    many = [FactEntry(f"x_{number}", 0, 3.0, Received("gemini", "m", "cc")) for number in range(9)]
    with live_events(server, "?frames=0&brief=1") as answer:
        server.loop.call_soon_threadsafe(server.hub.record, many)
        lines = [answer.readline() for _ in range(7)]
        assert [json.loads(line[6:])["exchange"] for line in lines[0:4:2]] == ["x_0", "x_1"]
        assert lines[4:] == [b"event: more\n", b"data: {}\n", b"\n"]
        server.loop.call_soon_threadsafe(server.hub.record, many[8:])
        assert b'"x_8"' in answer.readline(), "there is room again"
