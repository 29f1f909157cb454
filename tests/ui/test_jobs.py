"""The jobs for which people open the page, each as a story. How many clicks and keys each takes is in the table of
`docs/guide/workbench.md`: a story that takes another number fails.

A click, and a key that is a command, counts as one; words that are typed into a field count as one together. The text
below a story says where somebody who had never seen the page hesitated, until the cause was mended.
"""

import ast
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI
from playwright.sync_api import Page, expect

from sightline.app.machine import SystemClock
from tests.agent_page import TOOLS, adds
from tests.page_stage import PageStage, card, chat, proof, system, user
from tests.running_stage import plays
from tests.ui.test_sessions import play

CONFIG = """key_env = "JOBS_KEY"
[[routes]]
model = "m*"
provider = "acme"
[ask]
model = "acme/m"
[providers.nearby]
dialect = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
[models."m"]
providers = ["acme"]
prices = { input = 3.0, output = 15.0, cached = 0.3 }
[models."acme/m-small"]
context_window = 1600
max_output = 200
[tools.sums]
python = "sums.py"
[evals.targets.parrot]
mock = "Hello from Rome and Madrid."
"""
GUIDE = Path(__file__).parents[2] / "docs/guide/workbench.md"
DAY = 86_400
COUNT = """() => {
  globalThis.steps = 0;
  let wasTyping = false;
  const step = () => { steps += 1; wasTyping = false; };
  addEventListener("pointerdown", step, true);
  addEventListener("keydown", ({ key, target, ctrlKey, altKey, metaKey }) => {
    if (["Control", "Shift", "Alt", "Meta"].includes(key)) return;
    const isField = target.matches("input, textarea, [contenteditable=true]");
    const isWord = key.length === 1 && isField && !ctrlKey && !altKey && !metaKey;
    if (!isWord || !wasTyping) step();
    wasTyping = isWord;
  }, true);
}"""


def read_jobs() -> dict[str, int]:
    """The steps of each job, as the guide has them."""
    table = GUIDE.read_text("utf-8").partition("## Fourteen jobs")[2].partition("\n## ")[0]
    return {name: int(steps) for name, steps in re.findall(r"^\| ([^|]+?) \| (\d+) \|", table, re.M)}


class Days:
    """The server's clock, which can go ahead."""

    ahead = 0.0


@pytest.fixture(scope="module", autouse=True)
def days() -> Iterator[Days]:
    """A clock for the server that this module starts, and a key for its provider: a client's own credential is not on
    record, and a request is sent again with this one."""
    days = Days()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JOBS_KEY", "none")
        patch.setattr(SystemClock, "now", staticmethod(lambda: time.time() + days.ahead))
        yield days


@contextmanager
def doing(stage: PageStage, job: str, *, is_held: bool = False) -> Iterator[Page]:
    """The page for somebody with this job; it takes as many steps as the guide says."""
    stage.person.put("/api/interception", {"mode": "every" if is_held else "off"})
    with stage.visit() as page:
        expect(page.get_by_role("navigation", name="Places")).to_be_visible()
        page.evaluate(COUNT)
        yield page
        stage.keep(page, f"job-{job.replace(' ', '-').replace(',', '')}")
        assert page.evaluate("steps") == read_jobs()[job], f"how many steps {job} takes"


def test_every_job_of_the_guide_has_a_story() -> None:
    calls = [node for node in ast.walk(ast.parse(Path(__file__).read_text("utf-8"))) if isinstance(node, ast.Call)]
    names = [call.args[1] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "doing"]
    told = [name.value for name in sorted(names, key=lambda name: name.lineno) if isinstance(name, ast.Constant)]
    assert len(told) == 14
    assert told == list(read_jobs())


def test_first_answer(stage: PageStage) -> None:
    """The first page offered clients, a tour and a command, and no way to the chat."""
    stage.desk.says(stream=True)
    with doing(stage, "First answer") as page:
        page.get_by_role("link", name="Chat", exact=True).click()
        expect(page.get_by_role("textbox", name="Question")).to_be_focused()
        page.keyboard.type("Who are you?")
        page.keyboard.press("Enter")
        expect(page.get_by_text("Hello there.")).to_be_visible()


def test_what_an_agent_sends(stage: PageStage) -> None:
    """A turn that brings results had the first question as its title; what the model had said counted as the user's."""
    stage.person.put("/api/interception", {"mode": "off"})
    play(stage, "sends@shop")
    with doing(stage, "What an agent sends") as page:
        page.get_by_role("row", name="sends@shop").get_by_role("link", name="Session").click()
        expect(page.get_by_role("table").get_by_text("Read parser.py")).to_be_visible()
        page.get_by_role("link", name="Turn 2", exact=True).click()
        expect(card(page, "Result · Read parser.py")).to_contain_text("def parse(text)")
        expect(page.get_by_role("list", name="Sizes by MCP server")).to_contain_text("github")
        expect(page.locator(".meter-keys")).to_have_text(re.compile(r"System .*Tools .*History .*Tool results .*User "))


