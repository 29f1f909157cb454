import asyncio
import json

from sightline.testing.script import Script, ScriptedRound
from sightline.testing.scripted_provider import ScriptedProvider
from sightline.transport.http.client import HttpClient
from sightline.transport.http.proxies import Proxies
from sightline.transport.http.timeouts import Timeouts
from sightline.transport.http.trust import Trust
from sightline.wire.call import HttpRequest

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
                async with await client.send(request, Timeouts(), direct=True) as response:
                    return response.status, await response.read()

            status, first = await ask(b'{"n": 1}')
            assert (status, b"Hel" in first, b"message_stop" in first, provider.is_over) == (200, True, True, False)
            assert set(slept) == {0.5}
            assert b"Bye." in (await ask(b'{"n": 2}'))[1]
            status, refusal = await ask(b'{"n": 3}')
            assert (status, provider.is_over) == (400, True)
            assert json.loads(refusal)["error"]["message"] == "the script has no reply 3"
            assert provider.requests == [b'{"n": 1}', b'{"n": 2}', b'{"n": 3}']
            await client.close()

    asyncio.run(story())


def test_who_leaves_in_the_middle_ends_nothing_for_others() -> None:
    gate, begun = asyncio.Event(), asyncio.Event()

    async def sleep(_seconds: float) -> None:
        begun.set()
        await gate.wait()

    async def story() -> None:
        async with ScriptedProvider(SCRIPT, "openai-chat", sleep=sleep, delay=1) as provider:
            port = int(provider.url.rpartition(":")[2])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\n\r\n")
            await begun.wait()
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            writer.close()
            await writer.wait_closed()
            gate.set()
            _, other = await asyncio.open_connection("127.0.0.1", port)
            other.close()
            await other.wait_closed()
            assert provider.requests == [b""]

    asyncio.run(story())
