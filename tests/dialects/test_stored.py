"""Stored replies: which are wanted, how they are named, and the lists of what was sent for them."""

import pytest

from sightline.dialects.endpoint import match_stored
from sightline.dialects.stored import COMPLETIONS, RESPONSES, StoredCall, exchange_in, list_page
from sightline.errors import Fault
from sightline.model.json import JsonObject


@pytest.mark.parametrize(
    ("body", "responses", "completions"),
    [
        (b"{}", True, False),
        (b'{"store": null}', True, False),
        (b'{"store": true}', True, True),
        (b'{"store": false}', False, False),
        (b'{"store": true, "input": "cut: \\ud83d"}', True, True),
        (b'{"store": "yes"}', False, False),
        (b"no JSON", False, False),
    ],
)
def test_each_api_stores_by_its_own_default(body: bytes, responses: bool, completions: bool) -> None:
    assert (RESPONSES.wants(body), COMPLETIONS.wants(body)) == (responses, completions)


@pytest.mark.parametrize(
    ("path", "call"),
    [
        ("/v1/responses/resp_x_1", StoredCall("openai-responses", "resp_x_1", "")),
        ("/v1/v1//responses/resp_x_1/cancel/", StoredCall("openai-responses", "resp_x_1", "cancel")),
        ("/chat/completions", StoredCall("openai-chat", "", "")),
        ("/v1/chat/completions/chatcmpl%2Dx_1/messages", StoredCall("openai-chat", "chatcmpl-x_1", "messages")),
        ("/v1/chat/completions/a/b/c", None),
        ("/v1/messages/batches", None),
        ("/v1/chat", None),
    ],
)
def test_paths_of_stored_replies(path: str, call: StoredCall | None) -> None:
    assert match_stored(path) == call


def test_an_id_names_its_exchange_if_it_is_stored_here() -> None:
    named = ("resp_x_06ab", "chatcmpl-x_1", "resp_68af0c", "resp_x_", "resp_x_a/b", "")
    assert [exchange_in(each) for each in named] == ["x_06ab", "x_1", "", "", "", ""]


def test_what_is_not_there_and_what_is_deleted_is_said_in_the_words_of_the_api() -> None:
    fault = RESPONSES.missing("resp_x_1")
    assert (fault.message, fault.status) == ("Response with id 'resp_x_1' not found.", 404)
    assert COMPLETIONS.deletion("c") == {"id": "c", "object": "chat.completion.deleted", "deleted": True}


ITEMS: list[JsonObject] = [{"id": each} for each in "abcd"]


@pytest.mark.parametrize(
    ("query", "ids", "has_more"),
    [
        ({}, "dcba", False),
        ({"order": "asc"}, "abcd", False),
        ({"limit": "2"}, "dc", True),
        ({"limit": "2", "after": "c"}, "ba", False),
        ({"after": "a"}, "", False),
    ],
)
def test_a_list_is_told_in_pages(query: dict[str, str], ids: str, has_more: bool) -> None:
    page = list_page(ITEMS, query, is_newest_first=True)
    assert page["data"] == [{"id": each} for each in ids]
    assert (page["first_id"], page["last_id"]) == ((ids[0], ids[-1]) if ids else (None, None))
    assert page["has_more"] is has_more


@pytest.mark.parametrize("query", [{"limit": "0"}, {"limit": "101"}, {"limit": "many"}, {"after": "z"}])
def test_a_page_that_cannot_be_meant_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(Fault):
        list_page(ITEMS, query, is_newest_first=False)


def test_the_input_of_a_response_as_items() -> None:
    (only,) = RESPONSES.list_children({"input": "hi"}, "resp_x_1")
    assert only == {
        "id": "msg_resp_x_1_0",
        "type": "message",
        "status": "completed",
        "role": "user",
        "content": [{"type": "input_text", "text": "hi"}],
    }
    items: JsonObject = {
        "input": [
            {"role": "assistant", "content": "before"},
            {"type": "function_call_output", "call_id": "c", "output": "12"},
            {"id": "own", "type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]},
            7,
        ]
    }
    told = RESPONSES.list_children(items, "r")
    assert told[0]["content"] == [{"type": "output_text", "text": "before", "annotations": []}]
    assert told[1] == {"id": "msg_r_1", "type": "function_call_output", "call_id": "c", "output": "12"}
    assert (told[2]["id"], len(told)) == ("own", 3)
    assert RESPONSES.list_children({}, "r") == []


def test_the_messages_of_a_completion() -> None:
    parts: JsonObject = {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url"}]}
    picture: JsonObject = {"role": "user", "content": [{"type": "image_url"}]}
    body: JsonObject = {"messages": [{"role": "system", "content": "brief"}, parts, picture]}
    first, second, third = COMPLETIONS.list_children(body, "c")
    assert first == {"role": "system", "content": "brief", "name": None, "id": "c-0", "content_parts": None}
    assert (second["id"], second["content"], second["content_parts"]) == ("c-1", "hi", parts["content"])
    assert (third["content"], third["content_parts"]) == (None, picture["content"])