def test_why_the_cache_missed(stage: PageStage) -> None:
    """“Freeze” did not say what it does; now its tip does."""
    stage.person.put("/api/interception", {"mode": "off"})
    play(stage, "missed@shop")
    with doing(stage, "Why the cache missed") as page:
        page.get_by_role("link", name="cache: system prompt changed").first.click()
        expect(page.get_by_text("the cache broke here")).to_be_in_viewport()
        expect(page.get_by_text("now “It is ten past nine.")).to_be_visible()
        freeze = page.get_by_role("button", name="Freeze")
        expect(freeze).to_have_attribute("title", re.compile("^Later requests send these words as they were"))


def test_hold_edit_delete_three_results_and_send(stage: PageStage) -> None:
    """The bar that selects was scrolled out of sight, because a held request is opened at its last words."""
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": json.dumps({"place": n})}}
        for n in range(3)
    ]
    results = [{"role": "tool", "tool_call_id": f"c{n}", "content": f"Result {n}. " * 200} for n in range(3)]
    turn = {"role": "assistant", "content": None, "tool_calls": calls}
    with doing(stage, "Hold, edit, delete three results, send", is_held=True) as page:
        _, answer = stage.client(chat(user("Look everywhere."), turn, *results, user("And now?")))
        page.get_by_role("button", name="1 held").click()
        expect(card(page, "User 2")).to_be_in_viewport()
        select = page.get_by_role("button", name="Select sections")
        expect(select).to_be_in_viewport()
        select.click()
        page.get_by_role("menuitem", name="All tool results", exact=True).click()
        page.get_by_role("button", name="Delete 3").click()
        card(page, "User 2").get_by_role("button", name="Edit User 2", exact=True).click()
        expect(page.get_by_role("textbox", name="Edit User 2")).to_be_focused()
        page.keyboard.type(" Briefly, please.")
        page.keyboard.press("Control+Enter")
        expect(proof(page)).to_contain_text("sent = shown")
        answer.result(30)
    sent = json.loads(stage.desk.sent[-1])["messages"]
    assert [each["content"] for each in sent] == ["Look everywhere.", "And now? Briefly, please."]


def test_keep_an_edit_and_undo_it_a_day_later(stage: PageStage, days: Days) -> None:
    """The list of kept edits did not say since when each is kept."""

    def ask(day: str, *more: dict[str, str]) -> Callable[[OpenAI], Any]:
        return chat(system(f"Today is {day}.\n\nYou are brief."), user("What is two and two?"), *more)

    further = ({"role": "assistant", "content": "Four."}, user("And three and three?"))
    with doing(stage, "Keep an edit, and undo it a day later", is_held=True) as page:
        _, first = stage.client(ask("Monday"), session="sums@school")
        page.get_by_role("button", name="1 held").click()
        card(page, "System").get_by_role("button", name="Edit System", exact=True).click()
        expect(page.get_by_role("textbox", name="Edit System")).to_be_focused()
        page.keyboard.type(" Be kind.")
        page.get_by_role("button", name="Apply the edits to later requests too").click()
        page.get_by_role("menuitem", name="Send, and apply to this session").click()
        first.result(30)
        expect(page.get_by_role("button", name="1 edit active")).to_be_visible()

        days.ahead = DAY
        try:
            page.clock.set_fixed_time(time.time() + DAY)
            stage.person.put("/api/interception", {"mode": "off"})
            stage.free(ask("Tuesday", *further), session="sums@school")
            page.get_by_role("link", name="Traffic", exact=True).click()
            row = page.get_by_role("row", name="And three and three?")
            expect(row.get_by_role("img", name="Changed by kept edits")).to_be_visible()
            page.get_by_role("button", name="1 edit active").click()
            kept = page.get_by_role("dialog", name="Kept edits").get_by_role("listitem")
            expect(kept).to_contain_text(re.compile(r"Be kind\..*since \D*\d+ .*applied 1 time", re.S))
            kept.get_by_role("button", name=re.compile("^Remove")).click()
            expect(kept).to_have_count(0)
            stage.free(ask("Tuesday", *further, *further), session="sums@school")
        finally:
            days.ahead = 0.0
    said = [json.loads(sent)["messages"][0]["content"] for sent in stage.desk.sent[-3:]]
    assert said == [
        "Today is Monday.\n\nYou are brief. Be kind.",
        "Today is Tuesday.\n\nYou are brief. Be kind.",
        "Today is Tuesday.\n\nYou are brief.",
    ]
    assert stage.person.get("/api/masks") == []


