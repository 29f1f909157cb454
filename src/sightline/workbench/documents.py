"""A document of any dialect opened in the editor: a request of our own, held until a person sends or drops it."""

import msgspec

from sightline.dialects.registry import dialect, find_dialect, names
from sightline.dialects.translate import translate_request
from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.own_calls import AGENT, path_of
from sightline.exchange.resend import Resender
from sightline.model.json import JsonObject
from sightline.web.asgi import Receive
from sightline.web.request_body import MOST_WITH_BODY, order
from sightline.wire.jsontext import MISFIT, decode

_HEADERS = (("content-type", "application/json"), ("user-agent", AGENT))


class DocumentToOpen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request body and its dialect. `model` is for a document that names none, or is to go to another one."""

    dialect: str
    body: str
    model: str = ""
    session: str = ""


class Documents:
    """`resending` is absent where this server answers from the record and sends nothing."""

    def __init__(self, resending: Resender | None) -> None:
        self._resending = resending

    async def open(self, receive: Receive) -> JsonObject:
        """Hold it as a new exchange; the answer is the exchange's id. It is translated as a client's request is, so
        that what the editor shows is what would be sent."""
        if self._resending is None:
            message = "this server answers from the record and sends nothing"
            raise Fault(Code.USAGE, message, hint="Start `sightline serve` without --replay.", status=409)
        document = _read(await order(receive, MOST_WITH_BODY))
        return {"id": await self._resending.send(_request(document))}


def _read(value: JsonObject) -> DocumentToOpen:
    hint = f'Send {{"dialect": "…", "body": "…", "model": "…"}}; dialects: {", ".join(names())}.'
    try:
        document = msgspec.convert(value, DocumentToOpen)
    except MISFIT as error:
        raise Fault(Code.INVALID_REQUEST, f"no document to open: {error}", hint=hint, status=400) from None
    if find_dialect(document.dialect) is None:
        raise Fault(Code.INVALID_REQUEST, f"unknown dialect {document.dialect[:40]!r}", hint=hint, status=400)
    return document


def _request(document: DocumentToOpen) -> ClientRequest:
    name = document.dialect
    try:
        data = document.body.encode()
    except UnicodeEncodeError:
        message = "the body has half a surrogate pair, which UTF-8 cannot carry"
        raise Fault(Code.INVALID_REQUEST, message, hint="Write it as an escape.", status=400) from None
    request = dialect(name).read_request(decode(data))
    model = document.model or request.model
    if not model:
        hint = 'Name the model that is to answer: {"model": "…"}.'
        raise Fault(Code.INVALID_REQUEST, "the document names no model", hint=hint, status=400)
    body = translate_request(data, name, name, model=document.model).data
    is_stream = bool(request.options.stream)
    # No client can send some dialects, `raw` for one: their requests come from here alone.
    path, query = (
        path_of(name, model, stream=is_stream) if dialect(name).endpoint is not None else ("/api/exchanges", "")
    )
    return ClientRequest(name, body, _HEADERS, path, query, model, is_stream, session=document.session, hold=True)
