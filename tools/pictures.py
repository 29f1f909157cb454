"""Take every picture of the docs from the present page: `python -m tools.pictures [NAME…]`.

The server, the model and the agent are those of `tools/example.py`; nothing on a picture is drawn by hand. The moving
picture of the README is an animated PNG. The browser crops what changed from one frame to the next, and this file only
joins the pieces, so that nothing but Playwright and Chromium is needed.
"""

import base64
import os
import struct
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser import browsing, looking
from tests.gateway_server import Served, served
from tests.page_stage import card
from tests.person import Person
from tools.example import configuration, model_on_loopback, play, send
from tools.example_script import CHAT, EXPLAIN, HELD, KITCHEN, LARGE, SMALL, SUITE

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
WIDE, PHONE, MOVING = (1280, 800), (390, 844), (1000, 640)
LARGEST = 2_000_000
"""Bytes of the moving picture."""

CROP = """async ([before, after]) => {
  const load = async (data) => createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
  const next = await load(after);
  const area = { left: 0, top: 0, right: next.width, bottom: next.height };
  const pixels = (bitmap) => {
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
    const context = canvas.getContext("2d");
    context.drawImage(bitmap, 0, 0);
    return new Uint32Array(context.getImageData(0, 0, bitmap.width, bitmap.height).data.buffer);
  };
  if (before) {
    const [old, now] = [pixels(await load(before)), pixels(next)];
    Object.assign(area, { left: next.width, top: next.height, right: 0, bottom: 0 });
    for (let at = 0; at < now.length; at++) {
      if (now[at] === old[at]) continue;
      const [x, y] = [at % next.width, Math.floor(at / next.width)];
      area.left = Math.min(area.left, x);
      area.right = Math.max(area.right, x + 1);
      area.top = Math.min(area.top, y);
      area.bottom = Math.max(area.bottom, y + 1);
    }
    if (!area.right) Object.assign(area, { left: 0, top: 0, right: 1, bottom: 1 });
  }
  const canvas = new OffscreenCanvas(area.right - area.left, area.bottom - area.top);
  canvas.getContext("2d").drawImage(next, -area.left, -area.top);
  const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: "image/png" })).arrayBuffer());
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return { left: area.left, top: area.top, png: btoa(text) };
}"""
JOIN = """async (pictures) => {
  const gap = 20;
  const load = async (data) => createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
  const all = await Promise.all(pictures.map(load));
  const canvas = new OffscreenCanvas(
    all.reduce((sum, each) => sum + each.width, 0) + gap * (all.length - 1), all[0].height + gap);
  const context = canvas.getContext("2d");
  let x = 0;
  for (const each of all) {
    context.drawImage(each, x, gap / 2);
    x += each.width + gap;
  }
  const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: "image/png" })).arrayBuffer());
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}"""
POINT = """([x, y]) => {
  const dot = document.querySelector("#pointer") ?? document.body.appendChild(document.createElement("div"));
  dot.id = "pointer";
  Object.assign(dot.style, {
    position: "fixed", left: `${x - 11}px`, top: `${y - 11}px`, width: "22px", height: "22px", borderRadius: "50%",
    background: "rgb(52 81 209 / 35%)", border: "2px solid rgb(52 81 209)", zIndex: 9999, pointerEvents: "none",
  });
}"""


# --- a moving picture ------------------------------------------------------------------------------------


