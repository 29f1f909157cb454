"""Evals in a real browser: a suite that was run, its cases, what graders saw, and cases made of what was recorded."""

import re

from playwright.sync_api import expect

from tests.browser import NARROW, Shown
from tests.chat_page import opened
from tests.eval_page import FILE, SUITE, Scene, cell, save
from tests.page_stage import chat, proof, system, user

OVERLAP = """(cell, words) => {
  cell.textContent = words;
  const text = document.createRange();
  text.selectNodeContents(cell);
  const [inside, around] = [text.getBoundingClientRect(), cell.getBoundingClientRect()];
  const end = around.right - parseFloat(getComputedStyle(cell).paddingRight);
  return Math.max(around.left - inside.left, inside.right - end);
}"""


def fits(shown: Shown) -> None:
    """Nothing sticks out to the side."""
    sizes = shown.page.evaluate("[document.scrollingElement.scrollWidth, innerWidth]")
    assert sizes[0] <= sizes[1], sizes


def test_empty_list_shows_how_to_run_the_first_eval(scene: Scene) -> None:
    with scene.stage.visit() as page:
        page.get_by_role("link", name="Evals").click()
        expect(page.get_by_role("heading", name="No evals yet")).to_be_visible()
        expect(page.get_by_text("sightline eval run evals/first.yaml")).to_be_visible()
        scene.stage.keep(page, "evals-empty")
        scene.run("--target", "parrot")
        expect(page.get_by_role("link", name="capitals", exact=True)).to_be_visible()
        for words in ("cost unknown", "$0.0123 + 12 unknown"):
            assert page.locator(".eval-table tbody td:nth-child(5)").evaluate(OVERLAP, words) <= 0, words
        scene.stage.keep(page, "evals-cost-unknown")


def test_a_run_is_looked_through_by_keyboard_with_failures_first(scene: Scene) -> None:
    run = scene.run("--target", "teacher", "--target", "parrot")
    with scene.stage.visit() as page:
        scene.goto(page, "")
        expect(page.get_by_role("row", name=run)).to_be_visible()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="capitals")).to_be_visible()
        assert page.url.endswith(f"#/evals/{run}")
        expect(page.get_by_role("img", name=re.compile("Mean score of teacher: 0.5, 95 % interval"))).to_be_visible()
        rows = page.get_by_role("region", name="Cases").get_by_role("row")
        expect(rows).to_have_count(4)
        expect(rows.nth(1)).to_contain_text("spain")
        scene.stage.keep(page, "evals-run")

        page.keyboard.press("/")
        page.keyboard.type("is:passed target:teacher")
        expect(rows).to_have_count(2)
        expect(page.get_by_text("1 of 3 cases")).to_be_visible()
        page.keyboard.press("Escape")
        expect(rows).to_have_count(4)
        page.keyboard.press("Escape")
        page.keyboard.press("j")
        expect(cell(page, "italy on teacher: failed, score 0.5")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="italy")).to_be_visible()
        expect(page.get_by_role("article", name="system")).to_contain_text("You are a teacher.")
        expect(page.get_by_role("region", name="Answer")).to_contain_text("Hello there.")
        graders = page.get_by_role("list", name="Graders")
        expect(graders.get_by_role("button", name="failed contains-Rome")).to_have_attribute("aria-expanded", "true")
        expect(graders).to_contain_text("matches /^Hello/")
        scene.stage.keep(page, "evals-case")
        page.keyboard.press("n")
        expect(page.get_by_role("heading", name="italy")).to_be_visible()
        expect(page.get_by_role("radio", name="parrot")).to_have_attribute("aria-checked", "true")
        page.keyboard.press("p")
        page.get_by_role("link", name="Exact wire").click()
        expect(page.get_by_role("tab", name="Wire")).to_have_attribute("aria-selected", "true")
        page.go_back()
        expect(page.get_by_role("main", name="Case")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("region", name="Cases")).to_be_visible()


