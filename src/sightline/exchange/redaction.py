"""Secrets kept out of the record: what counts as one, and how it is taken out of headers, addresses and bytes."""

import re
from collections.abc import Iterable
from urllib.parse import unquote

from sightline.exchange.client_request import TextHeaders
from sightline.model.header_names import is_secret_header, is_secret_parameter
from sightline.wire.secrets import MASK, SHORTEST, bytes_of, forms_of, without_scheme

_SHORTEST_OF_CLIENTS = 8
"""People who need no key send a word in its place, and that word may stand in any answer."""

_USER = re.compile(r"(?<=://)[^/@\s?#]+@")


def parameters(query: str) -> list[tuple[str, str]]:
    """A query's pieces as they are written, each with the name that it gives a value to, decoded."""
    return [(unquote(piece.partition("=")[0]).lower(), piece) for piece in query.split("&") if piece]


def secrets_of(headers: TextHeaders, query: str) -> tuple[str, ...]:
    """The values by which a client shows who it is, wherever it put them."""
    written = [piece.partition("=")[2] for name, piece in parameters(query) if is_secret_parameter(name)]
    values = [form for value in written for form in (value, unquote(value))]
    for name, value in headers:
        if name.lower() == "cookie":
            values += [cookie.partition("=")[2].strip() for cookie in value.split(";")]
        elif is_secret_header(name):
            values.append(without_scheme(value))
    return tuple(dict.fromkeys(value for value in values if len(value) >= _SHORTEST_OF_CLIENTS))


class Redaction:
    """Takes the secrets of one exchange out of what is kept of it."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self.secrets = tuple(dict.fromkeys(secret for secret in secrets if len(secret) >= SHORTEST))
        self._forms = forms_of(self.secrets)

    def text(self, text: str) -> str:
        """A sentence or an address."""
        text = self.words(text)
        return _USER.sub(f"{MASK}@", text) if "@" in text else text

    def words(self, text: str) -> str:
        """What somebody said; an address in it stays as it is."""
        return text if self._forms is None else self._forms.mask(text)

    def headers(self, headers: TextHeaders) -> TextHeaders:
        """Headers, with a mask where the value of one is a secret by its name."""
        return tuple((name, MASK if is_secret_header(name) else self.text(value)) for name, value in headers)

    def address(self, path: str, query: str) -> str:
        """A path with its query."""
        kept = [
            f"{piece.partition('=')[0]}={MASK}" if is_secret_parameter(name) else piece
            for name, piece in parameters(query)
        ]
        return self.text(f"{path}?{'&'.join(kept)}" if kept else path)

    def masking(self) -> "Masking":
        """For bytes that are still coming."""
        return Masking(self.secrets)


def spellings(secrets: tuple[str, ...]) -> tuple[bytes, ...]:
    """The usual spellings of these secrets."""
    known = bytes_of(secrets)
    return () if known is None else known.literal


class Masking:
    """Secrets taken out of bytes while they come, also where one was cut in two.

    Bytes are held back only where they may be the beginning of a secret. `has_found` tells whether there was one.
    """

    def __init__(self, secrets: tuple[str, ...]) -> None:
        self._known = bytes_of(secrets)
        self._held = b""
        self.has_found = False

    def feed(self, data: bytes) -> bytes:
        """What can be shown of these bytes, and of those that were held back."""
        known = self._known
        if known is None:
            return data
        if self._held:
            data = self._held + data
        data, has_found = known.mask(data)
        if has_found:
            self.has_found = True
        cut = known.begins_at(data)
        self._held = data[cut:]
        return data[:cut] if self._held else data

    def close(self) -> bytes:
        """What was held back and is no secret after all."""
        held, self._held = self._held, b""
        return held
