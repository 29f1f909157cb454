"""`sightline run --hold`: a rule that holds the requests of one session, for as long as its client runs."""

import fcntl
import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from sightline.cli.shared_server import locked
from sightline.cli.terminal import say
from sightline.errors import Code, Fault
from sightline.filter.expression import Named
from sightline.filter.pattern import literal
from sightline.filter.written import written
from sightline.model.json import Json

Change = Callable[[list[Json]], list[Json]]
_RULES, _INTERCEPTION = "/api/rules", "/api/interception"
_CHANGING = "run.rules"
_PATIENCE = 10


@contextmanager
def held_session(url: str, token: str, session: str, folder: Path) -> Iterator[None]:
    """Every request of this session is held, before any other rule is asked. Where interception is off, the rules are
    switched on, because they would not hold anything else. `folder` is the server's data folder."""
    rule = _rule(session)
    server = _Server(url, token, folder)
    server.change(lambda rules: [rule, *_without(rule, rules)])
    mode = server.asked("GET", _INTERCEPTION)
    if isinstance(mode, dict) and mode.get("mode") == "off":
        server.asked("PUT", _INTERCEPTION, {"mode": "rules"})
        say("note: interception was off; now the rules decide.")
    try:
        yield
    finally:
        try:
            server.change(lambda rules: _without(rule, rules))
        except Fault as fault:  # the command has ended, and its status is what counts
            say(f"note: the rule for session {session} is still there: {fault.message}")


def _rule(session: str) -> Json:
    return {
        "filter": written(Named("session", literal(session))),
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
        """Put other rules in the place of those that are there. One run at a time: of two that read the same list, the
        rule of one would be lost, and its requests would leave without being held."""
        with locked(self._folder / _CHANGING, fcntl.LOCK_EX):
            rules = self.asked("GET", _RULES)
            if not isinstance(rules, list):
                raise _not_understood(f"GET {_RULES} is no list")
            self.asked("PUT", _RULES, how(rules))

    def asked(self, method: str, path: str, value: Json = None) -> Json:
        """What the API answers."""
        connection = http.client.HTTPConnection(self._at.hostname or "", self._at.port, timeout=_PATIENCE)
        headers = {"authorization": f"Bearer {self._token}", "content-type": "application/json"}
        body = None if method == "GET" else json.dumps(value)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            said = answer.read()
            if answer.status >= 400:
                raise _not_understood(f"{method} {path} is answered with {answer.status}")
            told: Json = json.loads(said) if said.strip() else None
            return told
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _not_understood(f"{method} {path}: {error}") from None
        finally:
            connection.close()


def _not_understood(why: str) -> Fault:
    hint = "Is it an older Sightline that runs there? End it and run this again, or leave --hold out."
    return Fault(Code.USAGE, f"the server does not take a rule for this session: {why}", hint=hint)
