"""Twenty turns of an agent with a model of another dialect, whose provider refuses a turn without its reasoning."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from tests.contract.loopback import gateway_to
from tests.contract.reasoning_providers import PROVIDERS, TURNS, ReasoningProvider, is_words, thought
from tests.gateway_server import Served

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"file": {"type": "integer"}}, "required": ["file"]}


@pytest.fixture(scope="module")
def providers() -> dict[str, ReasoningProvider]:
    return {name: kind() for name, kind in PROVIDERS.items()}


@pytest.fixture(scope="module")
def gateway(providers: dict[str, ReasoningProvider], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with gateway_to(providers, tmp_path_factory.mktemp("gateway")) as running:
        yield running


def with_anthropic(url: str, *, stream: bool) -> list[str]:
    """What the client showed of the reasoning of each turn."""
    client = anthropic.Anthropic(base_url=url, api_key="sk-ant-own-1", max_retries=0)
    messages: list[Any] = [{"role": "user", "content": "Begin."}]
    shown: list[str] = []
    ask: dict[str, Any] = {
        "model": "m",
        "max_tokens": 4000,
        "thinking": {"type": "adaptive"},
        "tools": [{"name": "look", "input_schema": SCHEMA}],
    }
    for turn in range(1, TURNS + 1):
        if stream:
            with client.messages.stream(**ask, messages=messages) as streamed:
                reply = streamed.get_final_message()
        else:
            reply = client.messages.create(**ask, messages=messages)
        shown.append("".join(block.thinking for block in reply.content if block.type == "thinking"))
        messages.append(
            {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in reply.content]}
        )
        calls = [block for block in reply.content if block.type == "tool_use"]
        assert bool(calls) is not is_words(turn)
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": f"file {turn}"} for call in calls]
        messages.append({"role": "user", "content": results or f"Go on after {turn}."})
    client.close()
    return shown


def with_responses(url: str, *, stream: bool) -> list[str]:
    """The same; an effort and a summary is all that it asks for."""
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-own-key-1", max_retries=0)
    items: list[Any] = [{"role": "user", "content": "Begin."}]
    shown: list[str] = []
    ask: dict[str, Any] = {
        "model": "m",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "medium", "summary": "auto"},
        "tools": [{"type": "function", "name": "look", "parameters": SCHEMA, "strict": False}],
    }
    for turn in range(1, TURNS + 1):
        if stream:
            with client.responses.stream(**ask, input=items) as streamed:
                reply = streamed.get_final_response()
        else:
            reply = client.responses.create(**ask, input=items)
        texts = [piece.text for item in reply.output if item.type == "reasoning" for piece in item.summary]
        shown.append("\n\n".join(texts))
        items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments", "status"}) for item in reply.output]
        calls = [item for item in reply.output if item.type == "function_call"]
        assert bool(calls) is not is_words(turn)
        items += [{"type": "function_call_output", "call_id": call.call_id, "output": f"file {turn}"} for call in calls]
        if not calls:
            items.append({"role": "user", "content": f"Go on after {turn}."})
    client.close()
    return shown


def with_gemini(url: str, *, stream: bool, keeps_thoughts: bool = True) -> list[str]:
    """The same with Google's own library; without `keeps_thoughts` as Gemini CLI, which sends no thought back."""
    options = types.HttpOptions(base_url=url, retry_options=types.HttpRetryOptions(attempts=1))
    client = genai.Client(api_key="own-google-key", vertexai=False, http_options=options)
    function = types.FunctionDeclaration(name="look", parameters_json_schema=SCHEMA)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[function])],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_level=types.ThinkingLevel.LOW),
    )
    contents: list[types.Content] = [types.UserContent("Begin.")]
    shown: list[str] = []
    for turn in range(1, TURNS + 1):
        asked: Any = {"model": "m", "contents": contents, "config": config}
        whole = client.models.generate_content_stream(**asked) if stream else [client.models.generate_content(**asked)]
        parts = [part for each in whole for part in (each.candidates[0].content.parts or [])]
        parts = [part for part in parts if part.text != "" or part.thought_signature]
        shown.append("".join(part.text for part in parts if part.thought and part.text))
        contents.append(types.ModelContent([part for part in parts if keeps_thoughts or not part.thought]))
        calls = [part.function_call for part in parts if part.function_call]
        assert bool(calls) is not is_words(turn)
        answers = [types.FunctionResponse(id=call.id, name=call.name, response={"output": "x"}) for call in calls]
        results = [types.Part(function_response=answer) for answer in answers]
        contents.append(types.UserContent(results or f"Go on after {turn}."))
    client.close()
    return shown


