"""What is right and wrong with the embedded model, part by part: for a person who wonders why it does not answer."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from subprocess import PIPE
from typing import TypeAlias

import msgspec

from sightline.dialects.endpoint import counted, counting_of
from sightline.errors import Code, Fault
from sightline.transport.embedded.causes import ELSEWHERE, INSTALL, LIBGOMP, TOLD, unavailable
from sightline.transport.embedded.child import MODEL
from sightline.transport.embedded.inspection import Inspection
from sightline.transport.embedded.process import EmbeddedModel, Running
from sightline.transport.embedded.weights import SHA256
from sightline.wire.call import HttpRequest
from sightline.wire.jsontext import decode

Post: TypeAlias = Callable[[HttpRequest], Awaitable[tuple[int, bytes]]]
"""Sends a request and gives the status and the body of the answer."""

_DIALECT = "openai-chat"
_INSPECTION = "sightline.transport.embedded.inspection"
_QUESTION = {"model": MODEL, "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 8, "temperature": 0}


@dataclass(frozen=True, slots=True)
class Finding:
    """One part: whether it is as it should be (None: nobody can say), what was seen, and what to do if not."""

    name: str
    ok: bool | None
    detail: str
    hint: str = ""


async def diagnose(model: EmbeddedModel, post: Post) -> list[Finding]:
    """Look at every part, then start the model and let it count and answer."""
    try:
        findings = [] if model.runs_elsewhere else findings_of(await _inspected(model), own_weights=bool(model.weights))
    except Fault as fault:
        return [_failed("python", fault)]
    try:
        running = await model.running()
    except Fault as fault:
        return [*findings, _failed("start", fault)]
    if model.runs_elsewhere:
        findings.append(Finding("address", ok=None, detail=f"{running.url}, as set under [local]"))
    else:
        findings.append(Finding("start", ok=True, detail=f"listens at {running.url}"))
    findings.append(await _tried("count", _counted, running, post))
    try:
        async with model.turn() as turn:
            return [*findings, await _tried("answer", _answered, turn.running, post)]
    except Fault as fault:
        return [*findings, _failed("answer", fault)]


def findings_of(seen: Inspection, *, own_weights: bool = False) -> list[Finding]:
    """What the inspection means. Weights that a person chose have no hash to be held against."""
    return [_engine(seen), _weights(seen, own_weights=own_weights), _openmp(seen), _processor(seen)]


def _engine(seen: Inspection) -> Finding:
    if seen.engine:
        return Finding("engine", ok=True, detail=f"xllamacpp {seen.engine}")
    told = TOLD["no_engine" if seen.has_build else "no_build"]
    return Finding("engine", ok=False, detail=f"{told.message} ({seen.platform})", hint=told.hint)


def _weights(seen: Inspection, *, own_weights: bool) -> Finding:
    if not seen.weights:
        return Finding("weights", ok=False, detail=TOLD["no_weights"].message, hint=INSTALL)
    if seen.sha256 == SHA256:
        return Finding("weights", ok=True, detail=f"{seen.weights}, SHA-256 as published")
    detail = f"{seen.weights} has SHA-256 {seen.sha256}"
    if own_weights:
        return Finding("weights", ok=None, detail=detail)
    return Finding("weights", ok=False, detail=detail, hint=TOLD["bad_weights"].hint)


def _openmp(seen: Inspection) -> Finding:
    if seen.openmp_problem:
        return Finding("openmp", ok=False, detail=seen.openmp_problem, hint=LIBGOMP)
    return Finding("openmp", ok=True, detail="can be loaded" if seen.platform.startswith("linux") else "not needed")


def _processor(seen: Inspection) -> Finding:
    if seen.avx2 is None:
        return Finding("processor", ok=None, detail="it is not known whether it has AVX2; the start will show it")
    if seen.avx2:
        return Finding("processor", ok=True, detail=f"has what the engine needs ({seen.platform})")
    return Finding("processor", ok=False, detail=TOLD["no_avx2"].message, hint=ELSEWHERE)


async def _inspected(model: EmbeddedModel) -> Inspection:
    chosen = [model.weights] if model.weights else []
    try:
        process = await asyncio.create_subprocess_exec(
            model.python, "-P", "-m", _INSPECTION, *chosen, env=dict(model.environment), stdout=PIPE, stderr=PIPE
        )
    except OSError as error:
        raise unavailable("no_python", f"{model.python}: {error.strerror}") from error
    said, complained = await process.communicate()
    if process.returncode:
        raise unavailable("no_python", complained.decode(errors="replace").strip().rpartition("\n")[2])
    return msgspec.json.decode(said, type=Inspection)


async def _tried(
    name: str, attempt: Callable[[Running, Post], Awaitable[str]], running: Running, post: Post
) -> Finding:
    try:
        return Finding(name, ok=True, detail=await attempt(running, post))
    except Fault as fault:
        return _failed(name, fault)


async def _counted(running: Running, post: Post) -> str:
    answer = await _asked(f"/v1{counting_of(_DIALECT).path}", running, post)
    return f"{counted(_DIALECT, decode(answer))} tokens"


async def _answered(running: Running, post: Post) -> str:
    body = await _asked("/v1/chat/completions", running, post)
    try:
        text = msgspec.json.decode(body, type=_Answered).choices[0].message.content
    except (msgspec.DecodeError, IndexError) as error:
        raise Fault(Code.UPSTREAM_PROTOCOL, f"its answer cannot be read: {error}") from error
    return f"it says {text!r}"


async def _asked(path: str, running: Running, post: Post) -> bytes:
    headers = (("content-type", "application/json"), ("authorization", f"Bearer {running.key}"))
    status, body = await post(HttpRequest("POST", f"{running.url}{path}", headers, msgspec.json.encode(_QUESTION)))
    if status != 200:
        words = body.decode(errors="replace")[:200]
        raise Fault(Code.UPSTREAM_ERROR, f"it answered with status {status}: {words}", hint="Is it llama.cpp's server?")
    return body


def _failed(name: str, fault: Fault) -> Finding:
    return Finding(name, ok=False, detail=fault.message, hint=fault.hint)


class _Message(msgspec.Struct):
    content: str


class _Choice(msgspec.Struct):
    message: _Message


class _Answered(msgspec.Struct):
    choices: list[_Choice]
