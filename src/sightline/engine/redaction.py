"""Secrets kept out of the record: what counts as one, and how it is taken out of headers, addresses and bytes."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

from sightline.engine.asked import TextHeaders
from sightline.wire.masking import MASK, SHORTEST

CREDENTIAL_HEADERS = ("authorization", "x-api-key", "x-goog-api-key")
"""Where a client shows who it is; besides them there is `?key=`."""

_SECRET_NAME = re.compile(
    r"(?:^|[-_])(?:api-?key|auth|authorization|bearer|cookie2?|credentials?|jwt|passwd|password|secret|"
    r"(?:access|auth|id|refresh|security|session|user)?-?token)(?:$|[-_])|(?<!idempotency)-key$",
    re.IGNORECASE,
)
_SECRET_PARAMETERS = frozenset(
    {"key", "api_key", "api-key", "apikey", "access_token", "token", "subscription-key", "auth", "secret", "password",
     "signature", "sig"}
)  # fmt: skip
_SHORTEST_OF_CLIENTS = 8
"""People who need no key send a word in its place, and that word may stand in any answer."""

_USER = re.compile(r"(?<=://)[^/@\s?#]+@")


@lru_cache(maxsize=1024)
def is_secret(header: str) -> bool:
    """Whether the value of a header of this name must not be kept."""
    return _SECRET_NAME.search(header) is not None


def without_scheme(value: str) -> str:
    """A credential without the word that stands before it."""
    return value.strip().rpartition(" ")[2]


def parameters(query: str) -> list[tuple[str, str]]:
    """A query's pieces as they are written, each with the name that it gives a value to."""
    return [(piece.partition("=")[0].lower(), piece) for piece in query.split("&") if piece]


def secrets_of(headers: TextHeaders, query: str) -> tuple[str, ...]:
    """The values by which a client shows who it is, wherever it put them."""
    values = [piece.partition("=")[2] for name, piece in parameters(query) if name in _SECRET_PARAMETERS]
    for name, value in headers:
        if name.lower() == "cookie":
            values += [cookie.partition("=")[2].strip() for cookie in value.split(";")]
        elif is_secret(name):
            values.append(without_scheme(value))
    return tuple(dict.fromkeys(value for value in values if len(value) >= _SHORTEST_OF_CLIENTS))


class Redaction:
    """Takes the secrets of one exchange out of what is kept of it."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self.secrets = tuple(dict.fromkeys(secret for secret in secrets if len(secret) >= SHORTEST))
        self._searched = _searched(self.secrets)

    def text(self, text: str) -> str:
        """A sentence or an address."""
        text = self.words(text)
        return _USER.sub(f"{MASK}@", text) if "@" in text else text

    def words(self, text: str) -> str:
        """What somebody said; an address in it stays as it is."""
        for form in self._searched.forms:
            # One text after the other is looked for in a fraction of the time of a pattern; as a rule none is there.
            if form in text:
                assert self._searched.words is not None
                return self._searched.words.sub(MASK, text)
        return text

    def headers(self, headers: TextHeaders) -> TextHeaders:
        """Headers, with a mask where the value of one is a secret by its name."""
        return tuple((name, MASK if is_secret(name) else self.text(value)) for name, value in headers)

    def address(self, path: str, query: str) -> str:
        """A path with its query."""
        kept = [
            f"{piece.partition('=')[0]}={MASK}" if name in _SECRET_PARAMETERS else piece
            for name, piece in parameters(query)
        ]
        return self.text(f"{path}?{'&'.join(kept)}" if kept else path)

    def masking(self) -> "Masking":
        """For bytes that are still coming."""
        return Masking(self.secrets)


def spellings(secrets: tuple[str, ...]) -> tuple[bytes, ...]:
    """Everything that is looked for because of these secrets."""
    return _searched(secrets).spelled


class Masking:
    """Secrets taken out of bytes while they come, also where one was cut in two.

    Bytes are held back only where they may be the beginning of a secret. `has_found` tells whether there was one.
    """

    def __init__(self, secrets: tuple[str, ...]) -> None:
        self._searched = _searched(secrets)
        self._held = b""
        self.has_found = False

    def feed(self, data: bytes) -> bytes:
        """What can be shown of these bytes, and of those that were held back."""
        searched = self._searched
        if searched.raw is None:
            return data
        if self._held:
            data = self._held + data
        for form in searched.spelled:
            # `in` takes bytes for a number first, and fails over that each time.
            if data.find(form) >= 0:
                self.has_found = True
                data = searched.raw.sub(MASK.encode(), data)
                break
        if not data or data[-1] not in searched.letters:
            self._held = b""
            return data  # as at the end of a frame: no secret has a line break in it
        cut = self._beginning(data)
        self._held = data[cut:]
        return data[:cut] if self._held else data

    def close(self) -> bytes:
        """What was held back and is no secret after all."""
        held, self._held = self._held, b""
        return held

    def _beginning(self, data: bytes) -> int:
        """Where a secret may have begun at the end of these bytes; their length where none has."""
        places = []
        for secret in self._searched.spelled:
            at = data.find(secret[:1], max(0, len(data) - len(secret) + 1))
            while at >= 0 and not secret.startswith(data[at:]):
                at = data.find(secret[:1], at + 1)
            if at >= 0:
                places.append(at)
        return min(places, default=len(data))


@dataclass(frozen=True, slots=True)
class _Searched:
    """What is looked for, made ready: clients and keys are few, and each of their requests asks for it."""

    words: re.Pattern[str] | None
    raw: re.Pattern[bytes] | None
    forms: tuple[str, ...]
    spelled: tuple[bytes, ...]
    letters: bytes = b""


@lru_cache(maxsize=256)
def _searched(secrets: tuple[str, ...]) -> _Searched:
    forms = {form for secret in secrets if len(secret) >= SHORTEST for form in _spellings(secret)}
    # The longest first, so that no end of a secret stays behind where another one is its beginning.
    ordered = sorted(forms, key=len, reverse=True)
    spelled = tuple(form.encode("utf-8", "surrogateescape") for form in ordered)
    if not ordered:
        return _Searched(None, None, (), ())
    words = re.compile("|".join(map(re.escape, ordered)))
    return _Searched(words, re.compile(b"|".join(map(re.escape, spelled))), tuple(ordered), spelled, b"".join(spelled))


def _spellings(secret: str) -> Iterator[str]:
    """A secret as it may be repeated: as it is, in an address, and in JSON with its slashes escaped."""
    yield secret
    yield quote(secret, safe="")
    yield secret.replace("/", "\\/")
