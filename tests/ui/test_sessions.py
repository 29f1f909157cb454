"""A session on the page: its turns, what they called, where the cache broke, and the way through its requests."""

import asyncio
import json
import re
from typing import Any

from playwright.sync_api import expect

from tests.browser import NARROW
from tests.desk_stage import JSON
from tests.page_stage import PageStage
from tests.upstream import answer, head, pieces

OVERFLOW = "() => document.documentElement.scrollWidth - innerWidth"
FILE = "/shop/parser.py"
CONFIG = '[models."m"]\nproviders = ["acme"]\nprices = { input = 3.0, output = 15.0, cached = 0.3 }\n'


def reply(text: str = "", calls: tuple[tuple[str, object], ...] = (), prompt: int = 3_000, cached: int = 0) -> bytes:
    called = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for n, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text or None} | ({"tool_calls": called} if called else {})
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": 60,
        "total_tokens": prompt + 60,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if called else "stop"}
    return json.dumps(
        {"id": "r", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
    ).encode()


def play(stage: PageStage, session: str) -> list[str]:
    """An agent reads a file, lets a sub-agent look, and runs a command after its system prompt has changed."""
    rules = {"role": "system", "content": "You mend shops. " * 600}
    ids: list[str] = []

    def turn(messages: list[dict[str, Any]], answered: bytes) -> dict[str, Any]:
        stage.desk.upstream.script = [answer(200, answered, [("Content-Type", "application/json")])]
        body = {"model": "m", "messages": messages, "tools": [TOOL, GITHUB]}
        got = stage.desk.ask(body, session).result()
        ids.append(got.exchange)
        message: dict[str, Any] = got.json()["choices"][0]["message"]
        return message

    said = [rules, {"role": "user", "content": "Mend the parser of the shop"}]
    said.append(turn(said, reply(calls=(("Read", {"file_path": FILE}), ("Task", {"description": "Find callers"})))))
    turn([rules, {"role": "user", "content": "Find every caller of parse()"}], reply("Two of them."))
    said += [
        {"role": "tool", "tool_call_id": "c0", "content": "def parse(text):\n    return text.split()\n" * 60},
        {"role": "tool", "tool_call_id": "c1", "content": "Two of them."},
    ]
    said.append(turn(said, reply(calls=(("Bash", {"command": "make test"}),), prompt=4_200, cached=2_900)))
    said[0] = {"role": "system", "content": "It is ten past nine. " + "You mend shops. " * 600}
    said.append({"role": "tool", "tool_call_id": "c0", "content": "3 passed"})
    turn(said, reply("The parser is mended.", prompt=4_400, cached=0))
    return ids


PARAMETERS = {"type": "object", "properties": {"file_path": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "Read", "description": "Read a file. " * 20, "parameters": PARAMETERS}}
GITHUB = {
    "type": "function",
    "function": {"name": "mcp__github__issues", "description": "List issues. " * 40, "parameters": PARAMETERS},
}


def test_all_sessions_are_listed_and_found_by_words(stage: PageStage) -> None:
    stage.person.put("/api/interception", {"mode": "off"})
    play(stage, "listed@shop")
    with stage.visit() as page:
        page.get_by_role("navigation", name="Places").get_by_role("link", name="Sessions").click()
        expect(page.get_by_role("treegrid", name="Exchanges")).to_have_count(0)
        row = page.get_by_role("row", name="listed@shop")
        expect(row).to_contain_text("Mend the parser of the shop")
        expect(row.get_by_role("cell").nth(1)).to_have_text("shop")
        stage.keep(page, "sessions")
        page.get_by_role("searchbox", name="Find a session").fill("nowhere")
        expect(page.get_by_text("No session matches.")).to_be_visible()
        page.get_by_role("searchbox", name="Find a session").fill("parser")
        row.get_by_role("link").click()
        expect(page.get_by_role("heading", name="listed@shop")).to_be_visible()
        page.get_by_role("row", name="Mend the parser").get_by_role("link").last.click()
        servers = page.get_by_role("list", name="Sizes by MCP server")
        expect(servers.get_by_role("listitem").filter(has_text="github")).to_contain_text("tok")
        stage.keep(page, "tool-sizes")
    with stage.visit(size=NARROW) as page:
        page.goto(f"{stage.desk.server.url}/#/sessions")
        expect(page.get_by_role("link", name="listed@shop")).to_be_visible()
        assert page.evaluate(OVERFLOW) <= 0


def test_a_session_shows_its_turns_and_leads_to_the_cause_of_a_cache_break(stage: PageStage) -> None:
    stage.person.put("/api/interception", {"mode": "off"})
    ids = play(stage, "mend@shop")
    with stage.visit() as page:
        row = page.get_by_role("row", name="Mend the parser of the shop").first
        row.get_by_role("link", name="Session").click()
        expect(page.get_by_role("heading", name="mend@shop")).to_be_visible()
        table = page.get_by_role("table")
        expect(table.get_by_text("Read parser.py")).to_be_visible()
        expect(table.get_by_text("Bash: make test")).to_be_visible()
        expect(page.get_by_text("Tools of github")).to_be_visible()
        expect(page.get_by_text("Files read")).to_be_visible()
        expect(page.get_by_role("img", name="Cost so far: $0.04")).to_be_visible()
        stage.keep(page, "session")
        fold = table.get_by_role("button", name="Sub-agent: Find every caller of parse()")
        fold.click()
        expect(table.get_by_role("link", name="Find every caller of parse()")).to_be_visible()
        page.get_by_role("link", name="cache broke").click()
        expect(page.get_by_text("the cache broke here")).to_be_in_viewport()
        assert f"#/x/{ids[-1]}/diff?against={ids[2]}" in page.url
        expect(page.get_by_role("tablist", name="Request")).to_be_in_viewport()
        stage.keep(page, "session-cause")


def test_cache_breaks_are_counted_once_the_turns_have_been_read(stage: PageStage) -> None:
    stage.person.put("/api/interception", {"mode": "off"})
    play(stage, "count@shop")
    with stage.visit() as page:
        page.route("**/api/turns?*", lambda _route: None)  # it is not answered
        page.goto(f"{stage.desk.server.url}/#/sessions/count@shop")
        breaks = page.locator("dl > div", has_text="Cache breaks")
        expect(breaks).to_have_text(re.compile(r"Cache breaks\s*…\s*reading"))
        page.unroute("**/api/turns?*")
        page.reload()
        expect(breaks).to_have_text(re.compile(r"Cache breaks\s*1\s*$"))


def test_a_turn_of_a_sub_agent_is_read_again_when_it_has_ended(stage: PageStage) -> None:
    stage.person.put("/api/interception", {"mode": "off"})
    rules = {"role": "system", "content": "You mend shops. " * 600}

    def body(words: str) -> dict[str, Any]:
        return {"model": "m", "messages": [rules, {"role": "user", "content": words}], "tools": [TOOL]}

    delegated = reply(calls=(("Task", {"description": "Find callers"}),))
    stage.desk.upstream.script = [answer(200, delegated, JSON)]
    stage.desk.ask(body("Mend the shop"), "below@shop").result()
    go_on, found = asyncio.Event(), reply(calls=(("Bash", {"command": "grep -rn parse"}),))
    stage.desk.upstream.script = [pieces(go_on, head(200, JSON, framing=str(len(found))) + found)]
    waiting = stage.desk.ask(body("Find every caller"), "below@shop")
    with stage.visit() as page:
        with page.expect_response("**/api/turns?*"):
            page.goto(f"{stage.desk.server.url}/#/sessions/below@shop")
        table = page.get_by_role("table")
        table.get_by_role("button", name="Find every caller").click()
        expect(table.get_by_role("row", name="Find every caller").last).to_contain_text("sending")
        stage.desk.upstream._loop.call_soon_threadsafe(go_on.set)
        waiting.result()
        expect(table.get_by_text("Bash: grep -rn parse")).to_be_visible()


def test_a_request_leads_to_its_session_and_to_the_turns_beside_it(stage: PageStage) -> None:
    stage.person.put("/api/interception", {"mode": "off"})
    ids = play(stage, "walk@shop")
    with stage.visit(ids[2]) as page:
        expect(page.get_by_text("turn 2 of 3")).to_be_visible()
        page.keyboard.press("]")
        expect(page.get_by_text("turn 3 of 3")).to_be_visible()
        expect(page.get_by_text("Cache: read 0 of 4.1k")).to_be_visible()
        expect(page.get_by_text("The cache breaks here")).to_have_count(0)
        expect(page.get_by_role("button", name="Next turn")).to_be_disabled()
        page.get_by_role("button", name="Previous turn").click()
        expect(page.get_by_text("turn 2 of 3")).to_be_visible()
        stage.keep(page, "session-place")
        page.keyboard.press("s")
        expect(page.get_by_role("heading", name="walk@shop")).to_be_visible()


def test_a_session_fits_a_telephone_and_one_that_is_unknown_says_so(stage: PageStage) -> None:
    stage.person.put("/api/interception", {"mode": "off"})
    play(stage, "small@shop")
    with stage.look(size=NARROW, dark=True) as shown:
        page = shown.page
        page.goto(page.url.partition("#")[0] + "#/sessions/small%40shop")
        expect(page.get_by_text("Bash: make test")).to_be_visible()
        assert page.evaluate(OVERFLOW) <= 0
        stage.keep(shown.page, "session-narrow")
        shown.expected.append("status of 404")
        page.goto(page.url.partition("#")[0] + "#/sessions/nobody")
        expect(page.get_by_role("heading", name="This session is not on record")).to_be_visible()
