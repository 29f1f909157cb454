import hashlib
import inspect
import os
import queue
import sys
import tempfile
from contextlib import AbstractAsyncContextManager
from importlib.metadata import version
from pathlib import Path

import msgspec
import pytest

from sightline.app.evals import HostProcess, introduction, open_host
from sightline.app.machine import process_name
from sightline.catalog.catalog import Catalog
from sightline.evals.core.run_state import CaseDone, EvalBegan, Key, read, write
from sightline.evals.core.target import CommandSpec, TargetSpec
from sightline.evals.service.case_worker import Worker
from sightline.evals.service.cluster import host as host_module
from sightline.evals.service.cluster.host import HomeConnection, Opening
from sightline.evals.service.cluster.host_pool import Elsewhere
from sightline.evals.service.cluster.messages import (
    Begin,
    CaseEnded,
    HostLeft,
    HostReady,
    Introduction,
    Leave,
    RunCase,
    for_home,
    pack_files,
)
from sightline.evals.service.suite_files import SuiteFiles
from sightline.model.parts import ToolCall
from sightline.settings import Settings, Toolset
from tests.cluster_stage import OURS, NearHostPool, said
from tests.eval_stage import ACME, EvalStage, on_stage, suite_of, table
from tests.loop_stage import calls, says
from tests.running_stage import KEY, plays
from tests.upstream import Talk, Upstream

SUITE = """
name: capitals
tests:
  - id: france
    input: What is the capital of France?
    assertions: [{type: contains, value: Paris}]
  - id: spain
    input: What is the capital of Spain?
    assertions:
      - {type: contains, value: Madrid}
      - {type: code-grader, command: [python3, grade.py]}
  - id: filed
    input:
      - role: user
        content: [{type: file, value: data/italy.txt}, {type: text, value: Where is this?}]
    assertions: [{type: contains, value: Rome}]
"""
GRADER = 'import json, sys\njson.load(sys.stdin)\nprint(json.dumps({"score": 0.5, "reasoning": "half"}))\n'
SHOUTS = 'def shout(word: str) -> str:\n    """Shout."""\n    return word.upper()\n'
SHOUT = TargetSpec(name="shout", cli=CommandSpec(command="cat {PROMPT_FILE}; cat data/italy.txt"))


def on_hosts(stage: EvalStage, *, size: int = 2, settings: Settings | None = None) -> tuple[EvalStage, NearHostPool]:
    """The same stage, whose cases are run by hosts with engines of their own."""

    def opening(root: Path) -> Opening:
        def opened(begin: Begin, line: HomeConnection) -> AbstractAsyncContextManager[Worker]:
            return open_host(begin, line, root, {"PATH": os.environ["PATH"], "ACME_KEY": "sk-of-the-cluster"})

        return opened

    host_pool = NearHostPool(opening, stage.root.parent / "hosts", size=size)
    there = Elsewhere(host_pool, stage.stage.hub.record, settings or Settings(), OURS)
    environment = {"PATH": os.environ["PATH"], "ACME_KEY": KEY}
    return EvalStage(stage.stage, stage.root, elsewhere=there, environment=environment), host_pool


def laid(stage: EvalStage) -> None:
    (stage.root / "data").mkdir()
    (stage.root / "data/italy.txt").write_text("Italy")
    (stage.root / "grade.py").write_text(GRADER)


@on_stage
async def test_a_run_on_hosts_ends_as_one_here_and_is_on_record_here(stage: EvalStage, upstream: Upstream) -> None:
    laid(stage)
    here = await stage.run(SUITE, (ACME, SHOUT), run="e_1", cache=False, trials=2)
    far, _ = on_hosts(stage)
    there = await far.run(SUITE, (ACME, SHOUT), run="e_2", cache=False, trials=2)
    assert sorted(table(there)) == sorted(table(here))
    assert {seen.header("authorization") for seen in upstream.seen} == {f"Bearer {KEY}"}
    costs = [sum(each.observation.cost or 0.0 for each in run.results) for run in (here, there)]
    assert costs[0] == costs[1] > 0
    assert far.told[-1].cost == pytest.approx(costs[1])
    store = stage.stage.store
    await store.settle()
    for result in there.results:
        for exchange in result.observation.exchanges:
            assert await store.facts(exchange)
    assert len({each for result in there.results for each in result.observation.exchanges}) == 6


@on_stage
async def test_hosts_put_the_masks_of_home_on_what_they_send(stage: EvalStage, upstream: Upstream) -> None:
    hunks = [{"old": "capital of France", "new": "largest city of France"}]
    mask = {"scope": "all", "kind": "patch", "anchor": {"kind": "user"}, "hunks": hunks}
    stage.stage.engine.relay.holds.set_masks([mask])
    laid(stage)
    far, _ = on_hosts(stage, size=1)
    (result,) = (await far.run(SUITE, (ACME,), cases=("france",), cache=False)).results
    (seen,) = upstream.seen
    assert seen.json()["messages"][-1]["content"] == "What is the largest city of France?"
    assert result.observation.request_sha256 == hashlib.sha256(seen.body).hexdigest()


