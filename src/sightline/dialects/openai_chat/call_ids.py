"""Ids of tool calls: made where a provider gave none, and never changed where it gave one."""

import hashlib
import re

_FITS = re.compile(r"[a-zA-Z0-9_-]{1,24}")


class CallIds:
    """The ids of one choice's calls. A made one follows from the reply's own id, so that no two turns share it."""

    def __init__(self, choice: int) -> None:
        self._choice = choice
        self._taken: set[str] = set()

    def of(self, given: str, number: int, reply_id: str | None) -> str:
        """The id of the call with this number: the given one, if there is one."""
        call_id = given or self._make_id(number, reply_id or "")
        self._taken.add(call_id)
        return call_id

    def _make_id(self, number: int, reply_id: str) -> str:
        mark = reply_id if _FITS.fullmatch(reply_id) or not reply_id else _digest(reply_id)
        words = ("call", mark, str(self._choice or ""), str(number))
        made = "_".join(word for word in words if word)
        while made in self._taken:
            made += "_"
        return made


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
