import asyncio
import ctypes
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from sightline.app.machine import Ids, SystemClock, is_alive, process_name

TELLS = "from sightline.app.machine import process_name; print(process_name(), flush=True); input()"


def test_the_clock_is_the_machines() -> None:
    clock = SystemClock()
    assert clock.now() > 1_700_000_000
    asyncio.run(clock.sleep(0))


def test_ids_sort_as_they_were_made() -> None:
    times = iter([5_000, 5_000, 4_000, 9_000_000])
    make = Ids(lambda: next(times), lambda: "abc")
    made = [make() for _ in range(4)]
    assert made == sorted(set(made))
    assert all(each.startswith("x_") for each in made)


def test_a_process_is_alive_until_it_ends() -> None:
    own = process_name()
    assert is_alive(own)
    host, number, started = own.split(":")
    assert not is_alive(f"{host}:{number}:{started}0"), "another had this number before"
    assert not is_alive(f"elsewhere:{number}:{started}")
    assert not is_alive("")
    assert not is_alive(f"{host}:x:1")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", TELLS], text=True, **pipes) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        name = child.stdout.readline().strip()
        assert is_alive(name)
        child.stdin.write("\n")
        child.stdin.flush()
    assert not is_alive(name)


def test_on_windows_nobody_is_ended_by_being_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    own, closed = process_name(), list[int]()
    waits, handles, errors = iter([0x102, 0]), iter([7, 8, 0, 0]), iter([5, 87])
    kernel = SimpleNamespace(
        OpenProcess=lambda _right, _inherit, number: next(handles) if number == os.getpid() else 0,
        WaitForSingleObject=lambda _handle, _time: next(waits),
        CloseHandle=closed.append,
        GetLastError=lambda: next(errors),
    )
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=kernel), raising=False)
    monkeypatch.setattr(os, "kill", None)
    monkeypatch.setattr(sys, "platform", "win32")
    assert [is_alive(own) for _ in range(4)] == [True, False, True, False], "runs, has ended, is another's, is gone"
    assert closed == [7, 8]
