"""Checks each part of the embedded model, for a user who wonders why it does not answer."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from subprocess import PIPE
from typing import TypeAlias

import msgspec

from sightline.dialects.endpoint import counting_of, read_token_count
from sightline.dialects.openai_chat.names import NAME as CHAT
from sightline.errors import Code, Fault
from sightline.transport.embedded.causes import CAUSE_TEXTS, ELSEWHERE, INSTALL, LIBGOMP, SHA256, unavailable
from sightline.transport.embedded.child import INSPECT, MODEL, Inspection
from sightline.transport.embedded.process import CHILD, EmbeddedModel, Running
from sightline.wire.call import HttpRequest
from sightline.wire.jsontext import decode

Post: TypeAlias = Callable[[HttpRequest], Awaitable[tuple[int, bytes]]]
"""Sends a request and returns the status and the body of the response."""

_QUESTION = {"model": MODEL, "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 8, "temperature": 0}


@dataclass(frozen=True, slots=True)
class DiagnosisFinding:
    """One part: whether it is in order (None: unknown), what was found, and what to do if it is not."""

    name: str
    ok: bool | None
    detail: str
    hint: str = ""


async def diagnose(model: EmbeddedModel, post: Post) -> list[DiagnosisFinding]:
    """Check every part, then start the model and let it count and answer."""
    try:
        findings = [] if model.elsewhere else findings_of(await _inspect(model))
    except Fault as fault:
        return [_failure("python", fault)]
    try:
        running = await model.running()
    except Fault as fault:
        return [*findings, _failure("start", fault)]
    if model.elsewhere:
        findings.append(DiagnosisFinding("address", ok=None, detail=f"{running.url}, as set under [local]"))
    else:
        findings.append(DiagnosisFinding("start", ok=True, detail=f"listens at {running.url}"))
    findings.append(await _attempt("count", _count_tokens, running, post))
    try:
        async with model.turn() as running:
            return [*findings, await _attempt("answer", _ask_model, running, post)]
    except Fault as fault:
        return [*findings, _failure("answer", fault)]


def findings_of(seen: Inspection) -> list[DiagnosisFinding]:
    """The findings of an inspection."""
    return [_engine(seen), _weights(seen), _openmp(seen), _processor(seen)]


def _engine(seen: Inspection) -> DiagnosisFinding:
    if seen.engine:
        return DiagnosisFinding("engine", ok=True, detail=f"xllamacpp {seen.engine}")
    text = CAUSE_TEXTS["no_engine" if seen.has_build else "no_build"]
    return DiagnosisFinding("engine", ok=False, detail=f"{text.message} ({seen.platform})", hint=text.hint)


def _weights(seen: Inspection) -> DiagnosisFinding:
    if not seen.weights:
        return DiagnosisFinding("weights", ok=False, detail=CAUSE_TEXTS["no_weights"].message, hint=INSTALL)
    if seen.sha256 == SHA256:
        return DiagnosisFinding("weights", ok=True, detail=f"{seen.weights}, SHA-256 as published")
    detail = f"{seen.weights} has SHA-256 {seen.sha256}"
    return DiagnosisFinding("weights", ok=False, detail=detail, hint=CAUSE_TEXTS["bad_weights"].hint)


def _openmp(seen: Inspection) -> DiagnosisFinding:
    if seen.openmp_problem:
        return DiagnosisFinding("openmp", ok=False, detail=seen.openmp_problem, hint=LIBGOMP)
    return DiagnosisFinding(
        "openmp", ok=True, detail="can be loaded" if seen.platform.startswith("linux") else "not needed"
    )


def _processor(seen: Inspection) -> DiagnosisFinding:
    if seen.avx2 is None:
        return DiagnosisFinding(
            "processor", ok=None, detail="it is not known whether it has AVX2; the start will show it"
        )
    if seen.avx2:
        return DiagnosisFinding("processor", ok=True, detail=f"has what the engine needs ({seen.platform})")
    return DiagnosisFinding("processor", ok=False, detail=CAUSE_TEXTS["no_avx2"].message, hint=ELSEWHERE)


async def _inspect(model: EmbeddedModel) -> Inspection:
    try:
        process = await asyncio.create_subprocess_exec(
            model.python, "-P", "-m", CHILD, INSPECT, env=dict(model.environment), stdout=PIPE, stderr=PIPE
        )
    except OSError as error:
        raise unavailable("no_python", f"{model.python}: {error.strerror}") from error
    output, errors = await process.communicate()
    if process.returncode:
        raise unavailable("no_python", errors.decode(errors="replace").strip().rpartition("\n")[2])
    return msgspec.json.decode(output, type=Inspection)


async def _attempt(
    name: str, attempt: Callable[[Running, Post], Awaitable[str]], running: Running, post: Post
) -> DiagnosisFinding:
    try:
        return DiagnosisFinding(name, ok=True, detail=await attempt(running, post))
    except Fault as fault:
        return _failure(name, fault)


async def _count_tokens(running: Running, post: Post) -> str:
    answer = await _post(f"/v1{counting_of(CHAT).path}", running, post)
    return f"{read_token_count(CHAT, decode(answer))} tokens"


async def _ask_model(running: Running, post: Post) -> str:
    body = await _post("/v1/chat/completions", running, post)
    try:
        text = msgspec.json.decode(body, type=_Answered).choices[0].message.content
    except (msgspec.DecodeError, IndexError) as error:
        raise Fault(Code.UPSTREAM_PROTOCOL, f"its answer cannot be read: {error}") from error
    return f"it says {text!r}"


async def _post(path: str, running: Running, post: Post) -> bytes:
    headers = (("content-type", "application/json"), ("authorization", f"Bearer {running.key}"))
    status, body = await post(HttpRequest("POST", f"{running.url}{path}", headers, msgspec.json.encode(_QUESTION)))
    if status != 200:
        words = body.decode(errors="replace")[:200]
        raise Fault(
            Code.UPSTREAM_ERROR,
            f"it answered with status {status}: {words}",
            hint="Check that it is llama.cpp's server.",
        )
    return body


def _failure(name: str, fault: Fault) -> DiagnosisFinding:
    return DiagnosisFinding(name, ok=False, detail=fault.message, hint=fault.hint)


class _Message(msgspec.Struct):
    content: str


class _Choice(msgspec.Struct):
    message: _Message


class _Answered(msgspec.Struct):
    choices: list[_Choice]
