"""Caps on the page: what is left, a notice when one is nearly reached, a person who raises it; and what was learned."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from playwright.sync_api import expect

from tests.background import upstream_in_background
from tests.browser import NARROW, shown
from tests.gateway_server import served
from tests.http_call import call
from tests.upstream import says

CONFIG = """
[providers.acme]
dialect = "openai-chat"
base_url = "{url}"
key_env = ""
[[routes]]
provider = "acme"
[[caps]]
name = "mine"
per = ["session"]
window = "always"
tokens = 10_000
action = "hold"
"""
USAGE = {"prompt_tokens": 8, "completion_tokens": 8_992, "total_tokens": 9_000}
REPLY = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}]}
BODY = {"model": "m", "max_tokens": 5_000, "messages": [{"role": "user", "content": "hi"}]}


def test_a_cap_is_shown_warned_of_and_raised_and_holds_what_does_not_fit(tmp_path: Path) -> None:
    with (
        upstream_in_background() as upstream,
        served(tmp_path, CONFIG.format(url=upstream.url)) as server,
        shown(server) as opened,
        ThreadPoolExecutor() as aside,
    ):
        upstream.script = [says({**REPLY, "usage": USAGE})]

        def ask() -> int:
            return call("POST", f"{server.url}/s/fix@shop/v1/chat/completions", BODY).status

        page = opened.page
        page.goto(page.url.partition("#")[0] + "#/costs")
        expect(page.get_by_role("heading", name="mine")).to_contain_text("10,000 tokens for each session, then held")
        assert ask() == 200
        expect(page.get_by_text("The cap mine (session fix@shop) is at 90% of 10,000 tokens.")).to_be_visible()
        expect(page.get_by_text("9,000 tokens of 10,000 tokens")).to_be_visible()
        waiting = aside.submit(ask)
        page.get_by_role("button", name="1 held").click()
        expect(page.get_by_text("over a cap")).to_be_visible()
        page.get_by_role("button", name="Send").first.click()
        assert waiting.result(60) == 200
        page.goto(page.url.partition("#")[0] + "#/costs")
        page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
        page.get_by_role("button", name="Raise mine").click()
        page.get_by_label("New limit in tokens").fill("40000")
        page.get_by_role("button", name="Set").click()
        expect(page.get_by_text("18,000 tokens of 40,000 tokens")).to_be_visible()
        assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
        assert ask() == 200
        page.reload()
        page.get_by_text("Learned corrections of token estimates").click()
        row = page.get_by_role("row", name="acme/m text")
        expect(row).to_be_visible()
        row.get_by_role("button", name="Forget what was learned about acme/m").click()
        expect(page.get_by_text("Learned corrections of token estimates")).to_have_count(0)
        assert server.api("/api/learned") == {"lessons": []}
