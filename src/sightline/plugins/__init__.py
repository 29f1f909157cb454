"""Plug-ins: a file or a package that adds dialects, signing, tools, models, formats, hooks, graders, fields or panels.

Authors import `Plugin` and the types from here. It may import the package of every feature. Only what the user has
named under `[plugins]` is loaded, and every call of a plug-in is guarded, so that a failure names the plug-in.
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
