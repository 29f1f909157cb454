"""The vendors' own SDKs against a person at the workbench: all that the person does goes over the API, as the page does
it, and what the provider gets is what was on screen."""

import http.client
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors as google_errors
from google.genai import types

from sightline.exchange import keepalive
from tests.desk_stage import DeskStage, desk_stage

DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini")
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
CALL = {"type": "tool_call", "id": "call_9", "name": "weather", "arguments": '{"city": "Oslo"}'}
BY_HAND = {"parts": [{"type": "text", "text": "I look."}, CALL], "usage": {"input_tokens": 3, "output_tokens": 4}}
SILENCE = 15.0
"""An SDK gives up after so many seconds without a byte."""
ERRORS = (openai.APIError, anthropic.APIError, google_errors.APIError)

Asking = Callable[[str, bool], tuple[str, list[Any]]]
"""Asks at a base URL, streamed or whole; what the model said, and the arguments of its calls."""


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, DeskStage]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(desk_stage(tmp_path_factory.mktemp(name), name)) for name in DIALECTS}


# --- a question of several parts, with a tool, to each -------------------------------------------------


def chat(url: str, is_stream: bool) -> tuple[str, list[Any]]:
    parts: Any = [
        {"type": "text", "text": "aaa"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}},
        {"type": "text", "text": "bbb"},
    ]
    tool: Any = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
    wanted: Any = {"model": "m", "messages": [{"role": "user", "content": parts}], "tools": [tool]}
    with openai.OpenAI(base_url=f"{url}/v1", api_key="sk-own-1234", timeout=SILENCE) as sdk:
        if is_stream:
            with sdk.chat.completions.stream(**wanted) as told:
                message = told.get_final_completion().choices[0].message
        else:
            message = sdk.chat.completions.create(**wanted).choices[0].message
    return message.content or "", [json.loads(call.function.arguments) for call in message.tool_calls or []]


