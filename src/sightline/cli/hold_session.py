"""`sightline run --hold`: a rule that holds the requests of one session while its client runs."""

import fcntl
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from sightline.cli.shared_server import lock_file
from sightline.cli.terminal import say
from sightline.errors import Code, Fault
from sightline.exchange.remote_relay import RunningServer
from sightline.filters.expression import TextTerm
from sightline.filters.pattern import literal
from sightline.filters.writing import write_expression
from sightline.model.json import Json

Change = Callable[[list[Json]], list[Json]]
_RULES, _INTERCEPTION, _EVENTS = "/api/rules", "/api/interception", "/api/events"
_CHANGING = "run.rules"
_PATIENCE = 10


@contextmanager
def hold_session(url: str, token: str, session: str, folder: Path) -> Iterator[None]:
    """Hold every request of this session, before any other rule applies. If interception is off, the rules are switched
    on; by themselves they would hold nothing else. `folder` is the server's data folder."""
    rule = _rule(session)
    server = _Server(url, token, folder)
    server.change(lambda rules: [rule, *_without(rule, rules)])
    mode = server.request("GET", _INTERCEPTION)
    if isinstance(mode, dict) and mode.get("mode") == "off":
        server.request("PUT", _INTERCEPTION, {"mode": "rules"})
        say("note: interception was off; now the rules decide.")
    try:
        with _telling_links(server, session):
            yield
    finally:
        try:
            server.change(lambda rules: _without(rule, rules))
        except Fault as fault:  # the command has ended, and its status is what counts
            say(f"note: the rule for session {session} is still there: {fault.message}")


@contextmanager
def _telling_links(server: "_Server", session: str) -> Iterator[None]:
    """Print the link of each held request of this session. If the server's events cannot be read, requests are held all
    the same."""
    try:
        connection, facts = server.facts()
    except (OSError, http.client.HTTPException):
        yield
        return
    thread = threading.Thread(target=_tell_links, args=(facts, server, session), daemon=True)
    thread.start()
    try:
        yield
    finally:
        # The thread waits in a read, which ends when the socket does; to close it alone would not wake it.
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)
        thread.join(_PATIENCE)
        facts.close()
        connection.close()


def _tell_links(facts: http.client.HTTPResponse, server: "_Server", session: str) -> None:
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


def _rule(session: str) -> Json:
    return {
        "filter": write_expression(TextTerm("session", literal(session))),
        "action": "hold",
        "phase": "request",
        "once": False,
        "timeout_s": None,
        "on_timeout": "send",
    }


def _without(rule: Json, rules: list[Json]) -> list[Json]:
    return [each for each in rules if each != rule]


class _Server:
    """The API of the server that the client talks to."""

    def __init__(self, url: str, token: str, folder: Path) -> None:
        self._at = urlsplit(url)
        self._token = token
        self._folder = folder

    def change(self, how: Change) -> None:
        """Replace the rules, one process at a time. If two read the same list, the rule of one would be lost and its
        requests would not be held."""
        with lock_file(self._folder / _CHANGING, fcntl.LOCK_EX):
            rules = self.request("GET", _RULES)
            if not isinstance(rules, list):
                raise _not_understood(f"GET {_RULES} is no list")
            self.request("PUT", _RULES, how(rules))

    def link_to(self, exchange: str) -> str:
        """The address of an exchange on the page."""
        return RunningServer(f"http://{self._at.netloc}", self._token).link_to(exchange)

    def facts(self) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Every fact from now on, as server-sent events."""
        connection = http.client.HTTPConnection(self._at.hostname or "", self._at.port, timeout=_PATIENCE)
        try:
            connection.request("GET", _EVENTS, headers={"authorization": f"Bearer {self._token}"})
            answer = connection.getresponse()
            # The first line says that nothing is missed from here on. A connection that is closed behind its answer
            # tells no facts.
            if answer.status != 200 or not answer.readline() or connection.sock is None:
                raise http.client.HTTPException
            connection.sock.settimeout(None)
        except BaseException:
            connection.close()
            raise
        return connection, answer

    def request(self, method: str, path: str, value: Json = None) -> Json:
        """Call the API."""
        connection = http.client.HTTPConnection(self._at.hostname or "", self._at.port, timeout=_PATIENCE)
        headers = {"authorization": f"Bearer {self._token}", "content-type": "application/json"}
        body = None if method == "GET" else json.dumps(value)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            said = answer.read()
            if answer.status >= 400:
                raise _not_understood(f"{method} {path} returned status {answer.status}")
            value: Json = json.loads(said) if said.strip() else None
            return value
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _not_understood(f"{method} {path}: {error}") from None
        finally:
            connection.close()


def _not_understood(why: str) -> Fault:
    hint = "Perhaps the running server is older. Stop it and try again, or leave out --hold."
    return Fault(Code.USAGE, f"the server does not accept a rule for this session: {why}", hint=hint)
