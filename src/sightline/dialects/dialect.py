"""The `Dialect` record: one provider's API as pure functions and facts, for reading and for writing, because the
gateway is both a client and a server of it.

Everything that differs between provider APIs is a field of `Dialect`; no other package compares a dialect's name. A
field that every dialect must decide has no default: a missing entry is a type error.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from re import Pattern
from typing import Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from sightline.catalog.compose import DialectSupport
from sightline.catalog.facts import Facts, PartRule, Sampler
from sightline.catalog.fitting import ReasoningForm
from sightline.catalog.provider import Quirks
from sightline.dialects.embeddings import EmbeddingsApi
from sightline.dialects.stored import StoredApi
from sightline.dialects.tool_names import NameRule
from sightline.errors import Code, Fault
from sightline.model.events import StreamEvent
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Opaque
from sightline.model.reply import Reply
from sightline.model.report import Report
from sightline.model.request import Message, Request
from sightline.wire.sse import Frame


@dataclass(frozen=True, slots=True)
class ApiVersions:
    """The dated versions of an API. `header` is the request header that names the version. `refuses` lists, with the
    version from which it applies, the options and parts that are refused for every model; the options even if they ask
    for the default."""

    header: str
    refuses: tuple[tuple[str, tuple[Sampler, ...], tuple[PartRule, ...]], ...]

    def narrow(self, facts: Facts, headers: Iterable[tuple[str, str]]) -> Facts:
        """The facts of a model for a request with these headers. The last header that names a version counts."""
        version = ""
        for name, value in headers:
            if name.lower() == self.header:
                version = value.strip()
        active = [(names, parts) for since, names, parts in self.refuses if since <= version]
        if not active:
            return facts
        options = (*(facts.refuses or ()), *(name for names, _ in active for name in names))
        parts = (*(facts.refuses_parts or ()), *(each for _, each_parts in active for each in each_parts))
        return msgspec.structs.replace(
            facts,
            refuses=tuple(dict.fromkeys(options)),
            refuses_defaults=True,
            refuses_parts=tuple(dict.fromkeys(parts)),
        )


SystemPolicy = Literal["in_place", "merge_leading", "merge_all"]
CachePolicy = Literal["auto", "off"]
Paths: TypeAlias = tuple[tuple[str, ...], ...]
"""Paths of keys below a value; the first path that leads to something is used."""
Band: TypeAlias = tuple[float, float, float]
"""The lowest, the usual and the highest value of a figure that a provider does not publish."""
CacheGroup = Literal["format", "tools", "system", "settings"]
_NO_QUIRKS = Quirks()


@dataclass(frozen=True, slots=True)
class Target:
    """Settings for writing a request: what the provider that will read it needs, beyond the request itself.

    `quirks` are the provider's. `max_tokens` is used if the dialect requires a limit and the request sets none. `facts`
    are those of the model: what the model refuses is left out of a translation. They are None if nothing is known about
    the model. With `states_tools`, a Responses request without tools states that it has none. `cache`: an agent's
    request gets cache marks in a dialect that needs them, if its own dialect has none. `provider` is the provider's
    name, empty if it may be any.
    """

    system: SystemPolicy = "in_place"
    quirks: Quirks = _NO_QUIRKS
    max_tokens: int = 8192
    facts: Facts | None = None
    states_tools: bool = False
    cache: CachePolicy = "auto"
    provider: str = ""


@dataclass(frozen=True, slots=True)
class Client:
    """What the reader of a reply expects: an id and a model if the provider gave none, and usage only if requested.

    `as_array`: a stream is written as one JSON array, in the dialect that has that form. `request` is the client's own
    request, for a dialect whose replies repeat it. `provider` is the name of the provider that answers; its signatures
    are sent back only to it. `reply_id` is the id that a translated reply gets in place of the provider's.
    """

    include_usage: bool = True
    id: str = ""
    model: str = ""
    created: int = 0
    input_tokens: int = 0
    as_array: bool = False
    request: Request | None = None
    provider: str = ""
    reply_id: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a request that the API rejects (`error`) or handles badly (`warning`), and its place. `rule`
    names the broken rule if an edit can fix it."""

    pointer: str
    message: str
    severity: Literal["error", "warning"] = "error"
    rule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """What a dialect knows about those of its fields that are not modelled.

    Losing `bookkeeping` changes nothing that is read later. `echoes` are fields in which a reply repeats its request.
    `containers` hold modelled fields too, so that only their unknown members are lost. `stateful` fields refer to
    messages that the provider stores. A line of a system prompt that begins with one of `private_lines` is meant for
    the provider only, not for any model.
    """

    bookkeeping: frozenset[str] = frozenset()
    echoes: frozenset[str] = frozenset()
    containers: frozenset[str] = frozenset()
    stateful: frozenset[str] = frozenset()
    private_lines: tuple[str, ...] = ()


