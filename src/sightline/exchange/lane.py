"""Lanes: what follows from the head of a request, computed once and kept.

A client sends the same headers to the same path with all of its requests. Its identity, the secrets to redact, the
route of each model and the head for the provider are therefore looked up; only the body is new.
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
    """The route of the requests with one head and model. `sent` is the outgoing request without its body, by whether
    the body is the client's own; `translated` is the same for translated bodies, by whether a stream is requested;
    `templates` are translated bodies without their texts; `outgoing` is how the last request was sent."""

    __slots__ = ("choice", "outgoing", "sent", "templates", "translated")

    def __init__(self, choice: ModelChoice) -> None:
        self.choice = choice
        self.sent: dict[bool, HttpRequest] = {}
        self.translated: dict[bool, HttpRequest] = {}
        self.templates = BodyTemplates()
        self.outgoing: Outgoing | None = None


class Lane:
    """One head with its routes, as computed for the first request."""

    __slots__ = ("_routes", "caller")

    def __init__(self, request: ClientRequest, secrets: tuple[str, ...]) -> None:
        self.caller: Caller = identify_caller(request.headers, request.path, request.query, secrets)
        self._routes: dict[tuple[str, str, str], LaneRoute] = {}

    def route_for(self, request: ClientRequest, router: Router) -> LaneRoute:
        """The route of this request. The router is asked only for the first request like it."""
        key = request.dialect, request.provider, request.model
        route = self._routes.get(key)
        if route is None:
            route = LaneRoute(router.route_for(request))
            if len(self._routes) >= _MOST_MODELS:
                self._routes.clear()
            self._routes[key] = route
        return route


class Lanes:
    """The lanes of a relay. `secrets` are its configured keys."""

    def __init__(self, secrets: tuple[str, ...]) -> None:
        self._secrets = secrets
        self._known: dict[object, Lane] = {}

    def lane_of(self, request: ClientRequest) -> Lane:
        """The lane of a request, by the server's object for its head, or by the contents of the head if there is
        none."""
        key: object = request.head
        if key is None:
            key = request.headers, request.path, request.query, request.upstream
        lane = self._known.get(key)
        if lane is None:
            if len(self._known) >= MOST_LANES:
                self._known.clear()
            lane = self._known[key] = Lane(request, self._secrets)
        return lane