@dataclass
class Film:
    """Frames of a page, each with the seconds for which it is shown."""

    page: Page
    frames: list[tuple[bytes, float]] = field(default_factory=list)

    def show(self, seconds: float) -> None:
        """The page as it is now."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        self.frames.append((self.page.screenshot(animations="disabled", caret="initial"), seconds))

    def click(self, what: Locator, seconds: float = 0.7) -> None:
        """Show where the pointer is, and click there."""
        what.scroll_into_view_if_needed()
        box = what.bounding_box()
        assert box is not None
        self.page.evaluate(POINT, [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2])
        self.show(seconds)
        what.click()
        self.page.evaluate("() => document.querySelector('#pointer')?.remove()")

    def write_to(self, path: Path, blank: Page) -> None:
        """An animated PNG of it."""
        pieces, before = [], ""
        for picture, seconds in self.frames:
            after = base64.b64encode(picture).decode()
            found = blank.evaluate(CROP, [before, after])
            pieces.append((base64.b64decode(found["png"]), found["left"], found["top"], seconds))
            before = after
        path.write_bytes(animate(pieces))


def animate(pieces: list[tuple[bytes, int, int, float]]) -> bytes:
    """One PNG of several, as the APNG specification lays them out: each has its place, and the seconds it is shown."""
    head = dict(chunks(pieces[0][0]))[b"IHDR"]
    out, number = [chunk(b"IHDR", head), chunk(b"acTL", struct.pack(">II", len(pieces), 0))], 0
    for place, (picture, left, top, seconds) in enumerate(pieces):
        found = list(chunks(picture))
        width, height = struct.unpack(">II", dict(found)[b"IHDR"][:8])
        assert dict(found)[b"IHDR"][8:] == head[8:], "all pieces must have one form"
        shown = struct.pack(">IIIIIHHBB", number, width, height, left, top, int(seconds * 1000), 1000, 0, 0)
        out.append(chunk(b"fcTL", shown))
        number += 1
        for kind, data in found:
            if kind == b"IDAT" and place == 0:
                out.append(chunk(b"IDAT", data))
            elif kind == b"IDAT":
                out.append(chunk(b"fdAT", struct.pack(">I", number) + data))
                number += 1
    return b"\x89PNG\r\n\x1a\n" + b"".join(out) + chunk(b"IEND", b"")


def chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The kind and the data of each part of a PNG."""
    at = 8
    while at < len(picture):
        (size,) = struct.unpack(">I", picture[at : at + 4])
        yield picture[at + 4 : at + 8], picture[at + 8 : at + 8 + size]
        at += 12 + size


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


# --- what is on the pictures ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Studio:
    """A server with traffic, and a browser to look at it."""

    server: Served
    person: Person
    browser: Browser
    places: dict[str, str]
    wanted: frozenset[str]
    waiting: list[threading.Thread]

    @contextmanager
    def look(self, name: str, where: str, *, size: tuple[int, int] = WIDE, dark: bool = False) -> Iterator[Page | None]:
        """The page at this place; what it shows at the end is the picture of this name. None if it is not wanted."""
        if self.wanted and name not in self.wanted:
            yield None
            return
        with looking(self.browser, self.server, size=size, dark=dark) as shown:
            shown.page.goto(f"{self.server.url}/{where}")
            shown.page.wait_for_load_state("networkidle")
            yield shown.page
            shown.page.wait_for_timeout(300)
            shown.picture(IMAGES, name)
        print(f"{name}.png")

    def hold(self, path: str, body: dict[str, Any]) -> str:
        """A request that waits: its exchange."""
        self.person.put("/api/interception", {"mode": "every"})
        before = set(self.person.get("/api/holds"))
        client = threading.Thread(target=send, args=(f"{self.server.url}{path}", body), daemon=True)
        client.start()
        self.waiting.append(client)
        held = self.person.held(len(before) + 1)
        self.person.put("/api/interception", {"mode": "off"})
        return next(each for each in held if each not in before)

    def drop_all(self) -> None:
        """Let nothing wait any more."""
        for exchange in self.person.get("/api/holds"):
            self.person.act(exchange, "drop")


def take_lists(studio: Studio) -> None:
    """Traffic, its filter, the rules, a session and a phone."""
    for number, question in enumerate(("Which tests fail?", "Rename the module.", "Write the release notes.")):
        messages = [{"role": "user", "content": question}]
        studio.hold(f"/s/agent-{number + 1}/v1/messages", {"model": LARGE, "max_tokens": 900, "messages": messages})
    with studio.look("traffic", "#/traffic"):
        pass
    with studio.look("filter-dark", "#/traffic", dark=True) as page:
        if page:
            page.get_by_role("combobox", name="Filter").press_sequentially("model:claude-* & to")
    studio.drop_all()
    rules = [
        {"filter": 'client:*agent* & text:"release"', "action": "hold", "phase": "request"},
        {"filter": f"model:{SMALL}", "action": "pass", "phase": "request"},
        {"filter": "tool:Bash", "action": "hold", "phase": "tool_calls", "timeout_s": 120, "on_timeout": "drop"},
    ]
    studio.person.put("/api/rules", rules)
    with studio.look("rules", "#/traffic") as page:
        if page:
            page.keyboard.press("g")
            page.keyboard.press("r")
            expect(page.get_by_role("dialog", name="Rules")).to_be_visible()
    studio.person.put("/api/rules", [])
    with studio.look("session", f"#/sessions/{studio.places['session']}"):
        pass


