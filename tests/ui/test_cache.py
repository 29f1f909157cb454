"""A request whose cache broke says so, and leads to what broke it."""

import json
import re

from playwright.sync_api import expect

from tests.browser import NARROW
from tests.caching_provider import CachingProvider
from tests.fake_clock import FakeClock
from tests.page_stage import PageStage, chat, system, user

CONFIG = '[models."acme/m"]\nprices = { input = 3.0, output = 15.0, cached = 0.3 }\n'
OVERFLOW = "() => document.documentElement.scrollWidth - innerWidth"
LONG = "The quick brown fox jumps over the lazy dog. " * 300


def test_a_request_says_what_broke_its_cache_and_leads_to_the_difference(stage: PageStage) -> None:
    stage.person.put("/api/interception", {"mode": "off"})
    stage.desk.upstream.script = [CachingProvider(FakeClock()).play]
    asked = [user("What is a cache?"), {"role": "assistant", "content": "Yes."}, user("And a miss?")]
    stage.free(chat(system(f"Today is Monday. {LONG}"), asked[0], stream=True), session="miss")
    stage.free(chat(system(f"Today is Tuesday. {LONG}"), *asked, stream=True), session="miss")
    report = stage.person.get("/api/cache?session=miss")
    assert [turn["autopsy"]["cause"] for turn in report["turns"]] == ["cold_start", "system"]
    first, second = (turn["exchange"] for turn in report["turns"])
    (alone,) = stage.person.get(f"/api/cache?exchange={second}")["turns"]
    assert alone == report["turns"][1]
    with stage.visit() as page:
        expect(page.get_by_role("link", name="cache: system prompt changed")).to_have_count(1)
        stage.keep(page, "cache-in-traffic")
        stage.open(page, first)
        expect(page.get_by_text("provider's count")).to_be_visible()
        expect(page.get_by_text("Cache: read")).to_have_count(0)
        stage.open(page, second)
        line = page.get_by_text(re.compile(r"Cache: read 0 of 3\.\dk .*lost"))
        expect(line).to_be_visible()
        stage.keep(page, "cache-line")
        page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
        assert page.evaluate(OVERFLOW) <= 0
        stage.keep(page, "cache-line-narrow")
        line.get_by_role("link", name="system prompt changed").click()
        expect(page.get_by_role("tab", name="Diff")).to_have_attribute("aria-selected", "true")
        expect(page.get_by_text("the cache broke here")).to_be_visible()
        expect(page.get_by_text("Cached prefix")).to_have_count(0)
    with stage.visit(dark=True) as page:
        stage.open(page, second)
        expect(page.get_by_text("Cache: read")).to_be_visible()
        stage.keep(page, "cache-line-dark")


def test_one_click_keeps_the_edit_that_makes_the_next_turn_find_the_cache(stage: PageStage) -> None:
    stage.person.put("/api/interception", {"mode": "off"})
    stage.desk.upstream.script = [CachingProvider(FakeClock()).play]
    said = [user("What is a cache?")]

    def turn(day: str) -> None:
        stage.free(chat(system(f"Today is {day}. {LONG}"), *said, stream=True), session="mend@shop")
        said.extend([{"role": "assistant", "content": "Yes."}, user(f"And on {day}?")])

    turn("Monday")
    turn("Tuesday")
    with stage.visit() as page:
        page.goto(page.url.partition("#")[0] + "#/sessions/mend%40shop")
        misses = page.get_by_role("region", name="Why the cache missed")
        expect(misses.get_by_text("system prompt changed")).to_be_visible()
        stage.keep(page, "cache-advice")
        misses.get_by_role("button", name="Move to the end").click()
        expect(page.get_by_text("it changes the next requests of session mend@shop")).to_be_visible()
        turn("Wednesday")
        turn("Thursday")
        page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
        assert page.evaluate(OVERFLOW) <= 0
        stage.keep(page, "cache-advice-narrow")
        page.goto(page.url.partition("#")[0] + "#/costs?by=client&filter=session:*@shop")
        page.get_by_text("Why caches missed").click()
        expect(page.get_by_role("row", name="system prompt changed")).to_be_visible()
        expect(page.get_by_role("button", name="Move to the end")).to_be_visible()
        assert page.evaluate(OVERFLOW) <= 0
        stage.keep(page, "cache-causes-narrow")
    third, fourth = stage.person.get("/api/cache?session=mend%40shop")["turns"][2:]
    assert third["autopsy"]["read_tokens"] == 0, "the edit itself begins another prompt"
    assert fourth["autopsy"]["cause"] == ""
    assert fourth["autopsy"]["read_tokens"] > 0.9 * fourth["input_tokens"]
    sent = json.loads(stage.desk.upstream.seen[-1].body)
    assert "Today is" not in sent["messages"][0]["content"]
    assert sent["messages"][-1]["content"][-1]["text"] == "Today is Thursday."
    (mask,) = stage.person.get("/api/masks")
    assert (mask["applied"], mask["missed"]) == (2, 0)
