"""Documents opened on the page, edited and sent: the raw schema, and a dialect of another package."""

import json

from playwright.sync_api import expect

from sightline.dialects.registry import register, unregister
from tests.dialects.plain_dialect import DIALECT as PLAIN
from tests.page_stage import PageStage, card, proof, write

RAW = [
    {"role": 0, "content": [{"type": 1, "text": "Be brief."}]},
    {"role": 1, "content": [{"type": 1, "text": "Hello"}]},
]


def test_a_raw_document_is_opened_edited_and_sent(stage: PageStage) -> None:
    with stage.look() as shown:
        page = shown.page
        page.keyboard.press("g")
        page.keyboard.press("o")
        dialog = page.get_by_role("dialog", name="Open a document")
        opens = dialog.get_by_role("button", name="Open in the editor")
        expect(opens).to_be_disabled()
        expect(dialog.get_by_role("textbox", name="Request body")).to_be_focused()
        page.keyboard.insert_text("{")
        expect(dialog.get_by_role("status")).to_have_text("This is not JSON.")
        dialog.get_by_role("textbox", name="Request body").fill(json.dumps(RAW))
        expect(dialog.get_by_role("combobox", name="Dialect")).to_have_value("raw")
        expect(opens).to_be_disabled()
        dialog.get_by_role("combobox", name="Model").fill("acme/m")
        stage.keep(shown.page, "open-document")
        opens.click()
        expect(card(page, "User 1")).to_contain_text("Hello")
        write(page, "User 1", ", you.")
        page.get_by_role("button", name="Send").first.click()
        expect(proof(page)).to_contain_text("sent = shown")
    sent = json.loads(stage.desk.sent[-1])
    assert sent["model"] == "m"
    assert "Hello, you." in json.dumps(sent["messages"])


def test_a_document_of_an_added_dialect_is_opened_and_gets_a_message_as_it_writes_one(stage: PageStage) -> None:
    register(PLAIN)
    try:
        with stage.look() as shown:
            page = shown.page
            page.keyboard.press("g")
            page.keyboard.press("o")
            dialog = page.get_by_role("dialog", name="Open a document")
            document = {"turns": [{"who": "person", "says": "Hello"}]}
            dialog.get_by_role("textbox", name="Request body").fill(json.dumps(document))
            expect(dialog.get_by_role("combobox", name="Dialect")).to_have_value("plain")
            dialog.get_by_role("combobox", name="Model").fill("acme/m")
            dialog.get_by_role("button", name="Open in the editor").click()
            card(page, "User 1").click()
            page.keyboard.press("o")
            expect(page.get_by_role("textbox", name="Edit User 2")).to_be_focused()
            page.keyboard.press("Escape")
            expect(card(page, "User 2")).to_contain_text("New message")
            page.get_by_role("button", name="Send").first.click()
            expect(proof(page)).to_contain_text("sent = shown")
    finally:
        unregister(PLAIN.name)
    sent = json.loads(stage.desk.sent[-1])
    assert [each["content"] for each in sent["messages"]] == ["Hello", "New message"]
