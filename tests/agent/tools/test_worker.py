import asyncio
import json
import subprocess
import sys
from pathlib import Path

from sightline.agent.core.output import text_outcome
from sightline.agent.tools.worker import Bench, FileBroken, FileLoaded, Load, Ran, RunFunction
from tests.agent.tools.processes import wait_for_end

SOURCE = "async def add(a: int, b: int) -> int: return a + b\ndef fail() -> None: raise OSError('full')"


def test_a_bench_loads_and_calls(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    with asyncio.Runner() as runner:
        bench = Bench(tmp_path / "kit_of_the_bench.py", runner)
        assert isinstance(bench.answer(Load("nonsense(")), FileBroken)
        loaded = bench.answer(Load(SOURCE))
        assert isinstance(loaded, FileLoaded)
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
