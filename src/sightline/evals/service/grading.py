"""Drives graders: performs the steps they request (read a file, run a command, call a function, ask a judge)."""

import asyncio
import hmac
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeAlias

import msgspec
from httptools import HttpParserError, HttpRequestParser

from sightline.errors import Code, Fault
from sightline.evals.core.delivery import flat_question
from sightline.evals.core.graders.finding import (
    PYTHON,
    Answer,
    CallAdded,
    CallPython,
    Execute,
    Executed,
    FileContent,
    Grading,
    Judge,
    Judged,
    NeedFile,
    Returned,
    Step,
    StepFailed,
)
from sightline.evals.core.graders.grade import grade
from sightline.evals.core.graders.grader import Grader
from sightline.evals.core.reading.files import folder_of, join_path
from sightline.evals.core.result import CaseObservation, CaseScore
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.context import EvalRun
from sightline.evals.service.model_target import ModelTarget
from sightline.evals.service.processes import Process, PythonGraders
from sightline.evals.service.suite_files import SuiteFiles
from sightline.evals.service.target import CaseQuestion, CaseTarget, TargetAnswer, describe_fault
from sightline.journal.journal import drive
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Text
from sightline.model.request import Message
from sightline.wire.jsontext import decode, encode

URL = "AGENTV_TARGET_PROXY_URL"
TOKEN = "AGENTV_TARGET_PROXY_TOKEN"
MOST_BYTES = 16 << 20
_HOST = "127.0.0.1"
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 413: "Content Too Large"}
_REASONS |= {429: "Too Many Requests", 500: "Internal Server Error"}


@dataclass(frozen=True, slots=True)
class ProxyQuestion:
    """One question of a command. An empty `target` means the judge; `before` counts earlier identical questions."""

    question: str
    system: str = ""
    target: str = ""
    before: int = 0


Ask: TypeAlias = Callable[[ProxyQuestion], Awaitable[Judged]]
_Response: TypeAlias = tuple[int, JsonObject]


