import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn, get_args

import msgspec
import pytest

from sightline.errors import Code
from sightline.transport.embedded import causes as weights
from sightline.transport.embedded import child
from sightline.transport.embedded.causes import (
    CAUSE_TEXTS,
    SHA256,
    Cause,
    ChildFailed,
    ChildOrders,
    are_weights,
    cause_of_exit,
    default_threads,
    find_weights,
    has_avx2,
    has_build,
    openmp_problem,
    read_vocabulary,
    sha256_of,
    unavailable,
)
from sightline.transport.embedded.child import MODEL, CannotServeError, Inspection, inspect, load_engine
from sightline.transport.embedded.process import child_environment
from tests.local_model import CHILD, KEY, needs_model, serving


def search_path(folder: Path) -> str:
    """A search path for modules on which this folder comes first."""
    return os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))


def what_it_says(orders: ChildOrders, folder: Path | None = None) -> tuple[int, dict[str, str]]:
    """Run the program to its end; `folder` comes first where modules are looked for."""
    environment = child_environment(os.environ)
    if folder:
        environment["PYTHONPATH"] = search_path(folder)
    line = msgspec.json.encode(orders) + b"\n"
    ran = subprocess.run(CHILD, input=line, capture_output=True, env=environment, check=False)
    return ran.returncode, json.loads(ran.stdout)


def orders() -> ChildOrders:
    return ChildOrders(key=KEY, threads=1, context_window=512)


def install_weights(folder: Path, content: bytes | None) -> None:
    """Make a folder look as if the package of weights were installed in it, with this file or without one."""
    package = folder / f"{weights.PACKAGE.replace('-', '_')}-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {weights.PACKAGE}\nVersion: 1.0\n")
    (package / "RECORD").write_text("mine.gguf,,\n")
    if content is not None:
        (folder / "mine.gguf").write_bytes(content)


@needs_model
def test_model_is_served_as_ordered_and_only_with_the_key() -> None:
    with serving(context_window=512) as model:
        assert model.url.startswith("http://127.0.0.1:")
        models = model.ask("/v1/models")
        assert [(entry["id"], entry["meta"]["n_ctx"]) for entry in models.json()["data"]] == [(MODEL, 512)]
        question = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 4, "temperature": 0}
        assert model.ask("/v1/chat/completions", question).json()["choices"][0]["message"]["content"]
        assert type(model)(model.url, "another-key").ask("/v1/chat/completions", question).status == 401
        # A page of another origin is not let in.
        assert models.headers.get("access-control-allow-origin", "") != "*"
        assert model.ask("/").status in (401, 404)


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
        pytest.param(b"GGUF\x03\x00\x00\x00 and no more", "bad_weights", id="a file that was cut"),
    ],
)
def test_weights_that_cannot_be_used(tmp_path: Path, content: bytes | None, cause: str) -> None:
    install_weights(tmp_path, content)
    code, said = what_it_says(orders(), tmp_path)
    assert (code, said["type"], said["cause"]) == (1, "failed", cause)
    assert bool(said.get("detail")) is (content is not None)


@pytest.mark.parametrize(
    ("is_published", "failed"),
    [
        (False, ChildFailed("bad_weights", "installed.gguf has the wrong SHA-256")),
        (True, ChildFailed("start_failed", "Failed to init server")),
    ],
)
def test_weights_with_which_the_engine_does_not_start_are_compared_with_the_published_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_published: bool, failed: ChildFailed
) -> None:
    cut = tmp_path / "installed.gguf"
    cut.write_bytes(b"GGUF\x03\x00\x00\x00 and no more")
    monkeypatch.setattr(child, "find_weights", lambda: cut)
    monkeypatch.setattr(child, "load_engine", lambda: RefusingEngine("engine"))
    if is_published:
        monkeypatch.setattr(child, "SHA256", sha256_of(cut))
    with pytest.raises(CannotServeError) as caught:
        child.serve(orders())
    assert caught.value.failed == failed


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


@pytest.mark.parametrize("cause", get_args(Cause))
def test_every_cause_says_what_to_do(cause: Cause) -> None:
    fault = unavailable(cause, "as the machine says")
    assert fault.code is Code.LOCAL_UNAVAILABLE
    assert fault.message == f"the embedded model cannot run: {CAUSE_TEXTS[cause].message} (as the machine says)"
    assert fault.hint


def test_without_a_detail_there_are_no_empty_brackets() -> None:
    assert unavailable("no_engine").message == "the embedded model cannot run: its engine is not installed"


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        pytest.param(-4, "no_avx2", id="illegal instruction"),
        pytest.param(0xC000001D, "no_avx2", id="illegal instruction on Windows"),
        pytest.param(-9, "out_of_memory", id="killed"),
        pytest.param(-11, "crashed", id="segmentation fault"),
        pytest.param(1, "crashed", id="an exception"),
        pytest.param(0, "crashed", id="no reason at all"),
    ],
)
def test_an_exit_tells_its_cause(code: int, cause: Cause) -> None:
    assert cause_of_exit(code) == cause


def test_orders_show_no_key() -> None:
    orders = ChildOrders(key="secret-word", threads=1, context_window=512)
    assert "secret-word" not in f"{orders} {orders!r}"
    assert msgspec.json.decode(msgspec.json.encode(orders), type=ChildOrders).key == "secret-word"


