import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.agent.core.tool import text_outcome
from sightline.agent.tools import python_file as module
from sightline.agent.tools.python_file import WorkerClient
from sightline.agent.tools.worker import (
    Answer,
    FileBroken,
    FileLoaded,
    FunctionHost,
    GraderHost,
    Load,
    Ran,
    RunFunction,
    Tool,
    execute_module,
    tools_in,
)
from tests.agent.tools.processes import environment, wait_for_end


@pytest.fixture(autouse=True)
def _same_modules_afterwards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def load(file: Path, source: str) -> dict[str, Tool] | FileBroken:
    module = execute_module(file, source)
    return module if isinstance(module, FileBroken) else tools_in(module)


def test_functions_that_a_file_only_imports_are_no_tools_of_it(tmp_path: Path) -> None:
    source = "from json import dumps\nfrom os.path import *\nclass C: ...\nvalue = 3\ndef f(x: int) -> int: return x"
    tools = load(tmp_path / "kit.py", source)
    assert list(tools) == ["f"]
    assert tools["f"].function(x=4) == 4


def test_a_decorated_function_is_one_if_it_kept_its_name(tmp_path: Path) -> None:
    source = """
from functools import wraps
def _twice(f):
    @wraps(f)
    def inner(*args, **kw): return 2 * f(*args, **kw)
    return inner
@_twice
def f(x: int) -> int:
    "Double."
    return x
"""
    tools = load(tmp_path / "kit.py", source)
    assert tools["f"].function(x=4) == 8
    assert tools["f"].definition.description == "Double."


@pytest.mark.parametrize("name", ["json.py", "has-dash.py", "sys.py"])
def test_a_file_that_is_named_like_a_module_replaces_none(tmp_path: Path, name: str) -> None:
    import json

    assert isinstance(load(tmp_path / name, "def f(): ..."), dict)
    assert sys.modules["json"] is json


def test_a_file_may_list_its_tools_and_mark_those_that_run_beside_others(tmp_path: Path) -> None:
    source = "def one(): ...\ndef two(): ...\ndef three(): ...\nTOOLS = [two, one]\nPARALLEL = [one]"
    tools = load(tmp_path / "kit.py", source)
    assert {name: tool.definition.is_parallel for name, tool in tools.items()} == {"two": False, "one": True}


@pytest.mark.parametrize(
    ("source", "line", "words", "hint"),
    [
        ("def f(:\n  pass", 1, "SyntaxError: invalid syntax", "by itself"),
        ("\n\n1 / 0", 3, "ZeroDivisionError: division by zero", "by itself"),
        ("import not_here_at_all", 1, "ModuleNotFoundError: No module named", "Install it"),
        ("def f():\n  g()\n\nf()", 2, "NameError: name 'g' is not defined", "by itself"),
        ("raise SystemExit(3)", 1, "SystemExit: 3", "by itself"),
        ("x = 1", 0, "it has no public function", "Write a function"),
        ("\ndef f(*names): ...", 2, "f cannot be a tool: its parameter 'names' cannot be given by name", "by name"),
        ("import re\n\ndef f(x: re.Pattern): ...", 3, "f cannot be a tool", "Use types that JSON has"),
        ("TOOLS = ['f']\ndef f(): ...", 0, "TOOLS is no list of functions", "without quotes"),
        ("def f(): ...\nTOOLS = [f, f]", 1, "two tools are named 'f'", "Rename one"),
    ],
)
def test_a_file_that_cannot_be_used_says_where(tmp_path: Path, source: str, line: int, words: str, hint: str) -> None:
    broken = load(tmp_path / "kit.py", source)
    assert isinstance(broken, FileBroken)
    assert (broken.line, broken.message[: len(words)]) == (line, words)
    assert hint in broken.hint


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise ValueError('no such city')", "ValueError: no such city (kit.py, line 3, in go)"),
        ("import json; json.loads('{')", "JSONDecodeError: Expecting property name enclosed in double quotes"),
        ("raise SystemExit", "SystemExit: it gave no reason (kit.py, line 3, in go)"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt: it gave no reason"),
        ("return object()", "TypeError: the tool returned a value that JSON cannot say: object"),
        ("return b'PK\\x03\\x04'", "TypeError: the tool returned 4 bytes of application/zip, which no model can read"),
        ("return go()", "RecursionError"),
    ],
)
def test_what_a_tool_raises_is_sent_to_the_model(tmp_path: Path, body: str, words: str) -> None:
    with asyncio.Runner() as runner:
        bench = FunctionHost(tmp_path / "kit.py", runner)
        bench.answer(Load(f"\ndef go():\n    {body}\n"))
        outcome = bench.answer(RunFunction("go", {})).outcome
    (part,) = outcome.parts
    assert outcome.is_error
    assert part.text.startswith(words)
    assert str(tmp_path) not in part.text
    assert sys.prefix not in part.text


