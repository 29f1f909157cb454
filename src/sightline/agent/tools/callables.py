"""Tools that are functions of the program that uses Sightline as a library, called in this process.

An async function is awaited and can be cancelled. Any other runs in a thread, which cannot be ended: after a timeout or
a cancellation it is abandoned and ends with the program at the latest. A tool that may hang belongs in a file of its
own.
"""

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread

from sightline.agent.core.output import ToolOutcome, text_outcome
from sightline.agent.core.signature import definition_of
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import Definition
from sightline.agent.tools.functions import convert_arguments, failure_of, outcome_of
from sightline.agent.tools.python_file import TIMEOUT
from sightline.agent.tools.tools import Progress, unknown
from sightline.errors import Code, Fault


class Callables:
    """The functions as tools. Those in `parallel` may run concurrently with others."""

    def __init__(
        self,
        functions: Sequence[Callable[..., object]],
        *,
        timeout: float = TIMEOUT,
        parallel: Sequence[Callable[..., object]] = (),
    ) -> None:
        self._timeout = timeout
        self._functions: dict[str, Callable[..., object]] = {}
        definitions = []
        for function in functions:
            definition = definition_of(function, is_parallel=function in parallel)
            if definition.name in self._functions:
                raise Fault(Code.CONFIG, f"two tools are named {definition.name!r}", hint="Rename one of them.")
            self._functions[definition.name] = function
            definitions.append(definition)
        self._definitions = tuple(definitions)

    def __str__(self) -> str:
        return "the functions of this program"

    @property
    def definitions(self) -> tuple[Definition, ...]:
        return self._definitions

    async def use(self, call: RunnableCall, progress: Progress) -> ToolOutcome:
        function = self._functions.get(call.name)
        if function is None:
            return unknown(call.name, self._definitions)
        limit = asyncio.timeout(self._timeout)
        try:
            async with limit:
                return outcome_of(await call_function(partial(function, **convert_arguments(function, call.arguments))))
        except Exception as error:  # noqa: BLE001 - any exception of a tool becomes an outcome
            if limit.expired():
                return text_outcome(f"{call.name} was stopped: it took longer than {self._timeout:g} s.", is_error=True)
            file = _file(function)
            return failure_of(error, file, Path(file).name)

    async def close(self) -> None:
        """Does nothing."""


async def call_function(function: Callable[[], object]) -> object:
    """Call a function, async or not. One that is not async runs in a thread, without blocking the event loop."""
    target = function.func if isinstance(function, partial) else function
    if inspect.iscoroutinefunction(target):
        return await function()  # type: ignore[misc]
    value = await _in_thread(function)
    return await value if inspect.isawaitable(value) else value


async def _in_thread(function: Callable[[], object]) -> object:
    """Like asyncio.to_thread, in a daemon thread: the program's exit does not wait for it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: object, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def work() -> None:
        value: object = None
        problem: Exception | None = None
        try:
            value = context.run(function)
        except StopIteration as error:  # a future cannot hold a StopIteration
            problem = RuntimeError(f"StopIteration: {error}")
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - raised where it is awaited
            problem = error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")
        with suppress(RuntimeError):  # the loop is closed, so no one waits for the result
            loop.call_soon_threadsafe(settle, value, problem)

    Thread(target=work, name="tool", daemon=True).start()
    return await future


def _file(function: Callable[..., object]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code.co_filename if code else ""