@pytest.mark.parametrize(
    ("platform", "soabi", "there_is_one"),
    [
        ("linux-x86_64", "cpython-311-x86_64-linux-gnu", True),
        ("linux-aarch64", "cpython-313-aarch64-linux-gnu", True),
        ("linux-x86_64", "cpython-312-x86_64-linux-musl", False),
        ("linux-armv7l", "cpython-311-arm-linux-gnueabihf", False),
        ("macosx-13.0-arm64", "cpython-311-darwin", True),
        ("win-amd64", "None", True),
        ("win-arm64", "None", False),
        ("win32", "None", False),
    ],
)
def test_which_platforms_have_a_build(platform: str, soabi: str, there_is_one: bool) -> None:
    assert has_build(platform, soabi) is there_is_one


@pytest.mark.parametrize(("available", "used"), [(1, 1), (2, 1), (3, 1), (8, 4)])
def test_half_of_the_cores_compute(available: int, used: int) -> None:
    assert default_threads(available) == used


@pytest.mark.parametrize(
    ("platform", "cpuinfo", "has_it"),
    [
        ("linux-x86_64", "processor\t: 0\nflags\t\t: fpu avx avx2 bmi2\n", True),
        ("linux-x86_64", "processor\t: 0\nflags\t\t: fpu avx\n", False),
        ("linux-x86_64", "processor\t: 0\n", None),
        pytest.param("win-amd64", None, None, id="no processor says anything"),
        pytest.param("linux-aarch64", None, True, id="other processors need none"),
    ],
)
def test_the_processor_says_whether_it_has_avx2(
    tmp_path: Path, platform: str, cpuinfo: str | None, has_it: bool | None
) -> None:
    file = tmp_path / "cpuinfo"
    if cpuinfo is not None:
        file.write_text(cpuinfo)
    assert has_avx2(platform, file) is has_it


@pytest.mark.parametrize(
    ("platform", "library", "named"),
    [
        ("linux-x86_64", "libnobody.so.7", "libnobody.so.7"),
        pytest.param("linux-x86_64", None, "", id="the program itself can be loaded"),
        pytest.param("macosx-13.0-arm64", "libnobody.so.7", "", id="elsewhere the engine brings its own"),
    ],
)
def test_a_missing_library_is_named(platform: str, library: Any, named: str) -> None:
    problem = openmp_problem(platform, library)
    assert bool(problem) is bool(named)
    assert named in problem


@needs_model
def test_the_installed_weights_are_the_published_ones() -> None:
    path = find_weights()
    assert path is not None
    assert are_weights(path)
    assert sha256_of(path) == SHA256


@pytest.mark.parametrize("content", [b"GGUF and so on", None])
def test_a_file_that_the_package_lists_may_be_gone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None
) -> None:
    install_weights(tmp_path, content)
    monkeypatch.syspath_prepend(tmp_path)
    assert find_weights() == (None if content is None else tmp_path / "mine.gguf")


def test_a_file_of_something_else_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "page.gguf"
    file.write_bytes(b"<html>")
    assert not are_weights(file)


@pytest.mark.parametrize("package", ["a-package-that-nobody-wrote", "pytest"])
def test_nothing_is_found_without_the_package_or_weights_in_it(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setattr(weights, "PACKAGE", package)
    assert find_weights() is None


@needs_model
def test_a_machine_that_has_everything() -> None:
    seen = inspect()
    assert seen.has_build
    assert seen.engine
    assert seen.weights.endswith(".gguf")
    assert seen.sha256 == SHA256
    assert seen.openmp_problem == ""
    assert seen.avx2 is not False


def test_a_python_with_nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(child, "ENGINE", "an-engine-that-nobody-wrote")
    install_weights(tmp_path, None)
    monkeypatch.syspath_prepend(tmp_path)
    seen = inspect()
    assert (seen.engine, seen.weights, seen.sha256) == ("", "", "")


def test_the_program_says_what_it_saw(tmp_path: Path) -> None:
    install_weights(tmp_path, b"GGUF")
    said = subprocess.run(
        [*CHILD, "--inspect"], check=True, capture_output=True, env={**os.environ, "PYTHONPATH": search_path(tmp_path)}
    ).stdout
    assert msgspec.json.decode(said, type=Inspection).weights == "mine.gguf"


def head_of(**values: str) -> bytes:
    """The head of a file of weights that says this of itself."""

    def text(value: str) -> bytes:
        return len(value).to_bytes(8, "little") + value.encode()

    said = [text(f"tokenizer.ggml.{name}") + (8).to_bytes(4, "little") + text(value) for name, value in values.items()]
    return b"GGUF" + (3).to_bytes(4, "little") + bytes(8) + len(said).to_bytes(8, "little") + b"".join(said)


@pytest.mark.parametrize(
    "data",
    [b"", b"no weights at all", head_of(pre="smollm")[:-3], head_of(pre="llama-bpe"), head_of(pre="x") + b"\xff"],
)
def test_weights_without_a_vocabulary_that_is_known_have_none(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "mine.gguf").write_bytes(data)
    assert read_vocabulary(tmp_path / "mine.gguf") == b""
    assert read_vocabulary(tmp_path / "none.gguf") == b""
