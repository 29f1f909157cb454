"""On a phone in the dark: everything fits, and everything that can be used has a name. What fits there fits on a wide
window, and test_every_view.py looks at every view and panel in four widths and both themes."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser import NARROW, Shown
from tests.page_stage import PageStage, card, chat, proof, system, user

TABS = ("Sections", "Wire", "Diff", "Reply", "Timeline", "Losses", "Headers")
NAMED = {
    "button", "checkbox", "combobox", "link", "listbox", "menuitem", "menuitemradio", "meter", "option", "radio",
    "region", "searchbox", "slider", "spinbutton", "switch", "tab", "textbox", "tree", "treeitem",
}  # fmt: skip
LONG_WORD = "antidisestablishmentarianism/" * 12
TOOL = {
    "type": "function",
    "function": {
        "name": "search_files",
        "description": "Searches files below a folder, and answers with every line that matches. " * 3,
        "parameters": {"type": "object", "properties": {"pattern": {"type": "string"}}, "required": ["pattern"]},
    },
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "search_files", "arguments": '{"pattern":"TODO"}'}}
ASKED = chat(
    system("You are a careful engineer.\n\n## Rules\n\n- Be brief\n- Be right\n\n```python\nprint('hello')\n```"),
    user(f"Where are the open ends? See {LONG_WORD}"),
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": f"src/one.py:3: TODO\nsrc/two.py:9: TODO {LONG_WORD}"},
    user("And which of them matters **most**?"),
    tools=[TOOL],
    temperature=0.2,
)


@pytest.fixture
def shown(stage: PageStage) -> Iterator[Shown]:
    """The page with one request that is finished and one that waits."""
    stage.person.put("/api/interception", {"mode": "off"})
    stage.free(ASKED, session="open-ends@project")
    stage.person.put("/api/interception", {"mode": "every"})
    stage.client(ASKED, session="open-ends@project")
    with stage.look(size=NARROW, dark=True) as opened:
        yield opened


def check(shown: Shown) -> None:
    """Nothing sticks out to the side, a dialog is in sight from its head to its foot, and nothing that can be used is
    without a name."""
    page = shown.page
    sizes = page.evaluate("[document.scrollingElement.scrollWidth, innerWidth]")
    assert sizes[0] <= sizes[1], sticking_out(page)
    cut = page.evaluate(
        """[...document.querySelectorAll("dialog[open]")]
          .map((each) => [each.className, each.getBoundingClientRect().bottom, innerHeight])
          .filter(([, bottom, height]) => bottom > height)"""
    )
    assert not cut, cut
    session = shown.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    nameless = [
        node
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in NAMED and not node.get("name", {}).get("value", "").strip()
    ]
    assert not nameless, nameless


def sticking_out(page: Page) -> list[str]:
    """Who it is."""
    found: list[str] = page.evaluate(
        """[...document.querySelectorAll("body *")]
          .filter((each) => each.getBoundingClientRect().right > innerWidth + 1)
          .map((each) => each.outerHTML.slice(0, 120))"""
    )
    return found


def test_a_held_request_fits_in_every_tab_and_while_it_is_edited(stage: PageStage, shown: Shown) -> None:
    page = shown.page
    page.keyboard.press("/")
    expect(page.get_by_role("listbox", name="Completions")).to_be_visible()
    check(shown)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="1 held").click()
    expect(card(page, "User 2")).to_be_visible()
    check(shown)
    stage.keep(shown.page, "request-narrow")
    for tab in TABS:
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tabpanel", name=tab)).to_be_visible()
        expect(page.get_by_text("Loading…")).to_have_count(0)
        check(shown)
    page.get_by_role("tab", name="Sections").click()
    card(page, "User 2").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="Edit User 2")).to_be_focused()
    page.keyboard.type(" Really?")
    check(shown)
    stage.keep(shown.page, "editing-narrow")
    page.keyboard.press("Escape")
    card(page, "Tools (1)").focus()
    page.keyboard.press("Shift+J")
    expect(page.get_by_role("textbox", name="as JSON")).to_be_focused()
    check(shown)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="More for User 2").click()
    expect(page.get_by_role("menuitem", name="Duplicate")).to_be_visible()
    check(shown)
    page.keyboard.press("Escape")
    card(page, "User 2").focus()
    page.keyboard.press("a")
    page.get_by_role("button", name="Add a tool call").click()
    check(shown)


def test_a_finished_request_fits_with_its_replays_and_kept_edits(shown: Shown) -> None:
    page = shown.page
    page.get_by_role("row", name="And which of them matters").last.click()
    expect(proof(page)).to_contain_text("sent = shown")
    page.get_by_role("button", name="Kept edits").click()
    expect(page.get_by_text("No edits are kept.")).to_be_visible()
    check(shown)
    page.get_by_role("button", name="Replay…").click()
    expect(page.get_by_role("combobox", name="Model")).to_be_visible()
    check(shown)
    page.get_by_role("button", name="Back to traffic").click()
    expect(page.get_by_role("treegrid", name="Exchanges")).to_be_visible()
