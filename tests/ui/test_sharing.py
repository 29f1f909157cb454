"""Share on the page: what is found, what is written instead, the file, and the way back into a record."""

import re
from pathlib import Path

from playwright.sync_api import expect

from tests.browser import looking
from tests.gateway_server import served
from tests.page_stage import PageStage, chat, system, user

MAIL, KEY = "anna.b@acme.org", "sk-proj-abcdefghijklmnop1234"


def test_a_session_is_shared_after_redaction_and_imported_elsewhere(free: PageStage, tmp_path: Path) -> None:
    free.free(chat(system("The house rules."), user(f"Write to {MAIL} with {KEY}.")), session="mail")
    free.free(chat(user(f"Again to {MAIL}, for TICKET-77.")), session="mail")
    free.free(chat(user("Not for others.")), session="other")
    file = tmp_path / "shared.jsonl"
    with free.look() as shown:
        page = shown.page
        page.get_by_role("row", name="Again to").click()
        page.get_by_role("button", name=re.compile("^Share:?$")).click()
        page.get_by_role("menuitem", name="Share its session…").click()
        dialog = page.get_by_role("dialog", name="Share session mail")
        table = dialog.get_by_role("table", name="What is replaced")
        expect(table.get_by_role("row", name="e-mail address")).to_contain_text("person-1@example.com")
        expect(table.get_by_role("row", name="key")).to_contain_text("redacted-key-1")
        dialog.get_by_role("checkbox", name="system prompts").check()
        dialog.get_by_text("Choose sections one by one").click()
        expect(dialog.get_by_role("checkbox", name="The house rules.")).to_be_checked()
        dialog.get_by_role("searchbox", name="Find a section").fill("again")
        dialog.get_by_role("checkbox", name="Again to").check()
        expect(dialog.get_by_text("2 sections left out")).to_be_visible()
        dialog.get_by_role("checkbox", name="Again to").uncheck()
        dialog.get_by_role("textbox").fill(r"TICKET-\d+")
        expect(table.get_by_role("row", name="own pattern")).to_contain_text("TICKET-77")
        free.keep(shown.page, "share")
        dialog.get_by_role("radio", name="JSON lines").click()
        with page.expect_download() as saving:
            dialog.get_by_role("button", name="Save file").click()
        saving.value.save_as(file)
        assert saving.value.suggested_filename.endswith(".jsonl")
        expect(dialog).to_have_count(0)
    text = file.read_text()
    assert [each for each in (MAIL, KEY, "house rules", "TICKET-77", "Not for others") if each in text] == []
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with served(elsewhere, "") as server, looking(free.browser, server) as shown:
        page = shown.page
        page.get_by_role("button", name="Share, import and delete").click()
        with page.expect_file_chooser() as choosing:
            page.get_by_role("menuitem", name="Import a file…").click()
        choosing.value.set_files(file)
        expect(page.get_by_text("2 requests imported.")).to_be_visible()
        expect(page.get_by_role("row", name="Again to person-1@example.com")).to_be_visible()
