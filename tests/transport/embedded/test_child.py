import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import msgspec
import pytest

from sightline.transport.embedded import child
from sightline.transport.embedded.child import MODEL, CannotServeError, load_engine
from sightline.transport.embedded.messages import ChildFailed, ChildOrders
from sightline.transport.embedded.process import child_environment
from tests.local_model import CHILD, KEY, needs_model, serving


def what_it_says(orders: ChildOrders, folder: Path | None = None) -> tuple[int, dict[str, str]]:
    """Run the program to its end; `folder` comes first where modules are looked for."""
    environment = child_environment(os.environ)
    if folder:
        environment["PYTHONPATH"] = str(folder)
    line = msgspec.json.encode(orders) + b"\n"
    ran = subprocess.run(CHILD, input=line, capture_output=True, env=environment, check=False)
    return ran.returncode, json.loads(ran.stdout)


def orders(weights: str = "") -> ChildOrders:
    return ChildOrders(key=KEY, threads=1, context_window=512, weights=weights)


@needs_model
def test_it_serves_its_model_to_whoever_has_the_key() -> None:
    with serving() as model:
        assert model.url.startswith("http://127.0.0.1:")
        assert [entry["id"] for entry in model.ask("/v1/models").json()["data"]] == [MODEL]
        question = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 4, "temperature": 0}
        assert model.ask("/v1/chat/completions", question).json()["choices"][0]["message"]["content"]
        assert type(model)(model.url, "another-key").ask("/v1/chat/completions", question).status == 401


@needs_model
def test_a_page_of_another_origin_is_not_let_in() -> None:
    with serving() as model:
        assert model.ask("/v1/models").headers.get("access-control-allow-origin", "") != "*"
        assert model.ask("/").status in (401, 404)


@needs_model
def test_its_window_is_what_was_ordered() -> None:
    with serving(context_window=512) as model:
        assert model.ask("/v1/models").json()["data"][0]["meta"]["n_ctx"] == 512


@needs_model
def test_it_ends_when_its_input_does() -> None:
    code, said = what_it_says(orders())
    assert (code, said["type"]) == (0, "started")


@needs_model
@pytest.mark.parametrize(
    ("content", "cause"),
    [
        pytest.param(None, "no_weights", id="no file"),
        pytest.param(b"<html>moved</html>", "bad_weights", id="another file"),
        pytest.param(b"GGUF\x03\x00\x00\x00 and no more", "start_failed", id="a file that was cut"),
    ],
)
def test_weights_that_cannot_be_used(tmp_path: Path, content: bytes | None, cause: str) -> None:
    file = tmp_path / "mine.gguf"
    if content is not None:
        file.write_bytes(content)
    code, said = what_it_says(orders(str(file)))
    assert (code, said["type"], said["cause"]) == (1, "failed", cause)
    assert said["detail"]


@needs_model
def test_installed_weights_that_were_damaged_are_told_by_their_hash(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cut = tmp_path / "installed.gguf"
    cut.write_bytes(b"GGUF\x03\x00\x00\x00 and no more")
    monkeypatch.setattr(child, "find_weights", lambda given: cut)
    monkeypatch.setattr(child, "load_engine", lambda: RefusingEngine("engine"))
    with pytest.raises(CannotServeError) as caught:
        child.serve(orders())
    assert caught.value.failed == ChildFailed("bad_weights", "installed.gguf has another SHA-256 than it should")


class RefusingEngine(ModuleType):
    """An engine whose server never starts."""

    class CommonParams:
        class _Table:
            pass

        model, cpuparams, cpuparams_batch = _Table(), _Table(), _Table()

    @staticmethod
    def Server(settings: object) -> NoReturn:  # noqa: N802  # the engine's own name
        raise RuntimeError("Failed to init server")


@pytest.mark.parametrize(
    ("module", "cause"),
    [
        pytest.param(
            "raise ImportError('libgomp.so.1: cannot open shared object file: No such file or directory')",
            "libgomp",
            id="OpenMP is missing",
        ),
        pytest.param("raise ImportError('DLL load failed')", "engine_broken", id="another library is missing"),
        pytest.param("import a_module_that_nobody_wrote", "engine_broken", id="a part of it is missing"),
    ],
)
def test_an_engine_that_cannot_be_loaded(tmp_path: Path, module: str, cause: str) -> None:
    (tmp_path / "xllamacpp.py").write_text(module)
    code, said = what_it_says(orders(), tmp_path)
    assert (code, said["type"], said["cause"]) == (1, "failed", cause)
    assert said["detail"]


@pytest.mark.parametrize(
    ("platform", "cause"), [("linux-x86_64", "no_engine"), ("win-arm64", "no_build"), ("linux-riscv64", "no_build")]
)
def test_an_engine_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, platform: str, cause: str) -> None:
    monkeypatch.setattr(child, "ENGINE", "an_engine_that_nobody_wrote")
    monkeypatch.setattr(child.sysconfig, "get_platform", lambda: platform)
    with pytest.raises(CannotServeError) as caught:
        load_engine()
    assert caught.value.failed == ChildFailed(cause, platform)  # type: ignore[arg-type]


def test_what_an_engine_prints_is_not_taken_for_the_answer(tmp_path: Path) -> None:
    (tmp_path / "xllamacpp.py").write_text("print('welcome', flush=True)\nraise ImportError('and farewell')")
    assert what_it_says(orders(), tmp_path)[1]["detail"] == "and farewell"


def test_the_engine_is_loaded_in_the_child_only() -> None:
    loaded = "import sightline.transport.embedded.diagnosis, sys; sys.exit('xllamacpp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loaded], check=False).returncode == 0
