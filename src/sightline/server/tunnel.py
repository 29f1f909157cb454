"""Traffic that is passed on unchanged and not recorded: plain-text requests to any host, logins, and tunnels, which
pass bytes between a client and its host.
"""

import asyncio
from typing import Final

from sightline.errors import Code, Fault
from sightline.exchange.client_request import text_headers
from sightline.exchange.outbound import end_to_end
from sightline.model.header_names import OF_A_CONNECTION
from sightline.transport.http import faults
from sightline.transport.http.client import HttpClient
from sightline.transport.http.connection import abort
from sightline.transport.http.dialling import Trust, connect_socket, connecting_to, dial_tunnel
from sightline.transport.http.target import Origin, Proxies, Timeouts, ip_of
from sightline.web.asgi import AsgiScope, ClientWriter, Receive, WebResponse, response_body, response_start
from sightline.web.bodies import MOST_BYTES, read_bytes
from sightline.wire.call import HttpRequest

_CONNECT_SECONDS = 30.0


class TunnelEnd(asyncio.Protocol):
    """One end of a tunnel; `passed` is how many bytes it received. `other` is set before anything arrives."""

    other: "TunnelEnd"

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.passed = 0
        self.has_ended = False
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.passed += len(data)
        self.other.transport.write(data)

    def eof_received(self) -> bool:
        """This side sends no more, but may still read, and so may the other. When neither sends more, both are
        closed."""
        self.has_ended = True
        if self.other.has_ended:
            return False
        other = self.other.transport
        if not other.is_closing() and other.can_write_eof():
            other.write_eof()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the other end too. A reset is passed on as a reset."""
        if not self.closed.done():
            self.closed.set_result(None)
        if exc is not None:
            abort(self.other.transport)
        else:
            self.other.transport.close()

    def pause_writing(self) -> None:
        """This end accepts no more data for now, so the other is not read."""
        self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if not self.other.transport.is_closing():
            self.other.transport.resume_reading()


async def join(client: asyncio.Transport, host: asyncio.Transport, first: bytes) -> tuple[int, int]:
    """Pass bytes in both directions until either end closes, beginning with `first` from the client; returns how many
    were sent to the host and how many received from it. Cancelling this call closes both ends."""
    near, far = TunnelEnd(client), TunnelEnd(host)
    near.other, far.other = far, near
    try:
        for end in (near, far):
            end.transport.set_protocol(end)
        if first:
            near.data_received(first)
        for end in (near, far):
            end.transport.resume_reading()
        await asyncio.wait((near.closed, far.closed), return_when=asyncio.FIRST_COMPLETED)
    finally:
        client.close()
        host.close()
    return near.passed, far.passed


async def connect_to(origin: Origin, proxies: Proxies, trust: Trust) -> asyncio.Transport:
    """A connection to the host, through the proxy that is configured for it, which is not read yet. Raises a Fault if
    there is none, and for a host that is this machine."""
    loop = asyncio.get_running_loop()
    refuse_own_machine(origin.host, origin.place)
    proxy = proxies.for_origin(origin)
    if proxy is not None:
        transport = await dial_tunnel(loop, origin, proxy, trust, _CONNECT_SECONDS)
    else:
        try:
            async with connecting_to(origin.place, _CONNECT_SECONDS):
                transport = await _connect(loop, origin)
        except OSError as error:
            raise faults.not_connected(error, origin.place, _CONNECT_SECONDS) from None
    transport.pause_reading()
    return transport


async def _connect(loop: asyncio.AbstractEventLoop, origin: Origin) -> asyncio.Transport:
    raw = await connect_socket(loop, origin.host, origin.port)
    try:
        # Only now the address is known: anyone's name may resolve to this machine.
        refuse_own_machine(raw.getpeername()[0], origin.place)
        transport, _ = await loop.create_connection(asyncio.Protocol, sock=raw)
    except BaseException:
        raw.close()
        raise
    return transport


def refuse_own_machine(host: str, place: str) -> None:
    """Raise a fault for an address of this machine or its local link: services there trust every caller."""
    plain = host.rstrip(".").lower()
    is_here = plain == "localhost" or plain.endswith(".localhost")
    address = ip_of(plain.partition("%")[0])
    if address is not None:
        address = getattr(address, "ipv4_mapped", None) or address
        is_here = address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast
    if is_here:
        hint = "Reach it without the proxy: name it in NO_PROXY."
        raise Fault(Code.PERMISSION, f"{place} is this machine, to which no tunnel leads", hint=hint, status=403)


_WITHOUT_BODY: Final = frozenset({204, 304})
_OF_A_CONNECTION: Final = frozenset(name.encode() for name in OF_A_CONNECTION)


async def forward(client: HttpClient, origin: str, scope: AsgiScope, receive: Receive, send: ClientWriter) -> None:
    """Send this request to the origin, and its response back as it arrives. A failure is a plain-text response: which
    API this is, if any, is not known here."""
    query = scope["query_string"]
    url = f"{origin}{scope['raw_path'].decode('latin-1')}{'?' if query else ''}{query.decode('latin-1')}"
    try:
        body = await read_bytes(receive, MOST_BYTES)
        passed = tuple(end_to_end(text_headers(scope["headers"]), with_cookies=True))
        request = HttpRequest(scope["method"], url, passed, body, is_passed_on=True)
        response = await client.send(request, Timeouts())
    except Fault as fault:
        text = f"{fault.message}. {fault.hint}\n".encode()
        await WebResponse(fault.status or 502, text, [(b"content-type", b"text/plain; charset=utf-8")]).to(send)
        return
    async with response:
        gone = _OF_A_CONNECTION | ({b"content-length"} if response.status in _WITHOUT_BODY else set())
        kept = [each for each in response.headers if each[0].lower() not in gone]
        await send(response_start(response.status, kept))
        async for piece in response:
            await send(response_body(piece, more=True))
        await send(response_body(b"", more=False))
