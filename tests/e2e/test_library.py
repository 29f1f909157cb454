"""The library's front door: what `import sightline` gives, and what it does not load."""

import json
import os
import re
import runpy
import subprocess
import sys
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import pytest

import sightline
from sightline.model.parts import ToolCall
from tests.app.test_gateway_app import listening, post
from tests.background import upstream_in_background
from tests.loop_stage import calls, says
from tests.running_stage import plays
from tests.upstream import Play, Seen

ROOT = Path(__file__).parents[2]


def test_every_exported_name_is_there() -> None:
    for name in sightline.__all__:
        assert getattr(sightline, name) is not None


def test_the_package_is_typed_and_lists_its_names() -> None:
    assert (files("sightline") / "py.typed").is_file()
    assert set(sightline.__all__) <= set(dir(sightline))
    assert not [name for name in dir(sightline) if name.startswith("_") and not name.startswith("__")]
    assert sightline.__version__ == version("sightline")


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = sightline.nonsense


def test_help_loads_neither_codecs_nor_dialects() -> None:
    """Help must come at once, so nothing heavy may be imported for it."""
    program = "import sys; from sightline.cli import main; main(['--help'])"
    report = (
        "import atexit, json, sys; atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))\n"
    )
    done = subprocess.run([sys.executable, "-c", report + program], capture_output=True, check=True)
    loaded = json.loads(done.stderr.splitlines()[-1])
    assert "argparse" in loaded
    heavy = [name for name in loaded if name.startswith(("msgspec", "sightline.model", "sightline.wire"))]
    assert not heavy


def asked(program: str, tmp_path: Path, *rounds: Play) -> tuple["subprocess.CompletedProcess[str]", list[Seen]]:
    """A program of somebody's own, with a provider that plays these rounds."""
    with upstream_in_background() as upstream:
        upstream.script = list(rounds)
        (tmp_path / "sightline.toml").write_text(
            f'[ask]\nmodel = "acme/m"\n[providers.acme]\nbase_url = "{upstream.url}/v1"\n'
        )
        environment = {**os.environ, "SIGHTLINE_DATA": str(tmp_path / "data")}
        done = subprocess.run(
            [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=False, env=environment
        )
        return done, upstream.seen


def test_the_example_asks_with_a_function(tmp_path: Path) -> None:
    call = ToolCall("c", "days_between", '{"first": "2026-02-01", "last": "2026-03-01"}')
    example = ROOT / "examples" / "library.py"
    done, seen = asked(str(example), tmp_path, plays(calls(call)), plays(says("There are 28.")))
    assert (done.returncode, done.stdout) == (0, "There are 28.\n"), done.stderr
    assert "answered, 2 rounds, 20 in" in done.stderr
    assert seen[1].json()["messages"][-1]["content"] == "28"


def example(name: str, folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """An example that needs no provider, away from any configuration."""
    environment = {**os.environ, "SIGHTLINE_DATA": str(folder / "data"), "XDG_CONFIG_HOME": str(folder)}
    command = [sys.executable, *arguments, str(ROOT / "examples" / name)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("translate.py", r'\{"model":"gpt-5\.2","system":"You help a warehouse team\..*\}\n'),
        ("edit.py", r"Answer in one word\.\n1\d\d\d bytes before, 1\d\d\d after\n"),
        ("count.py", r"\d+ tokens, between \d+ and \d+ \(.+\)\n"),
        ("evaluate.py", r"refund: pass\n(?:[\w-]+: pass\n)+"),
    ],
)
def test_an_example_without_a_provider_prints_its_result(name: str, lines: str, tmp_path: Path) -> None:
    done = example(name, tmp_path)
    assert (done.returncode, bool(re.fullmatch(lines, done.stdout))) == (0, True), done.stdout + done.stderr


def test_the_example_asks_and_reads_the_record(tmp_path: Path) -> None:
    done, _ = asked(str(ROOT / "examples" / "ask.py"), tmp_path, plays(says("Good day.")))
    assert (done.returncode, done.stdout) == (0, "Good day.\n"), done.stderr
    assert re.match(r"x_\w+: m, \d+ tokens in, cost", done.stderr), done.stderr


def test_the_example_s_tests_pass(tmp_path: Path) -> None:
    done = example("test_my_program.py", tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".")
    assert (done.returncode, "2 passed, 1 skipped" in done.stdout) == (0, True), done.stdout


def test_the_example_s_application_answers_beside_its_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with upstream_in_background() as upstream:
        upstream.script = [plays(says("Good day."), stream=False)]
        (tmp_path / "sightline.toml").write_text(
            f'[providers.acme]\nbase_url = "{upstream.url}/v1"\n[[routes]]\nprovider = "acme"\n'
        )
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("SIGHTLINE_DATA", str(tmp_path / "data"))
        with listening(runpy.run_path(str(ROOT / "examples" / "gateway_app.py"))["app"]) as url:
            question = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
            status, told = post(f"{url}/llm/v1/chat/completions", question)
        assert (status, b"Good day." in told) == (200, True)


def test_the_guide_s_programs_work(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "guide" / "library.md").read_text()
    first, careful, *_ = re.findall(r"^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    assert len(first.strip().splitlines()) <= 10
    program = tmp_path / "program.py"
    program.write_text(first)
    add = ToolCall("c", "add", '{"a": 2, "b": 3}')
    done, seen = asked(str(program), tmp_path, plays(calls(add)), plays(says("5")))
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "5"), done.stderr
    judged = (
        first.replace('approve="yes"', "approve=careful").replace("add(", "multiply(").replace("[add]", "[multiply]")
    )
    program.write_text(careful + judged)
    multiply = ToolCall("c", "multiply", '{"a": 2, "b": 3}')
    done, seen = asked(str(program), tmp_path, plays(calls(multiply)), plays(says("No.")))
    assert done.returncode == 0, done.stderr
    assert "Only sums, please." in seen[1].json()["messages"][-1]["content"]


def test_importing_the_package_loads_no_machinery() -> None:
    program = "import sys, sightline; print(*[name for name in sys.modules if name.startswith('sightline.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == ""
