"""The vendors' own SDKs while a person keeps them waiting: half a minute for real, and every way it can end."""

import asyncio
import http.client
import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors as google_errors
from google.genai import types

from sightline.dialects.dialect import Client
from sightline.dialects.registry import dialect
from sightline.editing.operations import SetText
from sightline.exchange.interception.hold import Hold
from sightline.exchange.interception.holds import Holds
from tests.contract.loopback import Upstream, speaking
from tests.gateway_server import Served, served
from tests.reply_samples import CALLS, SAYS

DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini")
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}
SILENCE = 15.0
"""Seconds without a byte after which these clients give up."""

T = TypeVar("T")


class Person:
    """Whoever decides. The server runs in a thread of its own, where all of this has to happen."""

    arrived: asyncio.Event

    def __init__(self) -> None:
        self.holds: Holds | None = None
        self.loop: asyncio.AbstractEventLoop | None = None

    def does(self, what: Callable[[Holds], T]) -> T:
        async def done() -> T:
            assert self.holds is not None
            return what(self.holds)

        assert self.loop is not None
        return asyncio.run_coroutine_threadsafe(done(), self.loop).result(20)

    def sees(self) -> Hold:
        """The hold of the one client that waits."""
        self._until(lambda holds: bool(holds.waiting))
        return self.does(lambda holds: holds.waiting[0])

    def is_left(self) -> None:
        """Return once nobody waits."""
        self._until(lambda holds: not holds.waiting)

    def _until(self, condition: Callable[[Holds], bool]) -> None:
        async def waited() -> None:
            assert self.holds is not None
            while not condition(self.holds):
                self.arrived.clear()
                await self.arrived.wait()

        assert self.loop is not None
        asyncio.run_coroutine_threadsafe(waited(), self.loop).result(20)


@pytest.fixture(scope="module")
def upstreams() -> Iterator[dict[str, Upstream]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(speaking(dialect(name), Client(id="c", model="m"))) for name in DIALECTS}


@pytest.fixture(scope="module")
def person() -> Person:
    return Person()


@pytest.fixture(scope="module")
def gateway(
    upstreams: dict[str, Upstream], tmp_path_factory: pytest.TempPathFactory, person: Person
) -> Iterator[Served]:
    tables = [
        f'[providers.to-{name}]\ndialect = "{name}"\nbase_url = "{upstream.url}{"/v1" if "openai" in name else ""}"\n'
        for name, upstream in upstreams.items()
    ]

    class Watched(Holds):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            if person.holds is None:  # the relay that clients' requests take is made first
                person.holds, person.loop, person.arrived = self, asyncio.get_running_loop(), asyncio.Event()

        def add(self, hold: Hold) -> None:
            super().add(hold)
            person.arrived.set()

        def forget(self, hold: Hold) -> None:
            super().forget(hold)
            person.arrived.set()

    folder: Path = tmp_path_factory.mktemp("held")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sightline.exchange.interception.holds.Holds", Watched)
        with served(folder, "\n".join(tables)) as running:
            yield running


# --- one question to each ---------------------------------------------------------------------------


def chat(url: str) -> tuple[str, Any]:
    tool: Any = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
    with (
        openai.OpenAI(base_url=f"{url}/v1", api_key="sk-own-1234", timeout=SILENCE) as sdk,
        sdk.chat.completions.stream(model="m", messages=[{"role": "user", "content": "hi"}], tools=[tool]) as told,
    ):
        message = told.get_final_completion().choices[0].message
        calls = [json.loads(call.function.arguments) for call in message.tool_calls or []]
        return str(message.content or ""), calls


