"""More requests at once than anybody can follow: the server tells the page a few of them, and the page asks for all."""

import asyncio
import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection

import pytest
from playwright.sync_api import APIResponse, Page, Route, expect

from sightline.exchange.hub import FactQueue
from tests.desk_stage import JSON
from tests.page_stage import PageStage, chat, user
from tests.reply_samples import SAYS, whole
from tests.upstream import head, pieces

COUNT = 40


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server leaves out what comes while the facts of one exchange wait."""
    monkeypatch.setattr("sightline.exchange.hub.FEW", 1)


def ask_many(stage: PageStage, words: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        asked = [
            pool.submit(stage.free, chat(user(f"{words} {number:02}")), f"s-{number % 4}") for number in range(COUNT)
        ]
        for each in asked:
            each.result()


def count_told(page: Page) -> None:
    """Count how often the page is told that there is more."""
    page.evaluate("""() => {
      window.told = 0;
      const channel = new BroadcastChannel("sightline-events");
      channel.onmessage = ({ data }) => { if (data.announced?.event === "more") window.told++; };
    }""")


@pytest.mark.usefixtures("few")
def test_the_list_has_every_request_in_its_order_and_the_sums_are_right(free: PageStage) -> None:
    with free.visit() as page:
        before = len(free.person.get("/api/exchanges?limit=500")["exchanges"])
        count_told(page)
        ask_many(free, "Many")
        expect(page.get_by_role("status", name="Totals")).to_contain_text(f"{before + COUNT} requests")
        lines = free.person.get("/api/exchanges?limit=500&filter=text:Many")["exchanges"]
        assert len(lines) == COUNT
        for newest in lines[:5]:
            row = page.get_by_role("row", name=newest["title"])
            expect(row).to_contain_text("11 → 7")
        rows = page.get_by_role("row", name=re.compile("^.*Many [0-9]{2}"))
        drawn = re.findall("Many [0-9]{2}", " ".join(rows.all_text_contents()))
        assert drawn == [each["title"] for each in lines][: len(drawn)]
        assert page.evaluate("window.told") > 0, "the server has left something out"
        free.keep(page, "traffic-many")


@pytest.mark.usefixtures("few")
def test_a_filter_and_an_order_hold_while_many_requests_come(free: PageStage) -> None:
    with free.visit() as page:
        page.goto(f"{free.desk.server.url}/#/?filter=session:s-1%20text:Filtered")
        expect(page.get_by_role("combobox", name="Filter")).to_have_value("session:s-1 text:Filtered")
        ask_many(free, "Filtered")
        expect(page.get_by_role("status", name="Totals")).to_contain_text(f"{COUNT // 4} requests")
        expect(page.get_by_role("row", name="Filtered 00")).to_have_count(0)
        expect(page.get_by_role("row", name="Filtered 37")).to_be_visible()
        head = page.get_by_role("columnheader", name="At", exact=True)
        head.get_by_role("button").click()
        expect(head).to_have_attribute("aria-sort", "ascending")
        ask_many(free, "Filtered")
        expect(page.get_by_role("status", name="Totals")).to_contain_text(f"{COUNT // 2} requests")
        rows = page.get_by_role("row", name=re.compile("Filtered [0-9]{2}"))
        drawn = re.findall("Filtered [0-9]{2}", " ".join(rows.all_text_contents()))
        lines = free.person.get("/api/exchanges?limit=500&filter=session:s-1+text:Filtered")["exchanges"]
        assert drawn == [each["title"] for each in reversed(lines)], "the oldest first"


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """While its item is True, the server leaves out all that it may leave out."""
    usual, hidden = FactQueue.wants, [False]

    def wants(watch: FactQueue, exchange: str) -> bool:
        watch.has_more |= hidden[0] and watch.is_brief
        return not (hidden[0] and watch.is_brief) and usual(watch, exchange)

    monkeypatch.setattr(FactQueue, "wants", wants)
    return hidden


def ask_slowly(stage: PageStage, pool: ThreadPoolExecutor, session: str) -> tuple[str, Callable[[], None]]:
    """A request that is under way, and what lets its reply come."""
    go_on = asyncio.Event()
    body = whole("openai-chat", SAYS)
    stage.desk.upstream.script = [pieces(go_on, head(200, JSON, framing=str(len(body))) + body)]
    answer = pool.submit(stage.free, chat(user(f"A {session} one.")), session)
    line = stage.person.until(
        lambda: stage.person.get(f"/api/exchanges?filter=session:{session}")["exchanges"], lambda found: bool(found)
    )[0]

    def finish() -> None:
        stage.desk.upstream._loop.call_soon_threadsafe(go_on.set)
        answer.result()
        stage.desk.says()

    return line["id"], finish


def tell_more(stage: PageStage) -> None:
    """Have something told: that there is more goes with it."""
    stage.person.put("/api/interception", {"mode": "off"})


def test_an_open_request_is_followed_although_nothing_is_told_of_it(free: PageStage, hidden: list[bool]) -> None:
    with free.look() as shown, ThreadPoolExecutor(1) as pool:
        page = shown.page
        hidden[0] = True
        exchange, finish = ask_slowly(free, pool, "slow")
        free.open(page, exchange, "reply")
        expect(page.get_by_text("sending").first).to_be_visible()
        finish()
        hidden[0] = False
        free.free(chat(user("Another.")), "other")
        expect(page.get_by_text("finished").first).to_be_visible()
        free.keep(shown.page, "reply-after-more")


def test_a_reply_that_has_ended_is_not_read_again_whenever_others_come(free: PageStage, hidden: list[bool]) -> None:
    free.free(chat(user("Read once.")), "ended")
    exchange = free.person.get("/api/exchanges?filter=session:ended")["exchanges"][0]["id"]
    with free.visit(exchange, "reply") as page:
        expect(page.get_by_role("tabpanel", name="Reply")).to_contain_text("Hello there.")
        read: list[str] = []
        page.on("request", lambda request: read.append(request.url))
        count_told(page)
        hidden[0] = True
        free.free(chat(user("Another.")), "other")
        tell_more(free)
        page.wait_for_timeout(2000)
        assert page.evaluate("window.told") > 0, "the server has left something out"
        assert [url for url in read if exchange in url] == []


def test_a_hold_is_shown_to_end_although_its_end_is_not_told(free: PageStage, hidden: list[bool]) -> None:
    free.person.put("/api/interception", {"mode": "next"})
    exchange, answer = free.client(chat(user("Wait for me.")), "waiting")
    with free.visit(exchange) as page:  # none of its facts was told to this page
        expect(page).to_have_title(re.compile("1 held"))
        hidden[0] = True
        free.person.release(exchange)
        answer.result()
        hidden[0] = False
        free.free(chat(user("Another.")), "other")
        expect(page).not_to_have_title(re.compile("1 held"))
        expect(page.get_by_text("finished").first).to_be_visible()


def test_a_line_that_is_not_on_the_first_page_any_more_ends(free: PageStage, hidden: list[bool]) -> None:
    with free.look() as shown, ThreadPoolExecutor(1) as pool:
        page = shown.page
        page.goto(f"{free.desk.server.url}/#/?filter=session:leaving%20state:sending")
        hidden[0] = True
        _, finish = ask_slowly(free, pool, "leaving")
        tell_more(free)
        row = page.get_by_role("row", name="A leaving one.")
        expect(row).to_contain_text("sending")
        finish()
        tell_more(free)
        expect(row).to_contain_text("11 → 7")


def test_what_is_told_while_the_first_page_is_read_is_newer_than_the_page(free: PageStage, hidden: list[bool]) -> None:
    with free.look() as shown, ThreadPoolExecutor(1) as pool:
        page = shown.page
        read: list[tuple[Route, APIResponse]] = []
        hidden[0] = True
        _, finish = ask_slowly(free, pool, "late")
        page.route("**/api/exchanges?*limit=500*", lambda route: read.append((route, route.fetch())), times=1)
        tell_more(free)
        page.wait_for_timeout(2000)
        hidden[0] = False
        finish()
        row = page.get_by_role("row", name="A late one.")
        page.wait_for_timeout(500)
        route, response = read[0]
        route.fulfill(response=response)
        expect(row).to_contain_text("11 → 7")


def ask_at_full_speed(stage: PageStage, count: int) -> None:
    """So many requests by connections that are kept."""
    place = stage.desk.server.url.removeprefix("http://")
    body = json.dumps({"model": "m", "messages": [user("Fast.")]})

    def ask() -> None:
        with closing(HTTPConnection(place, timeout=60)) as connection:
            for _ in range(count // 4):
                connection.request("POST", "/p/acme/v1/chat/completions", body, {"content-type": "application/json"})
                assert connection.getresponse().read()

    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(ask) for _ in range(4)]:
            each.result()


@pytest.mark.usefixtures("few")
def test_an_older_page_does_not_join_a_list_that_has_begun_anew(free: PageStage) -> None:
    ask_at_full_speed(free, 520)
    with free.visit() as page:
        totals = page.get_by_role("status", name="Totals")
        expect(totals).to_contain_text("requests")
        read: list[Route] = []
        page.route("**/api/exchanges?*before=*", lambda route: read.append(route), times=1)
        page.get_by_role("row", name="Fast.").last.scroll_into_view_if_needed()
        page.mouse.move(400, 400)
        with page.expect_request("**/api/exchanges?*before=*"):
            page.mouse.wheel(0, 1_000_000)
        page.wait_for_timeout(500)
        (older,) = read
        ask_at_full_speed(free, 1200)
        page.wait_for_timeout(2500)
        older.continue_()
        page.wait_for_timeout(500)
        total = free.person.get("/api/costs?by=model")["total"]["requests"]
        free.free(chat(user("The last one.")), "other")
        expect(totals).to_contain_text(f"{total + 1:,} requests")
