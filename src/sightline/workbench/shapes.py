"""The responses of the API as values. The page's types are generated from these."""

from typing import Literal, TypeAlias

import msgspec

from sightline.editing.comparing import Compared
from sightline.editing.masks import MaskOutcome
from sightline.editing.review import CategoryTokens, EditCost
from sightline.editing.section import Section
from sightline.editing.validity import Validity
from sightline.errors import CancelReason
from sightline.exchange.interception.core.rules import Mode, OnTimeout, Phase
from sightline.exchange.recording.formats import ShareFormat
from sightline.model.exchange import State
from sightline.model.json import Json, JsonObject
from sightline.model.report import Addition, Loss
from sightline.web.replies import FaultShown

Place: TypeAlias = Literal["traffic", "chat", "runs", "evals", "example"]
"""A view of the page."""


class HoldShown(msgspec.Struct, frozen=True, kw_only=True):
    """A hold: since when, and until when. `client_deadline` is when the client will probably time out. `queue` are the
    ids of all held exchanges, in order of arrival. `reason` is why it is held, if not because of a rule."""

    phase: Phase
    since: float
    deadline: float | None
    on_timeout: OnTimeout
    client_deadline: float | None
    queue: tuple[str, ...]
    reason: str = ""


class TokensShown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The provider's own counts, or with `is_estimated` estimates in their place, and the estimate of the prompt with
    its range."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    is_estimated: bool = False
    estimate: int | None = None
    low: int | None = None
    high: int | None = None
    how: str = ""
    window: int | None = None
    reserve: int | None = None
    categories: tuple[CategoryTokens, ...] = ()


class Hashes(msgspec.Struct, frozen=True):
    """SHA-256, in hex, of the client's body, of the body that was sent, and of the raw answer."""

    received: str | None = None
    sent: str | None = None
    reply: str | None = None


class RawBodyShown(msgspec.Struct, frozen=True):
    """A body that was forwarded unchanged. `size` and `sha256` are of the whole body, after content decoding unless a
    `coding` is named; the first `kept` bytes are recorded. Without `is_whole`, it was interrupted."""

    media_type: str
    size: int
    sha256: str
    kept: int
    coding: str = ""
    is_whole: bool = True


class RawShown(msgspec.Struct, frozen=True):
    """A request that was forwarded unchanged, and its answer; each body appears once it has been forwarded. With
    `is_read`, the answer can be shown as a reply."""

    method: str
    path: str
    request: RawBodyShown | None = None
    reply: RawBodyShown | None = None
    is_read: bool = False


class Thread(msgspec.Struct, frozen=True):
    """The conversation that an exchange belongs to; `previous` is the exchange that it continues."""

    previous: str = ""
    title: str = ""
    is_side: bool = False


class Changed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an edit changes in a view. With `order`, `sections` are only the changed ones, and `order` has the ids of
    all. `kept` are the ids of the masks that edits of this hold have created."""

    id: str
    state: State
    body_sha256: str
    dirty: bool
    can_undo: bool
    can_redo: bool
    validity: Validity
    tokens: TokensShown
    sections: tuple[Section, ...]
    order: tuple[str, ...] | None = None
    hold: HoldShown | None = None
    edit_cost: EditCost | None = None
    masks: tuple[MaskOutcome, ...] | None = None
    kept: tuple[str, ...] | None = None


class ExchangeDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The additional fields of a view: the facts, and what belongs to the exchange. `reason` is why it was cancelled,
    `transport` how the request arrived."""

    losses: tuple[Loss, ...] | None = None
    additions: tuple[Addition, ...] | None = None
    hashes: Hashes | None = None
    facts: tuple[JsonObject, ...] | None = None
    replays: tuple[str, ...] | None = None
    thread: Thread | None = None
    fault: FaultShown | None = None
    reason: CancelReason | None = None
    transport: str | None = None
    raw: RawShown | None = None


class ReplyShown(msgspec.Struct, frozen=True):
    """A reply as one value, the beginning of its raw text, and the number of its events. `by_hand`: the client got
    `reply`, which the user wrote or changed."""

    reply: JsonObject | None
    raw: str
    events: int
    by_hand: bool = False


class ConversationShown(msgspec.Struct, frozen=True):
    """The request that was sent, section by section."""

    sections: tuple[Section, ...]


class Diff(msgspec.Struct, frozen=True):
    """A comparison of two requests by section; `prefix` is what remains of the cached prefix, if that is known."""

    against: str
    items: tuple[Compared, ...]
    prefix: EditCost | None


class Intercepting(msgspec.Struct, frozen=True):
    """Which requests are held: none, the next one, every one, or those that match the rules."""

    mode: Mode


class HoldDecided(msgspec.Struct, frozen=True):
    """The outcome of a hold."""

    id: str
    state: State
    body_sha256: str


class ModelShown(msgspec.Struct, frozen=True):
    """A model that can be used."""

    id: str
    provider: str
    context_window: int | None


class ProviderShown(msgspec.Struct, frozen=True):
    """A provider, and why it cannot be used."""

    name: str
    ready: bool
    why: str


class ClientShown(msgspec.Struct, frozen=True):
    """How to connect a client: a command that starts it, or variables to set."""

    name: str
    command: str
    env: dict[str, str]
    note: str


class DialectShown(msgspec.Struct, frozen=True):
    """What the page needs to know about a dialect.

    `home` is the provider that its requests go to by default, `label` its name without that provider's. `container` is
    the field of the messages, `roles` are those that a message can have, `messages` has a new message for each role.
    """

    name: str
    label: str
    home: str
    container: str
    roles: tuple[str, ...]
    messages: dict[str, Json]


class PanelShown(msgspec.Struct, frozen=True):
    """A tab that the plug-in `plugin` adds to the view of an exchange. Its module is at `/api/panels/{name}`."""

    name: str
    title: str
    plugin: str


class PluginShown(msgspec.Struct, frozen=True):
    """A plug-in that the user has named: where it is from, what it adds, and which parts of it have failed in this
    process and why. The key of a failure is empty if the plug-in could not be loaded at all."""

    name: str
    place: str
    adds: tuple[str, ...]
    failures: dict[str, str]


class About(msgspec.Struct, frozen=True):
    """This server. `places` are the views of its page, `toolsets` the names of configured toolsets; `workers` is how
    many processes currently serve clients, `panels` are the tabs that plug-ins add, `formats` the file formats for
    sharing. `program` is how a shell starts Sightline."""

    version: str
    address: str
    places: tuple[Place, ...]
    models: tuple[ModelShown, ...]
    providers: tuple[ProviderShown, ...]
    clients: tuple[ClientShown, ...]
    dialects: tuple[DialectShown, ...]
    toolsets: tuple[str, ...] = ()
    workers: int = 1
    panels: tuple[PanelShown, ...] = ()
    formats: tuple[ShareFormat, ...] = ()
    program: str = "sightline"
