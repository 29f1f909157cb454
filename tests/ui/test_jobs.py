"""The jobs for which people open the page, each as a story, and how many clicks and keys it takes.

A click, and a key that is a command, counts as one; words that are typed into a field count as one together. A job that
needs more than is written here fails.
"""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Page, expect

from tests.browser import Shown
from tests.page_stage import PageStage, card, chat, proof, user

CONFIG = """key_env = "JOBS_KEY"
[[routes]]
model = "m*"
provider = "acme"
[ask]
model = "acme/m"
[providers.nearby]
dialect = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
"""
HERE = Path(__file__).parent


class Job(NamedTuple):
    """Where its story is, how many steps it takes, and where people hesitated until it was mended."""

    story: str
    steps: int
    mended: str = ""


JOBS = {
    "first answer": Job("test_jobs.py::test_first_answer", 3, "an empty page now offers a tour beside the clients"),
    "what an agent sends": Job(
        "test_sessions.py::test_a_session_shows_its_turns_and_leads_to_the_cause_of_a_cache_break",
        2,
        "a turn that brings results had the first question as its title, not the latest one",
    ),
    "why the cache missed": Job(
        "test_cache.py::test_a_request_says_what_broke_its_cache_and_leads_to_the_difference", 2
    ),
    "hold, edit, delete three results, send": Job("test_jobs.py::test_hold_edit_delete_three_results_and_send", 8),
    "keep an edit and undo it": Job(
        "test_keeping.py::test_edits_are_kept_after_they_were_made_and_undo_takes_the_mask_away", 5
    ),
    "replay on three models": Job(
        "test_jobs.py::test_replay_on_three_models", 9, "the number of replays was no way to them"
    ),
    "recording to case": Job("test_evals.py::test_a_recorded_exchange_becomes_a_case", 5),
    "comparison": Job("test_evals.py::test_two_targets_and_two_runs_are_compared_and_the_suite_has_a_trend", 3),
    "a long chat": Job("test_chat_trimming.py::test_context_overflow_is_trimmed_and_reported", 2),
    "agent with tools": Job("test_agent.py::test_a_call_waits_for_leave_and_the_answer_has_what_came_of_it", 3),
    "search, export, share after redaction": Job(
        "test_sharing.py::test_a_session_is_shared_after_redaction_and_imported_elsewhere", 5
    ),
    "translated client": Job("test_jobs.py::test_translated_client", 2),
    "own server": Job(
        "test_jobs.py::test_own_server", 1, "a server that is down said what it lacks, and not that it is not running"
    ),
    "library": Job("test_jobs.py::test_library", 1),
    "remove everything": Job(
        "test_jobs.py::test_remove_everything", 4, "it is asked twice, after what will go is shown"
    ),
}
COUNT = """() => {
  globalThis.steps = 0;
  let wasTyping = false;
  const step = () => { steps += 1; wasTyping = false; };
  addEventListener("pointerdown", step, true);
  addEventListener("keydown", ({ key, target }) => {
    const isWord = key.length === 1 && target.matches("input, textarea, [contenteditable=true]");
    if (!isWord || !wasTyping) step();
    wasTyping = isWord;
  }, true);
}"""


