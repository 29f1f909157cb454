"""What the chat's calls take: one struct for each body."""

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from sightline.chat.core.pair import Flag, Hand, Star
from sightline.chat.core.topics import ROOT, Parameters
from sightline.chat.service.chat_log import SavedFilter
from sightline.model.json import JsonObject

MOST_IDS = 200_000

Ids: TypeAlias = Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=MOST_IDS)]
QuotaWish: TypeAlias = Literal["ask", "wait", "anyway"]


class ViewWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is left out stays as it is."""

    filter: str | None = None
    model: str | None = None
    topic: str | None = None


class AttachmentWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file in base64."""

    data: str
    name: str = ""
    media_type: str = ""


Attachments: TypeAlias = Annotated[tuple[AttachmentWanted, ...], msgspec.Meta(max_length=100)]


class EstimateWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How large would the next request be? `replaces` is the pair that its question would be asked instead of."""

    view: str
    text: str = ""
    attachments: Attachments = ()
    replaces: str = ""


class PreviewWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What would be sent? `before` is the pair that would be asked again where it stands, `replaces` the one that
    this would be asked instead of."""

    view: str
    text: str = ""
    attachments: Attachments = ()
    before: str = ""
    replaces: str = ""


class SendWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ask this."""

    view: str
    text: str = ""
    attachments: Attachments = ()
    replaces: str = ""
    hold: bool = False
    step: bool = False
    expect_sha256: str = ""
    quota: QuotaWish = "ask"


class ReaskWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ask it again, where it stands; without a model the one that was asked."""

    view: str
    model: str = ""
    hold: bool = False
    step: bool = False
    quota: QuotaWish = "ask"


class ResumeWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Go on with what waits; `anyway` before the wait is over."""

    anyway: bool = False


class EditWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Other words; what is left out stays."""

    user_text: str | None = None
    assistant_text: str | None = None


class SwapWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """This one of the earlier answers, by its place among them."""

    index: int = -1


class MarkWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One mark for all of these."""

    ids: Ids
    star: Star | None = None
    flag: Flag | None = None
    topic: str | None = None
    hand: Hand | None = None


class IdsWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """These pairs."""

    ids: Ids


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
    """A topic as it is to be; what is left out stays, and null is as above it."""

    name: str | UnsetType = UNSET
    parent: str | UnsetType = UNSET
    system_prompt: str | UnsetType | None = UNSET
    instructions: str | UnsetType | None = UNSET
    model: str | UnsetType | None = UNSET
    style_directives: tuple[str, ...] | UnsetType | None = UNSET
    parameters: Parameters | UnsetType = UNSET
    toolsets: tuple[str, ...] | UnsetType | None = UNSET


class PreferencesWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a person sets; one of the two alone leaves the other as it is."""

    settings: JsonObject | None = None
    saved_filters: tuple[SavedFilter, ...] | None = None


class DraftWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Draft a summary of these."""

    view: str
    ids: Ids
    instruction: str = ""


class CompareWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What would this summary save?"""

    view: str
    ids: Ids
    text: str = ""


class CompactionWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """This summary stands for these from now on."""

    ids: Ids
    text: str


class CompactionUndoWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """This summary stands for nothing any more."""

    id: str
