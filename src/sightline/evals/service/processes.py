"""Commands of targets and graders: fills in the placeholders of a command, and runs commands and the Python functions
of graders with limits on time and output."""

import asyncio
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from sightline.agent.core.steps import RunnableCall
from sightline.agent.tools.commands import Commands
from sightline.agent.tools.python_file import PythonFile
from sightline.agent.tools.worker import ARGUMENT, VALUE
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Text
from sightline.transport.waiting import Clock

NAMES = ("PROMPT", "PROMPT_FILE", "OUTPUT_FILE", "FILES", "EVAL_ID", "ATTEMPT")
SHELL = "/bin/sh"
LONGEST_VALUE = 120_000
"""The most bytes that one argument or variable may have; Linux allows 128 KiB."""

_PLACE = re.compile(r"\{(" + "|".join(NAMES) + r")\}")
_PROGRAM_NEXT = re.compile(r"-[A-Za-z]*[ce]|--(?:eval|command|exec|print)")
_INTERPRETS = ("eval", "ssh", "xargs", "su", "watch")
_BEFORE_A_PROGRAM = ("{", "!", "if", "then", "else", "while", "do", "exec", "env", "sudo", "nohup", "time", "command")
_VARIABLE = "SIGHTLINE_EVAL_"
_BY_FILE = "Use {PROMPT_FILE}: the program reads the prompt from there."


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The arguments of a command, and the extra environment variables it needs."""

    argv: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)


def places_of(command: str | Sequence[str]) -> frozenset[str]:
    words = [command] if isinstance(command, str) else command
    return frozenset(found[1] for word in words for found in _PLACE.finditer(word))


def fill_command(
    command: str | Sequence[str], values: Mapping[str, str], files: Sequence[str] = (), files_format: str = "{path}"
) -> CommandLine:
    for name in places_of(command) - {"FILES"}:
        _check_value(name, values[name])
    for file in files:
        _check_value("FILES", file)
    if isinstance(command, str):
        return _Shell(command, values, files, files_format).line()
    words = tuple(word for each in command for word in _command_line_words(each, values, files, files_format))
    return CommandLine(words)


def check_command(command: str | Sequence[str], files_format: str = "{path}") -> None:
    """Raise a fault if a command cannot be run safely."""
    fill_command(command, dict.fromkeys(NAMES, ""), ("file",), files_format)


def _check_value(name: str, value: str) -> None:
    if "\0" in value:
        raise Fault(
            Code.USAGE, f"there is a zero byte in what goes to {{{name}}}", hint="A command line cannot contain one."
        )
    if len(value.encode("utf-8", "surrogateescape")) > LONGEST_VALUE:
        message = f"what goes to {{{name}}} is longer than {LONGEST_VALUE} bytes, too long for a command line"
        raise Fault(Code.USAGE, message, hint=_BY_FILE)


# --- without a shell ------------------------------------------------------------------------------


def _command_line_words(word: str, values: Mapping[str, str], files: Sequence[str], files_format: str) -> list[str]:
    if word == "{FILES}":
        pieces = shlex.split(files_format)
        return [_file(piece, file) for file in files for piece in pieces]
    if "{FILES}" in word:
        raise Fault(Code.CONFIG, f"{{FILES}} is only a part of {word!r}", hint="Write it as a separate word.")
    return [_PLACE.sub(lambda found: values[found[1]], word)]


def _file(piece: str, file: str) -> str:
    return piece.replace("{path}", file).replace("{basename}", PurePosixPath(file).name)


# --- with a shell ---------------------------------------------------------------------------------


class _Shell:
    """Scans a command line like a shell, but handles only quoting."""

    def __init__(self, command: str, values: Mapping[str, str], files: Sequence[str], files_format: str) -> None:
        self._command = command
        self._values = values
        self._files = files
        self._format = files_format
        self._environment: dict[str, str] = {}
        self._quote = ""
        self._word = ""
        self._before = ""
        self._program = ""

    def line(self) -> CommandLine:
        written: list[str] = []
        at = 0
        while at < len(self._command):
            found = _PLACE.match(self._command, at)
            if found is not None and self._command[at - 1 : at] != "$":
                written.append(self._fill_place(found[1]))
                self._word += found[0]
                at = found.end()
                continue
            step = self._step(at)
            written.append(self._command[at : at + step])
            at += step
        if self._quote:
            raise self._refusal("a quote in it is not closed", "Close it.")
        return CommandLine((SHELL, "-c", "".join(written)), self._environment)

    def _step(self, at: int) -> int:
        """Consume one character, or two if the first escapes the second."""
        character, following = self._command[at], self._command[at + 1 : at + 2]
        if character == "\\" and self._quote != "'" and following:
            if _PLACE.match(self._command, at + 1):
                raise self._refusal("a backslash is before a placeholder", "Take it away.")
            self._word += following
            return 2
        if self._quote:
            if character == self._quote:
                self._quote = ""
            elif self._quote == '"':
                self._check_nesting(at)
            self._word += character
        elif character in "'\"":
            self._quote = character
        else:
            self._check_nesting(at)
            self._outside(character)
        return 1

    def _outside(self, character: str) -> None:
        if character in ";&|\n()":
            self._word = self._before = self._program = ""
        elif character.isspace():
            if self._word:
                is_program = not self._program and self._word not in _BEFORE_A_PROGRAM and "=" not in self._word
                self._program = self._word if is_program else self._program
                self._before, self._word = self._word, ""
        else:
            self._word += character

    def _check_nesting(self, at: int) -> None:
        """Reject placeholders in nested commands, where quoting starts again, and in here-documents, which have
        none."""
        text = self._command
        if (
            text[at] == "`"
            or text.startswith(("$(", "<(", ">("), at)
            or (not self._quote and text.startswith("<<", at))
        ) and places_of(text):
            hint = "Write a script that does it, and name the script here."
            raise self._refusal("it has a command in the command, or a here-document", hint)

    def _fill_place(self, name: str) -> str:
        is_program = _PROGRAM_NEXT.fullmatch(self._before) or PurePosixPath(self._program).name in _INTERPRETS
        if is_program and name in ("PROMPT", "FILES", "EVAL_ID"):
            why = f"{{{name}}} would be part of a program that {self._program or self._before} runs"
            raise self._refusal(why, _BY_FILE)
        if name == "FILES":
            if self._quote or self._word:
                raise self._refusal("{FILES} is not a word of its own", "Write it alone, without quotes.")
            return " ".join(self._file(number, file) for number, file in enumerate(self._files, 1))
        variable = f"{_VARIABLE}{name}"
        self._environment[variable] = self._values[name]
        match self._quote:
            case '"':
                return f"${{{variable}}}"
            case "'":
                return f"'\"${{{variable}}}\"'"
            case _:
                return f'"${{{variable}}}"'

    def _file(self, number: int, file: str) -> str:
        variable = f"{_VARIABLE}FILE_{number}"
        self._environment[variable] = file
        self._environment[f"{variable}_NAME"] = PurePosixPath(file).name
        return self._format.replace("{path}", f'"${{{variable}}}"').replace("{basename}", f'"${{{variable}_NAME}}"')

    def _refusal(self, why: str, hint: str) -> Fault:
        return Fault(Code.CONFIG, f"the command {self._command!r} cannot be run safely: {why}", hint=hint)


# --- running --------------------------------------------------------------------------------------

MOST_OUTPUT = 32 << 20


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """The result of a command; a negative code is a signal."""

    code: int
    output: bytes
    complaints: bytes
    seconds: float


class Process:
    """Runs commands, each in its own process group, which is killed when the command ends, on a timeout, or by
    `close`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running: set[Commands] = set()

    async def run(
        self,
        argv: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        timeout: float,  # noqa: ASYNC109 - handed on
        given: bytes = b"",
    ) -> ProcessResult:
        """Run a command. Raises a fault if it cannot be started, takes too long or writes too much."""
        began = self._clock.monotonic()
        pipes = {1: bytearray(), 2: bytearray()}

        def collect(pipe: int, data: bytes) -> None:
            room = MOST_OUTPUT + 1 - len(pipes[pipe])
            pipes[pipe] += data[:room]

        commands = Commands(environment)
        self._running.add(commands)
        try:
            ended = await commands.run(argv, folder=folder, timeout=timeout, given=given, on_output=collect)
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else str(error)
            raise Fault(Code.CONFIG, f"{argv[0]} cannot be run: {words}", hint="Check the command.") from None
        finally:
            self._running.discard(commands)
        if ended.code is None:
            hint = "Give it more time, or see by hand what it waits for."
            raise Fault(Code.TIMEOUT_IDLE, f"{argv[0]} took longer than {timeout:g} s and was ended", hint=hint)
        if len(pipes[1]) > MOST_OUTPUT:
            raise Fault(
                Code.UPSTREAM_ERROR, f"{argv[0]} writes more than {MOST_OUTPUT >> 20} MB", hint="Let it write less."
            )
        return ProcessResult(ended.code, bytes(pipes[1]), bytes(pipes[2]), self._clock.monotonic() - began)

    async def close(self) -> None:
        """Kill all commands that still run."""
        for commands in list(self._running):
            await commands.close()


