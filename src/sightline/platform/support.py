"""Features that need a system which not every user has. They are refused in one line, with what to do instead."""

import sys
from typing import Final, Literal, NamedTuple, TypeAlias

from sightline.errors import Code, Fault

Feature: TypeAlias = Literal["run", "workers", "built-in tools"]


class Substitute(NamedTuple):
    """What a feature is called in messages, what it needs from the system, and what a user can do instead."""

    name: str
    need: str
    instead: str


_POSIX_ONLY: Final[dict[Feature, Substitute]] = {
    "run": Substitute(
        "`sightline run` and `sightline chat`",
        "locks that several processes share",
        "Start `sightline serve`, and set the client's base URL to its address: docs/guide/gateway.md says how.",
    ),
    "workers": Substitute(
        "serving with several processes",
        "to give an open connection from one process to another",
        "Leave out `workers`: one process serves all clients.",
    ),
    "built-in tools": Substitute(
        "the built-in tools",
        "to open files relative to a folder, without following links",
        "Write the tools that you need in a Python file, or run Sightline in WSL.",
    ),
}


def missing(platform: str = sys.platform) -> tuple[Feature, ...]:
    return tuple(_POSIX_ONLY) if platform == "win32" else ()


def is_supported(feature: Feature, platform: str = sys.platform) -> bool:
    return feature not in missing(platform)


def require(feature: Feature, platform: str = sys.platform) -> None:
    """Raise a Fault that reports what is not supported here, and what to do instead."""
    if not is_supported(feature, platform):
        name, need, instead = _POSIX_ONLY[feature]
        raise Fault(Code.CONFIG, f"Windows does not support {name}, which needs {need}", hint=instead)
