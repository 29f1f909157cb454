import asyncio
from pathlib import Path

from sightline.agent.tools.worker import FileBroken, FileLoaded, GraderBench, Load, Ran, RunFunction
from sightline.model.parts import Text

SOURCE = """
def plain(case): return case["n"] + 1
async def later(case): return {"score": 0.5}
def raises(case): raise KeyError("x")
LIMIT = 3
"""


def test_any_function_is_called_with_one_argument_and_needs_no_hints(tmp_path: Path) -> None:
    with asyncio.Runner() as runner:
        bench = GraderBench(tmp_path / "g.py", runner)
        loaded = bench.answer(Load(SOURCE))
        assert isinstance(loaded, FileLoaded)
        assert [each.name for each in loaded.definitions] == ["plain", "later", "raises"]
        values = []
        for name in ("plain", "later"):
            ran = bench.answer(RunFunction(name, {"payload": {"n": 1}}))
            assert isinstance(ran, Ran)
            values.append(ran.outcome.structured)
        assert values == [{"value": 2}, {"value": {"score": 0.5}}]
        failed = bench.answer(RunFunction("raises", {"payload": {}}))
        assert isinstance(failed, Ran)
        assert failed.outcome.is_error
        (part,) = failed.outcome.parts
        assert isinstance(part, Text)
        assert "KeyError: 'x' (g.py, line 4, in raises)" in part.text


def test_a_file_that_cannot_be_run_says_where(tmp_path: Path) -> None:
    with asyncio.Runner() as runner:
        broken = GraderBench(tmp_path / "g.py", runner).answer(Load("\n1 / 0\n"))
        assert isinstance(broken, FileBroken)
        assert (broken.message, broken.line) == ("ZeroDivisionError: division by zero", 2)