class PythonGraders:
    """Keeps a set of workers for each file and time limit."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._files: dict[tuple[Path, float], PythonFile] = {}
        self._loading = asyncio.Lock()

    async def call(self, file: Path, function: str, payload: JsonObject, limit: float) -> Json:
        """Call a function and return its value. Raises a fault if it raises, times out or does not exist."""
        graders = await self._load(file, limit)
        if all(each.name != function for each in graders.definitions):
            known = ", ".join(each.name for each in graders.definitions[:8])
            raise Fault(Code.CONFIG, f"{file.name} has no function {function}", hint=f"It has: {known or 'none'}.")
        call = RunnableCall(key=function, id=function, name=function, arguments={ARGUMENT: payload})
        outcome = await graders.use(call, lambda _words: None)
        if outcome.is_error or outcome.structured is None:
            words = "\n".join(part.text for part in outcome.parts if isinstance(part, Text))
            raise Fault(Code.CONFIG, words[:2000] or "it returned too much", hint="Call it by hand to see more.")
        return outcome.structured[VALUE]

    async def close(self) -> None:
        for each in self._files.values():
            await each.close()
        self._files.clear()

    async def _load(self, file: Path, limit: float) -> PythonFile:
        async with self._loading:
            found = self._files.get((file, limit))
            if found is None:
                found = PythonFile(
                    file, folder=file.parent, environment=self._environment, timeout=limit, kind="graders"
                )
                try:
                    await found.load()
                except Fault:
                    await found.close()
                    raise
                self._files[file, limit] = found
            return found
