import asyncio
from pathlib import Path

import pytest

from sightline.errors import Fault
from sightline.evals.service.processes import PythonGraders

FILE = """
import os
from dataclasses import dataclass
print("words for people")
calls = 0

@dataclass
class Verdict:
    score: float
    reason: str

def count(case):
    global calls
    calls += 1
    return {"score": 1, "details": {"calls": calls, "pid": os.getpid(), "got": case["x"]}}

async def verdict(case):
    return Verdict(0.5, "half")

def true(case): return True
def wrong(case): return object()
def slow(case):
    import time
    time.sleep(600)
def ends(case): os._exit(3)
"""


def test_functions_are_called_in_a_process_that_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "g.py"
    file.write_text(FILE)

    async def story() -> None:
        graders = PythonGraders({"PATH": "/usr/bin:/bin"})
        try:
            first = await graders.call(file, "count", {"x": [1]}, 60)
            second = await graders.call(file, "count", {"x": None}, 60)
            assert isinstance(first, dict)
            assert isinstance(second, dict)
            assert (first["details"]["calls"], second["details"]["calls"]) == (1, 2)  # type: ignore[call-overload,index]
            assert first["details"]["got"] == [1]  # type: ignore[call-overload,index]
            assert await graders.call(file, "verdict", {}, 60) == {"score": 0.5, "reason": "half"}
            assert await graders.call(file, "true", {}, 60) is True
            for function, words in (
                ("wrong", "TypeError"),
                ("ends", "its process is gone"),
                ("none", "no function none"),
            ):
                with pytest.raises(Fault, match=words):
                    await graders.call(file, function, {}, 60)
            with pytest.raises(Fault, match=r"took longer than 0\.3 s"):
                await graders.call(file, "slow", {}, 0.3)
        finally:
            await graders.close()

    asyncio.run(story())


def test_a_file_that_cannot_be_loaded_says_where(tmp_path: Path) -> None:
    file = tmp_path / "g.py"
    file.write_text("x = 1\nimport nothing_like_it\n")

    async def story() -> None:
        graders = PythonGraders({"PATH": "/usr/bin:/bin"})
        with pytest.raises(Fault, match=r"g\.py:2: ModuleNotFoundError"):
            await graders.call(file, "f", {}, 60)
        await graders.close()

    asyncio.run(story())
