"""One hook as a value: when it is asked, what it is, and for which tools. A file of them is read here too."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Literal, TypeAlias, get_args

import msgspec

from sightline.errors import Code, Fault
from sightline.model.json import JsonObject
from sightline.wire.jsontext import MISFIT, decode

Event: TypeAlias = Literal["before_request", "after_reply", "before_tool", "after_tool", "stop"]
EVENTS: tuple[Event, ...] = get_args(Event)
TIMEOUT = 30.0

HookFunction: TypeAlias = Callable[[JsonObject], object | Awaitable[object]]
"""Is given what a command would read, and returns what a command would print: an object, words, or nothing."""


class Hook(msgspec.Struct, frozen=True, omit_defaults=True):
    """A command line, or a function. `tools` is a pattern of names, for the two events that are about a tool."""

    event: Event
    does: str | HookFunction
    tools: str = "*"
    timeout: float = TIMEOUT

    def __post_init__(self) -> None:
        if self.event not in EVENTS:
            raise Fault(Code.CONFIG, f"there is no event {self.event!r}", hint=f"There are {', '.join(EVENTS)}.")

    @property
    def name(self) -> str:
        """What a person knows it by."""
        what = self.does if isinstance(self.does, str) else getattr(self.does, "__name__", "a function")
        return f"the {self.event} hook `{what}`"


class _Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    command: Annotated[str, msgspec.Meta(min_length=1)]
    tools: str = "*"
    timeout_s: Annotated[float, msgspec.Meta(gt=0)] = TIMEOUT


def hooks_in(text: bytes, where: str) -> tuple[Hook, ...]:
    """The hooks of a file: for each event a list of commands."""
    try:
        lists = msgspec.convert(decode(text), dict[str, list[_Written]])
    except (*MISFIT, Fault) as error:
        words = error.message if isinstance(error, Fault) else str(error)
        hint = 'Write it like {"before_tool": [{"command": "./check.sh", "tools": "run_*"}]}.'
        raise Fault(Code.CONFIG, f"{where}: {words}", hint=hint) from None
    found: list[Hook] = []
    for name, written in lists.items():
        event = next((each for each in EVENTS if each == name), None)
        if event is None:
            raise Fault(Code.CONFIG, f"{where}: there is no event {name!r}", hint=f"There are {', '.join(EVENTS)}.")
        found += [Hook(event, each.command, each.tools, each.timeout_s) for each in written]
    return tuple(found)
