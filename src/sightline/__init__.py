"""Sightline: a local-first workbench and gateway for LLM requests. What you see is what you send.

As a library it is the same code as the commands: `translate_request`, `translate_reply` and `StreamTranslation` turn
one provider's API into another's and report what could not be carried; `dialect(name)` reads and writes one of them;
`WireDocument` edits a body byte by byte. Nothing is imported before it is asked for.
"""

from importlib import import_module

_HOMES = {
    "translate_request": "sightline.dialects.translate",
    "translate_reply": "sightline.dialects.translate",
    "StreamTranslation": "sightline.dialects.stream_translation",
    "dialect": "sightline.dialects.registry",
    "WireDocument": "sightline.wire.document",
    "SseDecoder": "sightline.wire.sse",
    "Request": "sightline.model.request",
    "Reply": "sightline.model.reply",
    "fold": "sightline.model.fold",
    "Fault": "sightline.errors",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'sightline' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
