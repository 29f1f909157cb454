import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sightline.agent.tools import child as kin
from sightline.agent.tools.child import ProcessTree
from tests.agent.tools.processes import environment

NOBODY = 2**22 + 1
HERE = f"{os.getpid()}.test"


def begun(mark: str = "") -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", "print(flush=True); input()"]
    env = {**environment(), kin.MARK: mark} if mark else environment()
    pipe = subprocess.PIPE
    child = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=env, start_new_session=True)
    assert child.stdout is not None
    child.stdout.readline()  # by now the system shows its environment, which it does not at once
    return child


def test_nobody_is_left_of_a_process_that_never_was() -> None:
    nobody = ProcessTree.of(NOBODY, "no such mark")
    assert nobody.alive() == []
    assert not nobody.send(signal.SIGKILL)
    assert os.getpid() not in ProcessTree.of(os.getpid() + 1, "x").alive()


def test_a_process_is_known_by_its_session_and_by_its_mark() -> None:
    with begun(HERE) as child:
        assert ProcessTree.of(child.pid, "none").alive() == [child.pid]
        assert ProcessTree.of(NOBODY, HERE).alive() == [child.pid]
        assert ProcessTree.of(NOBODY, f"{HERE}1").alive() == []
        assert ProcessTree.of(NOBODY, HERE).send(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        assert not ProcessTree.of(child.pid, HERE).is_left()


def test_a_number_that_has_become_another_s_is_not_the_child_s() -> None:
    with begun() as child:
        mine = ProcessTree.of(child.pid, "none")
        earlier = ProcessTree(child.pid, "none", mine.born - 1)
        assert mine.is_left()
        assert earlier.alive() == []
        assert not earlier.send(signal.SIGKILL)
        assert child.poll() is None
        assert mine.send(signal.SIGKILL)


def test_where_there_is_no_proc_the_group_is_what_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kin, "_PROC", tmp_path / "none")
    with begun() as child:
        mine = ProcessTree.of(child.pid, "")
        assert mine.is_left()
        assert mine.send(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    assert not mine.is_left()
    assert not mine.send(signal.SIGKILL)
