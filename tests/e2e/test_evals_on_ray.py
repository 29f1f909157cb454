"""Suites on a real Ray cluster of several processes, through the program: the same results, limits held across all of
them, everything on record at home, and neither a lost host nor a lost driver changes the table."""

import asyncio
import importlib.util
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sightline.evals.core.run_state import CaseDone, read
from sightline.store.sqlite import open_store
from tests.eval_stage import words_in
from tests.loop_stage import says
from tests.ray_server import RayCluster, ray_cluster
from tests.running_stage import plays
from tests.server_process import PROGRAM
from tests.store.traffic import prices
from tests.upstream import Talk, Upstream

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed for this Python"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are known by /proc"),
]

KEY = "sk-planted-on-ray-5551234"
ADDRESS = "?hosts=2"
CASES = 28
AT_ONCE = 24
ALLOWED = 5
GATE = 20
"""Requests that are under way at once before any is answered: more than one host is given, so both must be there."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster(2) as running:
        yield running


def suite(*, with_all: bool) -> str:
    lines = ["name: numbers", "execution: {targets: [acme]}", "tests:"]
    for number in range(CASES):
        graders = [f"{{type: contains, value: know {number}}}"]
        if with_all and number % 9 == 4:
            graders.append("{type: code-grader, command: [python3, grade.py]}")
        lines += [f"  - id: c{number}", f"    assertions: [{', '.join(graders)}]"]
        if with_all and number % 7 == 3:
            parts = f"{{type: file, value: data/hint.txt}}, {{type: text, value: Say number {number}.}}"
            lines += ["    input:", f"      - {{role: user, content: [{parts}]}}"]
        else:
            lines.append(f"    input: Say number {number}.")
    if with_all:
        for name, target, count in (("p", "program", 3), ("l", "limited", ALLOWED + 4)):
            for number in range(count):
                lines += [
                    f"  - id: {name}{number}",
                    f"    input: Limit {number}.",
                    f"    execution: {{targets: [{target}]}}",
                ]
                lines.append("    assertions: [{type: contains, value: imit}]")
    return "\n".join(lines) + "\n"


def laid(folder: Path, upstream: Upstream, *, with_all: bool = False) -> Path:
    """A folder with a suite, all that it needs, and a configuration."""
    evals = folder / "evals"
    (evals / "data").mkdir(parents=True)
    (evals / "s.eval.yaml").write_text(suite(with_all=with_all))
    (evals / "data/hint.txt").write_text("A hint.")
    (evals / "grade.py").write_text('import json\nprint(json.dumps({"score": 0.5, "reasoning": "half"}))\n')
    (evals / "echo.py").write_text('import sys\nprint("from the limited hint", open("evals/data/hint.txt").read())\n')
    (folder / ".git").mkdir()
    (folder / "sightline.toml").write_text(
        f'[providers.acme]\ndialect = "openai-chat"\nbase_url = "{upstream.url}"\nkey_env = "ACME_KEY"\n'
        f'[models.limited]\nproviders = ["acme"]\nrpd = {ALLOWED}\n'
        f'[evals.targets.acme]\nmodel = "acme/m"\nconcurrency = {AT_ONCE}\n'
        '[evals.targets.limited]\nmodel = "acme/limited"\nconcurrency = 3\n'
        f'[evals.targets.program]\ncli = {{ words = ["{sys.executable}", "evals/echo.py"] }}\nconcurrency = 1\n'
    )
    return folder


class Model:
    """Knows most numbers. No answer comes before `waits_for` requests are here; then `opened` is called. Answers from
    number `holds` on do not come before they are let go: `is_late` is set by the first of them."""

    def __init__(
        self, upstream: Upstream, waits_for: int = 0, opened: Callable[[], None] = lambda: None, holds: int = 1000
    ) -> None:
        self.asked: Counter[str] = Counter()
        self.is_late = asyncio.Event()
        self.let_go = asyncio.Event()
        self._upstream = upstream
        self._waits_for = waits_for
        self._opened = opened
        self._holds = holds
        self._gate = asyncio.Event()
        upstream.script = [self.play]

    @property
    def count(self) -> int:
        return sum(times for words, times in self.asked.items() if words != "limited")

    async def play(self, talk: Talk) -> None:
        body = self._upstream.seen[-1].json()
        words = words_in(body).rpartition("Say ")[2]
        self.asked["limited" if "Limit" in words else words] += 1
        number = self.count
        if "Limit" not in words and self._waits_for:
            if number == self._waits_for:
                self._opened()
                self._gate.set()
            await self._gate.wait()
        if number >= self._holds:
            self.is_late.set()
            await self.let_go.wait()
        known = int(words.split()[1].rstrip(".")) % 3
        text = (
            "the limit" if "Limit" in words else f"I know {words.split()[1].rstrip('.')}" if known else "I do not know."
        )
        await plays(says(text), stream=bool(body.get("stream")))(talk)


async def started(folder: Path, *words: str) -> asyncio.subprocess.Process:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SIGHTLINE_", "RAY_"))}
    environment = kept | {"SIGHTLINE_DATA": str(folder / "data"), "ACME_KEY": KEY}
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *PROGRAM, *words, cwd=folder, env=environment, stdout=pipe, stderr=pipe, stdin=asyncio.subprocess.DEVNULL
    )


async def sightline(folder: Path, *words: str) -> tuple[int, str, str]:
    process = await started(folder, *words)
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def evaluated(folder: Path, *words: str) -> list[tuple[Any, ...]]:
    """The table of a run, as far as it does not depend on time or on which case came first."""
    code, out, err = await sightline(folder, "eval", "run", *words, "--no-cache", "--jsonl", "rows.jsonl")
    assert (code, err) == (1, ""), out + err
    return rows(folder)


def rows(folder: Path) -> list[tuple[Any, ...]]:
    found = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    return sorted((row["case"], row["target"], row["trial"], row["verdict"], row["score"]) for row in found)


def only(table: list[tuple[Any, ...]], *targets: str) -> list[tuple[Any, ...]]:
    return [row for row in table if row[1] in targets]


def holding(folder: Path, words: str) -> list[str]:
    """The files below a folder that hold these words."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return [str(path) for path in found if words.encode() in path.read_bytes()]


