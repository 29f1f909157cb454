"""Patterns for paths: `*` and `?` within a folder, `**` across folders, `[abc]` and `{one,other}`."""

import re

from sightline.errors import Code, Fault

_HINT = "Write a pattern such as **/*.instructions.md."
_MOST_LETTERS = 500


def compile_glob(pattern: str) -> re.Pattern[str]:
    """What the pattern matches, as an expression for whole paths. A pattern that makes no sense is a fault."""
    if not pattern.strip():
        raise Fault(Code.USAGE, "the pattern is empty", hint=_HINT)
    if len(pattern) > _MOST_LETTERS:
        raise Fault(Code.USAGE, f"the pattern is longer than {_MOST_LETTERS} characters", hint=_HINT)
    if pattern.startswith("/") or "\\" in pattern or ".." in pattern.split("/"):
        raise Fault(Code.USAGE, f"{pattern}: patterns are of paths below the folder, with /", hint=_HINT)
    return re.compile(_Glob(pattern.removeprefix("./")).expression(), re.DOTALL)


def is_glob(path: str) -> bool:
    """Whether a path is a pattern for several."""
    return any(letter in path for letter in "*?[{")


class _Glob:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    def expression(self) -> str:
        text = ""
        depth = 0
        while self._at < len(self._pattern):
            letter = self._pattern[self._at]
            self._at += 1
            if letter == "*":
                text += self._stars()
            elif letter == "?":
                text += "[^/]"
            elif letter == "[":
                text += self._class()
            elif letter == "{":
                depth += 1
                text += "(?:"
            elif letter == "}" and depth:
                depth -= 1
                text += ")"
            elif letter == "," and depth:
                text += "|"
            else:
                text += re.escape(letter)
        if depth:
            raise Fault(Code.USAGE, f"{self._pattern}: a {{ is not closed", hint=_HINT)
        return text

    def _stars(self) -> str:
        begins = self._at == 1 or self._pattern[self._at - 2] in "/{,"
        count = 1
        while self._pattern.startswith("*", self._at):
            self._at += 1
            count += 1
        if count == 1:
            return "[^/]*"
        if begins and self._pattern.startswith("/", self._at):
            self._at += 1
            # Folders one by one, and no more of them than paths have: several such patterns in one stay quick.
            return "(?:[^/]+/){0,64}"
        return ".*"

    def _class(self) -> str:
        end = self._pattern.find("]", self._at + 1)
        if end < 0:
            raise Fault(Code.USAGE, f"{self._pattern}: a [ is not closed", hint=_HINT)
        inner = self._pattern[self._at : end]
        self._at = end + 1
        negated = inner[0] in "!^"
        letters = inner[1:] if negated else inner
        if not letters or any(low > high for low, high in re.findall(r"(.)-(.)", letters)):
            raise Fault(Code.USAGE, f"{self._pattern}: [{inner}] matches nothing", hint=_HINT)
        safe = re.sub(r"([\[\]\\^&~|])", r"\\\1", letters)
        return f"(?!/)[{'^' if negated else ''}{safe}]"
