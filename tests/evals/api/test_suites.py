from pathlib import Path

from sightline.store.entries import Entry
from tests.evals.api.eval_desk import EvalDesk, told
from tests.recordings import exchange
from tests.store.traffic import NOON, chat_body, chat_stream
from tests.upstream import Upstream

PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5Erk"
    "Jggg=="
)
SEEN = (
    b'{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"On 2026-01-02, what is this? '
    b'sk-planted-123456"},{"type":"image_url","image_url":{"url":"' + PICTURE.encode() + b'"}}]}]}'
)


async def record(desk: EvalDesk, *exchanges: list[Entry]) -> None:
    for entries in exchanges:
        desk.stage.stage.store.record(entries)
    await desk.stage.stage.store.settle()


def test_the_suites_of_the_folder_are_listed_with_what_is_wrong_with_them(tmp_path: Path) -> None:
    async def story(desk: EvalDesk, _upstream: Upstream) -> None:
        (desk.root / "evals" / "deep").mkdir()
        (desk.root / "evals" / "deep" / "b.yaml").write_text("tests: []")
        (desk.root / "evals" / "note.md").write_text("no suite")
        (desk.root / "evals" / "place.yaml").write_text("tests: [{id: a, criteria: x, input: '${{ PLACE }}'}]")
        shown = await desk.call("evals/suites")
        assert shown["folder"] == "evals"
        assert [(each["file"], each["cases"], len(each["problems"])) for each in shown["files"]] == [
            ("evals/capitals.yaml", 3, 0),
            ("evals/place.yaml", 1, 0),
            ("evals/deep/b.yaml", None, 1),
        ]

    told(story, tmp_path)


def test_a_case_is_made_of_an_exchange_looked_at_and_saved_with_its_files(tmp_path: Path) -> None:
    async def story(desk: EvalDesk, _upstream: Upstream) -> None:
        await record(desk, exchange("x_1", SEEN, chat_stream("A dot.")))
        made = await desk.call("evals/make", {"exchanges": ["x_1"], "name": "dot"})
        assert (made["name"], made["turns"], made["suites"]) == ("dot", 1, ["evals/capitals.yaml"])
        assert made["placeholders"] == {"date": "2026-01-02"}
        assert "sk-planted" not in made["yaml"]
        (file,) = made["files"]
        assert file in made["yaml"]
        order = {"file": "capitals.yaml", "yaml": made["yaml"], "exchanges": ["x_1"], "name": "dot"}
        saved = await desk.call("evals/save", order)
        assert (saved["file"], saved["cases"]) == ("evals/capitals.yaml", ["dot"])
        assert (desk.root / "evals" / file).read_bytes().startswith(b"\x89PNG")
        assert await desk.call("evals/save", order) == (409, 'evals/capitals.yaml has a case "dot" already')
        new = await desk.call("evals/save", order | {"file": "evals/new.yaml"})
        assert new["file"] == "evals/new.yaml"
        assert len((await desk.call("evals/suites"))["files"]) == 2

    told(story, tmp_path)


def test_a_conversation_is_held_live_from_a_turn_on(tmp_path: Path) -> None:
    async def story(desk: EvalDesk, _upstream: Upstream) -> None:
        talk = exchange("x_1", chat_body("Hi", "Hello.", "And now?"), chat_stream("Now."), at=NOON)
        await record(desk, talk)
        made = await desk.call("evals/make", {"exchanges": ["x_1"], "from_turn": 2})
        assert (made["turns"], made["name"], made["files"], made["placeholders"]) == (2, "recorded-1", [], {})
        assert len(made["case"]["turns"]) == 1
        assert (await desk.call("evals/make", {"exchanges": ["x_1"], "from_turn": 9}))[1].endswith("no turn 9")
        assert (await desk.call("evals/make", {"exchanges": ["x_9"]}))[1] == "there is no exchange 'x_9'"
        order = {"file": "evals/capitals.yaml", "yaml": made["yaml"]}
        assert (await desk.call("evals/save", order))["cases"] == ["recorded-1"]

    told(story, tmp_path)


