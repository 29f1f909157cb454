"""The send workflow to the letter: modes, what leaves the context, the estimate at Send, and where the eye goes."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.chat.api.http_stage import ChatDesk
from tests.chat_page import ChatPage, chatting
from tests.desk_stage import JSON
from tests.upstream import answer

TALL = "\n\n".join(f"Line {number} of a long answer." for number in range(80))


def test_a_click_on_send_stays_in_input_mode(talk: ChatDesk, tmp_path: Path) -> None:
    with chatting(talk.server) as chat:
        gate = talk.stops_after("Half ", "of it")
        chat.question.click()
        chat.write("By mouse.")
        chat.page.get_by_role("button", name="Send", exact=True).click()
        chat.mode("INPUT")
        expect(chat.question).to_be_focused()
        busy = chat.page.get_by_role("button", name="AI is thinking…")
        expect(busy).to_be_disabled()
        chat.write("I go on writing.")
        chat.keep(tmp_path, "chat-sending")
        talk.open(gate)
        chat.answered("By mouse.")
        chat.mode("INPUT")
        expect(chat.question).to_have_value("I go on writing.")


def test_failed_question_is_reasked_with_its_own_model(talk: ChatDesk) -> None:
    talk.upstream.script = [answer(401, b'{"error":{"code":"invalid_api_key","message":"No."}}', JSON)]
    with chatting(talk.server) as chat:
        chat.write("Will this work?")
        chat.press("Enter")
        expect(chat.pair("Will this work?").get_by_role("group", name="Error")).to_contain_text("[error: auth] No.")
        chat.shown.expected.append("401")
        chat.press("Control+m")
        expect(chat.page.get_by_role("combobox", name="Model")).to_be_focused()
        chat.write("acme/small")
        chat.press("Enter")
        expect(chat.page.get_by_role("button", name="Model: acme/small")).to_be_visible()
        chat.pair("Will this work?").get_by_role("button", name="Re-ask").click()
        expect(chat.page.get_by_role("button", name="Model: acme/large")).to_be_visible()
        talk.answers("Now ", "it does.")
        chat.press("Enter")
        chat.answered("Will this work?")
    assert [each["model"] for each in talk.sent] == ["large", "large"]


def test_what_is_out_of_context_has_its_class_and_badge(talk: ChatDesk) -> None:
    with chatting(talk.server) as chat:
        chat.ask("One.")
        talk.done("PUT", "preferences", {"settings": {"userRequestAllowance": 7900}})
        expect(chat.counter).to_have_text("0 / 1")
        pair = chat.pair("One.")
        expect(pair).to_have_class(re.compile(r"\booc\b"))
        expect(pair.get_by_text("off", exact=True)).to_be_visible()
        assert float(pair.locator(".pair-question").evaluate("each => getComputedStyle(each).opacity")) < 1
        talk.done("PUT", "preferences", {"settings": {}})
        expect(pair).not_to_have_class(re.compile(r"\booc\b"))


def test_the_estimate_at_send_is_the_previews(talk: ChatDesk) -> None:
    with chatting(talk.server) as chat:
        chat.ask("One.")
        chat.write("And one more question.")
        chat.press("Alt+p")
        told = talk.done("POST", "preview", {"view": view_of(chat), "text": "And one more question."})
        estimate = chat.page.locator("#chat-estimate")
        expect(estimate).to_contain_text(f"~{told['tokens']}")


def view_of(chat: ChatPage) -> str:
    """The id that this tab has for its view."""
    with chat.page.expect_request(re.compile("/api/chat/estimate")) as asked:
        chat.write("!")
        chat.press("Backspace")
    return str(asked.value.post_data_json["view"])


@pytest.mark.parametrize(
    ("settings", "words", "mode"),
    [
        ({}, TALL, "VIEW"),
        ({}, "Short.", "INPUT"),
        ({"replyFocus": "never"}, TALL, "INPUT"),
        ({"replyFocus": "always"}, "Short.", "VIEW"),
        ({"partialHeightThreshold": 10}, TALL, "INPUT"),
    ],
)
def test_where_the_eye_goes_when_an_answer_comes_can_be_set(
    talk: ChatDesk, settings: dict[str, object], words: str, mode: str
) -> None:
    talk.done("PUT", "preferences", {"settings": settings})
    talk.answers(words)
    with chatting(talk.server) as chat:
        chat.ask("Tell me.")
        chat.mode(mode)
