"""Agent mode broken off by a person; it goes on where it stands."""

import subprocess
from pathlib import Path

from playwright.sync_api import expect

from tests.agent_page import AgentDesk, add, results, waits
from tests.loop_stage import calls, says
from tests.server_process import PROGRAM


def test_stop_after_this_step_lets_the_tool_end(desk: AgentDesk) -> None:
    desk.says(calls(waits("one")), says("It has waited."))
    with desk.look() as chat:
        pair = chat.begin("Wait for one.")
        assert desk.began() == "one"
        pair.get_by_role("button", name="Stop after this step").click()
        desk.open_gate()
        expect(pair.get_by_role("button", name="Resume")).to_be_visible()
        expect(chat.result(pair, "wait")).to_be_visible()
        expect(pair).to_contain_text("interrupted")
        pair.get_by_role("button", name="Resume").click()
        expect(pair).to_contain_text("It has waited.")
        expect(pair.get_by_role("button", name="Resume")).to_have_count(0)
        expect(pair).not_to_contain_text("earlier answer")
    assert (desk.folder / "waits").read_text() == "one\n", "it ran once"
    assert results(desk.sent[-1]) == ["one has waited"]


def test_stop_now_cuts_the_tool_off_and_a_person_says_what_becomes_of_it(desk: AgentDesk, tmp_path: Path) -> None:
    (desk.folder / "waits").unlink(missing_ok=True)
    desk.says(calls(waits("two")), says("Skipped."))
    with desk.look() as chat:
        pair = chat.begin("Wait for two.")
        assert desk.began() == "two"
        pair.get_by_role("button", name="Stop now").click()
        expect(pair).to_contain_text("They may have done their work, or part of it.")
        expect(pair.get_by_role("button", name="Resume")).to_be_disabled()
        chat.keep(tmp_path, "agent-mid-flight")
        pair.get_by_role("radio", name="Skip it").click()
        pair.get_by_role("button", name="Resume").click()
        expect(pair).to_contain_text("Skipped.")
        expect(chat.result(pair, "wait", "error")).to_be_visible()
    assert "it is not known how far it got" in results(desk.sent[-1])[-1]


def test_escape_breaks_off_and_the_trace_takes_it_up_for_the_pair(desk: AgentDesk, tmp_path: Path) -> None:
    desk.says(calls(add(1, 2)), says("Three."))
    with desk.look() as chat:
        pair = chat.begin("Add one and two.")
        expect(chat.call(pair, "add")).to_be_visible()
        chat.press("Control+i", "Escape")
        expect(pair.get_by_role("button", name="Resume")).to_be_visible()
        pair.get_by_role("link", name="Trace").click()
        trace = chat.page.get_by_role("main", name="Run")
        expect(trace).to_contain_text("interrupted")
        chat.keep(tmp_path, "trace-interrupted")
        trace.get_by_role("button", name="Resume").click()
        trace.get_by_role("button", name="Allow", exact=True).click()
        expect(trace.get_by_role("status").filter(has_text="answered")).to_be_visible()
        chat.page.get_by_role("navigation").get_by_role("link", name="Chat").click()
        expect(pair).to_contain_text("Three.")
        expect(chat.result(pair, "add")).to_be_visible()


def test_a_run_that_the_terminal_took_up_gives_the_pair_its_answer(desk: AgentDesk, tmp_path: Path) -> None:
    desk.says(calls(add(4, 5)), says("Nine."))
    with desk.look() as chat:
        pair = chat.begin("Add four and five.")
        expect(chat.call(pair, "add")).to_be_visible()
        chat.press("Control+i", "Escape")
        expect(pair.get_by_role("button", name="Resume")).to_be_visible()
        run = desk.chat.person.get("/api/runs")[0]["id"]
        command = [*PROGRAM, "resume", run, "--yes"]
        where = ["--config", str(desk.folder / "sightline.toml"), "--data", str(desk.folder / "data")]
        done = subprocess.run([*command, *where], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout.strip()) == (0, "Nine."), done.stderr
        chat.page.reload()
        expect(pair).to_contain_text("The run was resumed elsewhere, and has its answer.")
        chat.keep(tmp_path, "agent-elsewhere")
        pair.get_by_role("button", name="Use its answer").click()
        expect(pair).to_contain_text("Nine.")
        expect(pair.get_by_role("region", name="Run of tools")).to_have_count(0)
