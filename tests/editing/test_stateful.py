import json

import pytest

from sightline.editing.response_chain import ChainLink, expand_request, previous_of
from sightline.errors import Code, Fault
from sightline.wire.jsontext import decode

ASKED = b'{"model":"m","input":"What is 2+2?","instructions":"Be brief."}'
ITEM = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "4"}]}
ANSWERED = {"id": "resp_1", "status": "completed", "output": [ITEM]}
GOING_ON = b'{ "model": "m",  "previous_response_id": "resp_1", "input": [ {"role":"user", "content":"And 3+3?"} ] }'
MISSING = b'{"model":"m","previous_response_id":"resp_1"}'


def whole(value: object) -> bytes:
    return json.dumps(value).encode()


def refused(data: bytes, chain: list[ChainLink]) -> Fault:
    with pytest.raises(Fault) as caught:
        expand_request(data, chain)
    assert (caught.value.code, caught.value.status) == (Code.INVALID_REQUEST, 422)
    assert caught.value.hint
    return caught.value


def test_the_reference_is_known() -> None:
    assert previous_of(GOING_ON) == "resp_1"
    assert previous_of(ASKED) == ""
    assert previous_of(b'{"previous_response_id": null}') == ""
    assert previous_of(b"[]") == ""


def test_a_question_and_its_answer_take_the_place_of_the_reference() -> None:
    data = expand_request(GOING_ON, [ChainLink(ASKED, whole(ANSWERED))])
    assert decode(data) == {
        "model": "m",
        "input": [
            {"type": "message", "role": "user", "content": "What is 2+2?"},
            ITEM,
            {"role": "user", "content": "And 3+3?"},
        ],
    }
    assert b'{"role":"user", "content":"And 3+3?"}' in data
    assert data.startswith(b'{ "model": "m", "input": [ ')


def test_longer_chain_is_expanded_from_its_start() -> None:
    second = b'{"previous_response_id":"resp_1","input":[ {"role":"user","content":[]},{"type":"x"} ]}'
    chain = [
        ChainLink(ASKED, whole(ANSWERED)),
        ChainLink(second, whole({"id": "resp_2", "status": "incomplete", "output": []})),
    ]
    data = expand_request(b'{"previous_response_id":"resp_2","input":"More."}', chain)
    spoken = [item.get("content") for item in decode(data)["input"]]  # type: ignore[index,call-overload]
    assert spoken == ["What is 2+2?", ITEM["content"], [], None, "More."]


def test_a_streamed_answer_is_read_to_its_end() -> None:
    stream = (
        b'event: response.created\ndata: {"type":"response.created","response":{"id":"resp_1"}}\n\n'
        b'data: {"type":"response.output_item.done","item":' + whole(ITEM) + b"}\n\n"
        b'data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[]}}\n\n'
        b"data: [DONE]\n\n"
    )
    items = decode(expand_request(MISSING, [ChainLink(ASKED, stream)]))["input"]  # type: ignore[index,call-overload]
    assert items[1] == ITEM


@pytest.mark.parametrize("data", [MISSING, b'{"previous_response_id":"resp_1","input":null}'])
def test_a_request_without_input_gets_that_of_the_chain(data: bytes) -> None:
    assert len(decode(expand_request(data, [ChainLink(ASKED, whole(ANSWERED))]))["input"]) == 2  # type: ignore[index,call-overload]


def test_chain_without_messages_gives_an_empty_input() -> None:
    silent = ChainLink(
        b'{"model":"m","prompt":{"id":"p"}}', whole({"id": "resp_1", "status": "completed", "output": []})
    )
    assert decode(expand_request(MISSING, [silent])) == {"model": "m", "input": []}


def test_what_is_not_known_is_refused_with_the_reason() -> None:
    link = ChainLink(ASKED, whole(ANSWERED))
    assert "continues no earlier response" in refused(ASKED, [link]).message
    assert "'resp_1' is not in the record" in refused(GOING_ON, []).message
    other = b'{"previous_response_id":"resp_9","input":[]}'
    assert "'resp_9' is not in the record" in refused(other, [link]).message
    assert (
        "link 1 of 1 goes on from resp_9, not from the beginning"
        in refused(GOING_ON, [ChainLink(other, whole(ANSWERED))]).message
    )
    assert "link 2 of 2 goes on from nothing, not from resp_1" in refused(GOING_ON, [link, link]).message
    stored = b'{"previous_response_id":"resp_1","conversation":"conv_1"}'
    assert "stored conversation" in refused(stored, [link]).message


@pytest.mark.parametrize(
    "reply",
    [
        whole({"id": "resp_1", "status": "failed", "output": []}),
        whole({"id": "resp_1", "status": "completed"}),
        whole([]),
        b'data: {"type":"response.created","response":{}}\n\n',
        b'data: {"type":"response.completed"}\n\n',
        b"",
    ],
)
def test_an_answer_that_is_not_whole_cannot_stand_for_itself(reply: bytes) -> None:
    assert "the answer of link 1 is not whole" in refused(GOING_ON, [ChainLink(ASKED, reply)]).message
