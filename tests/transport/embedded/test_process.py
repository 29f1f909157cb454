import asyncio
import gc
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sightline.errors import Code, Fault
from sightline.transport.embedded.process import DEATHS_IN_A_ROW, EmbeddedModel, Running, child_environment
from tests.local_model import Served, needs_model
from tests.transport.embedded.stand_in import STARTED, StandIn, until_dead

QUESTION = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 4, "temperature": 0}
LIVES = f"read line; {STARTED}; read line; exit 0"


def keys() -> Callable[[], str]:
    numbers = iter(range(1, 100))
    return lambda: f"key-{next(numbers)}"


@asynccontextmanager
async def model_with(
    python: str = sys.executable, *, context_window: int = 2048, start_timeout: float = 60.0, url: str = ""
) -> AsyncIterator[EmbeddedModel]:
    model = EmbeddedModel(
        python=python,
        environment=os.environ,
        threads=1,
        context_window=context_window,
        make_key=keys(),
        start_timeout=start_timeout,
        url=url,
    )
    try:
        yield model
    finally:
        await model.close()
        gc.collect()


@asynccontextmanager
async def stand_in_model(
    folder: Path, script: str = LIVES, **settings: Any
) -> AsyncIterator[tuple[EmbeddedModel, StandIn]]:
    """A model whose Python is this script."""
    python = StandIn(folder, script)
    async with model_with(str(python.path), **settings) as model:
        yield model, python


async def refused(model: EmbeddedModel) -> Fault:
    with pytest.raises(Fault) as caught:
        await model.running()
    return caught.value


async def ask(running: Running, path: str = "/v1/chat/completions") -> int:
    served = Served(running.url, running.key)
    return (await asyncio.to_thread(served.ask, path, QUESTION)).status


async def gone(pid: int) -> None:
    """Wait until a process has ended, whoever's child it is."""
    descriptor = os.pidfd_open(pid)
    try:
        readable, _, _ = await asyncio.to_thread(select.select, [descriptor], [], [], 30)
        assert readable
    finally:
        os.close(descriptor)


def shown_of(pid: int) -> bytes:
    """What a process shows to others."""
    return b"".join(Path(f"/proc/{pid}/{what}").read_bytes() for what in ("cmdline", "environ"))


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# --- starting -------------------------------------------------------------------------------------


@needs_model
async def test_it_is_started_on_first_use_and_answers_in_turn(tmp_path: Path) -> None:
    async with stand_in_model(tmp_path, f'exec {sys.executable} "$@"') as (model, python):
        assert python.pids == []
        for _ in range(3):
            async with model.turn() as turn:
                assert await ask(turn) == 200
        assert await ask(Running(turn.url, "another-key")) == 401
        assert len(python.pids) == 1
    assert not is_there(python.pids[0])


