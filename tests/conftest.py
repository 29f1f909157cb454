"""What every test stands on: how hard hypothesis tries, and a network that ends at this machine."""

import asyncio
import contextlib
import gc
import importlib
import inspect
import ipaddress
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent

pytest_plugins = ("tests.pure_coverage",)

if threading.current_thread() is threading.main_thread():
    # In the background of a script, or with nohup, the suite starts with these signals ignored, and so would every
    # program that a test starts and interrupts: it would wait for an end that never comes.
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)

# What is compiled is kept, also where the environment says otherwise, as many containers do: the suite starts some
# hundreds of programs, and each would compile Sightline anew; so would every worker the tests.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Examples are drawn anew in every run, so that each may find something; a failure prints what repeats it. A slow
# machine is no reason to fail. With 100 examples, hypothesis's own number, they took half of the suite's time.
_HOW = {"deadline": None, "print_blob": True, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("random", max_examples=25, **_HOW)
# Where a run decides about a change, the same change must always get the same answer.
settings.register_profile("ci", max_examples=25, derandomize=True, **_HOW)
# For a first look while writing: pytest --hypothesis-profile=quick
settings.register_profile("quick", max_examples=10, **_HOW)
# For a long look: pytest tests/contract --hypothesis-profile=thorough
settings.register_profile("thorough", max_examples=1000, **_HOW)
settings.load_profile("ci" if os.environ.get("CI") else "random")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than there are cores: much of the time is spent waiting for browsers and other processes. With two more,
    stories that end a server within its grace were late. Xdist's own variable says otherwise where somebody tries."""
    return int(os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") or (os.cpu_count() or 1) + 1)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collect no garbage while tests are collected, and none of what is loaded then: it took two fifths of the time,
    and every later collection would look through it again."""
    gc.disable()
    try:
        _rewrite(session)
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _rewrite(session: pytest.Session) -> None:
    """Let each worker rewrite the assertions of its share of the files, and find those of the others done.

    In a fresh clone no file is rewritten yet, and every worker would rewrite all of them: 20 seconds of a core each.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    number = int(worker["workerid"].removeprefix("gw"))
    asked = [session.config.invocation_params.dir / argument.partition("::")[0] for argument in session.config.args]
    files = sorted(path for path in TESTS.rglob("test_*.py") if not {path, *path.parents}.isdisjoint(asked))
    for path in files[number :: worker["workercount"]]:
        # What a file raises on import is told by its collection, which comes next and runs it again.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(path.relative_to(TESTS.parent).with_suffix("").parts))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """In a worker, send what a test came to, and of its setup and teardown only what went wrong.

    Xdist sends six messages for each test, which together took 2 milliseconds of a core: 40 seconds of the whole run.
    Who asks for durations or a JUnit file gets all of them. pytest has this function in no public module; plug-ins that
    repeat tests call it too.
    """
    option = item.config.getoption
    if not hasattr(item.config, "workerinput") or option("durations") is not None or option("xmlpath"):
        return None
    for report in runtestprotocol(item, nextitem=nextitem, log=False):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine in a loop of its own, made by the fixture `loop_factory` if it has one."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = pyfuncitem.funcargs
    with asyncio.Runner(loop_factory=given.get("loop_factory")) as runner:
        runner.run(pyfuncitem.obj(**{name: given[name] for name in pyfuncitem._fixtureinfo.argnames}))
    return True


class NetworkClosedError(RuntimeError):
    """A test reached for another machine. Not an OSError, so that no code under test can take it for an outage."""


def _is_here(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode("ascii")
    if host in (None, "", "localhost"):
        return True
    try:
        return ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        return False


def _refuse_elsewhere(host: object) -> None:
    if not _is_here(host):
        raise NetworkClosedError(f"tests may talk to this machine only, not to {host!r}")


@pytest.fixture(scope="session", autouse=True)
def _closed_network() -> Iterator[None]:
    """Refuse every connection and name lookup that leaves the loopback interface."""
    connect, connect_ex, getaddrinfo = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def guarded_connect(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX:
            _refuse_elsewhere(address[0])
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        if self.family != socket.AF_UNIX:
            _refuse_elsewhere(address[0])
        return connect_ex(self, address)

    def guarded_getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        _refuse_elsewhere(host)
        return getaddrinfo(host, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded_connect)
        patch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
        patch.setattr(socket, "getaddrinfo", guarded_getaddrinfo)
        yield
