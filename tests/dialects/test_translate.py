import json
from dataclasses import replace

import pytest

from sightline.catalog.facts import Facts
from sightline.dialects.dialect import Target
from sightline.dialects.translate import restored, translate_reply, translate_request, write_request
from sightline.errors import Fault
from sightline.model.events import ToolCallBegun
from sightline.model.message import Message
from sightline.model.parts import Text
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.model.tools import CustomTool

CHAT = b'{ "model": "gpt", "messages": [{"role":"user","content":"hi"}], "seed": 1.0e0, "x": 1 }'


def chat(**fields: object) -> bytes:
    return json.dumps({"model": "gpt", "messages": [{"role": "user", "content": "hi"}], **fields}).encode()


def test_between_equal_dialects_the_bytes_stay_as_they_came() -> None:
    data = b'{"messages" :  [{"role":"user","content":"h\\u0069"}],"model":"m"}'
    translation = translate_request(data, "openai-chat", "openai-chat")
    assert translation.data is data
    assert translation.request.model == "m"


def test_another_model_is_the_only_change() -> None:
    data = b'{"messages" :  [{"role":"user","content":"h\\u0069"}],"model" : "m"}'
    assert translate_request(data, "openai-chat", "openai-chat", model="n").data == data.replace(b'"m"', b'"n"')
    assert translate_request(data, "openai-chat", "openai-chat", model="m").data is data
    null = b'{"model": null, "messages":[]}'
    assert translate_request(null, "openai-chat", "openai-chat", model="n").data == b'{"model": "n", "messages":[]}'
    unnamed = b'{"messages":[]}'
    assert translate_request(unnamed, "openai-chat", "openai-chat", model="n").data == b'{"messages":[],"model":"n"}'


def test_another_system_policy_writes_the_request_anew_and_keeps_unknown_fields() -> None:
    data = chat(
        messages=[
            {"role": "system", "content": "a"},
            {"role": "system", "content": "b"},
            {"role": "user", "content": "hi", "unknown": 1},
        ],
        other=[1],
    )
    translation = translate_request(data, "openai-chat", "openai-chat", settings=Target(system="merge_leading"))
    body = json.loads(translation.data)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert (body["messages"][1]["unknown"], body["other"]) == (1, [1])
    assert not translation.report.losses


def test_across_dialects_unknown_fields_are_lost_and_listed() -> None:
    translation = translate_request(chat(unknown=1, seed=7), "openai-chat", "anthropic", model="claude")
    assert json.loads(translation.data)["model"] == "claude"
    assert {"/unknown", "/seed"} <= {loss.pointer for loss in translation.report.losses}


def test_a_dialect_that_says_its_model_in_the_url_tells_so() -> None:
    translation = translate_request(chat(stream=True), "openai-chat", "gemini")
    assert {("/model", "identity"), ("/stream", "identity")} <= {
        (loss.pointer, loss.severity) for loss in translation.report.losses
    }


def test_what_is_not_set_is_not_missed_in_the_body() -> None:
    translation = translate_request(b'{"messages":[{"role":"user","content":"hi"}]}', "openai-chat", "gemini")
    assert not translation.report.losses


def test_a_bare_list_of_messages_becomes_an_object_to_hold_a_model() -> None:
    renamed = translate_request(b'[{"role":1,"content":[{"type":1,"text":"hi"}]}]', "raw", "raw", model="m")
    assert json.loads(renamed.data)["model"] == "m"


def test_a_composed_request_has_no_source_to_lose_from() -> None:
    report = Report()
    request = Request(model="m", messages=(Message("user", (Text("hi"),)),))
    assert json.loads(write_request(request, "openai-chat", Target(), report))["model"] == "m"
    assert not report.losses


REPLY = {
    "id": "r",
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
}


def test_a_reply_is_translated_or_shown() -> None:
    data = json.dumps(REPLY).encode()
    assert translate_reply(data, "openai-chat", "openai-chat").data is data
    assert json.loads(translate_reply(data, "openai-chat", "reply").data)["finish"] == "stop"
    assert translate_reply(data, "openai-chat", "events").data.endswith(b'{"event":"ended"}\n')
    translated = translate_reply(data, "openai-chat", "anthropic")
    assert json.loads(translated.data)["content"] == [{"type": "text", "text": "hi"}]
    assert translated.reply.choice.parts[0].at == "/choices/0/message/content"


def test_a_reply_can_be_given_another_models_name() -> None:
    data = json.dumps(REPLY).encode()
    assert json.loads(translate_reply(data, "openai-chat", "anthropic", model="mine").data)["model"] == "mine"


def test_a_body_that_is_not_json_is_refused() -> None:
    with pytest.raises(Fault, match="not JSON"):
        translate_reply(b"<html>", "openai-chat", "anthropic")


def test_calls_get_their_names_back_from_the_clients_request() -> None:
    begun = ToolCallBegun(0, "c", "patch")
    assert restored([begun], None) == [begun]
    request = Request(tools=(CustomTool("patch"),))
    assert restored([begun], request) == [ToolCallBegun(0, "c", "patch", kind="custom")]


def test_what_stands_in_the_url_is_lost_only_to_a_caller_who_does_not_write_it() -> None:
    request = Request(model="m", messages=(Message("user", (Text("hi"),)),))
    report, silent = Report(), Report()
    body = write_request(request, "gemini", Target(), report)
    assert [loss.what for loss in report.losses] == ["model"]
    assert write_request(request, "gemini", Target(), silent, with_url=True) == body
    assert not silent.losses


def test_what_the_target_model_refuses_is_left_out_of_a_translation_only() -> None:
    settings = Target(facts=Facts(refuses=("temperature",), thinking=("adaptive", "between_tools")))
    data = chat(temperature=0.2, reasoning_effort="none")
    translation = translate_request(data, "openai-chat", "anthropic", model="claude", settings=settings)
    body = json.loads(translation.data)
    assert "temperature" not in body
    assert body["thinking"] == {"type": "between_tools"}
    assert {loss.pointer for loss in translation.report.losses} == {"/temperature", "/reasoning_effort"}
    assert translate_request(data, "openai-chat", "openai-chat", settings=settings).data is data
    rewritten = translate_request(data, "openai-chat", "openai-chat", settings=replace(settings, system="merge_all"))
    assert json.loads(rewritten.data)["temperature"] == 0.2
