"""The bodies and queries of API calls, read into typed values."""

from typing import Final, TypeVar
from urllib.parse import parse_qs

import msgspec

from sightline.catalog.problem import quote_word
from sightline.catalog.reading import names_of, read_value
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.web.asgi import Receive
from sightline.wire.jsontext import decode

MOST_BYTES: Final = 64 * 1024 * 1024
MOST_WITH_BODY: Final = 2 * MOST_BYTES
"""The limit for a call that contains a whole request body as a JSON string."""


async def read_object(receive: Receive, most: int = MOST_BYTES) -> JsonObject:
    """The body as a JSON object; an empty body is an empty object."""
    wanted = await read_json(receive, most)
    if not isinstance(wanted, dict):
        raise Fault(Code.INVALID_REQUEST, "the body is not a JSON object", hint="Send one JSON object, or nothing.")
    return wanted


async def read_json(receive: Receive, most: int = MOST_BYTES) -> Json:
    """The body as JSON; an empty body is an empty object."""
    data = await read_bytes(receive, most)
    return decode(data) if data.strip() else {}


async def read_bytes(receive: Receive, most: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Fault(Code.CANCELLED, "the request was aborted", hint="Send it again.")
        piece = message.get("body", b"")
        size += len(piece)
        if size <= most:  # the rest is still read, because most clients send everything before they read
            pieces.append(piece)
        if not message.get("more_body", False):
            break
    if size > most:
        too_large = f"the body is larger than {most >> 20} MiB"
        raise Fault(Code.REQUEST_TOO_LARGE, too_large, hint="Send less.", status=413)
    return b"".join(pieces)


W = TypeVar("W", bound=msgspec.Struct)


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An empty body."""


async def read_body(
    receive: Receive, kind: type[W], most: int = MOST_WITH_BODY, *, hint: str = "", status: int = 422
) -> W:
    """The body of a call, read into a struct. Raises a Fault if it does not fit or has more than `most` bytes."""
    return struct_of(await read_object(receive, most), kind, hint=hint, status=status)


def struct_of(body: JsonObject, kind: type[W], *, hint: str = "", status: int = 422) -> W:
    """Convert a JSON object to a struct. Raises a Fault with everything that does not fit; `hint` tells what to
    send."""
    names = ", ".join(names_of(kind)) or "nothing"
    hint = hint or f"It takes {names}: docs/reference/http.md says what each is."
    read: W = read_value(body, kind, subject="the body", hint=hint, status=status)
    return read


class Query:
    """The query parameters of a URL."""

    def __init__(self, text: str) -> None:
        self._values = parse_qs(text, keep_blank_values=True)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str) -> str:
        """A text; empty if the parameter is missing."""
        return self._values[name][-1] if name in self._values else ""

    def number(self, name: str, usual: int) -> int:
        """An integer, 0 or more; `usual` if the parameter is missing."""
        text = self.text(name)
        if not text:
            return usual
        if not text.isascii() or not text.isdecimal() or len(text) > 12:
            raise self._wrong(name, text, "a whole number, 0 or more")
        return int(text)

    def is_set(self, name: str) -> bool:
        """Whether a switch is on."""
        text = self.text(name)
        if text in ("", "0", "false", "1", "true"):
            return text in ("1", "true")
        raise self._wrong(name, text, "0 or 1")

    @staticmethod
    def _wrong(name: str, text: str, what: str) -> Fault:
        hint = f"{name} is {what}."
        return Fault(Code.INVALID_REQUEST, f"{name} cannot be {quote_word(text[:40])}", hint=hint, status=400)
