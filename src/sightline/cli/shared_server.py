"""A server for runs: the one that is running already, else one of their own, which ends with the last of them.

Every run holds a shared lock on a file in the data folder. A server that was started for runs waits for the exclusive
lock and ends once it has it: however its runs end, it never stays behind, and no run is left without it.
"""

import contextlib
import fcntl
import hmac
import http.client
import json
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

from sightline.errors import Code, Fault
from sightline.server.token import kept_token
from sightline.server.workbench.access import proof_of

_IN_USE, _STARTING, _LOG = "run.lock", "run.starting", "run.log"
_PATIENCE = 5
_SERVE = "import sys; from sightline.cli.shared_server import serve; sys.exit(serve(sys.argv[1], sys.argv[2:]))"


@dataclass(frozen=True, slots=True)
class SharedServer:
    """`url` is its address; `is_new` tells whether it was started for this run."""

    url: str
    token: str
    is_new: bool

    @property
    def link(self) -> str:
        """What opens its page."""
        return f"{self.url}/?token={self.token}"


@contextmanager
def shared_server(
    host: str, port: int, folder: Path, *, options: Sequence[str], environment: Mapping[str, str]
) -> Iterator[SharedServer]:
    """The server of this data folder at this address, for as long as the context lasts.

    Where something else listens there, one of our own takes a free port. `options` and `environment` are for a server
    that has to be started.
    """
    token = kept_token(folder, lambda: secrets.token_urlsafe(24))
    started: subprocess.Popen[bytes] | None = None
    reachable = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    try:
        with locked(folder / _IN_USE, fcntl.LOCK_SH):
            with locked(folder / _STARTING, fcntl.LOCK_EX):
                answer = _asked(reachable, port, token) if port else None
                if not answer:
                    free = 0 if answer is False else port
                    words = ["--host", host, "--port", str(free), "--data", str(folder), *options]
                    started, port = _started(folder, words, environment)
            yield SharedServer(f"http://{reachable}:{port}", token, started is not None)
    finally:
        if started is not None and _is_unused(folder / _IN_USE):
            started.wait()


def is_in_use(folder: Path) -> bool:
    """Whether runs share a server of this data folder now, which ends with the last of them."""
    return (folder / _IN_USE).exists() and not _is_unused(folder / _IN_USE)


def serve(lock: str, words: list[str]) -> int:
    """Be a server until no run is left; the body of the process that is started for runs."""
    from sightline.cli.program import main

    threading.Thread(target=_end_when_unused, args=(lock,), daemon=True).start()
    return main(["serve", "--no-open", *words])


def _end_when_unused(lock: str) -> None:
    file = os.open(lock, os.O_RDWR)
    fcntl.flock(file, fcntl.LOCK_EX)
    os.kill(os.getpid(), signal.SIGTERM)  # the lock stays with this process, so that a new run waits for its end


def _asked(host: str, port: int, token: str) -> bool | None:
    """Whether who listens there knows our token, which is not shown for that; None where nobody listens."""
    challenge = secrets.token_urlsafe(16)
    connection = http.client.HTTPConnection(host.strip("[]"), port, timeout=_PATIENCE)
    try:
        connection.request("GET", f"/api/health?challenge={challenge}")
        said = json.loads(connection.getresponse().read(65536))
    except ConnectionRefusedError:
        return None
    except (OSError, http.client.HTTPException, ValueError):
        return False
    finally:
        connection.close()
    proof = said.get("proof") if isinstance(said, dict) else None
    return isinstance(proof, str) and hmac.compare_digest(proof.encode(), proof_of(token, challenge).encode())


def _started(
    folder: Path, words: Sequence[str], environment: Mapping[str, str]
) -> tuple["subprocess.Popen[bytes]", int]:
    """A server of our own once it listens, and its port. Ctrl-C in this terminal is not for it."""
    log = folder / _LOG
    command = [sys.executable, "-c", _SERVE, str(folder / _IN_USE), *words]
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
        f"the server did not start: {error or (lines[-1] if lines else 'it said nothing')}",
        hint=hint or "Try `sightline serve` to see more.",
    )


def _is_unused(path: Path) -> bool:
    """Whether no other run is left: then the server gets the lock, or has it already."""
    with contextlib.suppress(BlockingIOError), locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB):
        return True
    with contextlib.suppress(BlockingIOError), locked(path, fcntl.LOCK_SH | fcntl.LOCK_NB):
        return False
    return True


@contextmanager
def locked(path: Path, how: int) -> Iterator[None]:
    """Hold a lock of the data folder, for which every process that wants it waits its turn."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, how)
        yield
    finally:
        os.close(file)
