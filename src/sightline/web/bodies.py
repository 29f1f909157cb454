"""The bodies and queries of API calls, read into typed values."""

from typing import TypeVar
from urllib.parse import parse_qs

import msgspec

from sightline.catalog.problem import quote_word
from sightline.errors import Code, Fault
from sightline.web.asgi import Receive
from sightline.web.request_body import MOST_WITH_BODY, order
from sightline.wire.jsontext import MISFIT

W = TypeVar("W", bound=msgspec.Struct)


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An empty body."""


def one(parameters: dict[str, list[str]], name: str) -> str:
    """The value of a query parameter; empty if it is missing."""
    return parameters[name][-1] if name in parameters else ""


async def read_body(receive: Receive, kind: type[W], most: int = MOST_WITH_BODY) -> W:
    """The body of a call, read into a struct. Raises a Fault if it does not fit or has more than `most` bytes."""
    body = await order(receive, most)
    try:
        return msgspec.convert(body, kind)
    except MISFIT as error:
        names = ", ".join(kind.__struct_fields__) or "nothing"
        hint = f"It takes {names}: docs/reference/http.md says what each is."
        raise Fault(Code.INVALID_REQUEST, f"this cannot be done: {error}", hint=hint, status=422) from None


class Query:
    """The query parameters of an address."""

    def __init__(self, text: str) -> None:
        self._told = parse_qs(text, keep_blank_values=True)

    def __contains__(self, name: str) -> bool:
        return name in self._told

    def text(self, name: str) -> str:
        """A text; empty if the parameter is missing."""
        return one(self._told, name)

    def number(self, name: str, usual: int) -> int:
        """A whole number, 0 or more."""
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
