"""A reply that comes while the page is still being told that there is none."""

from playwright.sync_api import Route, expect

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