class StreamReading(Protocol):
    """Reads frames and returns events; the events end with exactly one `Ended`."""

    @property
    def is_complete(self) -> bool:
        """Whether the bytes could end here."""
        ...

    def feed(self, frame: Frame) -> list[StreamEvent]:
        """The events of the next frame."""
        ...

    def close(self) -> list[StreamEvent]:
        """The last events, when the bytes have ended."""
        ...


class StreamWriting(Protocol):
    """Takes events and returns bytes; after `Ended` the bytes hold exactly one legal terminal."""

    def feed(self, event: StreamEvent) -> bytes:
        """The bytes of the next event."""
        ...


@dataclass(frozen=True, slots=True)
class Counting:
    """How to ask a provider for the token count of a request.

    `path` is the path, and `fields` are the fields of the body that it takes (empty: all). `wrapper` is the field that
    holds the whole request, if there is one; `result` is the field of the count. The gateway serves this path itself
    only if `is_served`.
    """

    path: str
    fields: frozenset[str] = frozenset()
    wrapper: str = ""
    result: str = "input_tokens"
    is_served: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a dialect is served, by a provider and by the gateway: the paths after the base URL, and the key's header.

    `{model}` in a path is the model's name. `stream_path` is the path for streams, if it is a different one. `version`
    is added to a base URL that does not end in one. `credential` is the header of the key and the word before the key.
    `embeddings` describes how texts are embedded there, `stored` how stored replies are requested; each is None if the
    API does not have it.
    """

    path: str
    stream_path: str = ""
    version: str = ""
    credential: tuple[str, str] = ("authorization", "Bearer ")
    headers: tuple[tuple[str, str], ...] = ()
    counting: Counting | None = None
    embeddings: EmbeddingsApi | None = None
    stored: StoredApi | None = None


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model under the name that clients use for it."""

    id: str
    provider: str
    facts: Facts


KEEP_ALIVE_COMMENT = b": held\n\n"


def comment_keep_alive(_headers: Mapping[str, str]) -> bytes:
    """A comment: the keep-alive that the standard for server-sent events provides."""
    return KEEP_ALIVE_COMMENT


def show_model(model: ListedModel) -> JsonObject:
    """One entry of the list of models."""
    return {"id": model.id, "object": "model", "created": 0, "owned_by": model.provider}


def list_models(models: Sequence[ListedModel]) -> JsonObject:
    return {"object": "list", "data": [show_model(model) for model in models]}


def state_fault(field: str) -> Fault:
    """The fault of a request that refers to a conversation stored by another provider. Clients of the Responses API
    react to its code by sending their whole history again."""
    return Fault(
        Code.INVALID_REQUEST,
        f"{field} is not known to the provider of this request; send the whole conversation",
        hint="Send the whole conversation with each request.",
        pointer=f"/{field}",
        details={"param": field, "code": "previous_response_not_found"},
    )


