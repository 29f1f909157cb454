"""Delete on the page: one request, a session, a conversation, and what the filter shows."""

import re

from playwright.sync_api import Page, expect

from tests.page_stage import PageStage, chat, user


def confirm(page: Page, title: str, count: str) -> None:
    dialog = page.get_by_role("dialog", name=title)
    expect(dialog.get_by_role("status")).to_contain_text(re.compile(rf"{count} and everything recorded .* (bytes|kB)"))
    dialog.get_by_role("button", name=f"Delete {count}…").click()
    dialog.get_by_role("button", name=f"Yes, delete {count} for good").click()
    expect(dialog).to_have_count(0)


def left(free: PageStage, wanted: str) -> int:
    return len(free.person.get(f"/api/exchanges?filter={wanted}")["exchanges"])


def test_a_conversation_and_then_what_the_filter_shows_are_deleted_from_the_list(free: PageStage) -> None:
    first = user("Where is the key?")
    free.free(chat(first), session="gone")
    free.free(chat(first, {"role": "assistant", "content": "Hello there."}, user("And the lock?")), session="gone")
    free.free(chat(user("Something to keep.")), session="kept")
    free.free(chat(user("Filtered away.")), session="sieve")
    with free.look() as shown, free.look() as other:
        page = shown.page
        page.get_by_role("row", name="2 turns").first.click()
        page.keyboard.press("Delete")
        dialog = page.get_by_role("dialog", name="Delete this conversation")
        expect(dialog).to_be_visible()
        free.keep(shown.page, "delete-conversation")
        page.keyboard.press("Escape")
        assert left(free, "session:gone") == 2
        page.keyboard.press("Delete")
        confirm(page, "Delete this conversation", "2 requests")
        expect(page.get_by_role("row", name="And the lock?")).to_have_count(0)
        expect(other.page.get_by_role("row", name="And the lock?")).to_have_count(0)
        page.keyboard.press("/")
        page.keyboard.type("session:sieve")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Share, import and delete").click()
        page.get_by_role("menuitem", name="Delete what the filter shows…").click()
        confirm(page, "Delete what the filter shows", "1 request")
    assert [left(free, f"session:{name}") for name in ("gone", "kept", "sieve")] == [0, 1, 0]


def test_a_request_and_its_session_are_deleted_from_their_own_view(free: PageStage) -> None:
    ids = [free.free(chat(user(f"Turn {number}.")), session="odd*name") for number in range(3)]
    assert ids
    exchange = free.person.get("/api/exchanges?limit=1")["exchanges"][0]["id"]
    with free.visit() as page:
        page.get_by_role("row", name="Turn 2.").click()
        page.get_by_role("button", name=re.compile("^Delete:?$")).click()
        page.get_by_role("menuitem", name="Delete this request").click()
        confirm(page, "Delete this request", "1 request")
        expect(page.get_by_role("row", name="Turn 2.")).to_have_count(0)
        assert free.person.ask("GET", f"/api/exchanges/{exchange}")[0] == 404
        page.get_by_role("row", name="Turn 1.").click()
        page.get_by_role("button", name=re.compile("^Delete:?$")).click()
        page.get_by_role("menuitem", name="Delete its session").click()
        confirm(page, "Delete session odd*name", "2 requests")
        expect(page.get_by_role("row", name="Turn 0.")).to_have_count(0)
