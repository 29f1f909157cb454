"""Costs on the page: groups, totals, and from a group to its exchanges."""

from playwright.sync_api import Route, expect

from tests.browser import NARROW
from tests.page_stage import PageStage, chat, user

OVERFLOW = "() => document.documentElement.scrollWidth - innerWidth"


def test_costs_are_grouped_and_lead_to_their_exchanges(stage: PageStage) -> None:
    stage.person.put("/api/interception", {"mode": "off"})
    stage.free(chat(user("What is a cost?")), session="fix@shop")
    with stage.visit() as page:
        page.keyboard.press("g")
        page.keyboard.press("m")
        expect(page.get_by_role("main", name="Costs")).to_be_visible()
        page.get_by_role("radio", name="Project").click()
        expect(page.get_by_role("row", name="shop")).to_be_visible()
        stage.keep(page, "costs")
        page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
        assert page.evaluate(OVERFLOW) <= 0
        page.get_by_role("link", name="shop").click()
        expect(page.get_by_role("row", name="What is a cost?").first).to_be_visible()


def test_prices_of_models_with_long_names_fit_on_a_phone(stage: PageStage) -> None:
    price = {"provider": "together", "model": "meta-llama/Llama-3.3-70B-Instruct-Turbo", "input": 12.5, "output": 100.0}

    def answer(route: Route) -> None:
        got = route.fetch()
        route.fulfill(response=got, json={**got.json(), "prices": [{**price, "as_of": "2026-08", "source": ""}]})

    stage.person.put("/api/interception", {"mode": "off"})
    stage.free(chat(user("What is a price?")))
    with stage.visit(size=NARROW) as page:
        page.route("**/api/costs?*", answer)
        page.goto(page.url.partition("#")[0] + "#/costs")
        page.get_by_text("Prices and their sources").click()
        expect(page.get_by_role("cell", name="2026-08")).to_be_visible()
        stage.keep(page, "costs-prices-narrow")
        assert page.locator(".costs-body").evaluate("(each) => each.scrollWidth - each.clientWidth") <= 0


def test_a_filter_without_exchanges_and_a_wrong_filter_say_so(stage: PageStage) -> None:
    with stage.look() as shown:
        page = shown.page
        page.goto(page.url.partition("#")[0] + "#/costs?filter=session:nobody")
        expect(page.get_by_role("heading", name="No exchange matches this filter")).to_be_visible()
        shown.expected.append("status of 400")
        page.goto(page.url.partition("#")[0] + "#/costs?filter=tokens:many")
        expect(page.get_by_role("combobox", name="Filter")).to_have_attribute("aria-invalid", "true")
        shown.expected.append("status of 400")
        page.goto(page.url.partition("#")[0] + "#/costs?by=moon")
        expect(page.get_by_role("alert")).to_contain_text('costs are not grouped by "moon"')
