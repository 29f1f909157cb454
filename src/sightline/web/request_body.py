"""The JSON body of an API call."""

from typing import Final

from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.web.asgi import Receive
from sightline.wire.jsontext import decode

MOST_BYTES: Final = 64 * 1024 * 1024
MOST_WITH_BODY: Final = 2 * MOST_BYTES
"""The limit for a call that holds a whole request body as a JSON string."""


async def order(receive: Receive, most: int = MOST_BYTES) -> JsonObject:
    """The body as a JSON object; an empty body is an empty object."""
    wanted = await read_json(receive, most)
    if not isinstance(wanted, dict):
        raise Fault(Code.INVALID_REQUEST, "the body is not a JSON object", hint="Send one JSON object, or nothing.")
    return wanted


async def read_json(receive: Receive, most: int = MOST_BYTES) -> Json:
    """The body as JSON; an empty body is an empty object."""
    data = await read_bytes(receive, most)
    return decode(data) if data.strip() else {}


async def read_bytes(receive: Receive, most: int) -> bytes:
    """The body as bytes."""
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Fault(Code.CANCELLED, "the request was aborted", hint="Send it again.")
        piece = message.get("body", b"")
        size += len(piece)
        if size <= most:  # the rest is heard all the same: most clients look for an answer only behind it
            pieces.append(piece)
        if not message.get("more_body", False):
            break
    if size > most:
        message = f"the body is larger than {most >> 20} MiB"
        raise Fault(Code.REQUEST_TOO_LARGE, message, hint="Send less.", status=413)
    return b"".join(pieces)
