"""A command with places for a question, made ready to be run so that no word of the question is ever shell code.

What is put in goes by variables of the environment, in double quotes wherever the place stands. Where that would not be
enough, because another interpreter gets the text as its program, the command is refused before anything is run.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from sightline.errors import Code, Fault

NAMES = ("PROMPT", "PROMPT_FILE", "OUTPUT_FILE", "FILES", "EVAL_ID", "ATTEMPT")
SHELL = "/bin/sh"
LONGEST_VALUE = 120_000
"""Bytes that one argument or variable can have on Linux, with some room."""

_PLACE = re.compile(r"\{(" + "|".join(NAMES) + r")\}")
_PROGRAM_NEXT = re.compile(r"-[A-Za-z]*[ce]|--(?:eval|command|exec|print)")
_INTERPRETS = ("eval", "ssh", "xargs", "su", "watch")
_BEFORE_A_PROGRAM = ("{", "!", "if", "then", "else", "while", "do", "exec", "env", "sudo", "nohup", "time", "command")
_VARIABLE = "SIGHTLINE_EVAL_"
_BY_FILE = "Use {PROMPT_FILE}: the program reads the prompt from there."


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Words to run, and the variables that they need beside the usual ones."""

    argv: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)


def places_of(command: str | Sequence[str]) -> frozenset[str]:
    """The names that a command has places for."""
    words = [command] if isinstance(command, str) else command
    return frozenset(found[1] for word in words for found in _PLACE.finditer(word))


def fill_command(
    command: str | Sequence[str], values: Mapping[str, str], files: Sequence[str] = (), files_format: str = "{path}"
) -> CommandLine:
    """The command with these values and files in its places."""
    for name in places_of(command) - {"FILES"}:
        _check_value(name, values[name])
    for file in files:
        _check_value("FILES", file)
    if isinstance(command, str):
        return _Shell(command, values, files, files_format).line()
    words = tuple(word for each in command for word in _words(each, values, files, files_format))
    return CommandLine(words)


def check(command: str | Sequence[str], files_format: str = "{path}") -> None:
    """Refuse a command that could not be run safely, before there is anything to run."""
    fill_command(command, dict.fromkeys(NAMES, ""), ("file",), files_format)


def _check_value(name: str, value: str) -> None:
    if "\0" in value:
        raise Fault(
            Code.USAGE, f"there is a zero byte in what goes to {{{name}}}", hint="No command line can hold one."
        )
    if len(value.encode("utf-8", "surrogateescape")) > LONGEST_VALUE:
        message = f"what goes to {{{name}}} is longer than {LONGEST_VALUE} bytes, too long for a command line"
        raise Fault(Code.USAGE, message, hint=_BY_FILE)


# --- without a shell ------------------------------------------------------------------------------


def _words(word: str, values: Mapping[str, str], files: Sequence[str], files_format: str) -> list[str]:
    if word == "{FILES}":
        pieces = shlex.split(files_format)
        return [_file(piece, file) for file in files for piece in pieces]
    if "{FILES}" in word:
        raise Fault(Code.CONFIG, f"{{FILES}} is only a part of {word!r}", hint="Let it stand as a word of its own.")
    return [_PLACE.sub(lambda found: values[found[1]], word)]


def _file(piece: str, file: str) -> str:
    return piece.replace("{path}", file).replace("{basename}", PurePosixPath(file).name)


# --- with a shell ---------------------------------------------------------------------------------


class _Shell:
    """Reads a line as a shell does, as far as quotes go."""

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
        """Take in one letter, or two where the first takes away what the second means."""
        letter, following = self._command[at], self._command[at + 1 : at + 2]
        if letter == "\\" and self._quote != "'" and following:
            if _PLACE.match(self._command, at + 1):
                raise self._refusal("a backslash stands before a place", "Take it away.")
            self._word += following
            return 2
        if self._quote:
            if letter == self._quote:
                self._quote = ""
            elif self._quote == '"':
                self._check_nesting(at)
            self._word += letter
        elif letter in "'\"":
            self._quote = letter
        else:
            self._check_nesting(at)
            self._outside(letter)
        return 1

    def _outside(self, letter: str) -> None:
        if letter in ";&|\n()":
            self._word = self._before = self._program = ""
        elif letter.isspace():
            if self._word:
                is_program = not self._program and self._word not in _BEFORE_A_PROGRAM and "=" not in self._word
                self._program = self._word if is_program else self._program
                self._before, self._word = self._word, ""
        else:
            self._word += letter

    def _check_nesting(self, at: int) -> None:
        """Inside of these a shell reads anew, and a here-document has no quotes at all."""
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
                raise self._refusal("{FILES} is not a word of its own", "Let it stand alone, without quotes.")
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
