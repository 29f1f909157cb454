"""The selected built-in tools of a folder as a source of tools, and the tools that read and write files and run
commands."""

import asyncio
import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, get_args

import msgspec

from sightline.agent.core.arguments import definition_of
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import Definition, ToolOutcome, text_outcome
from sightline.agent.tools.builtin.folder import Folder, SearchTools
from sightline.agent.tools.commands import Commands, last_line_in, minimal
from sightline.agent.tools.tools import (
    TIMEOUT,
    Progress,
    call_function,
    convert_arguments,
    outcome_of,
    part_of,
    unknown,
)
from sightline.catalog.fitting import HostedTool
from sightline.errors import Code, Fault
from sightline.settings import BuiltinName
from sightline.wire.media_type import BINARY, encoding_of, is_text, sniff

MOST_BYTES = 10_000_000
MOST_CHARACTERS = 60_000
MOST_MEDIA = 2_500_000
_LONGEST_LINE = 5000
_HEAD = 8192
_MOST_LINES = 5
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class FileTools:
    """The tools `read_file`, `write_file` and `edit_file`."""

    folder: Folder

    def read_file(self, path: str, first_line: int = 1, last_line: int | None = None) -> ToolOutcome:
        """Read a text file, or look at a picture or a PDF.

        A long text comes in pieces; the last line says where to go on.

        Args:
            path: the file, relative to the project
            first_line: the number of the first line to read, from 1
            last_line: the number of the last one; without it, as much as fits
        """
        if first_line < 1 or (last_line is not None and last_line < first_line):
            raise Fault(Code.USAGE, f"there are no lines {first_line} to {last_line}")
        with self.folder.open_file(path) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
            head = file.read(_HEAD)
            kind = _kind(head)
            size = os.fstat(descriptor).st_size
            file.seek(0)
            if kind:
                return _media_outcome(file, kind, size, path)
            with io.TextIOWrapper(file, encoding_of(head), errors="replace") as text:
                return text_outcome(_lines(text, first_line, last_line, path))

    def write_file(self, path: str, content: str) -> str:
        """Write a file. One that is there is replaced; folders that are missing are made.

        Args:
            path: the file, relative to the project
            content: all of the new text
        """
        data = _encode(content, "utf-8")
        what = "Replaced" if self.folder.write(path, data) else "Made"
        count = content.count("\n") + (not content.endswith("\n") and bool(content))
        return f"{what} {path}: {'1 line' if count == 1 else f'{count} lines'}, {len(data)} bytes."

    def edit_file(self, path: str, old_text: str, new_text: str, *, every: bool = False) -> str:
        """Change a file: replace a piece of text that is in it exactly once.

        Args:
            path: the file, relative to the project
            old_text: what is there now, exactly, with enough of what is around it to be the only such place
            new_text: what shall be there instead; empty to take it out
            every: replace it wherever it is
        """
        mark, codec, text = self._read(path)
        returns = text.count("\r\n")
        if returns and (old_text not in text or returns == text.count("\n")):
            # The model was shown \n line ends.
            old_text, new_text = _with_returns(old_text), _with_returns(new_text)
        places = _places(text, old_text)
        _check(path, text, old_text, new_text, places, every=every)
        changed = text.replace(old_text, new_text)
        self.folder.write(path, mark + _encode(changed, codec))
        many = "place" if len(places) == 1 else "places"
        return f"Changed {path} in {len(places)} {many}: line {_line_numbers(places)}."

    def _read(self, path: str) -> tuple[bytes, str, str]:
        with self.folder.open_file(path) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise Fault(Code.USAGE, f"{path!r} has more than {MOST_BYTES} bytes, which is too large to edit")
        mark, codec = next(
            ((mark, codec) for mark, codec in _BYTE_ORDER_MARKS if data.startswith(mark)), (b"", "utf-8")
        )
        try:
            return mark, codec, data[len(mark) :].decode(codec)
        except UnicodeDecodeError:
            raise Fault(Code.USAGE, f"{path!r} is not UTF-8 or UTF-16 text, so it cannot be edited") from None


def _check(path: str, text: str, old: str, new: str, places: list[int], *, every: bool) -> None:
    if not old:
        raise Fault(Code.USAGE, "old_text is empty", hint="To write a whole file, use write_file.")
    if old == new:
        raise Fault(Code.USAGE, "old_text and new_text are the same", hint="Give the text that replaces it.")
    if not places:
        raise Fault(Code.USAGE, f"old_text is not in {path!r}", hint=_whitespace_hint(text, old))
    if len(places) > 1 and not every:
        hint = "Give more of what is around the place that you mean, or set every to true."
        raise Fault(Code.USAGE, f"old_text is in {path!r} {len(places)} times: line {_line_numbers(places)}", hint=hint)


