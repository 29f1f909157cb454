"""The built-in tools of one folder as a source of tools: those that somebody has chosen."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from sightline.agent.core.output import ToolOutcome, text_outcome
from sightline.agent.core.signature import definition_of
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import Definition
from sightline.agent.tools.builtin.folder import Folder
from sightline.agent.tools.builtin.listing import ListFilesTool
from sightline.agent.tools.builtin.reading import ReadFileTool
from sightline.agent.tools.builtin.searching import Searching
from sightline.agent.tools.builtin.shell import Shell
from sightline.agent.tools.builtin.writing import Writing
from sightline.agent.tools.callables import call_function
from sightline.agent.tools.calling import convert_arguments
from sightline.agent.tools.commands import Commands
from sightline.agent.tools.environment import minimal
from sightline.agent.tools.outcomes import outcome_of
from sightline.agent.tools.python_file import TIMEOUT
from sightline.agent.tools.tools import Progress, unknown
from sightline.catalog.hosted_tools import HostedTool
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject

READING = ("read_file", "list_files", "search_files")
HOSTED: tuple[HostedTool, ...] = ("local_shell", "web_search")
NAMES = (*READING, "write_file", "edit_file", "run_command", *HOSTED)
_ACTION = ("command", "env", "timeout_ms", "working_directory", "user")
_GRACE = 10.0
"""Seconds beyond the limit that a tool with a process of its own has to end that process and tell what it got."""


class Builtin:
    """The chosen tools. `environment` is ours; of it a command gets what any command needs and nothing else."""

    def __init__(
        self,
        folder: Path,
        names: Sequence[str] = READING,
        *,
        environment: Mapping[str, str],
        timeout: float = TIMEOUT,
    ) -> None:
        for name in names:
            if name not in NAMES:
                raise Fault(Code.CONFIG, f"there is no built-in tool {name!r}", hint=f"There are {', '.join(NAMES)}.")
        self._shown = str(folder)
        self._folder = Folder(folder)
        self._commands = Commands(minimal(environment))
        self._timeout = timeout
        self._names = tuple(dict.fromkeys(names))
        functions = self._functions(lambda words: None)
        self._definitions = tuple(_definition(name, functions.get(name)) for name in self._names)

    def __str__(self) -> str:
        return f"the built-in tools of {self._shown}"

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """The tools, in the order in which they were named."""
        return self._definitions

    async def use(self, call: RunnableCall, progress: Progress) -> ToolOutcome:
        """Use one. What goes wrong is told to the model in words that help it on."""
        function = self._functions(progress).get(call.name) if call.name in self._names else None
        if function is None or isinstance(call.arguments, str):
            return unknown(call.name, self._definitions)
        arguments = _action(call.arguments) if call.name == "local_shell" else call.arguments
        try:
            async with asyncio.timeout(self._timeout + _GRACE):
                return outcome_of(await call_function(partial(function, **convert_arguments(function, arguments))))
        except Fault as fault:
            return text_outcome(". ".join(filter(None, (fault.message, fault.hint))), is_error=True)
        except TimeoutError:
            return text_outcome(f"{call.name} was stopped: it took longer than {self._timeout:g} s.", is_error=True)
        except OSError as error:
            return text_outcome(f"{call.name} failed: {error.strerror}", is_error=True)

    async def close(self) -> None:
        """End what runs, and let go of the folder."""
        await self._commands.close()
        self._folder.close()

    def _functions(self, progress: Progress) -> dict[str, Callable[..., object]]:
        writing, shell = Writing(self._folder), Shell(self._folder, self._commands, self._timeout, progress)
        return {
            "read_file": ReadFileTool(self._folder).read_file,
            "list_files": ListFilesTool(self._folder).list_files,
            "search_files": Searching(self._folder, self._commands, self._timeout).search_files,
            "write_file": writing.write_file,
            "edit_file": writing.edit_file,
            "run_command": shell.run_command,
            "local_shell": shell.local_shell,
        }


def _definition(name: str, function: Callable[..., object] | None) -> Definition:
    hosted = next((each for each in HOSTED if each == name), None)
    if function is None:  # the provider runs it
        return Definition(name=name, description="Search the web; the provider does it.", hosted=hosted)
    found = definition_of(function, is_parallel=name in READING)
    # The API says what arguments it has; further ones of a later version are no reason to refuse a call.
    schema = {**(found.schema or {}), "additionalProperties": True} if hosted else found.schema
    return msgspec.structs.replace(found, hosted=hosted, schema=schema)


def _action(arguments: JsonObject) -> JsonObject:
    """What a `local_shell` call wants done, without the word for the kind of action and what is not known here."""
    return {name: value for name, value in arguments.items() if name in _ACTION}
