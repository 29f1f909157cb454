"""What a round of the tool loop costs beside driving a provider's SDK by hand, and a hundred loops at once on one core.

Both ask the same upstream, a process of its own, over connections that are kept: each round but the last streams a call
of one tool, which both run in this process. By hand there is a loop and a list of messages; ours checks the arguments,
keeps every step so that it survives the process, and records each exchange.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

from bench.timing import medians, milliseconds, ratio, table
from sightline.agent.core.approval import Policy
from sightline.agent.core.run import RunPlan
from sightline.agent.service.driver import RunParticipants
from sightline.agent.service.runner import NewRun, Runner
from sightline.agent.tools.tools import Callables
from sightline.app.configuration import Configuration, configuration
from sightline.app.tools import open_runner
from sightline.catalog.choose import choose
from sightline.catalog.compose import Prompt
from sightline.model.parts import Text
from sightline.model.request import Message

TIMES = 7
ROUNDS = 5
AT_ONCE = 100
WORDS = 20
KEY = "bench"
QUESTION = "Count to four, one at a time."


async def count(n: int) -> int:
    """The number behind this one."""
    return n + 1


def report() -> str:
    """Time for each round, on the CPU of this process and on the wall, and how many times by hand that is."""
    kinds: dict[str, Callable[[int, Path], Any]] = {"sightline": _Ours}
    if find_spec("openai") is not None:
        kinds = {"openai SDK by hand": _ByHand, **kinds}
    rows: list[list[str]] = []
    with _upstream() as port, TemporaryDirectory() as folder, asyncio.Runner() as runner, _one_core():
        drivers = {name: kind(port, Path(folder)) for name, kind in kinds.items()}
        for driver in drivers.values():
            runner.run(driver.open())
        for what, at_once, times in (("one loop", 1, TIMES), (f"{AT_ONCE} loops at once", AT_ONCE, 3)):
            tasks = {name: partial(_run, runner, driver.loop, at_once) for name, driver in drivers.items()}
            for clock, measured in ((process_time, "CPU"), (perf_counter, "wall")):
                took = medians(tasks, times, clock)
                first = took[next(iter(took))]
                rounds = ROUNDS * at_once
                rows += [
                    [f"{what}: {name}", measured, milliseconds(each / rounds), ratio(each / first)]
                    for name, each in took.items()
                ]
        for driver in drivers.values():
            runner.run(driver.close())
    title = f"Tool loop on one core, {ROUNDS} rounds (medians; everything durable and on record, by hand nothing is)"
    return table(title, ["loop", "time", "a round", "to by hand"], rows)


def _run(runner: asyncio.Runner, loop: Callable[[], Coroutine[None, None, str]], at_once: int) -> None:
    async def all_of_them() -> None:
        answers = await asyncio.gather(*(loop() for _ in range(at_once)))
        assert set(answers) == {"done " * WORDS}, answers[0]

    runner.run(all_of_them())


@contextmanager
def _one_core() -> Iterator[None]:
    """Everything of this process on one core, where the system can be told."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class _Ours:
    def __init__(self, port: int, folder: Path) -> None:
        self._folder = folder
        file = folder / "sightline.toml"
        file.write_text(
            f'[providers.bench]\nbase_url = "http://127.0.0.1:{port}/v1"\nkey_env = "BENCH_KEY"\n'
            '[models."m"]\nproviders = ["bench"]\n'
        )
        os.environ["BENCH_KEY"] = KEY
        self._loaded: Configuration = configuration(str(file))
        self._choice = choose(self._loaded.catalog, "bench/m", has_key=self._loaded.has_key)
        self._opened = open_runner(self._loaded, str(folder / "data"))
        self._runner: Runner | None = None

    async def open(self) -> None:
        self._runner = await self._opened.__aenter__()

    async def loop(self) -> str:
        assert self._runner is not None
        plan = RunPlan(dialect=self._choice.dialect, policy=Policy(otherwise="allow"))
        prompt = Prompt((Message("user", (Text(QUESTION),)),))
        company = RunParticipants(Callables([count]), self._runner.questions)
        ended = await self._runner.run(NewRun(prompt, self._choice, plan, "bench"), company)
        assert len(ended.rounds) == ROUNDS, ended.why
        return ended.rounds[-1].text

    async def close(self) -> None:
        await self._opened.__aexit__(None, None, None)


class _ByHand:
    """As the SDK's own documents show it."""

    def __init__(self, port: int, _folder: Path) -> None:
        from openai import AsyncOpenAI

        self._client = AsyncOpenAI(api_key=KEY, base_url=f"http://127.0.0.1:{port}/v1")
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        told = {"name": "count", "description": "The number behind this one.", "parameters": schema}
        self._tools: Any = [{"type": "function", "function": told}]

    async def open(self) -> None:
        """Nothing is to be opened."""

    async def loop(self) -> str:
        messages: list[Any] = [{"role": "user", "content": QUESTION}]
        while True:
            text, calls = await self._round(messages)
            if not calls:
                return text
            told = [
                {"id": each["id"], "type": "function", "function": {"name": each["name"], "arguments": each["text"]}}
                for each in calls.values()
            ]
            messages.append({"role": "assistant", "content": text or None, "tool_calls": told})
            for each in calls.values():
                value = await count(**json.loads(each["text"]))
                messages.append({"role": "tool", "tool_call_id": each["id"], "content": str(value)})

    async def _round(self, messages: list[Any]) -> tuple[str, dict[int, dict[str, str]]]:
        text, calls = "", dict[int, dict[str, str]]()
        stream = await self._client.chat.completions.create(
            model="m", messages=messages, tools=self._tools, stream=True, stream_options={"include_usage": True}
        )
        async for chunk in stream:
            for choice in chunk.choices:
                text += choice.delta.content or ""
                for call in choice.delta.tool_calls or []:
                    made = calls.setdefault(call.index, {"id": "", "name": "", "text": ""})
                    made["id"] += call.id or ""
                    if call.function is not None:
                        made["name"] += call.function.name or ""
                        made["text"] += call.function.arguments or ""
        return text, calls

    async def close(self) -> None:
        await self._client.close()


# --- the upstream, in its own process ---------------------------------------------------------------------------


@contextmanager
def _upstream() -> Iterator[int]:
    command = [sys.executable, "-m", "bench.loop"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            # It ends when nobody holds the other end of its input.
            process.stdin.close()
            process.wait()


def _event(delta: dict[str, object], finish: str | None = None, **more: object) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    value = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more}
    data = b"data: " + json.dumps(value).encode() + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(data), data)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
USAGE = {"prompt_tokens": 50, "completion_tokens": 20, "total_tokens": 70}
END = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


def _reply(answered: int) -> bytes:
    """A call, or the last words once there are enough results."""
    if answered == ROUNDS - 1:
        words = b"".join(_event({"content": "done "}) for _ in range(WORDS))
        return HEAD + words + _event({}, "stop", usage=USAGE) + END
    begun = {"name": "count", "arguments": ""}
    call = {"index": 0, "id": f"call_{answered}", "type": "function", "function": begun}
    pieces = ['{"n"', ": ", f"{answered}", "}"]
    fragments = [_event({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}) for piece in pieces]
    return HEAD + _event({"tool_calls": [call]}) + b"".join(fragments) + _event({}, "tool_calls", usage=USAGE) + END


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            body = await reader.readexactly(int(lengths[0].partition(b":")[2]))
            writer.write(_reply(sum(each["role"] == "tool" for each in json.loads(body)["messages"])))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve())
