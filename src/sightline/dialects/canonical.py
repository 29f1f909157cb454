"""The canonical request as JSON text: what `canonical` means on the command line and in the record."""

import msgspec

from sightline.errors import Code, Fault
from sightline.model.request import Request
from sightline.wire.jsontext import decode, encode


def write(request: Request) -> bytes:
    """The request as JSON; what is unset is left out."""
    return encode(msgspec.to_builtins(request))


def read(data: bytes) -> Request:
    """The request that such JSON holds."""
    try:
        return msgspec.convert(decode(data), Request)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise Fault(
            Code.INVALID_REQUEST,
            f"not a canonical request: {error}",
            hint="Make one with `sightline translate request --to canonical` and change that.",
        ) from None
