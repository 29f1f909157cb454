"""What a call of the API wants to be done: the JSON object in its body."""

from typing import Final

from sightline.errors import Code, Fault
from sightline.model.json import JsonObject
from sightline.server.asgi import Receive
from sightline.wire.jsontext import decode

MOST_BYTES: Final = 128 * 1024 * 1024
"""A request body of the most that the gateway takes, written as a JSON string."""


async def order(receive: Receive) -> JsonObject:
    """The object; none is an empty one."""
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Fault(Code.CANCELLED, "the request broke off", hint="Send it again.")
        piece = message.get("body", b"")
        size += len(piece)
        if size <= MOST_BYTES:  # the rest is heard all the same: most clients look for an answer only behind it
            pieces.append(piece)
        if not message.get("more_body", False):
            break
    if size > MOST_BYTES:
        told = f"the body is larger than {MOST_BYTES >> 20} MiB"
        raise Fault(Code.REQUEST_TOO_LARGE, told, hint="Send less.", status=413)
    data = b"".join(pieces)
    wanted = decode(data) if data.strip() else {}
    if not isinstance(wanted, dict):
        raise Fault(Code.INVALID_REQUEST, "the body is no JSON object", hint="Send one JSON object, or nothing.")
    return wanted
