"""The HTTP form of the requests of one socket, and the history of its connection for `previous_response_id`.

A provider with a socket keeps the latest responses of a connection in memory. A provider that is called over HTTP does
not know them, so the items of each request and its response are kept here and sent again.
"""

from typing import Final, NamedTuple

import msgspec

from sightline.errors import Code, Fault
from sightline.model.json import Json
from sightline.wire.jsontext import decode, encode

_MOST_KEPT: Final = 32 << 20
"""The most bytes of items that are kept for one connection; the oldest responses are dropped first."""

_OF_SOCKET: Final = ("type", "stream_id", "generate")
_Fields = dict[str, msgspec.Raw]
_FIELDS: Final = msgspec.json.Decoder(_Fields)
_ITEMS: Final = msgspec.json.Decoder(list[msgspec.Raw])
_NO_ITEMS: Final = b"[]"


class _Turn(NamedTuple):
    """A request with its response. `before` is the number of the turn that it continues; 0 if there is none."""

    response: str
    before: int
    items: tuple[bytes, ...]
    size: int


class HttpForm(NamedTuple):
    """A frame as the body of a POST. `before` is the number of the turn that it continues, `items` are its own."""

    body: bytes
    before: int
    items: tuple[bytes, ...]


HTTP_HEADERS: Final = (("content-type", "application/json"), ("accept", "text/event-stream"))
"""Headers that a request over HTTP has and a handshake does not."""


class SocketHistory:
    """The responses of one connection. A turn continues one with a lower number, so that a provider that reuses an id
    cannot create a cycle; the id then means the latest response."""

    def __init__(self) -> None:
        self._turns: dict[int, _Turn] = {}
        self._numbers: dict[str, int] = {}
        self._last = 0
        self._size = 0

    def http_form(self, frame: bytes) -> HttpForm:
        """The frame as a body: without the fields of a socket, streamed, and with the whole history in place of a
        `previous_response_id` that is known here. An unknown one is kept: the provider may know it. Raises a fault if
        the frame is not a request."""
        try:
            fields = _fields_of(frame)
            items = _items_of(fields.get("input"))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            hint = "Send the request as one JSON object whose input is a text or a list."
            raise Fault(Code.INVALID_REQUEST, f"the frame is not a request: {error}", hint=hint, status=400) from None
        for name in _OF_SOCKET:
            fields.pop(name, None)
        before = self._numbers.get(_text_of(fields.get("previous_response_id")), 0)
        if before:
            del fields["previous_response_id"]
            whole = [*self._items_up_to(before), *items]
            fields["input"] = msgspec.Raw(b"[%b]" % b",".join(whole))
        fields["stream"] = msgspec.Raw(b"true")
        return HttpForm(msgspec.json.encode(fields), before, items)

    def keep(self, form: HttpForm, event: bytes) -> None:
        """Store the response that this event ends, as the response to this request."""
        try:
            response = _fields_of(_fields_of(event).get("response", b""))
            output = _list_of(response.get("output", _NO_ITEMS))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        name = _text_of(response.get("id"))
        if not name:
            return
        items = (*form.items, *output)
        size = sum(map(len, items))
        self._last += 1
        self._turns[self._last] = _Turn(name, form.before, items, size)
        self._numbers[name] = self._last
        self._size += size
        while self._size > _MOST_KEPT and len(self._turns) > 1:
            oldest = next(iter(self._turns))
            forgotten = self._turns.pop(oldest)
            self._size -= forgotten.size
            if self._numbers[forgotten.response] == oldest:
                del self._numbers[forgotten.response]

    def _items_up_to(self, number: int) -> list[bytes]:
        turns = []
        while (turn := self._turns.get(number)) is not None:
            turns.append(turn)
            number = turn.before
        if number:  # the beginning was dropped, and an incomplete history would be wrong
            raise Fault(
                Code.INVALID_REQUEST,
                "the beginning of this conversation is not known any more",
                hint="Send the whole history again.",
                status=400,
                details={"code": "previous_response_not_found"},
            )
        return [item for turn in reversed(turns) for item in turn.items]


def is_frame(body: bytes) -> bool:
    """Whether this is a request in the form of a socket, and not the body of a POST."""
    try:
        return _text_of(_fields_of(body).get("type")) == "response.create"
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def _fields_of(data: bytes | msgspec.Raw) -> _Fields:
    """The fields of an object. Raises a DecodeError if it is none."""
    try:
        return _FIELDS.decode(data)
    except msgspec.DecodeError as error:
        value = _decode_leniently(data, error)
        if not isinstance(value, dict):
            raise
        return {name: msgspec.Raw(encode(each)) for name, each in value.items()}


def _list_of(data: bytes | msgspec.Raw) -> tuple[bytes, ...]:
    """The elements of a list. Raises a DecodeError if it is none."""
    try:
        return tuple(bytes(each) for each in _ITEMS.decode(data))
    except msgspec.DecodeError as error:
        value = _decode_leniently(data, error)
        if not isinstance(value, list):
            raise
        return tuple(encode(each) for each in value)


def _decode_leniently(data: bytes | msgspec.Raw, error: msgspec.DecodeError) -> Json:
    """The value of a JSON text in which half a surrogate pair is escaped, as JavaScript clients may send it."""
    try:
        return decode(bytes(data))
    except Fault:
        raise error from None


def _items_of(value: msgspec.Raw | None) -> tuple[bytes, ...]:
    """The input as items; a text is one user message."""
    if value is None:
        return ()
    if bytes(value).lstrip().startswith(b"["):
        return _list_of(value)
    return (b'{"role":"user","content":%b}' % bytes(value),)


def _text_of(value: msgspec.Raw | None) -> str:
    try:
        return msgspec.json.decode(value, type=str) if value is not None else ""
    except msgspec.DecodeError:
        return ""
