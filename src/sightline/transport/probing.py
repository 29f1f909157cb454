"""Whether a server on this machine answers: one short question, which changes nothing there."""

from sightline.errors import Fault
from sightline.transport.http.client import HttpClient
from sightline.transport.http.target import target
from sightline.transport.http.timeouts import Timeouts
from sightline.wire.call import HttpRequest

_SHORT = Timeouts(connect=1.0, first_byte=2.0, idle=2.0)
_WANTS_KEY = (401, 403)


async def probe(client: HttpClient, request: HttpRequest) -> str:
    """Ask for the list of models. Nothing where it comes, or where only a key is missing; else why it does not."""
    place = target(request.url).origin.place
    try:
        async with await client.send(request, _SHORT, direct=True) as response:
            status = response.status
    except Fault as fault:
        details = fault.details
        is_refused = isinstance(details, dict) and details.get("kind") == "refused"
        return f"Nothing listens at {place}." if is_refused else f"{place} does not answer: {fault.message}."
    if status // 100 == 2 or status in _WANTS_KEY:
        return ""
    return f"What listens at {place} has no list of models (status {status})."
