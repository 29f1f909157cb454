"""Plug-ins: a file or a package that adds dialects, signing, tools, models, formats, hooks, graders, fields or panels.

An author imports `Plugin` and the types from here. It may import every feature's room; nothing is loaded that the
user has not named under `[plugins]`, and no plug-in is called without a guard that names it when it fails.
"""

from sightline.filters.predicate import FilterSubject
from sightline.plugins.plugin import (
    ExchangeEvent,
    ExchangeField,
    ExchangeHook,
    ExportFormat,
    Fetch,
    FindValues,
    GradeAnswer,
    ImportFormat,
    MakeSigner,
    Panel,
    Plugin,
    SigningContext,
)
from sightline.transport.sender import Signer
from sightline.wire.call import HttpRequest

__all__ = [
    "ExchangeEvent",
    "ExchangeField",
    "ExchangeHook",
    "ExportFormat",
    "Fetch",
    "FilterSubject",
    "FindValues",
    "GradeAnswer",
    "HttpRequest",
    "ImportFormat",
    "MakeSigner",
    "Panel",
    "Plugin",
    "Signer",
    "SigningContext",
]
