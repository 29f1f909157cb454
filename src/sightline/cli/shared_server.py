"""A server for runs: the one that is running, else one that they start and that ends with the last of them.

Every run holds a shared lock on a file in the data folder. A server that was started for runs waits for the exclusive
lock and ends once it has it. However its runs end, it never stays behind, and no run loses it.
"""

import contextlib
import fcntl
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sightline.app.running_server import RUN_LOCK, find_server, knows_token
from sightline.errors import Code, Fault
from sightline.web.token import load_token

_STARTING, _LOG = "run.starting", "run.log"
_SERVE = "import sys; from sightline.cli.shared_server import serve; sys.exit(serve(sys.argv[1], sys.argv[2:]))"


@dataclass(frozen=True, slots=True)
class SharedServer:
    """`url` is its address; `is_new` tells whether it was started for this run."""

    url: str
    token: str
    is_new: bool

    @property
    def link(self) -> str:
        """The link that opens its page."""
        return f"{self.url}/?token={self.token}"


@contextmanager
def share_server(
    host: str, port: int, folder: Path, *, options: Sequence[str], environment: Mapping[str, str]
) -> Iterator[SharedServer]:
    """The server of this data folder, while the context is open. If none is running, one is started at this address, or
    at a free port if the address is taken, with these `options` and this `environment`. Port 0 always starts one."""
    token = load_token(folder, lambda: secrets.token_urlsafe(24))
    started: subprocess.Popen[bytes] | None = None
    reachable = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    try:
        with lock_file(folder / RUN_LOCK, fcntl.LOCK_SH):
            with lock_file(folder / _STARTING, fcntl.LOCK_EX):
                running = find_server(folder) if port else None
                # One that says nothing of itself is an older Sightline.
                answer = knows_token(reachable, port, token) if port and running is None else None
                if running is None and not answer:
                    free = 0 if answer is False else port
                    words = ["--host", host, "--port", str(free), "--data", str(folder), *options]
                    started, port = _start_server(folder, words, environment)
            url = f"http://{reachable}:{port}" if running is None else running.url
            yield SharedServer(url, token, started is not None)
    finally:
        if started is not None and _is_unused(folder / RUN_LOCK):
            started.wait()


def is_in_use(folder: Path) -> bool:
    """Whether runs currently share a server of this data folder, which ends with the last of them."""
    return (folder / RUN_LOCK).exists() and not _is_unused(folder / RUN_LOCK)


def serve(lock: str, words: list[str]) -> int:
    """Serve until no run is left: the main function of the process that is started for runs."""
    from sightline.cli.program import main

    threading.Thread(target=_end_when_unused, args=(lock,), daemon=True).start()
    return main(["serve", "--no-open", *words])


def _end_when_unused(lock: str) -> None:
    file = os.open(lock, os.O_RDWR)
    fcntl.flock(file, fcntl.LOCK_EX)
    os.kill(os.getpid(), signal.SIGTERM)  # the lock stays with this process, so that a new run waits for its end


def _start_server(
    folder: Path, words: Sequence[str], environment: Mapping[str, str]
) -> tuple["subprocess.Popen[bytes]", int]:
    """Start a server and wait until it listens; returns it and its port. Ctrl-C in this terminal does not reach it."""
    log = folder / _LOG
    command = [sys.executable, "-c", _SERVE, str(folder / RUN_LOCK), *words]
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as errors:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=dict(environment),
            start_new_session=True,
        )
    assert child.stdout is not None
    with child.stdout:
        link = child.stdout.readline().decode().strip()
    port = urlsplit(link).port
    if port is None:
        child.wait()
        raise _not_started(log)
    return child, port


def _not_started(log: Path) -> Fault:
    lines = log.read_text("utf-8", "replace").splitlines()
    error = next((line.partition("]: ")[2] for line in lines if line.startswith("error[")), "")
    hint = next((line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")), "")
    return Fault(
        Code.CONFIG,
        f"the server did not start: {error or (lines[-1] if lines else 'there is no output')}",
        hint=hint or "Try `sightline serve` to see more.",
    )


def _is_unused(path: Path) -> bool:
    """Whether no other run is left: then the server gets the lock, or has it already."""
    with contextlib.suppress(BlockingIOError), lock_file(path, fcntl.LOCK_EX | fcntl.LOCK_NB):
        return True
    with contextlib.suppress(BlockingIOError), lock_file(path, fcntl.LOCK_SH | fcntl.LOCK_NB):
        return False
    return True


@contextmanager
def lock_file(path: Path, how: int) -> Iterator[None]:
    """Hold a lock of the data folder; waits for other processes."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, how)
        yield
    finally:
        os.close(file)
