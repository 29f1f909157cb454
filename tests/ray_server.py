"""A Ray cluster on this machine, of several processes, for as long as a test needs it."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.shared_servers import free_port

HOST = b"ray::HostProcess"
_PATIENCE = 120.0
_TRIES = 3


@dataclass(frozen=True)
class RayCluster:
    """`folder` is where all its processes write. They have one session, by which they are known."""

    address: str
    folder: Path
    session: int

    @property
    def processes(self) -> list[int]:
        """All that run now."""
        return [pid for pid in _pids() if _session(pid) == self.session]

    @property
    def hosts(self) -> list[int]:
        """Those that run cases."""
        return [pid for pid in self.processes if _command(pid).startswith(HOST)]

    def talking(self, port: int) -> set[int]:
        """The hosts that have a connection to this port of the machine."""
        ends = f":{port:04X}"
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        inodes = {f"socket:[{row[9]}]" for row in rows if row[2].endswith(ends)}
        return {pid for pid in self.hosts if inodes & _open(pid)}


@contextlib.contextmanager
def ray_cluster(cpus: int) -> Iterator[RayCluster]:
    """Start one and end it, with nothing left of it. Ray gives itself 30 seconds to start, which on a machine with much
    to do may be too little: then it is tried again."""
    with contextlib.ExitStack() as stack:
        cluster = None
        for _ in range(_TRIES):
            cluster = cluster or stack.enter_context(_tried(cpus))
        assert cluster is not None, "Ray did not start"
        yield cluster


@contextlib.contextmanager
def _tried(cpus: int) -> Iterator[RayCluster | None]:
    # Not below the test's own folder: names of sockets must be short.
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    port, gcs = free_port(), free_port()
    words = ["start", "--head", "--block", f"--num-cpus={cpus}", "--node-ip-address=127.0.0.1", f"--port={gcs}"]
    words += [f"--ray-client-server-port={port}", "--include-dashboard=false", f"--temp-dir={folder / 't'}"]
    words += ["--object-store-memory=80000000", "--disable-usage-stats"]
    program = [sys.executable, "-c", "from ray.scripts.scripts import main; main()"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "SIGHTLINE_"))}
    # Ray forks beside threads of gRPC, whose handlers for that crash the child now and then: then whoever connects
    # waits for a minute and more. Nothing uses gRPC between the fork and the new program.
    ours = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "120"}
    ours["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    with (folder / "said").open("wb") as said:
        started = subprocess.Popen(
            [*program, *words],
            stdout=said,
            stderr=said,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env=kept | ours,
        )
    cluster = RayCluster(f"ray://127.0.0.1:{port}", folder, started.pid)
    try:
        yield cluster if _is_up(started, folder / "said") else None
    finally:
        _end(cluster, started)
        shutil.rmtree(folder, ignore_errors=True)


def _is_up(started: "subprocess.Popen[bytes]", said: Path) -> bool:
    ends = time.monotonic() + _PATIENCE
    while b"Ray runtime started" not in said.read_bytes():
        if started.poll() is not None or time.monotonic() > ends:
            return False
        time.sleep(0.1)  # another program's start, which tells nobody
    return True


def _end(cluster: RayCluster, started: "subprocess.Popen[bytes]") -> None:
    """End all of its session, and so no other cluster's; until nothing is left that could start another."""
    ends = time.monotonic() + 20
    while left := cluster.processes:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert time.monotonic() < ends, f"these are left: {left}"
        time.sleep(0.05)  # they are no children of ours, so that nobody tells
    started.wait()


def _pids() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal()]


def _session(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == "Z" else int(fields[3])


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _open(pid: int) -> set[str]:
    found: set[str] = set()
    with contextlib.suppress(OSError):
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.add(str(each.readlink()))
    return found