def test_a_case_is_changed_in_its_suite_and_run_again(scene: Scene) -> None:
    run = scene.run("--target", "teacher")
    with scene.stage.look() as shown:
        page = shown.page
        scene.goto(page, f"/{run}/case?case=italy&target=teacher")
        source = page.get_by_role("tree", name="The case in the suite")
        for fold in source.get_by_role("button", expanded=False).all():
            fold.click()
        source.get_by_role("button", name='Edit value: "Rome"').click()
        page.keyboard.press("Control+a")
        page.keyboard.type("there")
        page.keyboard.press("Enter")
        save(page, "Rome", "there")
        expect(page.get_by_text("assertions[0].value was changed")).to_be_visible()
        assert scene.suite.read_text() == SUITE.replace("value: Rome", "value: there")
        page.get_by_role("button", name="Run it again").click()
        expect(page.get_by_text("passed", exact=False).first).to_be_visible()
        expect(page.get_by_role("list", name="Graders")).to_contain_text('contains "there"')
        assert run not in page.url

        # A run that is over: a case of one that ends would be read again, with what is in the file by then.
        over = scene.run("--target", "teacher")
        with page.expect_response(lambda response: f"{over}/case" in response.url):
            scene.goto(page, f"/{over}/case?case=italy&target=teacher")
        scene.suite.write_text(scene.suite.read_text() + "# somebody else\n")
        shown.expected.append("status of 409")
        source.get_by_role("button", name='Edit id: "italy"').click()
        expect(page.locator("input:focus, textarea:focus")).to_have_count(1)
        page.keyboard.type("x")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("The file was changed in the meantime")
        page.get_by_role("button", name="Load it again").click()
        expect(page.get_by_role("alert")).to_have_count(0)


def test_a_request_is_held_edited_and_its_answer_graded(scene: Scene) -> None:
    run = scene.run("--target", "teacher", "--no-cache")
    with scene.stage.look() as shown:
        page = shown.page
        scene.goto(page, f"/{run}/case?case=france&target=teacher")
        expect(page.get_by_role("heading", name="france")).to_be_visible()
        page.get_by_role("button", name="Edit and re-run").click()
        expect(proof(page)).to_contain_text("shown")
        page.get_by_role("button", name="Send").first.click()
        expect(proof(page)).to_contain_text("sent = shown")
        scene.goto(page, f"/{run}")
        expect(cell(page, "france on teacher: passed")).to_be_visible()


def test_two_targets_and_two_runs_are_compared_and_the_suite_has_a_trend(scene: Scene) -> None:
    first = scene.run("--target", "teacher", "--target", "parrot")
    scene.run("--target", "parrot")
    with scene.stage.visit(dark=True) as page:
        scene.goto(page, f"/{first}")
        page.get_by_role("link", name="Compare targets").click()
        expect(page.get_by_role("img", name=re.compile(r"Difference of the mean scores: 0\.5, 95 %"))).to_be_visible()
        expect(page.get_by_role("img", name=re.compile("^A: teacher: 3 scores, mean 0.5"))).to_be_visible()
        expect(page.get_by_role("img", name=re.compile("^B: parrot: 3 scores, mean 1"))).to_be_visible()
        expect(page.get_by_role("link", name="B: spain, 1")).to_be_visible()
        scene.stage.keep(page, "evals-compare-dark")
        page.get_by_role("button", name="Swap").click()
        expect(page.get_by_role("img", name=re.compile("^A: parrot"))).to_be_visible()

        scene.goto(page, "")
        expect(page.get_by_role("row", name=first)).to_be_visible()
        page.keyboard.press("x")
        page.keyboard.press("j")
        page.keyboard.press("x")
        page.keyboard.press("c")
        expect(page.get_by_role("heading", name="Two evals")).to_be_visible()
        scene.goto(page, f"/trend?suite={FILE}")
        expect(page.get_by_role("group", name=re.compile("^Trend: "))).to_be_visible()
        point = page.get_by_role("link", name=re.compile("^teacher, .* Mean score: 0.5")).first
        point.focus()
        scene.stage.keep(page, "evals-trend-dark")
        page.keyboard.press("Enter")
        expect(page.get_by_role("region", name="Cases")).to_be_visible()


def test_a_recorded_exchange_becomes_a_case(scene: Scene) -> None:
    asked = chat(
        system("Today is 2026-11-15."), user("Hello?"), {"role": "assistant", "content": "Yes."}, user("Who are you?")
    )
    scene.stage.desk.says()
    scene.stage.free(asked)
    with scene.stage.visit() as page:
        exchange = scene.stage.person.get("/api/exchanges?limit=1")["exchanges"][0]["id"]
        scene.stage.open(page, exchange)
        expect(page.get_by_role("button", name="Make a case of this")).to_be_visible()
        page.keyboard.press("Shift+M")
        dialog = page.get_by_role("dialog", name="Make a case of this")
        text = dialog.get_by_role("textbox", name="The case as YAML")
        expect(text).to_contain_text("Who are you?")
        expect(dialog.get_by_text("1 placeholder")).to_be_visible()
        scene.stage.keep(page, "evals-make")
        dialog.get_by_role("combobox", name="Begins").select_option("2")
        expect(text).to_contain_text("turns:")
        dialog.get_by_role("combobox", name="Suite").select_option(FILE)
        dialog.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_text(f"The case is in {FILE}.")).to_be_visible()
        expect(dialog).to_have_count(0)
    written = scene.suite.read_text()
    assert written.startswith(SUITE.rstrip("\n"))
    assert "mode: conversation" in written
    assert "Today is {{ date }}." in written


