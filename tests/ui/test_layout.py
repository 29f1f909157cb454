"""Where things stand on the screen, measured from the elements themselves: columns, rows and the header."""

from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser import NARROW
from tests.page_stage import PageStage, chat, user

TALL = 800
LONGEST_COST = "~$0.000123"
GEOMETRY = """() => {
  const box = (each) => {
    const { left, right, top, bottom } = each.getBoundingClientRect();
    return { left, right, top, bottom };
  };
  const text = (cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return box(range);
  };
  const column = (cell) => [...cell.classList].find((name) => name.startsWith("c-")) ?? "wide";
  const kind = (cell) => ({ isNumber: cell.classList.contains("number") });
  const cells = (row) =>
    Object.fromEntries(
      [...row.querySelectorAll(":scope > .cell")]
        .filter((cell) => cell.offsetParent)
        .map((cell) => [column(cell), { ...box(cell), text: text(cell), says: cell.textContent, ...kind(cell) }]),
    );
  const bars = (row) => [...row.querySelectorAll(".token-bar")].map(box);
  return {
    head: cells(document.querySelector(".traffic-head")),
    rows: [...document.querySelectorAll(".row.is-line")]
      .map((row) => ({ ...box(row), cells: cells(row), bars: bars(row) })),
  };
}"""
COLOURS = """(each) => {
  const probe = document.createElement("i");
  probe.style.color = "var(--held)";
  each.parentElement.append(probe);
  const wanted = getComputedStyle(probe).color;
  probe.remove();
  return [getComputedStyle(each).color, wanted];
}"""


@pytest.fixture
def busy(stage: PageStage) -> PageStage:
    """Three finished requests with counts, and one that waits."""
    stage.person.put("/api/interception", {"mode": "off"})
    for number in range(3):
        stage.free(chat(user(f"Question {number} of a talk.")), session=f"talk-{number}")
    stage.person.put("/api/interception", {"mode": "every"})
    stage.client(chat(user("May I go?")), session="waiting")
    return stage


def measure(page: Page) -> dict[str, Any]:
    expect(page.locator(".row.is-line").nth(3)).to_be_visible()
    for cell in page.locator(".row.is-line .c-cost").all():
        cell.evaluate("(each, text) => (each.textContent = text)", LONGEST_COST)
    found: dict[str, Any] = page.evaluate(GEOMETRY)
    return found


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (768, True)])
def test_the_columns_of_the_list_stand_below_their_names_and_every_row_holds_its_own(
    busy: PageStage, width: int, *, dark: bool
) -> None:
    with busy.visit(size=(width, TALL), dark=dark) as page:
        found = measure(page)
        busy.keep(page, f"layout-traffic-{width}-{'dark' if dark else 'light'}")
        assert len(found["rows"]) >= 4
        assert {name for name, head in found["head"].items() if head["isNumber"]} >= {"c-cost", "c-time", "c-at"}
        for row in found["rows"]:
            assert list(row["cells"]) == list(found["head"])
            places = list(row["cells"].values())
            for before, after in pairwise(places):
                assert after["left"] >= before["right"] - 0.5, "columns stand over each other"
            for name, cell in row["cells"].items():
                head = found["head"][name]
                assert abs(cell["left"] - head["left"]) < 1, name
                assert abs(cell["right"] - head["right"]) < 1, name
                assert row["top"] <= cell["top"], name
                assert cell["bottom"] <= row["bottom"] + 0.5, name
                if name == "c-cost":
                    assert cell["text"]["left"] >= cell["left"] - 0.5, "the longest cost is wider than its column"
                if cell["isNumber"] and cell["says"].strip():
                    assert abs(cell["text"]["right"] - head["text"]["right"]) < 2, f"{name} is not at the right"
            for bar in row["bars"]:
                assert row["top"] <= bar["top"], "a bar stands above its row"
                assert bar["bottom"] <= row["bottom"], "a bar stands below its row"
                assert bar["left"] >= row["cells"]["c-tokens"]["left"] - 0.5
                assert bar["right"] <= row["cells"]["c-tokens"]["right"] + 0.5


def test_every_place_and_the_held_count_are_whole_in_a_narrow_header(busy: PageStage) -> None:
    """That nothing sticks out of the header or stands over its neighbour is a rule for every view: page_rules.py."""
    with busy.visit(busy.person.get("/api/holds")[0], size=NARROW, dark=True) as page:
        places = page.get_by_role("navigation", name="Places")
        expect(places.get_by_role("link")).to_have_text(
            ["Traffic", "Sessions", "Request", "Chat", "Evals", "Runs", "Costs"]
        )
        assert places.evaluate("(each) => each.scrollWidth <= each.clientWidth"), "a place is cut off"
        lines = page.get_by_role("button", name="1 held").evaluate("(each) => [each.scrollHeight, each.clientHeight]")
        assert lines[0] <= lines[1], "the held count is broken into lines"
        busy.keep(page, "layout-held-narrow")


def test_marks_of_a_request_keep_their_colour_beside_the_chats_style(busy: PageStage) -> None:
    busy.person.put("/api/interception", {"mode": "every"})
    held = busy.person.get("/api/holds")[0]
    with busy.visit() as page:
        busy.open(page, held)
        busy.person.edited(held, op="insert", pointer="/temperature", value=0.5)
        badge = page.locator(".badge.changed")
        expect(badge).to_be_visible()
        colour, wanted = badge.evaluate(COLOURS)
        assert colour == wanted
