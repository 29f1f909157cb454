"""Where a dialect is served: the call that takes a body to a provider (URL, headers, the place of the key), and which
dialect a request to the gateway is written in, by its path or else by what only clients of one dialect send."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote, urlencode

from sightline.catalog.provider import LEADING_VARIABLE, Provider
from sightline.dialects.dialect import Counting, Dialect, Endpoint
from sightline.dialects.fields import whole_number
from sightline.dialects.registry import DEFAULT, dialect, dialects
from sightline.dialects.stored import StoredCall
from sightline.errors import Code, Fault
from sightline.model.events import StreamEvent
from sightline.model.json import Json
from sightline.wire.call import RequestTemplate, TemplateValue, Variable, can_stray
from sightline.wire.jsontext import decode, encode


@dataclass(frozen=True, slots=True)
class PathMatch:
    """A path at which a dialect is served. `model` is the model that the path names; `counts`: the path asks for the
    token count of a request."""

    dialect: str
    model: str = ""
    is_stream: bool = False
    counts: bool = False


def match_path(segments: Sequence[str]) -> PathMatch | None:
    """The dialect that is served at this path, given as decoded segments after the version; None if there is none."""
    for name, endpoint in _endpoints():
        for template, is_stream, counts in _templates(endpoint):
            model = _model_in(segments, template)
            if model is not None:
                return PathMatch(name, model, is_stream, counts)
    return None


def match_stored(path: str) -> StoredCall | None:
    """What a path, percent-encoded as it arrived, asks of stored replies; None if it is for something else."""
    segments = [unquote(segment) for segment in path.split("/") if segment]
    while segments and re.fullmatch(r"v\d+[a-z0-9]*", segments[0]):
        del segments[0]
    for spoken, endpoint in _endpoints():
        place = endpoint.path.strip("/").split("/")
        name, rest, *_ = *segments[len(place) :], "", ""
        if endpoint.stored is not None and segments[: len(place)] == place and len(segments) <= len(place) + 2:
            return StoredCall(spoken, name, rest)
    return None


def has_readable_reply(path: str) -> bool:
    """Whether the response at a path that no dialect serves is read nevertheless, to be shown and counted."""
    from sightline.dialects.gemini.interactions import is_interaction  # no dialect is loaded before it is needed

    return is_interaction(path)


def read_raw_reply(path: str, data: bytes) -> list[StreamEvent]:
    """The events of a response that was passed through unchanged; empty if its format is not known."""
    from sightline.dialects.gemini.interactions import read_interaction

    return read_interaction(data) if has_readable_reply(path) else []


def dialect_by_prefix(segments: Sequence[str], version: str) -> str:
    """The dialect whose paths begin like this one, or whose versions match; empty if there is none."""
    for name, endpoint in _endpoints():
        if segments and endpoint.path.split("/")[1] == segments[0]:
            return name
    return dialect_by_version(version)


def dialect_by_version(version: str) -> str:
    """The dialect whose API is the only one with this version; empty if there is none."""
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
    """The dialect whose paths name a model and an operation (`models/MODEL:generateContent`)."""
    return next((each.name for each in provider_dialects() if each.model_in_path), DEFAULT)


def provider_dialects() -> Iterator[Dialect]:
    """The dialects that providers serve."""
    return (each for each in dialects() if each.endpoint is not None)


def _endpoints() -> Iterator[tuple[str, Endpoint]]:
    """The names of the dialects that providers serve, each with its endpoint."""
    return ((each.name, each.endpoint) for each in dialects() if each.endpoint is not None)


def _templates(endpoint: Endpoint) -> Iterator[tuple[str, bool, bool]]:
    """The paths of an endpoint, each with whether it streams and whether it counts."""
    yield endpoint.path, False, False
    if endpoint.stream_path:
        yield endpoint.stream_path.partition("?")[0], True, False
    if endpoint.counting is not None and endpoint.counting.is_served:
        yield endpoint.counting.path, False, True


def _model_in(segments: Sequence[str], template: str) -> str | None:
    """The model that a path of this template names, empty if the template has none; None if they do not match."""
    before, variable, after = template.partition("{model}")
    parts = before.strip("/").split("/")
    if not variable:
        return "" if list(segments) == parts else None
    # A model's name may have slashes in it.
    name = "/".join(segments[len(parts) :])
    fits = list(segments[: len(parts)]) == parts and name.endswith(after) and len(name) > len(after)
    return name[: len(name) - len(after)] if fits else None


_VERSION = re.compile(r"/v\d+[a-z0-9]*$")
_JSON = ("content-type", "application/json")


def call_to(provider: Provider, spoken: str, model: str, body: bytes, *, stream: bool) -> RequestTemplate:
    """A request of this dialect with the provider's own headers and query. The provider must speak the dialect."""
    endpoint = endpoint_of(spoken)
    path = endpoint.stream_path if stream and endpoint.stream_path else endpoint.path
    accept = "text/event-stream" if stream else "application/json"
    return _call(provider, spoken, path, model, body, accept)


