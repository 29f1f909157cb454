"""The runs on their own page: every round with its exact request and reply, and two of them side by side."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from sightline.model.parts import Text, Thinking
from tests.agent_page import AgentDesk, AgentPage, add, agent_desk, note
from tests.browser import NARROW
from tests.loop_stage import calls, reply, says
from tests.page_stage import card, proof, sha256


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentDesk]:
    with agent_desk(tmp_path_factory.mktemp("runs")) as made, made.look() as chat:
        for words, second in (("First of two.", 2), ("Second of two.", 3)):
            first = reply(Thinking("Hm."), Text("Let me see."), add(1, second))
            made.says(first, calls(note("a.md", "x")), says("Done."))
            pair = chat.begin(words)
            chat.call(pair, "add").get_by_role("button", name="Allow", exact=True).click()
            chat.call(pair, "write_note").get_by_role("button", name="Deny…").click()
            chat.write("No notes.")
            chat.press("Enter")
            expect(pair).to_contain_text("Done.")
        yield made


def traced(desk: AgentDesk, chat: AgentPage, words: str) -> Locator:
    """The trace of a run."""
    chat.runs(desk.server)
    chat.page.get_by_role("link", name=words).click()
    return chat.page.get_by_role("main", name="Run")


def test_a_trace_has_every_round_with_what_it_took(desk: AgentDesk, tmp_path: Path) -> None:
    with desk.look(size=NARROW, dark=True) as chat:
        chat.runs(desk.server)
        expect(chat.page.get_by_role("row", name="First of two.")).to_contain_text("answered")
        chat.keep(tmp_path, "runs-narrow")
        chat.fits()
        trace = traced(desk, chat, "First of two.")
        expect(trace.get_by_role("heading", name="3 rounds")).to_be_visible()
        expect(trace).to_contain_text("Let me see.")
        expect(trace.locator("summary[data-call='write_note'][data-state='denied']")).to_be_visible()
        trace.locator("summary[data-call='add'][data-state='done']").click()
        expect(trace.locator(".fold-block.call .fold-inside").first).to_contain_text("3")
        chat.keep(tmp_path, "trace-narrow")
        chat.fits()


def test_each_round_leads_to_its_exact_request_and_reply(desk: AgentDesk) -> None:
    bodies = [seen.body for seen in desk.chat.upstream.seen]
    with desk.look() as chat:
        for number, body in enumerate(bodies[:3]):
            trace = traced(desk, chat, "First of two.")
            trace.get_by_role("link", name="Request").nth(number).click()
            expect(proof(chat.page)).to_have_accessible_name(f"sent = shown {sha256(body)}")
            expect(card(chat.page, "User 1")).to_contain_text("First of two.")
            chat.page.go_back()
            trace.get_by_role("link", name="Reply").nth(number).click()
            expect(chat.page.get_by_role("main")).to_contain_text(["Let me see.", "write_note", "Done."][number])


def test_two_runs_are_compared_round_by_round(desk: AgentDesk, tmp_path: Path) -> None:
    with desk.look(size=NARROW) as chat:
        trace = traced(desk, chat, "First of two.")
        trace.get_by_role("link", name="Compare…").click()
        expect(chat.page.get_by_text("Choose one more to compare.")).to_be_visible()
        chat.page.get_by_role("checkbox", name="Compare Second of two.").check()
        chat.page.get_by_role("button", name="Compare", exact=True).click()
        both = chat.page.get_by_role("main", name="Two runs compared")
        expect(both).to_contain_text("They differ from round 1 on; 2 of 3 rounds are the same.")
        expect(both.get_by_role("region", name="Round 1")).to_contain_text("other arguments")
        chat.keep(tmp_path, "compare-narrow")
        chat.fits()
        both.get_by_role("checkbox", name="Only differences").check()
        expect(both.get_by_role("region", name="Round 2")).to_have_count(0)
