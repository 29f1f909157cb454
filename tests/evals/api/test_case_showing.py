import base64
import hashlib
import json
from typing import Any

import pytest

from sightline.errors import Fault
from sightline.evals.api.calls import whole_media
from sightline.evals.api.showing import answer_shown, media_in, messages_shown
from sightline.evals.core.result import SCHEME
from sightline.model.parts import Document, Image, Inline, Link, Text, ToolCall, ToolResult
from sightline.model.request import Message
from sightline.web.bodies import Query
from tests.evals.api.eval_desk import FIXED, EvalDesk, at_desk
from tests.recordings import exchange
from tests.store.traffic import chat_stream

LIVE = """
name: live
tests:
  - id: files
    criteria: x
    conversation_id: g
    tags: [one]
    input:
      - {role: system, content: Be brief.}
      - {role: user, content: [{type: file, value: note.md}, {type: text, value: And France?}]}
    expected_output:
      - role: assistant
        content: "It is:"
        tool_calls: [{tool: find, input: {q: 1}}, {tool: tell, input: words}]
      - {role: assistant, content: [{type: file, value: note.md}]}
    assertions: [{type: contains, value: Paris}]
  - id: talk
    criteria: x
    mode: conversation
    turns:
      - {input: "About France.", assertions: [{type: contains, value: Paris}]}
      - {input: "About Italy."}
"""

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SEEN = """
name: seen
tests:
  - id: seen
    criteria: x
    input:
      - {role: user, content: [{type: text, value: See France.}, {type: image, value: dot.png}]}
      - {role: user, content: [{type: file, value: bill.pdf}]}
    assertions: [{type: contains, value: Paris}]
  - id: live
    criteria: x
    mode: conversation
    turns:
      - input: About France.
      - input: [{role: user, content: [{type: text, value: And this?}, {type: image, value: dot.png}]}]
    assertions: [{type: contains, value: Paris}]
"""


@at_desk
async def test_a_case_shows_what_was_sent_answered_and_graded(desk: EvalDesk) -> None:
    (desk.root / "evals" / "note.md").write_text("A note.")
    desk.file.write_text(LIVE)
    await desk.run("e_1")
    shown = await desk.call("evals/e_1/case?case=files&target=acme&trial=0")
    assert (shown["status"], shown["verdict"], shown["score"], shown["group"], shown["tags"]) == (
        "ok",
        "pass",
        1.0,
        "g",
        ["one"],
    )
    system, user = shown["messages"]
    assert (system["role"], system["blocks"]) == ("system", [{"type": "text", "text": "Be brief."}])
    assert '<file path="note.md">' in user["blocks"][0]["text"]
    assert shown["question"].startswith("@[System]:\nBe brief.")
    assert shown["answer"] == [{"type": "text", "text": "Paris"}]
    assert [score["type"] for score in shown["scores"]] == ["contains"]
    assert [(note["kind"], note["what"]) for note in shown["notes"]] == [("inlined", "note.md")]
    assert (shown["place"]["line"], shown["place"]["file"]) == (4, "evals/capitals.yaml")
    assert (len(shown["exchanges"]), len(shown["body_sha256"]), shown["error"]) == (1, 64, "")
    assert shown["source"]["id"] == "files"
    assert len(shown["source_sha256"]) == 64
    calling, named = shown["expected"]
    assert [block.get("arguments") for block in calling["blocks"]] == [None, '{"q":1}', "words"]
    assert named["blocks"] == [{"type": "text", "text": "<note.md>"}]


@at_desk
async def test_a_conversation_shows_its_turns(desk: EvalDesk) -> None:
    (desk.root / "evals" / "note.md").write_text("A note.")
    desk.file.write_text(LIVE)
    await desk.run("e_1")
    shown = await desk.call("evals/e_1/case?case=talk")
    first, second = shown["turns"]
    assert (first["verdict"], first["answer"][0]["text"], second["answer"][0]["text"]) == ("pass", "Paris", "Rome")
    assert [each["role"] for each in shown["messages"]] == ["user", "assistant", "user"]
    assert shown["answer"][0]["text"] == "Rome"
    assert len(shown["exchanges"]) == 2


@at_desk
async def test_unknown_trial_is_a_404_and_a_deleted_suite_has_no_source(desk: EvalDesk) -> None:
    await desk.run("e_1", FIXED)
    assert await desk.call("evals/e_1/case?case=rome") == (404, "the run has no trial 0 of 'rome' on 'fixed'")
    assert (await desk.call("evals/e_1/case?case=italy&trial=3"))[0] == 404
    desk.file.unlink()
    shown: Any = await desk.call("evals/e_1/case?case=italy")
    assert (shown["source"], shown["source_sha256"], shown["exchanges"]) == (None, "", [])


@at_desk
async def test_reason_for_missing_notes_is_shown(desk: EvalDesk) -> None:
    (desk.root / "evals" / "note.md").write_text("A note.")
    desk.file.write_text(LIVE)
    await desk.run("e_1", cases=("files",))
    (desk.root / "evals" / "note.md").unlink()
    shown = await desk.call("evals/e_1/case?case=files")
    assert shown["notes"] == []
    assert "note.md" in shown["notes_trouble"]


