"""Command targets: a program that receives the flat question and prints an answer."""

import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.core.result import CaseObservation
from sightline.evals.core.target import CommandSpec, TargetSpec
from sightline.evals.service.agent_output import OutputForm, read_output
from sightline.evals.service.processes import Process
from sightline.evals.service.suite_files import SuiteFiles
from sightline.evals.service.target import CaseQuestion, Spending, TargetAnswer, no_answer, refuse_tools
from sightline.transport.http.client import HttpClient
from sightline.transport.http.target import Timeouts
from sightline.transport.waiting import Clock
from sightline.wire.call import HttpRequest

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


def check(command: str | Sequence[str], files_format: str = "{path}") -> None:
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


_LONGEST_WORDS = 2000
_HEALTH_SECONDS = 30.0


class Program(NamedTuple):
    """A command, the form of its output, and whether it reads the question from standard input."""

    command: str | tuple[str, ...]
    form: OutputForm
    reads_input: bool


def program_of(spec: CommandSpec) -> Program:
    """The program of a target. The built-in ones (Claude Code, Codex) run without prompts and print JSONL events."""
    model = ("--model", spec.model) if spec.model else ()
    match spec.template:
        case "codex":
            return Program(("codex", "exec", "--json", "--skip-git-repo-check", *model, "-"), "codex", True)
        case "claude":
            command = ("claude", "-p", "--output-format", "stream-json", "--verbose", *model)
            return Program(command, "claude", True)
        case "":
            return Program(spec.command, "", False)


class CommandTarget:
    """Runs the command once for each question, with only the variables in `environment`."""

    def __init__(
        self, spec: TargetSpec, files: SuiteFiles, environment: Mapping[str, str], clock: Clock, spending: Spending
    ) -> None:
        assert spec.cli is not None  # checked when the target was opened
        self.spec = spec
        self._cli = spec.cli
        self._program = program_of(spec.cli)
        self._files = files
        self._environment = dict(environment)
        self._clock = clock
        self._spending = spending
        self._process = Process(clock)
        self._folder = self._cwd(spec.cli.cwd)
        check(self._program.command, spec.cli.files_format)

    def _cwd(self, path: str) -> Path:
        folder = self._files.path(path)
        if folder is None or not folder.is_dir():
            hint = "Name a folder below the one that the suites are in."
            raise Fault(
                Code.CONFIG, f"the target {self.spec.name!r} runs in {path!r}, which is not a folder", hint=hint
            )
        return folder

    async def check_health(self, client: HttpClient | None) -> None:
        """Run the target's health check before any case. Raises a fault if it fails."""
        if self._cli.healthcheck_command:
            ended = await self._process.run(
                ("/bin/sh", "-c", self._cli.healthcheck_command),
                folder=self._folder if self._cli.healthcheck_cwd is None else self._cwd(self._cli.healthcheck_cwd),
                environment=self._environment,
                timeout=_HEALTH_SECONDS,
            )
            if ended.code != 0:
                raise self._unhealthy(
                    f"its healthcheck ended with {ended.code}: {_words(ended.complaints or ended.output)}"
                )
        if self._cli.healthcheck_url:
            if client is None:
                raise self._unhealthy("its healthcheck has a URL, and there is nothing to fetch it with")
            request = HttpRequest("GET", self._cli.healthcheck_url, (), b"")
            async with await client.send(
                request, Timeouts(first_byte=_HEALTH_SECONDS, idle=_HEALTH_SECONDS)
            ) as response:
                if response.status >= 400:
                    raise self._unhealthy(f"its healthcheck answered with status {response.status}")

    async def answer(self, wanted: CaseQuestion) -> TargetAnswer:
        """Run the program. One that fails or times out yields an answer with an error."""
        began = self._clock.monotonic()
        if refused := refuse_tools(wanted, self.spec.name, "is a program, which has its own"):
            return refused
        try:
            observation = await self._run_program(wanted)
        except Fault as fault:
            self._spending.spend(None)
            return no_answer(wanted, fault)
        self._spending.spend(observation.cost)
        seconds = observation.seconds if observation.seconds is not None else self._clock.monotonic() - began
        return TargetAnswer(
            msgspec.structs.replace(
                observation,
                asked=wanted.messages,
                question=wanted.question,
                seconds=seconds,
                model=self._cli.model or self._cli.template,
            )
        )

    async def close(self) -> None:
        """Kill programs that still run."""
        await self._process.close()

    async def _run_program(self, wanted: CaseQuestion) -> CaseObservation:
        program, places = self._program, places_of(self._program.command)
        async with AsyncExitStack() as stack:
            values = {"PROMPT": wanted.question, "EVAL_ID": wanted.case, "ATTEMPT": str(wanted.trial + 1)}
            output: Path | None = None
            if places & {"PROMPT_FILE", "OUTPUT_FILE"}:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sightline-eval-")))
                prompt, output = folder / "prompt.md", folder / "output.json"
                prompt.write_bytes(wanted.question.encode("utf-8", "surrogatepass"))
                values |= {"PROMPT_FILE": str(prompt), "OUTPUT_FILE": str(output)}
            files = [str(self._files.root / each) for each in wanted.files]
            line = fill_command(program.command, values, files, self._cli.files_format)
            ended = await self._process.run(
                line.argv,
                folder=self._folder,
                environment={**self._environment, **line.environment},
                timeout=self._cli.timeout_s,
                given=wanted.question.encode("utf-8", "surrogatepass") if program.reads_input else b"",
            )
            if ended.code != 0 and not program.form:
                words = _words(ended.complaints or ended.output)
                raise self._failure(f"the command ended with {ended.code}: {words}")
            data = ended.output
            if output is not None and "OUTPUT_FILE" in places:
                if not output.is_file():
                    raise self._failure("the command has not written {OUTPUT_FILE}")
                data = output.read_bytes()
        try:
            return read_output(data, program.form)
        except Fault as fault:
            if ended.code == 0:
                raise
            raise self._failure(f"{fault.message}; it ended with {ended.code}: {_words(ended.complaints)}") from None

    def _failure(self, why: str) -> Fault:
        return Fault(Code.UPSTREAM_ERROR, f"{self.spec.name}: {why}", hint="Run the command by hand to see more.")

    def _unhealthy(self, why: str) -> Fault:
        return Fault(Code.CONFIG, f"the target {self.spec.name!r} cannot be used: {why}", hint="Start what it needs.")


def _words(data: bytes) -> str:
    return data.decode("utf-8", "replace").strip()[-_LONGEST_WORDS:]
