"""An answer that is broken off: what has come stays, is marked, and goes on from there."""

import re

from playwright.sync_api import expect

from tests.chat.api.http_stage import ChatDesk
from tests.chat_page import ANSWER_MS, LOCAL, chatting
from tests.local_model import needs_model

TOPICS = {"parameters": {"max_tokens": 4000}}

STORY = "Write a very long story about a lighthouse, its keeper and the sea. Tell every detail."


@needs_model
def test_escape_breaks_off_the_embedded_model_and_its_words_stay(talk: ChatDesk) -> None:
    talk.done("PUT", "topics", {"model": LOCAL})
    with chatting(talk.server) as chat:
        chat.write(STORY)
        chat.press("Enter")
        pair = chat.pair("Write a very long story")
        expect(pair).to_contain_text("answering…", timeout=ANSWER_MS)  # the model is loaded first
        expect(pair.locator(".pair-answer p").first).to_have_text(re.compile(r"\w+ \w+ \w+"), timeout=ANSWER_MS)
        chat.press("Escape")
        expect(pair.get_by_text("interrupted")).to_be_visible()
        expect(chat.page.get_by_role("button", name="Send", exact=True)).to_be_visible()
        said = pair.locator(".pair-answer").inner_text()
        chat.mode("INPUT")
        chat.page.reload()
        expect(pair.get_by_text("interrupted")).to_be_visible()
        assert pair.locator(".pair-answer").inner_text() == said
        (kept,) = talk.rows()
        assert kept["state"] == "complete"
        assert kept["answer"]["is_partial"] is True
        assert kept["answer"]["text"].strip()


def test_interrupted_answer_is_sent_with_the_next_question(talk: ChatDesk) -> None:
    talk.stops_after("Once upon ", "a time")
    with chatting(talk.server) as chat:
        chat.write("A story, please.")
        chat.press("Enter")
        pair = chat.pair("A story, please.")
        expect(pair).to_contain_text("Once upon a time")
        pair.get_by_role("button", name="Stop").click()
        expect(pair.get_by_text("interrupted")).to_be_visible()
        talk.answers("there was a keeper.")
        chat.ask("Go on.")
    assert [each["content"] for each in talk.sent[-1]["messages"]] == ["A story, please.", "Once upon a time", "Go on."]


def test_nothing_had_come_yet(talk: ChatDesk) -> None:
    talk.stops_after()
    with chatting(talk.server) as chat:
        chat.write("A story, please.")
        chat.press("Enter")
        expect(chat.pair("A story, please.")).to_contain_text("thinking…")
        chat.write("And another")
        expect(chat.question).to_have_value("And another")
        chat.press("Enter")
        expect(chat.toast).to_contain_text("An answer is on its way.")
        chat.press("Escape")
        expect(chat.page.get_by_role("button", name="Send", exact=True)).to_be_visible()
        trouble = chat.pair("A story, please.").get_by_role("group", name="Error")
        expect(trouble).to_contain_text("[error:")
        expect(chat.question).to_have_value("And another")
        chat.press("Escape")
        chat.mode("VIEW")
        chat.press("d")
        expect(chat.pair("A story, please.")).to_have_count(0)
