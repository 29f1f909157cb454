"""Several chats on the page: begun, asked at once, searched, forked, renamed and deleted."""

import re
from pathlib import Path

from playwright.sync_api import Route, expect

from tests.chat.api.http_stage import ChatDesk
from tests.chat_page import ChatPage, chatting


def open_from_list(chat: ChatPage, title: str) -> None:
    chat.page.get_by_role("complementary", name="Chats").get_by_role("link", name=title).click()
    expect(chat.page.get_by_role("button", name=f"Chats: {title}")).to_be_visible()


def test_two_chats_answer_at_once_and_each_keeps_its_draft_and_history(talk: ChatDesk, tmp_path: Path) -> None:
    gate = talk.stops_after("Slow ", "words.")
    with chatting(talk.server) as chat:
        listed = chat.page.get_by_role("complementary", name="Chats")
        expect(listed).to_have_count(0)
        chat.write("A slow question.")
        chat.press("Enter")
        expect(chat.pair("A slow question.")).to_contain_text("Slow words.")
        chat.write("half a thought")
        talk.answers("Quick.")
        chat.press("Alt+n")
        expect(chat.page).to_have_url(re.compile("#/chat/c_"))
        expect(listed).to_contain_text("answering")
        expect(chat.question).to_have_value("")
        chat.ask("A quick question.")
        assert [each["content"] for each in talk.sent[-1]["messages"]] == ["A quick question."]
        expect(chat.pair("A slow question.")).to_have_count(0)
        chat.keep(tmp_path, "chats")
        open_from_list(chat, "Main chat")
        expect(chat.question).to_have_value("half a thought")
        expect(chat.pair("A slow question.")).to_contain_text("answering…")
        expect(chat.pair("A quick question.")).to_have_count(0)
        talk.open(gate)
        chat.answered("A slow question.")
        open_from_list(chat, "A quick question.")
        chat.page.reload()
        expect(chat.pair("A quick question.")).to_contain_text("Quick.")
        expect(listed).to_be_visible()


def test_a_question_that_is_refused_comes_back_to_its_own_chat(talk: ChatDesk) -> None:
    with chatting(talk.server) as chat:
        chat.shown.expected.append("429")
        waiting: list[Route] = []
        chat.page.route("**/api/chat/send", lambda route: waiting.append(route), times=1)
        chat.write("A question of the main chat.")
        with chat.page.expect_request("**/api/chat/send"):
            chat.press("Enter")
        chat.press("Alt+n")
        expect(chat.page).to_have_url(re.compile("#/chat/c_"))
        chat.write("half a thought")
        (route,) = waiting
        refusal = {"error": {"code": "rate_limited", "message": "Not now.", "hint": "Wait."}}
        route.fulfill(status=429, json=refusal)
        expect(chat.toast).to_contain_text("Not now.")
        expect(chat.question).to_have_value("half a thought")
        open_from_list(chat, "Main chat")
        expect(chat.question).to_have_value("A question of the main chat.")


def test_a_question_that_is_typed_ahead_is_not_sent_in_another_chat(talk: ChatDesk) -> None:
    with chatting(talk.server) as chat:
        chat.press("Alt+n")
        expect(chat.page).to_have_url(re.compile("#/chat/c_"))
        chat.ask("A question of the other chat.")
        chat.page.route("**/api/chat/views/*", lambda _route: None)  # it is not answered yet
        open_from_list(chat, "Main chat")
        chat.question.fill("A question of the main chat.")
        chat.press("Enter")
        open_from_list(chat, "A question of the other chat.")
        chat.pair("A question of the other chat.").wait_for()
        expect(chat.toast).to_contain_text("Another chat is open.")
        expect(chat.question).to_have_value("")
        chat.page.unroute("**/api/chat/views/*")
        open_from_list(chat, "Main chat")
        expect(chat.question).to_have_value("A question of the main chat.")
    assert len(talk.sent) == 1


def test_a_chat_is_forked_renamed_found_and_deleted(talk: ChatDesk, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        talk.answers(f"Answer {number}.")
        talk.ask(f"Question {number}?")
    with chatting(talk.server) as chat:
        listed = chat.page.get_by_role("complementary", name="Chats")
        pair = chat.pair("Question 2?")
        pair.get_by_role("button", name="More for this pair").click()
        chat.page.get_by_role("menuitem", name="Fork from here").click()
        expect(chat.toast).to_contain_text("A new chat with 2 pairs.")
        expect(chat.pair("Question 2?")).to_be_visible()
        expect(chat.pair("Question 3?")).to_have_count(0)
        listed.get_by_role("button", name="More for Main chat (fork)").click()
        chat.page.get_by_role("menuitem", name="Rename…").click()
        chat.write("Another way")
        chat.press("Enter")
        expect(listed.get_by_role("link", name="Another way")).to_have_attribute("aria-current", "true")
        listed.get_by_role("searchbox").fill("question 3")
        expect(listed.get_by_role("link")).to_have_count(1)
        expect(listed.get_by_role("link")).to_contain_text("Question 3? Answer 3.")
        listed.get_by_role("link").click()
        expect(chat.pair("Question 3?")).to_be_focused()
        listed.get_by_role("searchbox").fill("")
        listed.get_by_role("button", name="More for Another way").click()
        chat.page.get_by_role("menuitem", name="Delete…").click()
        confirm = chat.dialog("Delete “Another way”")
        expect(confirm).to_contain_text("2 pairs will be deleted for good.")
        chat.keep(tmp_path, "delete-chat")
        confirm.get_by_role("button", name="Delete for good").click()
        expect(listed.get_by_role("link")).to_have_count(1)
        expect(chat.toast.last).to_contain_text("The chat is deleted.")
    assert [row["user_text"] for row in talk.rows()] == ["Question 1?", "Question 2?", "Question 3?"]
    with chatting(talk.server, size=(390, 844)) as chat:
        chat.page.get_by_role("button", name="Chats: Main chat").click()
        expect(chat.page.get_by_role("complementary", name="Chats")).to_be_visible()
        chat.fits()
        chat.keep(tmp_path, "chats-narrow")
        chat.page.get_by_role("complementary", name="Chats").get_by_role("link", name="Main chat").click()
        expect(chat.page.get_by_role("complementary", name="Chats")).to_have_count(0)


def test_a_pair_that_the_filter_hides_is_found_in_the_chat_that_is_open(talk: ChatDesk) -> None:
    for number in (1, 2, 3):
        talk.answers(f"Answer {number}.")
        talk.ask(f"Question {number}?")
    with chatting(talk.server) as chat:
        chat.apply("'Question 3'")
        expect(chat.pair("Question 1?")).to_have_count(0)
        chat.press("Alt+c")
        listed = chat.page.get_by_role("complementary", name="Chats")
        listed.get_by_role("searchbox").fill("question 1")
        expect(listed.get_by_role("link")).to_contain_text("Question 1? Answer 1.")
        listed.get_by_role("link").click()
        expect(chat.pair("Question 1?")).to_be_focused()
