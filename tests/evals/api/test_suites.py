import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from sightline.errors import Fault
from sightline.evals.api.suites import changes_of, diff_lines, find_edit
from sightline.model.exchange import AttemptStarted, Edited
from sightline.model.json import Json
from sightline.model.parts import Image, Link, Text
from sightline.model.request import Message
from sightline.store.entries import BodyEntry, Entry
from tests.evals.api.eval_desk import EvalDesk, at_desk
from tests.recordings import exchange, store_with
from tests.store.traffic import NOON, chat_body, chat_stream, noted, sha256
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


@at_desk
async def test_the_suites_of_the_folder_are_listed_with_what_is_wrong_with_them(desk: EvalDesk) -> None:
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


NEW = "tests:\n  - id: peru\n    input: The capital of Peru?\n    assertions: [{type: contains, value: Lima}]\n"


@at_desk
async def test_a_suite_is_written_where_the_command_finds_it_and_what_is_wrong_is_told_by_line(desk: EvalDesk) -> None:
    bad = NEW.replace("contains", "contians")
    checked = await desk.call("evals/suite", {"file": "peru.yaml", "yaml": bad}, "PUT")
    assert (checked["sha256"], checked["cases"]) == ("", None)
    (problem,) = checked["problems"]
    assert (problem["place"]["line"], "contians" in problem["message"]) == (4, True)
    assert not (desk.root / "evals" / "peru.yaml").exists()
    dry = await desk.call("evals/suite", {"file": "peru.yaml", "yaml": NEW, "dry": True}, "PUT")
    assert (dry["sha256"], dry["cases"], dry["problems"]) == ("", 1, [])
    saved = await desk.call("evals/suite", {"file": "peru.yaml", "yaml": NEW}, "PUT")
    assert saved["file"] == "evals/peru.yaml"
    assert (desk.root / "evals" / "peru.yaml").read_text() == NEW
    opened = await desk.call("evals/suite?file=evals/peru.yaml")
    assert (opened["yaml"], opened["sha256"], opened["cases"]) == (NEW, saved["sha256"], 1)
    assert (opened["targets"], opened["usual"]) == (["fixed"], ["acme/m"])
    changed = NEW.replace("Lima", "Lima or Cusco")
    assert await desk.call("evals/suite", {"file": "peru.yaml", "yaml": changed}, "PUT") == (
        409,
        "there is a file evals/peru.yaml already",
    )
    body = {"file": "peru.yaml", "yaml": changed, "sha256": saved["sha256"]}
    assert (await desk.call("evals/suite", body, "PUT"))["sha256"]
    status, message = await desk.call("evals/suite", body, "PUT")
    assert (status, "changed since" in message) == (409, True)
    command = NEW.replace("{type: contains, value: Lima}", "{type: code-grader, command: [rm, x]}")
    status, message = await desk.call("evals/suite", {"file": "other.yaml", "yaml": command}, "PUT")
    assert (status, "would run a command" in message) == (422, True), "the page decides nothing about commands"
    for file in ("../x.yaml", "x.txt", "evals/nobody.yaml"):
        assert (await desk.call(f"evals/suite?file={file}"))[0] in (404, 422)


@at_desk
async def test_a_suite_is_run_on_the_targets_that_were_picked(desk: EvalDesk) -> None:
    begun = await desk.call("evals", {"file": "capitals.yaml", "targets": ["fixed", "acme/m"], "trials": 1})
    assert (begun["targets"], begun["of"], begun["state"]) == (["fixed", "acme/m"], 6, "running")
    await asyncio.gather(*desk.evals.reruns.under_way)
    shown = await desk.call(f"evals/{begun['run']}")
    assert (shown["state"], shown["done"]) == ("ended", 6)
    (spain,) = [row for row in shown["matrix"] if row["case"] == "spain"]
    fixed, acme = (cell["trials"][0] for cell in spain["cells"])
    assert (fixed["answer"], fixed["reason"]) == ("Paris, Rome, Madrid.", "")
    assert acme["answer"]
    assert "Madrid" in acme["reason"], "what did not hold, in one look"
    for body, words in (
        ({"file": "capitals.yaml", "targets": ["nobody-9"]}, "neither a target nor a model"),
        ({"file": "capitals.yaml", "cases": ["nothing-*"]}, "no case of evals/capitals.yaml is selected"),
    ):
        status, message = await desk.call("evals", body)
        assert (status, words in message) == (422, True), message


@at_desk
async def test_a_case_is_made_of_an_exchange_looked_at_and_saved_with_its_files(desk: EvalDesk) -> None:
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


