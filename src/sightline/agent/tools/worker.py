"""The program of a worker: it loads one Python file and calls its functions, one at a time, until its input ends.

What the functions print goes to standard error, so that nothing but answers is in the pipe to the parent. The input is
read by a thread of its own: when it ends, the parent is gone, and so is the worker with all that it has started.
"""

import asyncio
import inspect
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import BinaryIO

import msgspec

from sightline.agent.core.output import Cap, ToolOutcome, cap_outcome
from sightline.agent.tools.calling import convert_arguments
from sightline.agent.tools.loading import Tool, load
from sightline.agent.tools.messages import Answer, FileBroken, FileLoaded, Load, Order, Ran, RunFunction
from sightline.agent.tools.outcomes import failure_of, outcome_of
from sightline.model.json import JsonObject
from sightline.wire.jsontext import decode, encode

MOST = Cap(media=16_000_000)
"""Little enough to be sent in one line. Of words it is what a run keeps, so that they are cut once and the cut tells of
all that there was."""


def main(bench_of: "Callable[[Path, asyncio.Runner], Bench] | None" = None) -> None:
    """Load, answer, and call until the input ends, which ends the process. `bench_of` is what does that, where it is
    another one than usual."""
    orders, answers = _private_pipes()
    queue: SimpleQueue[Order] = SimpleQueue()
    Thread(target=_listen, args=(orders, queue), daemon=True).start()
    own = os.getpid()
    with asyncio.Runner() as runner:
        bench = (bench_of or Bench)(Path(sys.argv[1]), runner)
        while True:
            answer = bench.answer(queue.get())
            if os.getpid() != own:
                os._exit(1)  # a function has forked and its copy came back here: it has nothing to say
            answers.write(encode(msgspec.to_builtins(answer)) + b"\n")
            answers.flush()


class Bench:
    """One file's functions, and the event loop in which those that are async run: they share it from call to call."""

    def __init__(self, file: Path, runner: asyncio.Runner) -> None:
        self._file = file
        self._runner = runner
        self._tools: dict[str, Tool] = {}

    def answer(self, order: Order) -> Answer:
        """Do what is asked."""
        if isinstance(order, RunFunction):
            return Ran(cap_outcome(self._call(self._tools[order.name], order.arguments), MOST))
        loaded = load(self._file, order.source)
        if isinstance(loaded, FileBroken):
            return loaded
        self._tools = loaded
        return FileLoaded(tuple(tool.definition for tool in loaded.values()))

    def _call(self, tool: Tool, arguments: JsonObject | str) -> ToolOutcome:
        try:
            value = tool.function(**convert_arguments(tool.function, arguments))
            if inspect.isawaitable(value):
                value = self._runner.run(_await_value(value))
            return outcome_of(value)
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises, the model is told
            return failure_of(error, str(self._file), self._file.name)
        finally:
            sys.stdout.flush()


async def _await_value(value: Awaitable[object]) -> object:
    return await value


def _listen(orders: BinaryIO, queue: "SimpleQueue[Order]") -> None:
    for line in orders:
        queue.put(msgspec.convert(decode(line), Load | RunFunction))
    os.killpg(0, signal.SIGKILL)


def _private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The pipes from and to the parent, which no function finds where it would look for them."""
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return orders, answers


if __name__ == "__main__":
    main()
