"""What the page costs in a real browser, and the server's answers to it.

A list of 10,000 exchanges is scrolled through, also while requests arrive. A request of a megabyte and about 400
sections is held, then one of five megabytes: how long until it shows, what a keystroke in it costs the page's main
thread and how long it takes until it is painted, and what the server needs for the answer to an edit. "CPU" is the time
that the page's main thread computed, which other programs on the machine hardly change. Needs Playwright and Chromium,
which `make test` brings.
"""

import asyncio
import hashlib
import http.client
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from bench import edits, store
from bench.codecs import bare
from bench.timing import medians, milliseconds, ratio, table
from sightline.model.exchange import AttemptStarted, ExchangeFinished, Fact, Received
from sightline.model.reply import Usage
from sightline.store.entries import BodyEntry, Entry, FactEntry
from sightline.store.sqlite import open_store

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, Page

DIALECT = "anthropic"
ROWS = 10_000
OPENINGS = 9
KEYS = 60
ANSWERED_KEYS = 12
FRAMES = 30
SCROLLS = 12
ARRIVING_SECONDS = 0.1
FRAME, OPENING, KEY = 1000 / 60, 200.0, 16.0
"""What a frame, an opening and a key may take, in milliseconds."""
LARGE = 5_000_000
ROUNDS = 25
AIM = 3.0
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CONFIG = '[providers.acme]\ndialect = "anthropic"\nbase_url = "http://127.0.0.1:9"\n'

LEFT = """async () => {
  const feed = () => document.querySelector("[role=feed] article.is-active .card-body:not(.card-waiting)");
  location.hash = "#/traffic";
  while (feed()) await new Promise(requestAnimationFrame);
  await new Promise((done) => setTimeout(done, 100));
}"""
OPENED = """async (hash) => {
  const feed = () => document.querySelector("[role=feed] article.is-active .card-body:not(.card-waiting)");
  const start = performance.now();
  location.hash = hash;
  while (!feed()) await new Promise(requestAnimationFrame);
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - start;
}"""
PAINTS = """() => {
  globalThis.painted = [];
  addEventListener("keydown", ({ timeStamp }) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => painted.push(performance.now() - timeStamp);
    port2.postMessage(0);
  }), true);
}"""
SETTLED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
LOADED = """async () => {
  const list = document.querySelector(".virtual-list");
  while (list.getAttribute("aria-rowcount") === "-1") {
    list.scrollTop = list.scrollHeight;
    await new Promise((done) => setTimeout(done, 20));
  }
  return Number(list.getAttribute("aria-rowcount"));
}"""
SCROLLED = """(frames) => new Promise((done) => {
  const list = document.querySelector(".virtual-list");
  const times = [];
  let before = 0;
  const step = (now) => {
    if (before) times.push(now - before);
    before = now;
    list.scrollTop += 300;
    if (times.length < frames) requestAnimationFrame(step);
    else done(times);
  };
  requestAnimationFrame(step);
})"""


def report() -> str:
    program = next((path for name in BROWSERS if (path := shutil.which(name)) is not None), None)
    if find_spec("playwright") is None or program is None:
        return "\nThe page: not measured, because Playwright or Chromium is not installed (`make test` brings both)"
    with tempfile.TemporaryDirectory() as folder, _fill_variables(Path(folder)) as server:
        tables = [_list_page(program, server)]
        with _held(server, edits.body(DIALECT)) as exchange:
            tables += [_request_page(program, server, exchange, "A request of 1 MB"), _answers(server, exchange)]
        with _held(server, edits.body(DIALECT, LARGE)) as exchange:
            tables.append(_request_page(program, server, exchange, f"A request of {LARGE // 1_000_000} MB"))
    return "\n".join(tables)


# --- the server, its record and the request that waits ---------------------------------------------


@dataclass(frozen=True)
class Server:
    """A Sightline in a process of its own."""

    host: str
    port: int
    token: str

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=60)

    def ask(self, connection: http.client.HTTPConnection, method: str, path: str, value: Any = None) -> bytes:
        """One call of the API."""
        body = None if value is None else json.dumps(value)
        connection.request(method, path, body, {"authorization": f"Bearer {self.token}"})
        return connection.getresponse().read()


