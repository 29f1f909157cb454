"""Agent mode in a program that is killed while a tool runs: a person is asked, and the pair gets its answer."""

from pathlib import Path

from playwright.sync_api import expect

from tests.agent_page import add, results, waits
from tests.killed_server import killable
from tests.loop_stage import calls, says


def test_killed_run_offers_a_choice_and_can_be_resumed_to_its_answer(tmp_path: Path) -> None:
    with killable(tmp_path) as desk:
        desk.says(calls(add(1, 1)), calls(waits("three")), says("Twice."))
        with desk.look() as chat:
            pair = chat.begin("Add, then wait.")
            chat.call(pair, "add").get_by_role("button", name="Allow", exact=True).click()
            assert desk.now.began() == "three"
            chat.shown.expected += [
                "ERR_CONNECTION_REFUSED",
                "ERR_INCOMPLETE_CHUNKED_ENCODING",
                "ERR_EMPTY_RESPONSE",
                "ERR_CONNECTION_RESET",
            ]
            desk.kill()
            expect(chat.page.get_by_role("alert").first).to_contain_text("Sightline does not respond.")
            desk.start()
            expect(pair).to_contain_text("They may have done their work, or part of it.", timeout=60_000)
            expect(pair).to_contain_text("the program ended before the answer arrived")
            expect(chat.result(pair, "add")).to_be_visible()
            chat.keep(tmp_path, "agent-killed")
            pair.get_by_role("radio", name="Run it again").click()
            pair.get_by_role("button", name="Resume").click()
            expect(pair.get_by_role("region", name="Run of tools")).to_contain_text("running")
            assert desk.now.began() == "three"
            desk.now.open_gate()
            expect(pair).to_contain_text("Twice.")
            expect(pair).not_to_contain_text("ended before the answer")
            chat.page.reload()
            expect(pair).to_contain_text("Twice.")
            chat.keep(tmp_path, "agent-taken-up")
    assert results(desk.now.sent[-1]) == ["2", "three has waited"]
