"""Providers for testing programs that use models: one that plays a script, one that answers from recordings.

`scripted_provider` and `recorded_provider` serve them over HTTP on loopback; `sightline.testing.plugin` has both as
fixtures for pytest. The rest is a scripted model and its tools, for demos and our own tests. It may import everything
except the commands, and never connects to anything outside this machine. Everything is imported lazily.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sightline.testing.providers import ServedProvider as ServedProvider
    from sightline.testing.providers import recorded_provider as recorded_provider
    from sightline.testing.providers import scripted_provider as scripted_provider
    from sightline.testing.script import ScriptedRound as ScriptedRound

_MODULES = {
    "ScriptedRound": "sightline.testing.script",
    "ServedProvider": "sightline.testing.providers",
    "recorded_provider": "sightline.testing.providers",
    "scripted_provider": "sightline.testing.providers",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'sightline.testing' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__all__", "__doc__", "__name__"]