def _whitespace_hint(text: str, old: str) -> str:
    """A hint at where the same text occurs with different whitespace."""
    wanted = [" ".join(line.split()) for line in old.strip().splitlines()]
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for start in range(len(lines) - len(wanted) + 1):
        if wanted and lines[start : start + len(wanted)] == wanted:
            return f"Line {start + 1} differs from it only in spaces: copy it exactly as read_file shows it."
    return "Read the file again: it may have changed."


def _places(text: str, old: str) -> list[int]:
    """The numbers of the lines in which occurrences begin."""
    places: list[int] = []
    at = text.find(old) if old else -1
    line = 1
    before = 0
    while at >= 0:
        line += text.count("\n", before, at)
        before = at
        places.append(line)
        at = text.find(old, at + len(old))
    return places


def _line_numbers(places: list[int]) -> str:
    shown = ", ".join(map(str, places[:_MOST_LINES]))
    return f"{shown} and more" if len(places) > _MOST_LINES else shown


def _with_returns(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _encode(text: str, codec: str) -> bytes:
    try:
        return text.encode(codec)
    except UnicodeEncodeError as error:
        raise Fault(Code.USAGE, f"the text cannot be written: half a character at {error.start}") from None


def _kind(head: bytes) -> str:
    """The kind of a binary file by its first bytes; empty for text. The head may end within a character."""
    kind = sniff(head, "")
    if kind == BINARY and (b"\0" not in head or encoding_of(head) != "utf-8-sig"):
        return ""
    return "" if is_text(kind) else kind


def _media_outcome(file: BinaryIO, kind: str, size: int, path: str) -> ToolOutcome:
    if kind != BINARY and size <= MOST_MEDIA and (part := part_of(file.read(MOST_MEDIA), path)) is not None:
        return ToolOutcome((part,))
    much = "which is too large to look at" if size > MOST_MEDIA and kind != BINARY else "which is no text"
    raise Fault(Code.USAGE, f"{path!r} is {size} bytes of {kind}, {much}")


def _lines(text: io.TextIOWrapper, first: int, last: int | None, path: str) -> str:
    """The requested lines within the limit, with a note about what is left out."""
    shown: list[str] = []
    room = MOST_CHARACTERS
    number = 0
    while last is None or number < last:
        line, is_cut = _line(text)
        if not line:
            break
        number += 1
        if number < first:
            continue
        room -= len(line)
        if room < 0 and shown:
            shown.append(f"[lines {first} to {number - 1}; continue with first_line={number}]")
            break
        shown.append(f"{line}[… the rest of this line is left out]\n" if is_cut else line)
    if not shown:
        if number == 0:
            return "(the file is empty)"
        raise Fault(Code.USAGE, f"{path!r} has only {number} lines")
    whole = "".join(shown)
    return f"{whole}\n[bytes that are no text are shown as �]" if "�" in whole else whole


def _line(text: io.TextIOWrapper) -> tuple[str, bool]:
    """The next line, truncated if it is long, and whether it was."""
    line = text.readline(_LONGEST_LINE)
    is_cut = len(line) == _LONGEST_LINE and not line.endswith("\n")
    rest = line
    while len(rest) == _LONGEST_LINE and not rest.endswith("\n"):
        rest = text.readline(_LONGEST_LINE)
    return line, is_cut


_LONGEST_WORDS = 500


@dataclass(frozen=True, slots=True)
class ShellTools:
    """The tools `run_command` and `local_shell`."""

    folder: Folder
    commands: Commands
    timeout: float
    progress: Progress

    async def run_command(self, command: str) -> ToolOutcome:
        """Run a command line with /bin/sh in the project's folder; what it prints and its exit code come back.

        It has no input. What it starts in the background is ended with it.

        Args:
            command: the command line
        """
        return await self._run(("/bin/sh", "-c", command), self.folder.path, self.timeout)

    async def local_shell(
        self,
        command: list[str],
        env: dict[str, str] | None = None,
        timeout_ms: int | None = None,
        working_directory: str | None = None,
        user: str | None = None,
    ) -> ToolOutcome:
        """Run a command in the project's folder; what it prints and its exit code come back.

        Args:
            command: the program and its arguments
            env: variables for it, beside the usual ones
            timeout_ms: the longest that it may take
            working_directory: a folder below the project's
            user: another user, as whom it is never run
        """
        if not command:
            return text_outcome("There is no command to run.", is_error=True)
        if user:
            return text_outcome("Commands are run as the user who started this run, and as no other.", is_error=True)
        where = self._folder_below(working_directory or "")
        if where is None:
            return text_outcome(f"There is no folder {working_directory!r} in the project's folder.", is_error=True)
        variables = [f"{name}={value}" for name, value in (env or {}).items()]
        words = ("/usr/bin/env", "--", *variables, *command) if variables else tuple(command)
        seconds = self.timeout if timeout_ms is None else min(self.timeout, max(timeout_ms, 0) / 1000)
        return await self._run(words, where, seconds)

    def _folder_below(self, path: str) -> Path | None:
        root = self.folder.path.resolve()
        try:
            found = (root / path).resolve()
            return found if found.is_relative_to(root) and found.is_dir() else None
        except (ValueError, RuntimeError):  # characters that no path can have, or a link to itself
            return None

    async def _run(self, command: tuple[str, ...], folder: Path, seconds: float) -> ToolOutcome:
        if any("\0" in word or not _is_spelled(word) for word in command):
            return text_outcome("This command line holds characters that no command line can.", is_error=True)
        finished = await self.commands.run(
            command, folder=folder, timeout=seconds, on_output=self._report_last_line, has_one_pipe=True
        )
        output = finished.output
        gap = "" if not output or output.endswith("\n") else "\n"
        return text_outcome(f"{output}{gap}[{finished.in_words}]", is_error=finished.code != 0)

    def _report_last_line(self, fd: int, data: bytes) -> None:
        if words := last_line_in(data[-_LONGEST_WORDS:].decode(errors="replace")):
            self.progress(words)


def _is_spelled(command: str) -> bool:
    try:
        command.encode()
    except UnicodeEncodeError:
        return False
    return True


OFFERED_BY_DEFAULT: tuple[BuiltinName, ...] = ("read_file", "list_files", "search_files")
"""Offered if no tool is named. Adding a name here changes the requests of every user who names none."""
_PARALLEL: frozenset[BuiltinName] = frozenset({"read_file", "list_files", "search_files"})
"""They only read, so calls of them may run concurrently."""
HOSTED: tuple[HostedTool, ...] = ("local_shell", "web_search")
NAMES: tuple[BuiltinName, ...] = get_args(BuiltinName)
_ACTION = ("command", "env", "timeout_ms", "working_directory", "user")
_GRACE = 10.0
"""Extra seconds for a tool with its own process to end that process and report its output."""


class Builtin:
    """The selected tools. Commands get only the necessary variables of `environment`."""

    def __init__(
        self,
        folder: Path,
        names: Sequence[str] = OFFERED_BY_DEFAULT,
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
        self.definitions = tuple(_definition(name, functions) for name in self._names)

    def __str__(self) -> str:
        return f"the built-in tools of {self._shown}"

    async def use(self, call: RunnableCall, progress: Progress) -> ToolOutcome:
        """Use a tool. A failure becomes an outcome with a message for the model."""
        function = self._functions(progress).get(call.name) if call.name in self._names else None
        if function is None or isinstance(call.arguments, str):
            return unknown(call.name, self.definitions)
        arguments = call.arguments
        if call.name == "local_shell":  # its type and unknown keys are dropped
            arguments = {name: value for name, value in arguments.items() if name in _ACTION}
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
        """Kill running commands and close the folder."""
        await self._commands.close()
        self._folder.close()

    def _functions(self, progress: Progress) -> dict[str, Callable[..., object]]:
        files, searching = FileTools(self._folder), SearchTools(self._folder, self._commands, self._timeout)
        shell = ShellTools(self._folder, self._commands, self._timeout, progress)
        return {
            "read_file": files.read_file,
            "list_files": searching.list_files,
            "search_files": searching.search_files,
            "write_file": files.write_file,
            "edit_file": files.edit_file,
            "run_command": shell.run_command,
            "local_shell": shell.local_shell,
        }


def _definition(name: str, functions: Mapping[str, Callable[..., object]]) -> Definition:
    hosted = next((each for each in HOSTED if each == name), None)
    if name == "web_search":  # run by the provider
        return Definition(name=name, description="Search the web; the provider does it.", hosted=hosted)
    found = definition_of(functions[name], is_parallel=name in _PARALLEL)
    # OpenAI's API defines the arguments; unknown ones of later versions are ignored rather than refused.
    schema = {**(found.schema or {}), "additionalProperties": True} if hosted else found.schema
    return msgspec.structs.replace(found, hosted=hosted, schema=schema)
