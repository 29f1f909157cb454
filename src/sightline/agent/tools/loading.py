"""The tools in the text of a Python file: it is run as a module, and its functions are looked at."""

import inspect
import linecache
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

from sightline.agent.core.signature import definition_of
from sightline.agent.core.tool import Definition, definition_problems
from sightline.agent.tools.messages import FileBroken
from sightline.agent.tools.outcomes import last_line
from sightline.errors import Fault

Function: TypeAlias = Callable[..., object]
_LISTS = ("TOOLS", "PARALLEL")


@dataclass(frozen=True, slots=True)
class Tool:
    """A function and what the model is told of it."""

    function: Function
    definition: Definition


def load(file: Path, source: str) -> dict[str, Tool] | FileBroken:
    """The tools by name, or why there are none."""
    module = execute_module(file, source)
    return module if isinstance(module, FileBroken) else _tools(module)


def execute_module(file: Path, source: str) -> ModuleType | FileBroken:
    """The module that a file makes, or why it makes none."""
    sys.path.insert(0, str(file.parent))
    linecache.cache[str(file)] = (len(source), None, source.splitlines(keepends=True), str(file))
    module = ModuleType(_module_name(file))
    module.__file__ = str(file)
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, str(file), "exec"), vars(module))  # what a person names as a tool file is meant to run
    except BaseException as error:  # noqa: BLE001 - whatever a file does when it is run, its owner is told
        words = error.msg if isinstance(error, SyntaxError) else str(error)
        return FileBroken(f"{type(error).__name__}: {words}", last_line(error, str(file)), _help(error))
    return module


def _tools(module: ModuleType) -> dict[str, Tool] | FileBroken:
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
    """Those that the file lists, else those that it defines."""
    if hasattr(module, "TOOLS"):
        yield from module.TOOLS
        return
    for name, value in vars(module).items():
        if inspect.isfunction(value) and not name.startswith("_") and value.__module__ == module.__name__:
            yield value


def _module_name(file: Path) -> str:
    """The file's own name, unless a module has it already."""
    name = file.stem
    return name if name.isidentifier() and name not in {*sys.modules, *sys.stdlib_module_names} else "tool_file"


def _line(function: Function) -> int:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code.co_firstlineno if code else 0


def _help(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return "Install it beside Sightline, in the same environment."
    return "Run the file with Python by itself to see all of it."
