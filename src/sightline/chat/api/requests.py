"""The typed bodies that the chat's calls take, and the error responses. An error has the chat's own code if that is
more precise, and the details that the page needs. What calls return is in `shapes`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Annotated, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from sightline.catalog.facts import Prices
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.pair import Flag, Hand, Star
from sightline.chat.core.topics import ROOT, Parameters
from sightline.chat.service.chat import SavedFilter
from sightline.chat.service.chats import Chats, ChatService
from sightline.chat.service.sends import QuotaPolicy
from sightline.dialects.fault_codes import status_of
from sightline.errors import Code, Fault
from sightline.exchange.recording.records import Records
from sightline.model.json import JsonObject
from sightline.web import replies
from sightline.web.asgi import WebResponse
from sightline.web.filter_help import mistake
from sightline.web.routes import ApiCall, Handler


@dataclass(frozen=True, slots=True)
class ChatParts:
    """What the calls of the chats need. `prices` returns the prices of a model by its name in the chat, `models` are
    the names to suggest, `toolsets` are those of the configuration. Days begin and end in `zone`."""

    chats: Chats
    prices: Callable[[str], Prices | None]
    zone: tzinfo
    models: Sequence[str] = ()
    toolsets: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class OneChat:
    """The chat that a call is about, and what its calls need."""

    parts: ChatParts
    service: ChatService
    records: Records


Ids: TypeAlias = Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=200_000)]


class ViewWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The new state of a view. Fields that are left out are unchanged."""

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
    """A question to be previewed. `before` is the pair that would be asked again in place."""

    before: str = ""


class SendWanted(QuestionWanted, frozen=True):
    """A question to be sent."""

    hold: bool = False
    step: bool = False
    expect_sha256: str = ""
    quota: QuotaPolicy = "ask"


class ReaskWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ask a pair again in place; by default, with the same model."""

    view: str
    model: str = ""
    hold: bool = False
    step: bool = False
    quota: QuotaPolicy = "ask"


class ResumeWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Resume a waiting send; with `anyway`, before the wait is over."""

    anyway: bool = False


class EditWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """New text; fields that are left out are unchanged."""

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
    """The new values of a topic. Fields that are left out are unchanged, and null means inherited."""

    name: str | UnsetType = UNSET
    parent: str | UnsetType = UNSET
    system_prompt: str | UnsetType | None = UNSET
    instructions: str | UnsetType | None = UNSET
    model: str | UnsetType | None = UNSET
    style_directives: tuple[str, ...] | UnsetType | None = UNSET
    parameters: Parameters | UnsetType = UNSET
    toolsets: tuple[str, ...] | UnsetType | None = UNSET


class PreferencesWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """New preferences; fields that are left out are unchanged."""

    settings: JsonObject | None = None
    saved_filters: tuple[SavedFilter, ...] | None = None


class DraftWanted(IdsWanted, frozen=True, kw_only=True):
    """The pairs to summarize."""

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


_STATUS: Mapping[Code, int] = {Code.AUTH: 422, Code.PERMISSION: 422, Code.MODEL_UNKNOWN: 422}
"""Statuses that differ from the code's own, which would suggest a problem with the API's token or with a path."""

_DETAILS = ("column", "length", "line", "can_go_at")

OWN_CODES = frozenset(
    {
        "user_prompt_too_large",
        "context_overflow_after_trimming",
        "filter_changed",
        "quota_wait",
        "already_sending",
        "preview_outdated",
    }
)
"""Codes that are more precise than the Fault's."""


def refusing(handler: Handler) -> Handler:
    """The same handler, with Faults as error responses."""

    async def handle(call: ApiCall) -> object:
        try:
            return await handler(call)
        except Fault as fault:
            return refusal(fault)

    return handle


def refusal(fault: Fault) -> WebResponse:
    details = fault.details if isinstance(fault.details, dict) else {}
    finer = details.get("code")
    own = finer if isinstance(finer, str) and finer in OWN_CODES else ""
    error: JsonObject = {"code": own or fault.code.value, "message": fault.message, "hint": fault.hint}
    shown: JsonObject = {name: details[name] for name in _DETAILS if name in details}
    if shown and (own or "column" in shown):
        error["details"] = shown
    status = fault.status if own else _STATUS.get(fault.code)
    return replies.json({"error": error}, status or status_of(fault))


def not_there(what: str, name: str) -> Fault:
    """The Fault for a pair, topic or view that does not exist."""
    hint = "It may have been removed in another window; load the page again."
    return Fault(Code.USAGE, f"there is no {what} {name[:80]!r}", hint=hint, status=404)


async def load_with(chat: OneChat, pairs: Iterable[str]) -> ChatHistory:
    """The current history. Raises a Fault if one of these pairs is not in it."""
    history = await chat.service.chat.load()
    for pair in pairs:
        if pair not in history:
            raise not_there("pair", pair)
    return history


def wrong_text(text: str, fault: Fault) -> Fault:
    """The Fault for an invalid filter or command, with its position in UTF-16 units."""
    error = mistake(text, fault)
    return Fault(
        fault.code,
        fault.message,
        hint=fault.hint,
        status=422,
        details={"column": error.column, "length": error.length},
    )
