"""The worker program: loads one Python file and calls its functions as tools or as graders, until its input ends.

What the functions print goes to standard error, so that the pipe to the parent has only answers. A separate thread
reads the input: when it ends, the parent is gone, and the worker kills itself and all processes it started.
"""

import asyncio
import inspect
import linecache
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from types import ModuleType
from typing import BinaryIO, Literal, TypeAlias

import msgspec

from sightline.agent.core.arguments import definition_of
from sightline.agent.core.tool import Cap, Definition, ToolOutcome, cap_outcome, definition_problems
from sightline.agent.tools.tools import convert_arguments, failure_of, last_line, outcome_of
from sightline.errors import Fault
from sightline.model.json import Json, JsonObject
from sightline.platform.processes import kill_own_group
from sightline.wire.jsontext import decode, encode


class Load(msgspec.Struct, frozen=True, tag="load"):
    """Load this source text; every worker gets the same one even if the file changes meanwhile."""

    source: str


class RunFunction(msgspec.Struct, frozen=True, tag="run"):
    """Call a function of the file."""

    name: str
    arguments: dict[str, Json] | str


class FileLoaded(msgspec.Struct, frozen=True, tag="loaded"):
    """The file's tools."""

    definitions: tuple[Definition, ...]


class FileBroken(msgspec.Struct, frozen=True, omit_defaults=True, tag="broken"):
    """Why the file cannot be used; line 0 means no particular line."""

    message: str
    line: int = 0
    hint: str = ""


class Ran(msgspec.Struct, frozen=True, tag="ran"):
    """The outcome of a call."""

    outcome: ToolOutcome


Order: TypeAlias = Load | RunFunction
Answer: TypeAlias = FileLoaded | FileBroken | Ran


Kind: TypeAlias = Literal["tools", "graders"]
"""What the functions of a file are: tools with type hints, or graders with one argument."""

Function: TypeAlias = Callable[..., object]
_LISTS = ("TOOLS", "PARALLEL")


@dataclass(frozen=True, slots=True)
class Tool:
    """A function and its definition for the model."""

    function: Function
    definition: Definition


def execute_module(file: Path, source: str) -> ModuleType | FileBroken:
    """Execute a file as a module, or return the error."""
    sys.path.insert(0, str(file.parent))
    linecache.cache[str(file)] = (len(source), None, source.splitlines(keepends=True), str(file))
    module = ModuleType(_module_name(file))
    module.__file__ = str(file)
    sys.modules[module.__name__] = module
    try:
        # The user has named this file as a tool file, so it may be executed.
        exec(compile(source, str(file), "exec"), vars(module))
    except BaseException as error:  # noqa: BLE001 - any exception of the file becomes a fault
        words = error.msg if isinstance(error, SyntaxError) else str(error)
        return FileBroken(f"{type(error).__name__}: {words}", last_line(error, str(file)), _help(error))
    return module


def tools_in(module: ModuleType) -> dict[str, Tool] | FileBroken:
    """The tools of a module by name, or the error."""
    for name in _LISTS:
        listed = getattr(module, name, [])
        if not (isinstance(listed, list | tuple) and all(callable(each) for each in listed)):
            return FileBroken(f"{name} is no list of functions", hint=f"Write {name} = [one, another], without quotes.")
    parallel = getattr(module, "PARALLEL", [])
    tools: dict[str, Tool] = {}
    for function in _functions(module):
        try:
            definition = definition_of(function, is_parallel=function in parallel)
        except Fault as fault:
            return FileBroken(fault.message, _line(function), fault.hint)
        if problems := definition_problems(definition):
            return FileBroken("; ".join(problems), _line(function), "Correct its type hints.")
        if definition.name in tools:
            return FileBroken(f"two tools are named {definition.name!r}", _line(function), "Rename one of them.")
        tools[definition.name] = Tool(function, definition)
    if not tools:
        hint = "Write a function with type hints and a docstring; names that begin with _ are left out."
        return FileBroken("it has no public function", hint=hint)
    return tools


def _functions(module: ModuleType) -> Iterator[Function]:
    """The functions in `TOOLS`, or those that the file defines."""
    if hasattr(module, "TOOLS"):
        yield from module.TOOLS
        return
    for name, value in vars(module).items():
        if inspect.isfunction(value) and not name.startswith("_") and value.__module__ == module.__name__:
            yield value