def test_replay_on_three_models(stage: PageStage) -> None:
    """The field for models had to be found first, and took one name at a time; the replays had no way to them."""
    stage.person.put("/api/interception", {"mode": "off"})
    stage.free(chat(user("What is a replay?")))
    with doing(stage, "Replay on three models") as page:
        page.get_by_role("row", name="What is a replay?").click()
        page.get_by_role("button", name="Replay…").click()
        expect(page.get_by_role("combobox", name="Model")).to_be_focused()
        page.keyboard.type("m-small, m-large, m-other")
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Send to 3 models")).to_be_visible()
        page.keyboard.press("Enter")
        for model in ("m", "m-small", "m-large", "m-other"):
            expect(page.get_by_role("region", name=model, exact=True)).to_contain_text("Hello there.")
    with stage.visit() as page:
        page.get_by_role("row", name="What is a replay?").last.click()
        page.get_by_role("button", name="3 replays").click()
        expect(page.get_by_role("region", name="m-large", exact=True)).to_contain_text("Hello there.")


def test_recording_to_case_to_comparison(stage: PageStage) -> None:
    """The file had to be named, the case was graded by a judge that nobody had asked for, and it was run elsewhere."""
    stage.person.put("/api/interception", {"mode": "off"})
    (stage.folder / "evals").mkdir(exist_ok=True)
    stage.free(chat(system("You are a teacher."), user("What is the capital of Italy?")), session="school")
    with doing(stage, "Recording to case to comparison") as page:
        stage.desk.says(stream=True)
        page.get_by_role("row", name="What is the capital of Italy?").click()
        page.get_by_role("button", name="Make a case of this").click()
        expect(page.get_by_role("textbox", name="A good answer contains")).to_be_focused()
        page.keyboard.type("Rome")
        page.get_by_role("button", name="Save and run…").click()
        page.get_by_role("checkbox", name="parrot").click()
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_text('not met: contains "Rome"')).to_be_visible()
        page.get_by_role("link", name="Compare targets").click()
        expect(page.get_by_role("region", name="Difference")).to_contain_text("parrot scores 1 higher than default")
    assert "value: Rome" in (stage.folder / "evals/recorded.yaml").read_text("utf-8")


def test_a_long_chat(stage: PageStage) -> None:
    """The numbers behind the counter had the names of fields."""
    text = "# Sea\n\n" + "## User\n\nTell me about the sea.\n\n## Assistant\n\nIt went by, and by.\n\n" * 60
    assert stage.desk.server.post("/api/chat/import?name=sea.md", text.encode())[0] == 200
    stage.person.put("/api/chat/topics", {"model": "acme/m-small"})
    stage.desk.says(stream=True)
    try:
        with doing(stage, "A long chat") as page:
            page.get_by_role("link", name="Chat", exact=True).click()
            expect(page.get_by_role("textbox", name="Question")).to_be_focused()
            page.keyboard.type("And now?")
            page.keyboard.press("Enter")
            expect(page.get_by_role("article", name=re.compile("And now"))).to_contain_text("Hello there.")
            page.get_by_role("button", name=re.compile("^Context: ")).click()
            told = page.get_by_role("tooltip")
            expect(told.get_by_role("rowheader", name="Visible pairs", exact=True)).to_be_visible()
            expect(told.get_by_role("rowheader", name="Model limit", exact=True)).to_be_visible()
    finally:
        stage.person.put("/api/chat/topics", {"model": None})
    sent = json.loads(stage.desk.sent[-1])["messages"]
    assert 3 < len(sent) < 60, "the newest pairs that fit"


def test_agent_with_tools(stage: PageStage) -> None:
    """Nothing in the chat told of tools before one was chosen in the settings of a topic."""
    (stage.folder / "sums.py").write_text(TOOLS)
    stage.desk.upstream.script = [plays(each) for each in adds()]
    stage.desk.upstream._played = 0
    try:
        with doing(stage, "Agent with tools") as page:
            page.get_by_role("link", name="Chat", exact=True).click()
            page.get_by_role("button", name="Tools that the model may call").click()
            page.get_by_role("menuitemcheckbox", name="sums").click()
            expect(page.get_by_role("button", name="Tools that the model may call: sums")).to_be_visible()
            expect(page.get_by_role("textbox", name="Question")).to_be_focused()
            page.keyboard.type("Add two and two.")
            page.keyboard.press("Enter")
            pair = page.get_by_role("article", name=re.compile("Add two and two"))
            expect(pair).to_contain_text("The model wants to call add.")
            expect(page.get_by_placeholder("The answer waits for you above")).to_be_visible()
            pair.get_by_role("button", name="Allow", exact=True).click()
            expect(pair).to_contain_text("Four.")
    finally:
        stage.person.put("/api/chat/topics", {"toolsets": None})


