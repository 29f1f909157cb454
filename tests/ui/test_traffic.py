"""The list of all that passes, and everything that is done with it: by mouse, and without one."""

import json
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser import has_copied, looking
from tests.gateway_server import served
from tests.page_stage import PageStage, card, chat, proof, sha256, user


def filter_box(page: Page) -> None:
    """Go to the filter by its key."""
    page.keyboard.press("/")
    expect(page.get_by_role("combobox", name="Filter")).to_be_focused()


def test_a_page_without_traffic_says_how_to_get_some(free: PageStage, tmp_path: Path) -> None:
    with served(tmp_path, "") as server, looking(free.browser, server) as shown:
        expect(shown.page.get_by_role("heading", name="Waiting for the first request")).to_be_visible()
        expect(shown.page.get_by_role("tab", name="Claude Code")).to_be_visible()
        free.keep(shown.page, "traffic-empty")


def test_rows_arrive_as_they_happen_and_turns_of_one_conversation_stand_together(free: PageStage) -> None:
    with free.visit() as page:
        free.free(chat(user("What is a gateway?")), session="talk")
        row = page.get_by_role("row", name="What is a gateway?")
        expect(row).to_contain_text("200")
        expect(row).to_contain_text("11 → 7")
        turns = (user("What is a gateway?"), {"role": "assistant", "content": "Hello there."}, user("And a proxy?"))
        free.free(chat(*turns), session="talk")
        expect(page.get_by_role("row", name="2 turns")).to_be_visible()
        expect(page.get_by_role("row", name="And a proxy?")).to_be_visible()
        free.free(chat(user("Something else.")), session="other")
        expect(page.get_by_role("row", name="Something else.")).to_be_visible()
        count = len(free.person.get("/api/exchanges")["exchanges"])
        expect(page.get_by_role("status", name="Totals")).to_contain_text(f"{count} requests")
        free.keep(page, "traffic")


def test_the_filter_completes_and_shows_where_it_is_wrong(free: PageStage) -> None:
    free.free(chat(user("Find me.")), session="needle")
    free.free(chat(user("Leave me.")), session="hay")
    with free.visit() as page:
        expect(page.get_by_role("row", name="Leave me.")).to_be_visible()
        filter_box(page)
        page.keyboard.type("sess")
        expect(page.get_by_role("option", name="session")).to_be_visible()
        page.keyboard.press("Tab")
        expect(page.get_by_role("combobox", name="Filter")).to_have_value("session:")
        page.keyboard.type("nee")
        expect(page.get_by_role("option", name="needle")).to_be_visible()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_role("row", name="Find me.")).to_be_visible()
        expect(page.get_by_role("row", name="Leave me.")).to_have_count(0)
        expect(page).to_have_url(re.compile("filter=session(:|%3A)needle$"))
        expect(page.get_by_role("combobox", name="Filter")).not_to_be_focused()
        filter_box(page)
        page.keyboard.press("Control+a")
        page.keyboard.insert_text("model:m & colour:red")
        wrong = page.get_by_role("alert")
        expect(wrong).to_contain_text('There is no field "colour"')
        expect(wrong.locator("mark")).to_have_text("colour")
        expect(page.get_by_role("combobox", name="Filter")).to_have_attribute("aria-invalid", "true")
        page.get_by_role("button", name="Clear the filter").click()
        expect(page.get_by_role("row", name="Leave me.")).to_be_visible()
        page.keyboard.insert_text("text:nowhere")
        expect(page.get_by_role("heading", name="Nothing matches this filter")).to_be_visible()


