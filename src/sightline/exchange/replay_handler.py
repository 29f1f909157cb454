"""A relay that has no provider: clients are answered out of the record, and nothing ever leaves."""

import logging

from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.client_response import ClientResponse, Headers
from sightline.exchange.recording.library import Library
from sightline.exchange.recording.likeness import lines_of, shorten
from sightline.exchange.recording.playback import Wait, not_recorded, play
from sightline.model.request import Request
from sightline.transport.clock import Clock
from sightline.wire.jsontext import decode

_LOG = logging.getLogger("sightline.replay")


class ReplayHandler:
    """Answers like a relay. `fast` leaves out the waits; else frames come as they came then.

    Nothing is recorded: `x-sightline-exchange` names the recording that answered.
    """

    def __init__(self, library: Library, clock: Clock, *, fast: bool = False) -> None:
        self._library = library
        self._clock = clock
        self._is_fast = fast
        level = logging.INFO if len(library) else logging.WARNING
        _LOG.log(level, "%d recordings answer clients, and nothing is sent to a provider", len(library))

    async def start(self, request: ClientRequest) -> ClientResponse:
        """The recorded answer to this request; a request without one is refused in the client's dialect."""
        started = self._clock.monotonic()
        try:
            lines = lines_of(request.dialect, request.body, request.model, counts=request.counts)
            recorded = await self._library.next(lines, request.dialect)
            if recorded is None:
                raise await no_recording(self._library, lines)
            parsed = Request() if request.counts else dialect(request.dialect).read_request(decode(request.body))
        except Fault as fault:
            _LOG.warning("%s: %s", fault.message, fault.hint)
            return not_recorded(fault, request)
        return await play(recorded, request, parsed, self._waiting(started), self._own(request, recorded.id))

    async def close(self, _grace: float) -> None:
        """What still plays goes on at full speed."""
        self._is_fast = True

    def _waiting(self, started: float) -> Wait:
        async def wait(after: float) -> None:
            left = started + after - self._clock.monotonic()
            if left > 0 and not self._is_fast:
                await self._clock.sleep(left)

        return wait

    def _own(self, request: ClientRequest, exchange: str) -> Headers:
        overhead = max(0.0, self._clock.monotonic() - request.received) * 1000
        return [
            (b"x-sightline-exchange", exchange.encode()),
            (b"x-sightline-overhead-ms", f"{overhead:.3f}".encode()),
            (b"x-sightline-replayed", b"1"),
        ]


async def no_recording(library: Library, lines: list[str]) -> Fault:
    """That nothing is recorded of this request, and what comes nearest to it."""
    nearest = await library.nearest(lines)
    hint = "Record it first: run the client once through `sightline serve` without --replay."
    if nearest is None:
        message = "there is no recording of this request, nor any other"
    else:
        title = shorten(nearest.summary.title)
        message = (
            f"there is no recording of this request; the nearest of {len(library)} is "
            f"{nearest.summary.id}{f' ({title})' if title else ''}, which differs (- recorded, + asked):\n"
            f"{nearest.difference}"
        )
    return Fault(Code.INVALID_REQUEST, message, hint=hint, status=404)