def test_nothing_is_saved_outside_of_the_folder(tmp_path: Path) -> None:
    async def story(desk: EvalDesk, _upstream: Upstream) -> None:
        text = "tests: [{id: a, criteria: x, input: hi}]"
        for file in ("../out.yaml", "/tmp/out.yaml", "evals/../../out.yaml", "evals", ""):
            status, _ = await desk.call("evals/save", {"file": file, "yaml": text})
            assert status == 422
        status, message = await desk.call("evals/save", {"file": "a.yaml", "yaml": "tests: ["})
        assert status == 422
        assert message.startswith("evals/a.yaml:1:")

    told(story, tmp_path)


def test_a_change_is_written_back_unless_the_file_is_another(tmp_path: Path) -> None:
    async def story(desk: EvalDesk, _upstream: Upstream) -> None:
        await desk.run("e_1")
        change = {"case": "spain", "path": ["input"], "value": "What is the old capital of Spain?"}
        saved = await desk.call("evals/e_1/case/save", change)
        assert saved["cases"] == ["spain"]
        assert 'input: "What is the old capital of Spain?"' in desk.file.read_text()
        status, _ = await desk.call("evals/e_1/case/save", change)
        assert status == 409
        again = change | {"path": ["assertions", 0, "value"], "value": "Toledo", "sha256": saved["sha256"]}
        assert (await desk.call("evals/e_1/case/save", again))["file"] == "evals/capitals.yaml"
        assert (await desk.call("evals/e_1/case"))[0] == 404
        assert (await desk.call("evals/e_1/case/save", change | {"case": "rome"}))[0] == 404

    told(story, tmp_path)


def test_a_change_is_looked_at_before_and_taken_back_behind(tmp_path: Path) -> None:
    async def story(desk: EvalDesk, _upstream: Upstream) -> None:
        desk.file.write_text(desk.file.read_text() + "# the end\n")
        await desk.run("e_1")
        text = desk.file.read_text()
        change = {"case": "spain", "path": ["input"], "value": "Hola?"}
        told_ = await desk.call("evals/e_1/case/save", change | {"dry": True})
        assert (told_["change"]["line"], told_["file"]) == (8, "evals/capitals.yaml")
        assert "What is the capital of Spain?" in told_["change"]["before"]
        assert "Hola?" in told_["change"]["after"]
        assert desk.file.read_text() == text
        saved = await desk.call("evals/e_1/case/save", change)
        assert (saved["change"], desk.file.read_text().endswith("# the end\n")) == (told_["change"], True)
        taken = {"case": "spain", "sha256": saved["sha256"]}
        assert (await desk.call("evals/e_1/case/undo", taken))["cases"] == ["spain"]
        assert desk.file.read_text() == text
        assert await desk.call("evals/e_1/case/undo", taken) == (409, "this change cannot be taken back any more")
        again = await desk.call("evals/e_1/case/save", change)
        desk.file.write_text(text + "# somebody else\n")
        status, _ = await desk.call("evals/e_1/case/undo", {"case": "spain", "sha256": again["sha256"]})
        assert status == 409

    told(story, tmp_path)


def test_a_suite_elsewhere_is_not_written_to(tmp_path: Path) -> None:
    async def story(desk: EvalDesk, _upstream: Upstream) -> None:
        desk.file.rename(desk.root / "elsewhere.yaml")
        await desk.stage.run(run="e_1")
        change = {"case": "spain", "path": ["input"], "value": "x"}
        status, message = await desk.call("evals/e_1/case/save", change)
        assert (status, message) == (409, "capitals.yaml is not below the folder 'evals'")
        assert (await desk.call("evals/e_1/case?case=spain"))["source"] is None

    told(story, tmp_path)