def take_requests(studio: Studio) -> None:
    """What a finished request shows."""
    places = studio.places
    with studio.look("timeline", f"#/x/{places['retried']}/timeline"):
        pass
    with studio.look("losses", f"#/x/{places['translated']}/losses"):
        pass
    with studio.look("compare-models-dark", f"#/x/{places['replayed']}/reply", dark=True) as page:
        if page:
            page.get_by_role("button", name="2 replays").click()


def take_edits(studio: Studio) -> None:
    """A held request while it is edited, and what comes of that."""
    view = studio.person.get(f"/api/exchanges/{studio.places['turn']}/body")
    body = {**view, "messages": view["messages"][:9]}
    exchange = studio.hold("/s/fix-fractions/v1/messages", body)
    system = next(each for each in studio.person.view(exchange)["sections"] if each["kind"] == "system")
    for name, dark in (("page", False), ("editor-dark", True)):
        with studio.look(name, f"#/x/{exchange}", dark=dark) as page:
            if page:
                studio.person.edit(exchange, op="reset")  # what the picture before has changed
                edit_system(page, system["label"])
    with studio.look("wire", f"#/x/{exchange}/wire", size=(1280, 560)) as page:
        if page:
            page.get_by_role("button", name="edited place").click()
    with studio.look("diff", f"#/x/{exchange}/diff"):
        pass
    studio.drop_all()
    orphan = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "src/parser.py:21: float(first)"}
    turns = [[{"type": "text", "text": ""}], [{"type": "text", "text": "I'll search."}], [orphan]]
    messages = [{"role": ("user", "assistant")[n % 2], "content": each} for n, each in enumerate(turns)]
    broken = studio.hold("/s/broken-client/v1/messages", {"model": LARGE, "max_tokens": 500, "messages": messages})
    with studio.look("problems-and-fixes", f"#/x/{broken}"):
        pass
    studio.drop_all()


def edit_system(page: Page, label: str) -> None:
    """Open the instructions, and change a line of them."""
    card(page, label).get_by_role("button", name=f"Edit {label}", exact=True).first.click()
    expect(page.get_by_role("textbox", name=f"Edit {label}")).to_be_focused()
    page.keyboard.press("Control+Home")
    page.keyboard.press("End")
    page.keyboard.insert_text(" Never change a test to make it pass.")
    page.get_by_role("checkbox", name="Compare with the original").check()
    page.keyboard.press("Shift+Tab")


def take_calls(studio: Studio) -> None:
    """Calls that are held, and an answer by hand."""
    rule = [{"filter": "session:held-calls", "action": "hold", "phase": "tool_calls"}]
    studio.person.put("/api/rules", rule)
    studio.person.put("/api/interception", {"mode": "rules"})
    first = studio.person.get(f"/api/exchanges/{studio.places['turn']}/body")
    body = {**first, "messages": first["messages"][:7]}
    url = f"{studio.server.url}/s/held-calls/v1/messages"
    client = threading.Thread(target=send, args=(url, body), daemon=True)
    client.start()
    (exchange,) = studio.person.held()
    with studio.look("tool-calls", f"#/x/{exchange}") as page:
        if page:
            page.get_by_role("article").first.get_by_role("button", name="Edit").first.click()
    studio.drop_all()
    studio.person.put("/api/rules", [])
    held = studio.hold("/s/by-hand/v1/messages", {**body, "messages": body["messages"][:1]})
    with studio.look("answer-by-hand", f"#/x/{held}") as page:
        if page:
            page.get_by_role("button", name="Answer by hand").click()
            page.get_by_role("textbox").first.fill("I'll read the parser first.")
            page.get_by_role("button", name="Add a tool call").click()
    studio.drop_all()


def take_chat(studio: Studio) -> None:
    """The chat with its preview."""
    with studio.look("chat", "#/chat") as page:
        if page:
            expect(page.get_by_text(next(iter(CHAT)))).to_be_visible()
            page.get_by_role("textbox").first.press_sequentially("And what can I use instead of sugar?")
            page.get_by_role("button", name="Preview").click()


