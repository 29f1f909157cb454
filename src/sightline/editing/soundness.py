"""What an operation must not leave behind: a request that its API rejects, where it took the one before."""

import re
from collections import Counter
from typing import TYPE_CHECKING

from sightline.dialects.registry import dialect
from sightline.editing.places import edit_refusal
from sightline.model.request import Request

if TYPE_CHECKING:
    from sightline.editing.draft import Draft

_NUMBER = re.compile("[0-9]+")


def check_readable(before: "Draft", after: "Draft") -> None:
    """Refuse what makes a request that could be read one that cannot."""
    fault = after.fault
    if fault is not None and before.fault is None:
        raise edit_refusal(
            f"the request could not be read any more: {fault.message}", fault.hint, pointer=fault.pointer
        )


def check_sound(before: "Draft", after: "Draft", *, restores: bool = False) -> None:
    """Refuse what brings an error that was not there before, nor in what the client sent.

    What is restored may bring back those that the document has with nothing deleted.
    """
    if after is before:
        return
    check_readable(before, after)
    found = _errors(before.dialect, after.request)
    if not found:
        return
    allowed = [before.request, before.first.request, *([before.whole.reading.request] if restores else [])]
    known = Counter[str]()
    for request in allowed:
        known |= Counter(map(_mask_numbers, _errors(before.dialect, request)))
    # Ids and numbers are told apart well enough by how often a sentence stands there.
    new = Counter(map(_mask_numbers, found)) - known
    if new:
        why = next(message for message in found if _mask_numbers(message) in new)
        raise edit_refusal(f"the request would be rejected: {why}", "Change what that names first; nothing was done.")


def _errors(name: str, request: Request | None) -> list[str]:
    problems = [] if request is None else dialect(name).problems(request)
    return [problem.message for problem in problems if problem.severity == "error"]


def _mask_numbers(message: str) -> str:
    return _NUMBER.sub("#", message)
