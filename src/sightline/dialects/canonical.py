"""The canonical request as JSON text: what `canonical` means on the command line and in the record."""

import msgspec

from sightline.dialects.fields import wrong
from sightline.errors import Code, Fault
from sightline.model.request import Request
from sightline.wire.jsontext import decode, encode


def write(request: Request) -> bytes:
    """The request as JSON; what is unset is left out."""
    return encode(msgspec.to_builtins(request))


def read(data: bytes) -> Request:
    """The request that such JSON holds."""
    document = decode(data)
    if isinstance(document, dict) and not isinstance(document.get("messages"), list):
        raise wrong(document.get("messages"), "/messages", "a list")
    try:
        return msgspec.convert(document, Request)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise Fault(
            Code.INVALID_REQUEST,
            f"not a canonical request: {error}",
            hint="Make one with `sightline translate request --to canonical` and change that.",
        ) from None
