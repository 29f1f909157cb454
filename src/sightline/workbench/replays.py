"""The API call that sends a recorded request again: as it was, edited, or to another model."""

from collections.abc import Mapping

from sightline.errors import Code, Fault
from sightline.exchange.resend import Resender
from sightline.model.json import Json, JsonObject
from sightline.web.asgi import Receive
from sightline.web.request_body import MOST_WITH_BODY, order
from sightline.workbench.exchanges import Exchanges

_KNOWN = ("model", "body", "masks")
_STATUS: Mapping[Code, int] = {Code.AUTH: 422, Code.MODEL_UNKNOWN: 422}
"""Statuses that differ from the code's own, which would point at the API's token or at the exchange."""


class Replays:
    """`resending` is None if this server answers from the record and sends nothing."""

    def __init__(self, exchanges: Exchanges, resending: Resender | None) -> None:
        self._exchanges = exchanges
        self._resending = resending

    async def start(self, exchange: str, receive: Receive) -> JsonObject:
        """Send it again and return the id of the new exchange, which is already recorded."""
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
        raise _wrong("model and body cannot be combined")
    model = _text(wanted, "model")
    body = _text(wanted, "body")
    if model == "":
        raise _wrong("the model is empty")
    masks = wanted.get("masks")
    if "masks" in wanted and not isinstance(masks, bool):
        raise _wrong("masks is not true or false")
    try:
        return model or "", None if body is None else body.encode(), masks if isinstance(masks, bool) else None
    except UnicodeEncodeError:
        raise _wrong("the body has half a surrogate pair, which UTF-8 cannot encode") from None


def _text(wanted: JsonObject, name: str) -> str | None:
    value: Json = wanted.get(name)
    if name in wanted and not isinstance(value, str):
        raise _wrong(f"{name} is not a string")
    return value if isinstance(value, str) else None


def _wrong(message: str) -> Fault:
    hint = (
        'Send {} for the same again, {"model": "…"} for another model, or {"body": "…"} for an edited body; '
        '"masks": true applies the active masks.'
    )
    return Fault(Code.INVALID_REQUEST, message, hint=hint, status=400)
