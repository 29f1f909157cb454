"""Several sections of a held request at once: selected by kind, by range and by words, changed in one step."""

import json
from typing import Any

from playwright.sync_api import expect

from tests.browser import NARROW
from tests.page_stage import PageStage, card, chat, proof, user

OVERFLOW = "() => document.documentElement.scrollWidth - innerWidth"


def rounds(count: int) -> list[dict[str, Any]]:
    """So many calls of a tool, each with its result."""
    messages: list[dict[str, Any]] = [user("Read them all")]
    for n in range(count):
        function = {"name": "Read", "arguments": json.dumps({"file_path": f"/shop/part{n}.py"})}
        messages += [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{n}", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"Part {n}. " * 30},
        ]
    return [*messages, user("And now?")]


def test_all_results_are_deleted_in_one_step_and_come_back_by_one_undo(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(*rounds(3)))
    with stage.look() as shown:
        page = shown.page
        stage.open(page, exchange)
        card(page, "User 2").focus()
        page.get_by_role("button", name="Select sections").click()
        page.get_by_role("menuitem", name="All tool results before here").click()
        toolbar = page.get_by_role("toolbar", name="Selection")
        expect(toolbar.get_by_role("status")).to_contain_text("3 sections")
        stage.keep(shown.page, "selection")
        toolbar.get_by_role("button", name="Delete 3").click()
        expect(card(page, "Result · Read part1.py").get_by_role("button", name="Restore")).to_be_visible()
        page.keyboard.press("Control+z")
        expect(page.get_by_role("button", name="Undo")).to_be_disabled()
        expect(card(page, "Result · Read part1.py").get_by_role("button", name="Restore")).to_have_count(0)
        toolbar.get_by_role("button", name="Delete 3").click()
        toolbar.get_by_role("button", name="Restore 3").click()
        expect(toolbar.get_by_role("button", name="Delete 3")).to_be_enabled()
        toolbar.get_by_role("button", name="Delete 3").click()
        expect(toolbar.get_by_role("button", name="Restore 3")).to_be_enabled()
        page.get_by_role("button", name="Send").first.click()
        expect(proof(page)).to_contain_text("sent = shown")
    answer.result(30)
    assert [message["role"] for message in json.loads(stage.desk.sent[-1])["messages"]] == ["user", "user"]


def test_results_are_stripped_and_only_what_is_selected_is_kept_each_by_one_undo(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(*rounds(2)))
    with stage.look() as shown:
        page = shown.page
        stage.open(page, exchange)
        page.get_by_role("button", name="Select sections").click()
        page.get_by_role("menuitem", name="All tool results", exact=True).click()
        toolbar = page.get_by_role("toolbar", name="Selection")
        toolbar.get_by_role("button", name="Strip").click()
        expect(card(page, "Result · Read part1.py")).to_contain_text("[left out]")
        page.keyboard.press("Control+z")
        expect(card(page, "Result · Read part1.py")).to_contain_text("Part 1.")
        expect(page.get_by_role("button", name="Undo")).to_be_disabled()
        toolbar.get_by_role("button", name="Clear").click()
        toolbar.get_by_role("searchbox", name="Select by words").fill("And now?")
        page.keyboard.press("Enter")
        toolbar.get_by_role("button", name="Keep only these").click()
        expect(card(page, "User 1").get_by_role("button", name="Restore")).to_be_visible()
        page.get_by_role("button", name="Send").first.click()
        expect(proof(page)).to_contain_text("sent = shown")
    answer.result(30)
    assert [message["content"] for message in json.loads(stage.desk.sent[-1])["messages"]] == ["And now?"]


def test_sections_are_selected_by_words_by_keys_and_by_a_range_of_the_outline(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(*rounds(3)))
    with stage.visit(exchange) as page:
        status = page.get_by_role("toolbar", name="Selection").get_by_role("status")
        page.get_by_role("searchbox", name="Select by words").fill("part1")
        page.keyboard.press("Enter")
        expect(status).to_contain_text("2 sections")
        page.get_by_role("button", name="Clear", exact=True).click()
        card(page, "User 1").focus()
        page.keyboard.press("v")
        expect(status).to_contain_text("1 section")
        outline = page.get_by_role("navigation", name="Outline")
        outline.get_by_role("button", name="Result · Read part0.py").click(modifiers=["Shift"])
        expect(status).to_contain_text("3 sections")
        outline.get_by_role("button", name="User 1").click(modifiers=["Control"])
        expect(status).to_contain_text("2 sections")
        page.keyboard.press("d")
        expect(card(page, "Result · Read part0.py").get_by_role("button", name="Restore")).to_be_visible()
        page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
        assert page.evaluate(OVERFLOW) <= 0
        stage.keep(page, "selection-narrow")
    stage.person.release(exchange)
    answer.result(30)
