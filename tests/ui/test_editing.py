"""A held request, changed on the page: what is shown is what leaves."""

import json

from playwright.sync_api import expect

from tests.page_stage import PageStage, card, chat, proof, sha256, system, user, write
from tests.picture_files import gradient

PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{gradient(240, 120)}"}}
QUESTION = user([{"type": "text", "text": "Here is a picture."}, PICTURE, {"type": "text", "text": "What is in it?"}])


def test_an_edited_message_leaves_exactly_as_it_is_shown(stage: PageStage) -> None:
    stage.desk.says(stream=True)
    exchange, answer = stage.client(chat(system("You are brief."), QUESTION, stream=True), session="holiday")
    with stage.look() as shown:
        page = shown.page
        row = page.get_by_role("row", name="Here is a picture.")
        expect(row).to_contain_text("held")
        expect(page).to_have_title("(1 held) Sightline")
        row.click()
        expect(card(page, "User 1").get_by_role("img", name="Picture in the request")).to_be_visible()
        budget = page.get_by_role("meter", name="Token budget")
        tokens = int(budget.get_attribute("aria-valuenow") or 0)
        before = proof(page).get_attribute("aria-label")
        assert before == f"shown {stage.person.view(exchange)['body_sha256']}"

        write(page, "User 1", " Answer in Italian, please.")
        expect(card(page, "User 1")).to_contain_text("edited")
        told = stage.person.view(exchange)
        expect(proof(page)).to_have_accessible_name(f"shown {told['body_sha256']}")
        assert told["body_sha256"] not in before
        assert int(budget.get_attribute("aria-valuenow") or 0) > tokens
        stage.keep(shown.page, "request-edited")

        page.get_by_role("tab", name="Diff").click()
        entry = page.get_by_role("region", name="User 1: changed")
        expect(entry.get_by_text("Answer in Italian, please.")).to_be_visible()
        stage.keep(shown.page, "request-diff")
        page.get_by_role("tab", name="Wire").click()
        expect(page.get_by_role("button", name="1 edited place")).to_be_visible()
        expect(page.get_by_title(f"worked out in this page: {told['body_sha256']}")).to_be_visible()
        stage.keep(shown.page, "request-wire")

        page.get_by_role("button", name="Send", exact=False).first.click()
        assert answer.result(30) == "Hello there."
        expect(proof(page)).to_have_accessible_name(f"sent = shown {told['body_sha256']}")
        page.get_by_role("tab", name="Reply").click()
        expect(page.get_by_role("tabpanel", name="Reply")).to_contain_text("Hello there.")
        stage.keep(shown.page, "request-reply")
        page.get_by_role("tab", name="Timeline").click()
        expect(page.get_by_role("tabpanel", name="Timeline")).to_contain_text("First byte")
        stage.keep(shown.page, "request-timeline")

    sent = stage.desk.sent[-1]
    assert sha256(sent) == told["body_sha256"]
    texts = json.loads(sent)["messages"][1]["content"]
    assert [part.get("text") for part in texts] == [
        "Here is a picture.", None, "What is in it? Answer in Italian, please.",
    ]  # fmt: skip
    assert texts[1] == PICTURE


def test_a_text_over_several_parts_is_changed_where_it_was_touched(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(QUESTION))
    with stage.look() as shown:
        page = shown.page
        stage.open(page, exchange)
        card(page, "User 1").get_by_role("button", name="Edit User 1", exact=True).click()
        editor = page.get_by_role("textbox", name="Edit User 1")
        expect(editor).to_have_text("Here is a picture.What is in it?")
        expect(page.get_by_text("One text over 2 parts")).to_be_visible()
        page.keyboard.press("Control+Home")
        page.keyboard.insert_text("Look! ")
        page.get_by_role("checkbox", name="Compare with the original").check()
        expect(page.get_by_role("button", name="Reject")).to_be_visible()
        stage.keep(shown.page, "request-compared")
        page.keyboard.press("Control+Enter")
        expect(proof(page)).to_contain_text("sent = shown")
    answer.result(30)
    first, picture, last = json.loads(stage.desk.sent[-1])["messages"][0]["content"]
    assert (first["text"], picture, last["text"]) == ("Look! Here is a picture.", PICTURE, "What is in it?")


def test_json_in_an_open_editor_leaves_as_it_is_shown_or_not_at_all(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(system("You are brief."), user("Hello?")))
    with stage.look() as shown:
        page = shown.page
        stage.open(page, exchange)
        page.get_by_role("button", name="More for System").click()
        page.get_by_role("menuitem", name="Edit as JSON").click()
        expect(page.get_by_role("textbox", name="as JSON")).to_be_focused()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text('{"role": "system", "content": "You are')
        page.keyboard.press("Control+Enter")
        expect(page.get_by_text("Not sent: an edit was refused.")).to_be_visible()
        expect(card(page, "System").get_by_role("alert")).to_contain_text("Not JSON")
        assert stage.person.view(exchange)["state"] == "held"
        page.get_by_role("textbox", name="as JSON").click()
        page.keyboard.press("Control+End")
        page.keyboard.insert_text(' kind."}')
        page.keyboard.press("Control+Enter")
        expect(proof(page)).to_contain_text("sent = shown")
        expect(card(page, "System")).to_contain_text("You are kind.")
    answer.result(30)
    assert json.loads(stage.desk.sent[-1])["messages"][0] == system("You are kind.")


