"""The answers of the chat's calls as values. The page's types are written from these, so that both sides mean the
same."""

from typing import Literal

import msgspec

from sightline.chat.core.attachment import AttachmentKind
from sightline.chat.core.pair import Flag, Hand, LifecycleState
from sightline.chat.core.settings import ChatSettings
from sightline.chat.core.telemetry import SendTelemetry
from sightline.chat.core.topics import Parameters
from sightline.chat.service.blocks import Block
from sightline.errors import CancelReason
from sightline.model.report import Addition, Loss
from sightline.model.usage import Usage
from sightline.workbench.shapes import FaultShown


class TokenBand(msgspec.Struct, frozen=True):
    """An estimate: what is likely, and between what."""

    tokens: int
    low: int
    high: int


# --- pairs ---


class AttachmentShown(msgspec.Struct, frozen=True):
    """A file that hangs on a question; `n` is its place among them, `size` in bytes, as far as it travels with it."""

    n: int
    kind: AttachmentKind
    name: str
    media_type: str
    size: int


class CitationShown(msgspec.Struct, frozen=True):
    """Where something in an answer came from."""

    title: str
    url: str
    quote: str


class AnswerShown(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, whole or as far as it has come. `predicted` is what its prompt was thought to take, beside what
    `usage` says of it; `cost` is in US dollars."""

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
    """Why there is no answer; `line` stands where it would."""

    code: str
    message: str
    label: str
    hint: str
    line: str
    reason: CancelReason | None = None


class PairShown(msgspec.Struct, frozen=True, kw_only=True):
    """A question and its answer, as they stand in a view. `asking` is the model that is asked instead while an answer
    of another is kept; `earlier` is how many answers stand behind this one. `is_edited`: its words were changed while
    the request was held, and these were sent."""

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
    """A pair with all its answers, the oldest first, and what is told of its last send."""

    earlier_answers: tuple[AnswerShown, ...]
    telemetry: tuple[SendTelemetry, ...]


class RowsShown(msgspec.Struct, frozen=True, rename={"first": "from"}):
    """Some of what is on screen, the oldest first; `from` is the place of the first of them."""

    version: int
    total: int
    first: int
    rows: tuple[PairShown, ...]


class PlaceShown(msgspec.Struct, frozen=True):
    """Where a pair stands on screen, if it does."""

    index: int | None


# --- views ---


class InheritedShown(msgspec.Struct, frozen=True, kw_only=True):
    """What holds in the topic of the next question."""

    system_prompt: str
    instructions: str
    model: str
    style_directives: tuple[str, ...]
    parameters: Parameters
    toolsets: tuple[str, ...]


class CounterShown(msgspec.Struct, frozen=True, kw_only=True):
    """How many pairs go along, in short and with what stands behind it."""

    text: str
    predicted: int
    visible: int
    trimmed: int
    predicted_then: int
    breakdown: tuple[tuple[str, int], ...]


class RoomShown(msgspec.Struct, frozen=True, kw_only=True):
    """How the model's limit is divided, in tokens."""

    limit: int
    system: int
    tools: int
    user: int
    reply: int
    usable: int
    history: int


class PausedShown(msgspec.Struct, frozen=True):
    """What a send waits for; `can_go_at` is null where it never can."""

    line: str
    can_go_at: float | None


class LastShown(msgspec.Struct, frozen=True, kw_only=True):
    """The last send of a view. `telemetry` is the latest that is told of it, without its messages and pairs, which the
    pair has."""

    pair: str
    telemetry: SendTelemetry | None
    trim_summary: str
    trouble: TroubleShown | None


class ViewShown(msgspec.Struct, frozen=True, kw_only=True):
    """A view. `model` is the one that the next question is for, `selected` the one that a person has chosen, empty
    where nobody has. `rows` is how many pairs are on screen, `start` the place of the first that goes along.
    `newest_hidden` says that the newest pair of all is not on screen, `tools_trouble` why the topic's tools cannot be
    used."""

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
    counter: CounterShown
    room: RoomShown
    history_tokens: int
    sending: str
    paused: PausedShown | None
    last: LastShown | None
    tools_trouble: FaultShown | None


class EstimateShown(msgspec.Struct, frozen=True):
    """How large the next request is, and whether its question fits. `line` says so to a person; `prompt` is what is
    planned for the question alone."""

    tokens: int
    low: int
    high: int
    limit: int
    fits: bool
    line: str
    prompt: int


class PreviewShown(msgspec.Struct, frozen=True, kw_only=True):
    """The exact body that the next send would make; where it would make none, `trouble` says why. `losses` and
    `additions` are what its dialect cannot say and what it demands besides."""

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
    trouble: FaultShown | None


# --- what is done ---


class AskedShown(msgspec.Struct, frozen=True):
    """The pair that a question or a summary became."""

    pair: str


class Versioned(msgspec.Struct, frozen=True):
    """It is done; the history has this version."""

    version: int


class CommandShown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a command did, or would do: to how many pairs, and how the first of them begin. `confirm`: a person is to be
    asked before it is done. `export` is the address of the file, `compact` are the pairs to sum up, `ids` those that a
    `:delete` has deleted, to be restored by."""

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
    """What came of a file, or would: new pairs and topics, and pairs that were here already."""

    pairs: int
    topics: int
    skipped: int
    format: str
    problems: tuple[str, ...]


class TopicShown(msgspec.Struct, frozen=True, kw_only=True):
    """A topic; null is as above it. `path` are the names from the top down, `direct` and `total` how many pairs are in
    it, and in it and all below it."""

    id: str
    name: str
    parent: str
    system_prompt: str | None
    instructions: str | None
    model: str | None
    style_directives: tuple[str, ...] | None
    parameters: Parameters
    toolsets: tuple[str, ...] | None
    path: tuple[str, ...]
    direct: int
    total: int


class SettingsShown(
    ChatSettings, frozen=True, kw_only=True, omit_defaults=False, forbid_unknown_fields=False, rename="camel"
):
    """All settings of the chat as they are in force, under the names that the workflow has for them."""


class SavedFilterShown(msgspec.Struct, frozen=True):
    """A filter that is called by `@name`."""

    name: str
    filter: str


class PreferencesShown(msgspec.Struct, frozen=True):
    """What a person has set in the page, over what is configured."""

    settings: SettingsShown
    saved_filters: tuple[SavedFilterShown, ...]


class ComparisonShown(msgspec.Struct, frozen=True):
    """The tokens of some pairs, and of the summary that would stand for them."""

    before: TokenBand
    after: TokenBand


class DraftShown(msgspec.Struct, frozen=True, kw_only=True):
    """A summary as the model drafted it."""

    text: str
    before: TokenBand
    after: TokenBand
    exchange: str