def responses(url: str, is_stream: bool) -> tuple[str, list[Any]]:
    parts: Any = [
        {"type": "input_text", "text": "aaa"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}", "detail": "auto"},
        {"type": "input_text", "text": "bbb"},
    ]
    tool: Any = {"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}
    wanted: Any = {"model": "m", "input": [{"role": "user", "content": parts}], "tools": [tool]}
    with openai.OpenAI(base_url=f"{url}/v1", api_key="sk-own-1234", timeout=SILENCE) as sdk:
        if is_stream:
            with sdk.responses.stream(**wanted) as told:
                reply = told.get_final_response()
        else:
            reply = sdk.responses.create(**wanted)
    return reply.output_text, [json.loads(item.arguments) for item in reply.output if item.type == "function_call"]


def messages(url: str, is_stream: bool) -> tuple[str, list[Any]]:
    source = {"type": "base64", "media_type": "image/png", "data": PICTURE}
    parts: Any = [{"type": "text", "text": "aaa"}, {"type": "image", "source": source}, {"type": "text", "text": "bbb"}]
    tool: Any = {"name": "weather", "input_schema": SCHEMA}
    wanted: Any = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": parts}], "tools": [tool]}
    with anthropic.Anthropic(base_url=url, api_key="sk-ant-own-1", timeout=SILENCE) as sdk:
        if is_stream:
            with sdk.messages.stream(**wanted) as told:
                reply = told.get_final_message()
        else:
            reply = sdk.messages.create(**wanted)
    text = "".join(block.text for block in reply.content if block.type == "text")
    return text, [block.input for block in reply.content if block.type == "tool_use"]


def gemini(url: str, is_stream: bool) -> tuple[str, list[Any]]:
    tool = types.Tool(function_declarations=[types.FunctionDeclaration(name="weather", parameters_json_schema=SCHEMA)])
    quiet = types.AutomaticFunctionCallingConfig(disable=True)
    config = types.GenerateContentConfig(tools=[tool], automatic_function_calling=quiet)
    image = types.Part.from_bytes(data=b"picture", mime_type="image/png")
    parts = [types.Part.from_text(text="aaa"), image, types.Part.from_text(text="bbb")]
    wanted: Any = {"model": "m", "contents": types.UserContent(parts=parts), "config": config}
    options = types.HttpOptions(base_url=url, timeout=int(SILENCE * 1000))
    with genai.Client(api_key="own-google-key", vertexai=False, http_options=options) as sdk:
        if is_stream:
            told = list(sdk.models.generate_content_stream(**wanted))
        else:
            told = [sdk.models.generate_content(**wanted)]
    said: list[Any] = [part for each in told for part in ((each.candidates or [])[0].content.parts or [])]
    return "".join(part.text or "" for part in said), [part.function_call.args for part in said if part.function_call]


ASKED: dict[str, Asking] = {
    "openai-chat": chat, "openai-responses": responses, "anthropic": messages, "gemini": gemini,
}  # fmt: skip


def waiting(stage: DeskStage, session: str, *, is_stream: bool) -> tuple[str, Any]:
    """An SDK that waits, and the exchange that it waits for."""
    future = stage.pool.submit(ASKED[stage.spoken], f"{stage.server.url}/p/acme/s/{session}", is_stream)
    return stage.person.held()[0], future


# --- the stories ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("spoken", DIALECTS)
def test_a_message_of_several_parts_is_edited_and_what_leaves_is_what_was_shown(
    stages: dict[str, DeskStage], spoken: str, is_stream: bool
) -> None:
    stage = stages[spoken]
    stage.says(stream=is_stream)
    person = stage.person
    exchange, client = waiting(stage, "edit", is_stream=is_stream)
    view = person.view(exchange)
    (user,) = [section for section in view["sections"] if section["kind"] == "user"]
    assert user["text"] == "aaabbb"
    assert [part["type"] for part in user["parts"]] == ["text", "image", "text"]
    after = person.edited(exchange, op="set_text", section=user["id"], text="aaXXbbb!")
    (changed,) = [section for section in after["sections"] if section["id"] == user["id"]]
    assert [part["text"] for part in changed["parts"] if part["type"] == "text"] == ["aaXX", "bbb!"]
    assert after["tokens"]["estimate"] >= view["tokens"]["estimate"]
    shown = stage.server.body(exchange, "sent")
    assert sha256(shown).hexdigest() == after["body_sha256"] != view["body_sha256"]
    assert person.release(exchange, view["body_sha256"])[0] == 409
    assert person.release(exchange, after["body_sha256"])[0] == 200
    assert client.result(20)[0] == "Hello there."
    assert stage.sent[-1] == shown
    over = person.ended(exchange)
    kinds = [fact["kind"] for fact in over["facts"] if fact["kind"] != "frame"]
    assert kinds == ["received", "held", "edited", "released", "attempt", "finished"]
    hashes = {fact["sha256"] for fact in over["facts"] if fact["kind"] in ("released", "attempt")}
    assert hashes == {after["body_sha256"]} == {over["hashes"]["sent"]}


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("spoken", DIALECTS)
def test_a_reply_that_a_person_writes_is_a_proper_one_for_its_client(
    stages: dict[str, DeskStage], spoken: str, is_stream: bool
) -> None:
    stage = stages[spoken]
    count = len(stage.sent)
    exchange, client = waiting(stage, "hand", is_stream=is_stream)
    assert stage.person.act(exchange, "answer", {"reply": BY_HAND})[0] == 200
    assert client.result(20) == ("I look.", [{"city": "Oslo"}])
    view = stage.person.ended(exchange)
    assert (view["state"], view["finish"], len(stage.sent)) == ("finished", "tool_calls", count)
    assert [fact["kind"] for fact in view["facts"] if fact["kind"] not in ("frame", "stored")] == [
        "received", "held", "answered", "finished",
    ]  # fmt: skip
    assert stage.person.get(f"/api/exchanges/{exchange}/reply")["reply"]["parts"][1]["arguments"] == CALL["arguments"]


@pytest.mark.parametrize("spoken", DIALECTS)
@pytest.mark.parametrize("deed", ["edit", "delete", "leave", "drop"])
def test_the_calls_of_a_reply_wait_for_a_person(stages: dict[str, DeskStage], spoken: str, deed: str) -> None:
    """Streamed; test_held_calls.py has whole replies too."""
    stage = stages[spoken]
    stage.says(calls=True, stream=True)
    person = stage.person
    person.put("/api/interception", {"mode": "rules"})
    person.put("/api/rules", [{"filter": "session:calls", "phase": "tool_calls"}])
    try:
        exchange, client = waiting(stage, "calls", is_stream=True)
        view = person.view(exchange)
        (call,) = view["sections"]
        assert (view["hold"]["phase"], json.loads(call["text"])) == ("tool_calls", {"city": "Rome"})
        assert sha256(stage.server.body(exchange, "held")).hexdigest() == view["body_sha256"]
        if deed == "edit":
            person.edited(exchange, op="set_text", section=call["id"], text='{"city": "Bern"}')
        elif deed == "delete":
            person.edited(exchange, op="delete", section=call["id"])
        elif deed == "drop":
            assert person.act(exchange, "drop", {"reason": "not this one"})[0] == 200
            with pytest.raises(ERRORS, match="not this one"):
                client.result(20)
            assert person.view(exchange)["state"] == "dropped"
            return
        assert person.release(exchange)[0] == 200
        expected = {"edit": [{"city": "Bern"}], "delete": [], "leave": [{"city": "Rome"}]}[deed]
        assert client.result(20) == ("Let me look.", expected)
        assert person.ended(exchange)["state"] == "finished"
    finally:
        person.put("/api/rules", [])
        person.put("/api/interception", {"mode": "every"})
        stage.says()


@pytest.mark.parametrize("spoken", DIALECTS)
def test_what_is_dropped_is_an_error_that_no_client_sends_again(stages: dict[str, DeskStage], spoken: str) -> None:
    stage = stages[spoken]
    exchange, client = waiting(stage, "drop", is_stream=True)
    stage.person.act(exchange, "drop", {"reason": "not today"})
    with pytest.raises(ERRORS, match="not today"):
        client.result(20)
    assert [each["state"] for each in stage.person.get("/api/exchanges?filter=session:drop")["exchanges"]] == [
        "dropped"
    ]


def test_no_sdk_gives_up_while_it_gets_signs_of_life(
    stages: dict[str, DeskStage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one test that waits for real: every client would be gone after half of it without a sign of life."""
    monkeypatch.setattr(keepalive, "TICK", 1.0)
    monkeypatch.setattr(sys.modules[__name__], "SILENCE", 4.0)
    for stage in stages.values():
        stage.says(stream=True)
        stage.person.put("/api/interception", {"mode": "rules"})
        stage.person.put("/api/rules", [{"filter": "session:long", "timeout_s": 8, "on_timeout": "send"}])
    clients = [
        stage.pool.submit(ASKED[name], f"{stage.server.url}/p/acme/s/long", True) for name, stage in stages.items()
    ]
    assert [client.result(60)[0] for client in clients] == ["Hello there."] * 4
    for stage in stages.values():
        stage.person.put("/api/rules", [])
        stage.person.put("/api/interception", {"mode": "every"})
        (only,) = stage.person.get("/api/exchanges?filter=session:long")["exchanges"]
        assert only["state"] == "finished"
        assert only["elapsed"] >= 8


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_a_client_that_hangs_up_ends_its_hold(stages: dict[str, DeskStage], is_stream: bool) -> None:
    stage = stages["openai-chat"]
    at = urlsplit(stage.server.url)
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=20)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": is_stream})
    connection.request("POST", "/p/acme/s/gone/v1/chat/completions", body)
    exchange = stage.person.held()[0]
    connection.close()
    assert stage.person.ended(exchange)["state"] == "cancelled"
