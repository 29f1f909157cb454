"""How the chat's calls refuse: with the chat's own code where it has a finer one, and with what the page needs to go
on."""

from collections.abc import Mapping

from sightline.dialects.faults import status_of
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject
from sightline.web import replies
from sightline.web.asgi import WebResponse
from sightline.web.routes import ApiCall, Handler
from sightline.workbench.filter_help import mistake

_STATUS: Mapping[Code, int] = {Code.AUTH: 422, Code.PERMISSION: 422, Code.MODEL_UNKNOWN: 422}
"""What would mean the API's own token, or a path, if it had its usual status."""

_TOLD = ("column", "length", "line", "can_go_at")

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
"""Codes that are finer than the fault's."""


def refusing(handler: Handler) -> Handler:
    """The same call, whose faults are answers."""

    async def handle(call: ApiCall) -> object:
        try:
            return await handler(call)
        except Fault as fault:
            return refusal(fault)

    return handle


def refusal(fault: Fault) -> WebResponse:
    """The answer that a fault is."""
    details = fault.details if isinstance(fault.details, dict) else {}
    finer = details.get("code")
    own = finer if isinstance(finer, str) and finer in OWN_CODES else ""
    error: JsonObject = {"code": own or fault.code.value, "message": fault.message, "hint": fault.hint}
    told: JsonObject = {name: details[name] for name in _TOLD if name in details}
    if told and (own or "column" in told):
        error["details"] = told
    status = fault.status if own else _STATUS.get(fault.code)
    return replies.json({"error": error}, status or status_of(fault))


def not_there(what: str, name: str) -> Fault:
    """Something that is named is not in the chat."""
    hint = "It may have been removed in another window; load the page again."
    return Fault(Code.USAGE, f"there is no {what} {name[:80]!r}", hint=hint, status=404)


def wrong_text(text: str, fault: Fault) -> Fault:
    """A filter or a command that cannot be read, with its place as a browser counts."""
    told = mistake(text, fault)
    return Fault(
        fault.code,
        fault.message,
        hint=fault.hint,
        status=422,
        details={"column": told.column, "length": told.length},
    )
