"""Headers on the page: what the client sent, what Sightline made of it, and where it really went."""

from playwright.sync_api import expect

from tests.browser import NARROW
from tests.page_stage import PageStage, chat, user

OVERFLOW = "() => document.documentElement.scrollWidth - innerWidth"


def test_headers_of_both_sides_are_shown_with_their_credentials_masked(stage: PageStage) -> None:
    stage.person.put("/api/interception", {"mode": "off"})
    stage.free(chat(user("Which headers?"), extra_headers={"x-trace": "t-7"}))
    (line,) = stage.person.get("/api/exchanges?limit=1")["exchanges"]
    with stage.visit(line["id"], "headers") as page:
        addresses = page.get_by_role("region", name="Addresses")
        expect(addresses).to_contain_text(f"{stage.desk.upstream.url}/v1/chat/completions")
        client = page.get_by_role("region", name="From the client")
        expect(client.get_by_role("row", name="authorization")).to_contain_text("***")
        sent = page.get_by_role("region", name="To the provider")
        seen = {name.lower() for name, _ in stage.desk.upstream.seen[-1].headers}
        listed = {name.lower() for name in sent.get_by_role("rowheader").all_inner_texts()}
        assert listed <= seen
        assert seen - listed <= {"host", "content-length", "connection", "accept-encoding"}
        expect(page.get_by_role("region", name="From the provider")).to_contain_text("application/json")
        stage.keep(page, "headers")
        page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
        assert page.evaluate(OVERFLOW) <= 0
        stage.keep(page, "headers-narrow")
