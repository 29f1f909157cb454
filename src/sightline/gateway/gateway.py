"""The gateway: what a client asks is understood, given to the relay, and the answer handed back as it comes."""

import logging
from collections.abc import Awaitable, Callable

from sightline.catalog.catalog import Catalog
from sightline.catalog.provider import Provider
from sightline.dialects.faults import status_of
from sightline.errors import Fault
from sightline.exchange.client_response import ClientResponse, RequestHandler
from sightline.gateway.models import for_codex, list_models, model_json, model_list_json, one
from sightline.gateway.paths import GatewayPath, caller_of, parse_path
from sightline.gateway.refusal import no_such_path, no_websocket, refusal_response, wrong_method
from sightline.gateway.request_reading import ClientGoneError, read_request
from sightline.model.json import JsonObject
from sightline.web.asgi import AsgiScope, Receive, Send, WebResponse, header, response_body, response_start
from sightline.wire.jsontext import encode

_LOG = logging.getLogger("sightline.gateway")
_READING = ("GET", "HEAD")


class Gateway:
    """Serves every path that is not the workbench's. `elapsed` is the clock of the relay."""

    def __init__(
        self, relay: RequestHandler, catalog: Catalog, has_key: Callable[[Provider], bool], elapsed: Callable[[], float]
    ) -> None:
        self._relay = relay
        self._catalog = catalog
        self._has_key = has_key
        self._elapsed = elapsed

    def serve(self, scope: AsgiScope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer one request, once this is awaited."""
        received = self._elapsed()
        place = parse_path(scope["raw_path"].decode("latin-1"))
        if place.kind == "ask" and scope["method"] == "POST":
            return self._ask(scope, receive, send, place, received)
        return self._beside(scope, place).to(send)

    def refusal(self, scope: AsgiScope, fault: Fault) -> WebResponse:
        """A request that is not even looked at, in its own dialect."""
        place = parse_path(scope["raw_path"].decode("latin-1"))
        return refusal_response(_caller(scope, place), fault)

    async def _ask(self, scope: AsgiScope, receive: Receive, send: Send, place: GatewayPath, received: float) -> None:
        try:
            request = await read_request(scope, receive, place, received)
        except ClientGoneError:
            return
        except Fault as fault:
            _LOG.warning("refused %s %s: %s: %s", scope["method"], place.path, fault.code, fault.message)
            is_unread = status_of(fault) == 413
            await refusal_response(place.dialect, fault, headers=[(b"connection", b"close")] if is_unread else None).to(
                send
            )
            return
        async with await self._relay.start(request) as relayed:
            await _hand_over(relayed, send)

    def _beside(self, scope: AsgiScope, place: GatewayPath) -> WebResponse:
        """What is not for a model."""
        method = scope["method"]
        if place.kind == "unknown":
            return refusal_response(_caller(scope, place), no_such_path(method, place.path))
        if place.kind == "ask":
            if place.dialect == "openai-responses" and header(scope["headers"], b"upgrade").lower() == "websocket":
                return no_websocket()
            return wrong_method(place.dialect, method, "POST")
        if method == "POST" and ":" in place.model:  # how one dialect asks a model for something
            return refusal_response(place.dialect or "gemini", no_such_path(method, place.path))
        if method not in _READING:
            return wrong_method(_caller(scope, place), method, "GET")
        return self._models(scope, place)

    def _models(self, scope: AsgiScope, place: GatewayPath) -> WebResponse:
        spoken = _caller(scope, place)
        try:
            models = list_models(self._catalog, self._has_key, place.provider)
            if place.kind == "model":
                return _json(model_json(one(models, place.model), spoken))
        except Fault as fault:
            return refusal_response(spoken, fault)
        is_codex = b"client_version=" in scope["query_string"]
        return _json(for_codex() if is_codex else model_list_json(models, spoken))


async def _hand_over(relayed: ClientResponse, send: Send) -> None:
    """The answer as it comes. Its last byte leaves after the iteration's end, because only then all is recorded: where
    the length is told, the last piece has it; else the transfer has an end of its own."""
    await send(response_start(relayed.status, relayed.headers))
    missing = next((int(value) for name, value in relayed.headers if name.lower() == b"content-length"), None)
    try:
        if missing is None:
            async for piece in relayed:
                await send(response_body(piece, more=True))
            await send(response_body(b"", more=False))
            return
        last = b""
        async for piece in relayed:
            if last:
                await send(response_body(last, more=True))
            last = piece
            missing -= len(piece)
        await send(response_body(last, more=missing > 0))
    except Fault as fault:
        # It is recorded. What broke off must not look whole: without an end, the server hangs up.
        _LOG.info("%s broke off: %s", relayed.exchange, fault.message)


def _caller(scope: AsgiScope, place: GatewayPath) -> str:
    return caller_of(place, scope["headers"], scope["query_string"].decode("latin-1"))


def _json(value: JsonObject) -> WebResponse:
    return WebResponse(200, encode(value), [(b"content-type", b"application/json")])
