import gzip
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Code, Fault
from sightline.wire.coding import ContentDecoder, decode_body

BODY = b'{"model": "m", "messages": []}' * 300


def bare(data: bytes) -> bytes:
    squeezing = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return squeezing.compress(data) + squeezing.flush()


CODED = {
    "gzip": gzip.compress(BODY),
    "x-gzip": gzip.compress(BODY[:100]) + gzip.compress(BODY[100:]),
    "deflate": zlib.compress(BODY),
    "Deflate": bare(BODY),
    "br": brotli.compress(BODY),
    "zstd": zstandard.compress(BODY),
    " ZSTD ": zstandard.compress(BODY[:9]) + zstandard.compress(BODY[9:]),
    "gzip, zstd": zstandard.compress(gzip.compress(BODY)),
    "identity": BODY,
    "": BODY,
}


@pytest.mark.parametrize("codings", CODED)
def test_each_coding_is_undone(codings: str) -> None:
    assert decode_body(CODED[codings], codings) == BODY


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_a_body_can_come_byte_by_byte(coding: str) -> None:
    undoing = ContentDecoder(coding)
    assert b"".join(undoing.feed(bytes([byte])) for byte in CODED[coding]) == BODY
    assert undoing.is_whole


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
@given(st.data())
def test_a_body_can_come_in_any_pieces(coding: str, data: st.DataObject) -> None:
    coded = CODED[coding]
    undoing, said = ContentDecoder(coding), b""
    while coded:
        size = data.draw(st.integers(1, len(coded)))
        said += undoing.feed(coded[:size])
        coded = coded[size:]
    assert said == BODY
    assert undoing.is_whole


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.99])
def test_what_breaks_off_is_refused(coding: str, share: float) -> None:
    with pytest.raises(Fault, match="not valid") as caught:
        decode_body(CODED[coding][: max(1, int(len(CODED[coding]) * share))], coding)
    assert caught.value.code is Code.INVALID_REQUEST


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_what_is_damaged_is_refused(coding: str) -> None:
    with pytest.raises(Fault, match="not valid") as caught:
        decode_body(b"\x07no such thing" * 5, coding)
    assert caught.value.code is Code.INVALID_REQUEST


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_a_bomb_is_refused_before_it_has_gone_off(coding: str) -> None:
    code = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress, "zstd": zstandard.compress}
    bomb = code[coding](bytes(10_000_000))
    undoing = ContentDecoder(coding, limit=1_000_000)
    with pytest.raises(Fault) as caught:
        undoing.feed(bomb)
    assert caught.value.code is Code.REQUEST_TOO_LARGE


def test_a_body_without_a_coding_has_the_same_limit() -> None:
    with pytest.raises(Fault) as caught:
        decode_body(BODY, "", limit=len(BODY) - 1)
    assert caught.value.code is Code.REQUEST_TOO_LARGE
    assert decode_body(BODY, "", limit=len(BODY)) == BODY


def test_unknown_content_encoding_is_named_in_the_error() -> None:
    with pytest.raises(Fault, match="'compress'") as caught:
        decode_body(BODY, "compress")
    assert caught.value.status == 415
