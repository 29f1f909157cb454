"""An edit that is kept is made again on later turns, by itself."""

import json

from playwright.sync_api import expect

from tests.page_stage import PageStage, card, chat, proof, system, user, write

FIRST = (system("You are brief."), user("What is two and two?"))
SECOND = (*FIRST, {"role": "assistant", "content": "Four."}, user("And three and three?"))


def test_an_edit_kept_for_the_session_is_made_again_on_the_next_turn(stage: PageStage) -> None:
    exchange, first = stage.client(chat(*FIRST), session="sums@school")
    with stage.look() as shown:
        page = shown.page
        stage.open(page, exchange)
        page.get_by_role("button", name="How long edits are kept").click()
        page.get_by_role("menuitemradio", name="Keep for this session").click()
        write(page, "System", " And kind.")
        page.get_by_role("button", name="Send").first.click()
        expect(proof(page)).to_contain_text("sent = shown")
        first.result(30)
        page.get_by_role("button", name="Back to traffic").click()

        again, second = stage.client(chat(*SECOND), session="sums@school")
        page.get_by_role("row", name="And three and three?").click()
        expect(card(page, "System")).to_contain_text("You are brief. And kind.")
        expect(card(page, "System")).to_contain_text("edited")
        page.get_by_role("button", name="How long edits are kept").click()
        page.get_by_role("menuitem", name="Show all kept edits").click()
        kept = page.get_by_role("region", name="Kept edits")
        expect(kept.get_by_role("listitem")).to_contain_text("applied here")
        kept.get_by_role("button", name="Close", exact=True).click()
        page.get_by_role("button", name="Send").first.click()
        expect(proof(page)).to_contain_text("sent = shown")
        second.result(30)

        other, third = stage.client(chat(*FIRST), session="elsewhere")
        stage.open(page, other)
        expect(card(page, "System")).to_contain_text("You are brief.")
        expect(card(page, "System")).not_to_contain_text("kind")
        page.get_by_role("button", name="Send").first.click()
        third.result(30)
    said = [json.loads(sent)["messages"][0]["content"] for sent in stage.desk.sent[-3:]]
    assert said == ["You are brief. And kind.", "You are brief. And kind.", "You are brief."]
    assert stage.person.view(again)["masks"][0]["outcome"] == "applied"


def test_a_kept_edit_is_stopped_by_one_click_and_that_is_taken_back_by_another(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(*FIRST))
    with stage.visit(exchange) as page:
        page.get_by_role("button", name="How long edits are kept").click()
        page.get_by_role("menuitemradio", name="Keep everywhere").click()
        card(page, "System").get_by_role("button", name="Delete System").click()
        expect(card(page, "System")).to_contain_text("deleted")
        page.get_by_role("button", name="How long edits are kept").click()
        page.get_by_role("menuitem", name="Show all kept edits").click()
        kept = page.get_by_role("region", name="Kept edits").get_by_role("listitem")
        expect(kept).to_have_count(1)
        page.get_by_role("button", name="Stop: delete a system section").click()
        expect(kept).to_have_count(0)
        page.get_by_role("status").get_by_role("button", name="Undo").click()
        expect(kept).to_have_count(1)
        page.get_by_role("combobox", name="What").select_option("all thinking")
        page.get_by_role("button", name="Keep", exact=True).click()
        expect(kept).to_have_count(2)
    assert [mask["kind"] for mask in stage.person.get("/api/masks")] == ["delete", "strip"]
    stage.person.release(exchange)
    answer.result(30)


