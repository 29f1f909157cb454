"""The server stops and starts again while somebody looks: the page says so, and then has missed nothing."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import expect

from tests.background import upstream_in_background
from tests.browser import browsing, looking
from tests.gateway_server import Served, served
from tests.http_call import call
from tests.page_stage import gallery
from tests.person import Person
from tests.reply_samples import SAYS, whole
from tests.shared_servers import free_port
from tests.upstream import answer

JSON = [("Content-Type", "application/json")]


@contextmanager
def provider() -> Iterator[str]:
    """The configuration of one that always answers."""
    with upstream_in_background() as upstream:
        upstream.script = [answer(200, whole("openai-chat", SAYS), JSON)]
        yield f'[providers.acme]\ndialect = "openai-chat"\nbase_url = "{upstream.url}/v1"\n'


def said(server: Served, words: str) -> int:
    """A client asks; the status that it gets."""
    body = {"model": "m", "messages": [{"role": "user", "content": words}]}
    return call("POST", f"{server.url}/p/acme/v1/chat/completions", body).status


# The page tries again by itself, often before anybody can click: here only who clicks gets it back.
PATIENT = """() => {
  const later = window.setTimeout;
  window.setTimeout = (run, ...more) => (run.name === "openStream" ? 0 : later(run, ...more));
}"""


def test_nothing_is_missed_while_the_server_was_away(tmp_path: Path) -> None:
    with provider() as config, browsing() as browser:
        port = free_port()
        with served(tmp_path, config, port) as server:
            said(server, "Before it stopped.")
            opened = looking(browser, server)
            shown = opened.__enter__()
            page = shown.page
            shown.expected += ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE"]
            expect(page.get_by_role("row", name="Before it stopped.")).to_be_visible()
            page.evaluate(PATIENT)
        lost = page.get_by_role("alert")
        expect(lost).to_contain_text("Sightline does not respond.")
        shown.picture(gallery(tmp_path), "disconnected")
        page.get_by_role("link", name="Costs").click()
        page.get_by_role("link", name="Traffic").first.click()
        message = page.get_by_role("status").filter(has_text="Check that it is still running.")
        expect(message).to_be_visible()
        with served(tmp_path, config, port) as server:
            said(server, "While nobody listened.")
            lost.get_by_role("button", name="Try now").click()
            expect(page.get_by_role("row", name="While nobody listened.")).to_be_visible()
            expect(lost).to_have_count(0)
            expect(message).to_have_count(0)
            said(server, "And live again.")
            expect(page.get_by_role("row", name="And live again.")).to_be_visible()
            opened.__exit__(None, None, None)


def test_a_hold_does_not_outlive_the_server_and_the_page_says_so(tmp_path: Path) -> None:
    with provider() as config, browsing() as browser, ThreadPoolExecutor(1) as pool:
        port = free_port()
        with served(tmp_path, config, port) as server:
            person = Person(server)
            person.put("/api/interception", {"mode": "every"})
            waiting = pool.submit(said, server, "Wait for me.")
            exchange = person.held()[0]
            opened = looking(browser, server)
            shown = opened.__enter__()
            page = shown.page
            shown.expected += ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE"]
            page.goto(f"{server.url}/#/x/{exchange}")
            expect(page.get_by_role("button", name="Send").first).to_be_visible()
        assert waiting.result(30) >= 400
        expect(page.get_by_role("alert").first).to_contain_text("Sightline does not respond.")
        with served(tmp_path, config, port):
            expect(page.get_by_text("cancelled", exact=True)).to_be_visible()
            expect(page.get_by_role("button", name="Send").first).to_have_count(0)
            expect(page.get_by_text("Sightline does not respond.")).to_have_count(0)
            opened.__exit__(None, None, None)
