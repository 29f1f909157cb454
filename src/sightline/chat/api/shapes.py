"""What the chat's calls return. The page's types are generated from these; what calls take is in `requests`."""

from typing import Literal

import msgspec

from sightline.agent.core.limits import Quota
from sightline.chat.core.pair import AttachmentKind, Flag, Hand, LifecycleState
from sightline.chat.core.plan import SendTelemetry
from sightline.chat.core.sending import ContextCounter
from sightline.chat.core.sizing import TokenBand
from sightline.chat.core.topics import Inherited, Topic
from sightline.chat.service.blocks import Block
from sightline.chat.service.chat import SavedFilter, SettingsShown
from sightline.errors import CancelReason
from sightline.model.reply import Usage
from sightline.model.report import Addition, Loss
from sightline.web.replies import FaultShown

# --- pairs ---


class AttachmentShown(msgspec.Struct, frozen=True):
    """An attached file; `n` is its position, `size` its number of bytes, 0 if they are not here."""

    n: int
    kind: AttachmentKind
    name: str
    media_type: str
    size: int


class CitationShown(msgspec.Struct, frozen=True):
    """A source of an answer."""

    title: str
    url: str
    quote: str


class AnswerShown(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, complete or so far. `predicted` is the estimate of its prompt, to compare with the counts in `usage`;
    `cost` is in US dollars."""

    blocks: tuple[Block, ...]
    text: str
    citations: tuple[CitationShown, ...]
    finish: str
    reason: CancelReason | None
    is_partial: bool
    model: str
    usage: Usage | None
    predicted: int | None
    cost: float | None
    seconds: float | None
    exchange: str
    at: float
    run: str


class TroubleShown(msgspec.Struct, frozen=True):
    """Why there is no answer; `line` is shown in its place."""

    code: str
    message: str
    label: str
    hint: str
    line: str
    reason: CancelReason | None = None


class PairShown(msgspec.Struct, frozen=True, kw_only=True):
    """A question and its answer, as they are in a view. `asking` is the model that is being asked while an earlier
    answer is kept; `earlier` is the number of earlier answers. If `is_edited`, its text was changed while the request
    was held, and this is what was sent."""

    id: str
    topic: str
    topic_path: tuple[str, ...]
    model: str
    asking: str
    user_text: str
    attachments: tuple[AttachmentShown, ...]
    answer: AnswerShown | None
    earlier: int
    star: int
    flag: Flag
    state: LifecycleState
    trouble: TroubleShown | None
    hand: Hand
    at: float
    exchange: str
    summary_of: tuple[str, ...]
    standing: Literal["included", "excluded", "left_out", "hidden"]
    tokens: TokenBand
    run: str
    is_edited: bool


class PairOpened(PairShown, frozen=True, kw_only=True):
    """A pair with all its answers, oldest first, and the telemetry of its last send."""

    earlier_answers: tuple[AnswerShown, ...]
    telemetry: tuple[SendTelemetry, ...]


class RowsShown(msgspec.Struct, frozen=True, rename={"first": "from"}):
    """Some of the pairs on screen, oldest first; `from` is the position of the first."""

    version: int
    total: int
    first: int
    rows: tuple[PairShown, ...]


class PlaceShown(msgspec.Struct, frozen=True):
    """The position of a pair on screen; null if it is not on screen."""

    index: int | None


# --- views ---


class InheritedShown(Inherited, frozen=True, omit_defaults=False):
    """The settings that the topic of the next question inherits."""


class RoomShown(msgspec.Struct, frozen=True, kw_only=True):
    """How the model's limit is divided, in tokens. `margin` is held back because sizes are estimates."""

    limit: int
    system: int
    tools: int
    user: int
    reply: int
    margin: int
    usable: int
    history: int


class LastShown(msgspec.Struct, frozen=True, kw_only=True):
    """The last send of a view. `telemetry` is its latest record, without messages and pairs, which are in the pair."""

    pair: str
    telemetry: SendTelemetry | None
    trim_summary: str
    trouble: TroubleShown | None


class ViewShown(msgspec.Struct, frozen=True, kw_only=True):
    """A view. `model` is the one that the next question goes to, `selected` the one that the user selected, or empty.
    `rows` is the number of pairs on screen, `start` the position of the first that is sent. If `newest_hidden`, the
    newest pair is not on screen. `tools_trouble` is why the topic's tools cannot be used."""

    view: str
    version: int
    filter: str
    model: str
    selected: str
    provider: str
    topic: str
    topic_path: tuple[str, ...]
    inherited: InheritedShown
    visible: int
    rows: int
    start: int
    newest_hidden: bool
    counter: ContextCounter
    room: RoomShown
    history_tokens: int
    sending: str
    paused: Quota | None
    last: LastShown | None
    tools_trouble: FaultShown | None


class BodyShare(msgspec.Struct, frozen=True):
    """The parts of a body of one kind: how many there are, and how many characters they have."""

    label: str
    count: int
    size: int


class PreviewShown(msgspec.Struct, frozen=True, kw_only=True):
    """The exact body of the next send; `trouble` is why it cannot be sent. `losses` and `additions` are what its
    dialect cannot express and what it requires in addition; `shares` is what the body consists of."""

    body: str
    body_sha256: str
    dialect: str
    provider: str
    model: str
    url: str
    tokens: int
    low: int
    high: int
    included: int
    left_out_preflight: int
    losses: tuple[Loss, ...]
    additions: tuple[Addition, ...]
    shares: tuple[BodyShare, ...]
    trouble: FaultShown | None


# --- what is done ---


class AskedShown(msgspec.Struct, frozen=True):
    """The pair of a new question or summary."""

    pair: str


class Versioned(msgspec.Struct, frozen=True):
    """Done; the history has this version."""

    version: int


class CommandShown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a command did, or would do: the number of pairs, and how the first of them begin. If `confirm`, the user
    must confirm first. `export` is the address of the file, `compact` has the pairs to summarize, and `ids` those that
    `:delete` has deleted, so that they can be restored."""

    command: Literal["export", "tchange", "delete", "hud", "compact"]
    count: int
    sample: tuple[str, ...]
    needs_force: bool
    message: str
    done: bool
    confirm: bool = False
    hud: bool | None = None
    export: str | None = None
    compact: tuple[str, ...] | None = None
    ids: tuple[str, ...] | None = None


class ImportShown(msgspec.Struct, frozen=True, kw_only=True):
    """What an import added, or would add: new pairs and topics, and the number of pairs that existed already."""

    pairs: int
    topics: int
    skipped: int
    format: str
    problems: tuple[str, ...]


class TopicShown(Topic, frozen=True, kw_only=True, omit_defaults=False, forbid_unknown_fields=False):
    """A topic; null means inherited. `path` has the names from the root down; `direct` and `total` are the numbers of
    pairs in it, and in it and all topics below."""

    path: tuple[str, ...]
    direct: int
    total: int


class PreferencesShown(msgspec.Struct, frozen=True):
    """The user's preferences, with the configured settings as defaults."""

    settings: SettingsShown
    saved_filters: tuple[SavedFilter, ...]
