"""Agent mode in the chat: what a person decides about calls is what runs, and what the model is told."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from sightline.agent.service.approvers import SavedRules
from tests.agent_page import AgentDesk, add, adds, called, note, results
from tests.browser import NARROW
from tests.loop_stage import calls, says
from tests.page_rules import SETTLED


def test_a_call_waits_for_leave_and_the_answer_has_what_came_of_it(desk: AgentDesk, tmp_path: Path) -> None:
    desk.says(*adds())
    with desk.look() as chat:
        pair = chat.begin("Add two and two.")
        call = chat.call(pair, "add")
        expect(call).to_contain_text("a: 2")
        expect(pair.get_by_role("status").filter(has_text="waits for you")).to_have_count(2)
        expect(pair).not_to_contain_text("answering…")
        expect(pair.locator("summary[data-call='add'][data-state='waits for you']")).to_be_visible()
        expect(chat.page.get_by_role("button", name="waits for you")).to_be_visible()
        chat.keep(tmp_path, "agent-approve")
        call.get_by_role("button", name="Allow", exact=True).click()
        expect(pair).to_contain_text("Four.")
        chat.result(pair, "add").click()
        expect(pair).to_contain_text("Result")
        chat.keep(tmp_path, "agent-answered")
        chat.fits()
    assert results(desk.sent[-1]) == ["4"]


def test_a_press_counts_although_the_card_moves_before_its_release(desk: AgentDesk) -> None:
    desk.says(*adds())
    with desk.look() as chat:
        pair = chat.begin("Add while the answer grows.")
        allow = chat.call(pair, "add").get_by_role("button", name="Allow", exact=True)
        press_and_move_card(chat.page, allow, aside=60)
        expect(allow).to_be_enabled()
        expect(pair).not_to_contain_text("Four.")
        press_and_move_card(chat.page, allow, aside=0)
        expect(pair).to_contain_text("Four.")


def press_and_move_card(page: Page, button: Locator, aside: int) -> None:
    """Press it, have its card move, move the pointer aside, and let go."""
    button.hover()
    box = button.bounding_box()
    assert box is not None
    page.mouse.down()
    button.evaluate("(it) => { it.closest('.run-card').style.translate = '0 -90px'; }")
    page.evaluate(SETTLED)
    page.mouse.move(box["x"] + box["width"] / 2 + aside, box["y"] + box["height"] / 2 + aside)
    page.mouse.up()
    page.evaluate("for (const each of document.querySelectorAll('.run-card')) each.style.translate = ''")


def test_edited_arguments_run_and_are_what_the_model_sees(desk: AgentDesk) -> None:
    desk.says(*adds(then="Seven."), says("Still seven."))
    with desk.look() as chat:
        pair = chat.begin("Add something.")
        call = chat.call(pair, "add")
        call.get_by_role("button", name="Edit arguments").click()
        editor = call.get_by_role("textbox", name="Arguments of add")
        expect(editor).to_be_focused()
        chat.press("Control+a")
        chat.page.keyboard.insert_text('{"a": 3, "b": "many"}')
        call.get_by_role("button", name="Allow", exact=True).click()
        expect(call.get_by_role("alert").filter(has_text="b")).to_be_visible()
        editor.click()
        chat.press("Control+a")
        chat.page.keyboard.insert_text('{"a": 3, "b": 4}')
        call.get_by_role("button", name="Allow", exact=True).click()
        expect(pair).to_contain_text("Seven.")
        expect(chat.result(pair, "add")).to_contain_text("a: 3, b: 4")
        assert (called(desk.sent[-1])[-1], results(desk.sent[-1])[-1]) == ({"a": 3, "b": 4}, "7")
        chat.begin("And now?")
        expect(chat.pair("And now?")).to_contain_text("Still seven.")
        assert called(desk.sent[-1])[-1] == {"a": 3, "b": 4}, "later questions see what ran, too"
        chat.page.reload()
        expect(chat.result(pair, "add")).to_contain_text("a: 3, b: 4")


@pytest.mark.parametrize(
    ("button", "field", "words", "confirm", "state", "result"),
    [
        ("Deny…", "Why it is denied", "Not on Sundays.", "Deny", "denied", "does not allow this call. Not on Sundays."),
        ("Answer by hand…", "Result for the model", "5, if 2 is large", "Give this result", "done", "5, if 2 is large"),
    ],
)
def test_a_person_denies_a_call_or_gives_its_result(
    desk: AgentDesk, button: str, field: str, words: str, confirm: str, state: str, result: str
) -> None:
    desk.says(*adds(then="I see."))
    with desk.look() as chat:
        pair = chat.begin(f"Add. {button}")
        call = chat.call(pair, "add")
        call.get_by_role("button", name=button).click()
        expect(call.get_by_role("textbox", name=field)).to_be_focused()
        chat.write(words)
        call.get_by_role("button", name=confirm, exact=True).click()
        expect(pair).to_contain_text("I see.")
        expect(chat.result(pair, "add", state)).to_be_visible()
    assert results(desk.sent[-1])[-1].endswith(result)


def test_some_calls_at_once_are_decided_one_by_one_or_together(desk: AgentDesk, tmp_path: Path) -> None:
    desk.says(calls(add(1, 1, "a"), add(2, 2, "b"), note("a.md", "x", "c")), says("All of it."))
    with desk.look(size=NARROW, dark=True) as chat:
        pair = chat.begin("Do three things.")
        expect(pair).to_contain_text("The model wants to make 3 calls.")
        chat.keep(tmp_path, "agent-three-narrow-dark")
        chat.fits()
        chat.call(pair, "write_note").get_by_role("button", name="Deny…").click()
        chat.write("No notes.")
        chat.press("Enter")
        expect(pair).to_contain_text("The model wants to make 2 calls.")
        pair.get_by_role("button", name="Allow all 2 as they are").click()
        expect(pair).to_contain_text("All of it.")
    assert [told[-9:] for told in results(desk.sent[-1])[-3:]] == ["2", "4", "No notes."]


def test_tool_result_is_visible_while_the_run_continues(desk: AgentDesk) -> None:
    desk.says(calls(add(2, 3)), calls(add(5, 4)), says("Nine."))
    with desk.look() as chat:
        pair = chat.begin("Add in two steps.")
        chat.call(pair, "add").get_by_role("button", name="Allow", exact=True).click()
        done = chat.result(pair, "add")
        expect(done).to_be_visible()
        expect(chat.call(pair, "add")).to_contain_text("a: 5")
        done.click()
        expect(pair.locator(".fold-block.call .fold-inside").first).to_contain_text("5")
        chat.call(pair, "add").get_by_role("button", name="Allow", exact=True).click()
        expect(pair).to_contain_text("Nine.")


def test_always_is_kept_for_later_runs_and_can_be_taken_back(desk: AgentDesk, tmp_path: Path) -> None:
    desk.says(calls(note("docs/a.md", "one")), says("Noted."))
    kept = SavedRules(desk.folder / "data")
    with desk.look() as chat:
        pair = chat.begin("Note this.")
        call = chat.call(pair, "write_note")
        call.get_by_role("button", name="Always…").click()
        call.get_by_role("checkbox", name="text").uncheck()
        expect(call).to_contain_text("write_note where path is docs/*")
        chat.keep(tmp_path, "agent-always")
        call.get_by_role("button", name="Always allow").click()
        expect(pair).to_contain_text("Noted.")
        (rule,) = kept.all()
        assert (rule.tool, rule.arguments) == ("write_note", {"/path": "docs/*"})
        assert rule.place.endswith("sums.py")

        desk.says(calls(note("docs/b.md", "two")), says("Noted unasked."))
        expect(chat.begin("Note that, too.")).to_contain_text("Noted unasked.")
        desk.says(calls(note("src/b.md", "two")), says("Noted elsewhere."))
        pair = chat.begin("Note it elsewhere.")
        chat.call(pair, "write_note").get_by_role("button", name="Allow", exact=True).click()
        expect(pair).to_contain_text("Noted elsewhere.")

        chat.runs(desk.server)
        chat.page.get_by_text("Always allowed").click()
        rules = chat.page.get_by_role("list", name="Always allowed")
        expect(rules).to_contain_text("write_note where path is docs/*")
        expect(rules).to_contain_text("sums.py")
        chat.keep(tmp_path, "runs-always")
        rules.get_by_role("button", name=re.compile("^Ask again about write_note")).click()
        expect(rules).to_have_count(0)
        assert kept.all() == ()

        chat.page.goto(f"{desk.server.url}/#/chat")
        desk.says(calls(note("docs/c.md", "three")), says("Asked again."))
        pair = chat.begin("Note a third.")
        chat.call(pair, "write_note").get_by_role("button", name="Allow", exact=True).click()
        expect(pair).to_contain_text("Asked again.")


def test_a_limit_is_raised_or_ends_the_run(desk: AgentDesk, tmp_path: Path) -> None:
    desk.says(*[calls(add(1, 1))] * 7, says("Two, I am sure."))
    with desk.look() as chat:
        pair = chat.begin("Add one and one for ever.")
        chat.call(pair, "add").get_by_role("button", name="Allow for this run").click()
        expect(pair).to_contain_text("The limit of 5 identical calls with the same result is reached.")
        chat.keep(tmp_path, "agent-limit")
        pair.get_by_role("button", name="Continue, up to 8").click()
        expect(pair).to_contain_text("Two, I am sure.")

        desk.says(*[calls(add(1, 1))] * 7)
        pair = chat.begin("And once more.")
        chat.call(pair, "add").get_by_role("button", name="Allow for this run").click()
        pair.get_by_role("button", name="Stop here").click()
        expect(pair).to_contain_text("the run has no answer: the limit of 5 identical calls")
        expect(pair.get_by_role("region", name="Run of tools")).to_have_count(0)
        chat.keep(tmp_path, "agent-limit-reached")


def test_it_fits_on_a_phone_in_the_dark(desk: AgentDesk, tmp_path: Path) -> None:
    desk.says(calls(note("docs/a.md", "# A note\n\nwith some words"), add(1, "two", "d")), says("Done."))
    with desk.look(size=NARROW, dark=True) as chat:
        pair = chat.begin("Write it down.")
        call = chat.call(pair, "write_note")
        call.get_by_role("button", name="Edit arguments").click()
        call.get_by_role("button", name="Always…").click()
        chat.keep(tmp_path, "agent-edit-narrow")
        chat.fits()
        pair.get_by_role("button", name=re.compile("^Stop ?Esc")).click()
        expect(pair.get_by_role("button", name="Resume")).to_be_visible()
        chat.keep(tmp_path, "agent-stopped-narrow")
        chat.fits()