@at_desk
async def test_a_case_without_a_result_is_shown_as_it_waits(desk: EvalDesk) -> None:
    await desk.run("e_1", FIXED, budget_usd=0.0)
    shown = await desk.call("evals/e_1/case?case=italy")
    assert (shown["status"], shown["verdict"], shown["messages"], shown["turns"]) == ("waiting", None, [], [])


@at_desk
async def test_pictures_and_files_of_a_case_are_given_out_and_nothing_else(desk: EvalDesk) -> None:
    (desk.root / "evals" / "dot.png").write_bytes(base64.b64decode(DOT))
    (desk.root / "evals" / "bill.pdf").write_bytes(b"%PDF-1.4 bill")
    desk.file.write_text(SEEN)
    await desk.run("e_1")
    shown = await desk.call("evals/e_1/case?case=seen&target=acme")
    blocks = [block for message in shown["messages"] for block in message["blocks"] if block["type"] == "media"]
    assert [(block["n"], block["media_type"]) for block in blocks] == [(0, "image/png"), (1, "application/pdf")]
    where = Query("case=seen&target=acme")
    picture = await desk.evals.media("e_1", "0", where)
    assert (picture.status, picture.body) == (200, base64.b64decode(DOT))
    assert (b"content-type", b"image/png") in picture.headers
    bill = dict((await desk.evals.media("e_1", "1", where)).headers)
    assert bill[b"content-type"] == b"application/octet-stream"
    assert bill[b"content-disposition"].startswith(b"attachment")
    assert b"sandbox" in bill[b"content-security-policy"]
    for number, query in (("2", where), ("x", where), ("0", Query("case=gone&target=acme"))):
        with pytest.raises(Fault) as caught:
            await desk.evals.media("e_1", number, query)
        assert caught.value.status == 404
    live = Query("case=live&target=acme&turn=1")
    assert (await desk.evals.media("e_1", "0", live)).body == base64.b64decode(DOT)
    with pytest.raises(Fault):
        await desk.evals.media("e_1", "0", Query("case=live&target=acme&turn=9"))


def test_files_are_numbered_through_all_of_a_conversation() -> None:
    one, two, three, four = (Image(Inline("image/png", DOT)) for _ in range(4))
    asked = (Message("user", (one, Text("This?"))), Message("user", (Text("Or"), two)))
    said = (
        Message("assistant", (ToolCall("c1", "look", "{}"), three)),
        Message("tool", (ToolResult("c1", (Text("seen"), four)),)),
    )
    first, second = messages_shown(asked)
    blocks = answer_shown(said, len(media_in(asked, ())))
    assert [first.blocks[0].n, second.blocks[1].n, blocks[1].n] == [0, 1, 2]  # type: ignore[union-attr]
    assert blocks[0].result.first == 3  # type: ignore[union-attr]
    assert len(media_in(asked, said)) == 4


def test_tool_result_is_shown_in_its_call() -> None:
    messages = (
        Message("tool", (ToolResult("c0", (Text("lost"),)),)),
        Message("assistant", (Text("I look."), ToolCall("c1", "find", "{}"))),
        Message("tool", (ToolResult("c1", (Text("found"),)),)),
        Message("user", (Text("Thanks."),)),
    )
    shown = messages_shown(messages)
    assert [each.role for each in shown] == ["tool", "assistant", "user"]
    assert shown[1].blocks[1].result.text == "found"  # type: ignore[union-attr]


DATA = b"\x89PNG\r\n\x1a\n" + bytes(8000)
CODED = base64.b64encode(DATA).decode()
NAMED = Image(Link(SCHEME + hashlib.sha256(CODED.encode()).hexdigest(), "image/png"))
SUITE = """
name: large
tests:
  - id: large
    criteria: x
    input: [{role: user, content: [{type: text, value: See France.}, {type: image, value: large.png}]}]
    assertions: [{type: contains, value: Paris}]
"""


@at_desk
async def test_a_picture_that_is_named_by_its_hash_is_found_in_the_record_or_in_the_folder(desk: EvalDesk) -> None:
    url = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{CODED}"}}
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": [url]}]}).encode()
    (desk.root / "evals/a.png").write_bytes(DATA)
    (desk.root / "evals/b.png").write_bytes(b"another")
    desk.parts.store.record(exchange("x_1", body, chat_stream("A dot.")))
    await desk.parts.store.settle()
    found = await whole_media(desk.parts, NAMED, ["x_1", "x_gone"], [])
    assert isinstance(found.source, Inline)
    assert found.source.data == CODED
    found = await whole_media(desk.parts, NAMED, [], ["evals/gone.png", "evals/b.png", "evals/a.png"])
    assert found.source == Inline("image/png", CODED)
    assert await whole_media(desk.parts, NAMED, ["x_gone"], ["evals/b.png"]) == NAMED
    link = Document(Link("https://example.com/a.pdf"))
    assert await whole_media(desk.parts, link, ["x_1"], []) == link


@at_desk
async def test_a_large_picture_of_a_case_is_given_out(desk: EvalDesk) -> None:
    (desk.root / "evals" / "large.png").write_bytes(DATA)
    desk.file.write_text(SUITE)
    await desk.run("e_1")
    answer = await desk.evals.media("e_1", "0", Query("case=large&target=acme"))
    assert answer.body == DATA
