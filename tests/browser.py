"""A real browser for the tests of the page: Debian's Chromium, driven by Playwright.

Two variables make it a worse one, to find what holds on a quick machine only. SLOW_PAGES=8 makes every script eight
times slower; LATE_FRAMES=200 has every frame and every timer of a page come 200 milliseconds late.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Route,
    expect,
    sync_playwright,
)
from playwright.sync_api import Error as PlaywrightError

from tests.debian import brought
from tests.gateway_server import Served

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
WIDE, NARROW = (1280, 800), (390, 844)
PATIENCE_MS = 20_000
MOST_SEEN = 3_000
"""So many characters of a page are told when a story fails on it."""
SLOW_PAGES, LATE_FRAMES = int(os.environ.get("SLOW_PAGES") or 1), int(os.environ.get("LATE_FRAMES") or 0)
LATE = """
{
  const { requestAnimationFrame: frame, cancelAnimationFrame: cancel, setTimeout: later, clearTimeout: never } = window;
  const waiting = new Map();
  window.setTimeout = (run, after = 0, ...more) => later(run, after + LATE_MS, ...more);
  window.requestAnimationFrame = (run) => {
    const id = frame(() => waiting.set(id, later(() => (waiting.delete(id), run(performance.now())), LATE_MS)));
    return id;
  };
  window.cancelAnimationFrame = (id) => (cancel(id), never(waiting.get(id)), waiting.delete(id));
}
"""


def program() -> str:
    """Where the browser is; brought by Debian's own tool where this process may ask for that, else a visible skip."""
    found = brought(_found, "chromium")
    if found is None:
        pytest.skip("Chromium is not installed, and could not be (Debian, as root: apt-get install chromium)")
    return found


def _found() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name)) is not None), None)


@dataclass
class Shown:
    """A page that somebody looks at. `complaints` are what its scripts said went wrong; those that hold one of the
    `expected` words belong to the story."""

    page: Page
    context: BrowserContext
    complaints: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def picture(self, folder: Path, name: str) -> None:
        """What it looks like, for people."""
        self.page.screenshot(path=folder / f"{name}.png", animations="disabled")

    @property
    def surprises(self) -> list[str]:
        """What went wrong and should not have."""
        return [said for said in self.complaints if not any(words in said for words in self.expected)]


@contextmanager
def browsing() -> Iterator[Browser]:
    """A browser that shows nothing yet."""
    executable = program()
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def looking(browser: Browser, server: Served, *, size: tuple[int, int] = WIDE, dark: bool = False) -> Iterator[Shown]:
    """The page of this server for one person, opened by the link that it prints; whatever its scripts complain of fails
    the test."""
    scheme = "dark" if dark else "light"
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    try:
        context.set_default_timeout(PATIENCE_MS)
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.url)
        delay(context, LATE_FRAMES)
        opened = Shown(context.new_page(), context)
        slow_down(opened.page)
        context.on("page", slow_down)
        watch(opened.page, opened.complaints)
        opened.page.goto(f"{server.url}/?token={server.token}")
        yield opened
        assert not opened.surprises, opened.surprises
    except (AssertionError, PlaywrightError) as failure:
        for page in context.pages:
            failure.add_note(_describe(page))
        raise
    finally:
        context.close()


def _describe(page: Page) -> str:
    """What a person would have seen at the moment of a failure."""
    try:
        words = page.locator("body").inner_text(timeout=2_000)
    except PlaywrightError as error:
        return f"The page at {page.url} could not be read: {error.message.splitlines()[0]}"
    dense = re.sub(r"\n\s*\n+", "\n", words)
    return f"The page at {page.url} showed:\n{dense[:MOST_SEEN]}{'…' if len(dense) > MOST_SEEN else ''}"


@contextmanager
def shown(server: Served, *, size: tuple[int, int] = WIDE, dark: bool = False) -> Iterator[Shown]:
    """The page of this server in a browser of its own."""
    with browsing() as browser, looking(browser, server, size=size, dark=dark) as opened:
        yield opened


def delay(context: BrowserContext, milliseconds: int) -> None:
    """From the next page on, every frame and every timer comes so late."""
    if milliseconds:
        context.add_init_script(LATE.replace("LATE_MS", str(milliseconds)))


def slow_down(page: Page) -> None:
    """As slow as SLOW_PAGES says."""
    if SLOW_PAGES > 1:
        page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOW_PAGES})


def held_back(page: Page, address: str | re.Pattern[str]) -> Callable[[], None]:
    """Nothing at this address is answered before the function is called."""
    waiting: list[Route] = []
    is_open = False

    def asked(route: Route) -> None:
        if is_open:
            route.continue_()
        else:
            waiting.append(route)

    def let_go() -> None:
        nonlocal is_open
        is_open = True
        for route in waiting:
            route.continue_()

    page.route(address, asked)
    return let_go


def has_copied(page: Page, words: str) -> None:
    """The clipboard has these words; a browser is not done with it when the click is over."""
    page.wait_for_function("async (words) => (await navigator.clipboard.readText()).trim() === words", arg=words)


def watch(page: Page, complaints: list[str]) -> None:
    """Note what goes wrong on this page."""

    def heard(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(f"{message.type}: {message.text}")

    def asked(dialog: Dialog) -> None:
        complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("console", heard)
    page.on("pageerror", lambda error: complaints.append(f"uncaught: {error}"))
    page.on("dialog", asked)
