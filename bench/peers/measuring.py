"""One subject in front of the upstream under one load after another, and what that cost."""

import http.client
import json
import os
import shutil
import socket
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from time import perf_counter, sleep
from urllib.parse import urlsplit

from bench.peers.process import LOAD_CORE, PROXY_CORE, Tree, on_core
from bench.peers.scenarios import Scenario
from bench.peers.subjects import Subject
from bench.peers.workshop import CACHE, MissingError, compiled

START_PATIENCE = 180.0
WARM_UP = 200
WARM_UP_STREAMS = 32
REST = 3.0


@dataclass(frozen=True)
class Figures:
    """What one load cost: microseconds of CPU per completed request until the last answer, and later."""

    requests: float
    errors: float
    per_second: float
    cpu: float
    cpu_later: float
    first_byte: float
    first_byte_p99: float
    chunk: float
    chunk_p99: float
    memory: float
    peak: float

    @property
    def cpu_in_all(self) -> float:
        return self.cpu + self.cpu_later


def median(figures: Sequence[Figures]) -> Figures:
    """The median of each figure by itself, but every error."""
    values = {each.name: statistics.median(getattr(one, each.name) for one in figures) for each in fields(Figures)}
    values["errors"] = sum(one.errors for one in figures)
    return Figures(**values)


@contextmanager
def upstream() -> Iterator[int]:
    """The upstream's port while it runs."""
    program = compiled("upstream")
    with on_core(LOAD_CORE):
        process = subprocess.Popen([str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()
            process.wait()


class Running:
    """A subject that answers, and the load on it."""

    def __init__(self, subject: Subject, tree: Tree | None, port: int, upstream: int, folder: Path) -> None:
        self.tree = tree
        self._subject = subject
        self._port = port
        self._upstream = upstream
        self._folder = folder

    def load(self, scenario: Scenario, *, requests: int = 0) -> dict[str, float | str]:
        """What the load generator tells; `requests` is for another number than the scenario's."""
        file = self._folder / "request"
        headers = self._subject.headers(self._upstream)
        file.write_bytes(scenario.request(self._port, self._subject.path, self._subject.model_prefix, headers))
        length = [0, requests] if requests else [scenario.milliseconds, scenario.requests]
        numbers = [*length, scenario.marks, scenario.spread]
        connections = min(scenario.connections, requests) if requests else scenario.connections
        command = [str(compiled("load")), str(self._port), str(file), str(connections), *map(str, numbers)]
        with on_core(LOAD_CORE):
            done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise MissingError(f"it stopped answering: {done.stderr.strip()}")
        told: dict[str, float | str] = json.loads(done.stdout)
        return told

    def figures(self, scenario: Scenario) -> Figures:
        """What the scenario costs."""
        before = self.tree.cpu_seconds() if self.tree else 0.0
        told = self.load(scenario)
        after = self.tree.cpu_seconds() if self.tree else 0.0
        settled, _ = self.tree.settled_cpu_seconds() if self.tree else (0.0, True)
        memory, peak = self.tree.memory() if self.tree else (0.0, 0.0)
        numbers = {name: value for name, value in told.items() if not isinstance(value, str)}
        completed = numbers["requests"]
        if not completed:
            raise MissingError(f"no good answer to {scenario.name}: {told['example']}")
        return Figures(
            requests=completed,
            errors=numbers["errors"],
            per_second=numbers["per_second"],
            cpu=(after - before) * 1e6 / completed,
            cpu_later=(settled - after) * 1e6 / completed,
            first_byte=numbers["first_byte_ms"],
            first_byte_p99=numbers["first_byte_p99_ms"],
            chunk=numbers["chunk_ms"],
            chunk_p99=numbers["chunk_p99_ms"],
            memory=memory,
            peak=peak,
        )

    def after_rest(self, figures: Figures) -> Figures:
        """The same figures with the memory that it has when nothing was asked for a few seconds."""
        sleep(REST)
        return figures if self.tree is None else replace(figures, memory=self.tree.memory()[0])

    def warm_up(self, scenarios: Sequence[Scenario]) -> None:
        """Let it import, compile and connect what it does at its first requests."""
        for scenario in scenarios:
            if not scenario.spread:
                self.load(scenario, requests=WARM_UP_STREAMS if scenario.is_stream else WARM_UP)
        if self.tree:
            self.tree.settled_cpu_seconds()


@contextmanager
def running(subject: Subject, upstream: int, probe: Scenario) -> Iterator[Running]:
    """The subject, started afresh with an empty folder, once it has answered."""
    folder = CACHE / "run" / f"{subject.name}-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if subject.launch is None:
        yield Running(subject, None, upstream, upstream, folder)
        shutil.rmtree(folder)
        return
    port = _free_port()
    launch = subject.launch(folder, port, upstream)
    tree = Tree(launch.command, folder, launch.environment, PROXY_CORE)
    try:
        port = _answering(subject, tree, launch.address_file, port, upstream, probe)
        with subject.beside(folder, port):
            yield Running(subject, tree, port, upstream, folder)
    finally:
        tree.stop()
    # After a failure it stays, with the log.
    shutil.rmtree(folder)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _answering(
    subject: Subject, tree: Tree, address_file: Path | None, port: int, upstream: int, probe: Scenario
) -> int:
    """Wait for a good answer; the port that gave it."""
    began = perf_counter()
    seen = "no answer"
    while perf_counter() - began < START_PATIENCE:
        if tree.has_ended:
            raise MissingError(f"it ended at its start: {tree.last_words()}")
        if address_file is not None and address_file.exists() and (address := address_file.read_text()):
            port = urlsplit(address).port or port
        request = probe.request(port, subject.path, subject.model_prefix, subject.headers(upstream))
        try:
            with socket.create_connection(("127.0.0.1", port), 10) as connection:
                connection.sendall(request)
                answer = http.client.HTTPResponse(connection, method="POST")
                answer.begin()
                body = answer.read()
                answer.close()
        except (OSError, http.client.HTTPException) as error:
            seen = str(error)
        else:
            if answer.status == 200:
                return port
            seen = f"status {answer.status}: {body[:200].decode(errors='replace')}"
        sleep(0.2)
    raise MissingError(f"not ready after {START_PATIENCE:.0f} s: {seen}")