def test_a_bare_word_is_found_in_the_list_and_in_the_request_and_its_filter_is_saved(free: PageStage) -> None:
    filler = "Nothing of note. " * 200
    free.free(chat(user(f"{filler} The walrus sings. {filler}")), session="sea")
    free.free(chat(user("A walrus by name.")), session="zoo")
    free.free(chat(user("Plain.")), session="land")
    with free.visit() as page:
        expect(page.get_by_role("row", name="Plain.")).to_be_visible()
        filter_box(page)
        page.keyboard.type("walrus")
        expect(page.get_by_role("row", name="Plain.")).to_have_count(0)
        expect(page.get_by_role("status", name="Totals")).to_contain_text("2 requests")
        row = page.get_by_role("row", name="Nothing of note.")
        expect(row.locator("mark")).to_have_text("walrus")
        expect(row).to_contain_text("sings.")
        expect(page.get_by_role("row", name="by name.").locator(".said mark")).to_have_text("walrus")
        free.keep(page, "traffic-found")
        page.get_by_role("button", name="Saved filters").click()
        page.get_by_role("menuitem", name="Save this filter…").click()
        page.get_by_role("textbox", name="Name").fill("Sea")
        page.get_by_role("button", name="Save", exact=True).click()
        row.click()
        found = page.get_by_role("status", name="Found")
        expect(found).to_contain_text("in 1 section of this request")
        expect(card(page, "User 1")).to_contain_text("walrus sings")  # the fold is open
        count = page.evaluate(
            """() => new Promise((done) => {
              const look = () => (CSS.highlights.get("found")?.size ? done(CSS.highlights.get("found").size)
                                                                    : setTimeout(look, 50));
              look();
            })"""
        )
        assert count == 1
        free.keep(page, "request-found")
        page.get_by_role("button", name="Stop marking").click()
        expect(found).to_have_count(0)
    with free.visit() as page:  # another browser has it too
        expect(page.get_by_role("row", name="Plain.")).to_be_visible()
        page.get_by_role("button", name="Saved filters").click()
        page.get_by_role("menuitemradio", name="Sea").click()
        expect(page.get_by_role("combobox", name="Filter")).to_have_value("walrus")
        expect(page.get_by_role("row", name="Plain.")).to_have_count(0)


def test_columns_sort_and_requests_of_evals_are_folded_away(free: PageStage) -> None:
    for session, size in (("a", 1), ("b", 30), ("eval:e_1", 10)):
        free.free(chat(user(f"Sorted in {session}. " + "x " * size)), session=session)
    with free.visit() as page:
        expect(page.get_by_role("row", name="Sorted in b.")).to_be_visible()
        expect(page.get_by_role("row", name="Sorted in eval:e_1.")).to_have_count(0)
        page.get_by_role("button", name="Show 1 request of evals").click()
        expect(page.get_by_role("row", name="Sorted in eval:e_1.")).to_be_visible()
        head = page.get_by_role("columnheader", name="Client")
        head.get_by_role("button").click()
        expect(head).to_have_attribute("aria-sort", "ascending")
        rows = page.get_by_role("row").filter(has_text="Sorted in")
        expect(rows.first).to_contain_text("Sorted in a.")
        head.get_by_role("button").click()
        expect(head).to_have_attribute("aria-sort", "descending")
        expect(page.get_by_role("row").filter(has_text="Sorted in").last).to_contain_text("Sorted in a.")
        free.keep(page, "traffic-sorted")
        head.get_by_role("button").click()
        page.get_by_role("button", name="Hide requests of evals").click()
        expect(page.get_by_role("row", name="Sorted in eval:e_1.")).to_have_count(0)


def test_a_request_is_opened_edited_and_sent_by_keyboard_alone(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(user("By keys.")))
    with stage.look() as shown:
        page = shown.page
        expect(page.get_by_role("row", name="By keys.")).to_be_visible()
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        expect(card(page, "User 1")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("textbox", name="Edit User 1")).to_be_focused()
        page.keyboard.type(" Only.")
        page.keyboard.press("Control+Enter")
        expect(proof(page)).to_contain_text("sent = shown")
        answer.result(30)
        page.keyboard.press("4")
        expect(page.get_by_role("tabpanel", name="Reply")).to_contain_text("Hello there.")
        page.keyboard.press("Escape")
        expect(page.get_by_role("treegrid", name="Exchanges")).to_be_visible()
    assert json.loads(stage.desk.sent[-1])["messages"][0]["content"] == "By keys. Only."
    assert sha256(stage.desk.sent[-1]) == stage.person.view(exchange)["hashes"]["sent"]


