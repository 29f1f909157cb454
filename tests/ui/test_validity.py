"""What a provider would refuse does not leave; one click makes it right."""

import json
from typing import Any

from anthropic import Anthropic
from playwright.sync_api import expect

from tests.page_stage import PageStage, card, proof

SPOKEN = "anthropic"
TOOLS = [{"name": "weather", "description": "Tells it", "input_schema": {"type": "object", "properties": {}}}]
CALL = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Rome"}}
TURNS: list[Any] = [
    {"role": "user", "content": [{"type": "text", "text": "In short:"}, {"type": "text", "text": "how is Rome?"}]},
    {"role": "assistant", "content": [CALL]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}]},
]  # fmt: skip


def ask(client: Anthropic) -> Any:
    return client.messages.create(model="m", max_tokens=100, messages=TURNS, tools=TOOLS).content[0].text


def test_an_emptied_text_blocks_sending_until_it_is_dropped(stage: PageStage) -> None:
    exchange, answer = stage.anthropic_client(ask)
    with stage.look() as shown:
        page = shown.page
        stage.open(page, exchange)
        section, send = card(page, "User 1"), page.get_by_role("button", name="Send").first
        section.get_by_role("group", name="text").first.get_by_role("button", name="Edit text").click()
        expect(page.get_by_role("textbox", name="Edit text of User 1")).to_be_focused()
        page.keyboard.press("Control+a")
        page.keyboard.press("Delete")
        page.keyboard.press("Escape")
        expect(page.get_by_role("article", name="User 1, error")).to_be_visible()
        expect(send).to_be_disabled()
        expect(page.get_by_role("tab", name="Sections 1")).to_be_visible()
        stage.keep(shown.page, "request-invalid")
        section.get_by_role("button", name="Drop").click()
        expect(page.get_by_role("article", name="User 1", exact=True)).to_be_visible()
        expect(send).to_be_enabled()
        send.click()
        expect(proof(page)).to_contain_text("sent = shown")
    assert answer.result(30) == "Hello there."
    sent = json.loads(stage.desk.sent[-1])["messages"]
    assert sent == [{**TURNS[0], "content": TURNS[0]["content"][1:]}, *TURNS[1:]]


def test_a_call_without_its_result_is_not_sent_and_the_partner_goes_by_one_click(stage: PageStage) -> None:
    exchange, answer = stage.anthropic_client(ask)
    with stage.look() as shown:
        page = shown.page
        shown.expected.append("status of 422")
        stage.open(page, exchange)
        page.get_by_role("button", name="More for Assistant").click()
        page.get_by_role("menuitem", name="Edit as JSON").click()
        editor = page.get_by_role("textbox", name="as JSON")
        expect(editor).to_be_focused()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(json.dumps({"role": "assistant", "content": [{"type": "text", "text": "No idea."}]}))
        page.get_by_role("button", name="Apply").click()
        wrong = page.get_by_role("article", name="error")
        expect(wrong).to_be_visible()
        expect(page.get_by_role("button", name="Send").first).to_be_disabled()
        page.keyboard.press("Control+Enter")
        expect(page.get_by_text("held", exact=True).first).to_be_visible()
        assert stage.desk.upstream.seen == [] or stage.person.view(exchange)["state"] == "held"
        wrong.get_by_role("listitem").get_by_role("button").first.click()
        expect(wrong).to_have_count(0)
        page.get_by_role("button", name="Undo", exact=True).first.click()
        expect(wrong).to_be_visible()
        page.get_by_role("button", name="Reset").click()
        expect(wrong).to_have_count(0)
        page.get_by_role("button", name="Send").first.click()
        expect(proof(page)).to_contain_text("sent = shown")
    assert answer.result(30) == "Hello there."
    assert stage.desk.sent[-1] == stage.desk.server.body(exchange, "received")


def test_deleting_a_call_takes_its_result_along_and_brings_it_back(stage: PageStage) -> None:
    exchange, answer = stage.anthropic_client(ask)
    original = stage.person.view(exchange)["body_sha256"]
    with stage.look() as shown:
        page = shown.page
        stage.open(page, exchange)
        result = page.get_by_role("article", name="Result · weather")
        expect(result.get_by_role("button", name="answers weather")).to_be_visible()
        page.get_by_role("button", name="Delete Assistant").click()
        expect(page.get_by_text("deleted", exact=True)).to_have_count(2)
        result.get_by_role("button", name="Restore").click()
        expect(page.get_by_text("deleted", exact=True)).to_have_count(0)
        expect(proof(page)).to_have_accessible_name(f"shown {original}")
        page.get_by_role("button", name="Drop", exact=True).click()
        expect(page.get_by_text("dropped", exact=True)).to_be_visible()
        expect(proof(page)).to_have_accessible_name("nothing was sent")
    assert "dropped" in str(answer.exception(30))