SOURCE = "async def add(a: int, b: int) -> int: return a + b\ndef fail() -> None: raise OSError('full')"


def test_a_bench_loads_and_calls(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    with asyncio.Runner() as runner:
        bench = FunctionHost(tmp_path / "kit_of_the_bench.py", runner)
        assert isinstance(bench.answer(Load("nonsense(")), FileBroken)
        loaded = bench.answer(Load(SOURCE))
        assert [each.name for each in loaded.definitions] == ["add", "fail"]
        assert bench.answer(RunFunction("add", {"a": 1, "b": 2})) == Ran(text_outcome("3"))
        place = "(kit_of_the_bench.py, line 2, in fail)"
        assert bench.answer(RunFunction("fail", {})) == Ran(text_outcome(f"OSError: full {place}", is_error=True))


def test_the_program_speaks_json_lines_and_ends_with_its_input_even_in_the_middle_of_a_call(tmp_path: Path) -> None:
    source = (
        "import subprocess\ndef hang():\n  p = subprocess.Popen(['sleep', '600']); print(p.pid, flush=True); p.wait()"
    )
    command = [sys.executable, "-P", "-m", "sightline.agent.tools.worker", "tools", str(tmp_path / "kit.py")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True) as worker:
        assert worker.stdin
        assert worker.stdout
        assert worker.stderr
        worker.stdin.write(json.dumps({"type": "load", "source": source}).encode() + b"\n")
        worker.stdin.flush()
        assert json.loads(worker.stdout.readline())["type"] == "loaded"
        worker.stdin.write(b'{"type":"run","name":"hang","arguments":{}}\n')
        worker.stdin.flush()
        sleeper = int(worker.stderr.readline())
        worker.stdin.close()
        assert worker.wait() < 0
        wait_for_end([sleeper])


GRADER_WORKER_SOURCE = """
def plain(case): return case["n"] + 1
async def later(case): return {"score": 0.5}
def raises(case): raise KeyError("x")
LIMIT = 3
"""


def test_any_function_is_called_with_one_argument_and_needs_no_hints(tmp_path: Path) -> None:
    with asyncio.Runner() as runner:
        bench = GraderHost(tmp_path / "g.py", runner)
        loaded = bench.answer(Load(GRADER_WORKER_SOURCE))
        assert [each.name for each in loaded.definitions] == ["plain", "later", "raises"]
        values = []
        for name in ("plain", "later"):
            ran = bench.answer(RunFunction(name, {"payload": {"n": 1}}))
            values.append(ran.outcome.structured)
        assert values == [{"value": 2}, {"value": {"score": 0.5}}]
        failed = bench.answer(RunFunction("raises", {"payload": {}}))
        assert failed.outcome.is_error
        (part,) = failed.outcome.parts
        assert "KeyError: 'x' (g.py, line 4, in raises)" in part.text


def asked(folder: Path, source: str, name: str) -> tuple[Answer | None, WorkerClient]:
    async def story() -> tuple[Answer | None, WorkerClient]:
        worker = WorkerClient()
        assert not worker.is_alive
        await worker.start(folder / "kit.py", folder=folder, environment=environment())
        try:
            assert isinstance(await worker.ask(Load(source)), FileLoaded)
            return await worker.ask(RunFunction(name, {})), worker
        finally:
            await worker.end()

    return asyncio.run(story())


def test_an_end_is_no_answer(tmp_path: Path) -> None:
    answer, worker = asked(tmp_path, "import os, signal\ndef f(): os.kill(os.getpid(), signal.SIGSEGV)", "f")
    assert answer is None
    assert worker.end_in_words == "signal 11"
    assert not worker.is_alive


FOUND = """
import os, stat
def f():
    for fd in range(3, 20):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.write(fd, {0})
        except OSError:
            pass
    return 1
"""


def test_foreign_line_in_the_worker_pipe_is_rejected(tmp_path: Path) -> None:
    assert asked(tmp_path, FOUND.format(r"b'x\n'"), "f")[0] == FileBroken("what it answered is not understood")


def test_an_answer_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_ANSWER", 5000)
    assert asked(tmp_path, FOUND.format("b'x' * 6000"), "f")[0] == FileBroken("its answer is too long")


def test_before_its_start_there_is_nothing_to_end() -> None:
    worker = WorkerClient()
    asyncio.run(worker.end())
    assert worker.end_in_words == "it was ended"