@pytest.fixture(scope="module", autouse=True)
def _key() -> Iterator[None]:
    """A client's own credential is not on record, so that the provider needs one to be asked again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JOBS_KEY", "none")
        yield


@contextmanager
def doing(stage: PageStage, job: str) -> Iterator[Page]:
    """The page for somebody with this job, who may take so many steps."""
    with stage.look() as shown:
        expect(shown.page.get_by_role("navigation", name="Places")).to_be_visible()
        shown.page.evaluate(COUNT)
        yield shown.page
        is_within(shown, job)


def is_within(shown: Shown, job: str) -> None:
    took = shown.page.evaluate("steps")
    assert took <= JOBS[job].steps, f"{job} took {took} steps"


def test_every_job_has_a_story() -> None:
    for story in (job.story for job in JOBS.values()):
        file, _, name = story.partition("::")
        tree = ast.parse((HERE / file).read_text("utf-8"))
        assert name in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}, story


def test_first_answer(stage: PageStage) -> None:
    stage.person.put("/api/interception", {"mode": "off"})
    stage.desk.says(stream=True)
    with doing(stage, "first answer") as page:
        page.get_by_role("link", name="Chat").click()
        box = page.get_by_role("textbox", name="Question")
        expect(box).to_be_focused()
        page.keyboard.type("Who are you?")
        page.keyboard.press("Enter")
        expect(page.get_by_text("Hello there.")).to_be_visible()


def test_hold_edit_delete_three_results_and_send(stage: PageStage) -> None:
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": json.dumps({"place": n})}}
        for n in range(3)
    ]
    results = [{"role": "tool", "tool_call_id": f"c{n}", "content": f"Result {n}. " * 20} for n in range(3)]
    turn = {"role": "assistant", "content": None, "tool_calls": calls}
    _, answer = stage.client(chat(user("Look everywhere."), turn, *results, user("And now?")))
    with doing(stage, "hold, edit, delete three results, send") as page:
        page.get_by_role("button", name="1 held").click()
        page.get_by_role("button", name="Select sections").click()
        page.get_by_role("menuitem", name="All tool results", exact=True).click()
        page.get_by_role("button", name="Delete 3").click()
        card(page, "User 2").get_by_role("button", name="Edit User 2", exact=True).click()
        expect(page.get_by_role("textbox", name="Edit User 2")).to_be_focused()
        page.keyboard.type("Briefly: ")
        page.keyboard.press("Escape")
        expect(card(page, "User 2")).to_contain_text("Briefly: ")
        page.get_by_role("button", name="Send").first.click()
        expect(proof(page)).to_contain_text("sent = shown")
    answer.result(30)
    sent = json.loads(stage.desk.sent[-1])["messages"]
    assert [each["role"] for each in sent] == ["user", "user"]
    assert "Briefly: " in sent[1]["content"]


def test_replay_on_three_models(stage: PageStage) -> None:
    stage.person.put("/api/interception", {"mode": "off"})
    stage.free(chat(user("What is a replay?")))
    with doing(stage, "replay on three models") as page:
        page.get_by_role("row", name="What is a replay?").click()
        page.get_by_role("button", name="Replay…").click()
        box = page.get_by_role("combobox", name="Model")
        for model in ("m-small", "m-large", "m-other"):
            box.focus()
            page.keyboard.type(model)
            page.keyboard.press("Enter")
        page.get_by_role("button", name="Send to 3 models").click()
        for model in ("m", "m-small", "m-large", "m-other"):
            expect(page.get_by_role("region", name=model, exact=True)).to_contain_text("Hello there.")
    with stage.look() as shown:
        shown.page.get_by_role("row", name="What is a replay?").last.click()
        shown.page.get_by_role("button", name="3 replays").click()
        expect(shown.page.get_by_role("region", name="m-large", exact=True)).to_contain_text("Hello there.")


def test_translated_client(stage: PageStage) -> None:
    stage.person.put("/api/interception", {"mode": "off"})
    turns = [{"role": "user", "content": "Speak another language."}]
    body = {"model": "m", "max_tokens": 50, "top_k": 5, "messages": turns}
    assert stage.desk.ask(body, "translated", "anthropic").result(30).status == 200
    with doing(stage, "translated client") as page:
        page.get_by_role("row", name="Speak another language.").click()
        page.get_by_role("tab", name="Losses").click()
        expect(page.get_by_role("tabpanel", name="Losses")).to_contain_text("top_k")


def test_own_server(stage: PageStage) -> None:
    with doing(stage, "own server") as page:
        page.get_by_role("button", name="Connect a client").click()
        providers = page.get_by_role("region", name="Providers").get_by_role("listitem")
        expect(providers.filter(has_text="nearby")).to_contain_text("Not running: nothing listens at 127.0.0.1:9")
        expect(providers.filter(has_text="ollama")).to_contain_text("Not running")


def test_library(stage: PageStage, tmp_path: Path) -> None:
    stage.person.put("/api/interception", {"mode": "off"})
    stage.desk.says(stream=True)
    folder = stage.pictures.parent
    program = "import sightline\nprint(sightline.run('A program asks.').text)\n"
    variables = {"SIGHTLINE_DATA": str(folder / "data"), "SIGHTLINE_CONFIG": str(folder / "sightline.toml")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**variables, "JOBS_KEY": "none"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with doing(stage, "library") as page:
        page.get_by_role("row", name="A program asks.").click()
        expect(card(page, "User 1")).to_contain_text("A program asks.")


def test_remove_everything(stage: PageStage) -> None:
    stage.person.put("/api/interception", {"mode": "off"})
    stage.free(chat(user("Nobody shall know this.")))
    with doing(stage, "remove everything") as page:
        expect(page.get_by_role("row", name="Nobody shall know this.")).to_be_visible()
        page.get_by_role("button", name="Share, import and delete").click()
        page.get_by_role("menuitem", name="Delete everything…").click()
        page.get_by_role("button", name=re.compile("^Delete .*…$")).click()
        page.get_by_role("button", name="for good").click()
        expect(page.get_by_role("heading", name="Waiting for the first request")).to_be_visible()
    assert stage.person.get("/api/exchanges")["exchanges"] == []
