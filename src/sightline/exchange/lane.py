"""A lane: what follows from the head of a request, worked out once and kept.

A client sends the same headers to the same address with all of its requests. So who it is, what has to be left out of
the record, which provider a model leads to and what is sent to that provider are looked up, and only the body is new.
"""

from sightline.catalog.choose import ModelChoice
from sightline.dialects.body_templates import BodyTemplates
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.redaction import Caller, identify_caller
from sightline.exchange.routing import Router
from sightline.transport.sender import Outgoing
from sightline.wire.call import HttpRequest

MOST_LANES = 512
_MOST_MODELS = 256


class LaneRoute:
    """Where the requests of one head for one model go. `sent` is what goes out, without a body, where the body is the
    client's own and where it is not; `translated` the same for bodies in another dialect, where a stream is asked for
    and where it is not, and `templates` those bodies but for their texts; `outgoing` how it was sent last."""

    __slots__ = ("choice", "outgoing", "sent", "templates", "translated")

    def __init__(self, choice: ModelChoice) -> None:
        self.choice = choice
        self.sent: dict[bool, HttpRequest] = {}
        self.translated: dict[bool, HttpRequest] = {}
        self.templates = BodyTemplates()
        self.outgoing: Outgoing | None = None


class Lane:
    """One head, with its routes. What is worked out for the first request is kept here."""

    __slots__ = ("_routes", "caller")

    def __init__(self, request: ClientRequest, secrets: tuple[str, ...]) -> None:
        self.caller: Caller = identify_caller(request.headers, request.path, request.query, secrets)
        self._routes: dict[tuple[str, str, str], LaneRoute] = {}

    def route_for(self, request: ClientRequest, router: Router) -> LaneRoute:
        """Where this request goes; the router is asked for the first one like it."""
        key = request.dialect, request.provider, request.model
        route = self._routes.get(key)
        if route is None:
            route = LaneRoute(router.route_for(request))
            if len(self._routes) >= _MOST_MODELS:
                self._routes.clear()
            self._routes[key] = route
        return route


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
