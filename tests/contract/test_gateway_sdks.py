"""The vendors' own SDKs through the gateway, to providers of their own dialect and of every other."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import anthropic
import openai
import pytest
from anthropic import beta_tool
from google import genai
from google.genai import types
from openai.types.responses import ResponseFunctionShellToolCall
from pydantic import BaseModel

from sightline.dialects.dialect import Client
from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
    Ended,
    Finished,
    Started,
    StreamEvent,
    TextReceived,
    ToolCallBegun,
    ToolCallCompleted,
    UsageReceived,
)
from sightline.model.reply import Usage
from tests.contract.loopback import Upstream, gateway_to
from tests.gateway_server import Served

DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini")
COUNTED = UsageReceived(Usage(input_tokens=11, output_tokens=5))
CALL: list[StreamEvent] = [
    Started("r1", "model-of-provider"),
    ToolCallBegun(0, "call_1", "weather"),
    ArgumentsReceived(0, '{"city":'),
    ArgumentsReceived(0, '"Oslo"}'),
    ToolCallCompleted(0),
    COUNTED,
    Finished("tool_calls"),
    Ended(),
]
TEXT: list[StreamEvent] = [
    Started("r2", "model-of-provider"),
    TextReceived(0, "It is "),
    TextReceived(0, "warm 😀."),
    COUNTED,
    Finished("stop"),
    Ended(),
]
JSON: list[StreamEvent] = [Started("r3", "m"), TextReceived(0, '{"city": "Oslo", "degrees": 7}'), COUNTED,
                           Finished("stop"), Ended()]  # fmt: skip
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Turns:
    """Other events at every telling; the last ones again and again."""

    def __init__(self, *turns: Sequence[StreamEvent]) -> None:
        self._turns = list(turns)

    def __iter__(self) -> Iterator[StreamEvent]:
        return iter(self._turns.pop(0) if len(self._turns) > 1 else self._turns[0])


@pytest.fixture(scope="module")
def upstreams() -> dict[str, Upstream]:
    return {name: Upstream(dialect(name), Client(id="c", model="m")) for name in DIALECTS}


@pytest.fixture(scope="module")
def gateway(upstreams: dict[str, Upstream], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with gateway_to(upstreams, tmp_path_factory.mktemp("gateway")) as running:
        yield running


@pytest.fixture
def upstream(upstreams: dict[str, Upstream], spoken: str) -> Upstream:
    """The provider of the case, fresh."""
    chosen = upstreams[spoken]
    chosen.bodies.clear()
    chosen.fault = None
    return chosen


def via_openai(gateway: Served, spoken: str) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=f"{gateway.url}/p/to-{spoken}/s/sdk/v1", api_key="sk-own-key-1", max_retries=0, timeout=60
    )


def via_anthropic(gateway: Served, spoken: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(
        base_url=f"{gateway.url}/p/to-{spoken}/s/sdk", api_key="sk-ant-own-1", max_retries=0, timeout=60
    )


def via_google(gateway: Served, spoken: str) -> genai.Client:
    options = types.HttpOptions(
        base_url=f"{gateway.url}/p/to-{spoken}/s/sdk", retry_options=types.HttpRetryOptions(attempts=1)
    )
    return genai.Client(api_key="own-google-key", vertexai=False, http_options=options)


# --- a tool round trip with each --------------------------------------------------------------------


def chat(gateway: Served, spoken: str, *, stream: bool) -> str:
    tool = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
    messages: list[Any] = [{"role": "user", "content": "How is it in Oslo?"}]
    with via_openai(gateway, spoken) as sdk:

        def answer() -> Any:
            ask: Any = {"model": "m", "messages": messages, "tools": [tool]}
            if not stream:
                return sdk.chat.completions.create(**ask).choices[0].message
            with sdk.chat.completions.stream(**ask) as told:
                return told.get_final_completion().choices[0].message

        message = answer()
        (call,) = message.tool_calls
        assert (call.function.name, json.loads(call.function.arguments)) == ("weather", {"city": "Oslo"})
        kept = {key: value for key, value in message.to_dict().items() if key in ("role", "content")}
        kept["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": "weather", "arguments": call.function.arguments}}
        ]
        messages += [kept, {"role": "tool", "tool_call_id": call.id, "content": "seven degrees"}]
        return str(answer().content)


def responses(gateway: Served, spoken: str, *, stream: bool) -> str:
    tool = {"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}
    items: list[Any] = [{"role": "user", "content": "How is it in Oslo?"}]
    with via_openai(gateway, spoken) as sdk:

        def answer() -> Any:
            ask: Any = {"model": "m", "input": items, "tools": [tool], "store": False}
            if not stream:
                return sdk.responses.create(**ask)
            with sdk.responses.stream(**ask) as told:
                return told.get_final_response()

        (call,) = [item for item in answer().output if item.type == "function_call"]
        assert (call.name, json.loads(call.arguments)) == ("weather", {"city": "Oslo"})
        items += [
            {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments},
            {"type": "function_call_output", "call_id": call.call_id, "output": "seven degrees"},
        ]
        return str(answer().output_text)


def messages(gateway: Served, spoken: str, *, stream: bool) -> str:
    tool = {"name": "weather", "input_schema": SCHEMA}
    turns: list[Any] = [{"role": "user", "content": "How is it in Oslo?"}]
    with via_anthropic(gateway, spoken) as sdk:

        def answer() -> Any:
            ask: Any = {"model": "m", "max_tokens": 100, "messages": turns, "tools": [tool]}
            if not stream:
                return sdk.messages.create(**ask)
            with sdk.messages.stream(**ask) as told:
                return told.get_final_message()

        (call,) = [block for block in answer().content if block.type == "tool_use"]
        assert (call.name, call.input) == ("weather", {"city": "Oslo"})
        asked = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "seven degrees"}
        turns += [{"role": "assistant", "content": [asked]}, {"role": "user", "content": [result]}]
        return "".join(block.text for block in answer().content if block.type == "text")


def google(gateway: Served, spoken: str, *, stream: bool) -> str:
    def weather(city: str) -> str:
        """How the weather is in a city."""
        assert city == "Oslo"
        return "seven degrees"

    client = via_google(gateway, spoken)
    try:
        settings = types.GenerateContentConfig(tools=[weather])
        ask: Any = {"model": "m", "contents": "How is it in Oslo?", "config": settings}
        if not stream:
            return client.models.generate_content(**ask).text or ""
        return "".join(each.text or "" for each in client.models.generate_content_stream(**ask))
    finally:
        client.close()


TRIPS: dict[str, Callable[..., str]] = {
    "openai-chat": chat,
    "openai-responses": responses,
    "anthropic": messages,
    "gemini": google,
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("spoken", DIALECTS)
@pytest.mark.parametrize("arriving", TRIPS)
def test_a_tool_round_trip(gateway: Served, upstream: Upstream, spoken: str, arriving: str, stream: bool) -> None:
    upstream.events = Turns(CALL, TEXT)
    assert TRIPS[arriving](gateway, spoken, stream=stream) == "It is warm 😀."
    first, second = upstream.bodies
    assert "seven degrees" not in json.dumps(first)
    assert "seven degrees" in json.dumps(second)
    if spoken != "gemini":
        assert bool(second.get("stream")) is stream
    latest = gateway.api("/api/exchanges?limit=2")["exchanges"]
    for line in latest:
        assert (line["state"], line["status"], line["session"]) == ("finished", 200, "sdk")
        assert (line["dialect"], line["provider"]) == (arriving, f"to-{spoken}")
        assert (line["input_tokens"], line["output_tokens"]) == (11, 5)
    sent = json.loads(gateway.body(latest[0]["id"], "sent"))
    assert sent == second


# --- what each SDK has besides ----------------------------------------------------------------------


class Weather(BaseModel):
    city: str
    degrees: int


@pytest.mark.parametrize("spoken", DIALECTS)
def test_an_answer_parsed_by_a_schema(gateway: Served, upstream: Upstream, spoken: str) -> None:
    upstream.events = JSON
    with via_openai(gateway, spoken) as sdk:
        said = sdk.chat.completions.parse(
            model="m", messages=[{"role": "user", "content": "?"}], response_format=Weather
        )
        assert said.choices[0].message.parsed == Weather(city="Oslo", degrees=7)
        answered = sdk.responses.parse(model="m", input="?", text_format=Weather)
        assert answered.output_parsed == Weather(city="Oslo", degrees=7)
    for body in upstream.bodies:
        assert "degrees" in json.dumps(body)


@beta_tool
def weather(city: str) -> str:
    """How the weather is in a city.

    Args:
        city: its name
    """
    return f"seven degrees in {city}"


@pytest.mark.parametrize("spoken", DIALECTS)
def test_the_tool_runner_shows_the_whole_conversation(gateway: Served, upstream: Upstream, spoken: str) -> None:
    upstream.events = Turns(CALL, TEXT)
    with via_anthropic(gateway, spoken) as sdk:
        runner = sdk.beta.messages.tool_runner(
            model="m", max_tokens=100, messages=[{"role": "user", "content": "Oslo?"}], tools=[weather]
        )
        last = runner.until_done()
    assert "".join(block.text for block in last.content if block.type == "text") == "It is warm 😀."
    told = json.dumps(upstream.bodies[-1])
    assert "seven degrees in Oslo" in told
    if spoken != "anthropic":
        assert "Oslo?" in told  # state on the provider's side does not translate, so that the SDK sends everything


@pytest.mark.parametrize("spoken", DIALECTS)
def test_a_refusal_of_the_provider_is_the_sdks_own_exception(gateway: Served, upstream: Upstream, spoken: str) -> None:
    upstream.fault = Fault(Code.RATE_LIMITED, "slow down please", status=429)
    with via_openai(gateway, spoken) as sdk, pytest.raises(openai.RateLimitError, match="slow down please"):
        sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
    with via_openai(gateway, spoken) as sdk, pytest.raises(openai.RateLimitError, match="slow down please"):
        sdk.responses.create(model="m", input="?", stream=True)
    with via_anthropic(gateway, spoken) as claude, pytest.raises(anthropic.RateLimitError, match="slow down please"):
        claude.messages.create(model="m", max_tokens=5, messages=[{"role": "user", "content": "?"}])
    client = via_google(gateway, spoken)
    with pytest.raises(genai.errors.ClientError, match="slow down please"):
        client.models.generate_content(model="m", contents="?")
    client.close()


def test_every_sdk_lists_models(gateway: Served) -> None:
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="k") as sdk:
        names = [model.id for model in sdk.models.list()]
        assert names
        assert sdk.models.retrieve(names[0]).id == names[0]
        with pytest.raises(openai.NotFoundError):
            sdk.models.retrieve("no-such-model")
    with anthropic.Anthropic(base_url=gateway.url, api_key="k") as claude:
        assert [model.id for model in claude.models.list()] == names
    options = types.HttpOptions(base_url=gateway.url)
    client = genai.Client(api_key="k", vertexai=False, http_options=options)
    assert [model.name for model in client.models.list(config={"query_base": True})] == [f"models/{n}" for n in names]
    client.close()


@pytest.mark.parametrize("spoken", DIALECTS)
def test_client_credentials_are_not_recorded(gateway: Served, upstream: Upstream, spoken: str) -> None:
    upstream.events = TEXT
    with via_openai(gateway, spoken) as sdk:
        sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
    (line,) = gateway.api("/api/exchanges?limit=1")["exchanges"]
    assert "sk-own-key-1" not in json.dumps(gateway.api(f"/api/exchanges/{line['id']}"))


SHELL: list[StreamEvent] = [
    Started("r4", "m"),
    ToolCallBegun(0, "call_9", "shell"),
    ArgumentsReceived(0, '{"commands": ["uname"],'),
    ArgumentsReceived(0, ' "timeout_ms": 1000}'),
    ToolCallCompleted(0),
    COUNTED,
    Finished("tool_calls"),
    Ended(),
]


@pytest.mark.parametrize("spoken", ["openai-chat", "anthropic", "gemini"])
def test_a_built_in_tool_of_openai_is_run_by_its_client_for_any_model(
    gateway: Served, upstream: Upstream, spoken: str
) -> None:
    client = via_openai(gateway, spoken)
    tools: Any = [{"type": "shell", "environment": {"type": "local"}}]
    for stream in (True, False):
        upstream.events = Turns(SHELL, TEXT)
        if stream:
            with client.responses.stream(model="m", input="Which system?", tools=tools) as events:
                first = events.get_final_response()
        else:
            first = client.responses.create(model="m", input="Which system?", tools=tools)
        (call,) = first.output
        assert isinstance(call, ResponseFunctionShellToolCall)
        assert call.action.commands == ["uname"]
        output = {"stdout": "Linux", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
        result: Any = {"type": "shell_call_output", "call_id": call.call_id, "output": [output]}
        history: Any = [{"role": "user", "content": "Which system?"}, call.model_dump(exclude_none=True), result]
        second = client.responses.create(model="m", input=history, tools=tools)
        assert second.output_text == "It is warm 😀."
        assert "Linux" in json.dumps(upstream.bodies[-1])
