"""Command targets: a program that receives the flat question and prints an answer: AgentV's JSON, the JSONL events of
Codex and Claude Code, or plain text."""

import tempfile
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec.structs import replace

from sightline.errors import Code, Fault
from sightline.evals.core.delivery import argument_text
from sightline.evals.core.result import CaseObservation, ToolUse
from sightline.evals.core.target import CommandSpec, CommandTemplate, TargetSpec
from sightline.evals.service.processes import Process, check_command, fill_command, places_of
from sightline.evals.service.suite_files import SuiteFiles
from sightline.evals.service.target import CaseQuestion, Spending, TargetAnswer, no_answer, refuse_tools
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Part, Text, ToolCall, ToolResult
from sightline.model.reply import Usage
from sightline.model.request import Message
from sightline.transport.http.client import HttpClient
from sightline.transport.http.target import Timeouts
from sightline.transport.waiting import Clock
from sightline.wire.call import HttpRequest
from sightline.wire.jsontext import decode, encode

_LONGEST_WORDS = 2000
_HEALTH_SECONDS = 30.0


def command_of(spec: CommandSpec) -> str | tuple[str, ...]:
    """The command of a target. The built-in ones (Claude Code, Codex) run without prompts, read the question from
    standard input and print JSONL events."""
    model = ("--model", spec.model) if spec.model else ()
    match spec.template:
        case "codex":
            return "codex", "exec", "--json", "--skip-git-repo-check", *model, "-"
        case "claude":
            return "claude", "-p", "--output-format", "stream-json", "--verbose", *model
        case "":
            return spec.command


