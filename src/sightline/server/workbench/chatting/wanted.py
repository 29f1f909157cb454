"""What the chat's calls take: one struct for each body, and how a body becomes one."""

from typing import Annotated, Literal, TypeAlias, TypeVar
from urllib.parse import parse_qs

import msgspec
from msgspec import UNSET, UnsetType

from sightline.catalog.problem import quoted
from sightline.chat.pair import Flag, Hand, Star
from sightline.chat.topics import ROOT, Parameters
from sightline.engine.chatting.preferences import SavedFilter
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject
from sightline.server.asgi import Receive
from sightline.server.workbench.exchanges import one
from sightline.server.workbench.orders import MOST_WITH_BODY, order
from sightline.wire.jsontext import MISFIT

W = TypeVar("W", bound=msgspec.Struct)

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


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """There is nothing to say."""


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


class UndoWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """This summary stands for nothing any more."""

    id: str


async def wanted(receive: Receive, kind: type[W], most: int = MOST_WITH_BODY) -> W:
    """The body of a call as what it should be, of so many bytes at most."""
    told = await order(receive, most)
    try:
        return msgspec.convert(told, kind)
    except MISFIT as error:
        names = ", ".join(kind.__struct_fields__) or "nothing"
        hint = f"It takes {names}: docs/reference/http.md says what each is."
        raise Fault(Code.INVALID_REQUEST, f"this cannot be done: {error}", hint=hint, status=422) from None


class Query:
    """The parameters behind the ? of an address."""

    def __init__(self, text: str) -> None:
        self._told = parse_qs(text, keep_blank_values=True)

    def __contains__(self, name: str) -> bool:
        return name in self._told

    def text(self, name: str) -> str:
        """A text, empty where it is left out."""
        return one(self._told, name)

    def number(self, name: str, usual: int) -> int:
        """A whole number, 0 or more."""
        text = self.text(name)
        if not text:
            return usual
        if not text.isascii() or not text.isdecimal() or len(text) > 12:
            raise self._wrong(name, text, "a whole number, 0 or more")
        return int(text)

    def is_set(self, name: str) -> bool:
        """Whether something is switched on."""
        text = self.text(name)
        if text in ("", "0", "false", "1", "true"):
            return text in ("1", "true")
        raise self._wrong(name, text, "0 or 1")

    @staticmethod
    def _wrong(name: str, text: str, what: str) -> Fault:
        hint = f"{name} is {what}."
        return Fault(Code.INVALID_REQUEST, f"{name} cannot be {quoted(text[:40])}", hint=hint, status=400)
