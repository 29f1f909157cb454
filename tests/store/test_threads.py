import json

import pytest

from sightline.dialects.registry import dialect
from sightline.model.json import Json
from sightline.model.request import Request
from sightline.store.threads import fingerprints, is_errand, reply_id, without_reminders
from tests.reply_samples import streamed, whole


def anthropic(*messages: Json, **fields: Json) -> Request:
    return dialect("anthropic").read_request({"model": "m", "max_tokens": 9, "messages": list(messages), **fields})


def said(role: str, *blocks: Json) -> Json:
    return {
        "role": role,
        "content": [{"type": "text", "text": each} if isinstance(each, str) else each for each in blocks],
    }


CALL = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a.py"}


def test_each_turn_begins_with_the_turns_before_it() -> None:
    first = fingerprints(anthropic(said("user", "hi")))
    third = fingerprints(anthropic(said("user", "hi"), said("assistant", "yes"), said("user", "go on")))
    assert len(third) == 3
    assert third[:1] == first
    assert fingerprints(anthropic(said("user", "ho")))[0] != first[0]


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(
            said("user", {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}), id="cache mark"
        ),
        pytest.param({"role": "user", "content": "hi"}, id="one string"),
        pytest.param(said("user", "<system-reminder>be kind</system-reminder>", "hi"), id="reminder"),
        pytest.param(said("user", " hi\n"), id="space around"),
    ],
)
def test_what_clients_change_in_an_old_turn_does_not_matter(again: Json) -> None:
    assert fingerprints(anthropic(again)) == fingerprints(anthropic(said("user", "hi")))


def test_ids_and_reasoning_do_not_matter() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    one = anthropic(said("user", "hi"), said("assistant", thought, CALL), said("user", RESULT))
    other = anthropic(
        said("user", "hi"), said("assistant", CALL | {"id": "t2"}), said("user", RESULT | {"tool_use_id": "t2"})
    )
    assert fingerprints(one) == fingerprints(other)
    differs = anthropic(said("user", "hi"), said("assistant", CALL | {"input": {}}), said("user", RESULT))
    assert fingerprints(differs)[0] == fingerprints(one)[0]
    assert fingerprints(differs)[1:] != fingerprints(one)[1:]


def test_instructions_and_messages_that_say_nothing_are_passed_over() -> None:
    with_system = anthropic(said("user", "hi"), said("assistant", ""), system="Be kind.")
    assert fingerprints(with_system) == fingerprints(anthropic(said("user", "hi")))


def test_pictures_and_structured_results_count() -> None:
    def shown(data: str) -> list[bytes]:
        source = {"type": "base64", "media_type": "image/png", "data": data}
        return fingerprints(anthropic(said("user", {"type": "image", "source": source})))

    assert shown("aaaa") != shown("bbbb")
    assert len(shown("aaaa")) == 1

    def linked(url: str) -> list[bytes]:
        return fingerprints(anthropic(said("user", {"type": "image", "source": {"type": "url", "url": url}})))

    assert linked("https://a.test/\ud83d") != linked("https://a.test/\ud83e")

    def answered(value: object) -> list[bytes]:
        response = {"functionResponse": {"name": "f", "response": {"value": value}}}
        return fingerprints(dialect("gemini").read_request({"contents": [{"role": "user", "parts": [response]}]}))

    assert answered(1) != answered(2)
    assert answered("\ud83d") != answered("\ud83e")


SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}}
ROUTER = {"type": "OBJECT", "properties": {"reasoning": {"type": "STRING"}, "complexity_score": {"type": "INTEGER"}}}
TOOL = {"name": "Bash", "input_schema": {"type": "object"}}


def structured(schema: Json) -> Json:
    return {"format": {"type": "json_schema", "schema": schema}}


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(anthropic(said("user", "hi")), False, id="a plain question"),
        pytest.param(
            anthropic(said("user", "hi"), system="Generate a title for the session.", output_config=structured(SCHEMA)),
            True,
            id="a title of a schema",
        ),
        pytest.param(anthropic(said("user", "hi"), output_config=structured(SCHEMA)), True, id="a schema of a title"),
        pytest.param(
            anthropic(said("user", "hi"), output_config=structured({"properties": {"city": {}, "street": {}}})),
            False,
            id="a program that wants data",
        ),
        pytest.param(
            anthropic(said("user", "hi"), output_config=structured({"type": "string"})), False, id="no fields"
        ),
        pytest.param(
            anthropic(said("user", "Generate one"), system="You write a short title for this thread."),
            True,
            id="in words",
        ),
        pytest.param(
            anthropic(said("user", "hi"), system="You are a router of packets."),
            False,
            id="a person's own instructions",
        ),
        pytest.param(
            anthropic(said("user", "hi"), system="Write a title.", tools=[TOOL]), False, id="with tools it is a turn"
        ),
        pytest.param(
            anthropic(said("user", "hi"), said("assistant", CALL), said("user", RESULT), system="title"),
            False,
            id="with calls it is a turn",
        ),
        pytest.param(
            dialect("gemini").read_request(
                {
                    "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
                    "systemInstruction": {"parts": [{"text": "You are a Task Routing AI. Rate the complexity."}]},
                    "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": ROUTER},
                }
            ),
            True,
            id="a router",
        ),
    ],
)
def test_errands_are_told_from_turns(request_: Request, expected: bool) -> None:
    assert is_errand(request_) is expected


def test_reminders_are_taken_out() -> None:
    assert without_reminders("<system-reminder>\na\n</system-reminder>\nhi <b>") == "hi <b>"
    assert json.loads(without_reminders(' {"a": 1} ')) == {"a": 1}


@pytest.mark.parametrize(
    ("name", "data", "found"),
    [
        ("openai-responses", b"".join(streamed("openai-responses")), "r_1"),
        ("openai-responses", whole("openai-responses"), "r_1"),
        ("openai-responses", b": wait\n\n" * 5000 + b"".join(streamed("openai-responses")), "r_1"),
        ("openai-responses", b"<html>", ""),
        ("openai-responses", b"", ""),
        ("openai-chat", whole("openai-chat"), ""),
        ("", b"{}", ""),
    ],
)
def test_a_reply_that_can_be_named_has_an_id(name: str, data: bytes, found: str) -> None:
    assert reply_id(name, data) == found