def test_edits_are_kept_after_they_were_made_and_undo_takes_the_mask_away(stage: PageStage) -> None:
    exchange, first = stage.client(chat(*FIRST), session="late@school")
    before = stage.person.get("/api/masks")
    with stage.look() as shown:
        page = shown.page
        stage.open(page, exchange)
        write(page, "System", " And kind.")
        page.get_by_role("button", name="How long edits are kept").click()
        page.get_by_role("menuitemradio", name="Keep for this session").click()
        expect(page.get_by_role("status").filter(has_text="1 edit is kept")).to_be_visible()
        assert len(stage.person.get("/api/masks")) == len(before) + 1
        page.get_by_role("button", name="How long edits are kept").click()
        page.get_by_role("menuitem", name="Show all kept edits").click()
        kept = page.get_by_role("region", name="Kept edits").get_by_role("listitem").filter(has_text="And kind.")
        expect(kept).to_have_count(1)
        page.get_by_role("button", name="Undo", exact=True).first.click()
        expect(kept).to_have_count(0)
        assert stage.person.get("/api/masks") == before
        page.get_by_role("button", name="Redo", exact=True).click()
        expect(kept).to_have_count(1)
        page.get_by_role("region", name="Kept edits").get_by_role("button", name="Close", exact=True).click()
        page.get_by_role("button", name="Send").first.click()
        expect(proof(page)).to_contain_text("sent = shown")
        first.result(30)

        git = (system("You are brief.\nGit status: 2 files changed"), *SECOND[1:])
        again, second = stage.client(chat(*git), session="late@school")
        stage.open(page, again)
        expect(card(page, "System")).to_contain_text("You are brief. And kind.")
        page.get_by_role("button", name="Send").first.click()
        expect(proof(page)).to_contain_text("sent = shown")
        second.result(30)
    said = json.loads(stage.desk.sent[-1])["messages"][0]["content"]
    assert said == "You are brief. And kind.\nGit status: 2 files changed"
    stage.person.put("/api/masks", before)


def test_unkeepable_edits_are_reported_and_the_button_is_unchanged(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(*FIRST), session="odd@school")
    with stage.look() as shown:
        page = shown.page
        shown.expected.append("status of 422")
        stage.open(page, exchange)
        stage.person.edited(exchange, op="duplicate", section=stage.person.view(exchange)["sections"][1]["id"])
        expect(card(page, "User 2")).to_be_visible()
        page.get_by_role("button", name="How long edits are kept").click()
        page.get_by_role("menuitemradio", name="Keep for this session").click()
        expect(page.get_by_role("status").filter(has_text="a section was added")).to_be_visible()
        expect(page.get_by_role("button", name="How long edits are kept")).to_contain_text("Keep edits")
    stage.person.release(exchange)
    answer.result(30)


def test_the_header_tells_of_active_edits_and_traffic_of_the_turns_that_they_touched(stage: PageStage) -> None:
    exchange, first = stage.client(chat(*FIRST), session="told@school")
    with stage.look() as shown:
        page = shown.page
        stage.open(page, exchange)
        expect(page.get_by_role("button", name="edit active")).to_have_count(0)
        write(page, "System", " And kind.")
        page.get_by_role("button", name="Apply the edits to later requests too").click()
        page.get_by_role("menuitem", name="Send, and apply to this session").click()
        expect(proof(page)).to_contain_text("sent = shown")
        first.result(30)
        chip = page.get_by_role("button", name="1 edit active")
        expect(chip).to_be_visible()
        stage.person.put("/api/interception", {"mode": "off"})
        stage.free(chat(*SECOND), session="told@school")
        page.goto(f"{stage.desk.server.url}/#/traffic?filter=session%3Atold%40school")
        expect(page.get_by_role("img", name="Changed by kept edits")).to_have_count(1)
        chip.click()
        dialog = page.get_by_role("dialog", name="Kept edits")
        expect(dialog.get_by_role("listitem")).to_contain_text("And kind.")
        expect(dialog.get_by_role("listitem")).to_contain_text("applied 1 time")
        stage.keep(shown.page, "kept-edits")
        dialog.get_by_role("switch").uncheck()
        expect(dialog.get_by_role("listitem")).to_have_class("is-off")
        stage.free(chat(*SECOND), session="told@school")
        dialog.get_by_role("switch").check()
        changed = (system("Something else entirely."), user("What is two and two?"))
        stage.free(chat(*changed), session="told@school")
        stage.free(chat(*changed, {"role": "assistant", "content": "4"}, user("ok")), session="told@school")
        expect(dialog.get_by_text("It no longer applies")).to_be_visible()
        expect(page.get_by_text("A kept edit no longer applies.")).to_be_visible()
        dialog.get_by_role("button", name="Close").click()
        expect(page.get_by_role("button", name="1 edit active, 1 not applying")).to_be_visible()
    said = [json.loads(sent)["messages"][0]["content"] for sent in stage.desk.sent[-5:]]
    assert said[:3] == ["You are brief. And kind.", "You are brief. And kind.", "You are brief."]
