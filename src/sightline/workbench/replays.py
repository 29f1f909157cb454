"""A recorded request sent again because somebody asked the API for it: as it was, edited, or to another model."""

from collections.abc import Mapping

from sightline.errors import Code, Fault
from sightline.exchange.resend import Resender
from sightline.model.json import Json, JsonObject
from sightline.web.asgi import Receive
from sightline.web.request_body import MOST_WITH_BODY, order
from sightline.workbench.exchanges import Exchanges

_KNOWN = ("model", "body", "masks")
_STATUS: Mapping[Code, int] = {Code.AUTH: 422, Code.MODEL_UNKNOWN: 422}
"""What would mean the API's own token, or the exchange, if it had its usual status."""


class Replays:
    """`resending` is absent where this server answers from the record and sends nothing."""

    def __init__(self, exchanges: Exchanges, resending: Resender | None) -> None:
        self._exchanges = exchanges
        self._resending = resending

    async def start(self, exchange: str, receive: Receive) -> JsonObject:
        """Send it again; the answer names the new exchange, which is on record and under way."""
        model, body, masks = _read_request(await order(receive, MOST_WITH_BODY))
        if self._resending is None:
            message = "this server answers from the record and sends nothing"
            raise Fault(Code.USAGE, message, hint="Start `sightline serve` without --replay.", status=409)
        summary = await self._exchanges.summary(exchange)
        try:
            return {"id": await self._resending.start(summary, model=model, body=body, masks=masks)}
        except Fault as fault:
            if fault.status is None:
                fault.status = _STATUS.get(fault.code)
            raise


def _read_request(wanted: JsonObject) -> tuple[str, bytes | None, bool | None]:
    for name in wanted:
        if name not in _KNOWN:
            raise _wrong(f"{name[:40]!r} is not known")
    if "model" in wanted and "body" in wanted:
        raise _wrong("model and body are not for one replay")
    model = _text(wanted, "model")
    body = _text(wanted, "body")
    if model == "":
        raise _wrong("the model has no name")
    masks = wanted.get("masks")
    if "masks" in wanted and not isinstance(masks, bool):
        raise _wrong("masks is neither true nor false")
    try:
        return model or "", None if body is None else body.encode(), masks if isinstance(masks, bool) else None
    except UnicodeEncodeError:
        raise _wrong("the body has half a character, which no bytes can carry") from None


def _text(wanted: JsonObject, name: str) -> str | None:
    value: Json = wanted.get(name)
    if name in wanted and not isinstance(value, str):
        raise _wrong(f"{name} is no string")
    return value if isinstance(value, str) else None


def _wrong(message: str) -> Fault:
    hint = (
        'Send {} for the same again, {"model": "…"} for another model, or {"body": "…"} for an edited body; '
        '"masks": true puts the masks on it that are active now.'
    )
    return Fault(Code.INVALID_REQUEST, message, hint=hint, status=400)