class CommandTarget:
    """Runs the command once for each question, with only the variables in `environment`."""

    def __init__(
        self, spec: TargetSpec, files: SuiteFiles, environment: Mapping[str, str], clock: Clock, spending: Spending
    ) -> None:
        assert spec.cli is not None  # checked when the target was opened
        self.spec = spec
        self._cli = spec.cli
        self._command = command_of(spec.cli)
        self._files = files
        self._environment = dict(environment)
        self._clock = clock
        self._spending = spending
        self._process = Process(clock)
        self._folder = self._cwd(spec.cli.cwd)
        check_command(self._command, spec.cli.files_format)

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
            timeouts = Timeouts(first_byte=_HEALTH_SECONDS, idle=_HEALTH_SECONDS)
            try:
                async with await client.send(request, timeouts) as response:
                    status = response.status
            except Fault as fault:
                raise self._unhealthy(f"its healthcheck has no answer: {fault.message}") from None
            if status >= 400:
                raise self._unhealthy(f"its healthcheck answered with status {status}")

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
            replace(
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
        template, places = self._cli.template, places_of(self._command)
        async with AsyncExitStack() as stack:
            values = {"PROMPT": wanted.question, "EVAL_ID": wanted.case, "ATTEMPT": str(wanted.trial + 1)}
            output: Path | None = None
            if places & {"PROMPT_FILE", "OUTPUT_FILE"}:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sightline-eval-")))
                prompt, output = folder / "prompt.md", folder / "output.json"
                prompt.write_bytes(wanted.question.encode("utf-8", "surrogatepass"))
                values |= {"PROMPT_FILE": str(prompt), "OUTPUT_FILE": str(output)}
            files = [str(self._files.root / each) for each in wanted.files]
            line = fill_command(self._command, values, files, self._cli.files_format)
            ended = await self._process.run(
                line.argv,
                folder=self._folder,
                environment={**self._environment, **line.environment},
                timeout=self._cli.timeout_s,
                given=wanted.question.encode("utf-8", "surrogatepass") if template else b"",
            )
            if ended.code != 0 and not template:
                words = _words(ended.complaints or ended.output)
                raise self._failure(f"the command ended with {ended.code}: {words}")
            data = ended.output
            if output is not None and "OUTPUT_FILE" in places:
                if not output.is_file():
                    raise self._failure("the command has not written {OUTPUT_FILE}")
                data = output.read_bytes()
        try:
            return read_output(data, template)
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


# --- output ---------------------------------------------------------------------------------------


def read_output(data: bytes, template: CommandTemplate = "") -> CaseObservation:
    """Parse the output of this command into an observation. Raises a fault if the program itself reports a failure."""
    match template:
        case "codex":
            return _codex(_lines(data))
        case "claude":
            return _claude(_lines(data))
        case "":
            return _agentv(data)


class _Transcript:
    """Collects the messages and tool uses of an agent in the order of its events."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.uses: dict[str, ToolUse] = {}
        self.words = ""

    def add_text(self, text: str, calls: Iterable[ToolUse] = ()) -> None:
        parts: list[Part] = [Text(text)] if text else []
        for call in calls:
            self.uses[call.id] = call
            parts.append(ToolCall(call.id, call.name, argument_text(call.arguments)))
        if parts:
            self.messages.append(Message("assistant", tuple(parts)))
        self.words = text or self.words

    def answer(self, call: str, text: str, *, is_error: bool = False, seconds: float | None = None) -> None:
        known = self.uses.get(call, ToolUse(name="", id=call))
        self.uses[call] = ToolUse(
            name=known.name, arguments=known.arguments, result=text, is_error=is_error, id=call, seconds=seconds
        )
        result = ToolResult(call, (Text(text),) if text else (), known.name or None, is_error=is_error or None)
        self.messages.append(Message("tool", (result,)))

    def observation(self, text: str) -> CaseObservation:
        """What the agent did, with this text as its answer."""
        return CaseObservation(messages=tuple(self.messages), text=text, tools=tuple(self.uses.values()), finish="stop")


# --- AgentV ---------------------------------------------------------------------------------------


def _agentv(data: bytes) -> CaseObservation:
    """Parse one object with `text` or `output`. Anything else is the answer itself, even if it is JSON."""
    try:
        value = decode(data)
    except Fault:
        value = None
    transcript = _Transcript()
    if not isinstance(value, dict) or not ("text" in value or "output" in value):
        text = data.decode("utf-8", "replace").strip()
        transcript.add_text(text)
        return replace(transcript.observation(text), is_traced=False)
    _add_output(value.get("output"), transcript)
    answer = value.get("text")
    if isinstance(answer, str):
        if not any(message.role == "assistant" for message in transcript.messages):
            transcript.add_text(answer)
        transcript.words = answer
    return replace(
        transcript.observation(transcript.words),
        usage=_usage(value.get("token_usage"), "input", "output", "cached"),
        cost=_number(value.get("cost_usd")),
        seconds=_seconds(value),
        is_traced=isinstance(value.get("output"), list),
    )


def _add_output(output: Json, transcript: _Transcript) -> None:
    if isinstance(output, str):
        transcript.add_text(output)
    for message in output if isinstance(output, list) else ():
        if not isinstance(message, dict) or message.get("role") not in (None, "assistant"):
            continue
        listed = message.get("tool_calls")
        calls = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        uses = [_use(call, len(transcript.uses) + number) for number, call in enumerate(calls, 1)]
        transcript.add_text(_content(message.get("content")), uses)
        for use, call in zip(uses, calls, strict=True):
            if "output" in call:
                transcript.answer(use.id, _text(call["output"]), is_error=use.is_error, seconds=use.seconds)


def _use(call: JsonObject, number: int) -> ToolUse:
    """A tool call with its duration and error flag; both may be present without a result."""
    name = call.get("id")
    return ToolUse(
        name=str(call.get("tool", "")),
        arguments=call.get("input"),
        id=name if isinstance(name, str) and name else f"call_{number}",
        is_error=call.get("status") not in (None, "ok", "success", "completed"),
        seconds=_seconds(call),
    )


def _content(content: Json) -> str:
    if isinstance(content, list):
        blocks = [each for each in content if isinstance(each, dict)]
        return "\n".join(_block(block) for block in blocks)
    return _text(content)


def _block(block: JsonObject) -> str:
    """The text of a block. A file is represented by its name because its content is not available."""
    if block.get("type") in ("file", "image"):
        name = next((block[key] for key in ("path", "source", "value") if block.get(key)), "")
        return f"[{block['type']}: {_text(name) if not str(name).startswith('data:') else 'data'}]"
    return _text(block.get("text", block.get("value", "")))


# --- codex ----------------------------------------------------------------------------------------


def _codex(events: list[JsonObject]) -> CaseObservation:
    transcript, usage, rounds = _Transcript(), None, 0
    for event in events:
        item = event.get("item")
        match event.get("type"):
            case "item.completed" if isinstance(item, dict):
                _add_item(item, transcript)
            case "turn.completed":
                usage = _usage(event.get("usage"), "input_tokens", "output_tokens", "cached_input_tokens")
                rounds += 1
            case "turn.failed":
                error = event.get("error")
                words = error.get("message") if isinstance(error, dict) else event.get("message")
                raise _failure("codex", _text(words))
            case _:
                pass
    if not rounds:
        raise _failure("codex", "it did not come to the end of its turn")
    return replace(transcript.observation(transcript.words), usage=usage, requests=rounds)


def _add_item(item: JsonObject, transcript: _Transcript) -> None:
    name = str(item.get("id", f"item_{len(transcript.uses)}"))
    failed = item.get("status") in ("failed", "declined")
    arguments: Json
    match item.get("type"):
        case "agent_message":
            transcript.add_text(_text(item.get("text")))
            return
        case "command_execution":
            tool, arguments, result = "shell", {"command": item.get("command")}, item.get("aggregated_output")
            failed = failed or bool(item.get("exit_code"))
        case "mcp_tool_call":
            tool, arguments = f"{item.get('server')}__{item.get('tool')}", item.get("arguments")
            result = item.get("error") if failed else item.get("result")
        case "file_change":
            tool, arguments, result = "apply_patch", {"changes": item.get("changes")}, item.get("status")
        case "web_search":
            tool, arguments, result = "web_search", {"query": item.get("query")}, None
        case _:
            return
    transcript.add_text("", [ToolUse(name=tool, arguments=arguments, id=name)])
    transcript.answer(name, _text(result), is_error=failed)


# --- claude ---------------------------------------------------------------------------------------


def _claude(events: list[JsonObject]) -> CaseObservation:
    transcript, end = _Transcript(), None
    for event in events:
        message = event.get("message")
        blocks = message.get("content") if isinstance(message, dict) else None
        if event.get("type") == "assistant":
            _add_blocks(blocks, transcript)
        elif event.get("type") == "user" and isinstance(blocks, list):
            for block in blocks:
                if isinstance(block, dict) and block.get("type") == "tool_result":
                    text = _content(block.get("content"))
                    transcript.answer(str(block.get("tool_use_id", "")), text, is_error=block.get("is_error") is True)
        elif event.get("type") == "result":
            end = event
    if end is None:
        raise _failure("claude", "it did not end")
    if end.get("is_error") is True:
        raise _failure("claude", _text(end.get("result")) or _text(end.get("subtype")))
    turns = end.get("num_turns")
    return replace(
        transcript.observation(_text(end.get("result")) or transcript.words),
        usage=_claude_usage(end.get("usage")),
        cost=_number(end.get("total_cost_usd")),
        seconds=_seconds(end),
        requests=turns if isinstance(turns, int) else 1,
    )


def _add_blocks(blocks: Json, transcript: _Transcript) -> None:
    found = [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    transcript.add_text(
        "".join(_text(block.get("text")) for block in found if block.get("type") == "text"),
        [
            ToolUse(name=str(block.get("name", "")), arguments=block.get("input"), id=str(block.get("id", "")))
            for block in found
            if block.get("type") == "tool_use"
        ],
    )


def _claude_usage(value: Json) -> Usage | None:
    """Parse usage. Claude's `input_tokens` excludes cached and cache-written tokens, so they are added."""
    if not isinstance(value, dict) or not isinstance(given := value.get("input_tokens"), int):
        return None
    cached, written = _count(value.get("cache_read_input_tokens")), _count(value.get("cache_creation_input_tokens"))
    got, kept = value.get("output_tokens"), value.get("cache_creation")
    return Usage(
        input_tokens=given + (cached or 0) + (written or 0),
        output_tokens=_count(got),
        cached_tokens=cached,
        cache_write_tokens=written,
        cache_write_1h_tokens=_count(kept.get("ephemeral_1h_input_tokens")) if isinstance(kept, dict) else None,
    )


# --- pieces ---------------------------------------------------------------------------------------


def _lines(data: bytes) -> list[JsonObject]:
    """Parse JSON objects, one per line. Other lines are for people and are skipped."""
    found: list[JsonObject] = []
    for line in data.splitlines():
        if line.lstrip().startswith(b"{"):
            try:
                value = decode(line)
            except Fault:
                continue
            if isinstance(value, dict):
                found.append(value)
    return found


def _usage(value: Json, given: str, got: str, cached: str) -> Usage | None:
    if not isinstance(value, dict):
        return None
    return Usage(
        input_tokens=_count(value.get(given)),
        output_tokens=_count(value.get(got)),
        cached_tokens=_count(value.get(cached)),
    )


def _count(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _seconds(value: JsonObject) -> float | None:
    duration = _number(value.get("duration_ms"))
    return None if duration is None else duration / 1000


def _text(value: Json) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else encode(value).decode()


def _failure(program: str, words: str) -> Fault:
    return Fault(Code.UPSTREAM_ERROR, f"{program} says that it failed: {words}", hint="Run it by hand to see more.")
