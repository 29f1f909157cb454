"""A real browser for the tests of the page: Debian's Chromium, driven by Playwright.

Two variables make it a worse one, to find what holds on a quick machine only. SLOW_PAGES=8 makes every script eight
times slower; LATE_FRAMES=200 has every frame and every timer of a page come 200 milliseconds late.
"""

import os
import re
import shutil
import time
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

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""The first is Chromium without the windows that nobody sees here; a page takes it a quarter less of a core."""
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
    found = brought(_found, "chromium-headless-shell") or brought(_found, "chromium")
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
    is_as_new: bool = True

    def delay(self, milliseconds: int) -> None:
        """From the next page on, every frame and every timer comes so late; nobody else gets this tab."""
        self.is_as_new = False
        _delay(self.context, milliseconds)

    def picture(self, folder: Path, name: str) -> None:
        """What it looks like, for people who ask for it by naming a folder in SCREENSHOTS."""
        if os.environ.get("SCREENSHOTS"):
            self.page.screenshot(path=folder / f"{name}.png", animations="disabled")

    @property
    def surprises(self) -> list[str]:
        """What went wrong and should not have."""
        return [said for said in self.complaints if not any(words in said for words in self.expected)]


_shared: list[Browser] = []
_tabs: list[Page] = []
"""Tabs of the shared browser that nobody looks at."""


@contextmanager
def sharing_a_browser() -> Iterator[None]:
    """Until the end, all who browse do so in one browser, and a tab that was left is used again: a new one takes five
    times as long to show the page, as it has nothing compiled yet."""
    with browsing() as browser:
        _shared.append(browser)
        try:
            yield
        finally:
            _shared.clear()
            _tabs.clear()


def is_browser_shared() -> bool:
    return bool(_shared)


@contextmanager
def browsing() -> Iterator[Browser]:
    """The shared browser, else one that shows nothing yet."""
    if _shared:
        yield _shared[0]
        return
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
    page = _tabs.pop() if browser in _shared and _tabs else _open_tab(browser)
    opened, context = Shown(page, page.context), page.context
    listeners = watch(page, opened.complaints)
    try:
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.url)
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.goto(f"{server.url}/?token={server.token}")
        _forget_history(page)
        yield opened
        assert not opened.surprises, opened.surprises
        if opened.is_as_new and browser in _shared and not page.is_closed():
            _leave(page, server.url, listeners)
    except (AssertionError, PlaywrightError) as failure:
        for each in context.pages:
            failure.add_note(_describe(each))
        raise
    finally:
        if page not in _tabs:
            context.close()


def _open_tab(browser: Browser) -> Page:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    context.on("page", slow_down)
    _delay(context, LATE_FRAMES)
    return context.new_page()


def _forget_history(page: Page) -> None:
    session = page.context.new_cdp_session(page)
    session.send("Page.resetNavigationHistory")
    session.detach()


def _leave(page: Page, origin: str, listeners: dict[str, Callable[..., None]]) -> None:
    """Keep the tab for the next person, who finds nothing of this one: no other tab, cookie, stored word or route."""
    for other in page.context.pages:
        if other != page:
            other.close()
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    page.unroute_all()
    page.mouse.move(0, 0)
    try:
        # Nothing is there. A route would say so too, but it empties the cache: the next visit took twice the time.
        page.goto(f"{origin}/bare")
    except PlaywrightError:  # the story ended with its server, and so does the tab
        return
    if abs(page.evaluate("Date.now()") / 1000 - time.time()) > 60:  # a clock that was set stays set, also for the next
        return
    page.evaluate("localStorage.clear(), sessionStorage.clear()")
    page.context.clear_cookies()
    _tabs.append(page)


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


def _delay(context: BrowserContext, milliseconds: int) -> None:
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


def watch(page: Page, complaints: list[str]) -> dict[str, Callable[..., None]]:
    """Note what goes wrong on this page: by which listeners."""

    def heard(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(f"{message.type}: {message.text}")

    def asked(dialog: Dialog) -> None:
        complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    listeners = {
        "console": heard,
        "pageerror": lambda error: complaints.append(f"uncaught: {error}"),
        "dialog": asked,
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    return listeners
