"""A tab that a plug-in adds to the page of an exchange."""

import shutil
from pathlib import Path

from playwright.sync_api import expect

from tests.background import upstream_in_background
from tests.browser import NARROW, browsing, looking
from tests.gateway_server import served
from tests.http_call import call
from tests.page_stage import gallery
from tests.plugins.test_signed_requests import REPLY, post
from tests.upstream import says

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugins" / "word_count_panel.py"
PANELS = """
from sightline.plugins import Panel, Plugin

ASKS = '''
export default async function show(element, exchange, sightline) {
  const { raw } = await sightline.get(`/api/exchanges/${exchange.id}/reply`);
  element.textContent = `It said ${JSON.parse(raw).choices[0].message.content}`;
  exchange.sections.length = 0;
}
'''
PLUGIN = Plugin(name="more", panels={
    "asks": Panel("Asks", ASKS),
    "raises": Panel("Raises", "export default () => { throw new Error('no luck'); }"),
    "odd": Panel("Odd", "export const show = 1;"),
    "broken": Panel("Broken", "export default function ("),
    "injects": Panel("Injects", "export default (element) => { element.innerHTML = '<b>x</b>'; }"),
})
"""


def test_a_panel_fills_its_tab_and_one_that_fails_is_named(tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    shutil.copy(EXAMPLE, tmp_path / "plugins")
    (tmp_path / "plugins" / "more.py").write_text(PANELS)
    with upstream_in_background() as upstream, browsing() as browser:
        upstream.script = [says(REPLY)]
        tables = '[plugins]\nuse = ["word_count_panel.py", "more.py"]\n'
        with served(tmp_path, f'{tables}[providers.acme]\nbase_url = "{upstream.url}/v1"\n') as server:
            body = {"model": "m", "messages": [{"role": "user", "content": "one two three"}]}
            post(server, "/p/acme/v1/chat/completions", body)
            (line,) = server.api("/api/exchanges")["exchanges"]
            assert call("GET", f"{server.url}/api/panels/word-count").status == 401
            with looking(browser, server) as shown:
                page = shown.page
                page.goto(f"{server.url}/#/x/{line['id']}")
                page.get_by_role("tab", name="Words").click()
                expect(page.get_by_role("row", name="user 3 words")).to_be_visible()
                shown.picture(gallery(tmp_path), "plugin-panel")
                page.reload()  # the tab has an address
                expect(page.get_by_role("row", name="user 3 words")).to_be_visible()
                page.get_by_role("tab", name="Asks").click()
                expect(page.get_by_text("It said Hello")).to_be_visible()
                shown.expected += ["innerHTML", "TrustedHTML", "SyntaxError", "Unexpected"]
                for name, words in (
                    ("Raises", "more.py: Error: no luck"),
                    ("Odd", "its module has no function"),
                    ("Broken", "more.py: SyntaxError"),
                    ("Injects", "more.py: TypeError"),
                ):
                    page.get_by_role("tab", name=name).click()
                    expect(page.get_by_role("heading", name=f"{name} failed")).to_be_visible()
                    expect(page.get_by_role("alert")).to_contain_text(words)
                shown.picture(gallery(tmp_path), "plugin-panel-failed")
                page.get_by_role("tab", name="Sections").click()
                expect(page.get_by_text("one two three").first).to_be_visible()  # the panel had a copy
            with looking(browser, server, size=NARROW, dark=True) as shown:
                shown.page.goto(f"{server.url}/#/x/{line['id']}/panel-word-count")
                expect(shown.page.get_by_role("row", name="user 3 words")).to_be_visible()
                shown.picture(gallery(tmp_path), "plugin-panel-narrow-dark")
