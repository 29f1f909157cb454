"""A program that gets the flat question and gives an answer, in a process group that ends with it."""

import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.core.observation import CaseObservation
from sightline.evals.core.target import CommandSpec, TargetSpec
from sightline.evals.service.agent_output import OutputForm, read_output
from sightline.evals.service.command_line import check, fill_command, places_of
from sightline.evals.service.process import Process
from sightline.evals.service.spending import Spending
from sightline.evals.service.suite_files import SuiteFiles
from sightline.evals.service.target import CaseQuestion, TargetAnswer, no_answer, refuse_tools
from sightline.transport.clock import Clock
from sightline.transport.http.client import HttpClient
from sightline.transport.http.timeouts import Timeouts
from sightline.wire.call import HttpRequest

_LONGEST_WORDS = 2000
_HEALTH_SECONDS = 30.0


class Program(NamedTuple):
    """A command, how its output is read, and whether it reads the question from its standard input."""

    command: str | tuple[str, ...]
    form: OutputForm
    reads_input: bool


def program_of(spec: CommandSpec) -> Program:
    """The command of a target. The ready ones ask nobody anything and tell in lines of JSON what they do."""
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
    """Runs the command once for each question. What stands in `environment` is all that it gets."""

    def __init__(
        self, spec: TargetSpec, files: SuiteFiles, environment: Mapping[str, str], clock: Clock, spending: Spending
    ) -> None:
        assert spec.cli is not None  # whoever opens it has looked
        self.spec = spec
        self._cli = spec.cli
        self._program = program_of(spec.cli)
        self._files = files
        self._environment = dict(environment)
        self._clock = clock
        self._purse = spending
        self._process = Process(clock)
        self._folder = self._cwd(spec.cli.cwd)
        check(self._program.command, spec.cli.files_format)

    def _cwd(self, path: str) -> Path:
        folder = self._files.path(path)
        if folder is None or not folder.is_dir():
            hint = "Name a folder below the one that the suites are in."
            raise Fault(Code.CONFIG, f"the target {self.spec.name!r} runs in {path!r}, which is no folder", hint=hint)
        return folder

    async def check_health(self, client: HttpClient | None) -> None:
        """Whether it can be used at all; a fault if not, before any case is run."""
        if self._cli.healthcheck_command:
            ended = await self._process.run(
                ("/bin/sh", "-c", self._cli.healthcheck_command),
                folder=self._folder if self._cli.healthcheck_cwd is None else self._cwd(self._cli.healthcheck_cwd),
                environment=self._environment,
                timeout=_HEALTH_SECONDS,
            )
            if ended.code != 0:
                raise self._ill(f"its healthcheck ended with {ended.code}: {_words(ended.complaints or ended.output)}")
        if self._cli.healthcheck_url:
            if client is None:
                raise self._ill("its healthcheck has a URL, and there is nothing to fetch it with")
            request = HttpRequest("GET", self._cli.healthcheck_url, (), b"")
            async with await client.send(request, Timeouts(first_byte=_HEALTH_SECONDS, idle=_HEALTH_SECONDS)) as told:
                if told.status >= 400:
                    raise self._ill(f"its healthcheck answered with status {told.status}")

    async def answer(self, wanted: CaseQuestion) -> TargetAnswer:
        """What it answered; one that fails or takes too long has no answer."""
        began = self._clock.monotonic()
        try:
            refuse_tools(wanted, self.spec.name, "is a program, which has its own")
        except Fault as fault:
            return no_answer(wanted, fault, cost=0.0)
        try:
            observation = await self._run_program(wanted)
        except Fault as fault:
            self._purse.spend(None)
            return no_answer(wanted, fault)
        self._purse.spend(observation.cost)
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
        """End what runs."""
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

    def _ill(self, why: str) -> Fault:
        return Fault(Code.CONFIG, f"the target {self.spec.name!r} cannot be used: {why}", hint="Start what it needs.")


def _words(data: bytes) -> str:
    return data.decode("utf-8", "replace").strip()[-_LONGEST_WORDS:]
