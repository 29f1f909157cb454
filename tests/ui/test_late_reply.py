"""Answers of the server that come after newer ones: of the reply, and of the request itself."""

from playwright.sync_api import APIResponse, Route, expect

from tests.page_stage import PageStage, chat, proof, user


def test_reply_that_ended_during_its_request_is_requested_again(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(user("Hello.")))
    with stage.look() as shown:
        page = shown.page

        def late(route: Route) -> None:
            nothing = route.fetch()
            stage.person.act(exchange, "release", {"body_sha256": stage.person.view(exchange)["body_sha256"]})
            answer.result(30)
            expect(proof(page)).to_contain_text("sent = shown")
            route.fulfill(response=nothing)

        page.route("**/reply", late, times=1)
        stage.open(page, exchange, "reply")
        expect(page.get_by_role("tabpanel", name="Reply")).to_contain_text("Hello there.")


def test_view_that_comes_late_does_not_replace_a_newer_one(stage: PageStage) -> None:
    exchange, answer = stage.client(chat(user("Hello.")))
    with stage.look() as shown:
        page = shown.page
        late: list[tuple[Route, APIResponse]] = []
        page.route(f"**/api/exchanges/{exchange}?*", lambda route: late.append((route, route.fetch())), times=1)
        page.goto(f"{stage.desk.server.url}/#/x/{exchange}/sections")
        expect(page.get_by_role("status", name="Loading")).to_be_visible()
        stage.person.act(exchange, "release", {"body_sha256": stage.person.view(exchange)["body_sha256"]})
        answer.result(30)
        expect(proof(page)).to_contain_text("sent = shown")
        ((route, held),) = late
        with page.expect_request_finished(lambda request: request == route.request):
            route.fulfill(response=held)
        page.evaluate("() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        expect(proof(page)).to_contain_text("sent = shown")


def test_line_that_comes_late_does_not_replace_a_newer_one(stage: PageStage) -> None:
    stage.client(chat(user("An earlier line.")))
    with stage.visit() as page:
        expect(page.get_by_role("row", name="An earlier line.")).to_be_visible()
        late: list[tuple[Route, APIResponse]] = []
        page.route("**/api/exchanges?*limit=20*", lambda route: late.append((route, route.fetch())), times=1)
        with page.expect_request("**/api/exchanges?*limit=20*"):
            exchange, answer = stage.client(chat(user("A late line.")))
        row = page.get_by_role("row", name="A late line.")
        page.wait_for_timeout(100)  # the answer is fetched in this time
        stage.person.act(exchange, "release", {"body_sha256": stage.person.view(exchange)["body_sha256"]})
        answer.result(30)
        page.wait_for_timeout(500)
        ((route, held),) = late
        with page.expect_request_finished(lambda request: request == route.request):
            route.fulfill(response=held)
        page.wait_for_timeout(500)
        expect(row).to_contain_text("11 → 7")
