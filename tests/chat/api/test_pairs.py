import base64
import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from sightline.chat.api.pairs import shares_of
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.imports.formats import to_json
from sightline.chat.core.pair import ChatAnswer, MessagePair
from sightline.model.parts import Image, Inline, Text
from sightline.model.request import Message
from tests.chat.api.http_stage import ChatDesk, chat_desk
from tests.upstream import says

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n rest").decode()
ANSWER = {
    "messages": [
        {
            "role": "assistant",
            "parts": [
                {"type": "thinking", "text": "Hm."},
                {"type": "text", "text": "Look: ", "citations": [{"url": "https://a.example", "title": "A"}]},
                {"type": "tool_call", "id": "c1", "name": "draw", "arguments": "{}"},
            ],
        },
        {
            "role": "tool",
            "parts": [
                {
                    "type": "tool_result",
                    "id": "c1",
                    "parts": [
                        {"type": "text", "text": "done"},
                        {"type": "image", "source": {"type": "inline", "media_type": "image/png", "data": PNG}},
                    ],
                }
            ],
        },
        {"role": "assistant", "parts": [{"type": "text", "text": "There."}]},
    ],
    "finish": "stop",
    "usage": {"input_tokens": 5, "output_tokens": 6},
}
PAIR = {"id": "p", "userText": "Draw.", "timestamp": 1, "model": "nobody-knows", "kept": {"answer": ANSWER}}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatDesk]:
    with chat_desk(tmp_path_factory.mktemp("showing")) as made:
        document = {"schema": "sightline-chat/1", "topics": [], "pairs": [PAIR]}
        assert made.raw("POST", "import", json.dumps(document).encode()).status == 200
        yield made


def test_an_answer_is_shown_in_blocks(desk: ChatDesk) -> None:
    answer = desk.pair("p")["answer"]
    assert answer["blocks"] == [
        {"type": "thinking", "text": "Hm."},
        {"type": "text", "text": "Look: "},
        {
            "type": "call",
            "id": "c1",
            "name": "draw",
            "arguments": "{}",
            "result": {"text": "done", "is_error": False, "media": 1, "first": 0, "is_denied": False},
        },
        {"type": "text", "text": "There."},
    ]
    assert answer["text"] == "Look: \n\nThere."
    assert answer["citations"] == [{"title": "A", "url": "https://a.example", "quote": ""}]


def test_a_picture_of_the_answer_is_had_by_its_number(desk: ChatDesk) -> None:
    shown = desk.raw("GET", "pairs/p/media/0?of=answer")
    assert (shown.headers["content-type"], shown.body) == ("image/png", base64.b64decode(PNG))


def test_answer_of_a_model_without_prices_has_no_cost(desk: ChatDesk) -> None:
    answer = desk.pair("p")["answer"]
    assert (answer["usage"], answer["cost"]) == ({"input_tokens": 5, "output_tokens": 6}, None)


def test_kept_answer_counts_as_earlier_during_a_reask(desk: ChatDesk) -> None:
    pair = desk.ask("one")["id"]
    gate = desk.stops_after()
    desk.done("POST", f"pairs/{pair}/reask", {"view": "v", "model": "acme/small"})
    shown = desk.pair(pair)
    assert (shown["state"], shown["asking"], shown["answer"], shown["earlier"]) == ("sending", "acme/small", None, 1)
    assert [each["text"] for each in shown["earlier_answers"]] == ["Hello there."]
    desk.open(gate)
    desk.ended(pair)
    desk.answers("Hello ", "there.")


GIF = b"GIF89a rest"


@pytest.fixture
def pair(desk: ChatDesk) -> str:
    return desk.ask("one")["id"]


def test_pair_is_shown_with_its_state_in_the_view(desk: ChatDesk, pair: str) -> None:
    shown = desk.done("GET", f"pairs/{pair}?view=v")
    assert (shown["standing"], shown["earlier_answers"]) == ("included", [])
    assert shown["tokens"]["low"] <= shown["tokens"]["tokens"] <= shown["tokens"]["high"]
    alone = desk.done("GET", f"pairs/{pair}")
    assert (alone["standing"], alone["tokens"]["tokens"]) == ("hidden", 0)
    desk.refused(404, "GET", f"pairs/{pair}?view=none")
    desk.refused(404, "GET", "pairs/none")


def test_words_are_changed(desk: ChatDesk, pair: str) -> None:
    shown = desk.done("POST", f"pairs/{pair}/edit?view=v", {"user_text": "two", "assistant_text": "Changed."})
    assert (shown["user_text"], shown["answer"]["text"]) == ("two", "Changed.")
    shown = desk.done("POST", f"pairs/{pair}/edit", {"assistant_text": "Again."})
    assert (shown["user_text"], shown["answer"]["text"]) == ("two", "Again.")
    desk.refused(422, "POST", f"pairs/{pair}/edit", {})
    desk.refused(404, "POST", "pairs/none/edit", {"user_text": "x"})


