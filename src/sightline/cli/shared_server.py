"""A server for runs: the running one, otherwise one that they start and that ends with the last of them.

Every run holds a shared lock on a file in the data folder. A server that was started for runs waits for the exclusive
lock and ends once it has it. However its runs end, it never stays behind, and no run loses it.
"""

import http.client
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sightline.app.configuration import Configuration
from sightline.app.running_server import RUN_LOCK, call_server, find_server, knows_token
from sightline.cli.terminal import say
from sightline.errors import Code, Fault
from sightline.exchange.remote_relay import RunningServer
from sightline.filters.expression import TextTerm
from sightline.filters.parsing import write_expression
from sightline.filters.predicate import literal
from sightline.model.json import Json
from sightline.platform.files import hold_lock, lock
from sightline.platform.processes import own_group
from sightline.web.access import load_token


@dataclass(frozen=True, slots=True)
class SharedServer(RunningServer):
    """A server that runs share. `is_new` is whether it was started for this run."""

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
        with hold_lock(folder / RUN_LOCK, is_shared=True):
            with hold_lock(folder / "run.starting"):
                running = find_server(folder) if port else None
                # A server that does not identify itself is an older Sightline.
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


def config_option(loaded: Configuration) -> list[str]:
    """The option that gives a server of our own the same configuration."""
    return [] if loaded.path is None else ["--config", str(loaded.path.absolute())]


def is_in_use(folder: Path) -> bool:
    """Whether runs currently share a server of this data folder, which ends with the last of them."""
    return (folder / RUN_LOCK).exists() and not _is_unused(folder / RUN_LOCK)


def serve(path: str, words: list[str]) -> int:
    """Serve until no run is left: the main function of the process that is started for runs."""
    from sightline.cli.program import main

    def end_when_unused() -> None:
        file = os.open(path, os.O_RDWR)
        lock(file, waits=True)
        os.kill(os.getpid(), signal.SIGTERM)  # this process keeps the lock, so that a new run waits for its end

    threading.Thread(target=end_when_unused, daemon=True).start()
    return main(["serve", "--no-open", *words])


def _start_server(
    folder: Path, words: Sequence[str], environment: Mapping[str, str]
) -> tuple["subprocess.Popen[bytes]", int]:
    """Start a server and wait until it listens; returns it and its port. Ctrl-C in this terminal does not reach it."""
    log = folder / "run.log"
    program = "import sys; from sightline.cli.shared_server import serve; sys.exit(serve(sys.argv[1], sys.argv[2:]))"
    command = [sys.executable, "-c", program, str(folder / RUN_LOCK), *words]
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as errors:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=dict(environment),
            **own_group(),
        )
    assert child.stdout is not None
    with child.stdout:
        link = child.stdout.readline().decode().strip()
    port = urlsplit(link).port
    if port is None:
        child.wait()
        lines = log.read_text("utf-8", "replace").splitlines()
        last = lines[-1] if lines else "there is no output"
        error = next((line.partition("]: ")[2] for line in lines if line.startswith("error[")), last)
        hints = (line.removeprefix("hint: ") for line in lines if line.startswith("hint: "))
        hint = next(hints, "Try `sightline serve` to see more.")
        raise Fault(Code.CONFIG, f"the server did not start: {error}", hint=hint)
    return child, port


def _is_unused(path: Path) -> bool:
    """Whether no other run is left, so that the server gets the lock or already has it."""
    with hold_lock(path, waits=False) as is_mine:
        if is_mine:
            return True
    with hold_lock(path, is_shared=True, waits=False) as is_shared:
        return not is_shared


_RULES, _INTERCEPTION, _EVENTS = "/api/rules", "/api/interception", "/api/events?frames=0"
_TIMEOUT_S = 10


