"""The built-in tools of one folder as a source of tools: those that somebody has chosen."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from sightline.errors import Code, Fault
from sightline.loop.output import Outcome, said
from sightline.loop.signature import definition_of
from sightline.loop.steps import Call
from sightline.loop.tool import Definition
from sightline.tools.builtin.folder import Folder
from sightline.tools.builtin.listing import Listing
from sightline.tools.builtin.reading import Reading
from sightline.tools.builtin.searching import Searching
from sightline.tools.builtin.shell import Shell
from sightline.tools.builtin.writing import Writing
from sightline.tools.callables import called
from sightline.tools.calling import typed
from sightline.tools.commands import Commands
from sightline.tools.environment import minimal
from sightline.tools.outcomes import outcome_of
from sightline.tools.python_file import TIMEOUT
from sightline.tools.tools import Progress, unknown

READING = ("read_file", "list_files", "search_files")
NAMES = (*READING, "write_file", "edit_file", "run_command")
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
        self._definitions = tuple(definition_of(functions[name], is_parallel=name in READING) for name in self._names)

    def __str__(self) -> str:
        return f"the built-in tools of {self._shown}"

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """The tools, in the order in which they were named."""
        return self._definitions

    async def use(self, call: Call, progress: Progress) -> Outcome:
        """Use one. What goes wrong is told to the model in words that help it on."""
        if call.name not in self._names or isinstance(call.arguments, str):
            return unknown(call.name, self._definitions)
        function = self._functions(progress)[call.name]
        try:
            async with asyncio.timeout(self._timeout + _GRACE):
                return outcome_of(await called(partial(function, **typed(function, call.arguments))))
        except Fault as fault:
            return said(". ".join(filter(None, (fault.message, fault.hint))), is_error=True)
        except TimeoutError:
            return said(f"{call.name} was stopped: it took longer than {self._timeout:g} s.", is_error=True)
        except OSError as error:
            return said(f"{call.name} failed: {error.strerror}", is_error=True)

    async def close(self) -> None:
        """End what runs, and let go of the folder."""
        await self._commands.close()
        self._folder.close()

    def _functions(self, progress: Progress) -> dict[str, Callable[..., object]]:
        writing = Writing(self._folder)
        return {
            "read_file": Reading(self._folder).read_file,
            "list_files": Listing(self._folder).list_files,
            "search_files": Searching(self._folder, self._commands, self._timeout).search_files,
            "write_file": writing.write_file,
            "edit_file": writing.edit_file,
            "run_command": Shell(self._folder, self._commands, self._timeout, progress).run_command,
        }
