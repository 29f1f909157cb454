"""The person answers instead of the model, or changes what it wants to call."""

import json
from typing import Any

import pytest
from openai import BadRequestError, OpenAI
from playwright.sync_api import expect

from tests.page_stage import PageStage, card, chat, proof, user

WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
QUESTION = user("How is the weather in Rome?")
CALLS_HELD = [{"filter": "", "action": "hold", "phase": "tool_calls"}]


def calls(client: OpenAI) -> list[tuple[str, str]]:
    """What a program that follows the stream is asked to call."""
    stream = client.chat.completions.create(model="m", messages=[QUESTION], tools=[WEATHER], stream=True)
    found: dict[int, list[str]] = {}
    for chunk in stream:
        for call in chunk.choices[0].delta.tool_calls or [] if chunk.choices else []:
            said = found.setdefault(call.index, ["", ""])
            said[0] += call.function.name or ""
            said[1] += call.function.arguments or ""
    return [(name, arguments) for name, arguments in found.values()]


def test_a_text_by_hand_reaches_the_client_as_a_stream(stage: PageStage) -> None:
    seen = len(stage.desk.upstream.seen)
    exchange, answer = stage.client(chat(QUESTION, stream=True))
    with stage.visit(exchange) as page:
        page.get_by_role("button", name="Answer by hand").click()
        expect(page.get_by_role("textbox", name="Text of the reply")).to_be_focused()
        page.keyboard.insert_text("Sunny, **as ever**.")
        stage.keep(page, "answer-by-hand")
        page.get_by_role("button", name="Send this answer").click()
        assert answer.result(30) == "Sunny, **as ever**."
        expect(page.get_by_text("finished", exact=True)).to_be_visible()
        expect(proof(page)).to_contain_text("nothing was sent")
        page.get_by_role("tab", name="Reply").click()
        expect(page.get_by_role("strong")).to_have_text("as ever")
        expect(page.get_by_text("by hand", exact=True)).to_be_visible()
    assert len(stage.desk.upstream.seen) == seen


def test_a_call_by_hand_reaches_the_client(stage: PageStage) -> None:
    exchange, answer = stage.client(calls)
    with stage.visit(exchange) as page:
        page.keyboard.press("a")
        page.get_by_role("button", name="Add a tool call").click()
        expect(page.get_by_role("combobox", name="Tool", exact=True)).to_have_value("weather")
        page.get_by_role("textbox", name="Arguments of call 1").click()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text('{"city": ')
        page.get_by_role("button", name="Send this answer").click()
        expect(page.get_by_role("alert")).to_have_text("The arguments of weather are not JSON.")
        page.get_by_role("textbox", name="Arguments of call 1").click()
        page.keyboard.press("Control+End")
        page.keyboard.insert_text('"Oslo"}')
        page.get_by_role("button", name="Send this answer").click()
        assert answer.result(30) == [("weather", '{"city": "Oslo"}')]


def test_the_arguments_of_a_call_are_changed_before_the_client_sees_them(stage: PageStage) -> None:
    stage.person.put("/api/interception", {"mode": "rules"})
    stage.person.put("/api/rules", CALLS_HELD)
    stage.desk.says(calls=True, stream=True)
    exchange, answer = stage.client(calls)
    with stage.visit(exchange) as page:
        expect(page.get_by_text("tool calls held", exact=True)).to_be_visible()
        led = page.get_by_role("region", name="The conversation that led to these calls")
        expect(led).to_contain_text("How is the weather in Rome?")
        section = page.get_by_role("article", name="weather")
        section.get_by_role("button", name="Edit", exact=False).first.click()
        expect(page.get_by_role("textbox")).to_be_focused()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text('{"city":"Milan"}')
        page.keyboard.press("Escape")
        expect(section).to_contain_text("Milan")
        stage.keep(page, "tool-calls-held")
        page.get_by_role("button", name="Pass on").click()
        assert answer.result(30) == [("weather", '{"city":"Milan"}')]
        expect(page.get_by_text("finished", exact=True)).to_be_visible()
        page.get_by_role("tab", name="Reply").click()
        expect(page.get_by_role("article", name="Call of weather")).to_contain_text("Milan")
    assert stage.person.view(exchange)["state"] == "finished"


def test_a_call_can_be_rejected(stage: PageStage) -> None:
    stage.person.put("/api/interception", {"mode": "rules"})
    stage.person.put("/api/rules", CALLS_HELD)
    stage.desk.says(calls=True)
    exchange, answer = stage.client(chat(QUESTION, tools=[WEATHER]))
    with stage.visit(exchange) as page:
        page.get_by_role("article", name="weather").get_by_role("button", name="Delete").first.click()
        expect(page.get_by_text("deleted", exact=True)).to_be_visible()
        page.get_by_role("button", name="Pass on").click()
        got: Any = answer.result(30)
        assert (got.content, got.tool_calls) == ("Let me look.", None)
        expect(page.get_by_text("finished", exact=True)).to_be_visible()


def test_a_dropped_request_tells_the_client_so_and_is_not_tried_again(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(QUESTION))
    with stage.visit(exchange) as page:
        page.get_by_role("button", name="Drop", exact=True).click()
        with pytest.raises(BadRequestError):
            answer.result(30)
        expect(page.get_by_text("dropped", exact=True)).to_be_visible()
        expect(card(page, "User 1").get_by_role("button", name="Edit User 1")).to_have_count(0)
    assert json.loads(stage.desk.server.body(exchange, "received"))["messages"] == [QUESTION]