def count_call(provider: Provider, spoken: str, model: str, body: bytes) -> RequestTemplate:
    """The request that asks for the token count of a request of this dialect. The provider must support counting."""
    counting = counting_of(spoken)
    document = decode(body)
    if isinstance(document, dict) and counting.fields:
        document = {key: value for key, value in document.items() if key in counting.fields}
    if isinstance(document, dict) and counting.wrapper:
        document = {counting.wrapper: {"model": f"models/{model.removeprefix('models/')}", **document}}
    return _call(provider, spoken, counting.path, model, encode(document), "application/json")


def embeddings_call(provider: Provider, spoken: str, model: str, body: bytes) -> RequestTemplate:
    """The request that embeds texts in the API of this dialect, which must have embeddings."""
    embeddings = endpoint_of(spoken).embeddings
    assert embeddings is not None
    return _call(provider, spoken, embeddings.path, model, body, "application/json")


def read_token_count(spoken: str, answer: Json) -> int:
    """The number in the response to a count request."""
    field = counting_of(spoken).result
    count = whole_number(answer.get(field)) if isinstance(answer, dict) else None
    if count is None:
        raise Fault(Code.UPSTREAM_PROTOCOL, f"the answer holds no {field}", hint="The provider may not count tokens.")
    return count


def address(provider: Provider, spoken: str, tail: str, version: str = "") -> TemplateValue:
    """The provider's URL for a path of this dialect; `version` is one that the client named itself."""
    endpoint = endpoint_of(spoken)
    if endpoint.version and version:
        endpoint = replace(endpoint, version=version)
    return _url(provider, spoken, endpoint, tail)


_NAMES_VERSION = re.compile(r"/+(?:(?:upload|download|batch|resumable)/+)?v\d+[a-z0-9]*(?:[/:?]|$)|/+ws/")


def raw_address(provider: Provider, tail: str) -> TemplateValue:
    """The provider's URL for a path, with its query, that is passed through unchanged. A version at the end of the base
    URL gives way to one that the path names, wherever its API puts that (`/upload/v1beta/files`)."""
    root = provider.base_url.rstrip("/")
    if _NAMES_VERSION.match(tail):
        root = _VERSION.sub("", root)
    return _url_below(root, tail)


def dialect_by_api(path: str, headers: Collection[str], query: str) -> str:
    """The dialect whose API has this path, which no dialect serves, by its version or else by the client; empty if the
    path belongs to no API."""
    segments = [segment for segment in path.split("/") if segment]
    first = segments[0] if segments else ""
    for each in provider_dialects():
        if each.clients.raw_paths is not None and each.clients.raw_paths.match("/".join(segments)):
            return each.name
    shown = _dialect_by_credential(headers) or dialect_by_client(headers, query)
    if re.fullmatch(r"v\d+", first) or shown != DEFAULT:
        return shown
    return dialect_by_prefix(segments, "") or (shown if first in _COLLECTIONS else "")