def test_an_earlier_answer_that_is_not_there(desk: ChatDesk, pair: str) -> None:
    desk.refused(400, "POST", f"pairs/{pair}/swap", {"index": -1})
    desk.refused(422, "POST", f"pairs/{pair}/swap", {"index": "last"})
    desk.refused(404, "POST", "pairs/none/swap", {})


def test_marks_are_set_one_at_a_time(desk: ChatDesk, pair: str) -> None:
    topic = desk.done("POST", "topics", {"name": f"for {pair}"})["id"]
    for mark in ({"star": 2}, {"flag": "grey"}, {"topic": topic}, {"hand": "out"}):
        told = desk.done("POST", "mark", {"ids": [pair], **mark})
        assert told == {"version": desk.done("GET", "views/v")["version"]}
    shown = desk.pair(pair)
    assert (shown["star"], shown["flag"], shown["topic"], shown["hand"]) == (2, "grey", topic, "out")
    assert (shown["standing"], shown["topic_path"]) == ("left_out", [f"for {pair}"])
    desk.done("POST", "mark", {"ids": [pair], "hand": ""})
    assert desk.pair(pair)["standing"] == "included"


@pytest.mark.parametrize(
    ("mark", "status"),
    [
        ({}, 422),
        ({"star": 1, "flag": "blue"}, 422),
        ({"star": 4}, 422),
        ({"star": True}, 422),
        ({"flag": "red"}, 422),
        ({"topic": "none"}, 404),
        ({"hand": "up"}, 422),
    ],
)
def test_marks_that_there_are_not(desk: ChatDesk, pair: str, mark: dict[str, object], status: int) -> None:
    desk.refused(status, "POST", "mark", {"ids": [pair], **mark})


def test_pairs_go_and_come_back(desk: ChatDesk, pair: str) -> None:
    desk.done("POST", "delete", {"ids": [pair]})
    assert desk.pair(pair)["standing"] == "hidden"
    desk.refused(400, "POST", "delete", {"ids": [pair]})
    desk.done("POST", "restore", {"ids": [pair]})
    assert desk.pair(pair)["standing"] == "included"
    for path in ("delete", "restore", "mark"):
        value = {"ids": [pair, "none"], **({"star": 1} if path == "mark" else {})}
        assert "none" in desk.refused(404, "POST", path, value)["message"]
    assert desk.pair(pair)["star"] == 0


def test_files_are_found_by_their_number(desk: ChatDesk) -> None:
    files = [{"name": "a.gif", "media_type": "image/gif", "data": base64.b64encode(GIF).decode()}]
    pair = desk.ask("look", attachments=files)["id"]
    shown = desk.raw("GET", f"pairs/{pair}/media/0")
    assert (shown.body, shown.headers["content-type"]) == (GIF, "image/gif")
    for path in ("1", "-1", "x", "²", "0?of=answer", "9999999999"):
        desk.refused(404, "GET", f"pairs/{pair}/media/{quote(path, safe='?=')}")
    desk.refused(400, "GET", f"pairs/{pair}/media/0?of=nothing")
    desk.refused(404, "GET", "pairs/none/media/0")


def test_each_answer_has_its_own_pictures(desk: ChatDesk) -> None:
    def drawn(picture: bytes) -> ChatAnswer:
        image = Image(Inline("image/gif", base64.b64encode(picture).decode()))
        return ChatAnswer(messages=(Message("assistant", (Text("Look:"), image)),), finish="stop")

    pair = MessagePair(id="drawn", user_text="draw", answer=drawn(GIF), earlier=(drawn(GIF + b"1"),), state="complete")
    assert desk.raw("POST", "import?name=a.json", to_json(ChatHistory(), [pair], now=1.0)).json()["pairs"] == 1
    path = "pairs/drawn/media/0?of=answer"
    assert desk.raw("GET", path).body == GIF
    assert desk.raw("GET", f"{path}&earlier=0").body == GIF + b"1"
    desk.refused(404, "GET", f"{path}&earlier=1")
    desk.refused(400, "GET", f"{path}&earlier=x")


def test_an_id_from_elsewhere_may_hold_anything(desk: ChatDesk) -> None:
    exported = b'{"schema":"sightline-chat/1","topics":[],"pairs":[{"id":"a/b?c d","userText":"hi","timestamp":1}]}'
    assert desk.raw("POST", "import", exported).json()["pairs"] == 1
    assert desk.pair("a/b?c d")["user_text"] == "hi"


