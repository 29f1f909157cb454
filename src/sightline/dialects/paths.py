"""Which dialect a request to a server is of: by its path, else by what only clients of one dialect send."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sightline.dialects.dialect import Dialect, Endpoint
from sightline.dialects.registry import DEFAULT, dialects


@dataclass(frozen=True, slots=True)
class PathMatch:
    """A path at which a dialect is served. `model` is what the path says of it; `counts`: it asks for the tokens of a
    request."""

    dialect: str
    model: str = ""
    is_stream: bool = False
    counts: bool = False


def match_path(segments: Sequence[str]) -> PathMatch | None:
    """The dialect that is served at this path, which is given behind its version, decoded."""
    for each in provider_dialects():
        assert each.endpoint is not None
        for template, is_stream, counts in _templates(each.endpoint):
            model = _model_in(segments, template)
            if model is not None:
                return PathMatch(each.name, model, is_stream, counts)
    return None


def dialect_by_prefix(segments: Sequence[str], version: str) -> str:
    """The dialect whose paths begin like this one, or have such a version; empty where that says nothing."""
    for each in provider_dialects():
        if each.endpoint is not None and segments and each.endpoint.path.split("/")[1] == segments[0]:
            return each.name
    return dialect_by_version(version)


def dialect_by_version(version: str) -> str:
    """The dialect of whose API alone this is a version; empty where there is none."""
    found = (
        each.name for each in provider_dialects() if each.clients.versions and each.clients.versions.fullmatch(version)
    )
    return next(found, "")


def dialect_by_client(headers: Collection[str], query: str) -> str:
    """The dialect of a client that sends these headers, by lower-case name, and this query."""
    parameters = {piece.partition("=")[0] for piece in query.split("&") if "=" in piece}
    # The latest first: a dialect that was added knows its own clients better than the built-in ones do.
    for each in reversed(tuple(provider_dialects())):
        if not each.clients.headers.isdisjoint(headers) or (
            each.clients.key_parameter and each.clients.key_parameter in parameters
        ):
            return each.name
    return DEFAULT


def dialect_of_model_paths() -> str:
    """The dialect whose paths name a model and what it is asked for (`models/MODEL:generateContent`)."""
    return next((each.name for each in provider_dialects() if each.model_in_path), DEFAULT)


def provider_dialects() -> Iterator[Dialect]:
    """The dialects that providers serve."""
    return (each for each in dialects() if each.endpoint is not None)


def _templates(endpoint: Endpoint) -> Iterator[tuple[str, bool, bool]]:
    """The paths of an endpoint, each with whether it streams and whether it counts."""
    yield endpoint.path, False, False
    if endpoint.stream_path:
        yield endpoint.stream_path.partition("?")[0], True, False
    if endpoint.counting is not None and endpoint.counting.is_served:
        yield endpoint.counting.path, False, True


def _model_in(segments: Sequence[str], template: str) -> str | None:
    """The model that a path of this template names, empty where the template has none; None if it does not fit."""
    before, variable, after = template.partition("{model}")
    parts = before.strip("/").split("/")
    if not variable:
        return "" if list(segments) == parts else None
    # A model's name may have slashes in it.
    name = "/".join(segments[len(parts) :])
    fits = list(segments[: len(parts)]) == parts and name.endswith(after) and len(name) > len(after)
    return name[: len(name) - len(after)] if fits else None
