"""Agent mode step by step: each request opens in the editor before it leaves, and edits carry on through the rounds."""

import hashlib
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.agent_page import AgentDesk, add, results
from tests.loop_stage import calls, says
from tests.page_stage import card, proof, write


def let_go(page: Page, desk: AgentDesk, count: int) -> None:
    """Send what is shown; what has left is that, to the byte."""
    shown = (proof(page).get_attribute("aria-label") or "").removeprefix("shown ")
    page.get_by_role("button", name="Send").first.click()
    expect(proof(page)).to_have_accessible_name(f"sent = shown {shown}")
    assert len(desk.sent) == count
    assert hashlib.sha256(desk.chat.upstream.seen[-1].body).hexdigest() == shown


def test_each_request_is_looked_at_and_what_is_changed_stays_changed(desk: AgentDesk, tmp_path: Path) -> None:
    desk.says(calls(add(2, 2)), calls(add(4, 4, "c2")), says("Eight."))
    with desk.look() as chat:
        page = chat.page
        page.get_by_role("button", name="Step").click()
        chat.send("Add twice.")
        pair = chat.pair("Add twice.")
        expect(card(page, "User 1")).to_contain_text("Add twice.")
        write(page, "User 1", " And be quick.")
        chat.keep(tmp_path, "step-first-request")
        let_go(page, desk, 1)

        page.get_by_role("navigation").get_by_role("link", name="Chat").click()
        chat.call(pair, "add").get_by_role("button", name="Allow", exact=True).click()
        expect(card(page, "User 1")).to_contain_text("Add twice. And be quick.")
        let_go(page, desk, 2)

        page.go_back()
        expect(chat.result(pair, "add")).to_be_visible()
        pair.get_by_role("switch", name="Step").uncheck()
        chat.call(pair, "add").get_by_role("button", name="Allow", exact=True).click()
        expect(pair).to_contain_text("Eight.")
    assert [body["messages"][0]["content"] for body in desk.sent] == ["Add twice. And be quick."] * 3
    assert results(desk.sent[-1]) == ["4", "8"]


def test_going_back_from_a_held_request_does_not_reopen_it(desk: AgentDesk, tmp_path: Path) -> None:
    desk.says(calls(add(1, 2)), says("Three."))
    with desk.look() as chat:
        page = chat.page
        pair = chat.begin("Add one and two.")
        pair.get_by_role("switch", name="Step").check()
        chat.call(pair, "add").get_by_role("button", name="Allow", exact=True).click()
        expect(card(page, "User 1")).to_be_visible()
        page.go_back()
        expect(pair).to_contain_text("The request of round 2 is held before it is sent.")
        chat.keep(tmp_path, "step-held")
        pair.get_by_role("link", name="Open the request").click()
        expect(card(page, "User 1")).to_be_visible()
        page.get_by_role("button", name="Send").first.click()
        expect(proof(page)).to_contain_text("sent = shown")
        page.get_by_role("navigation").get_by_role("link", name="Chat").click()
        expect(pair).to_contain_text("Three.")


def test_a_step_that_is_dropped_ends_the_run(desk: AgentDesk) -> None:
    desk.says(calls(add(1, 2)), says("Never."))
    with desk.look() as chat:
        page = chat.page
        pair = chat.begin("Add and drop.")
        pair.get_by_role("switch", name="Step").check()
        chat.call(pair, "add").get_by_role("button", name="Allow", exact=True).click()
        expect(card(page, "User 1")).to_be_visible()
        (held,) = desk.chat.person.get("/api/holds")
        desk.chat.person.act(held, "drop")
        page.get_by_role("navigation").get_by_role("link", name="Chat").click()
        expect(pair).to_contain_text("interrupted")
        expect(chat.result(pair, "add")).to_be_visible()
        expect(pair.get_by_role("button", name="Resume")).to_have_count(0)
