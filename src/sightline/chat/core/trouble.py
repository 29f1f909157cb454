"""Why a question was not answered, as the chat says it."""

from sightline.chat.core.pair import Trouble
from sightline.errors import Code, Fault

PROMPT_TOO_LARGE = "user_prompt_too_large"
OVERFLOW_AFTER_TRIMMING = "context_overflow_after_trimming"
FILTER_CHANGED = "filter_changed"

TRIMMED_FOR: frozenset[Code] = frozenset({Code.CONTEXT_OVERFLOW, Code.REQUEST_TOO_LARGE_FOR_RATE})
"""Failures that a smaller request can avoid. A rate limit is not one of them."""


def trouble_of(fault: Fault) -> Trouble:
    """The failure as it is shown instead of the answer. The chat's own codes are more precise than the Fault's."""
    finer = fault.details.get("code") if fault.code in _REFINED and isinstance(fault.details, dict) else None
    code = finer if finer in _OWN else fault.code.value
    return Trouble(str(code), fault.message, fault.label, fault.hint)


def prompt_too_large(tokens: int, limit: int, reserved: int) -> Fault:
    """The prompt does not fit, even alone."""
    beside = f", of which {reserved:,} are taken by the system prompt and the tools" if reserved else ""
    return Fault(
        Code.CONTEXT_OVERFLOW,
        f"the prompt has about {tokens:,} tokens and the model takes {limit:,}{beside}",
        hint="Shorten the prompt or its attachments, or choose a model with a larger window. Nothing was sent.",
        details={"code": PROMPT_TOO_LARGE},
    )


def overflow_after_trimming(last: Fault, trimmed: int, attempts: int) -> Fault:
    """The request is still too large after the allowed number of trims, or as far as trimming helps."""
    left_out = f"{trimmed} pair{'s were' if trimmed != 1 else ' was'} left out in {attempts} "
    tried = f"{left_out}further attempt{'s' if attempts != 1 else ''}" if attempts else "nothing more could be left out"
    return Fault(
        last.code,
        f"the request is still too large: {tried}; the provider says: {last.message}",
        hint="Shorten the prompt, narrow the filter, compact older pairs, allow more trim attempts, or choose a model "
        "with a larger window. Your history is as it was.",
        status=last.status,
        details={"code": OVERFLOW_AFTER_TRIMMING},
        numbers=last.numbers,
    )


def filter_changed(last: Fault) -> Fault:
    """The filter changed during the send, so its context is no longer the one on screen."""
    return Fault(
        Code.CANCELLED,
        f"the filter was changed while the request was made smaller, so it was not sent again; the provider had said: "
        f"{last.message}",
        hint="Look at what is visible now, and ask again.",
        details={"code": FILTER_CHANGED},
    )


_REFINED = frozenset({*TRIMMED_FOR, Code.CANCELLED})
_OWN = frozenset({PROMPT_TOO_LARGE, OVERFLOW_AFTER_TRIMMING, FILTER_CHANGED})
