"""Streams as one JSON array, for typed decoders: decoding all frames at once costs a fifth of decoding each."""

import re

_FIRST = re.compile(rb"(?:event: [a-z_.]+\n)?data: ")
_NEXT = re.compile(rb"\n\n(?:event: [a-z_.]+\n)?data: ")
_BARE = b"data: "
_DONE = b"\n\ndata: [DONE]"


def read_frames(data: bytes) -> tuple[bytes, int, bool] | None:
    """An array of the frames of a stream, how many there are, and whether the words `[DONE]` ended it. None for what is
    written in any but the usual way, or was cut off within a frame."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")  # no line break of a JSON text is in a string
    first = _FIRST.match(data)
    if first is None or not data.endswith(b"\n\n"):
        return None
    data = data[first.end() : -2]
    is_done = data.endswith(_DONE)
    if is_done:
        data = data[: -len(_DONE)]
    if first[0] == _BARE:  # as a rule no frame has a name then, and this is four times as fast
        count = data.count(b"\n\n" + _BARE)
        joined = data.replace(b"\n\n" + _BARE, b",")
    else:
        joined, count = _NEXT.subn(b",", data)
    return None if b"\n" in joined else (b"[" + joined + b"]", count + 1, is_done)
