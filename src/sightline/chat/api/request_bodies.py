"""What the chat's calls take: the typed bodies of their requests. What they return is in `shapes`."""

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from sightline.chat.core.pair import Flag, Hand, Star
from sightline.chat.core.topics import ROOT, Parameters
from sightline.chat.service.chat import SavedFilter
from sightline.model.json import JsonObject

Ids: TypeAlias = Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=200_000)]
QuotaWish: TypeAlias = Literal["ask", "wait", "anyway"]


class ViewWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Fields that are left out stay as they are."""

    filter: str | None = None
    model: str | None = None
    topic: str | None = None


class AttachmentWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file in base64."""

    data: str
    name: str = ""
    media_type: str = ""


Attachments: TypeAlias = Annotated[tuple[AttachmentWanted, ...], msgspec.Meta(max_length=100)]


class QuestionWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The next question of a view. `replaces` is the pair that it replaces."""

    view: str
    text: str = ""
    attachments: Attachments = ()
    replaces: str = ""


class PreviewWanted(QuestionWanted, frozen=True):
    """A question to be previewed. `before` is the pair that would be asked again at its place."""

    before: str = ""


class SendWanted(QuestionWanted, frozen=True):
    """A question to be sent."""

    hold: bool = False
    step: bool = False
    expect_sha256: str = ""
    quota: QuotaWish = "ask"


class ReaskWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ask a pair again at its place; by default with the model that was asked before."""

    view: str
    model: str = ""
    hold: bool = False
    step: bool = False
    quota: QuotaWish = "ask"


class ResumeWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Resume a waiting send; with `anyway`, before the wait is over."""

    anyway: bool = False


class EditWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """New text; fields that are left out stay as they are."""

    user_text: str | None = None
    assistant_text: str | None = None


class SwapWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The position of an earlier answer."""

    index: int = -1


class IdsWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Some pairs."""

    ids: Ids


class MarkWanted(IdsWanted, frozen=True):
    """One mark for all of these pairs."""

    star: Star | None = None
    flag: Flag | None = None
    topic: str | None = None
    hand: Hand | None = None


class CommandWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line with a command."""

    view: str
    text: str
    dry_run: bool = False


class TopicWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A new topic."""

    name: str
    parent: str = ROOT
    system_prompt: str | None = None
    instructions: str | None = None
    model: str | None = None
    style_directives: tuple[str, ...] | None = None
    parameters: Parameters = Parameters()
    toolsets: tuple[str, ...] | None = None


class TopicChangeWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The new values of a topic; fields that are left out stay, and null means inherited."""

    name: str | UnsetType = UNSET
    parent: str | UnsetType = UNSET
    system_prompt: str | UnsetType | None = UNSET
    instructions: str | UnsetType | None = UNSET
    model: str | UnsetType | None = UNSET
    style_directives: tuple[str, ...] | UnsetType | None = UNSET
    parameters: Parameters | UnsetType = UNSET
    toolsets: tuple[str, ...] | UnsetType | None = UNSET


class PreferencesWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """New preferences; a field that is left out stays."""

    settings: JsonObject | None = None
    saved_filters: tuple[SavedFilter, ...] | None = None


class DraftWanted(IdsWanted, frozen=True, kw_only=True):
    """The pairs to summarise."""

    view: str
    instruction: str = ""


class CompareWanted(IdsWanted, frozen=True, kw_only=True):
    """The pairs and the summary to compare."""

    view: str
    text: str = ""


class CompactionWanted(IdsWanted, frozen=True):
    """The pairs, and the summary that replaces them."""

    text: str


class CompactionUndoWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The summary to undo."""

    id: str
