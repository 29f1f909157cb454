"""Redaction: which values of a request are secrets, and how they are removed from headers, addresses and bytes."""

import re
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from sightline.exchange.client_request import SESSIONS, ClientRequest, TextHeaders, headers_by_name
from sightline.model.exchange import Received
from sightline.wire.secrets import MASK, SHORTEST, Masking, Redaction, secrets_of, spellings

_PATTERN_CHARS: Final = 8
"""How many characters of a key the regular expression matches; the rest is compared in full."""

_MOST_HELD: Final = 1 << 20
_MAX_MATCHES: Final = 32
_WORDS = re.compile(rb':\s*"((?:[^"\\]++|\\.)++)"')


class _Span(NamedTuple):
    """Where a piece of a key is: the number of its line, and its first and last byte."""

    line: int
    start: int
    stop: int


class _PartialMatch(NamedTuple):
    """The beginning of a key at the end of a string: how many characters of it, and where."""

    key: bytes
    length: int
    places: tuple[_Span, ...]


class FrameMasking(Masking):
    """Removes keys from a stream of frames, including keys that are split over the strings of several frames.

    A frame passes unchanged unless one of its strings ends with the beginning of a key. From then on lines are
    compared. Once enough of the key has arrived, they are held back until the next string shows whether the key
    continues.
    """

    def __init__(self, secrets: tuple[str, ...]) -> None:
        super().__init__(secrets)
        self._keys = spellings(secrets)
        self._ending = _partial_key_pattern(self._keys)
        self._begun: list[_PartialMatch] = []
        self._lines: list[bytes] = []
        self._first = 0
        """The number of the first line that is held back."""
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """The part that can be shown of these bytes, and of those that were held back."""
        if self._ending is None:
            return data  # there is no key
        data = super().feed(data)
        if not (self._begun or self._rest or self._ending.search(data)):
            return data  # nearly always
        *lines, rest = (self._rest + data).splitlines(keepends=True) or [b""]
        if rest.endswith((b"\n", b"\r")):
            lines, rest = [*lines, rest], b""
        for line in lines:
            self._lines.append(line)
            if b'"' in line:
                self._follow(self._ending)
        shown = self._release()
        self._rest = rest if self._begun or self._ending.search(rest) else b""
        if len(self._rest) + sum(map(len, self._lines)) > _MOST_HELD:
            return shown + self._all_held()
        return shown if self._rest else shown + rest

    def close(self) -> bytes:
        """What was held back and turned out not to be a secret."""
        return self._all_held() + super().close()

    def _follow(self, ending: re.Pattern[bytes]) -> None:
        """Check which of the keys that have begun continue in the last line, and which begin there."""
        number, line = self._first + len(self._lines) - 1, self._lines[-1]
        going: list[_PartialMatch] = []
        for begun in self._begun:
            further = _continue_match(begun, line, number)
            if further is None:
                continue
            if further.length == len(further.key):
                self._mask(further.places)
                going, line = [], self._lines[-1]
                break
            going.append(further)
        for found in ending.finditer(line):
            going += _beginnings(self._keys, line, found.end() - 1, number)
        self._begun = going[:_MAX_MATCHES]

    def _mask(self, places: tuple[_Span, ...]) -> None:
        """Remove the pieces of a key from those of its lines that are still held."""
        self.has_found = True
        mask = MASK.encode()
        for number, start, stop in places:
            if (at := number - self._first) >= 0:
                line = self._lines[at]
                self._lines[at] = line[:start] + mask + line[stop:]
                mask = b""

    def _release(self) -> bytes:
        """The lines that contain no part of a key that may continue. The first few characters of a key reveal
        nothing."""
        held = (
            place.line
            for begun in self._begun
            if begun.length >= SHORTEST
            for place in begun.places
            if place.line >= self._first
        )
        count = min(held, default=self._first + len(self._lines)) - self._first
        shown = b"".join(self._lines[:count])
        del self._lines[:count]
        self._first += count
        return shown

    def _all_held(self) -> bytes:
        held = b"".join(self._lines) + self._rest
        self._first += len(self._lines)
        self._lines, self._rest, self._begun = [], b"", []
        return held


def _continue_match(begun: _PartialMatch, line: bytes, number: int) -> _PartialMatch | None:
    """The match extended by a string of this line; None if no string continues it."""
    missing = begun.key[begun.length :]
    for words in _WORDS.finditer(line):
        length = min(len(words[1]), len(missing))
        if words[1][:length] == missing[:length]:
            start = words.start(1)
            return _PartialMatch(
                begun.key, begun.length + length, (*begun.places, _Span(number, start, start + length))
            )
    return None


def _beginnings(keys: tuple[bytes, ...], line: bytes, stop: int, number: int) -> list[_PartialMatch]:
    """The keys that begin in the string that ends at `stop`, and how much of each."""
    words = line[line.rfind(b'"', 0, stop) + 1 : stop]
    found = []
    for key in keys:
        at = words.find(key[:1], max(0, len(words) - len(key) + 1))
        while at >= 0:
            if key.startswith(words[at:]):
                length = len(words) - at
                found.append(_PartialMatch(key, length, (_Span(number, stop - length, stop),)))
            at = words.find(key[:1], at + 1)
    return found


@lru_cache(maxsize=256)
def _partial_key_pattern(keys: tuple[bytes, ...]) -> re.Pattern[bytes] | None:
    """A pattern that finds strings, but not field names, that end with the beginning of one of these keys. None if
    there are no keys."""
    if not keys:
        return None
    heads = []
    for key in keys:
        head = rb'[^"]*' if len(key) > _PATTERN_CHARS else b""
        for letter in reversed(key[: min(_PATTERN_CHARS, len(key) - 1)]):
            head = re.escape(bytes([letter])) + (b"(?:" + head + b")?" if head else b"")
        heads.append(head)
    return re.compile(b"(?:" + b"|".join(heads) + rb')"(?!\s*:)')


# --- the client of a request ----------------------------------------------------------------------


class Caller(msgspec.Struct, frozen=True):
    """A client as it is recorded: without secrets in `client`, `address` and `headers`. `program` is its name as it
    arrived and `session` its own session id. They serve to find related requests, and are not recorded."""

    redaction: Redaction
    program: str
    client: str
    session: str
    address: str
    headers: TextHeaders

    def near(self, request: ClientRequest) -> str:
        """A name for the group of bodies that a request of this client is likely to resemble."""
        return request.session or self.session or f"{self.program} {request.model}".strip()

    def arrival_fact(self, request: ClientRequest, digest: str) -> Received:
        """The fact that a request arrived; `digest` is the hash of its body."""
        return Received(
            request.dialect,
            request.model,
            digest,
            request.session,
            self.client,
            self.address,
            request.is_stream,
            self.headers,
            request.origin,
            request.conversation,
            request.transport,
            method=request.method,
        )


@lru_cache(maxsize=512)
def identify_caller(headers: TextHeaders, path: str, query: str, secrets: tuple[str, ...]) -> Caller:
    """The client with these headers and this address; `secrets` are those of Sightline's own settings."""
    named = headers_by_name(headers)
    redaction = Redaction((*secrets_of(headers, query), *secrets))
    program = named.get("user-agent", "").partition(" ")[0]
    return Caller(
        redaction,
        program,
        redaction.text(program),
        next((named[name] for name in SESSIONS if named.get(name)), ""),
        redaction.address(path, query),
        redaction.headers(headers),
    )
