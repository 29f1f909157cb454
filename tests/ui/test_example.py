"""The first visit: a tour of an example that comes with Sightline, kept apart from the user's own record."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import NARROW, browsing, looking
from tests.gateway_server import Served, served
from tests.page_stage import gallery
from tests.person import Person

STEPS = {
    "Traffic": "fix-fractions",
    "A session": "Read parser.py",
    "A request": "careful programming agent",
    "A held request": "You are a patient cook",
    "An edit": "Answer in plain words",
    "A reply": "confirm it with the tests",
    "Losses": "top_k",
    "Timeline": "after overloaded",
    "Chat": "instead of buttermilk",
    "A run": "add_to_list",
    "Evals": "order",
    "Costs": "claude-sonnet-4-5",
}


@dataclass(frozen=True)
class Fresh:
    """A program that nobody has used."""

    browser: Browser
    server: Served
    folder: Path


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fresh]:
    folder = tmp_path_factory.mktemp("fresh")
    with browsing() as browser, served(folder, "") as server:
        yield Fresh(browser, server, folder)


def test_a_first_visit_tours_every_view_on_example_data_that_leaves_no_trace(fresh: Fresh) -> None:
    data, pictures = fresh.folder / "data", gallery(fresh.folder)
    with looking(fresh.browser, fresh.server, size=NARROW, dark=True) as shown:
        page, person = shown.page, Person(fresh.server)
        page.get_by_role("button", name="Take the tour").click()
        tour = page.get_by_role("region", name="Tour")
        for number, (title, words) in enumerate(STEPS.items(), 1):
            expect(tour).to_contain_text(f"{number} of {len(STEPS)} · {title}.")
            expect(tour).to_contain_text("Example data")
            found = page.locator(".shell-view").get_by_text(re.compile(re.escape(words)))
            expect(found.filter(visible=True).first).to_be_visible()
            assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth"), title
            shown.picture(pictures, f"tour-{number:02}")
            if number < len(STEPS):
                tour.get_by_role("button", name="Next").click()
        expect(tour.get_by_role("button", name="Next")).to_be_disabled()
        assert list(data.glob("example-*"))
        is_untouched(person)
        tour.get_by_role("button", name="Leave the example").click()
        expect(page.get_by_role("heading", name="Waiting for the first request")).to_be_visible()
        expect(tour.get_by_text("Example data")).to_have_count(0)
        assert not list(data.glob("example-*"))
        is_untouched(person)


def is_untouched(person: Person) -> None:
    """Nothing of the example is in the user's record, costs, learned estimates, chat, runs or evals."""
    assert person.get("/api/exchanges")["exchanges"] == []
    assert person.get("/api/costs?by=model")["rows"] == []
    assert person.get("/api/learned")["lessons"] == []
    assert person.get("/api/holds") == person.get("/api/runs") == person.get("/api/evals") == []


def test_a_second_page_of_the_example_goes_home_when_the_first_leaves_it(fresh: Fresh) -> None:
    with looking(fresh.browser, fresh.server) as shown:
        shown.expected += ["404", "ERR_", "status of"]
        first, second = shown.page, shown.context.new_page()
        for page in (first, second):
            page.goto(f"{fresh.server.url}/example/")
            expect(page.get_by_role("region", name="Tour")).to_contain_text("1 of 12")
        edit_and_send(first)
        first.get_by_role("button", name="Leave the example").click()
        for page in (first, second):
            expect(page.get_by_role("heading", name="Waiting for the first request")).to_be_visible()


def edit_and_send(page: Page) -> None:
    """The request that waits in the example can be changed and dropped like any other."""
    page.get_by_role("button", name="1 held").click()
    expect(page.get_by_role("article", name=re.compile("^System"))).to_be_visible()
    page.get_by_role("button", name="Drop", exact=True).click()
    expect(page.get_by_role("button", name="1 held")).to_have_count(0)