def _module_name(file: Path) -> str:
    """The file's stem, unless a module has that name already."""
    name = file.stem
    return name if name.isidentifier() and name not in {*sys.modules, *sys.stdlib_module_names} else "tool_file"


def _line(function: Function) -> int:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code.co_firstlineno if code else 0


def _help(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return "Install it beside Sightline, in the same environment."
    return "Run the file with Python by itself to see all of it."


MOST = Cap(media=16_000_000)
"""Small enough for one line. For text it equals a run's limit, so that text is truncated only once and the note states
its full length."""


def main() -> None:
    """Serve requests until the input ends, which ends the process. Its arguments are a `Kind` and the file."""
    orders, answers = _private_pipes()
    queue: SimpleQueue[Order] = SimpleQueue()
    Thread(target=_listen, args=(orders, queue), daemon=True).start()
    own = os.getpid()
    with asyncio.Runner() as runner:
        bench = _HOSTS[sys.argv[1]](Path(sys.argv[2]), runner)
        while True:
            answer = bench.answer(queue.get())
            if os.getpid() != own:
                os._exit(1)  # a function has forked, and this is the copy: it must not answer
            answers.write(encode(msgspec.to_builtins(answer)) + b"\n")
            answers.flush()


class FunctionHost:
    """One file's functions and the event loop that all its async functions share."""

    def __init__(self, file: Path, runner: asyncio.Runner) -> None:
        self._file = file
        self._runner = runner
        self._tools: dict[str, Tool] = {}

    def answer(self, order: Order) -> Answer:
        if isinstance(order, RunFunction):
            return Ran(cap_outcome(self._call(self._tools[order.name].function, order.arguments), MOST))
        module = execute_module(self._file, order.source)
        loaded = module if isinstance(module, FileBroken) else self._tools_in(module)
        if isinstance(loaded, FileBroken):
            return loaded
        self._tools = loaded
        return FileLoaded(tuple(tool.definition for tool in loaded.values()))

    def _tools_in(self, module: ModuleType) -> dict[str, Tool] | FileBroken:
        return tools_in(module)

    def _call(self, function: Function, arguments: JsonObject | str) -> ToolOutcome:
        try:
            value = self._value(function, arguments)
            if inspect.isawaitable(value):
                value = self._runner.run(_await_value(value))
            return self._outcome(value)
        except BaseException as error:  # noqa: BLE001 - any exception of a function becomes an outcome
            return failure_of(error, str(self._file), self._file.name)
        finally:
            sys.stdout.flush()

    def _value(self, function: Function, arguments: JsonObject | str) -> object:
        return function(**convert_arguments(function, arguments))

    def _outcome(self, value: object) -> ToolOutcome:
        return outcome_of(value)


async def _await_value(value: Awaitable[object]) -> object:
    return await value


def _listen(orders: BinaryIO, queue: "SimpleQueue[Order]") -> None:
    for line in orders:
        queue.put(msgspec.convert(decode(line), Load | RunFunction))
    kill_own_group()


def _private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Move the pipes to the parent to other descriptors, so that functions cannot write into them by accident."""
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return orders, answers


ARGUMENT = "payload"
VALUE = "value"


class GraderHost(FunctionHost):
    """Calls grading functions, which need no type hints: they take one payload and return a value."""

    def _tools_in(self, module: ModuleType) -> dict[str, Tool] | FileBroken:
        return {
            name: Tool(value, Definition(name=name, schema={"type": "object"}))
            for name, value in vars(module).items()
            if callable(value) and not name.startswith("__")
        }

    def _value(self, function: Function, arguments: JsonObject | str) -> object:
        assert not isinstance(arguments, str)  # a grader takes one payload
        return function(arguments[ARGUMENT])

    def _outcome(self, value: object) -> ToolOutcome:
        return ToolOutcome(structured={VALUE: msgspec.to_builtins(value, str_keys=True)})


_HOSTS: dict[str, type[FunctionHost]] = {"tools": FunctionHost, "graders": GraderHost}


if __name__ == "__main__":
    main()
