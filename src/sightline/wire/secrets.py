"""Credentials: how they can be spelled, how to find them in text and in bytes that are still arriving, and how to
redact them.

A provider that repeats a credential may do so in JSON, where any character can be written as `\\u0073` and some must be
escaped, in JSON inside JSON, or percent-encoded in an address. All of these spellings are the secret. Which headers and
query parameters hold one is in `model.header_names`, because the catalogue needs those names too.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, unquote, unquote_to_bytes

from sightline.model.header_names import is_secret_header, is_secret_parameter
from sightline.model.json import Json

MASK = "***"
SHORTEST = 4
"""Shorter values are not secrets; masking them would only damage the text."""

_SHORT_ESCAPES = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_RUNS = re.compile(r"\\+|[^\\]", re.DOTALL)
_ESCAPED = re.compile(r"\\u00|%[2-7]")
_ESCAPED_WIDELY = re.compile(r"\\u|%[0-9a-fA-F]")
_TOKEN = re.compile(rb'\\+u[0-9a-fA-F]{4}|%[0-9a-fA-F]{2}|\\+["/bfnrt]|\\+|[^\\%]|%', re.DOTALL)
_PARTIAL_ESCAPE = re.compile(rb"(?:\\+(?:u[0-9a-fA-F]{0,3})?|%[0-9a-fA-F]?)\Z")
_CONTROLS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}
_LONGEST_ESCAPE = 8
"""How many bytes one byte of a secret may take, with one or two backslashes for JSON inside JSON."""


@dataclass(frozen=True, slots=True)
class SecretForms:
    """Compiled search patterns for some secrets. They are reused: secrets are few, and every piece of a stream is
    searched.

    `literal` are the usual spellings, longest first, which are quick to find. `_pattern` finds every spelling and is
    used only if the text has an escape that could hide one.
    """

    literal: tuple[str, ...]
    _pattern: re.Pattern[str]
    _escaped: re.Pattern[str]

    def mask(self, text: str) -> str:
        """The text with the secrets masked."""
        # Searching for one literal after another takes a fraction of the time of a pattern, and usually finds none.
        # Escapes are first looked for by how they begin: that takes a tenth of the time of a pattern that finds
        # nothing.
        has_escape = ("%" in text or ("\\" in text and "\\u" in text)) and self._escaped.search(text) is not None
        if has_escape:
            return self._pattern.sub(MASK, text)
        for form in self.literal:
            if form in text:
                return self._pattern.sub(MASK, text)
        return text


@dataclass(frozen=True, slots=True)
class SecretBytes:
    """The same for bytes, and for the end of a chunk, where a secret may have begun."""

    literal: tuple[bytes, ...]
    _plain: tuple[bytes, ...]
    _pattern: re.Pattern[bytes]
    _escaped: re.Pattern[bytes]
    ends: frozenset[int]
    """The bytes that an incomplete secret may end in."""

    def mask(self, data: bytes) -> tuple[bytes, bool]:
        """The bytes with the secrets masked, and whether there was one."""
        for form in self.literal:
            # `find`, because `in` first tries to read bytes as a number, and fails each time.
            if data.find(form) >= 0:
                return self._pattern.sub(MASK.encode(), data), True
        # Searching for one byte takes a hundredth of the time of searching for two.
        has_unicode = data.find(b"\\") >= 0 and data.find(b"\\u") >= 0
        if not (has_unicode or data.find(b"%") >= 0) or self._escaped.search(data) is None:
            return data, False
        shown, count = self._pattern.subn(MASK.encode(), data)
        return shown, count > 0

    def begins_at(self, data: bytes) -> int:
        """Where a secret may have begun at the end of these bytes, whose last byte is one of `ends`; their length if
        none has."""
        window = max(0, len(data) - _LONGEST_ESCAPE * max(map(len, self._plain)))
        tail = data[window:]
        half = _PARTIAL_ESCAPE.search(tail)
        end = len(tail) if half is None else half.start()
        piece = tail[:end]
        starts: Sequence[int] = range(end)
        if b"\\" in piece or b"%" in piece:
            piece, starts = _undo_escapes(piece)
        places = [end] if half is not None else []
        places += [starts[at] for secret in self._plain if (at := _prefix_at(piece, secret)) is not None]
        return window + min(places, default=len(tail))


@lru_cache(maxsize=256)
def forms_of(secrets: tuple[str, ...]) -> SecretForms | None:
    """The search patterns for these secrets in text; None if there is nothing to find."""
    kept = _usable_secrets(secrets)
    if not kept:
        return None
    return SecretForms(_literal(kept), re.compile(_pattern_of(kept)), _escapes_in(kept))


@lru_cache(maxsize=256)
def bytes_of(secrets: tuple[str, ...]) -> SecretBytes | None:
    """The search patterns for these secrets in bytes; None if there is nothing to find."""
    kept = _usable_secrets(secrets)
    if not kept:
        return None
    literal = tuple(map(_encode_text, _literal(kept)))
    pattern = re.compile(_encode_text(_pattern_of(kept)))
    ends = frozenset(b"".join(literal) + b"\\%u0123456789abcdefABCDEF")
    plain = tuple(map(_encode_text, kept))
    return SecretBytes(literal, plain, pattern, re.compile(_encode_text(_escapes_in(kept).pattern)), ends)


def without_scheme(value: str) -> str:
    """A credential without the scheme in front of it."""
    return value.strip().rpartition(" ")[2]


def _usable_secrets(secrets: Iterable[str]) -> tuple[str, ...]:
    """The secrets that are long enough, longest first, so that masking a secret that is a prefix of another leaves no
    rest."""
    return tuple(sorted({secret for secret in secrets if len(secret) >= SHORTEST}, key=len, reverse=True))


def _encode_text(text: str) -> bytes:
    # Variables may hold bytes that are not text, which Python represents as lone surrogates.
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _literal(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """The usual spellings of secrets: as they are, in an address and in JSON."""
    forms = set(secrets)
    for secret in secrets:
        if secret.isprintable():
            forms |= {quote(secret, safe=""), quote(secret)}
        for is_ascii in (True, False):
            inside = json.dumps(secret, ensure_ascii=is_ascii)[1:-1]
            forms |= {inside, inside.replace("/", r"\/")}
    return tuple(sorted(forms, key=len, reverse=True))


def _escapes_in(secrets: tuple[str, ...]) -> re.Pattern[str]:
    """A pattern that is in every text with an unusual spelling. Most keys are printable ASCII, which few texts
    escape."""
    return _ESCAPED if all(each.isascii() and each.isprintable() for each in secrets) else _ESCAPED_WIDELY


def _pattern_of(secrets: tuple[str, ...]) -> str:
    return "|".join("".join(_unit(run) for run in _RUNS.findall(secret)) for secret in secrets)


def _unit(run: str) -> str:
    """A pattern for one character, or a run of backslashes, in any spelling."""
    if run[0] == "\\":
        count = f"{{{len(run)}}}"
        return rf"(?:\\{{{len(run)},}}|(?:\\+u005[cC]){count}|(?:%5[cC]){count})"
    literal = re.escape(run)
    if run in '"/':
        literal = rf"\\*{literal}"
    elif run in _SHORT_ESCAPES:
        literal = rf"(?:{literal}|\\+{_SHORT_ESCAPES[run]})"
    halves = run.encode("utf-16-be", "surrogatepass").hex()
    escaped = "".join(rf"\\+u{_any_case(halves[at : at + 4])}" for at in range(0, len(halves), 4))
    coded = "".join(f"%{_any_case(f'{octet:02x}')}" for octet in _encode_text(run))
    # `%25` before `%`: the short spelling would leave the rest of the long one in the text.
    return f"(?:{coded}|{escaped}|{literal})" if run == "%" else f"(?:{literal}|{escaped}|{coded})"


def _any_case(digits: str) -> str:
    return "".join(digit if digit.isdigit() else f"[{digit}{digit.upper()}]" for digit in digits)


def _undo_escapes(data: bytes) -> tuple[bytes, Sequence[int]]:
    """The bytes with their escapes undone, and the original position of each resulting byte."""
    decoded, starts = bytearray(), list[int]()
    for token in _TOKEN.finditer(data):
        plain = _unescape_token(token[0])
        decoded += plain
        starts += [token.start()] * len(plain)
    return bytes(decoded), starts


def _unescape_token(token: bytes) -> bytes:
    if token[:1] == b"%":
        return unquote_to_bytes(token)
    mark = token.lstrip(b"\\")
    if len(mark) == len(token):
        return token
    if mark[:1] == b"u":
        return chr(int(mark[1:], 16)).encode("utf-8", "surrogatepass")
    return _CONTROLS.get(mark) or mark or b"\\" * ((len(token) + 1) // 2)


def _prefix_at(data: bytes, secret: bytes) -> int | None:
    """The first position from which the rest of these bytes is the beginning of the secret; None if there is none."""
    at = data.find(secret[:1], max(0, len(data) - len(secret) + 1))
    while at >= 0:
        if secret.startswith(data[at:]):
            return at
        at = data.find(secret[:1], at + 1)
    return None


def redact_text(text: str, secrets: Iterable[str]) -> str:
    """The text with all secrets masked, however they are spelled."""
    forms = forms_of(tuple(secrets))
    return text if forms is None else forms.mask(text)


def redact_json(value: Json, secrets: Iterable[str]) -> Json:
    """The value with the secrets masked in all its strings, including keys."""
    forms = forms_of(tuple(secrets))
    return value if forms is None else _redact_value(value, forms)


def _redact_value(value: Json, forms: SecretForms) -> Json:
    match value:
        case str():
            return forms.mask(value)
        case list():
            return [_redact_value(item, forms) for item in value]
        case dict():
            return {forms.mask(key): _redact_value(item, forms) for key, item in value.items()}
        case _:
            return value


_SHORTEST_OF_CLIENTS = 8
"""A client without a key often sends a placeholder word, and a short word may occur in any answer."""

_USER = re.compile(r"(?<=://)[^/@\s?#]+@")


def parameters(query: str) -> list[tuple[str, str]]:
    """The pieces of a query as they are written, each with its decoded parameter name."""
    return [(unquote(piece.partition("=")[0]).lower(), piece) for piece in query.split("&") if piece]


def secrets_of(headers: tuple[tuple[str, str], ...], query: str) -> tuple[str, ...]:
    """The values with which a client authenticates, in headers and in the query."""
    written = [piece.partition("=")[2] for name, piece in parameters(query) if is_secret_parameter(name)]
    values = [form for value in written for form in (value, unquote(value))]
    for name, value in headers:
        if name.lower() == "cookie":
            values += [cookie.partition("=")[2].strip() for cookie in value.split(";")]
        elif is_secret_header(name):
            values.append(without_scheme(value))
    return tuple(dict.fromkeys(value for value in values if len(value) >= _SHORTEST_OF_CLIENTS))


@lru_cache(maxsize=256)
def decode_names(names: tuple[bytes, ...]) -> tuple[tuple[str, ...], bool]:
    """The names of headers as text, and whether one of them names a secret. Cached, because a provider's responses have
    the same names again and again."""
    text = tuple(name.decode("latin-1") for name in names)
    return text, any(map(is_secret_header, text))


class Redaction:
    """Masks the secrets of one exchange in what is recorded of it."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self.secrets = tuple(dict.fromkeys(secret for secret in secrets if len(secret) >= SHORTEST))
        self._forms = forms_of(self.secrets)

    def text(self, text: str) -> str:
        """Mask the secrets in a text, and the user in its addresses."""
        text = self.words(text)
        return _USER.sub(f"{MASK}@", text) if "@" in text and "://" in text else text

    def words(self, text: str) -> str:
        """Mask the secrets in a text, without looking for users in addresses."""
        return text if self._forms is None else self._forms.mask(text)

    def headers(self, headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        """Headers, with the value masked if the header's name makes it a secret."""
        return tuple((name, MASK if is_secret_header(name) else self.text(value)) for name, value in headers)

    def raw_headers(self, headers: tuple[tuple[bytes, bytes], ...]) -> tuple[tuple[str, str], ...]:
        """The same for headers as they arrived. All values are searched at once, because there is usually no secret."""
        if not headers:
            return ()
        names, values = zip(*headers, strict=True)
        known, has_secret = decode_names(names)
        joined = b"\n".join(values).decode("latin-1")  # headers have no line breaks
        found = self.headers_of_values(known, joined, has_secret=has_secret)
        return self.headers(tuple(zip(known, joined.split("\n"), strict=True))) if found is None else found

    def headers_of_values(
        self, names: tuple[str, ...], values: str, *, has_secret: bool
    ) -> tuple[tuple[str, str], ...] | None:
        """Headers with these names and values, one value per line. `has_secret` is whether a name makes its value a
        secret. None if a value holds a secret."""
        if self._forms is not None and self._forms.mask(values) != values:
            return None
        headers = tuple(zip(names, values.split("\n"), strict=True))
        return self.headers(headers) if has_secret or "@" in values else headers

    def address(self, path: str, query: str) -> str:
        """A path with its query, masked."""
        kept = [
            f"{piece.partition('=')[0]}={MASK}" if is_secret_parameter(name) else piece
            for name, piece in parameters(query)
        ]
        return self.text(f"{path}?{'&'.join(kept)}" if kept else path)

    def masking(self) -> "Masking":
        """A masking for bytes that are still arriving."""
        return Masking(self.secrets)


def spellings(secrets: tuple[str, ...]) -> tuple[bytes, ...]:
    """The usual spellings of these secrets."""
    known = bytes_of(secrets)
    return () if known is None else known.literal


class Masking:
    """Masks secrets in bytes while they arrive, even if one is split between chunks.

    Bytes are held back only while they may be the beginning of a secret. `has_found` is whether there was one.
    """

    def __init__(self, secrets: tuple[str, ...]) -> None:
        self._known = bytes_of(secrets)
        self._held = b""
        self.has_found = False

    @property
    def has_secrets(self) -> bool:
        """Whether there is anything to look for."""
        return self._known is not None

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
        if not data or data[-1] not in known.ends:
            self._held = b""  # as at the end of a frame: secrets have no line breaks
            return data
        cut = known.begins_at(data)
        self._held = data[cut:]
        return data[:cut]

    def feed_all(self, pieces: list[bytes]) -> list[bytes]:
        """The result of `feed` for each of these pieces. Usually they hold no secret, and the same list is returned."""
        known = self._known
        if known is None or not pieces:
            return pieces
        if not self._held and pieces[-1][-1:] and pieces[-1][-1] not in known.ends:
            whole = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            if not known.mask(whole)[1]:
                return pieces
        return [self.feed(piece) for piece in pieces]

    def close(self) -> bytes:
        """The bytes that were held back and turned out not to be a secret."""
        held, self._held = self._held, b""
        return held
