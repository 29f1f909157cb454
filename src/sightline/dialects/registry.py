"""The dialects by name. A new one is a folder beside this file and one line here.

Nothing is loaded before it is asked for, so that whoever only wants the names gets them at once.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.dialects.dialect import Dialect

_MODULES: Mapping[str, str] = {
    "openai-chat": "sightline.dialects.openai_chat",
    "openai-responses": "sightline.dialects.openai_responses",
    "anthropic": "sightline.dialects.anthropic",
    "gemini": "sightline.dialects.gemini",
    "raw": "sightline.dialects.raw",
}

NAMES: tuple[str, ...] = tuple(_MODULES)


@cache
def dialect(name: str) -> "Dialect":
    """The dialect of this name."""
    if name not in _MODULES:
        raise Fault(Code.USAGE, f"unknown dialect {name!r}", hint=f"Known dialects: {', '.join(NAMES)}.")
    loaded: Dialect = import_module(_MODULES[name]).DIALECT
    return loaded