def with_chat(url: str, *, stream: bool) -> list[str]:
    """The same with a client of Chat Completions that sends each message back as it came."""
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-own-key-1", max_retries=0)
    messages: list[Any] = [{"role": "user", "content": "Begin."}]
    shown: list[str] = []
    function = {"name": "look", "parameters": SCHEMA}
    ask: dict[str, Any] = {"model": "m", "reasoning_effort": "medium",
                           "tools": [{"type": "function", "function": function}]}  # fmt: skip
    for turn in range(1, TURNS + 1):
        if stream:
            message: dict[str, Any] = {}
            for chunk in client.chat.completions.create(**ask, messages=messages, stream=True):
                for choice in chunk.choices:
                    for key, value in choice.delta.model_dump(exclude_none=True).items():
                        if key == "tool_calls":
                            _add_calls(message.setdefault(key, []), value)
                        else:
                            message[key] = value if key == "role" else message.get(key, "") + value
        else:
            reply = client.chat.completions.create(**ask, messages=messages)
            message = reply.choices[0].message.model_dump(exclude_none=True)
        shown.append(message.get("reasoning_content") or message.get("reasoning_text") or "")
        messages.append(message)
        calls = message.get("tool_calls", [])
        assert bool(calls) is not is_words(turn)
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": f"file {turn}"} for call in calls]
        if not calls:
            messages.append({"role": "user", "content": f"Go on after {turn}."})
    client.close()
    return shown


def _add_calls(calls: list[Any], deltas: list[Any]) -> None:
    for delta in deltas:
        if delta["index"] == len(calls):
            calls.append({"id": delta["id"], "type": "function", "function": {"name": "", "arguments": ""}})
        call = calls[delta["index"]]
        call |= {key: value for key, value in delta.items() if key not in ("index", "id", "type", "function")}
        for key, value in delta.get("function", {}).items():
            call["function"][key] += value


CLIENTS: dict[str, Callable[..., list[str]]] = {
    "anthropic": with_anthropic,
    "openai-responses": with_responses,
    "gemini": with_gemini,
    "openai-chat": with_chat,
}
PAIRS = [(client, provider) for client in CLIENTS for provider in PROVIDERS if client != provider]
WHOLE = list(zip(CLIENTS, [*PROVIDERS][1:] + [*PROVIDERS][:1], strict=True))
"""Each client and each provider once: that a stream says what a whole reply says is tested elsewhere."""


@pytest.mark.parametrize(
    ("client", "provider", "stream"),
    [*((*pair, True) for pair in PAIRS), *((*pair, False) for pair in WHOLE)],
    ids=lambda value: value if isinstance(value, str) else "streamed" if value else "whole",
)
def test_a_session_keeps_its_reasoning(
    gateway: Served, providers: dict[str, ReasoningProvider], client: str, provider: str, stream: bool
) -> None:
    url = f"{gateway.url}/p/to-{provider}/s/{client}-{stream}"
    providers[provider].bodies.clear()
    shown = CLIENTS[client](url, stream=stream)
    hidden = [turn for turn in range(1, TURNS + 1) if provider == "anthropic" and turn % 3 == 0]
    assert shown == ["" if turn in hidden else thought(turn) for turn in range(1, TURNS + 1)]
    assert len(providers[provider].bodies) == TURNS
    assert "sightline:" not in json.dumps(providers[provider].bodies)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("provider", ["anthropic", "openai-responses", "openai-chat"])
def test_a_client_that_drops_thoughts_brings_those_of_its_calls_back(
    gateway: Served, providers: dict[str, ReasoningProvider], provider: str, stream: bool
) -> None:
    providers[provider].bodies.clear()
    providers[provider].only_calls = True
    shown = with_gemini(f"{gateway.url}/p/to-{provider}/s/cli-{stream}", stream=stream, keeps_thoughts=False)
    providers[provider].only_calls = False
    assert len(shown) == len(providers[provider].bodies) == TURNS


def test_a_turn_without_its_reasoning_is_refused(gateway: Served) -> None:
    """The providers of these tests notice it."""
    client = anthropic.Anthropic(base_url=f"{gateway.url}/p/to-openai-responses", api_key="sk-ant-own-1", max_retries=0)
    ask: dict[str, Any] = {"model": "m", "max_tokens": 4000, "thinking": {"type": "adaptive"},
                           "tools": [{"name": "look", "input_schema": SCHEMA}]}  # fmt: skip
    begun = {"role": "user", "content": "Begin."}
    reply = client.messages.create(**ask, messages=[begun])
    call = next(block for block in reply.content if block.type == "tool_use")
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "x"}
    history = [begun, {"role": "assistant", "content": [call.model_dump(exclude_none=True)]},
               {"role": "user", "content": [result]}]  # fmt: skip
    with client, pytest.raises(anthropic.BadRequestError, match="the reasoning of turn 1"):
        client.messages.create(**ask, messages=history)