@at_desk
async def test_a_conversation_is_held_live_from_a_turn_on(desk: EvalDesk) -> None:
    talk = exchange("x_1", chat_body("Hi", "Hello.", "And now?"), chat_stream("Now."), at=NOON)
    await record(desk, talk)
    made = await desk.call("evals/make", {"exchanges": ["x_1"], "from_turn": 2})
    assert (made["turns"], made["name"], made["files"], made["placeholders"]) == (2, "recorded-1", [], {})
    assert len(made["case"]["turns"]) == 1
    assert (await desk.call("evals/make", {"exchanges": ["x_1"], "from_turn": 9}))[1].endswith("no turn 9")
    assert (await desk.call("evals/make", {"exchanges": ["x_9"]}))[1] == "there is no exchange 'x_9'"
    order = {"file": "evals/capitals.yaml", "yaml": made["yaml"]}
    assert (await desk.call("evals/save", order))["cases"] == ["recorded-1"]


@at_desk
async def test_nothing_is_saved_outside_of_the_folder(desk: EvalDesk) -> None:
    text = "tests: [{id: a, criteria: x, input: hi}]"
    for file in ("../out.yaml", "/tmp/out.yaml", "evals/../../out.yaml", "evals", ""):
        status, _ = await desk.call("evals/save", {"file": file, "yaml": text})
        assert status == 422
    status, message = await desk.call("evals/save", {"file": "a.yaml", "yaml": "tests: ["})
    assert status == 422
    assert message.startswith("evals/a.yaml:1:")


@at_desk
async def test_a_change_is_written_back_unless_the_file_is_another(desk: EvalDesk) -> None:
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


@at_desk
async def test_a_change_is_looked_at_before_and_taken_back_behind(desk: EvalDesk) -> None:
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
    assert await desk.call("evals/e_1/case/undo", taken) == (409, "this change can no longer be undone")
    again = await desk.call("evals/e_1/case/save", change)
    desk.file.write_text(text + "# somebody else\n")
    status, _ = await desk.call("evals/e_1/case/undo", {"case": "spain", "sha256": again["sha256"]})
    assert status == 409


@at_desk
async def test_a_suite_elsewhere_is_not_written_to(desk: EvalDesk) -> None:
    desk.file.rename(desk.root / "elsewhere.yaml")
    await desk.stage.run(run="e_1")
    change = {"case": "spain", "path": ["input"], "value": "x"}
    status, message = await desk.call("evals/e_1/case/save", change)
    assert (status, message) == (409, "capitals.yaml is not below the folder 'evals'")
    assert (await desk.call("evals/e_1/case?case=spain"))["source"] is None


SYSTEM = Message("system", (Text("Be brief."),))
SENT_BACK_PICTURE = Image(Link("https://example.com/a.png"))


def said(*words: str) -> Message:
    return Message("user", tuple(Text(each) for each in words))


@pytest.mark.parametrize(
    ("source", "asked", "sent", "changes"),
    [
        ({"input": "Hi"}, [said("Hi")], [said("Ho")], [(("input",), "Ho")]),
        ({"input": "Hi"}, [SYSTEM, said("Hi")], [SYSTEM, said("Ho")], [(("input",), "Ho")]),
        (
            {"input_messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]},
            [SYSTEM, said("Hi")],
            [Message("system", (Text("Be long."),)), said("Ho")],
            [(("input_messages", 0, "content"), "Be long."), (("input_messages", 1, "content"), "Ho")],
        ),
        (
            {"input": [{"content": [{"type": "image", "value": "a.png"}, {"type": "text", "value": "Hi"}]}]},
            [Message("user", (SENT_BACK_PICTURE, Text("Hi")))],
            [Message("user", (SENT_BACK_PICTURE, Text("Ho")))],
            [(("input", 0, "content", 1, "value"), "Ho")],
        ),
        (
            {"input": "Where is {{ order }}?", "vars": {"order": "A-17", "unused": "now", "count": 3}},
            [said("Where is A-17?")],
            [said("Where is A-17 now?")],
            [(("input",), "Where is {{ order }} now?")],
        ),
        (
            {"input": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]},
            [said("Hi")],
            [said("Ho")],
            [(("input", 0, "content", 0, "text"), "Ho")],
        ),
    ],
)  # fmt: skip
def test_words_that_were_changed_are_values_of_the_case(
    source: Json, asked: Sequence[Message], sent: Sequence[Message], changes: object
) -> None:
    assert changes_of(source, asked, sent) == changes


