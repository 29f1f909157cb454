"""Plug-ins: a file or a package that adds a dialect, a way to sign requests, tools, models, formats or event hooks.

An author imports `Plugin` and the protocols from here. It may import every feature's room; nothing is loaded that the
user has not named under `[plugins]`, and no plug-in is called without a guard that names it when it fails.
"""

from sightline.plugins.plugin import (
    ExchangeEvent,
    ExchangeHook,
    ExportFormat,
    Fetch,
    ImportFormat,
    MakeSigner,
    Plugin,
    SigningContext,
)
from sightline.transport.sender import Signer
from sightline.wire.call import HttpRequest

__all__ = [
    "ExchangeEvent",
    "ExchangeHook",
    "ExportFormat",
    "Fetch",
    "HttpRequest",
    "ImportFormat",
    "MakeSigner",
    "Plugin",
    "Signer",
    "SigningContext",
]
