import base64
import json
from collections.abc import Iterator

import pytest

from tests.chat.api.http_stage import ChatDesk, chat_desk

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
            "result": {"text": "done", "is_error": False, "media": 1, "first": 0},
        },
        {"type": "text", "text": "There."},
    ]
    assert answer["text"] == "Look: \n\nThere."
    assert answer["citations"] == [{"title": "A", "url": "https://a.example", "quote": ""}]


def test_a_picture_of_the_answer_is_had_by_its_number(desk: ChatDesk) -> None:
    shown = desk.raw("GET", "pairs/p/media/0?of=answer")
    assert (shown.headers["content-type"], shown.body) == ("image/png", base64.b64decode(PNG))


def test_what_nobody_knows_the_price_of_has_no_cost(desk: ChatDesk) -> None:
    answer = desk.pair("p")["answer"]
    assert (answer["usage"], answer["cost"]) == ({"input_tokens": 5, "output_tokens": 6}, None)


def test_while_it_is_asked_again_the_answer_that_is_kept_counts_as_earlier(desk: ChatDesk) -> None:
    pair = desk.ask("one")["id"]
    gate = desk.stops_after()
    desk.done("POST", f"pairs/{pair}/reask", {"view": "v", "model": "acme/small"})
    shown = desk.pair(pair)
    assert (shown["state"], shown["asking"], shown["answer"], shown["earlier"]) == ("sending", "acme/small", None, 1)
    assert [each["text"] for each in shown["earlier_answers"]] == ["Hello there."]
    desk.open(gate)
    desk.ended(pair)