def has_mirrored_part(message: Message) -> bool:
    """Whether the message holds a piece of something that is read as a whole elsewhere."""
    return Opaque in map(type, message.parts) and any(
        isinstance(part, Opaque) and part.mirrored for part in message.parts
    )


@dataclass(frozen=True, slots=True)
class LimitHeaders:
    """The headers in which clients of a dialect read an account's rate limits. `template` is the header's name with
    `{role}` (limit, remaining, reset) and `{counted}`, which is one of `counted`; `reset` is the format of a reset
    time."""

    template: str
    counted: frozenset[str]
    reset: Literal["duration", "time"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """How clients of this dialect are recognised, and what they expect of a server besides replies.

    A client belongs to this dialect if it sends one of `headers`, the query parameter `key_parameter`, or a path whose
    version matches `versions`. `raw_paths` matches the beginnings, without a leading slash, of paths that belong only
    to this API and that no dialect serves. `keep_alive` returns the frame that keeps a waiting stream open, given the
    client's headers by lower-case name. `streams_array` tells from the query whether a stream is written as one JSON
    array. `beta_header` is the header in which clients ask for features that are not in the API yet. `tries_websocket`:
    clients begin with a WebSocket and fall back to HTTP on status 426. `list_models` writes the list of models,
    `show_model` one of them. `request_id` is the header, in lower case, by which clients refer to a request later.
    `limits` are the headers with the account's rate limits, None if clients read none. `state_fault` refuses a request
    that refers to state of another provider; its argument is the field that does so.
    """

    headers: frozenset[str] = frozenset()
    key_parameter: str = ""
    versions: Pattern[str] | None = None
    keep_alive: Callable[[Mapping[str, str]], bytes] = comment_keep_alive
    streams_array: Callable[[str], bool] = lambda _query: False
    beta_header: str = ""
    tries_websocket: bool = False
    list_models: Callable[[Sequence[ListedModel]], JsonObject] = list_models
    show_model: Callable[[ListedModel], JsonObject] = show_model
    state_fault: Callable[[str], Fault] = state_fault
    raw_paths: Pattern[str] | None = None
    request_id: str = ""
    limits: LimitHeaders | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafPaths:
    """Where a part's text is, below the part: the arguments of a call and the output of a result, each for functions
    and for built-in tools, and the text of a thought."""

    arguments: Paths = ()
    actions: Paths = ()
    responses: Paths = ()
    outputs: Paths = ()
    thinking: Paths = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Editing:
    """How an edit is written into a request of this dialect, and what else an edit changes.

    `container` is the member that holds the conversation, `parts_key` the member of an item that holds its parts.
    `roles` are the values of `role` for the roles that a message can be given; an item without a role may be given one
    if `adds_role`. `text_part` writes a text part for a role; `respell_part` rewrites an existing part when its message
    gets another role.
    Unless `reads_items_alone`, the meaning of an item depends on other items, and any edit reads the whole document
    again; `is_linked` says the same of one message. With `drops_reasoning`, a reasoning item is deleted together with
    what it led to. With `alternates`, no two turns of the model may follow each other. `signature_keys` are the keys
    that end a thought which is sent in pieces; the pieces are deleted together.
    """

    container: str
    parts_key: str
    roles: Mapping[str, Json]
    adds_role: bool = False
    text_part: Callable[[str, str], JsonObject]
    respell_part: Callable[[Json, str], Json] = lambda part, _role: part
    leaves: LeafPaths = LeafPaths()
    reads_items_alone: bool = True
    is_linked: Callable[[Message], bool] = has_mirrored_part
    drops_reasoning: bool = False
    alternates: bool = False
    signature_keys: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRules:
    """What the API requires of a request or allows in it, as far as the writers of requests have to know.

    `needs_max_tokens`: a request must limit its reply. `needs_tools_for_calls`: calls in the conversation are refused
    unless the request offers tools. `needs_result_names`: a tool result names its function; in other APIs its id
    identifies the call that it answers. `needs_declared_properties`: a schema that requires an undeclared property is
    refused. `takes_model_media`: images and audio that a model made can be sent back. `names_last_reply`: a request can
    name the last reply by its id instead of repeating the conversation. `may_hide_length`: some servers report a reply
    as complete although it was truncated at its limit. `codes_signatures`: what replaces a signature must be base64.
    """

    needs_max_tokens: bool = False
    needs_tools_for_calls: bool = False
    needs_result_names: bool = False
    needs_declared_properties: bool = False
    takes_model_media: bool = False
    names_last_reply: bool = False
    may_hide_length: bool = False
    codes_signatures: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRules:
    """How many tokens a provider of this dialect counts for content that it does not count as text.

    `page` is for one page of a document, `second` for one second of audio. `json_share` scales JSON that the provider
    converts to text in its own way. `call`, `result` and `picture` are added for each of these. Without
    `frames_system`, a system message has no frame. `has_chat_tools`: tools cost the catalogue's `chat_tools_tokens` if
    that is known. Without `shows_schema`, an output schema only constrains the answer and is not part of the prompt.
    """

    page: Band = (0, 900, 4500)
    second: Band = (7, 10, 25)
    json_share: Band = (0.5, 1.0, 1.3)
    call: Band = (0, 6, 24)
    result: Band = (0, 6, 24)
    picture: Band = (0, 2, 6)
    frames_system: bool = True
    has_chat_tools: bool = False
    shows_schema: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheDiagnosis:
    """Where a provider reports why its cache missed, in replies to requests that ask for the reason.

    The object at `path` is in the whole reply, or in the `holder` of a stream event. It has the reason under the first
    of the keys `reason` that exists, and the number of missed tokens under `tokens`. `meanings` maps a reason to the
    causes of `tokens.cache_autopsy` that it may be.
    """

    holder: str
    path: tuple[str, ...]
    reason: tuple[str, ...]
    tokens: str
    meanings: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRules:
    """The order in which a provider caches what precedes the messages of a prompt, and how its cache works.

    With `needs_marks`, only marked prefixes are cached; without, prefixes are cached in steps of `step` tokens.
    `lifetime` is for how many seconds after its last use a prefix is kept, by what a mark or a request asks for;
    without an entry for "", the provider does not document it.
    A request may have `most_marks`; of more, the first ones count, or the last ones with `keeps_last_marks`. A mark
    finds what was written at most `lookback` blocks before it, or anywhere before it if that is None. `mark_field` is
    the field of a marked part, for a dialect that does not read marks as parts of their own. `only_marked` is the path
    and the value by which a request states that nothing but its marks is cached.
    With `omits_zero`, a reply does not report that nothing was read from the cache. `named_by` are the fields of a
    request that name a cache. `accounts` are the headers of a reply that name the account which owns the cache;
    `versions` and `betas` are headers of a request on which the cache may depend. `place_marks` returns the places in a
    body and the values to set there (None: remove) so that its marks ask for the given lifetime; without a lifetime the
    marks are placed anew.
    """

    order: tuple[CacheGroup, ...] = ("format", "tools", "system")
    needs_marks: bool = False
    step: int = 1
    lifetime: Mapping[str, float] = field(default_factory=dict)
    most_marks: int = 4
    keeps_last_marks: bool = False
    lookback: int | None = None
    mark_field: str = ""
    only_marked: tuple[tuple[str, ...], str] = ((), "")
    omits_zero: bool = False
    named_by: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    betas: tuple[str, ...] = ()
    diagnosis: CacheDiagnosis | None = None
    place_marks: Callable[[JsonObject, str], list[tuple[str, Json]]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainTexts:
    """Readers for bodies that contain little besides texts, at a fraction of the cost of the full readers: the texts of
    a request's messages, each with its role, and the text of a reply, with its id if a later request can name the reply
    by it. They return None for any other body; otherwise their results equal those of the full readers."""

    request: Callable[[bytes], list[tuple[str, list[str]]] | None]
    reply: Callable[[bytes], str | None]
    named_reply: Callable[[bytes], tuple[str, str] | None] | None = None


class PlainStream(NamedTuple):
    """Reads complete streams of the most frequent kind, at a fraction of the cost. `begins` checks whether a stream
    begins like one; `read` reads all of it, and returns None for any other stream."""

    begins: Callable[[bytes], bool]
    read: Callable[[bytes], Reply | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One provider's API as values.

    `read_request` reads the body of a request, and `write_request` writes one for a target; what it cannot express goes
    into the report. `read_reply` reads a whole reply as the events of a stream, which end with `Finished` and `Ended`,
    and `write_reply` writes one for a client. `stream_reader` makes an object that takes the frames of one stream and
    returns events; `stream_writer` makes one that takes events and returns bytes. `read_error` reads an error response
    from its status, body and headers; `write_error` writes a fault as a status and a body. The `at` of each value is
    the pointer to its place in the document. Unknown fields are kept in `extras`, and written only into the same
    dialect.

    `read_plain` reads a whole reply of the most frequent kind at once, and returns None for any other, which
    `read_reply` reads. `read_ending` reads from the bytes of such a reply only how it ended, its model and its counts.
    `plain_stream` reads a stream of the most frequent kind; `plain_texts` reads only texts. `problems` finds what the
    API rejects; `vendor_problems` finds what the vendor's own server refuses in a document although other servers of
    the dialect may take it. `owns_frame` recognises a frame of this dialect's streams. `error_event` is the event name
    without which clients do not recognise a frame of a stream as an error.

    `model_in_path`: the URL, not the body, names the model. `ends_with_bytes`: only the end of its bytes ends a stream.
    `begins_with_count`: a stream begins with the token count of its request, which is estimated if the provider has not
    counted yet. `carries_parts`: the dialect takes parts of other dialects unchanged. `keeps_kinds`: it distinguishes
    calls of built-in tools from calls of functions. `endpoint` is None for a dialect that no provider serves.
    `operation` is its name in OpenTelemetry's conventions for generative AI. `reasoning` is how the dialect states how
    much to reason; `versions` are the versions of the API, if a header names them. `support` is what our own requests
    can express in it.
    """

    name: str
    read_request: Callable[[Json], Request]
    write_request: Callable[[Request, Target, Report], Json]
    read_reply: Callable[[Json], list[StreamEvent]]
    read_plain: Callable[[Json, str], Reply | None] | None = None
    read_ending: Callable[[bytes], Reply | None] | None = None
    plain_stream: PlainStream | None = None
    plain_texts: PlainTexts | None = None
    write_reply: Callable[[Reply, Client, Report], JsonObject]
    stream_reader: Callable[[], StreamReading]
    stream_writer: Callable[[Client, Report], StreamWriting]
    owns_frame: Callable[[JsonObject], bool]
    read_error: Callable[[int, Json, Mapping[str, str]], Fault]
    write_error: Callable[[Fault], tuple[int, JsonObject]]
    error_event: str = ""
    problems: Callable[[Request], list[Problem]]
    vendor_problems: Callable[[Json], list[Problem]] = lambda _document: []
    model_in_path: bool = False
    ends_with_bytes: bool = False
    begins_with_count: bool = True
    carries_parts: bool = False
    keeps_kinds: bool = False
    names: NameRule
    reasoning: ReasoningForm = "effort"
    versions: ApiVersions | None = None
    operation: str = "chat"
    endpoint: Endpoint | None
    clients: Clients = Clients()
    support: DialectSupport
    rules: RequestRules = RequestRules()
    editing: Editing
    tokens: TokenRules = TokenRules()
    cache: CacheRules = CacheRules()
    unread: Unread = Unread()
