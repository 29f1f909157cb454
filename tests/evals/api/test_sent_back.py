import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from sightline.errors import Fault
from sightline.evals.api.calls import SentBack, changes_of
from sightline.model.exchange import AttemptStarted, Edited
from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.parts import Image, Link, Text
from sightline.store.entries import BodyEntry
from tests.evals.api.eval_desk import EvalDesk, told
from tests.recordings import exchange, store_with
from tests.store.traffic import NOON, chat_body, chat_stream, noted, sha256
from tests.upstream import Upstream

SYSTEM = Message("system", (Text("Be brief."),))
PICTURE = Image(Link("https://example.com/a.png"))


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
            [Message("user", (PICTURE, Text("Hi")))],
            [Message("user", (PICTURE, Text("Ho")))],
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
        ({"input": "Hi"}, [said("Hi")], [said("Hi")], "are as they were"),
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
            [Message("user", (PICTURE,))],
            [Message("user", (Image(Link("https://example.com/b.png")),))],
            "more than words",
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


def test_an_exchange_that_a_person_changed_is_found(tmp_path: Path) -> None:
    async def story() -> None:
        plain = exchange("x_1", chat_body("Hi"), chat_stream("Ho."), at=NOON)
        edited = exchange("x_2", chat_body("Hi"), chat_stream("Ho."), at=NOON)
        async with store_with(
            tmp_path, plain, [*edited, *noted("x_2", [Edited("set_text", "aa", "bb")], first=50)]
        ) as store:
            back = SentBack(store, lambda: NOON)
            found = await back.find_edit(["x_2", "x_1", "x_gone"])
            assert found is not None
            assert found.id == "x_2"
            assert await back.find_edit(["x_1"]) is None
            assert await back.find_edit([]) is None

    asyncio.run(story())


def test_what_was_changed_on_its_way_is_shown_and_written_into_the_case(tmp_path: Path) -> None:
    async def story(desk: EvalDesk, upstream: Upstream) -> None:
        await desk.run("e_1")
        where = {"case": "france", "target": "acme"}
        assert (await desk.call("evals/e_1/case/adopt", where))[1] == "no request of this trial was edited"
        before = await desk.call("evals/e_1/case?case=france")
        body = next(seen.body for seen in upstream.seen if b"France" in seen.body)
        other = body.replace(b"the capital", b"the old capital")
        sent = [
            Edited("set_text", "aa", "bb"),
            AttemptStarted(2, "acme", sha256(other), model="m", dialect="openai-chat"),
        ]
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

    told(story, tmp_path)