def test_the_first_key_in_a_new_message_replaces_its_placeholder(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(user("Hello?")))
    with stage.look() as shown:
        page = shown.page
        stage.open(page, exchange)
        card(page, "User 1").click()
        page.keyboard.press("o")
        expect(page.get_by_role("textbox", name="Edit User 2")).to_have_text("New message")
        page.keyboard.type("And again")
        page.keyboard.press("Control+Enter")
        expect(proof(page)).to_contain_text("sent = shown")
    answer.result(30)
    assert [each["content"] for each in json.loads(stage.desk.sent[-1])["messages"]] == ["Hello?", "And again"]


def test_a_request_is_not_sent_without_a_value_on_screen_that_is_not_json(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(user("Hello?"), max_tokens=64))
    with stage.look() as shown:
        page = shown.page
        stage.open(page, exchange)
        card(page, "Options").get_by_role("button", name="Edit value: 64").click()
        field = page.get_by_role("textbox", name="Value of value")
        field.fill("abc")
        page.get_by_role("button", name="Send").first.click()
        expect(page.get_by_text("Not sent: an edit was refused.")).to_be_visible()
        expect(field).to_be_focused()
        assert stage.person.view(exchange)["state"] == "held"
        field.fill("32")
        page.get_by_role("button", name="Send").first.click()
        expect(proof(page)).to_contain_text("sent = shown")
    answer.result(30)
    assert json.loads(stage.desk.sent[-1])["max_tokens"] == 32


def test_everything_can_be_undone_and_the_bytes_are_the_clients_again(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(system("You are brief."), QUESTION, max_tokens=64))
    original = stage.desk.server.body(exchange, "received")
    with stage.look() as shown:
        page = shown.page
        stage.open(page, exchange)
        undo, redo = (page.get_by_role("button", name=name, exact=True) for name in ("Undo", "Redo"))
        expect(undo).to_be_disabled()
        write(page, "User 1", " Be quick.")
        card(page, "System").get_by_role("button", name="Delete System").click()
        expect(card(page, "System")).to_contain_text("deleted")
        card(page, "User 1").get_by_role("button", name="Delete image").click()
        expect(card(page, "User 1").get_by_role("button", name="Restore")).to_be_visible()
        card(page, "Options").get_by_role("button", name="Edit value: 64").click()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text("128")
        page.keyboard.press("Enter")
        expect(card(page, "Options").get_by_role("button", name="Edit value: 128")).to_be_visible()
        page.get_by_role("button", name="More for User 1").click()
        page.get_by_role("menuitem", name="Duplicate").click()
        expect(card(page, "User 2")).to_be_visible()
        assert json.loads(stage.desk.server.body(exchange, "sent"))["max_tokens"] == 128

        for _ in range(5):
            expect(undo).to_be_enabled()
            before = proof(page).get_attribute("aria-label") or ""
            undo.click()
            expect(proof(page)).not_to_have_accessible_name(before)
        expect(proof(page)).to_have_accessible_name(f"shown {sha256(original)}")
        expect(undo).to_be_disabled()
        expect(redo).to_be_enabled()
        expect(page.get_by_text("edited", exact=True)).to_have_count(0)
        expect(page.get_by_text("deleted", exact=True)).to_have_count(0)
        page.get_by_role("button", name="Send").first.click()
        expect(proof(page)).to_contain_text("sent = shown")
    answer.result(30)
    assert stage.desk.sent[-1] == original


def test_an_edit_of_a_deleted_section_brings_it_back(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(system("You are brief."), QUESTION))
    with stage.look() as shown:
        page = shown.page
        stage.open(page, exchange)
        card(page, "System").get_by_role("button", name="Delete System").click()
        expect(card(page, "System").get_by_role("button", name="Restore")).to_be_visible()
        write(page, "System", " Be kind.")
        expect(card(page, "System").get_by_role("button", name="Restore")).to_have_count(0)
        page.get_by_role("button", name="Send").first.click()
        expect(proof(page)).to_contain_text("sent = shown")
    answer.result(30)
    assert json.loads(stage.desk.sent[-1])["messages"][0]["content"] == "You are brief. Be kind."


def test_the_key_that_edits_opens_options_as_json_and_says_why_it_cannot(stage: PageStage) -> None:
    calls = [{"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}} for name in ("a", "b")]
    results = [{"role": "tool", "tool_call_id": name, "content": "Done."} for name in ("a", "b")]
    messages = (user("Hello"), {"role": "assistant", "content": None, "tool_calls": calls}, *results)
    exchange, answer = stage.client(chat(*messages, temperature=0.5))
    with stage.visit(exchange) as page:
        card(page, "Assistant · calls a, b").focus()
        page.keyboard.press("e")
        expect(page.get_by_text("It has no text of its own: edit its parts one by one.")).to_be_visible()
        for key in ("e", "Enter"):
            card(page, "Options").focus()
            page.keyboard.press(key)
            expect(card(page, "Options").get_by_role("textbox")).to_be_focused()
            stage.keep(page, "options-as-json")
            page.keyboard.press("Escape")
            expect(card(page, "Options").get_by_role("textbox")).to_have_count(0)
    stage.person.release(exchange)
    answer.result(30)
