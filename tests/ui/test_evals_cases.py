"""Cases of evals in a real browser: all that they hold, changed in the editor and in the suite, and followed live."""

import asyncio
import base64
import re

from playwright.sync_api import Page, expect

from tests.eval_page import FILE, SUITE, Scene, cell, save
from tests.page_stage import card, proof, write
from tests.upstream import Play, Talk

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SEEN = """# What is sent besides words.
name: seen
tests:
  - id: label
    input:
      - role: user
        content:
          - {type: text, value: What does the label say?}
          - {type: image, value: label.png}
          - {type: file, value: bill.pdf}
    assertions: [{type: contains, value: Hello}]
  - id: talk
    mode: conversation
    turns:
      - input: Who are you?
        assertions: [{type: contains, value: Hello}]
      - input: [{role: user, content: [{type: text, value: And this?}, {type: image, value: label.png}]}]
        assertions: [{type: contains, value: Madrid}]
  - id: <b>odd</b> & "id"/?#
    input:
      - {role: user, content: Where is it?}
      - role: assistant
        content: I look.
        tool_calls: [{id: c0, tool: find, input: {order: A-17}, output: On its way}]
      - {role: user, content: "<img src=x onerror=alert(1)>"}
    assertions: [{type: contains, value: Hello}]
"""


def after(gate: asyncio.Event, plays: Play) -> Play:
    """An answer that waits."""

    async def waits(talk: Talk) -> None:
        await gate.wait()
        await plays(talk)

    return waits


def filtered(page: Page) -> None:
    expect(page.get_by_role("searchbox", name="Filter the cases")).to_have_value("is:failed")
    expect(page.get_by_text("2 of 3 cases")).to_be_visible()


def test_a_case_shows_pictures_files_calls_and_turns(scene: Scene) -> None:
    scene.suite.write_text(SEEN)
    (scene.folder / "evals/label.png").write_bytes(PNG)
    (scene.folder / "evals/bill.pdf").write_bytes(b"%PDF-1.4 bill")
    run = scene.run("--target", "teacher")
    with scene.stage.visit() as page:
        scene.goto(page, f"/{run}/case?case=label&target=teacher")
        sent = page.get_by_role("region", name="Messages as sent")
        picture = sent.get_by_role("img")
        expect(picture).to_be_visible()
        assert picture.evaluate("async (image) => (await image.decode(), image.naturalWidth)") > 0
        with page.expect_download() as downloading:
            sent.get_by_role("link", name="Download application/pdf").click()
        assert downloading.value.path().read_bytes() == b"%PDF-1.4 bill"
        scene.stage.keep(page, "evals-case-files")

        scene.goto(page, f"/{run}/case?case=talk&target=teacher")
        turns = page.get_by_role("region", name="Turns").get_by_role("listitem")
        expect(turns.filter(has_text="Turn 2")).to_contain_text("failed")
        expect(turns.filter(has_text="Turn 2").get_by_role("img", name=re.compile("Picture"))).to_be_visible()
        expect(page.get_by_role("link", name="Exact wire 2")).to_be_visible()

        scene.goto(page, f"/{run}")
        page.get_by_role("link", name='<b>odd</b> & "id"/?# on teacher').click()
        expect(page.get_by_role("heading", name='<b>odd</b> & "id"/?#')).to_be_visible()
        expect(page.locator("summary", has_text="find")).to_contain_text("A-17")
        expect(page.get_by_role("article", name="user").last).to_contain_text("<img src=x onerror=alert(1)>")


def test_the_way_back_and_a_reload_keep_the_place(scene: Scene) -> None:
    run = scene.run("--target", "teacher", "--target", "parrot")
    with scene.stage.visit() as page:
        scene.goto(page, f"/{run}?filter=is:failed&order=suite")
        filtered(page)
        cell(page, "spain on teacher").click()
        expect(page.get_by_role("heading", name="spain")).to_be_visible()
        page.keyboard.press("p")
        expect(page.get_by_role("heading", name="italy")).to_be_visible()
        page.reload()
        expect(page.get_by_role("heading", name="italy")).to_be_visible()
        parrot = page.get_by_role("radio", name="parrot")
        expect(parrot).to_have_attribute("aria-checked", "true")
        page.keyboard.press("?")
        keys = page.get_by_role("dialog", name="Keyboard shortcuts")
        for label in ("Next case", "Next target", "Exact wire", "Run the case again", "Back to the run"):
            expect(keys.get_by_text(label, exact=True)).to_be_visible()
        page.keyboard.press("Escape")
        expect(keys).to_have_count(0)
        page.keyboard.press("t")
        expect(parrot).to_have_attribute("aria-checked", "false")
        page.go_back()
        expect(parrot).to_have_attribute("aria-checked", "true")
        page.keyboard.press("Escape")
        filtered(page)
        expect(cell(page, "italy on parrot")).to_be_focused()
        expect(page.get_by_role("checkbox", name="Failures first")).not_to_be_checked()
        cell(page, "spain on teacher").click()
        expect(page.get_by_role("heading", name="spain")).to_be_visible()
        page.keyboard.press("Escape")
        expect(cell(page, "spain on teacher")).to_be_focused()