@contextmanager
def hold_session(server: RunningServer, session: str, folder: Path) -> Iterator[None]:
    """Hold every request of this session, before any other rule applies. If interception is off, its mode is set to
    `rules`, in which only requests that match a rule are held. `folder` is the server's data folder."""
    rule: Json = {
        "filter": write_expression(TextTerm("session", literal(session))),
        "action": "hold",
        "phase": "request",
        "once": False,
        "timeout_s": None,
        "on_timeout": "send",
    }
    api = _HoldApi(server, folder)
    api.change(lambda rules: [rule, *_without(rule, rules)])
    mode = api.request("GET", _INTERCEPTION)
    if isinstance(mode, dict) and mode.get("mode") == "off":
        api.request("PUT", _INTERCEPTION, {"mode": "rules"})
        say("note: interception was off; now the rules decide.")
    try:
        with _telling_links(api, session):
            yield
    finally:
        try:
            api.change(lambda rules: _without(rule, rules))
        except Fault as fault:  # the command has ended, and its status is what counts
            say(f"note: the rule for session {session} is still there: {fault.message}")


@contextmanager
def _telling_links(api: "_HoldApi", session: str) -> Iterator[None]:
    """Print the link of each held request of this session. If the server's events cannot be read, requests are still
    held."""
    try:
        connection, facts = api.facts()
    except (OSError, http.client.HTTPException):
        yield
        return
    thread = threading.Thread(target=_print_links, args=(facts, api.server, session), daemon=True)
    thread.start()
    try:
        yield
    finally:
        # The thread waits in a read, which ends when the socket is shut down; only closing it would not wake the
        # thread.
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)
        thread.join(_TIMEOUT_S)
        facts.close()
        connection.close()


def _print_links(facts: http.client.HTTPResponse, server: RunningServer, session: str) -> None:
    own: set[str] = set()
    with suppress(OSError, ValueError, http.client.HTTPException):
        while line := facts.readline():
            fact = json.loads(line[5:]) if line.startswith(b"data:") else None
            if not isinstance(fact, dict):
                continue
            exchange, kind = str(fact.get("exchange", "")), fact.get("kind")
            if kind == "received" and fact.get("session") == session:
                own.add(exchange)
            elif kind == "held" and exchange in own:
                say(f"note: held until you decide: {server.link_to(exchange)}")


def _without(rule: Json, rules: list[Json]) -> list[Json]:
    return [each for each in rules if each != rule]


class _HoldApi:
    """The server's API calls for rules and facts."""

    def __init__(self, server: RunningServer, folder: Path) -> None:
        self.server = server
        self._folder = folder

    def change(self, how: Callable[[list[Json]], list[Json]]) -> None:
        """Replace the rules, one process at a time. If two processes read the same list, the rule of one would be lost
        and its requests would not be held."""
        with hold_lock(self._folder / "run.rules"):
            rules = self.request("GET", _RULES)
            if not isinstance(rules, list):
                raise _not_understood(f"GET {_RULES} is no list")
            self.request("PUT", _RULES, how(rules))

    def facts(self) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Every fact from now on, as server-sent events."""
        at = urlsplit(self.server.url)
        connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=_TIMEOUT_S)
        try:
            connection.request("GET", _EVENTS, headers={"authorization": f"Bearer {self.server.token}"})
            answer = connection.getresponse()
            # The first line means that nothing is missed from here on. A connection that closes after its answer sends
            # no facts.
            if answer.status != 200 or not answer.readline() or connection.sock is None:
                raise http.client.HTTPException
            connection.sock.settimeout(None)
        except BaseException:
            connection.close()
            raise
        return connection, answer

    def request(self, method: str, path: str, value: Json = None) -> Json:
        try:
            data = call_server(self.server, method, path, value, timeout=_TIMEOUT_S)
            found: Json = json.loads(data) if data.strip() else None
        except (Fault, ValueError) as error:
            raise _not_understood(f"{method} {path}: {error}") from None
        return found


def _not_understood(why: str) -> Fault:
    hint = "Perhaps the running server is older. Stop it and try again, or leave out --hold."
    return Fault(Code.USAGE, f"the server does not accept a rule for this session: {why}", hint=hint)
