"""Errors of the chat's calls: with the chat's own code where it is more precise, and with the details that the page
needs."""

from collections.abc import Iterable, Mapping

from sightline.chat.core.history import ChatHistory
from sightline.chat.service.chat import Chat
from sightline.dialects.faults import status_of
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject
from sightline.web import replies
from sightline.web.asgi import WebResponse
from sightline.web.filter_help import mistake
from sightline.web.routes import ApiCall, Handler

_STATUS: Mapping[Code, int] = {Code.AUTH: 422, Code.PERMISSION: 422, Code.MODEL_UNKNOWN: 422}
"""Statuses that differ from the code's own, which would point at the API's token or at a path."""

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
    """The error response for a Fault."""
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


async def load_with(chat: Chat, pairs: Iterable[str]) -> ChatHistory:
    """The history as it is now. Raises a Fault if one of these pairs is not in it."""
    history = await chat.load()
    for pair in pairs:
        if pair not in history:
            raise not_there("pair", pair)
    return history


def wrong_text(text: str, fault: Fault) -> Fault:
    """The Fault for an invalid filter or command, with its place in UTF-16 units."""
    error = mistake(text, fault)
    return Fault(
        fault.code,
        fault.message,
        hint=fault.hint,
        status=422,
        details={"column": error.column, "length": error.length},
    )