def test_a_change_of_the_suite_is_seen_before_it_is_written_and_taken_back(scene: Scene) -> None:
    run = scene.run("--target", "teacher")
    with scene.stage.visit() as page:
        scene.goto(page, f"/{run}/case?case=france&target=teacher")
        source = page.get_by_role("tree", name="The case in the suite")
        edit = source.get_by_role("button", name="Edit input")
        edit.click()
        page.keyboard.press("Control+a")
        page.keyboard.type("Which town?")
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="Save in the suite")
        expect(dialog).to_contain_text("# The easy one.")
        scene.stage.keep(page, "evals-save")
        dialog.get_by_role("button", name="Cancel").click()
        assert scene.suite.read_text() == SUITE
        edit.click()
        page.keyboard.press("Control+a")
        page.keyboard.type("Which town?")
        page.keyboard.press("Enter")
        save(page, "What is the capital of France?", "Which town?")
        note = page.get_by_role("status").filter(has_text="was changed in")
        expect(note).to_be_visible()
        assert scene.suite.read_text() == SUITE.replace("What is the capital of France?", '"Which town?"')
        note.get_by_role("button", name="Undo").click()
        expect(page.get_by_text(f"{FILE} is as it was.")).to_be_visible()
        expect(note).to_have_count(0)
    assert scene.suite.read_text() == SUITE


def test_an_edited_request_is_graded_and_saved_back(scene: Scene) -> None:
    run = scene.run("--target", "teacher", "--no-cache")
    with scene.stage.look() as shown:
        page = shown.page
        scene.goto(page, f"/{run}/case?case=italy&target=teacher")
        expect(page.get_by_role("heading", name="italy")).to_be_visible()
        page.keyboard.press("Shift+E")
        expect(card(page, "User 1")).to_be_visible()
        write(page, "User 1", " In one word.")
        page.get_by_role("button", name="Send").first.click()
        expect(proof(page)).to_contain_text("sent = shown")
        page.get_by_role("button", name="Back to the case").click()
        expect(page.get_by_role("note").filter(has_text="A person changed the request")).to_be_visible()
        expect(page.get_by_role("article", name="user")).to_contain_text("Italy? In one word.")
        scene.stage.keep(shown.page, "evals-case-edited")
        page.get_by_role("button", name="Save the change in the suite…").click()
        save(page, "What is the capital of Italy?", "What is the capital of Italy? In one word.")
        expect(page.get_by_text("the input of italy was changed in")).to_be_visible()
    written = scene.suite.read_text()
    assert written == SUITE.replace("What is the capital of Italy?", '"What is the capital of Italy? In one word."')


def test_a_run_is_followed_live_and_stopped(scene: Scene) -> None:
    run = scene.run("--target", "teacher", "--no-cache", "--workers", "1")
    upstream = scene.stage.desk.upstream
    gate = asyncio.Event()
    upstream.script = [after(gate, upstream.script[-1])]
    with scene.stage.visit() as page:
        scene.goto(page, f"/{run}")
        page.get_by_role("button", name="Re-run 2").click()
        progress = page.get_by_role("progressbar", name="Progress")
        expect(progress).to_have_attribute("aria-valuenow", "1")
        expect(page.get_by_text("running, 1 of 3")).to_be_visible()
        scene.stage.keep(page, "evals-running")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_text("What is under way is finished first.")).to_be_visible()
        upstream._loop.call_soon_threadsafe(gate.set)
        expect(page.get_by_text("stopped, 2 of 3 done")).to_be_visible()
        expect(page.get_by_text(f"sightline eval run --resume {run}")).to_be_visible()


def test_missing_records_and_an_unreachable_server_are_reported(scene: Scene) -> None:
    run = scene.run("--target", "parrot")
    with scene.stage.look() as shown:
        page = shown.page
        shown.expected += ["status of 404", "net::ERR_FAILED", "Failed to fetch"]
        scene.goto(page, "/e_gone")
        expect(page.get_by_role("heading", name="This run is not on record")).to_be_visible()
        scene.goto(page, f"/{run}/case?case=gone&target=parrot")
        expect(page.get_by_role("heading", name="This case is not on record")).to_be_visible()
        scene.goto(page, "/trend?suite=gone.yaml")
        expect(page.get_by_role("heading", name="No runs of this suite")).to_be_visible()
        page.route("**/api/evals?**", lambda route: route.abort())
        scene.goto(page, "")
        expect(page.get_by_role("heading", name="Evals could not be loaded")).to_be_visible()
        scene.stage.keep(shown.page, "evals-gone")
        page.unroute("**/api/evals?**")
        page.get_by_role("button", name="Try again").click()
        expect(page.get_by_role("row", name=run)).to_be_visible()