def test_an_answer_of_the_chat_becomes_a_case_in_a_new_suite(scene: Scene) -> None:
    with scene.stage.look() as shown:
        talk = opened(shown, scene.stage.desk.server)
        talk.ask("Hello?")
        pair = talk.ask("And who are you?")
        pair.hover()
        pair.get_by_role("button", name="More for this pair").click()
        shown.page.get_by_role("menuitem", name="Make a case of this").click()
        dialog = talk.dialog("Make a case of this")
        text = dialog.get_by_role("textbox", name="The case as YAML")
        expect(text).to_contain_text("expected_output: Hello there.")
        dialog.get_by_role("combobox", name="Begins").select_option("2")
        expect(text).to_contain_text("mode: conversation")
        dialog.get_by_role("combobox", name="Suite").select_option(label="A new file…")
        name = dialog.get_by_role("textbox", name="Name of the file")
        expect(name).to_have_value("recorded.yaml")
        name.fill("")
        expect(dialog.get_by_role("button", name="Save", exact=True)).to_be_disabled()
        name.fill("greetings")
        dialog.get_by_role("button", name="Save", exact=True).click()
        expect(shown.page.get_by_text("The case is in evals/greetings.yaml.")).to_be_visible()
    written = (scene.folder / "evals/greetings.yaml").read_text().replace('"', "")
    fixed, live = written.split("turns:")
    assert "content: Hello?" in fixed
    assert "content: Hello there." in fixed
    assert "input: And who are you?" in live
    assert "Hello?" not in live


def test_it_fits_on_a_phone(scene: Scene) -> None:
    run = scene.run("--target", "teacher", "--target", "parrot", "--trials", "2")
    with scene.stage.look(size=NARROW) as shown:
        page = shown.page
        places = {
            "": "Evals",
            f"/{run}": "Eval",
            f"/{run}/case?case=italy&target=teacher": "Case",
            f"/{run}/compare/{run}?a=teacher&b=parrot": "Two evals compared",
            f"/trend?suite={FILE}": "Trend",
        }
        for where, name in places.items():
            scene.goto(page, where)
            expect(page.get_by_role("main", name=name, exact=True)).to_be_visible()
            fits(shown)
            scene.stage.keep(shown.page, f"evals-{name.lower().replace(' ', '-')}-narrow")


def test_a_suite_is_written_run_on_two_targets_and_its_answers_compared(scene: Scene) -> None:
    (scene.folder / "evals" / "rome.yaml").unlink(missing_ok=True)
    with scene.stage.visit() as page:
        scene.goto(page, "")
        page.get_by_role("button", name=re.compile("^(Suites…|Run a suite…)$")).click()
        suites = page.get_by_role("dialog", name="Suites")
        expect(suites.get_by_text("evals/capitals.eval.yaml")).to_be_visible()
        suites.get_by_role("button", name="New suite").click()
        new = page.get_by_role("dialog", name="New suite")
        new.get_by_role("textbox", name="Name of the file").fill("rome")
        editor = new.get_by_role("textbox", name="The suite as YAML")
        editor.fill("tests:\n  - id: rome\n    input: The capital of Italy?\n    assertions:\n      - type: contians\n")
        expect(new.get_by_role("list", name="Problems")).to_contain_text("Line 5: ")
        expect(new.get_by_role("button", name="Save and run…")).to_be_disabled()
        editor.fill(
            "tests:\n  - id: rome\n    input: The capital of Italy?\n"
            "    assertions:\n      - type: contains\n        value: Rome\n"
        )
        expect(new.get_by_text("1 case")).to_be_visible()
        new.get_by_role("button", name="Save and run…").click()
        run = page.get_by_role("dialog", name="Run evals/rome.yaml")
        run.get_by_role("checkbox", name="parrot").check()
        run.get_by_role("checkbox", name="teacher").check()
        run.get_by_role("checkbox", name="default").uncheck()
        scene.stage.keep(page, "run-suite")
        run.get_by_role("button", name="Run", exact=True).click()
        expect(cell(page, "rome on parrot: passed")).to_be_visible()
        expect(cell(page, "rome on teacher: failed")).to_be_visible()
        row = page.get_by_role("row", name=re.compile("rome"))
        expect(row).to_contain_text("Hello from Rome and Madrid.")
        expect(row.locator(".cell-answer .bad")).to_contain_text("Rome")
        expect(row.locator(".cell-answer mark").first).to_be_visible()
        scene.stage.keep(page, "matrix-answers")
    assert "value: Rome" in (scene.folder / "evals" / "rome.yaml").read_text(), "where the command finds it"
