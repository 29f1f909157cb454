"""Facts as they were written down, read again: also by a version that does not know all of them."""

import msgspec

from sightline.errors import Code, Fault
from sightline.model.exchange import Fact

_DECODER: msgspec.msgpack.Decoder[Fact] = msgspec.msgpack.Decoder(Fact)


def fact_of(data: bytes) -> Fact:
    """The fact in these bytes; a fault where it is of a kind that only a newer version knows."""
    try:
        return _DECODER.decode(data)
    except msgspec.ValidationError as error:
        raise Fault(
            Code.CONFIG,
            f"the record holds a fact that this version does not understand: {error}",
            hint="A newer version of Sightline has written it; look at this exchange with that version.",
        ) from None