_COLLECTIONS = frozenset(
    {
        "assistants", "audio", "batches", "completions", "containers", "conversations", "embeddings", "evals", "files",
        "fine_tuning", "images", "moderations", "realtime", "skills", "threads", "uploads", "vector_stores", "videos",
    }
)  # fmt: skip
"""The first words of paths of OpenAI's API that are recognised even without a version:
https://platform.openai.com/docs/api-reference. Clients whose base URL leaves the version out ask for these."""


def _dialect_by_credential(headers: Collection[str]) -> str:
    """The dialect that takes its credential in one of these headers, unlike all others; empty if there is none."""
    for spoken, endpoint in _endpoints():
        name = endpoint.credential[0].lower()
        if name != "authorization" and name in headers:
            return spoken
    return ""


def credential(provider: Provider, spoken: str) -> tuple[str, str]:
    """The header in which this provider takes a key, and the prefix of the key."""
    if provider.key_header:
        return provider.key_header, "Bearer " if provider.key_header.lower() == "authorization" else ""
    return endpoint_of(spoken).credential


def in_path(model: str) -> str:
    """The model's name as a piece of a path, without the collection that it may have been given with. A name that would
    lead to another path is refused, because the provider's key would be sent there too."""
    name = model.removeprefix("models/")
    if not name or can_stray(name):
        hint = "Give the name that the provider uses."
        raise Fault(Code.MODEL_UNKNOWN, f"{model!r} is not the name of a model", hint=hint, status=400)
    return quote(name, safe="/:@")


def endpoint_of(spoken: str) -> Endpoint:
    """Where this dialect is served."""
    endpoint = dialect(spoken).endpoint
    if endpoint is None:
        raise Fault(Code.USAGE, f"no provider speaks {spoken}", hint="Translate it to a provider's dialect first.")
    return endpoint


def counting_of(spoken: str) -> Counting:
    """How tokens are counted in this dialect."""
    counting = endpoint_of(spoken).counting
    if counting is None:
        raise Fault(Code.USAGE, f"tokens are not counted in {spoken}", hint="Rely on the estimate.")
    return counting


def _call(provider: Provider, spoken: str, path: str, model: str, body: bytes, accept: str) -> RequestTemplate:
    endpoint = endpoint_of(spoken)
    headers: list[tuple[str, TemplateValue]] = [_JSON, ("accept", accept), *endpoint.headers]
    if provider.key_env:
        name, prefix = credential(provider, spoken)
        headers.append((name, Variable(provider.key_env, prefix, help=provider.key_help)))
    headers.extend(provider.headers.items())
    headers.extend((name, Variable(variable, optional=True)) for name, variable in provider.env_headers.items())
    # A configured header replaces the usual one: no header is sent twice.
    last = {name.lower(): (name, value) for name, value in headers}
    tail = path.replace("{model}", in_path(model)) if "{model}" in path else path
    if provider.query:
        tail += ("&" if "?" in tail else "?") + urlencode(provider.query)
    return RequestTemplate("POST", _url(provider, spoken, endpoint, tail), tuple(last.values()), body)


def _url(provider: Provider, spoken: str, endpoint: Endpoint, tail: str) -> TemplateValue:
    other = provider.also.get(spoken, "")
    root = (other or provider.base_url).rstrip("/")
    if provider.version is not None:
        return _url_below(root, f"{provider.version}{tail}")
    return _url_below(root, f"{'' if _VERSION.search(root) else endpoint.version}{tail}")


def _url_below(root: str, tail: str) -> TemplateValue:
    if variable := LEADING_VARIABLE.match(root):
        return Variable(variable[1], suffix=f"{root[variable.end() :]}{tail}", help="It is the provider's address.")
    return f"{root}{tail}"
