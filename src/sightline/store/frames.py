"""The frames of a reply, packed as one: there may be hundreds, each a few bytes that repeat the last."""

from collections.abc import Iterable

import msgspec

from sightline.model.exchange import FrameArrived
from sightline.store.delta import Codec
from sightline.store.entries import FactEntry

_Packed = tuple[int, float, float, bytes]
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[_Packed])


def pack_frames(codec: Codec, frames: Iterable[tuple[FactEntry, FrameArrived]]) -> bytes:
    """These frames of one exchange, with their numbers and times."""
    return codec.pack(_ENCODER.encode([(noted.n, noted.at, frame.after, frame.data) for noted, frame in frames]))


def unpack_frames(codec: Codec, exchange: str, data: bytes) -> list[FactEntry]:
    """The facts again."""
    return [
        FactEntry(exchange, n, at, FrameArrived(raw, after))
        for n, at, after, raw in _DECODER.decode(codec.unpack(data))
    ]


def raw_bytes(codec: Codec, data: bytes) -> bytes:
    """What these frames brought, one behind the other."""
    return b"".join(raw for _, _, _, raw in _DECODER.decode(codec.unpack(data)))