def test_search_export_and_share_after_redaction(stage: PageStage) -> None:
    """The filter did not say that plain words are searched for."""
    stage.person.put("/api/interception", {"mode": "off"})
    stage.free(chat(user("Write to anna.b@acme.org about the walrus.")), session="mail")
    stage.free(chat(user("Not for others.")), session="other")
    with doing(stage, "Search, export, share after redaction") as page:
        page.keyboard.press("/")
        page.get_by_placeholder(re.compile("^Words, or a filter")).press_sequentially("walrus")
        expect(page.get_by_role("row", name="Not for others.")).to_have_count(0)
        page.get_by_role("button", name="Share, import and delete").click()
        page.get_by_role("menuitem", name="Share what the filter shows…").click()
        found = page.get_by_role("table", name="What is replaced")
        expect(found.get_by_role("row", name="e-mail address")).to_contain_text("person-1@example.com")
        with page.expect_download() as saving:
            page.get_by_role("button", name="Save file").click()
        text = saving.value.path().read_text("utf-8")
    assert "walrus" in text
    assert [each for each in ("anna.b@acme.org", "Not for others") if each in text] == []


def test_translated_client(stage: PageStage) -> None:
    """The number of losses in the list was no way to them."""
    stage.person.put("/api/interception", {"mode": "off"})
    turns = [{"role": "user", "content": "Speak another language."}]
    body = {"model": "m", "max_tokens": 50, "top_k": 5, "messages": turns}
    assert stage.desk.ask(body, "translated", "anthropic").result(30).status == 200
    with doing(stage, "Translated client") as page:
        row = page.get_by_role("row", name="Speak another language.")
        row.get_by_title("not carried by the translation").click()
        expect(page.get_by_role("tabpanel", name="Losses")).to_contain_text("top_k")


def test_own_server(stage: PageStage) -> None:
    """A server that is down said what it lacks; what to write for one's own, and where, was only in the guide."""
    stage.desk.says(stream=True)
    try:
        with doing(stage, "Own server") as page:
            page.get_by_role("button", name="Connect a client").click()
            region = page.get_by_role("region", name="Providers")
            providers = region.get_by_role("listitem")
            expect(providers.filter(has_text="nearby")).to_contain_text("Not running: nothing listens at 127.0.0.1:9")
            expect(providers.filter(has_text="acme")).to_contain_text("ready")
            expect(region).to_contain_text("[providers.mine]")
            page.keyboard.press("Escape")
            page.get_by_role("link", name="Chat", exact=True).click()
            page.get_by_role("button", name=re.compile("^Model: ")).click()
            page.keyboard.type("acme/my-model")
            page.keyboard.press("Enter")
            expect(page.get_by_role("button", name="Model: acme/my-model")).to_be_visible()
            expect(page.get_by_role("textbox", name="Question")).to_be_focused()
            page.keyboard.type("Is it you?")
            page.keyboard.press("Enter")
            expect(page.get_by_role("article", name=re.compile("Is it you"))).to_contain_text("Hello there.")
    finally:
        stage.person.put("/api/chat/topics", {"model": "acme/m"})
    assert json.loads(stage.desk.sent[-1])["model"] == "my-model"


def test_library(stage: PageStage) -> None:
    """Nobody hesitated."""
    stage.person.put("/api/interception", {"mode": "off"})
    stage.desk.says(stream=True)
    program = "import sightline\nprint(sightline.run('A program asks.').text)\n"
    variables = {"SIGHTLINE_DATA": str(stage.folder / "data"), "SIGHTLINE_CONFIG": str(stage.folder / "sightline.toml")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**variables, "JOBS_KEY": "none"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with doing(stage, "Library") as page:
        page.get_by_role("row", name="A program asks.").click()
        expect(card(page, "User 1")).to_contain_text("A program asks.")


def test_remove_everything(stage: PageStage) -> None:
    """It was not said what goes; now it is shown, and asked twice."""
    stage.person.put("/api/interception", {"mode": "off"})
    stage.free(chat(user("Nobody shall know this.")))
    with doing(stage, "Remove everything") as page:
        expect(page.get_by_role("row", name="Nobody shall know this.")).to_be_visible()
        page.get_by_role("button", name="Share, import and delete").click()
        page.get_by_role("menuitem", name="Delete everything…").click()
        page.get_by_role("button", name=re.compile("^Delete .*…$")).click()
        page.get_by_role("button", name="for good").click()
        expect(page.get_by_role("heading", name="Waiting for the first request")).to_be_visible()
    assert stage.person.get("/api/exchanges")["exchanges"] == []
