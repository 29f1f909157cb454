"""The chat outlives a reload, and two tabs of it stay in step."""

import re

from playwright.sync_api import expect

from tests.browser import watch
from tests.chat.api.http_stage import ChatDesk
from tests.chat_page import LOCAL, ChatPage, chatting, opened
from tests.local_model import needs_model


def second(chat: ChatPage, talk: ChatDesk) -> ChatPage:
    """Another tab of the same browser."""
    page = chat.shown.context.new_page()
    watch(page, chat.shown.complaints)
    return opened(chat.shown, talk.server, page)


@needs_model
def test_a_reload_keeps_everything(talk: ChatDesk) -> None:
    topic = talk.done("POST", "topics", {"name": "Cities", "model": LOCAL})["id"]
    with chatting(talk.server) as chat:
        chat.press("Alt+t")
        chat.page.get_by_role("dialog").get_by_role("combobox").fill("Cities")
        chat.press("Enter")
        expect(chat.page.get_by_role("button", name="Topic: Cities")).to_be_visible()
        chat.ask("Name a city.")
        chat.press("Escape", "2", "a", "Shift+H", "/")
        chat.write("s2")
        chat.press("Enter", "Control+i")
        chat.write("What I was about to say")
        expect(chat.page.locator("#chat-estimate")).to_have_text(re.compile(r"^\d+"))
        chat.page.reload()
        expect(chat.question).to_have_value("What I was about to say")
        expect(chat.filter).to_have_value("s2")
        pair = chat.pair("Name a city.")
        expect(pair.get_by_role("img", name="2 of 3 stars")).to_be_visible()
        expect(pair.get_by_text("grey", exact=True)).to_be_visible()
        expect(pair).to_contain_text("Cities")
        expect(chat.page.get_by_role("button", name="Topic: Cities")).to_be_visible()
        expect(chat.page.get_by_role("button", name=f"Model: {LOCAL}")).to_be_visible()
        expect(chat.page.get_by_role("complementary", name="HUD")).to_contain_text("Counted by the provider")
    assert talk.rows()[0]["topic"] == topic


def test_a_reload_in_the_middle_of_an_answer_misses_nothing(talk: ChatDesk) -> None:
    gate = talk.stops_after("First ", "half. ", "Second ", "half.")
    with chatting(talk.server) as chat:
        chat.write("Both halves, please.")
        chat.press("Enter")
        pair = chat.pair("Both halves, please.")
        expect(pair).to_contain_text("First half. Second half.")
        chat.write("Meanwhile")
        chat.page.reload()
        expect(pair).to_contain_text("First half. Second half.")
        expect(pair).to_contain_text("answering…")
        expect(chat.question).to_have_value("Meanwhile")
        expect(chat.page.get_by_role("button", name="Stop").last).to_be_visible()
        talk.open(gate)
        chat.answered("Both halves, please.")
        expect(pair.locator(".answer-blocks")).to_have_text("First half. Second half.")
        expect(chat.question).to_have_value("Meanwhile")


def test_question_being_reasked_is_kept_after_a_reload(talk: ChatDesk) -> None:
    with chatting(talk.server) as chat:
        chat.ask("A question.")
        chat.press("Escape", "Shift+R")
        chat.write(" Changed.")
        chat.page.reload()
        expect(chat.page.get_by_text("goes when you send")).to_be_visible()
        chat.question.click()
        chat.press("Enter")
        chat.answered("A question. Changed.")
        expect(chat.feed.get_by_role("article")).to_have_count(1)


def test_two_tabs_stay_in_step(talk: ChatDesk) -> None:
    with chatting(talk.server) as one:
        two = second(one, talk)
        gate = talk.stops_after("Half ", "an ", "answer")
        one.write("From the first tab.")
        one.press("Enter")
        expect(two.pair("From the first tab.")).to_contain_text("Half an answer")
        expect(two.pair("From the first tab.")).to_contain_text("answering…")
        talk.open(gate)
        one.answered("From the first tab.")
        two.answered("From the first tab.")

        two.press("Escape", "3")
        expect(one.pair("From the first tab.").get_by_role("img", name="3 of 3 stars")).to_be_visible()
        talk.answers("Yes.")
        two.ask("From the second tab.")
        one.answered("From the second tab.")
        expect(one.counter).to_have_text("2 / 2")

        one.press("Escape", "/")
        one.write("s3")
        one.press("Enter")
        expect(one.counter).to_have_text("(-) 1 / 1")
        expect(two.counter).to_have_text("2 / 2")

        two.press("Escape", "g", "g", "d")
        expect(two.pair("From the first tab.")).to_have_count(0)
        expect(one.page.get_by_role("heading", name="No pair matches this filter")).to_be_visible()
        two.press("Control+z")
        expect(one.pair("From the first tab.")).to_be_visible()
        expect(two.pair("From the first tab.")).to_be_visible()


def test_what_one_tab_sends_the_other_breaks_off(talk: ChatDesk) -> None:
    with chatting(talk.server) as one:
        two = second(one, talk)
        talk.stops_after("Half")
        one.write("Please.")
        one.press("Enter")
        expect(two.pair("Please.")).to_contain_text("Half")
        two.press("Control+i", "Escape")
        for each in (one, two):
            expect(each.pair("Please.").get_by_text("interrupted")).to_be_visible()
            expect(each.page.get_by_role("button", name="Send", exact=True)).to_be_visible()
