import asyncio
import json

import pytest

from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import ToolOutcome, text_outcome
from sightline.dialects.endpoint import provider_dialects
from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.errors import Code, Fault
from sightline.model.fold import fold
from sightline.model.json import Json
from sightline.model.parts import Text, Thinking, ToolCall
from sightline.model.reply import Reply
from sightline.testing.script import (
    Script,
    ScriptedProvider,
    ScriptedResult,
    ScriptedRound,
    ScriptedTools,
    ToolLine,
    read_script,
)
from sightline.transport.http.client import HttpClient
from sightline.transport.http.dialling import Trust
from sightline.transport.http.target import Proxies, Timeouts
from sightline.wire.call import HttpRequest
from tests.contract.test_loop_trace import IDS, STREAMS, WORDS

DIALECTS = tuple(each.name for each in provider_dialects())


def script(value: Json, **files: bytes) -> Script:
    kept = {"script.json": json.dumps(value).encode(), **files}
    return read_script(["script.json"], lambda name, _beside: kept[name])


def heard(script: Script, number: int, spoken: str) -> Reply:
    hearing = ReplyDecoder(dialect(spoken))
    events = [event for piece in script.pieces(number, spoken) for event in hearing.feed(piece)]
    return fold([*events, *hearing.close()], spoken)


DELTAS: list[Json] = [
    {"thinking": "Two "},
    {"thinking": "files."},
    "I'll ",
    "edit.",
    {"call": "edit", "id": "a", "arguments": ['{"path":', ' "x"}']},
    {"call": "edit", "arguments": {"path": "y"}},
    {"call": "look"},
]


@pytest.mark.parametrize("spoken", DIALECTS)
def test_deltas_are_streamed_in_any_dialect(spoken: str) -> None:
    made = script({"rounds": [{"deltas": DELTAS, "usage": {"input_tokens": 7, "output_tokens": 3}}]})
    reply = heard(made, 0, spoken)
    assert reply.fault is None
    parts = reply.choice.parts
    assert "".join(part.text for part in parts if isinstance(part, Text)) == "I'll edit."
    assert [(call.name, json.loads(call.arguments)) for call in reply.choice.tool_calls] == [
        ("edit", {"path": "x"}),
        ("edit", {"path": "y"}),
        ("look", {}),
    ]
    assert reply.choice.finish == "tool_calls"
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (7, 3)
    assert len(made.pieces(0, spoken)) > 5
    if spoken == "anthropic":
        assert [part.text for part in parts if isinstance(part, Thinking)] == ["Two files."]
        assert [part.id for part in parts if isinstance(part, ToolCall)] == ["a", "call_1_2", "call_1_3"]


def test_arguments_may_be_one_text_and_a_reply_may_be_cut() -> None:
    made = script({"rounds": [{"deltas": [{"call": "a", "arguments": "{"}], "finish": "length"}]})
    reply = heard(made, 0, "openai-chat")
    assert (reply.choice.finish, reply.choice.tool_calls[0].arguments) == ("length", "{")


@pytest.mark.parametrize("spoken", DIALECTS)
def test_a_capture_is_played_as_it_came_and_knows_its_dialect(spoken: str) -> None:
    data = STREAMS[spoken]()
    made = read_script(["one.sse", "two.sse"], lambda name, _beside: data)
    assert (made.reply_dialect(), len(made.rounds)) == (spoken, 2)
    assert b"".join(made.pieces(1, spoken)) == data
    reply = heard(made, 0, spoken)
    assert [call.id for call in reply.choice.tool_calls] == list(IDS)
    assert "".join(part.text for part in reply.choice.parts if isinstance(part, Text)) == "".join(WORDS)
    other = next(each for each in DIALECTS if each != spoken)
    with pytest.raises(Fault, match=f"one.sse is a stream of {spoken}, not of {other}"):
        made.reply_dialect(other)


def test_a_script_may_name_captures_that_lie_beside_it() -> None:
    asked: list[tuple[str, str]] = []

    def read(name: str, beside: str) -> bytes:
        asked.append((name, beside))
        return b'{"rounds": [{"capture": "a.sse"}, {"deltas": ["Done."]}]}' if not beside else STREAMS["gemini"]()

    made = read_script(["folder/script.json"], read)
    assert asked == [("folder/script.json", ""), ("a.sse", "folder/script.json")]
    assert made.reply_dialect() == "gemini"


