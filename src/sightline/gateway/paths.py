"""Parses the path of a request, in all the variations that clients' base URLs produce, and begins the request with it.

Most clients let a user set only a base URL, and then append their own path. So `/p/{provider}` and `/s/{session}` may
come first, slashes may be doubled or trailing, and a version may be missing or doubled.
"""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal
from urllib.parse import unquote

from sightline.dialects.endpoint import dialect_by_client, dialect_by_prefix, dialect_by_version, match_path
from sightline.exchange.client_request import ClientRequest, text_headers
from sightline.web.asgi import AsgiScope, Upstream

Kind = Literal["ask", "models", "model", "unknown"]

_VERSION = re.compile(r"v\d+(?:(?:alpha|beta|p)\d*)*")


@dataclass(frozen=True, slots=True)
class GatewayPath:
    """What a path asks for. `path` is the part after the prefixes, as the client wrote it, with one slash in front.
    `model` is the model in the path. `dialect` is empty if the path does not determine it."""

    kind: Kind
    path: str
    dialect: str = ""
    model: str = ""
    is_stream: bool = False
    counts: bool = False
    provider: str = ""
    session: str = ""


@lru_cache(maxsize=1024)
def parse_path(raw: str) -> GatewayPath:
    """Parse a path, percent-encoded as it arrived."""
    prefixes, path = _without_prefixes(raw)
    return replace(_parse(path), provider=prefixes.get("p", ""), session=prefixes.get("s", ""))


@lru_cache(maxsize=1024)
def parse_upstream_path(raw: str, upstream: Upstream) -> GatewayPath:
    """Parse a path at a provider's own host, where it may be below the path of a base URL. The path stays as it is; the
    provider and the session are not read from it."""
    below = (raw[len(base) :] for base in upstream.bases if raw.startswith(f"{base}/"))
    found = list(map(_parse, (*below, raw)))
    meant = next((each for each in found if each.kind == "ask"), found[-1])
    return replace(meant, path=raw, provider=upstream.provider, session=upstream.session)


def _parse(path: str) -> GatewayPath:
    segments = [unquote(segment) for segment in path.split("/") if segment]
    version = ""
    while segments and _VERSION.fullmatch(segments[0]):
        version = segments.pop(0)
    found = match_path(segments)
    if found is not None:
        return GatewayPath("ask", path, found.dialect, found.model, found.is_stream, found.counts)
    if segments[:1] == ["models"]:
        model = "/".join(segments[1:])
        return GatewayPath("model" if model else "models", path, dialect_by_version(version), model)
    return GatewayPath("unknown", path, dialect_by_prefix(segments, version))


def caller_of(place: GatewayPath, headers: list[tuple[bytes, bytes]], query: str) -> str:
    """The caller's dialect: by the path, otherwise by the headers."""
    return place.dialect or dialect_by_client({name.decode("latin-1") for name, _ in headers}, query)


def begin_request(scope: AsgiScope, place: GatewayPath) -> ClientRequest:
    """The request with this head, still without its body. `content-length` differs from request to request, and is left
    out."""
    upstream = scope["upstream"].origin if "upstream" in scope else ""
    return ClientRequest(
        place.dialect,
        b"",
        text_headers(each for each in scope["headers"] if each[0] != b"content-length"),
        place.path,
        scope["query_string"].decode("latin-1"),
        provider=place.provider,
        session=place.session,
        upstream=upstream,
        transport="tls" if upstream else "http",
    )


def _without_prefixes(raw: str) -> tuple[dict[str, str], str]:
    """The prefixes by their letter, each at most once, and the rest of the path."""
    prefixes: dict[str, str] = {}
    path = "/" + raw.lstrip("/")
    while True:
        _, letter, *rest = path.split("/", 3)
        if letter not in ("p", "s") or letter in prefixes or not rest or not rest[0]:
            return prefixes, path
        prefixes[letter] = unquote(rest[0])
        path = "/" + (rest[1].lstrip("/") if len(rest) > 1 else "")
