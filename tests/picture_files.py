"""The first bytes of picture files of any size, base64-coded: enough for whoever only asks how large they are. And one
picture that can be looked at."""

import base64
import zlib


def _coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def png(width: int, height: int) -> str:
    return _coded(
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
        + width.to_bytes(4)
        + height.to_bytes(4)
        + b"\x08\x02\x00\x00\x00"
        + bytes(20)
    )


def gif(width: int, height: int) -> str:
    return _coded(b"GIF89a" + width.to_bytes(2, "little") + height.to_bytes(2, "little") + bytes(20))


def jpeg(width: int, height: int, *, comment: int = 40, marker: int = 0xC0) -> str:
    """With a thumbnail's worth of metadata in front of the frame, as cameras write it."""
    metadata = b"\xff\xe1" + (comment + 2).to_bytes(2) + bytes(comment)
    padding = b"\xff"  # any number of these may stand before a marker
    frame = bytes([0xFF, marker]) + b"\x00\x11\x08" + height.to_bytes(2) + width.to_bytes(2) + b"\x03" + bytes(12)
    return _coded(b"\xff\xd8" + metadata + padding + frame)


def webp(width: int, height: int, *, kind: bytes = b"VP8X") -> str:
    body = {
        b"VP8X": bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"),
        b"VP8L": b"\x2f" + ((width - 1) | (height - 1) << 14).to_bytes(4, "little") + bytes(5),
        b"VP8 ": b"\x00\x00\x00\x9d\x01\x2a" + width.to_bytes(2, "little") + height.to_bytes(2, "little"),
    }.get(kind, bytes(10))
    return _coded(b"RIFF" + bytes(4) + b"WEBP" + kind + bytes(4) + body)


def gradient(width: int, height: int) -> str:
    """A whole picture: from blue on the left to orange on the right."""

    def block(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4) + kind + data + zlib.crc32(kind + data).to_bytes(4)

    row = b"\0" + b"".join(
        bytes([40 + 200 * x // width, 90 + 60 * x // width, 220 - 180 * x // width]) for x in range(width)
    )
    head = width.to_bytes(4) + height.to_bytes(4) + b"\x08\x02\x00\x00\x00"
    blocks = block(b"IHDR", head) + block(b"IDAT", zlib.compress(row * height)) + block(b"IEND", b"")
    return _coded(b"\x89PNG\r\n\x1a\n" + blocks)