def test_telemetry_of_an_unrecorded_send_is_not_shown(desk: ChatDesk) -> None:
    kept = {"answer": {"messages": []}, "exchange": "x_gone"}
    document = {"schema": "sightline-chat/1", "topics": [], "pairs": [{"id": "old", "timestamp": 1, "kept": kept}]}
    assert desk.raw("POST", "import", json.dumps(document).encode()).json()["pairs"] == 1
    shown = desk.pair("old")
    assert (shown["exchange"], shown["telemetry"]) == ("x_gone", [])


def test_compaction_instruction_is_sent_to_the_model(desk: ChatDesk) -> None:
    pair = desk.ask("one")["id"]
    desk.done("POST", "compaction/draft", {"view": "v", "ids": [pair], "instruction": "In one word."})
    assert desk.sent[-1]["messages"][-1] == {"role": "user", "content": "In one word."}


def test_an_accepted_summary_takes_the_place_of_its_pairs_and_is_taken_back(desk: ChatDesk) -> None:
    ids = [desk.ask(text)["id"] for text in ("to be summed up", "and this")]
    before = [row["id"] for row in desk.rows()]
    shown = desk.done("POST", "compaction/compare", {"view": "v", "ids": ids, "text": "Shorter."})
    assert shown["before"]["tokens"] > shown["after"]["tokens"] > 0
    summary = desk.done("POST", "compaction", {"ids": ids, "text": "Shorter."})["pair"]
    assert [row["id"] for row in desk.rows()] == [*before[:-2], summary]
    assert desk.pair(summary)["user_text"] == "Shorter."
    desk.done("POST", "compaction/undo", {"id": summary})
    assert [row["id"] for row in desk.rows()] == before


def test_a_draft_that_fails_changes_nothing(desk: ChatDesk) -> None:
    pair = desk.ask("two")["id"]
    before = desk.done("GET", "views/v")["version"]
    desk.upstream.script = [says({"error": {"message": "bad key", "code": "invalid_api_key"}}, 401)]
    error = desk.refused(422, "POST", "compaction/draft", {"view": "v", "ids": [pair]})
    assert (error["code"], error["message"]) == ("auth", "bad key")
    assert desk.done("GET", "views/v")["version"] == before
    desk.answers("Fine.")


@pytest.mark.parametrize(
    ("path", "value", "status"),
    [
        ("compaction/draft", {"view": "v", "ids": []}, 422),
        ("compaction/draft", {"view": "v", "ids": ["none"]}, 404),
        ("compaction/compare", {"view": "v", "ids": ["none"], "text": "x"}, 404),
        ("compaction", {"ids": ["none"], "text": "x"}, 404),
        ("compaction", {"ids": ["none"]}, 422),
        ("compaction/undo", {"id": "none"}, 404),
        ("compaction/undo", {}, 422),
    ],
)
def test_what_cannot_be_summed_up(desk: ChatDesk, path: str, value: dict[str, object], status: int) -> None:
    desk.refused(status, "POST", path, value)


def test_a_summary_needs_words_and_only_a_summary_is_undone(desk: ChatDesk) -> None:
    pair = desk.ask("three")["id"]
    desk.refused(400, "POST", "compaction", {"ids": [pair], "text": " "})
    desk.refused(400, "POST", "compaction/undo", {"id": pair})
    nothing = desk.done("POST", "compaction/compare", {"view": "v", "ids": [pair], "text": ""})
    assert nothing["after"]["tokens"] == 0


@pytest.mark.parametrize(
    ("dialect", "body", "shares"),
    [
        (
            "openai-responses",
            {
                "model": "m",
                "instructions": "s",
                "input": [{"type": "function_call_output", "call_id": "c", "output": "r"}],
            },
            [("System", 1), ("Tool results", 1), ("Options", 1)],
        ),
        ("anthropic", {"model": "m", "max_tokens": 9, "system": "s", "messages": []}, [("System", 1), ("Options", 2)]),
        (
            "gemini",
            {
                "systemInstruction": {"parts": [{"text": "s"}]},
                "contents": [{"role": "user", "parts": [{"text": "a"}]}, {"role": "model", "parts": [{"text": "b"}]}],
                "tools": [{"functionDeclarations": [{"name": "t"}]}],
            },
            [("System", 1), ("User", 1), ("Assistant", 1), ("Tools", 1)],
        ),
        ("anthropic", {"messages": 7}, []),
    ],
)
def test_a_body_is_told_by_what_it_consists_of_in_every_dialect(
    dialect: str, body: object, shares: list[tuple[str, int]]
) -> None:
    found = shares_of(dialect, json.dumps(body).encode())
    assert [(share.label, share.count) for share in found] == shares
    assert all(share.size > 0 for share in found)
