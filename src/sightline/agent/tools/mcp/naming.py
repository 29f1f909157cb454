"""What a server's tool is called in a request: always `server__tool`, in letters that every provider takes.

Always with the server's name, so that a name neither collides nor changes when another server comes, goes or adds a
tool, and so that a rule for one server is a pattern. A name once given stays given.
"""

import hashlib
import re

LONGEST = 64
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_HASH = 8


class ToolNames:
    """The names that have been given, and to what."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._taken: dict[str, tuple[str, str]] = {}

    def name_for(self, server: str, tool: str) -> str:
        """The name of this server's tool. The first that fits to it keeps it; another one is told apart by a hash."""
        pair = (server, tool)
        if pair not in self._given:
            name = fit_name(server, tool)
            if name in self._taken:
                name = _append_hash(name, pair)
            self._given[pair] = name
            self._taken[name] = pair
        return self._given[pair]

    def meant(self, name: str) -> tuple[str, str] | None:
        """The server and the tool that have this name."""
        return self._taken.get(name)


def fit_name(server: str, tool: str) -> str:
    """The name as providers take it: letters, digits, `_` and `-`, a letter or `_` first, at most 64."""
    name = _FOREIGN.sub("_", f"{server}__{tool}")
    if not (name[0].isalpha() or name[0] == "_"):
        name = f"_{name}"
    return name if len(name) <= LONGEST else _append_hash(name, (server, tool))


def is_exact(server: str, tool: str) -> bool:
    """Whether nothing had to be changed to make the name fit."""
    return fit_name(server, tool) == f"{server}__{tool}"


def _append_hash(name: str, pair: tuple[str, str]) -> str:
    mark = hashlib.sha256("\0".join(pair).encode(errors="surrogatepass")).hexdigest()[:_HASH]
    return f"{name[: LONGEST - _HASH - 1]}_{mark}"
