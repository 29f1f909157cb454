"""Requests that are passed on as they are and not recorded: those in clear text to any host, and logins."""

from typing import Final

from sightline.errors import Fault
from sightline.exchange.outbound import end_to_end
from sightline.model.header_names import OF_A_CONNECTION
from sightline.transport.http.client import HttpClient
from sightline.transport.http.target import Timeouts
from sightline.web.asgi import AsgiScope, ClientWriter, Receive, WebResponse, response_body, response_start
from sightline.web.bodies import MOST_BYTES, read_bytes
from sightline.wire.call import HttpRequest

_WITHOUT_BODY: Final = frozenset({204, 304})
_OF_A_CONNECTION: Final = frozenset(name.encode() for name in OF_A_CONNECTION)


async def forward(client: HttpClient, origin: str, scope: AsgiScope, receive: Receive, send: ClientWriter) -> None:
    """Send this request to the origin, and its answer back as it comes. A failure is an answer in plain text: whose API
    this is, if any, is not known here."""
    query = scope["query_string"]
    url = f"{origin}{scope['raw_path'].decode('latin-1')}{'?' if query else ''}{query.decode('latin-1')}"
    headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
    try:
        body = await read_bytes(receive, MOST_BYTES)
        passed = tuple(end_to_end(headers, with_cookies=True))
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
