"""The open specification of the Responses API (openresponses.org, 2026-10), as a server has to keep it, with providers
of all four dialects behind the gateway.

Not asked for here: the word `[DONE]` at the end of a stream, which OpenAI's own server does not send and which clients
that were written for it cannot read.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from sightline.dialects.dialect import Client, Dialect
from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
    Ended,
    Failed,
    Finished,
    RefusalReceived,
    SignatureReceived,
    Started,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    ToolCallCompleted,
    UsageReceived,
)
from sightline.model.reply import Usage
from tests.contract.loopback import Upstream, gateway_to
from tests.gateway_server import Served
from tests.http_call import call

DIALECTS = ("openai-responses", "anthropic", "gemini", "openai-chat")
COUNTED = UsageReceived(Usage(input_tokens=11, output_tokens=5, cached_tokens=3, reasoning_tokens=2))
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
PICTURE = f"data:image/png;base64,{PIXEL}"
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Weather of a place",
    "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
}


def reply(*events: StreamEvent, finish: str = "stop") -> list[StreamEvent]:
    return [Started("r1", "model-x", 1_700_000_000), *events, COUNTED, Finished(finish), Ended()]  # type: ignore[arg-type]


def calls(count: int = 1) -> list[StreamEvent]:
    events: list[StreamEvent] = []
    for number in range(count):
        events += [
            ToolCallBegun(number, f"call_{number}", "get_weather"),
            ArgumentsReceived(number, '{"location":'),
            ArgumentsReceived(number, '"Oslo"}'),
            ToolCallCompleted(number),
        ]
    return reply(*events, finish="tool_calls")


WORDS = reply(TextReceived(0, "Hello "), TextReceived(0, "there."))


class ConformantUpstream(Upstream):
    """An upstream that repeats its request where its own API does that."""

    def __init__(self, spoken: Dialect) -> None:
        super().__init__(spoken, Client(id="r1", model="model-x"))

    def answer_to(self, path: str, body: Any) -> tuple[int, str, bytes]:
        self._client = replace(self._client, request=self._dialect.read_request(body))
        return super().answer_to(path, body)


@pytest.fixture(scope="module")
def upstreams() -> dict[str, ConformantUpstream]:
    return {name: ConformantUpstream(dialect(name)) for name in DIALECTS}


@pytest.fixture(scope="module")
def gateway(upstreams: dict[str, ConformantUpstream], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with gateway_to(upstreams, tmp_path_factory.mktemp("gateway")) as running:
        yield running


class Server:
    """The gateway before one provider; `upstream` says what that one answers."""

    def __init__(self, gateway: Served, upstream: ConformantUpstream, spoken: str) -> None:
        self.upstream = upstream
        self.spoken = spoken
        self._url = gateway.url

    def post(self, body: bytes) -> tuple[int, str, bytes]:
        """Status, content type and body of what is answered."""
        headers = {"authorization": "Bearer sk-own-key-1", "content-type": "application/json"}
        answer = call("POST", f"{self._url}/p/to-{self.spoken}/v1/responses", body, headers=headers)
        return answer.status, answer.headers.get("content-type", ""), answer.body

    def ask(self, events: Sequence[StreamEvent], **body: Any) -> Any:
        """The response object, checked."""
        self.upstream.events = list(events)
        self.upstream.bodies.clear()
        status, kind, data = self.post(json.dumps({"model": "m", "input": "Hi.", **body}).encode())
        assert (status, kind.partition(";")[0]) == (200, "application/json"), data
        response = json.loads(data)
        check_response(response)
        return response

    def stream(self, events: Sequence[StreamEvent], **body: Any) -> list[Any]:
        """The events, checked."""
        self.upstream.events = list(events)
        self.upstream.bodies.clear()
        asked = {"model": "m", "input": "Hi.", **body, "stream": True}
        status, kind, data = self.post(json.dumps(asked).encode())
        assert (status, kind.partition(";")[0]) == (200, "text/event-stream"), data
        told = []
        for frame in data.decode().split("\n\n"):
            lines = [line for line in frame.split("\n") if line and not line.startswith(":")]
            if lines:
                name, content = (line.partition(": ")[2] for line in lines)
                event = json.loads(content)
                assert name == event["type"]
                told.append(event)
        check_stream(told)
        return told


@pytest.fixture(params=DIALECTS)
def server(request: pytest.FixtureRequest, gateway: Served, upstreams: dict[str, ConformantUpstream]) -> Server:
    upstream = upstreams[request.param]
    upstream.fault = None
    return Server(gateway, upstream, request.param)


# --- what the specification says of every response and every stream ----------------------------------

NUMBER = (int, float)
FIELDS: dict[str, Any] = {
    "id": str,
    "object": str,
    "created_at": int,
    "completed_at": (int, type(None)),
    "status": str,
    "incomplete_details": (dict, type(None)),
    "model": str,
    "previous_response_id": (str, type(None)),
    "instructions": (str, type(None)),
    "output": list,
    "error": (dict, type(None)),
    "tools": list,
    "tool_choice": (str, dict),
    "truncation": str,
    "parallel_tool_calls": bool,
    "text": dict,
    "top_p": NUMBER,
    "presence_penalty": NUMBER,
    "frequency_penalty": NUMBER,
    "top_logprobs": int,
    "temperature": NUMBER,
    "reasoning": (dict, type(None)),
    "usage": (dict, type(None)),
    "max_output_tokens": (int, type(None)),
    "max_tool_calls": (int, type(None)),
    "store": bool,
    "background": bool,
    "service_tier": str,
    "metadata": dict,
    "safety_identifier": (str, type(None)),
    "prompt_cache_key": (str, type(None)),
}
STATES = ("in_progress", "completed", "incomplete")


def check_response(response: Any) -> None:
    for name, kind in FIELDS.items():
        assert name in response, name
        assert isinstance(response[name], kind), (name, response[name])
    assert response["object"] == "response"
    assert response["id"]
    assert (response["completed_at"] is not None) is (response["status"] == "completed")
    assert (response["incomplete_details"] is not None) is (response["status"] == "incomplete")
    assert (response["error"] is not None) is (response["status"] == "failed")
    assert response["text"]["format"]["type"] in ("text", "json_object", "json_schema")
    if response["reasoning"] is not None:
        assert {"effort", "summary"} <= response["reasoning"].keys()
    for tool in response["tools"]:
        assert {"type", "name", "description", "parameters", "strict"} <= tool.keys()
    usage = response["usage"]
    if usage is not None:
        assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
        assert isinstance(usage["input_tokens_details"]["cached_tokens"], int)
        assert isinstance(usage["output_tokens_details"]["reasoning_tokens"], int)
    for place, item in enumerate(response["output"]):
        check_item(item)
        if item.get("status") == "incomplete":
            assert place == len(response["output"]) - 1
            assert response["status"] in ("incomplete", "failed")
    ids = [item["id"] for item in response["output"]]
    assert len(set(ids)) == len(ids)


def check_item(item: Any) -> None:
    assert isinstance(item["id"], str)
    match item["type"]:
        case "message":
            assert item["role"] == "assistant"
            assert item["status"] in STATES
            for part in item["content"]:
                if part["type"] == "output_text":
                    assert isinstance(part["text"], str)
                    assert isinstance(part["annotations"], list)
                else:
                    assert isinstance(part["refusal"], str)
        case "function_call":
            assert item["status"] in STATES
            assert item["call_id"]
            assert item["name"]
            assert isinstance(item["arguments"], str)
        case "reasoning":
            assert all(piece["type"] == "summary_text" for piece in item["summary"])
        case other:
            raise AssertionError(other)


PARTS = {"message": "content_index", "reasoning": "summary_index"}
TERMINAL = ("response.completed", "response.incomplete", "response.failed")


def check_stream(events: list[Any]) -> None:
    """The order of events, the life of each item, and that the deltas add up to the last snapshot."""
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[0]["type"] == "response.created"
    assert events[1]["type"] == "response.in_progress"
    assert [event["type"] for event in events if event["type"] in TERMINAL] == [events[-1]["type"]]
    for event in (*events[:2], events[-1]):
        check_response(event["response"])
    assert len({event["response"]["id"] for event in events if "response" in event}) == 1
    assert events[0]["response"]["status"] == "in_progress"
    assert events[-1]["type"] == f"response.{events[-1]['response']['status']}"
    done: list[Any] = []
    position = 2
    while position < len(events) - 1:
        position = check_life(events, position, done)
    assert events[-1]["response"]["output"] == done


def check_life(events: list[Any], position: int, done: list[Any]) -> int:
    """The events of one item, from the one that adds it; returns where the next begins."""
    added = events[position]
    assert added["type"] == "response.output_item.added"
    assert added["output_index"] == len(done)
    item = added["item"]
    assert item.get("status", "in_progress") == "in_progress"
    check_item(item)
    said: dict[int, str] = {}
    open_part: int | None = None
    while True:
        position += 1
        event = events[position]
        assert event["output_index"] == len(done)
        kind = event["type"]
        if kind == "response.output_item.done":
            break
        assert event["item_id"] == item["id"]
        if kind == "response.function_call_arguments.delta":
            said[0] = said.get(0, "") + event["delta"]
        elif kind == "response.function_call_arguments.done":
            assert event["arguments"] == said.get(0, "")
        elif kind.endswith("_part.added"):
            assert open_part is None
            open_part = event[PARTS[item["type"]]]
            assert open_part == len(said)
            said[open_part] = ""
        elif kind.endswith(".delta"):
            assert event[PARTS[item["type"]]] == open_part
            said[event[PARTS[item["type"]]]] += event["delta"]
        elif kind.endswith("_part.done"):
            assert event["part"].get("text", event["part"].get("refusal")) == said[event[PARTS[item["type"]]]]
            open_part = None
        else:
            assert kind.endswith((".text.done", "_text.done", ".refusal.done")), kind
            assert event.get("text", event.get("refusal")) == said[event[PARTS[item["type"]]]]
    assert open_part is None
    assert event["item"]["id"] == item["id"]
    check_item(event["item"])
    assert event["item"].get("status", "completed") in ("completed", "incomplete")
    done.append(event["item"])
    return position + 1


def text_of(response: Any) -> str:
    return "".join(
        part.get("text", "") for item in response["output"] if item["type"] == "message" for part in item["content"]
    )


# --- words ------------------------------------------------------------------------------------------


def test_a_response_in_words(server: Server) -> None:
    response = server.ask(WORDS, input=[{"type": "message", "role": "user", "content": "Say hello."}])
    assert (response["status"], text_of(response)) == ("completed", "Hello there.")
    assert response["usage"]["input_tokens"] == 11


def test_a_stream_of_words(server: Server) -> None:
    events = server.stream(WORDS)
    assert [event["delta"] for event in events if event["type"] == "response.output_text.delta"] == ["Hello ", "there."]
    assert text_of(events[-1]["response"]) == "Hello there."


def test_a_string_is_a_message_of_the_user(server: Server) -> None:
    server.ask(WORDS, input="What is my name?")
    assert "What is my name?" in json.dumps(server.upstream.bodies)


@pytest.mark.parametrize(
    "asked",
    [
        {"instructions": "Speak like a pirate."},
        {"input": [{"type": "message", "role": "system", "content": "Speak like a pirate."},
                   {"type": "message", "role": "user", "content": "Hi."}]},
        {"input": [{"type": "message", "role": "developer",
                    "content": [{"type": "input_text", "text": "Speak like a pirate."}]},
                   {"role": "user", "content": "Hi."}]},
    ],
)  # fmt: skip
def test_a_system_prompt_reaches_the_model(server: Server, asked: dict[str, Any]) -> None:
    response = server.ask(WORDS, **asked)
    assert "Speak like a pirate." in json.dumps(server.upstream.bodies)
    assert response["instructions"] == asked.get("instructions")


def test_a_conversation_with_earlier_answers(server: Server) -> None:
    history = [
        {"type": "message", "role": "user", "content": "My name is Ada."},
        {"type": "message", "role": "assistant", "content": "Hello Ada!", "phase": "final_answer"},
        {"type": "message", "role": "assistant", "phase": "commentary",
         "content": [{"type": "output_text", "text": "I remember that.", "annotations": []}]},
        {"type": "message", "role": "user", "content": "What is my name?"},
    ]  # fmt: skip
    server.ask(WORDS, input=history)
    sent = json.dumps(server.upstream.bodies)
    assert all(words in sent for words in ("My name is Ada.", "Hello Ada!", "I remember that.", "What is my name?"))


def test_a_picture_reaches_the_model(server: Server) -> None:
    content = [{"type": "input_text", "text": "What is it?"}, {"type": "input_image", "image_url": PICTURE}]
    server.ask(WORDS, input=[{"type": "message", "role": "user", "content": content}])
    assert PIXEL in json.dumps(server.upstream.bodies)


def test_a_refusal_is_content_of_its_own(server: Server) -> None:
    refusing = reply(RefusalReceived(0, "I will not."), finish="refusal")
    response = server.ask(refusing)
    assert "I will not." in json.dumps(response["output"])
    assert server.stream(refusing)[-1]["response"]["output"] != []


# --- tools ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2])
def test_function_calls(server: Server, count: int) -> None:
    response = server.ask(calls(count), tools=[WEATHER], tool_choice="auto", parallel_tool_calls=True)
    made = [item for item in response["output"] if item["type"] == "function_call"]
    assert [(each["name"], json.loads(each["arguments"])) for each in made] == [
        ("get_weather", {"location": "Oslo"})
    ] * count
    assert len({each["call_id"] for each in made}) == count
    assert (response["status"], response["tools"]) == ("completed", [{**WEATHER, "strict": True}])


def test_function_calls_are_streamed(server: Server) -> None:
    events = server.stream(calls(2), tools=[WEATHER])
    kinds = [event["type"] for event in events]
    assert kinds.count("response.function_call_arguments.done") == 2
    assert "response.function_call_arguments.delta" in kinds
    added = [event["item"]["name"] for event in events if event["type"] == "response.output_item.added"]
    assert added == ["get_weather", "get_weather"]


@pytest.mark.parametrize("output", ["7 degrees", [{"type": "input_text", "text": "7 degrees"}]])
def test_the_result_of_a_function_goes_back(server: Server, output: Any) -> None:
    call = {"type": "function_call", "call_id": "call_0", "name": "get_weather", "arguments": '{"location":"Oslo"}'}
    result = {"type": "function_call_output", "call_id": "call_0", "output": output}
    server.ask(WORDS, tools=[WEATHER], input=[{"role": "user", "content": "Weather?"}, call, result])
    sent = json.dumps(server.upstream.bodies)
    assert "7 degrees" in sent
    assert "Oslo" in sent


@pytest.mark.parametrize(
    "choice",
    ["auto", "none", "required", {"type": "function", "name": "get_weather"},
     {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "get_weather"}]}],
)  # fmt: skip
def test_every_tool_choice_is_taken_and_repeated(server: Server, choice: Any) -> None:
    assert server.ask(WORDS, tools=[WEATHER], tool_choice=choice)["tool_choice"] == choice


# --- reasoning and structure ------------------------------------------------------------------------


def thinking(server: Server) -> list[StreamEvent]:
    is_own = server.spoken == "openai-responses"
    seal = SignatureReceived(0, "c2VhbA==", server.spoken, id="rs_1" if is_own else None)
    words = ThinkingReceived(0, "I think.", summary=is_own)
    return reply(*((seal, words) if is_own else (words, seal)), TextReceived(1, "So."))


def test_reasoning_is_an_item_before_the_answer(server: Server) -> None:
    asked = {"reasoning": {"effort": "low", "summary": "auto"}, "include": ["reasoning.encrypted_content"],
             "store": False}  # fmt: skip
    response = server.ask(thinking(server), **asked)
    assert [item["type"] for item in response["output"]] == ["reasoning", "message"]
    item = response["output"][0]
    assert [piece["text"] for piece in item["summary"]] == ["I think."]
    assert item["encrypted_content"]
    assert {"effort": "low", "summary": "auto"}.items() <= response["reasoning"].items()
    streamed = server.stream(thinking(server), **asked)[-1]["response"]["output"]
    # A server of Chat Completions may sign its reasoning behind the answer; then the signature is an item of its own.
    assert streamed[:2] == response["output"] if server.spoken != "openai-chat" else "c2VhbA==" in json.dumps(streamed)
    # it comes back as it was given
    server.ask(WORDS, **asked, input=[{"role": "user", "content": "Hi."}, *response["output"],
                                      {"role": "user", "content": "And?"}])  # fmt: skip
    assert "c2VhbA==" in json.dumps(server.upstream.bodies)


def test_structured_output_is_asked_for_and_repeated(server: Server) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
              "additionalProperties": False}  # fmt: skip
    form = {"type": "json_schema", "name": "place", "schema": schema, "strict": True}
    response = server.ask(reply(TextReceived(0, '{"city":"Oslo"}')), text={"format": form, "verbosity": "low"})
    assert json.loads(text_of(response)) == {"city": "Oslo"}
    assert form.items() <= response["text"]["format"].items()
    assert "city" in json.dumps(server.upstream.bodies)


def test_settings_are_repeated(server: Server) -> None:
    asked = {"temperature": 0.5, "top_p": 0.9, "max_output_tokens": 64, "metadata": {"a": "b"}, "store": False,
             "prompt_cache_key": "k", "safety_identifier": "s", "truncation": "auto", "max_tool_calls": 3,
             "parallel_tool_calls": False, "service_tier": "auto"}  # fmt: skip
    response = server.ask(WORDS, **asked)
    assert {name: response[name] for name in asked} == asked


# --- ends and errors --------------------------------------------------------------------------------


def test_a_reply_that_runs_out_of_tokens_is_incomplete(server: Server) -> None:
    cut = reply(TextReceived(0, "Hello th"), finish="length")
    response = server.ask(cut, max_output_tokens=16)
    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert response["output"][-1]["status"] == "incomplete"
    assert server.stream(cut)[-1]["type"] == "response.incomplete"


@pytest.mark.parametrize(
    ("code", "status"),
    [(Code.INVALID_REQUEST, 400), (Code.AUTH, 401), (Code.MODEL_UNKNOWN, 404), (Code.RATE_LIMITED, 429)],
)
@pytest.mark.parametrize("stream", [False, True])
def test_an_error_is_an_error_object(server: Server, code: Code, status: int, stream: bool) -> None:
    server.upstream.fault = Fault(code, "it is so")
    answered, kind, data = server.post(json.dumps({"model": "m", "input": "Hi.", "stream": stream}).encode())
    assert (answered, kind.partition(";")[0]) == (status, "application/json")
    error = json.loads(data)["error"]
    assert {"message", "type", "param", "code"} <= error.keys()
    assert "it is so" in error["message"]


def test_a_stream_that_breaks_off_ends_with_a_failed_response(server: Server) -> None:
    broken = [Started("r1", "model-x", 1), TextReceived(0, "Hel"), Failed(Fault(Code.OVERLOADED, "too much")), Ended()]
    events = server.stream(broken)
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["error"]["message"]
    assert events[-1]["response"]["error"]["code"]


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"input":"Hi."}', b'{"model":"m","input":7}'])
def test_a_request_that_is_none_is_refused(server: Server, body: bytes) -> None:
    if server.spoken == "openai-responses" and b"7" in body:
        return  # what the provider of the client's own dialect takes is its to say
    answered, kind, data = server.post(body)
    assert (answered, kind.partition(";")[0]) == (400, "application/json")
    assert json.loads(data)["error"]["message"]


def test_a_response_before_that_nobody_knows_is_refused_by_its_code(server: Server) -> None:
    """With the code on which clients send the whole conversation again; a provider that keeps it itself decides."""
    server.upstream.events = WORDS
    asked = {"model": "m", "input": "And?", "previous_response_id": "resp_unknown"}
    answered, _, data = server.post(json.dumps(asked).encode())
    if server.spoken == "openai-responses":
        assert (answered, json.loads(data)["previous_response_id"]) == (200, "resp_unknown")
    else:
        error = json.loads(data)["error"]
        assert (answered, error["code"], error["param"]) == (400, "previous_response_not_found", "previous_response_id")
