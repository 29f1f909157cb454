"""Signals, liveness and process trees; the forms for other systems run here where this one can run them."""

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sightline.platform import processes
from sightline.platform.processes import (
    ENDING,
    MARK,
    MemoryTrimmer,
    ProcessTree,
    can_watch_sockets,
    cores,
    handle_signals,
    has_ended,
    is_running,
    own_group,
    signals_named,
    tree_killer,
)
from tests.agent.tools.processes import environment

NOBODY = 2**22 + 1
HERE = f"{os.getpid()}.test"


def begun(mark: str = "") -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", "print(flush=True); input()"]
    env = {**environment(), MARK: mark} if mark else environment()
    pipe = subprocess.PIPE
    child = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=env, **own_group())
    child.stdout.readline()  # by now the system shows its environment, which it does not at once
    return child


def test_tree_of_a_nonexistent_process_is_empty() -> None:
    nobody = ProcessTree.of(NOBODY, "no such mark")
    assert nobody.alive() == []
    assert not nobody.kill()
    assert os.getpid() not in ProcessTree.of(os.getpid() + 1, "x").alive()


def test_a_process_is_known_by_its_session_and_by_its_mark() -> None:
    with begun(HERE) as child:
        assert ProcessTree.of(child.pid, "none").alive() == [child.pid]
        assert ProcessTree.of(NOBODY, HERE).alive() == [child.pid]
        assert ProcessTree.of(NOBODY, f"{HERE}1").alive() == []
        assert ProcessTree.of(NOBODY, HERE).kill()
        assert child.wait() == -signal.SIGKILL
        assert not ProcessTree.of(child.pid, HERE).is_left()


def test_a_number_that_has_become_another_s_is_not_the_child_s() -> None:
    with begun() as child:
        mine = ProcessTree.of(child.pid, "none")
        earlier = ProcessTree(child.pid, "none", str(int(mine.born) - 1))
        assert mine.is_left()
        assert earlier.alive() == []
        assert not earlier.kill()
        assert child.poll() is None
        assert mine.kill()


def test_where_there_is_no_proc_the_group_is_what_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(processes, "_PROC", tmp_path / "none")
    with begun() as child:
        mine = ProcessTree.of(child.pid, "")
        assert mine.is_left()
        assert mine.kill()
        assert child.wait() == -signal.SIGKILL
    assert not mine.is_left()
    assert not mine.kill()


def test_a_child_that_was_killed_has_ended_before_its_exit_code_is_read() -> None:
    with begun() as child:
        assert is_running(child.pid)
        assert not has_ended(child.pid)
        assert ProcessTree.of(child.pid, "").terminate()
        assert child.wait() == -signal.SIGTERM
    assert has_ended(child.pid), "it is no child any more"


# --- forms of other systems ---


def test_only_the_cores_that_this_process_may_use_count() -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)


def test_core_count_is_used_without_cpu_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1


def test_a_process_group_is_what_the_system_has() -> None:
    assert own_group("linux") == own_group("darwin") == {"start_new_session": True}
    assert own_group("win32") == {"creationflags": 0x200}, "CREATE_NEW_PROCESS_GROUP"
    assert tree_killer(42) == ["taskkill", "/PID", "42", "/T", "/F"]


def test_only_signals_of_this_system_are_named() -> None:
    assert signals_named("SIGINT", "SIGBREAK", "SIGTERM") == (signal.SIGINT, signal.SIGTERM)
    assert signal.SIGHUP in ENDING


@pytest.mark.parametrize("on_loop", [True, False], ids=["on the loop", "as on Windows"])
async def test_a_signal_is_handled_on_the_loop_and_the_earlier_handler_comes_back(on_loop: bool) -> None:
    before = signal.getsignal(signal.SIGTERM)
    came = asyncio.Event()
    with handle_signals({signal.SIGTERM: came.set}, on_loop=on_loop):
        os.kill(os.getpid(), signal.SIGTERM)
        await came.wait()
    assert signal.getsignal(signal.SIGTERM) == before


def test_the_loop_of_windows_cannot_watch_sockets() -> None:
    loop = asyncio.SelectorEventLoop()
    try:
        assert can_watch_sockets(loop, "linux")
        assert can_watch_sockets(loop, "win32"), "this one could, but starts no processes there"
        assert not can_watch_sockets(asyncio.AbstractEventLoop(), "win32")
    finally:
        loop.close()


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="only the C library of GNU can be asked")
def test_what_was_freed_goes_back_to_the_system_once_there_is_nothing_to_do() -> None:
    done = subprocess.run([sys.executable, "-c", FREEING], capture_output=True, text=True, check=True)
    kept, busy, idle, again, left = done.stdout.split()
    assert (busy, idle, again) == ("False", "True", "False")
    assert int(kept) - int(left) > 20_000


def test_how_much_work_is_worth_giving_memory_back_can_be_chosen() -> None:
    little, much = MemoryTrimmer(worth_it=0.0), MemoryTrimmer(worth_it=1000.0)
    for freed in (little, much):
        freed.is_due(0.0)
    assert little.is_due(1e6)
    assert not much.is_due(1e6)


FREEING = """
from pathlib import Path
from time import process_time
from sightline.platform.processes import MemoryTrimmer

def own():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))

def work():
    pieces = [bytes([n % 256]) * 20_000 for n in range(3_000)]
    while pieces:  # a piece of each is kept, so that the heap cannot shrink from its end
        last = pieces.pop()
        kept.append(last[:600])
    ends = process_time() + 0.1
    while process_time() < ends:  # as long on every machine: twice as much as is worth giving back for
        pass

kept = []
freed = MemoryTrimmer()
freed.give_back()
freed.is_due(0.0)
work()
held = own()
busy = freed.is_due(0.01)
idle = freed.is_due(1.0)
freed.give_back()
print(held, busy, idle, freed.is_due(2.0), own())
"""