@needs_model
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="only Linux shows a process's arguments as a file")
async def test_keys_are_not_visible_in_the_process_information(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    async with stand_in_model(tmp_path, f'exec {sys.executable} "$@"') as (model, python):
        running = await model.running()
        shown = shown_of(python.pids[0])
    assert b"OMP_WAIT_POLICY=passive" in shown
    assert running.key.encode() not in shown
    assert b"sk-of-somebody-else" not in shown
    assert running.key not in f"{running} {running!r}"


async def test_concurrent_callers_share_one_start(tmp_path: Path) -> None:
    async with stand_in_model(tmp_path) as (model, python):
        assert set(await asyncio.gather(*(model.running() for _ in range(5)))) == {
            Running("http://127.0.0.1:1", "key-1")
        }
        assert len(python.pids) == 1


async def test_cancelled_caller_does_not_abort_the_start_for_others(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with (
        stand_in_model(tmp_path, f"read line; read go < {gate}; {STARTED}; read line") as (model, python),
        asyncio.TaskGroup() as tasks,
    ):
        first, second = (tasks.create_task(model.running()) for _ in range(2))
        writing = await asyncio.to_thread(gate.open, "w")  # opens when the child has come this far
        first.cancel()
        with writing:
            writing.write("go\n")
        assert (await second).url == "http://127.0.0.1:1"
    assert first.cancelled()
    assert len(python.pids) == 1


# --- what can go wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "words", "hint"),
    [
        pytest.param("kill -ILL $$", "no AVX2", "provider with a key", id="an old processor"),
        pytest.param("kill -KILL $$", "memory ran out", "context_window", id="out of memory"),
        pytest.param("echo oh dear >&2; exit 3", "exit code 3; oh dear", "sightline doctor", id="a crash"),
        pytest.param(
            """echo '{"type":"failed","cause":"no_engine","detail":"linux-x86_64"}'; exit 1""",
            "engine is not installed",
            "sightline local install",
            id="no engine",
        ),
        pytest.param(
            """echo '{"type":"failed","cause":"libgomp","detail":"no file"}'; exit 1""",
            "libgomp.so.1",
            "apt install libgomp1",
            id="no OpenMP",
        ),
        pytest.param(
            """echo '{"type":"failed","cause":"no_build","detail":"win-arm64"}'; exit 1""",
            "no build of its engine for this platform (win-arm64)",
            "provider with a key",
            id="no build",
        ),
    ],
)
async def test_a_start_that_fails_says_why_and_what_to_do(tmp_path: Path, script: str, words: str, hint: str) -> None:
    async with stand_in_model(tmp_path, script) as (model, _):
        for _ in range(DEATHS_IN_A_ROW + 1):
            fault = await refused(model)
            assert fault.code is Code.LOCAL_UNAVAILABLE
            assert words in fault.message
            assert hint in fault.hint


async def test_what_was_mended_meanwhile_is_noticed(tmp_path: Path) -> None:
    async with stand_in_model(tmp_path, "exit 3") as (model, _):
        assert (await refused(model)).code is Code.LOCAL_UNAVAILABLE
        StandIn(tmp_path, LIVES)
        assert (await model.running()).url == "http://127.0.0.1:1"


async def test_a_start_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    async with stand_in_model(tmp_path, "read line; read line", start_timeout=0.01) as (model, python):
        fault = await refused(model)
    assert fault.code is Code.LOCAL_UNAVAILABLE
    assert "in time" in fault.message
    assert all(not is_there(pid) for pid in python.pids)


async def test_a_python_that_is_not_there(tmp_path: Path) -> None:
    async with model_with(str(tmp_path / "none")) as model:
        fault = await refused(model)
    assert fault.code is Code.LOCAL_UNAVAILABLE
    assert "No such file" in fault.message


@pytest.mark.parametrize("window", [0, -1, 8193])
async def test_a_window_that_the_model_does_not_have(window: int) -> None:
    async with model_with(context_window=window) as model:
        fault = await refused(model)
    assert fault.code is Code.CONFIG
    assert "8192" in fault.hint


# --- dying and starting anew ----------------------------------------------------------------------


@needs_model
async def test_a_request_whose_model_dies_fails_and_the_next_gets_a_new_one(tmp_path: Path) -> None:
    async with stand_in_model(tmp_path, f'exec {sys.executable} "$@"') as (model, python):
        first = await model.running()
        with pytest.raises(Fault) as caught:
            await dies_in_its_answer(model, python)
        assert caught.value.code is Code.NETWORK
        assert "ended while it answered" in caught.value.message
        assert "signal 9" in caught.value.message
        assert caught.value.details == {"kind": "reset"}
        async with model.turn() as second:
            assert await ask(second) == 200
        assert second.key != first.key
        assert len(python.pids) == 2


async def test_another_failure_of_a_request_is_left_as_it_is(tmp_path: Path) -> None:
    fault = Fault(Code.CONTEXT_OVERFLOW, "too long")
    async with stand_in_model(tmp_path) as (model, python):
        with pytest.raises(Fault) as caught:
            async with model.turn():
                raise fault
        assert caught.value is fault
        async with model.turn():
            pass
        assert len(python.pids) == 1


async def test_a_model_that_always_dies_before_it_answers_is_not_started_for_ever(tmp_path: Path) -> None:
    async with stand_in_model(tmp_path, f"read line; {STARTED}; read line; exit 7") as (model, python):
        for _ in range(DEATHS_IN_A_ROW):
            await model.running()
            os.kill(python.pids[-1], signal.SIGTERM)
            await gone_and_heard(model)
        fault = await refused(model)
        assert fault.code is Code.LOCAL_UNAVAILABLE
        assert "always ended before it had answered (the last time: signal 15)" in fault.message
        assert len(python.pids) == DEATHS_IN_A_ROW
        await model.running()


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="this system does not tell of a child's end without a wait")
async def test_model_that_died_silently_is_restarted(tmp_path: Path) -> None:
    async with stand_in_model(tmp_path) as (model, python):
        async with model.turn() as first:
            pass
        os.kill(python.pids[0], signal.SIGKILL)
        until_dead(python.pids[0])
        async with model.turn() as second:
            assert second.key != first.key
        assert len(python.pids) == 2


async def dies_in_its_answer(model: EmbeddedModel, python: StandIn) -> None:
    async with model.turn():
        os.kill(python.pids[-1], signal.SIGKILL)
        raise Fault(Code.NETWORK, "connection reset", details={"kind": "reset"})


async def test_a_model_that_dies_in_every_answer_is_not_started_for_ever(tmp_path: Path) -> None:
    async with stand_in_model(tmp_path) as (model, python):
        for _ in range(DEATHS_IN_A_ROW):
            with pytest.raises(Fault, match="ended while it answered"):
                await dies_in_its_answer(model, python)
        assert "always ended before it had answered" in (await refused(model)).message
        assert len(python.pids) == DEATHS_IN_A_ROW


