"""Several requests wait, several people look, and pages come and go: a hold stays what it is."""

import json
import re

from playwright.sync_api import expect

from tests.browser import NARROW
from tests.page_stage import PageStage, card, chat, proof, user, write


def test_two_requests_wait_in_the_order_in_which_they_came(stage: PageStage) -> None:
    first, one = stage.client(chat(user("First things first.")), session="one")
    second, two = stage.client(chat(user("Second to none.")), session="two")
    with stage.look() as shown:
        page = shown.page
        expect(page).to_have_title("(2 held) Sightline")
        rows = page.get_by_role("row", name="held")
        expect(rows).to_contain_text(["First things first.", "Second to none."])
        stage.keep(shown.page, "traffic-held")
        page.get_by_role("button", name="2 held").click()
        expect(card(page, "User 1")).to_contain_text("First things first.")
        expect(page.get_by_role("button", name="2 requests are held")).to_contain_text("1 of 2 held")
        page.get_by_role("button", name="Next", exact=False).last.click()
        expect(card(page, "User 1")).to_contain_text("Second to none.")
        page.get_by_role("button", name="Send").first.click()
        expect(proof(page)).to_contain_text("sent = shown")
        two.result(30)
        expect(page).to_have_title(re.compile(r"^\(1 held\)"))
        assert not one.done()
        page.get_by_role("button", name="1 held").click()
        page.get_by_role("button", name="Send").first.click()
        one.result(30)
    sent = [json.loads(body)["messages"][0]["content"] for body in stage.desk.sent[-2:]]
    assert sent == ["Second to none.", "First things first."]
    assert [stage.person.ended(each)["state"] for each in (first, second)] == ["finished", "finished"]


def test_a_page_that_is_loaded_again_shows_the_edited_request_and_can_undo_it(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(user("Once upon a time")))
    original = stage.person.view(exchange)["body_sha256"]
    with stage.look() as shown:
        page = shown.page
        stage.open(page, exchange)
        write(page, "User 1", " there was a gateway.")
        told = proof(page).get_attribute("aria-label") or ""
        assert original not in told
        page.reload()
        expect(card(page, "User 1")).to_contain_text("Once upon a time there was a gateway.")
        expect(card(page, "User 1").get_by_text("edited", exact=True)).to_be_visible()
        expect(proof(page)).to_have_accessible_name(told)
        page.get_by_role("button", name="Undo", exact=True).click()
        expect(proof(page)).to_have_accessible_name(f"shown {original}")
        page.get_by_role("button", name="Redo", exact=True).click()
        expect(proof(page)).to_have_accessible_name(told)
        page.get_by_role("button", name="Send").first.click()
        expect(proof(page)).to_have_accessible_name(told.replace("shown", "sent = shown"))
    answer.result(30)
    assert json.loads(stage.desk.sent[-1])["messages"][0]["content"] == "Once upon a time there was a gateway."


def test_a_second_browser_sees_each_edit_and_that_it_was_sent(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(user("Hello")))
    with stage.look() as here, stage.look() as there:
        stage.open(here.page, exchange)
        stage.open(there.page, exchange)
        write(here.page, "User 1", ", world")
        expect(card(there.page, "User 1")).to_contain_text("Hello, world")
        write(there.page, "User 1", "!")
        expect(card(here.page, "User 1")).to_contain_text("Hello, world!")
        told = proof(there.page).get_attribute("aria-label") or ""
        expect(proof(here.page)).to_have_accessible_name(told)
        there.page.get_by_role("button", name="Send").first.click()
        expect(proof(here.page)).to_have_accessible_name(told.replace("shown", "sent = shown"))
        expect(here.page.get_by_role("button", name="Send").first).to_have_count(0)
    answer.result(30)
    assert json.loads(stage.desk.sent[-1])["messages"][0]["content"] == "Hello, world!"


def test_two_tabs_of_one_browser_share_what_they_hear(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(user("Hello")))
    with stage.look() as shown:
        stage.open(shown.page, exchange)
        other = shown.context.new_page()
        stage.open(other, exchange)
        write(shown.page, "User 1", " again")
        expect(card(other, "User 1")).to_contain_text("Hello again")
        shown.page.close()
        stage.person.edited(exchange, op="undo")
        expect(card(other, "User 1")).not_to_contain_text("again")
        other.close()
    stage.person.release(exchange)
    answer.result(30)


def test_a_client_that_leaves_is_shown_as_gone(stage: PageStage) -> None:
    exchange, _answer = stage.client(chat(user("I cannot wait."), timeout=1.5))
    with stage.visit() as page:
        stage.open(page, exchange)
        expect(page.get_by_text("cancelled", exact=True)).to_be_visible()
        expect(page.get_by_text("the client left")).to_be_visible()
        expect(page).to_have_title(re.compile("^x_"))
    with stage.visit(size=NARROW) as page:
        expect(page.get_by_role("row", name="I cannot wait.").get_by_text("cancelled")).to_be_visible()
        stage.keep(page, "traffic-cancelled-narrow")


def test_an_exchange_that_is_not_on_record_leaves_no_way_back_to_it(stage: PageStage) -> None:
    with stage.look(size=NARROW) as shown:
        page, places = shown.page, shown.page.get_by_role("navigation", name="Places")
        shown.expected.append("404")
        page.goto(f"{stage.desk.server.url}/#/x/x_nowhere/sections")
        expect(page.get_by_role("heading", name="This exchange is not in the record")).to_be_visible()
        expect(places.get_by_role("link", name="Request")).to_have_count(0)
        stage.keep(shown.page, "request-not-on-record")
        back, again = (
            page.get_by_role("button", name=name).bounding_box() for name in ("Back to traffic", "Try again")
        )
        assert back
        assert again
        assert again["x"] - back["x"] - back["width"] >= 4
        page.get_by_role("button", name="Back to traffic").click()
        expect(places.get_by_role("link", name="Traffic")).to_be_visible()
        expect(places.get_by_role("link", name="Request")).to_have_count(0)


def test_a_section_that_is_taller_than_the_window_is_shown_from_its_beginning(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(user("word" * 700)))
    with stage.visit(size=NARROW) as page:
        stage.open(page, exchange)
        expect(card(page, "User 1").get_by_role("heading", name="User 1")).to_be_in_viewport()
        page.get_by_role("button", name="Send").first.click()
    answer.result(30)
