"""Somebody who types faster than the page draws: no key goes astray. Here every frame and timer comes half a second
late, so that whatever waits for one is too late for the next key."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser import held_back
from tests.page_stage import PageStage, card, chat, system, user

LATE_MS = 500
DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))))"


@pytest.fixture
def page(stage: PageStage) -> Iterator[Page]:
    with stage.look() as shown:
        shown.delay(LATE_MS)
        shown.page.reload()
        yield shown.page


def test_what_is_typed_right_after_a_dialog_opens_is_typed_into_it(stage: PageStage, page: Page) -> None:
    stage.client(chat(user("A haystack.")))
    expect(page.get_by_role("row", name="A haystack.")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("theme dark")
    page.keyboard.press("Enter")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.keyboard.press("?")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("state:held")
    expect(page.get_by_role("combobox", name="Filter")).to_have_value("state:held")
    page.keyboard.press("Control+k")
    page.keyboard.press("Escape")
    page.keyboard.type(" model:m")
    expect(page.get_by_role("combobox", name="Filter")).to_have_value("state:held model:m")


def test_a_menu_has_the_key_after_the_one_that_opens_it(page: Page) -> None:
    page.get_by_role("button", name="More", exact=True).focus()
    for key in ("Enter", "ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert page.locator("html").get_attribute("data-theme") == "dark"


def test_a_place_has_the_key_after_those_that_lead_there(stage: PageStage, page: Page) -> None:
    exchange, _ = stage.client(chat(user("Look at me.")))
    stage.open(page, exchange)
    expect(card(page, "User 1")).to_be_visible()
    for key in ("g", "t", "/"):
        page.keyboard.press(key)
    page.keyboard.type("model:m")
    expect(page.get_by_role("combobox", name="Filter")).to_have_value("model:m")


def test_late_filter_response_does_not_navigate_back_to_the_list(stage: PageStage, page: Page) -> None:
    let_go = held_back(page, "**/api/filter?*")
    page.keyboard.press("/")
    page.keyboard.type("model:m")
    expect(page.get_by_role("combobox", name="Filter")).to_have_value("model:m")
    page.keyboard.press("Control+k")
    page.keyboard.type("go to the runs")
    page.keyboard.press("Enter")
    expect(page.get_by_role("main", name="Runs")).to_be_visible()
    let_go()
    page.evaluate(DRAWN)
    assert page.url.endswith("#/runs")


def test_characters_typed_before_the_editor_loads_are_kept(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(system("Be brief."), user("Hello")))
    with stage.visit() as page:
        let_go = held_back(page, "**/codemirror.js")
        stage.open(page, exchange)
        expect(card(page, "User 1")).to_be_visible()
        page.keyboard.press("e")
        page.keyboard.type(" dear")
        page.keyboard.press("Home")
        field = page.get_by_role("textbox", name="Edit User 1")
        expect(field).to_have_value("Hello dear")
        let_go()
        expect(page.locator(".cm-content")).to_be_focused()
        page.keyboard.type("Oh! ")
        page.keyboard.press("Escape")
        expect(card(page, "User 1")).to_contain_text("Oh! Hello dear")
        page.keyboard.press("Control+Enter")
        answer.result(30)
    assert b"Oh! Hello dear" in stage.desk.sent[-1]


def test_a_click_from_one_value_to_the_next_edits_the_next(stage: PageStage, page: Page) -> None:
    exchange, _ = stage.client(chat(user("Hello"), temperature=0.5, top_p=0.25))
    stage.open(page, exchange)
    options = page.get_by_role("article", name="Options")
    options.get_by_role("tree", name="temperature").get_by_role("button").click()
    page.keyboard.type("1")
    options.get_by_role("tree", name="top_p").get_by_role("button").hover()
    page.mouse.down()
    # The warning about the value left moves the next one away before the button is released.
    expect(options).to_contain_text("Temperature must be between 0 and 2")
    page.mouse.up()
    page.evaluate(DRAWN)
    expect(options.get_by_role("tree", name="top_p").get_by_role("textbox")).to_be_focused()