@pytest.mark.parametrize(
    ("source", "asked", "sent", "why"),
    [
        ({"input": "Hi"}, [said("Hi")], [said("Hi")], "are unchanged"),
        ({"input": "Hi"}, [said("Hi")], [said("Hi"), said("Ho")], "messages were added"),
        ({"input": "Hi"}, [said("Hi")], [said("Hi", "Ho")], "parts of a message were added"),
        (
            {"input": "Hi"},
            [SYSTEM, said("Hi")],
            [Message("system", (Text("x"),)), said("Hi")],
            "not one text in the case",
        ),
        ({"turns": []}, [said("Hi")], [said("Ho")], "not one text in the case"),
        (None, [said("Hi")], [said("Ho")], "not one text in the case"),
        ({"input": ["Hi"]}, [said("Hi")], [said("Ho")], "not one text in the case"),
        ({"input": [{"role": "user", "content": "a"}] * 2}, [said("Hi")], [said("Ho")], "not one text in the case"),
        (
            {"input": [{"role": "user", "content": [{"type": "image", "value": "a.png"}]}]},
            [Message("user", (SENT_BACK_PICTURE,))],
            [Message("user", (Image(Link("https://example.com/b.png")),))],
            "more than text",
        ),
    ],
)
def test_what_is_no_value_of_the_case_is_refused_with_a_way_out(
    source: Json, asked: Sequence[Message], sent: Sequence[Message], why: str
) -> None:
    with pytest.raises(Fault, match=why) as caught:
        changes_of(source, asked, sent)
    assert caught.value.status == 409
    assert "make a case" in caught.value.hint


async def test_an_exchange_that_a_person_changed_is_found(tmp_path: Path) -> None:
    plain = exchange("x_1", chat_body("Hi"), chat_stream("Ho."), at=NOON)
    edited = exchange("x_2", chat_body("Hi"), chat_stream("Ho."), at=NOON)
    async with store_with(
        tmp_path, plain, [*edited, *noted("x_2", [Edited("set_text", "aa", "bb")], first=50)]
    ) as store:
        found = await find_edit(store, ["x_2", "x_1", "x_gone"], NOON)
        assert found is not None
        assert found.id == "x_2"
        assert await find_edit(store, ["x_1"], NOON) is None
        assert await find_edit(store, [], NOON) is None


@at_desk
async def test_what_was_changed_on_its_way_is_shown_and_written_into_the_case(
    desk: EvalDesk, upstream: Upstream
) -> None:
    await desk.run("e_1")
    where = {"case": "france", "target": "acme"}
    assert (await desk.call("evals/e_1/case/adopt", where))[1] == "no request of this trial was edited"
    before = await desk.call("evals/e_1/case?case=france")
    body = next(seen.body for seen in upstream.seen if b"France" in seen.body)
    other = body.replace(b"the capital", b"the old capital")
    sent = [Edited("set_text", "aa", "bb"), AttemptStarted(2, "acme", sha256(other), model="m", dialect="openai-chat")]
    store = desk.stage.stage.store
    store.record([BodyEntry(sha256(other), other), *noted(before["exchanges"][0], sent, first=50)])
    await store.settle()
    shown = await desk.call("evals/e_1/case?case=france")
    assert (before["is_edited"], shown["is_edited"]) == (False, True)
    assert shown["messages"][0]["blocks"][0]["text"] == "What is the old capital of France?"
    assert shown["answer"] == before["answer"]

    text = desk.file.read_text()
    wanted = where | {"sha256": shown["source_sha256"]}
    proposed = await desk.call("evals/e_1/case/adopt", wanted | {"dry": True})
    assert "the old capital of France" in proposed["change"]["after"]
    assert desk.file.read_text() == text
    saved = await desk.call("evals/e_1/case/adopt", wanted)
    assert desk.file.read_text() == text.replace(
        "What is the capital of France?", '"What is the old capital of France?"'
    ) or desk.file.read_text() == text.replace("the capital of France", "the old capital of France")
    undone = await desk.call("evals/e_1/case/undo", {"case": "france", "sha256": saved["sha256"]})
    assert (desk.file.read_text(), undone["sha256"]) == (text, shown["source_sha256"])


def test_diff_includes_only_the_lines_around_a_change() -> None:
    before = "".join(f"{number}\n" for number in range(1, 21)).encode()
    change = diff_lines(before, before.replace(b"10\n", b"ten\nand a half\n"))
    assert change.line == 7
    assert change.before == "7\n8\n9\n10\n11\n12\n13\n"
    assert change.after == "7\n8\n9\nten\nand a half\n11\n12\n13\n"


def test_what_is_added_at_the_end_or_taken_from_it_has_no_lines_behind() -> None:
    added = diff_lines(b"a\nb", b"a\nb\nc")
    assert (added.line, added.before, added.after) == (1, "a\nb", "a\nb\nc")
    taken = diff_lines(b"a\nb\nb\n", b"a\nb\n")
    assert (taken.before, taken.after) == ("a\nb\nb\n", "a\nb\n")
    same = diff_lines(b"a\n", b"a\n")
    assert same.before == same.after