def responses(url: str) -> tuple[str, Any]:
    tool: Any = {"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}
    with (
        openai.OpenAI(base_url=f"{url}/v1", api_key="sk-own-1234", timeout=SILENCE) as sdk,
        sdk.responses.stream(model="m", input="hi", tools=[tool]) as told,
    ):
        reply = told.get_final_response()
        calls = [json.loads(item.arguments) for item in reply.output if item.type == "function_call"]
        return reply.output_text, calls


def messages(url: str) -> tuple[str, Any]:
    tool: Any = {"name": "weather", "input_schema": SCHEMA}
    with (
        anthropic.Anthropic(base_url=url, api_key="sk-ant-own-1", timeout=SILENCE) as sdk,
        sdk.messages.stream(
            model="m", max_tokens=50, messages=[{"role": "user", "content": "hi"}], tools=[tool]
        ) as told,
    ):
        reply = told.get_final_message()
        text = "".join(block.text for block in reply.content if block.type == "text")
        return text, [block.input for block in reply.content if block.type == "tool_use"]


def gemini(url: str) -> tuple[str, Any]:
    options = types.HttpOptions(base_url=url, timeout=int(SILENCE * 1000))
    tool = types.Tool(function_declarations=[types.FunctionDeclaration(name="weather", parameters_json_schema=SCHEMA)])
    quiet = types.AutomaticFunctionCallingConfig(disable=True)
    config = types.GenerateContentConfig(tools=[tool], automatic_function_calling=quiet)
    with genai.Client(api_key="own-google-key", vertexai=False, http_options=options) as sdk:
        told = list(sdk.models.generate_content_stream(model="m", contents="hi", config=config))
    parts = [part for chunk in told if chunk.candidates for part in (chunk.candidates[0].content.parts or [])]
    calls = [part.function_call.args for part in parts if part.function_call]
    return "".join(part.text or "" for part in parts), calls


ASKED: dict[str, Callable[[str], tuple[str, Any]]] = {
    "openai-chat": chat,
    "openai-responses": responses,
    "anthropic": messages,
    "gemini": gemini,
}
ERRORS = (openai.APIError, anthropic.APIError, google_errors.APIError)


def asking(pool: ThreadPoolExecutor, gateway: Served, spoken: str, session: str) -> "Future[tuple[str, Any]]":
    return pool.submit(ASKED[spoken], f"{gateway.url}/p/to-{spoken}/s/{session}")


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as threads:
        yield threads


# --- the stories ------------------------------------------------------------------------------------


def test_no_sdk_gives_up_during_half_a_minute(
    gateway: Served, upstreams: dict[str, Upstream], person: Person, pool: ThreadPoolExecutor
) -> None:
    """The one test that waits for real: every client would be gone after half of it without a sign of life."""
    person.does(lambda holds: holds.set_rules([{"filter": "session:long", "timeout_s": 31, "on_timeout": "send"}]))
    for upstream in upstreams.values():
        upstream.events = SAYS
    waiting = [asking(pool, gateway, spoken, "long") for spoken in DIALECTS]
    assert [future.result(60)[0] for future in waiting] == ["Hello there."] * 4
    person.does(lambda holds: holds.set_rules([]))
    listed = gateway.api("/api/exchanges?filter=session:long")["exchanges"]
    assert [each["state"] for each in listed] == ["finished"] * 4
    assert all(each["elapsed"] > 30 for each in listed)


@pytest.mark.parametrize("spoken", DIALECTS)
def test_a_dropped_request_is_an_error_that_no_sdk_sends_again(
    gateway: Served, person: Person, pool: ThreadPoolExecutor, spoken: str
) -> None:
    person.does(lambda holds: holds.set_rules([{"filter": f"session:drop-{spoken}"}]))
    waiting = asking(pool, gateway, spoken, f"drop-{spoken}")
    exchange = person.sees().exchange
    person.does(lambda holds: holds.drop(exchange, "not today"))
    with pytest.raises(ERRORS, match="not today"):
        waiting.result(20)
    (only,) = gateway.api(f"/api/exchanges?filter=session:drop-{spoken}")["exchanges"]
    assert (only["id"], only["state"]) == (exchange, "dropped")


@pytest.mark.parametrize("spoken", DIALECTS)
def test_every_sdk_understands_what_a_person_wrote(
    gateway: Served, person: Person, pool: ThreadPoolExecutor, spoken: str
) -> None:
    person.does(lambda holds: holds.set_rules([{"filter": f"session:hand-{spoken}"}]))
    waiting = asking(pool, gateway, spoken, f"hand-{spoken}")
    exchange = person.sees().exchange
    call = {"type": "tool_call", "name": "weather", "arguments": '{"city": "Oslo"}'}
    reply: Any = {"parts": [{"type": "text", "text": "I look."}, call]}
    person.does(lambda holds: holds.answer(exchange, reply))
    assert waiting.result(20) == ("I look.", [{"city": "Oslo"}])


@pytest.mark.parametrize("spoken", DIALECTS)
def test_every_sdk_gets_the_arguments_that_a_person_changed(
    gateway: Served, upstreams: dict[str, Upstream], person: Person, pool: ThreadPoolExecutor, spoken: str
) -> None:
    upstreams[spoken].events = CALLS
    person.does(lambda holds: holds.set_rules([{"filter": f"session:calls-{spoken}", "phase": "tool_calls"}]))
    waiting = asking(pool, gateway, spoken, f"calls-{spoken}")
    hold = person.sees()

    def decide(holds: Holds) -> None:
        holds.edit(hold.exchange, SetText(section=hold.draft.sections[0].id, text='{"city":"Bern"}'))
        holds.release(hold.exchange, hold.draft.sha256)

    person.does(decide)
    assert waiting.result(20) == ("Let me look.", [{"city": "Bern"}])


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_hangs_up_ends_its_hold(gateway: Served, person: Person, stream: bool) -> None:
    person.does(lambda holds: holds.set_rules([{"filter": "session:gone"}]))
    at = urlsplit(gateway.url)
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=20)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": stream})
    connection.request("POST", "/p/to-openai-chat/s/gone/v1/chat/completions", body)
    exchange = person.sees().exchange
    connection.close()
    person.is_left()
    assert gateway.api(f"/api/exchanges/{exchange}")["state"] == "cancelled"