async def test_a_cluster_gives_the_same_table_within_the_same_limits_and_tells_home_everything(
    cluster: RayCluster, tmp_path: Path
) -> None:
    talking: set[int] = set()
    async with Upstream() as upstream:
        here = laid(tmp_path / "here", upstream, with_all=True)
        Model(upstream)
        local = await evaluated(here, "evals/s.eval.yaml")
        there = laid(tmp_path / "there", upstream, with_all=True)
        model = Model(upstream, GATE, lambda: talking.update(cluster.talking(int(upstream.url.rpartition(":")[2]))))
        far = await evaluated(there, "evals/s.eval.yaml", "--workers", cluster.address + ADDRESS)
        assert only(far, "acme", "program") == only(local, "acme", "program")
        assert len(only(far, "acme")) == CASES
        verdicts = [Counter(row[3] for row in only(table, "limited")) for table in (local, far)]
        assert verdicts[0] == verdicts[1] == {"pass": ALLOWED, "not_graded": 4}
        assert model.asked["limited"] == ALLOWED
        await recorded(there)
    assert len(talking) == 2, "both hosts ask the model"
    for folder in (cluster.folder, tmp_path):
        assert holding(folder, KEY) == []


async def recorded(folder: Path) -> None:
    """Every exchange of the run is here."""
    found = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    (first, *_) = [row["result"]["observation"]["exchanges"] for row in found if row["case"] == "c1"]
    code, out, err = await sightline(folder, "show", first[0])
    assert (code, err) == (0, "")
    assert "I know 1" in out
    code, out, _ = await sightline(folder, "traffic", "--limit", "100", "--json")
    names = {json.loads(line)["id"] for line in out.splitlines()}
    answered = [row["result"]["observation"] for row in found if row["target"] != "program" and not row["error"]]
    assert len(answered) == CASES + ALLOWED
    assert {each for told in answered for each in told["exchanges"]} == names


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, ...]]:
    """The table without a cluster."""

    async def story() -> list[tuple[Any, ...]]:
        async with Upstream() as upstream:
            Model(upstream)
            return await evaluated(laid(tmp_path_factory.mktemp("local") / "here", upstream), "evals/s.eval.yaml")

    return asyncio.run(story())


async def test_a_host_that_is_killed_in_the_middle_changes_nothing(
    cluster: RayCluster, local: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    killed: list[int] = []
    async with Upstream() as upstream:
        there = laid(tmp_path / "there", upstream)

        def kill() -> None:
            killed.append(min(cluster.talking(int(upstream.url.rpartition(":")[2]))))
            os.kill(killed[0], signal.SIGKILL)

        model = Model(upstream, GATE, kill)
        far = await evaluated(there, "evals/s.eval.yaml", "--workers", cluster.address + ADDRESS)
        assert far == local
        again = model.count - CASES
        assert 0 < again < CASES, "what the host was asked is asked again, and nothing else"
    assert killed


async def test_run_with_a_killed_driver_can_be_resumed_elsewhere(
    cluster: RayCluster, local: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    async with Upstream() as upstream:
        there = laid(tmp_path / "there", upstream)
        model = Model(upstream, GATE, holds=AT_ONCE + 2)
        words = ("eval", "run", "evals/s.eval.yaml", "--no-cache", "--workers", cluster.address + ADDRESS)
        process, loop = await started(there, *words), asyncio.get_running_loop()
        late, ended = loop.create_task(model.is_late.wait()), loop.create_task(process.communicate())
        await asyncio.wait({late, ended}, return_when=asyncio.FIRST_COMPLETED)
        assert not ended.done(), ended.result()
        process.kill()
        await ended
        model.let_go.set()
        run, done = await written(there)
        assert 0 < len(done) < CASES
        resumed = Model(upstream)
        assert await evaluated(there, "--resume", run) == local
        assert set(resumed.asked) == {f"number {number}." for number in range(CASES)} - done


async def written(folder: Path) -> tuple[str, set[str]]:
    """The run that is on record, and what was asked in its cases that have a result."""
    store = await open_store(folder / "data", prices=prices, now=time.time)
    try:
        [log] = await store.logbook.logs("eval:e_")
        facts = [read(line.data) for line in await store.logbook.lines(log.name)]
    finally:
        await store.close()
    done = {f"number {fact.result.case[1:]}." for fact in facts if isinstance(fact, CaseDone)}
    return log.name.partition(":")[2], done