def take_phone(studio: Studio) -> None:
    """Three views on a phone, side by side."""
    held = studio.hold("/p/local/s/held-now/v1/chat/completions", HELD)
    views = ("#/traffic", f"#/x/{held}", f"#/x/{studio.places['replayed']}/reply")
    pictures = []
    with looking(studio.browser, studio.server, size=PHONE) as shown:
        for view in views:
            shown.page.goto(f"{studio.server.url}/{view}")
            shown.page.wait_for_load_state("networkidle")
            shown.page.wait_for_timeout(1500)
            pictures.append(base64.b64encode(shown.page.screenshot(animations="disabled")).decode())
    blank = studio.browser.new_page()
    (IMAGES / "phone.png").write_bytes(base64.b64decode(blank.evaluate(JOIN, pictures)))
    blank.close()
    print("phone.png")
    studio.drop_all()


def take_film(studio: Studio) -> None:
    """Hold, edit, send: the moving picture of the README."""
    asked = {
        "model": LARGE,
        "max_tokens": 300,
        "system": "You are a baker. Answer in the style of a pirate.",
        "messages": [{"role": "user", "content": EXPLAIN}],
    }
    with looking(studio.browser, studio.server, size=MOVING) as shown:
        page = shown.page
        film = Film(page)
        film.show(1.2)
        exchange = studio.hold("/s/recipe-site/v1/messages", asked)
        expect(page.get_by_role("button", name="1 held")).to_be_visible()
        film.show(1.4)
        film.click(page.get_by_role("button", name="1 held"))
        expect(card(page, "System prompt")).to_be_visible()
        film.show(1.6)
        film.click(card(page, "System prompt").get_by_role("button", name="Edit System prompt", exact=True))
        expect(page.get_by_role("textbox", name="Edit System prompt")).to_be_focused()
        page.keyboard.press("Control+End")
        film.show(0.6)
        for _ in range(len("the style of a pirate.")):
            page.keyboard.press("Shift+ArrowLeft")
        film.show(0.6)
        for piece in ("plain", " words.", " One", " sentence."):
            page.keyboard.insert_text(piece)
            film.show(0.25)
        page.wait_for_timeout(800)
        film.show(1.2)
        page.keyboard.press("Escape")
        film.click(page.get_by_role("tab", name="Diff"))
        expect(page.get_by_role("tabpanel", name="Diff")).to_contain_text("plain")
        film.show(2.0)
        film.click(page.get_by_role("button", name="Send", exact=False).first)
        studio.person.ended(exchange)
        expect(page.get_by_role("status", name="sent = shown")).to_be_visible()
        page.get_by_role("tab", name="Reply").click()
        expect(page.get_by_role("tabpanel", name="Reply")).to_contain_text("gas")
        film.show(3.0)
        blank = studio.browser.new_page()
        path = IMAGES / "hold-edit-send.png"
        film.write_to(path, blank)
        blank.close()
    size = path.stat().st_size
    assert size < LARGEST, size
    print(f"{path.name}: {len(film.frames)} frames, {size:,} bytes")


TAKES: dict[Callable[[Studio], None], tuple[str, ...]] = {
    take_film: ("hold-edit-send",),
    take_phone: ("phone",),
    take_lists: ("traffic", "filter-dark", "rules", "session"),
    take_requests: ("timeline", "losses", "compare-models-dark"),
    take_edits: ("page", "editor-dark", "wire", "diff", "problems-and-fixes"),
    take_calls: ("tool-calls", "answer-by-hand"),
    take_chat: ("chat",),
}
"""The pictures by what takes them."""


def main() -> None:
    """Take those that are named, or all."""
    os.environ |= {"ANTHROPIC_API_KEY": "no-key-is-needed-here", "OPENAI_API_KEY": "no-key-is-needed-here"}
    with tempfile.TemporaryDirectory(prefix="pictures") as scratch, model_on_loopback() as address:
        folder = Path(scratch).resolve()
        (folder / "evals").mkdir()
        (folder / "evals" / "kitchen.eval.yaml").write_text(SUITE)
        (folder / "kitchen.py").write_text(KITCHEN)
        with served(folder, configuration(address)) as server, browsing() as browser:
            places = play(server, folder)
            studio = Studio(server, Person(server), browser, places, frozenset(sys.argv[1:]), [])
            for take, names in TAKES.items():
                if not studio.wanted or studio.wanted & {*names}:
                    take(studio)


if __name__ == "__main__":
    main()
