"""The answers of the API as values. The page's types are written from these, so that both sides mean the same."""

from typing import Literal, TypeAlias

import msgspec

from sightline.editing.budgeting import CategoryTokens
from sightline.editing.comparing import Compared
from sightline.editing.cost import EditCost
from sightline.editing.masks import MaskOutcome
from sightline.editing.section import Section
from sightline.editing.validity import Validity
from sightline.errors import CancelReason
from sightline.exchange.interception.core.rules import Mode, OnTimeout, Phase
from sightline.model.exchange import State
from sightline.model.json import JsonObject
from sightline.model.report import Addition, Loss

Place: TypeAlias = Literal["traffic", "chat", "runs", "evals"]
"""A part of the page."""


class HoldShown(msgspec.Struct, frozen=True, kw_only=True):
    """What waits for a person: since when, and until when. `client_deadline` is when the client is likely to give up.
    `queue` are the ids of all that is held, in order of arrival."""

    phase: Phase
    since: float
    deadline: float | None
    on_timeout: OnTimeout
    client_deadline: float | None
    queue: tuple[str, ...]


class TokensShown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The provider's own counts, where they are there, and the estimate with its band."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    estimate: int | None = None
    low: int | None = None
    high: int | None = None
    how: str = ""
    window: int | None = None
    reserve: int | None = None
    categories: tuple[CategoryTokens, ...] = ()


class Hashes(msgspec.Struct, frozen=True):
    """SHA-256, in hex, of the client's body, of the one that was sent, and of the raw answer."""

    received: str | None = None
    sent: str | None = None
    reply: str | None = None


class FaultShown(msgspec.Struct, frozen=True):
    """What went wrong, and what to do next."""

    code: str
    message: str
    hint: str


class Thread(msgspec.Struct, frozen=True):
    """The conversation that an exchange belongs to; `previous` is the exchange that it continues."""

    previous: str = ""
    title: str = ""
    is_side: bool = False


class Changed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an edit changes in a view. With `order`, `sections` are only those that changed, and `order` names all.
    `kept` are the ids of the masks that edits of this hold have made."""

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
    """What a view has beyond that: all that happened, and what hangs together with it. `reason` is why it was
    cancelled."""

    losses: tuple[Loss, ...] | None = None
    additions: tuple[Addition, ...] | None = None
    hashes: Hashes | None = None
    facts: tuple[JsonObject, ...] | None = None
    replays: tuple[str, ...] | None = None
    thread: Thread | None = None
    fault: FaultShown | None = None
    reason: CancelReason | None = None


class ReplyShown(msgspec.Struct, frozen=True):
    """A reply folded to one value, how its raw text begins, and how many events it told. `by_hand`: the client got what
    a person wrote or changed, which is `reply`."""

    reply: JsonObject | None
    raw: str
    events: int
    by_hand: bool = False


class Diff(msgspec.Struct, frozen=True):
    """Two requests, section by section; `prefix` is what is left of the cached prefix, where that can be said."""

    against: str
    items: tuple[Compared, ...]
    prefix: EditCost | None


class FilterError(msgspec.Struct, frozen=True):
    """Where a filter is wrong. `column` counts from 1, and both count as a browser counts letters."""

    message: str
    column: int
    length: int
    hint: str


class Offer(msgspec.Struct, frozen=True, rename={"start": "from"}):
    """What could stand in place of the term at the cursor, which begins at `from`."""

    text: str
    label: str
    help: str
    start: int


class FilterShown(msgspec.Struct, frozen=True):
    """Whether a filter can be read, and what could come next."""

    ok: bool
    error: FilterError | None
    completions: tuple[Offer, ...]


class Intercepting(msgspec.Struct, frozen=True):
    """What is held: nothing, the next request, every request, or what the rules say."""

    mode: Mode


class HoldDecided(msgspec.Struct, frozen=True):
    """What became of a hold."""

    id: str
    state: State
    body_sha256: str


class ModelShown(msgspec.Struct, frozen=True):
    """A model that can be asked for."""

    id: str
    provider: str
    context_window: int | None


class ProviderShown(msgspec.Struct, frozen=True):
    """A provider, and why it cannot be asked where it cannot."""

    name: str
    ready: bool
    why: str


class ClientShown(msgspec.Struct, frozen=True):
    """How a client is pointed here: a command that starts it so, or variables to set."""

    name: str
    command: str
    env: dict[str, str]
    note: str


class About(msgspec.Struct, frozen=True):
    """This server. `places` are the parts of the page that it has, `toolsets` the names of configured tools."""

    version: str
    address: str
    places: tuple[Place, ...]
    models: tuple[ModelShown, ...]
    providers: tuple[ProviderShown, ...]
    clients: tuple[ClientShown, ...]
    toolsets: tuple[str, ...] = ()
