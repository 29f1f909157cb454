"""A lane: what follows from the head of a request, worked out once and kept.

A client sends the same headers to the same address with all of its requests. So who it is, what has to be left out of
the record, which provider a model leads to and what is sent to that provider are looked up, and only the body is new.
"""

from sightline.catalog.choose import ModelChoice
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.redaction import Caller, identify_caller
from sightline.exchange.routing import has_credential
from sightline.wire.call import HttpRequest

MOST_LANES = 512
_MOST_MODELS = 256


class Lane:
    """One head. `routes` are the choices by dialect, provider and model of a request; `sent` what goes out for a choice
    and whether the body is the client's own, without that body. What is worked out for the first one is kept here."""

    __slots__ = ("caller", "has_credential", "routes", "sent")

    def __init__(self, request: ClientRequest, secrets: tuple[str, ...]) -> None:
        self.caller: Caller = identify_caller(request.headers, request.path, request.query, secrets)
        self.has_credential = has_credential(request)
        self.routes: dict[tuple[str, str, str], ModelChoice] = {}
        self.sent: dict[tuple[int, bool], tuple[ModelChoice, HttpRequest]] = {}

    def keep_route(self, request: ClientRequest, choice: ModelChoice) -> None:
        """Requests like this one lead there."""
        if len(self.routes) >= _MOST_MODELS:
            self.routes.clear()
        self.routes[request.dialect, request.provider, request.model] = choice

    def keep_sent(self, choice: ModelChoice, request: HttpRequest, *, is_untouched: bool) -> None:
        """This goes out for that choice."""
        if len(self.sent) >= _MOST_MODELS:
            self.sent.clear()
        # While the choice is held here, nothing else has its id.
        self.sent[id(choice), is_untouched] = choice, request


class Lanes:
    """The lanes of one relay; `secrets` are its configured keys."""

    def __init__(self, secrets: tuple[str, ...]) -> None:
        self._secrets = secrets
        self._known: dict[object, Lane] = {}

    def lane_of(self, request: ClientRequest) -> Lane:
        """The lane of a request: by the object that its server has for its head, else by what the head says."""
        key: object = request.head
        if key is None:
            key = request.headers, request.path, request.query, request.upstream
        lane = self._known.get(key)
        if lane is None:
            if len(self._known) >= MOST_LANES:
                self._known.clear()
            lane = self._known[key] = Lane(request, self._secrets)
        return lane
