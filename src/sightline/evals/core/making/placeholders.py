"""What is another each time a conversation is held: dates, ids, folders of one machine. Each becomes a variable."""

import re
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["uuid", "time", "date", "session", "id", "temp_dir", "home", "dir"]

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_DATE = r"[12][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_CLOCK = r"[0-2][0-9]:[0-5][0-9](?::[0-6][0-9](?:[.,][0-9]+)?)?"
_ZONE = r"(?: ?(?:Z|UTC|GMT|[+-][0-2][0-9]:?[0-5][0-9]))?"
_STARTS = r"(?<![\w./:~-])"
_NAMED = r"[A-Za-z0-9_.-]*[A-Za-z0-9_-]"
_WINDOWS = r"[A-Za-z]:\\{1,2}"
_HAS_DIGIT = r"(?=[A-Za-z0-9_-]*[0-9])"
_PREFIXES = "toolu|call|msg|resp|req|run|thread|chatcmpl|cmpl|gen|fc|rs|item|batch|asst|step|trace|span|conv"

_PATTERNS: dict[Kind, str] = {
    "uuid": r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b",
    "time": rf"(?<![\w-]){_DATE}[T ]{_CLOCK}{_ZONE}(?![0-9])"
    rf"|\b{_DAY},? {_MONTH} [ 0-3]?[0-9] {_CLOCK}{_ZONE} [12][0-9]{{3}}\b",
    "date": rf"(?<![\w-]){_DATE}\b(?!-)|\b(?:{_DAY},? )?{_MONTH} [0-3]?[0-9],? [12][0-9]{{3}}\b"
    rf"|\b(?:{_DAY},? )?[0-3]?[0-9]\.? {_MONTH} [12][0-9]{{3}}\b|\b[0-3]?[0-9]/[0-3]?[0-9]/[12][0-9]{{3}}\b",
    "session": rf"\bsess(?:ion)?[_-]{_HAS_DIGIT}[A-Za-z0-9_-]{{8,}}\b"
    rf"|(?<=session id: ){_HAS_DIGIT}[A-Za-z0-9_-]{{6,}}\b|(?<=session_id=){_HAS_DIGIT}[A-Za-z0-9_-]{{6,}}\b",
    "id": rf"\b(?:{_PREFIXES})[_-]{_HAS_DIGIT}[A-Za-z0-9]{{8,}}\b",
    "temp_dir": rf"{_STARTS}(?:/private)?/(?:tmp|var/tmp|var/folders/{_NAMED}/{_NAMED}/T)/{_NAMED}"
    rf"|{_WINDOWS}Users\\{{1,2}}[\w.-]+\\{{1,2}}AppData\\{{1,2}}Local\\{{1,2}}Temp(?:\\{{1,2}}{_NAMED})?",
    "home": rf"{_STARTS}/(?:home|Users)/{_NAMED}|{_STARTS}/root(?![\w-])|{_WINDOWS}Users\\{{1,2}}{_NAMED}",
    "dir": rf"{_STARTS}/(?:work|workspaces?|srv|mnt|builds?|repos?|projects?|github/workspace)(?=/)"
    r"(?:/[\w-]+(?![\w.-]))?",
}
KINDS: tuple[Kind, ...] = tuple(_PATTERNS)

# Words that a suite would take for a reference of its own have to say that they are none.
_BRACES = r"\$*\{\{(?=\s*[A-Za-z_][A-Za-z0-9_.]*\s*\}\})"


class Placeholders:
    """Replaces what is volatile by `{{ name }}`. The same words get the same name; `variables` are what they stand for,
    in the order in which they were met."""

    def __init__(self, kinds: tuple[Kind, ...] = KINDS) -> None:
        groups = [f"(?P<braces>{_BRACES})", *(f"(?P<{kind}>{_PATTERNS[kind]})" for kind in KINDS if kind in kinds)]
        self._pattern = re.compile("|".join(groups))
        self._names: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    @property
    def variables(self) -> dict[str, str]:
        """The variables of the case."""
        return {name: words for (_, words), name in self._names.items()}

    def text(self, text: str) -> str:
        """The text with names in it."""
        whole = self._pattern.fullmatch(text.strip())
        if whole is not None:  # a suite drops the white space around a text that is one name
            return self._variable_for(whole.lastgroup or "", text)
        return self._pattern.sub(self._replace, text)

    def _replace(self, match: re.Match[str]) -> str:
        if match.start() and match.string[match.start() - 1] == "$":
            return match[0]  # behind a dollar sign the braces would ask for the environment
        return self._variable_for(match.lastgroup or "", match[0])

    def _variable_for(self, kind: str, words: str) -> str:
        key = (kind, words)
        if key not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[key] = kind if self._counts[kind] == 1 else f"{kind}_{self._counts[kind]}"
        return f"{{{{ {self._names[key]} }}}}"
