"""The dialects by name. A new dialect is a folder beside this file and one line here, or part of another package.

A dialect of another package is found through an entry point of the group `sightline.dialects`, whose name is that of
the dialect and whose value is the module or object that holds its `DIALECT`; or it is passed to `register`. Nothing is
loaded before it is needed: a program that uses one dialect does not import the others, and entry points are read only
when a name is unknown or all names are requested.
"""

from collections.abc import Collection, Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from sightline.catalog.fitting import HostedTool
    from sightline.dialects.dialect import Dialect
    from sightline.model.request import OpaqueTool

_MODULES: Final = {
    "openai-chat": "sightline.dialects.openai_chat",
    "openai-responses": "sightline.dialects.openai_responses",
    "anthropic": "sightline.dialects.anthropic",
    "gemini": "sightline.dialects.gemini",
    "raw": "sightline.dialects.raw",
}
GROUP: Final = "sightline.dialects"

NAMES: Final = tuple(_MODULES)
"""The built-in dialects."""

_SERVED: Final = tuple(name for name in NAMES if name != "raw")
"""The built-in dialects that providers speak; the raw schema is only for documents."""

DEFAULT: Final = "openai-chat"
"""The dialect of clients and scripts that give no sign of which one they speak; most servers understand it."""

_known: "dict[str, Dialect]" = {}
"""The dialects that were loaded or registered."""


def dialect(name: str) -> "Dialect":
    """The dialect of this name. Raises a fault if there is none."""
    found = _known.get(name) or find_dialect(name)
    if found is None:
        raise Fault(Code.USAGE, f"unknown dialect {name!r}", hint=f"Known dialects: {', '.join(names())}.")
    return found


def find_dialect(name: str) -> "Dialect | None":
    """The dialect of this name, or None."""
    found = _known.get(name)
    if found is None and (name in _MODULES or (name and name in _entry_points())):
        loaded: Any = import_module(_MODULES[name]) if name in _MODULES else _entry_points()[name].load()
        found = _known[name] = getattr(loaded, "DIALECT", loaded)
    return found


def names() -> tuple[str, ...]:
    """All names: built-in, from other packages, and registered."""
    return tuple(dict.fromkeys((*NAMES, *_entry_points(), *_known)))


def dialects() -> "Iterator[Dialect]":
    """All dialects, the built-in ones first. Each is loaded when the iteration reaches it, so that a search that ends
    early loads only the ones it visited."""
    yield from map(dialect, NAMES)
    yield from map(dialect, names()[len(NAMES) :])


def register(added: "Dialect") -> None:
    """Add a dialect from outside this package. Call this before requests are served: lookups may be cached."""
    if added.name in _MODULES:
        raise Fault(Code.USAGE, f"the dialect {added.name!r} is built in", hint="Give yours another name.")
    _known[added.name] = added


def unregister(name: str) -> None:
    """Remove a dialect that was registered."""
    del _known[name]


class _ProviderDialects(Collection[str]):
    """The names of all dialects that a provider can speak. A configuration that names only built-in ones loads no
    dialect and reads no entry points, which would take longer than reading the file."""

    def __contains__(self, name: object) -> bool:
        return name in _SERVED or (isinstance(name, str) and _is_served(name))

    def __iter__(self) -> Iterator[str]:
        return filter(_is_served, names())

    def __len__(self) -> int:
        return sum(1 for _name in self)


PROVIDER_DIALECTS: Final = _ProviderDialects()


def _is_served(name: str) -> bool:
    found = find_dialect(name)
    return found is not None and found.endpoint is not None


def kind_of_hosted_tool(tool: "OpaqueTool") -> "HostedTool | None":
    """The kind of an API's own hosted tool, in whatever dialect; None for any other tool."""
    found = find_dialect(tool.dialect)
    forms = {} if found is None else found.support.hosted_tools
    return next((kind for kind, form in forms.items() if form == tool.value), None)


@cache
def _entry_points() -> "dict[str, EntryPoint]":
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    return {entry.name: entry for entry in entry_points(group=GROUP)}
