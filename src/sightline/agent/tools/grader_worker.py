"""The program of a worker that grades: any function of a Python file, called with one argument, and its value."""

import asyncio
import inspect
from pathlib import Path

import msgspec

from sightline.agent.core.output import ToolOutcome, cap_outcome
from sightline.agent.core.tool import Definition
from sightline.agent.tools.loading import Function, execute_module
from sightline.agent.tools.messages import Answer, FileBroken, FileLoaded, Order, Ran, RunFunction
from sightline.agent.tools.outcomes import failure_of
from sightline.agent.tools.worker import MOST, Bench, main
from sightline.model.json import JsonObject

ARGUMENT = "payload"
VALUE = "value"


class GraderBench(Bench):
    """The functions need no hints: a grader is told of a case and returns what it thinks of it."""

    def __init__(self, file: Path, runner: asyncio.Runner) -> None:
        super().__init__(file, runner)
        self._functions: dict[str, Function] = {}

    def answer(self, order: Order) -> Answer:
        """Do what is asked."""
        if isinstance(order, RunFunction):
            assert not isinstance(order.arguments, str)  # a grader is told of a case
            return Ran(cap_outcome(self._grade(order.name, order.arguments), MOST))
        module = execute_module(self._file, order.source)
        if isinstance(module, FileBroken):
            return module
        self._functions = {
            name: value for name, value in vars(module).items() if callable(value) and not name.startswith("__")
        }
        return FileLoaded(tuple(Definition(name=name, schema={"type": "object"}) for name in self._functions))

    def _grade(self, name: str, arguments: JsonObject) -> ToolOutcome:
        try:
            value = self._functions[name](arguments[ARGUMENT])
            if inspect.isawaitable(value):
                value = self._runner.run(_await_value(value))
            return ToolOutcome(structured={VALUE: msgspec.to_builtins(value, str_keys=True)})
        except BaseException as error:  # noqa: BLE001 - whatever a grader raises, its reader is told
            return failure_of(error, str(self._file), self._file.name)


async def _await_value(value: object) -> object:
    assert inspect.isawaitable(value)
    return await value


if __name__ == "__main__":
    main(GraderBench)