class ModelProxy:
    """A local HTTP server through which a command asks models, while its context is entered. `names` are the targets
    that may be asked, the first by default; `most` limits the questions; `judged` collects the answers."""

    def __init__(self, ask: Ask, names: tuple[str, ...], most: int, token: str) -> None:
        self._ask = ask
        self._names = names
        self._most = most
        self._token = token
        self._count = 0
        self._counts: dict[tuple[str, str, str], int] = {}
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._url = ""
        self.judged: list[Judged] = []

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which the command finds the server."""
        return {URL: self._url, TOKEN: self._token}

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, _HOST, 0)
        self._url = f"http://{_HOST}:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        # The client has disconnected, so no one reads the answer.
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            request = await _read(reader)
            status, value = request if isinstance(request, tuple) else await self._answer(request)
            writer.write(_response_bytes(status, value))
            await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client has disconnected, or the server is closing
        finally:
            self._serving.discard(task)
            writer.close()

    async def _answer(self, request: "_Request") -> _Response:
        if not hmac.compare_digest(request.token, f"Bearer {self._token}".encode()):
            return _wrong(401, "Unauthorized")
        match request.method, request.path:
            case b"GET", b"/info":
                return 200, (
                    {
                        "targetName": self._names[0],
                        "maxCalls": self._most,
                        "callCount": self._count,
                        "availableTargets": list(self._names),
                    }
                )
            case b"POST", b"/invoke":
                return await self._invoke(request.body, is_batch=False)
            case b"POST", b"/invokeBatch":
                return await self._invoke(request.body, is_batch=True)
            case _:
                return _wrong(404, "Not found")

    async def _invoke(self, body: bytes, *, is_batch: bool) -> _Response:
        try:
            value = decode(body)
            listed = _batch(value) if is_batch else [value]
            questions = [self._question(each) for each in listed]
        except Fault as fault:
            return _wrong(400, fault.message)
        if self._count + len(questions) > self._most:
            return _wrong(429, f"Max calls exceeded (limit: {self._most})")
        self._count += len(questions)
        try:
            answers = [await self._ask_model(each) for each in questions]
        except Fault as fault:
            return _wrong(500, describe_fault(fault))
        return 200, {"responses": [*answers]} if is_batch else answers[0]

    def _question(self, value: Json) -> ProxyQuestion:
        fields = value if isinstance(value, dict) else {}
        question, system, target = (fields.get(name) or "" for name in ("question", "systemPrompt", "target"))
        if not isinstance(question, str) or not question:
            raise _refusal("Missing required field: question")
        if not isinstance(system, str) or not isinstance(target, str):
            raise _refusal("systemPrompt and target are texts")
        if target and target not in self._names:
            raise _refusal(f"Unknown target '{target}'. Available: {', '.join(self._names)}")
        key = question, system, target
        self._counts[key] = self._counts.get(key, -1) + 1
        return ProxyQuestion(question, system, target, self._counts[key])

    async def _ask_model(self, question: ProxyQuestion) -> JsonObject:
        judged = await self._ask(question)
        self.judged.append(judged)
        body: JsonObject = {"output": [{"role": "assistant", "content": judged.text}], "rawText": judged.text}
        usage = judged.usage
        if usage is not None and usage.input_tokens is not None and usage.output_tokens is not None:
            body["tokenUsage"] = {"input": usage.input_tokens, "output": usage.output_tokens}
        return body


class _Request:
    """A request as parsed by llhttp."""

    def __init__(self) -> None:
        self.method = b""
        self.path = b""
        self.token = b""
        self.body = b""
        self.is_complete = False

    def on_url(self, url: bytes) -> None:
        self.path += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"authorization":
            self.token = value

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.is_complete = True


async def _read(reader: asyncio.StreamReader) -> "_Request | _Response":
    """Read the one request of a connection, or return an error response."""
    request, size = _Request(), 0
    parser = HttpRequestParser(request)
    while not request.is_complete:
        data = await reader.read(1 << 16)
        size += len(data)
        if not data:
            raise ConnectionResetError
        if size > MOST_BYTES:
            return _wrong(413, f"more than {MOST_BYTES >> 20} MB")
        try:
            parser.feed_data(data)
        except HttpParserError as error:
            return _wrong(400, f"no HTTP: {error}")
    request.method = parser.get_method()
    return request


def _batch(value: Json) -> list[Json]:
    requests = value.get("requests") if isinstance(value, dict) else None
    if not isinstance(requests, list):
        raise _refusal("Missing required field: requests (array)")
    return requests


def _refusal(words: str) -> Fault:
    return Fault(Code.INVALID_REQUEST, words)


def _wrong(status: int, words: str) -> _Response:
    return status, {"error": words}


def _response_bytes(status: int, value: JsonObject) -> bytes:
    body = encode(value)
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


Judges: TypeAlias = Callable[[str, str], Awaitable[CaseTarget]]
"""Opens the target that judges, by its name or by a model that replaces it."""

_NAME = "grading"
"""The name of the schema of a judgement."""

_APART = 1_000_000
"""Offset of the cache sample when one command repeats a question; greater than any number of trials."""


@dataclass(frozen=True, slots=True)
class Graders:
    """What graders need from outside. Paths are relative to the suite of the run. Commands get `environment`; those
    that may call models can name one of the run's targets."""

    run: EvalRun
    files: SuiteFiles
    judges: Judges
    process: Process
    python: PythonGraders
    environment: Mapping[str, str]

    @property
    def _suite(self) -> str:
        return self.run.began.suite.file

    async def grade(
        self, graders: Sequence[Grader], observation: CaseObservation, grading: Grading, target: TargetSpec, trial: int
    ) -> CaseScore:
        """Run the graders and return the score. A fault in a step leaves only that grader without a score."""

        async def handle(step: Step) -> Answer:
            try:
                return await self._perform(step, target, trial)
            except Fault as fault:
                return StepFailed(fault)

        return await drive(grade(graders, observation, grading), handle)

    async def _perform(self, step: Step, target: TargetSpec, trial: int) -> Answer:
        match step:
            case Judge():
                return await self._judge(step, target, trial)
            case Execute():
                return await self._execute(step, target, trial)
            case CallPython():
                began = self.run.engine.clock.monotonic()
                found = self._path(step.path)
                value = await self.python.call(found, step.function, step.payload, step.timeout)
                return Returned(value=value, seconds=self.run.engine.clock.monotonic() - began)
            case CallAdded():
                began = self.run.engine.clock.monotonic()
                value = await step.call(step.payload, step.timeout)
                return Returned(value=value, seconds=self.run.engine.clock.monotonic() - began)
            case NeedFile(path):
                where = self.files.find(path, self._suite)
                return FileContent(None if where is None else self.files.read(where))

    async def _judge(self, step: Judge, target: TargetSpec, trial: int) -> Judged:
        judge = await self.judges(self._judge_of(target, step.target), step.model)
        wanted = CaseQuestion(
            case=_NAME, messages=step.messages, question=flat_question(step.messages, {}), trial=trial
        )
        if isinstance(judge, ModelTarget):
            return _judgement_of(await judge.judge(wanted, step.schema, _NAME, step.temperature))
        return _judgement_of(await judge.answer(wanted))

    def _judge_of(self, target: TargetSpec, named: str = "") -> str:
        name = named or target.judge or self.run.began.options.judge or (target.name if target.kind == "model" else "")
        if not name:
            message = f"there is no judge for what {target.name} says"
            hint = 'Name a target that does: judge = "…" in its table, or target: in the grader.'
            raise Fault(Code.CONFIG, message, hint=hint)
        return name

    async def _execute(self, step: Execute, target: TargetSpec, trial: int) -> Executed:
        if step.proxy_calls is None:
            return await self._run_command(step, self.environment)
        make_token = self.run.context.make_token
        if make_token is None:
            raise Fault(Code.CONFIG, "a command cannot call a model from here", hint="Use a grader of type llm-grader.")
        judge = self._judge_of(target)

        async def ask(question: ProxyQuestion) -> Judged:
            system = (Message(role="system", parts=(Text(text=question.system),)),) if question.system else ()
            messages = (*system, Message(role="user", parts=(Text(text=question.question),)))
            wanted = CaseQuestion("proxy", messages, flat_question(messages, {}), trial + _APART * question.before)
            return _judgement_of(await (await self.judges(question.target or judge, "")).answer(wanted))

        known = (spec.name for spec in (*self.run.began.judges, *self.run.began.targets))
        names = tuple(dict.fromkeys((judge, *known)))
        async with ModelProxy(ask, names, step.proxy_calls, make_token()) as proxy:
            ended = await self._run_command(step, {**self.environment, **proxy.environment})
        return msgspec.structs.replace(ended, judged=tuple(proxy.judged))

    async def _run_command(self, step: Execute, environment: Mapping[str, str]) -> Executed:
        argv = (sys.executable, *step.argv[1:]) if step.argv[0] == PYTHON else step.argv
        ended = await self.process.run(
            argv, folder=self._folder(step.cwd), environment=environment, timeout=step.timeout, given=step.stdin
        )
        return Executed(code=ended.code, stdout=ended.output, stderr=ended.complaints, seconds=ended.seconds)

    def _folder(self, cwd: str) -> Path:
        where = join_path(folder_of(self._suite), cwd)
        folder = None if where is None else self.files.path(where)
        if folder is None or not folder.is_dir():
            raise Fault(
                Code.CONFIG, f"there is no folder {cwd!r}", hint="It is relative to the suite, and below the root."
            )
        return folder

    def _path(self, path: str) -> Path:
        where = self.files.find(path, self._suite)
        found = None if where is None else self.files.path(where)
        if found is None:
            raise Fault(Code.CONFIG, f"there is no file {path}", hint="Paths are relative to the suite's folder.")
        return found


def _judgement_of(given: TargetAnswer) -> Judged:
    """A judge's answer. Raises a fault if the judge failed."""
    observation = given.observation
    if observation.error:
        raise Fault(Code.UPSTREAM_ERROR, observation.error)
    return Judged(
        text=observation.text,
        usage=observation.usage,
        cost=0.0 if given.is_cached else observation.cost,  # it was paid for when it was first given
        exchange=next(iter(observation.exchanges), ""),
        seconds=observation.seconds,
    )
