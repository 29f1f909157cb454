"""Two people over one held request: what leaves is what the one who sends it sees."""

import json
from typing import Any

from playwright.sync_api import Page, Route, expect

from tests.page_stage import PageStage, card, chat, proof, system, user, write

HEARD = """() => {
  let count = 0;
  window.heard = new Promise((done) => {
    const facts = new BroadcastChannel("sightline-events");
    facts.onmessage = ({ data }) => data.fact?.kind === "edited" && ++count === 2 && done();
  });
}"""
"""The page has heard of two edits: its own, and the one of somebody else."""


def test_what_another_one_changed_meanwhile_is_shown_before_it_can_be_sent(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(system("You are brief."), user("Hello.")))
    with stage.look() as shown:
        page = shown.page
        stage.open(page, exchange)
        expect(card(page, "System")).to_contain_text("You are brief.")
        section = stage.person.view(exchange)["sections"][0]["id"]
        _before_the_next_edit(
            page, lambda: stage.person.edited(exchange, op="set_text", section=section, text="Rhyme.")
        )
        write(page, "User 1", " And goodbye.")
        told = stage.person.view(exchange)
        expect(card(page, "System")).to_contain_text("Rhyme.")
        expect(proof(page)).to_have_accessible_name(f"shown {told['body_sha256']}")
        expect(page.get_by_text("openai-chat").first).to_be_visible()
        page.get_by_role("button", name="Send", exact=False).first.click()
        expect(proof(page)).to_contain_text("sent = shown")
    answer.result(30)
    said = [each["content"] for each in json.loads(stage.desk.sent[-1])["messages"]]
    assert said == ["Rhyme.", "Hello. And goodbye."]


def test_the_mode_and_the_rules_that_another_one_sets_are_shown_at_once(stage: PageStage) -> None:
    with stage.visit() as page:
        expect(page.get_by_role("radio", name="Every")).to_be_checked()
        stage.person.put("/api/interception", {"mode": "off"})
        expect(page.get_by_role("radio", name="Off")).to_be_checked()
        stage.person.put("/api/rules", [{"filter": "model:other"}])
        stage.person.put("/api/interception", {"mode": "rules"})
        expect(page.get_by_role("radio", name="Rules")).to_be_checked()
        page.keyboard.press("g")
        page.keyboard.press("r")
        rules = page.get_by_role("dialog", name="Rules")
        expect(rules.get_by_text("model:other").first).to_be_visible()
        stage.person.put("/api/rules", [{"filter": "model:third"}])
        filter_field = rules.get_by_role("textbox", name="Rule 1: filter")
        expect(filter_field).to_have_value("model:third")

        rules.get_by_role("button", name="Add rule").click()  # from now on the list is the user's own
        stage.person.put("/api/rules", [{"filter": "model:fourth"}, {"filter": "model:fifth"}])
        expect(page.locator(".count", has_text="2")).to_be_attached()
        expect(filter_field).to_have_value("model:third")


def test_what_another_one_changes_while_an_edit_is_answered_is_shown_too(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(system("You are brief."), user("Hello.")))
    with stage.visit(exchange) as page:
        section = stage.person.view(exchange)["sections"][0]["id"]

        page.evaluate(HEARD)

        def late(route: Route) -> None:
            fetched = route.fetch()
            stage.person.edited(exchange, op="set_text", section=section, text="Rhyme.")
            page.evaluate("window.heard")
            route.fulfill(response=fetched)

        page.route("**/edits?*", late, times=1)
        write(page, "User 1", " And goodbye.")
        expect(card(page, "System")).to_contain_text("Rhyme.")
    stage.person.act(exchange, "drop")
    assert answer.exception(30)


def test_unseen_edit_of_another_page_is_not_sent(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(system("You are brief."), user("Hello.")))
    with stage.look() as shown:
        page = shown.page
        stage.open(page, exchange)
        section = stage.person.view(exchange)["sections"][0]["id"]
        _before_the_next_edit(
            page, lambda: stage.person.edited(exchange, op="set_text", section=section, text="Rhyme.")
        )
        card(page, "User 1").get_by_role("button", name="Edit User 1", exact=True).click()
        expect(page.get_by_role("textbox", name="Edit User 1")).to_be_focused()
        page.keyboard.press("Control+End")
        page.keyboard.insert_text(" And goodbye.")
        page.keyboard.press("Control+Enter")
        expect(page.get_by_text("it was changed in another page")).to_be_visible()
        expect(card(page, "System")).to_contain_text("Rhyme.")
        assert stage.person.view(exchange)["state"] == "held"
        expect(page.get_by_role("button", name="Send", exact=False).first).to_be_enabled()
        page.keyboard.press("Control+Enter")
        expect(proof(page)).to_contain_text("sent = shown")
    answer.result(30)
    said = [each["content"] for each in json.loads(stage.desk.sent[-1])["messages"]]
    assert said == ["Rhyme.", "Hello. And goodbye."]


def _before_the_next_edit(page: Page, act: Any) -> None:
    def first(route: Route) -> None:
        act()
        route.continue_()

    page.route("**/edits?*", first, times=1)