@on_stage
async def test_answer_cached_by_one_host_is_not_requested_by_another(stage: EvalStage, upstream: Upstream) -> None:
    laid(stage)
    far, _ = on_hosts(stage)
    first = await far.run(SUITE, run="e_1")
    asked = len(upstream.seen)
    second = await far.run(SUITE, run="e_2")
    assert len(upstream.seen) == asked == 3
    assert all(result.cached for result in second.results)
    assert sorted(table(first)) == sorted(table(second))
    assert far.told[-1].cost == 0


@on_stage
async def test_a_host_that_is_lost_in_the_middle_changes_nothing(stage: EvalStage, upstream: Upstream) -> None:
    laid(stage)
    here = await stage.run(SUITE, run="e_1", cache=False)
    far, host_pool = on_hosts(stage)
    model = upstream.script[0]

    async def kills(talk: Talk) -> None:
        upstream.script = [model]
        host_pool.posts[0].lose()
        await model(talk)

    upstream.script = [kills]
    there = await far.run(SUITE, run="e_2", cache=False)
    assert sorted(table(there)) == sorted(table(here))
    assert len(host_pool.posts) == 3


@on_stage
async def test_runs_with_tools_are_logged_here(stage: EvalStage, upstream: Upstream) -> None:
    (stage.root / "tools.py").write_text('def shout(word: str) -> str:\n    """Shout."""\n    return word.upper()\n')

    async def model(talk: Talk) -> None:
        body = upstream.seen[-1].json()
        is_done = any(message["role"] == "tool" for message in body["messages"])
        reply = says("PARIS") if is_done else calls(ToolCall("c1", "shout", '{"word": "Paris"}'))
        await plays(reply, stream=bool(body.get("stream")))(talk)

    upstream.script = [model]
    settings = Settings(tools={"mine": Toolset(python="tools.py", allow=("*",))})
    far, _ = on_hosts(stage, settings=settings, size=1)
    text = "tests:\n  - {id: a, input: Shout Paris, assertions: [{type: contains, value: PARIS}]}\n"
    spec = TargetSpec(name="tools", model="acme/m", toolsets=("mine",))
    ended = await far.run(text, (spec,), run="e_1")
    [result] = ended.results
    assert (result.score.verdict, [tool.result for tool in result.observation.tools]) == ("pass", ["PARIS"])
    kinds = await stage.stage.kinds(result.observation.run)
    assert kinds[0] == "run_began"
    assert "tool_finished" in kinds


def begun(root: Path) -> tuple[bytes, bytes]:
    """The files of a suite with one program, and what a host is told to begin with."""
    root.mkdir()
    (root / "word.txt").write_text("Paris")
    text = "tests:\n  - {id: a, input: hi, assertions: [{type: contains, value: Paris}]}\n"
    spec = TargetSpec(name="program", cli=CommandSpec(command="cat word.txt"))
    began = EvalBegan(suite=suite_of(text, root), targets=(spec,))
    begin = Begin(run="e_1", began=write(began), catalog=Catalog(), settings=Settings(), targets=("program",))
    return pack_files(SuiteFiles(root), began), said(begin)


def all_of(host: HostProcess, last: type) -> list[object]:
    """What it tells, until it has told such a thing."""
    found: list[object] = []
    while not any(isinstance(each, last) for each in found):
        found += for_home(host.listen())
    return found


def test_a_process_of_a_cluster_runs_cases_in_a_thread_of_its_own_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    machine = process_name().partition(":")[0]
    owners = {"killed": f"{machine}:1:0", "alive": process_name(), "elsewhere": "another:1:0"}
    for name, owner in owners.items():
        (temporary / f"sightline-host-{name}").mkdir(parents=True)
        (temporary / f"sightline-host-{name}" / "owner").write_text(owner)
    (temporary / "sightline-host-new").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(host_module, "SILENCE", 0.2)
    key: Key = ("a", "program", 0)
    ends: queue.Queue[int] = queue.Queue()
    host = HostProcess(ends.put)
    assert msgspec.json.decode(host.introduce(), type=Introduction) == introduction()
    parcel, begin = begun(tmp_path / "suite")
    host.unpack(parcel)
    host.tell(begin)
    assert all_of(host, HostReady) == [HostReady()]
    host.tell(said(RunCase(1, key)))
    [ended] = [each for each in all_of(host, CaseEnded) if isinstance(each, CaseEnded)]
    fact = read(ended.done)
    assert isinstance(fact, CaseDone)
    assert fact.result.score.verdict == "pass"
    host.tell(said(Leave()))
    assert HostLeft() in all_of(host, HostLeft)
    left = {path.name.removeprefix("sightline-host-") for path in temporary.iterdir()}
    assert left == {"alive", "elsewhere", "new"}
    assert ends.get() == 0  # nobody listens any more
    host.thread.join()


def test_ray_calls_a_process_by_several_threads_since_none_of_its_methods_is_a_coroutine() -> None:
    assert [name for name, _ in inspect.getmembers(HostProcess, inspect.iscoroutinefunction)] == []


def test_introduction_states_sightline_and_python_version() -> None:
    ours = introduction()
    assert (ours.sightline, ours.python) == (version("sightline"), f"{sys.version_info[0]}.{sys.version_info[1]}")
