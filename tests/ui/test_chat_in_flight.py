"""What a person changes while an answer is on its way does not touch that request."""

from playwright.sync_api import expect

from tests.chat.api.http_stage import ChatDesk
from tests.chat_page import chatting

CONFIG = '[models."acme/other"]\ncontext_window = 4000\n'


def said(talk: ChatDesk, number: int = -1) -> list[str]:
    return [each["content"] for each in talk.sent[number]["messages"]]


def test_another_filter_hides_the_pair_and_not_its_answer(talk: ChatDesk) -> None:
    with chatting(talk.server) as chat:
        chat.ask("One.")
        chat.press("Escape", "2")
        gate = talk.stops_after("Half ", "of it")
        chat.press("Control+i")
        chat.write("Two.")
        chat.press("Enter")
        expect(chat.pair("Two.")).to_contain_text("Half of it")
        chat.apply("s2")
        expect(chat.pair("Two.")).to_have_count(0)
        expect(chat.page.get_by_text("thinking…").last).to_be_visible()
        talk.open(gate)
        expect(chat.page.get_by_role("button", name="Send", exact=True)).to_be_visible()
        expect(chat.pair("Two.")).to_have_count(0)
        chat.apply("")
        expect(chat.answered("Two.")).to_contain_text("Half of it")
    assert said(talk) == ["One.", "Hello there.", "Two."]


def test_another_model_is_for_the_next_question(talk: ChatDesk) -> None:
    with chatting(talk.server) as chat:
        gate = talk.stops_after("Half ", "of it")
        chat.write("One.")
        chat.press("Enter")
        expect(chat.pair("One.")).to_contain_text("Half of it")
        chat.press("Control+m")
        expect(chat.page.get_by_role("combobox", name="Model")).to_be_focused()
        chat.write("acme/other")
        chat.press("Enter")
        expect(chat.page.get_by_role("button", name="Model: acme/other")).to_be_visible()
        expect(chat.pair("One.")).to_contain_text("acme/large")
        talk.open(gate)
        expect(chat.answered("One.")).to_contain_text("acme/large")
        talk.answers("Yes.")
        expect(chat.ask("Two.")).to_contain_text("acme/other")
    assert [each["model"] for each in talk.sent] == ["large", "other"]


def test_other_settings_are_for_the_next_question(talk: ChatDesk) -> None:
    with chatting(talk.server) as chat:
        chat.ask("One.")
        gate = talk.stops_after("Half ", "of it")
        chat.write("Two.")
        chat.press("Enter")
        expect(chat.pair("Two.")).to_contain_text("Half of it")
        chat.press("Control+,")
        asked = chat.dialog("Chat settings")
        allowance = asked.get_by_label("Reserved for your question")
        allowance.fill("7900")
        allowance.press("Enter")
        expect(asked.get_by_text("saved", exact=True)).to_be_visible()
        chat.press("Escape")
        expect(asked).to_have_count(0)
        expect(chat.counter).to_have_text("0 / 2")
        talk.open(gate)
        chat.answered("Two.")
        talk.answers("Yes.")
        chat.ask("Three.")
    assert said(talk, 1) == ["One.", "Hello there.", "Two."]
    assert said(talk) == ["Three."]