@contextmanager
def _fill_variables(folder: Path) -> Iterator[Server]:
    """A server whose record has many exchanges."""
    config, data = folder / "sightline.toml", folder / "data"
    config.write_text(CONFIG)
    data.mkdir(mode=0o700)
    asyncio.run(_record(data))
    program = str(Path(sys.executable).with_name("sightline"))
    command = [program, "serve", "--port", "0", "--no-open", "--config", str(config), "--data", str(data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            link = urlsplit(process.stdout.readline().strip())
            yield Server(str(link.hostname), int(link.port or 0), parse_qs(link.query)["token"][0])
        finally:
            process.terminate()


async def _record(folder: Path) -> None:
    opened = await open_store(folder, prices=lambda _provider, _model: None, now=lambda: store.NOON + ROWS)
    try:
        for number in range(ROWS):
            opened.record(_exchange(number))
        await opened.settle()
    finally:
        await opened.close()


def _exchange(number: int) -> list[Entry]:
    name = f"x_{number:020}"
    words = f"Question {number} of a long day, with some words to read"
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": words}]}).encode()
    sha256 = hashlib.sha256(body).hexdigest()
    received = Received(
        "openai-chat", "m", sha256, session=f"s{number % 40}", client="cli/1.0", path="/v1/chat/completions"
    )
    finished = ExchangeFinished(
        "stop", 200, (), "", "m", Usage(input_tokens=number % 4000, output_tokens=number % 300), (), 0.4, 1.2
    )
    facts: list[Fact] = [received, AttemptStarted(1, "acme", sha256, dialect="openai-chat"), finished]
    noted = [FactEntry(name, place, store.NOON + number, fact) for place, fact in enumerate(facts)]
    return [BodyEntry(sha256, body), *noted]


@contextmanager
def _held(server: Server, data: bytes) -> Iterator[str]:
    """A long request, waiting; its exchange."""
    connection, waiting = server.connect(), server.connect()
    server.ask(connection, "PUT", "/api/interception", {"mode": "every"})

    def ask() -> None:
        waiting.request("POST", "/p/acme/v1/messages", data, {"content-type": "application/json", "x-api-key": "none"})
        waiting.getresponse().read()

    client = threading.Thread(target=ask)
    client.start()
    try:
        while not (found := json.loads(server.ask(connection, "GET", "/api/holds"))):
            pass
        connection.close()
        yield found[0]
        # On another connection: the server ends one that was idle for so long.
        connection = server.connect()
        server.ask(connection, "POST", f"/api/exchanges/{found[0]}/drop", {})
    finally:
        client.join(30)
        connection.close()
        waiting.close()


# --- the page ---------------------------------------------------------------------------------------


@contextmanager
def _look(program: str, server: Server) -> Iterator[tuple["Page", "CDPSession"]]:
    """The page in a browser, with its list."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(f"{server.url}/?token={server.token}")
        page.locator(".virtual-list").wait_for()
        yield page, session
        browser.close()


def _list_page(program: str, server: Server) -> str:
    with _look(program, server) as (page, session):
        rows = page.evaluate(LOADED)
        page.evaluate("document.querySelector('.virtual-list').scrollTop = 0")
        quiet, quiet_work = _scroll(page, session)
        with _arriving(server):
            live, live_work = _scroll(page, session)
    lines = [
        _line(f"a frame while they scroll ({_late(quiet):.0%} late)", quiet, FRAME),
        _line("a frame while they scroll: CPU", quiet_work, FRAME),
        _line(f"a frame while they scroll and requests arrive ({_late(live):.0%} late)", live, FRAME),
        _line("a frame while they scroll and requests arrive: CPU", live_work, FRAME),
    ]
    return _table(f"A list of {rows:,} rows, 300 pixels a frame", lines)


def _scroll(page: "Page", session: "CDPSession") -> tuple[list[float], list[float]]:
    """Milliseconds between frames, and of computing for each frame."""
    frames: list[float] = []

    def scroll() -> None:
        frames.extend(page.evaluate(SCROLLED, FRAMES))

    return frames, [_worked(session, scroll) / FRAMES for _ in range(SCROLLS)]


def _late(frames: Sequence[float]) -> float:
    return sum(frame > 20 for frame in frames) / len(frames)


@contextmanager
def _arriving(server: Server) -> Iterator[None]:
    """Requests arrive all the while, and fail at once."""
    stopped = threading.Event()

    def ask() -> None:
        connection = server.connect()
        body = json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "One more"}]})
        while not stopped.wait(ARRIVING_SECONDS):
            connection.request("POST", "/p/acme/v1/messages", body, {"x-api-key": "none"})
            connection.getresponse().read()
        connection.close()

    client = threading.Thread(target=ask)
    client.start()
    try:
        yield
    finally:
        stopped.set()
        client.join(30)


def _request_page(program: str, server: Server, exchange: str, title: str) -> str:
    with _look(program, server) as (page, session):
        opened: list[float] = []

        def open_request() -> None:
            opened.append(page.evaluate(OPENED, f"#/x/{exchange}"))

        opening_work = []
        for _ in range(OPENINGS):
            page.evaluate(LEFT)
            opening_work.append(_worked(session, open_request))
        work, painted, answered = _typed(page, session)
        sections = page.locator("[role=feed] article").count()
    lines = [
        _line("the very first opening: the server reads and counts all of it", opened[:1]),
        _line("opening it until it shows", opened[1:], OPENING),
        _line("opening it until it shows: CPU", opening_work[1:], OPENING),
        _line("a key: CPU", work, KEY),
        _line("a key: until it is painted (the screen waits up to 16.7 ms)", painted),
        _line("a key, the pause after it and the server's answer: CPU, in all", answered),
    ]
    return _table(f"{title} and {sections} sections", lines)


def _typed(page: "Page", session: "CDPSession") -> tuple[list[float], list[float], list[float]]:
    """Milliseconds for each key: the main thread's work, the time until it is painted, and with the server's answer."""
    page.evaluate(PAINTS)
    page.keyboard.press("Enter")
    page.locator(".cm-content[role=textbox]").wait_for()
    page.wait_for_function("document.activeElement.matches('.cm-content')")
    page.evaluate(SETTLED)
    nothing = statistics.median(_worked(session, lambda: page.evaluate(SETTLED)) for _ in range(15))

    def press() -> None:
        page.keyboard.press("x")
        page.evaluate(SETTLED)

    def answered() -> None:
        page.keyboard.press("y")
        with page.expect_response(lambda answer: "/edits" in answer.url):
            pass
        page.evaluate(SETTLED)
        page.evaluate(SETTLED)

    work = [_worked(session, press) - nothing for _ in range(KEYS)]
    painted: list[float] = page.evaluate("painted")
    with_answers = [_worked(session, answered) - nothing for _ in range(ANSWERED_KEYS)]
    return work, painted, with_answers


def _worked(session: "CDPSession", act: Callable[[], object]) -> float:
    """Milliseconds that the main thread computed meanwhile."""
    before = _busy(session)
    act()
    return (_busy(session) - before) * 1000


def _busy(session: "CDPSession") -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))


def _line(name: str, times: Sequence[float], aim: float | None = None) -> list[str]:
    ordered = sorted(times)
    middle = statistics.median(ordered)
    late = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    aimed = ["", ""] if aim is None else [milliseconds(aim / 1000), ratio(middle / aim)]
    return [name, *(milliseconds(each / 1000) for each in (middle, late, ordered[-1])), *aimed]


def _table(title: str, lines: Sequence[Sequence[str]]) -> str:
    return table(title, ["", "median", "p95", "worst", "aim", "median / aim"], lines)


# --- the server's answer ------------------------------------------------------------------------------


def _answers(server: Server, exchange: str) -> str:
    connection = server.connect()
    path = f"/api/exchanges/{exchange}"
    data = server.ask(connection, "GET", f"{path}/body")
    sections = json.loads(server.ask(connection, "GET", f"{path}?frames=0"))["sections"]
    asked = [section["id"] for section in sections if section["kind"] == "user"]
    numbers = count()

    def edit() -> None:
        text = f"What one more letter makes of it {next(numbers)}"
        operation = {"op": "set_text", "section": asked[len(asked) // 2], "text": text}
        answer = json.loads(server.ask(connection, "POST", f"{path}/edits?changed=1", operation))
        assert answer["dirty"], answer

    times = medians({"bare": lambda: bare(data), "edit": edit}, ROUNDS)
    connection.close()
    rows = [
        ["decode + encode of the body", milliseconds(times["bare"]), ratio(1), ""],
        ["one edit over HTTP", milliseconds(times["edit"]), ratio(times["edit"] / times["bare"]), f"<= {ratio(AIM)}"],
    ]
    title = f"The server's answer to one edit of {len(data):,} bytes and {len(sections)} sections"
    return table(title, ["", "time", "ratio", "aim"], rows)