def test_the_dialect_is_what_is_wanted_else_what_is_written_else_the_usual_one() -> None:
    made = script({"rounds": [{"deltas": ["Hi."]}], "dialect": "gemini"})
    assert (made.reply_dialect(), made.reply_dialect("anthropic")) == ("gemini", "anthropic")
    assert script({"rounds": [{"deltas": ["Hi."]}]}).reply_dialect() == "openai-chat"
    with pytest.raises(Fault, match="no model speaks 'raw'"):
        made.reply_dialect("raw")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({}, "`rounds`"),
        ({"rounds": []}, "length >= 1"),
        ({"rounds": [{"deltas": [{"cal": "x"}]}]}, "`cal`"),
        ({"rounds": [{"deltas": [1]}]}, "str"),
        ({"rounds": [{"deltas": ["x"], "capture": "y"}]}, "deltas or a capture, not both"),
        ({"rounds": [{"delta": ["x"]}]}, "`delta`"),
    ],
)
def test_invalid_script_is_reported(value: Json, words: str) -> None:
    with pytest.raises(Fault) as caught:
        script(value)
    assert (caught.value.code, words in caught.value.message) == (Code.USAGE, True), caught.value.message
    assert caught.value.message.startswith("script.json is no script: ")


def test_file_that_is_neither_script_nor_stream_is_reported() -> None:
    made = read_script(["notes.txt"], lambda _name, _beside: b"data: [DONE]\n\ndata: [1]\n\nhello")
    with pytest.raises(Fault, match=r"notes\.txt is neither a script nor a captured stream"):
        made.reply_dialect()
    with pytest.raises(Fault, match="is no script"):
        read_script(["a.json"], lambda _name, _beside: b"{")
    with pytest.raises(Fault, match="a whole script"):
        read_script(["a.json", "b.json"], lambda _name, _beside: b"{}")


SCRIPT = Script((ScriptedRound(deltas=("Hel", "lo.")), ScriptedRound(deltas=("Bye.",))))


def test_each_request_gets_the_next_reply_until_the_script_is_over() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def story() -> None:
        client = HttpClient(trust=Trust(environment={}), proxies=Proxies.of({}))
        async with ScriptedProvider(SCRIPT, "anthropic", sleep=sleep, delay=0.5) as provider:

            async def ask(body: bytes) -> tuple[int, bytes]:
                request = HttpRequest("POST", f"{provider.url}/v1/messages", (), body)
                async with await client.send(request, Timeouts(), past_proxy=True) as response:
                    return response.status, await response.read()

            status, first = await ask(b'{"n": 1, "stream": true}')
            assert (status, b"Hel" in first, b"message_stop" in first, provider.is_over) == (200, True, True, False)
            assert set(slept) == {0.5}
            assert b"Bye." in (await ask(b'{"n": 2, "stream": true}'))[1]
            status, refusal = await ask(b'{"n": 3, "stream": true}')
            assert (status, provider.is_over) == (400, True)
            assert json.loads(refusal)["error"]["message"] == "the script has no reply 3"
            assert provider.requests == [
                b'{"n": 1, "stream": true}',
                b'{"n": 2, "stream": true}',
                b'{"n": 3, "stream": true}',
            ]
            await client.close()

    asyncio.run(story())


async def test_disconnecting_client_does_not_affect_others() -> None:
    gate, begun = asyncio.Event(), asyncio.Event()

    async def sleep(_seconds: float) -> None:
        begun.set()
        await gate.wait()

    async with ScriptedProvider(SCRIPT, "openai-chat", sleep=sleep, delay=1) as provider:
        port = int(provider.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 15\r\n\r\n{"stream":true}')
        await begun.wait()
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
        await writer.wait_closed()
        gate.set()
        _, other = await asyncio.open_connection("127.0.0.1", port)
        other.close()
        await other.wait_closed()
        assert provider.requests == [b'{"stream":true}']


SCRIPTED_TOOLS_SCRIPT = Script(
    (ScriptedRound(results=("one", ScriptedResult("no", is_error=True))), ScriptedRound(results=("three",))),
    tools=(ToolLine("edit", "Edit.", {"type": "object"}), ToolLine("look")),
)


def used(key: str) -> ToolOutcome:
    tools = ScriptedTools(SCRIPTED_TOOLS_SCRIPT)
    call = RunnableCall(key=key, id="a", name="edit", arguments={})

    async def story() -> ToolOutcome:
        outcome = await tools.use(call, lambda words: None)
        await tools.close()
        return outcome

    return asyncio.run(story())


def test_results_stand_at_the_place_of_their_call() -> None:
    assert [used("1.1"), used("1.2"), used("2.1")] == [
        text_outcome("one"),
        text_outcome("no", is_error=True),
        text_outcome("three"),
    ]
    assert used("2.2") == text_outcome("The script has no result for call 2 of round 2.", is_error=True)


def test_what_is_real_is_not_played() -> None:
    assert [each.name for each in ScriptedTools(SCRIPTED_TOOLS_SCRIPT).definitions] == ["edit", "look"]
    assert [each.name for each in ScriptedTools(SCRIPTED_TOOLS_SCRIPT, frozenset({"edit"})).definitions] == ["look"]
    assert str(ScriptedTools(SCRIPTED_TOOLS_SCRIPT)) == "the script"
