"""Ids of tool calls: made where a provider gave none, and shortened where the vendor's server takes no longer ones."""

import hashlib
import re

from sightline.dialects.openai_chat.names import NAME
from sightline.model.report import Report

LONGEST_ID = 40
"""The vendor's server refuses requests with longer ones (`string_above_max_length`)."""

_FITS = re.compile(r"[a-zA-Z0-9_-]{1,24}")


class CallIds:
    """The ids of one choice's calls. A made one follows from the reply's own id, so that no two turns share it."""

    def __init__(self, choice: int) -> None:
        self._choice = choice
        self._taken: set[str] = set()

    def of(self, given: str, number: int, reply_id: str | None) -> str:
        """The id of the call with this number: the given one, if there is one."""
        call_id = given or self._made(number, reply_id or "")
        self._taken.add(call_id)
        return call_id

    def _made(self, number: int, reply_id: str) -> str:
        mark = reply_id if _FITS.fullmatch(reply_id) or not reply_id else _digest(reply_id, 16)
        words = ("call", mark, str(self._choice or ""), str(number))
        made = "_".join(word for word in words if word)
        while made in self._taken:
            made += "_"
        return made


def short_id(call_id: str, at: str, report: Report) -> str:
    """The id itself where the API takes it, else a stable one that it takes, so that call and result still meet."""
    if len(call_id) <= LONGEST_ID:
        return call_id
    why = f"{NAME} takes ids of at most {LONGEST_ID} characters"
    report.lose(at, "spelling of a tool call's id", why, "identity")
    return f"call_{_digest(call_id, 24)}"


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]
