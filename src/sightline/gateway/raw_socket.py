"""Sockets that are passed through: Realtime, Gemini Live, and any other below a provider's address.

Every message is passed on unchanged and in order, and is recorded up to the limit; so are close codes and reasons.
While one side is slow, the other is not read.
"""

import asyncio
import logging
from typing import Final, cast

from sightline.dialects.endpoint import dialect_of_model_paths
from sightline.errors import Fault
from sightline.exchange.client_request import ClientRequest, text_headers
from sightline.exchange.client_response import headers_for_client, without
from sightline.exchange.raw_recorder import SocketRecord, protocols_for, socket_cut
from sightline.exchange.relay import Relay
from sightline.gateway.paths import GatewayPath, caller_of
from sightline.gateway.refusal import refusal_response
from sightline.gateway.web_socket import (
    GOING_AWAY,
    ClientSocket,
    SocketEvents,
    headers_for_provider,
    refuse_handshake,
    subprotocols,
)
from sightline.transport.web_socket import DialledSocket, RefusedSocket
from sightline.web.asgi import AsgiScope, ClientWriter, Upgradable, WebResponse

_LOG = logging.getLogger("sightline.gateway")
_OF_SOCKET: Final = (b"sec-websocket-", b"upgrade", b"connection")
_GOOGLE: Final = "/ws/google"
_ABNORMAL: Final = 1006
_INTERNAL_ERROR: Final = 1011


async def pass_socket(
    relay: Relay, scope: AsgiScope, send: ClientWriter, place: GatewayPath, received: float, longest: int
) -> None:
    """Serve one such socket to its end."""
    headers, query = scope["headers"], scope["query_string"].decode("latin-1")
    spoken = dialect_of_model_paths() if place.path.startswith(_GOOGLE) else caller_of(place, headers, query)
    refused = refuse_handshake(scope, spoken)
    if refused is not None:
        await refused.to(send)
        return
    request = ClientRequest(
        dialect=spoken,
        body=b"",
        headers=text_headers(headers_for_provider(headers)),
        path=place.path,
        query=query,
        is_stream=True,
        provider=place.provider,
        session=place.session,
        received=received,
        transport="websocket",
        method="GET",
        upstream=scope["upstream"].origin if "upstream" in scope else "",
    )
    try:
        choice, handshake, record = await relay.raw_socket(request)
    except Fault as fault:
        await refusal_response(spoken, fault).to(send)
        return
    record.begin(choice, handshake.url)
    offered = protocols_for(choice, subprotocols(headers))
    client = ClientSocket(scope, cast("Upgradable", send), longest)
    seconds = choice.provider.connect_timeout_ms / 1000
    try:
        dialled = await relay.dial_socket(
            handshake, seconds, protocols=offered, longest=longest, compresses=client.wants_compression
        )
    except RefusedSocket as error:
        record.refuse(error)
        _LOG.info("the provider refused a WebSocket with status %d", error.status)
        passed = headers_for_client(error.headers, relay.secrets)
        await WebResponse(error.status, without(error.body, relay.secrets), [*passed, (b"connection", b"close")]).to(
            send
        )
        return
    except Fault as fault:
        record.fail(fault)
        await refusal_response(spoken, fault).to(send)
        return
    except asyncio.CancelledError:
        record.cancel("client_gone")
        raise
    record.open(dialled.headers)
    passed = [
        each
        for each in headers_for_client(dialled.headers, relay.secrets)
        if not each[0].lower().startswith(_OF_SOCKET)
    ]
    client.accept(passed, dialled.subprotocol)
    await RawSocket(client, dialled, record).run()


class RawSocket(SocketEvents):
    """The two sides of one socket."""

    def __init__(self, client: ClientSocket, dialled: DialledSocket, record: SocketRecord) -> None:
        self._client = client
        self._dialled = dialled
        self._record = record
        client.events = self

    async def run(self) -> None:
        """Pass messages on until one side has closed."""
        self._dialled.begin(self)
        try:
            while (message := await self._client.next_message()) is not None:
                data, is_text = message
                self._record.add("client", data, is_text=is_text)
                self._dialled.socket.send(data, is_text=is_text)
                await self._dialled.until_writable()
        finally:
            # After the client's last messages, which may have arrived together with its close.
            code, reason = self._client.close_code or _ABNORMAL, self._client.close_reason
            if code == _ABNORMAL:
                self._record.cancel("client_gone")
            else:
                self._record.finish(code, reason)
            self._dialled.socket.close(code, reason)
        await self._client.until_lost()

    # --- the client ---

    def server_ends(self) -> None:
        self._record.cancel("shutdown")
        self._client.socket.close(GOING_AWAY, "Sightline is shutting down")
        self._dialled.socket.close(GOING_AWAY)

    def client_writable(self) -> None:
        self._dialled.socket.resume_reading()

    # --- the provider ---

    def on_message(self, data: bytes, *, is_text: bool) -> None:
        self._record.add("server", data, is_text=is_text)
        self._client.send(data, is_text=is_text)
        if self._client.is_paused:
            self._dialled.socket.pause_reading()

    def on_close(self, code: int, reason: str) -> None:
        """Close the client's socket with the same code; 1006 cannot be sent and becomes an internal error."""
        if code == _ABNORMAL:
            self._record.fail(socket_cut())
            self._client.socket.close(_INTERNAL_ERROR, "the connection to the provider was lost")
        else:
            self._record.finish(code, reason)
            self._client.socket.close(code, reason)
