"""Every view in every state, from 1440 to 390 pixels, light and dark: nothing is outside, covered or cut without a way
to see it whole, its chief parts are where they are on record, and axe finds nothing against WCAG A and AA.

One server and one page for all of it, and no more visits than states: to load the page takes as long as to look at it.
The views are filled by the example; its API is made slow, failing or full of long words at the browser.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser import Shown, browsing, looking
from tests.gateway_server import Served, served
from tests.page_rules import SETTLED, problems
from tests.page_stage import gallery

LONG = "antidisestablishmentarianism/"
WORDS = frozenset(
    {"asked", "client", "fault", "file", "label", "message", "model", "name", "provider", "reason", "session", "suite"}
    | {"target", "text", "title", "tool", "words"}
)
"""The fields of the API's answers that are people's, models' or programs' own words."""
OWN = frozenset({"advice", "counter", "tokens"})
"""Fields below which all names are ours."""
VIEWS: dict[str, str] = {
    "traffic": "#/traffic",
    "filtered": "#/traffic?filter=model:claude-*",
    "sessions": "#/sessions",
    "session": "#/sessions/{session}",
    "sections": "#/x/{turn}",
    "wire": "#/x/{turn}/wire",
    "diff": "#/x/{edited}/diff",
    "reply": "#/x/{replayed}/reply",
    "timeline": "#/x/{retried}/timeline",
    "losses": "#/x/{translated}/losses",
    "headers": "#/x/{turn}/headers",
    "held": "#/x/{held}",
    "chat": "#/chat",
    "runs": "#/runs",
    "run": "#/runs/{run}",
    "evals": "#/evals",
    "eval": "#/evals/{eval}",
    "case": "#/evals/{eval}/case?case=half&target=openai%2Fgpt-4o-mini",
    "costs": "#/costs?by=model",
}
WHOLE = [
    view for view in VIEWS if view not in ("filtered", "wire", "diff", "reply", "timeline", "losses", "headers", "held")
]
"""The views of which each loads for itself; the tabs of a request load with it."""
API = re.compile(r"/example/api/(?!events|about|example|health)")
SHARE = ("traffic", "Share, import and delete")
CHAT = ("chat", "Chat")
DIALOGS: dict[str, tuple[str, ...]] = {
    "palette": ("traffic", "Control+k"),
    "shortcuts": ("traffic", "?"),
    "connect": ("traffic", "g", "c"),
    "rules": ("traffic", "g", "r"),
    "document": ("traffic", "g", "o"),
    "record": ("own", "More", "The record and how long it is kept"),
    "share": (*SHARE, "Share everything…"),
    "delete": (*SHARE, "Delete everything…"),
    "saved-filter": ("filtered", "Saved filters", "Save this filter…"),
    "case-of-this": ("sections", "Make a case of this"),
    "suites": ("evals", "Suites…"),
    "new-suite": ("evals", "Suites…", "New suite"),
    "chat-settings": (*CHAT, "Settings"),
    "chat-topics": (*CHAT, "Topics"),
    "chat-rename": (*CHAT, "Rename this chat…"),
    "chat-delete": (*CHAT, "Delete this chat…"),
    "chat-export": (*CHAT, "Export"),
    "chat-import": (*CHAT, "Import"),
}
"""Each dialog: the view that it is opened from (`own` is beside the example), and what opens it: keys and names."""


@dataclass(frozen=True)
class Gallery:
    """One page that shows the example, and where pictures of it go."""

    shown: Shown
    server: Served
    places: dict[str, str]
    pictures: Path

    @property
    def page(self) -> Page:
        return self.shown.page

    def goto(self, view: str) -> None:
        """To a view, and wait until it has all that it loads."""
        self.turn_to(view)
        self.settle()

    def turn_to(self, view: str) -> None:
        """To a view, whatever it still has to load."""
        self.page.evaluate("(hash) => { location.hash = hash; }", VIEWS[view].format(**self.places))
        self.page.evaluate(SETTLED)

    def settle(self) -> None:
        expect(self.page.locator(".shell-view > *").first).to_be_visible()
        expect(self.page.get_by_text("Loading…")).to_have_count(0)
        expect(self.page.get_by_role("status", name="Loading")).to_have_count(0)
        self.page.wait_for_load_state("networkidle")

    def faults(self, name: str, *, is_whole: bool = True, with_axe: bool = True) -> list[str]:
        """Which rules are broken; and a picture for people, where SCREENSHOTS says that somebody wants to look."""
        found = {*problems(self.page, is_whole=is_whole, with_axe=with_axe, view=name if name in VIEWS else "")}
        self.page.set_viewport_size({"width": 1440, "height": 900})
        if os.environ.get("SCREENSHOTS"):
            self.shown.picture(self.pictures, f"every-{name}")
        return [f"{name} at {each}" for each in sorted(found)]

    @contextmanager
    def first_visit(self, answer: Callable[[Route], None]) -> Iterator[None]:
        """A page that has loaded nothing yet, and whose API is asked by this function."""
        self.page.goto("about:blank")
        self.page.route(API, answer)
        try:
            self.page.goto(f"{self.server.url}/example/{VIEWS['traffic']}")
            expect(self.page.locator(".shell-view > *").first).to_be_visible()
            yield
        finally:
            self.page.unroute_all(behavior="ignoreErrors")
            self.page.goto(f"{self.server.url}/example/")

    def named(self, name: str) -> Locator:
        """The button or the choice of this name, in the dialog that is open if one is."""
        within = self.page.get_by_role("dialog").last
        scope = within if within.count() else self.page
        choice = scope.get_by_role("menuitem", name=re.compile(f"^{re.escape(name)}"))
        return scope.get_by_role("button", name=name, exact=True).or_(choice).first


@pytest.fixture(scope="module")
def exhibits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gallery]:
    folder = tmp_path_factory.mktemp("views")
    with browsing() as browser, served(folder, "") as server, looking(browser, server) as shown:
        shown.page.goto(f"{server.url}/example/")
        expect(shown.page.get_by_role("region", name="Tour")).to_contain_text("1 of")
        places = server.api("/example/api/example")["places"]
        yield Gallery(shown, server, places, gallery(folder))


def test_views_with_something_in_them(exhibits: Gallery) -> None:
    """In this order: once a request was opened, the header has a way back to it."""
    exhibits.page.goto(f"{exhibits.server.url}/example/")
    found: list[str] = []
    for view in VIEWS:
        exhibits.goto(view)
        found += exhibits.faults(view)
    assert found == []


@pytest.mark.parametrize("panel", DIALOGS)
def test_a_panel_over_a_view(exhibits: Gallery, panel: str) -> None:
    view, *steps = DIALOGS[panel]
    if view == "own":
        exhibits.page.goto(f"{exhibits.server.url}/{VIEWS['traffic']}")
        exhibits.settle()
    else:
        exhibits.goto(view)
    for step in steps:
        if len(step) == 1 or step.startswith("Control+"):
            exhibits.page.keyboard.press(step)
        else:
            exhibits.named(step).click()
    dialogs = exhibits.page.get_by_role("dialog")
    expect(dialogs).to_be_visible()
    exhibits.settle()
    try:
        assert exhibits.faults(panel) == []
    finally:
        exhibits.page.keyboard.press("Escape")
        exhibits.page.evaluate(SETTLED)
        if view == "own" or dialogs.count():  # one that is opened from another leads back there
            exhibits.page.goto(f"{exhibits.server.url}/example/")


def test_views_with_long_words(exhibits: Gallery) -> None:
    def answer(route: Route) -> None:
        got = route.fetch()
        with suppress(PlaywrightError):  # the page has given this request up meanwhile; else it would not settle
            route.fulfill(response=got, body=json.dumps(lengthen(got.json())))

    exhibits.shown.expected.append("status of 404")  # what has another name is not found by it
    found: list[str] = []
    with exhibits.first_visit(answer):
        for view in VIEWS:
            exhibits.goto(view)
            # axe has seen the same elements with short words
            found += exhibits.faults(f"{view}-long", is_whole=False, with_axe=False)
    assert found == []


def test_views_whose_data_cannot_be_loaded(exhibits: Gallery) -> None:
    error = {"code": "overloaded", "message": "The record is being moved", "hint": "Try again in a minute."}
    exhibits.shown.expected.append("status of 503")
    found: list[str] = []
    with exhibits.first_visit(lambda route: route.fulfill(status=503, json={"error": error})):
        for view in WHOLE:
            exhibits.goto(view)
            found += exhibits.faults(f"{view}-failing", is_whole=False)
    assert found == []


def test_views_that_load(exhibits: Gallery) -> None:
    waiting: list[Route] = []
    found: list[str] = []
    with exhibits.first_visit(lambda route: waiting.append(route)):
        for view in WHOLE:
            exhibits.turn_to(view)
            found += exhibits.faults(f"{view}-loading", is_whole=False)
        for route in waiting:
            with suppress(PlaywrightError):  # a view that was left has given its request up
                route.continue_()
    assert found == []


def test_views_without_anything_in_them(exhibits: Gallery) -> None:
    exhibits.page.goto(f"{exhibits.server.url}/{VIEWS['traffic']}")
    found: list[str] = []
    for view in ("traffic", "chat", "runs", "evals", "costs"):
        exhibits.goto(view)
        found += exhibits.faults(f"{view}-empty", is_whole=False)
    exhibits.page.goto(f"{exhibits.server.url}/example/")
    assert found == []


def lengthen(value: Any, key: str = "") -> Any:
    """The same with long words wherever words are shown."""
    match value:
        case dict():
            return {name: each if name in OWN else lengthen(each, name) for name, each in value.items()}
        case list():
            return [lengthen(each, key) for each in value]
        case str() if value and key in WORDS:
            return f"{value} {LONG * 12}"
    return value