async def test_a_model_that_dies_after_it_answered_is_started_as_often_as_it_takes(tmp_path: Path) -> None:
    async with stand_in_model(tmp_path) as (model, python):
        for _ in range(DEATHS_IN_A_ROW + 2):
            async with model.turn():
                pass
            os.kill(python.pids[-1], signal.SIGTERM)
            await gone_and_heard(model)
        assert len(python.pids) == DEATHS_IN_A_ROW + 2


async def gone_and_heard(model: EmbeddedModel) -> None:
    await model._child.ended.wait()


# --- one at a time --------------------------------------------------------------------------------


async def test_callers_get_their_turn_in_the_order_of_their_coming(tmp_path: Path) -> None:
    told: list[str] = []
    async with stand_in_model(tmp_path) as (model, _), asyncio.TaskGroup() as tasks:

        async def caller(name: str) -> None:
            async with model.turn():
                told.append(f"{name} in")
                await asyncio.sleep(0)
                told.append(f"{name} out")

        for name in "abc":
            tasks.create_task(caller(name))
    assert told == ["a in", "a out", "b in", "b out", "c in", "c out"]


async def test_cancelled_caller_leaves_the_queue(tmp_path: Path) -> None:
    async with stand_in_model(tmp_path) as (model, _), asyncio.TaskGroup() as tasks:
        waits, release = asyncio.Event(), asyncio.Event()

        async def caller(*, until: asyncio.Event | None = None) -> str:
            async with model.turn():
                waits.set()
                if until:
                    await until.wait()
                return "answered"

        first = tasks.create_task(caller(until=release))
        await waits.wait()
        second, third = tasks.create_task(caller()), tasks.create_task(caller())
        await asyncio.sleep(0)
        second.cancel()
        release.set()
        assert [await first, await third] == ["answered", "answered"]
    assert second.cancelled()


async def test_a_turn_that_is_cancelled_frees_the_queue(tmp_path: Path) -> None:
    async with stand_in_model(tmp_path) as (model, _), asyncio.TaskGroup() as tasks:
        inside = asyncio.Event()

        async def stuck() -> None:
            async with model.turn():
                inside.set()
                await asyncio.Event().wait()

        task = tasks.create_task(stuck())
        await inside.wait()
        task.cancel()
        async with model.turn():
            pass


# --- ending ---------------------------------------------------------------------------------------


async def test_a_model_that_was_never_used_has_nothing_to_stop() -> None:
    async with model_with() as model:
        await model.close()


async def test_caller_waiting_for_a_start_gets_cancelled_on_close(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with (
        stand_in_model(tmp_path, f"read line; read go < {gate}; read line") as (model, python),
        asyncio.TaskGroup() as tasks,
    ):
        waiting = tasks.create_task(refused(model))
        with await asyncio.to_thread(gate.open, "w"):
            pass
        await model.close()
        assert (await waiting).code is Code.CANCELLED
        assert (await refused(model)).code is Code.CANCELLED
    assert len(python.pids) == 1
    assert not is_there(python.pids[0])


@needs_model
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the end of another's child can be waited for on Linux only")
def test_it_dies_with_us_even_when_we_are_killed(tmp_path: Path) -> None:
    python = StandIn(tmp_path, f'exec {sys.executable} "$@"')
    program = f"""
import asyncio, os, signal
from sightline.transport.embedded.process import EmbeddedModel

async def main():
    model = EmbeddedModel(python={str(python.path)!r}, environment=os.environ, make_key=lambda: "key")
    await model.running()
    print("up", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout.readline() == b"up\n"
        parent.kill()
    asyncio.run(gone(python.pids[0]))


# --- one that runs elsewhere ----------------------------------------------------------------------


async def test_a_model_that_runs_elsewhere_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGHTLINE_LOCAL_KEY", " its-key ")
    async with model_with("no-python-is-needed", url="http://127.0.0.1:8080/v1/") as model:
        assert model.elsewhere is not None
        expected = Running("http://127.0.0.1:8080", "its-key")
        assert await model.running() == expected
        async with model.turn() as first, model.turn() as second:
            assert first == second == expected


async def test_a_model_elsewhere_that_wants_no_key_is_sent_some_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SIGHTLINE_LOCAL_KEY", raising=False)
    async with model_with(url="http://127.0.0.1:8080") as model:
        assert await model.running() == Running("http://127.0.0.1:8080", "none")


def test_child_environment_excludes_unrelated_variables() -> None:
    given = {"PATH": "/bin", "Path": "C:", "OPENAI_API_KEY": "sk", "HTTPS_PROXY": "http://u:p@x", "PYTHONPATH": "src"}
    assert child_environment(given) == {"OMP_WAIT_POLICY": "passive", "PATH": "/bin", "Path": "C:", "PYTHONPATH": "src"}
    assert child_environment({"OMP_WAIT_POLICY": "active"}) == {"OMP_WAIT_POLICY": "active"}