def test_the_palette_finds_commands_and_exchanges(free: PageStage) -> None:
    free.free(chat(user("A haystack.")))
    with free.visit() as page:
        expect(page.get_by_role("row", name="A haystack.")).to_be_visible()
        page.keyboard.press("Control+k")
        field = page.get_by_role("combobox", name="Command or exchange")
        expect(field).to_be_focused()
        free.keep(page, "palette")
        page.keyboard.type("haystack")
        page.keyboard.press("Enter")
        expect(card(page, "User 1")).to_contain_text("A haystack.")
        page.keyboard.press("Control+k")
        page.keyboard.type("theme dark")
        page.keyboard.press("Enter")
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        page.keyboard.press("Control+k")
        expect(field).to_be_focused()
        page.keyboard.press("Escape")
        expect(field).to_have_count(0)


def test_the_help_lists_the_keys_that_work_here(free: PageStage) -> None:
    with free.visit() as page:
        page.keyboard.press("?")
        dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
        expect(dialog.get_by_text("Go to traffic")).to_be_visible()
        expect(dialog.get_by_text("Filter the list")).to_be_visible()
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)


def test_the_connection_panel_shows_how_each_client_is_pointed_here(free: PageStage) -> None:
    with free.visit() as page:
        page.get_by_role("button", name="Connect a client").click()
        dialog = page.get_by_role("dialog", name="Connect a client")
        expect(dialog.get_by_text("sightline run -- claude")).to_be_visible()
        dialog.get_by_role("button", name="Copy command").first.click()
        has_copied(page, free.person.get("/api/about")["clients"][0]["command"])
        dialog.get_by_role("tab", name="OpenAI").first.click()
        expect(dialog.get_by_text(f"OPENAI_BASE_URL={free.desk.server.url}")).to_be_visible()
        providers = dialog.get_by_role("region", name="Providers")
        expect(providers.get_by_role("listitem").filter(has_text="anthropic")).to_contain_text("ANTHROPIC_API_KEY")
        expect(providers.get_by_role("listitem").filter(has_text="local")).not_to_contain_text("ready")
        expect(providers).to_contain_text("Start Sightline again, and ask for mine/MODEL:")
        dialog.get_by_role("button", name="Close").first.click()
        expect(dialog).to_have_count(0)


def test_a_rule_with_a_bad_filter_is_refused_where_it_is_wrong_and_a_good_one_holds(free: PageStage) -> None:
    with free.look() as shown:
        page = shown.page
        shown.expected.append("status of 422")
        page.get_by_role("button", name="Edit the rules").click()
        dialog = page.get_by_role("dialog", name="Rules")
        field = dialog.get_by_role("textbox", name="Rule 1: filter")
        field.fill("model:m & colour:red")
        dialog.get_by_role("button", name="Save rules").click()
        expect(dialog.get_by_role("alert")).to_contain_text('There is no field "colour"')
        field.fill('text:"stop me"')
        dialog.get_by_role("button", name="Use rules").click()
        dialog.get_by_role("button", name="Save rules").click()
        expect(dialog).to_have_count(0)
        free.free(chat(user("Let me pass.")))
        exchange, answer = free.client(chat(user("Now stop me.")))
        expect(page.get_by_role("button", name="1 held")).to_be_visible()
        free.person.release(exchange)
        answer.result(30)
        expect(page.get_by_role("button", name="1 held")).to_have_count(0)


def test_the_mode_next_holds_one_and_falls_back(free: PageStage) -> None:
    with free.visit() as page:
        page.get_by_role("radio", name="Next").click()
        expect(page.get_by_role("radio", name="Next")).to_be_checked()
        exchange, answer = free.client(chat(user("One only.")))
        expect(page.get_by_role("radio", name="Off")).to_be_checked()
        free.free(chat(user("Not me.")))
        free.person.release(exchange)
        answer.result(30)
