"""Sightline: a local-first workbench and gateway for LLM requests. What you see is what you send.

As a library it is the same code as the commands: `translate_request`, `translate_reply` and `StreamTranslation` turn
one provider's API into another's and report what could not be carried; `dialect(name)` reads and writes one of them;
`WireDocument` edits a body byte by byte; `count_tokens` estimates a request; `run` asks a model that may use tools;
`find_exchanges` reads the record; `evaluate` runs a suite; `GatewayApp` is the gateway as an ASGI application. What
waits has a twin with `_async` for programs with an event loop. `sightline.testing` has providers for your tests.
Nothing is imported before it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sightline.agent.core.limits import RunLimits
    from sightline.agent.tools.hooks import Hook as Hook
    from sightline.app.gateway_app import GatewayApp as GatewayApp
    from sightline.app.library import EvalOutcome as EvalOutcome
    from sightline.app.library import RunResult as RunResult
    from sightline.app.library import count_tokens as count_tokens
    from sightline.app.library import evaluate as evaluate
    from sightline.app.library import evaluate_async as evaluate_async
    from sightline.app.library import find_exchanges as find_exchanges
    from sightline.app.library import find_exchanges_async as find_exchanges_async
    from sightline.app.library import run as run
    from sightline.app.library import run_async as run_async
    from sightline.dialects.registry import dialect as dialect
    from sightline.dialects.translate import StreamTranslation as StreamTranslation
    from sightline.dialects.translate import translate_reply as translate_reply
    from sightline.dialects.translate import translate_request as translate_request
    from sightline.errors import Fault as Fault
    from sightline.evals.core.run_state import RunOptions
    from sightline.model.fold import fold as fold
    from sightline.model.reply import Reply as Reply
    from sightline.model.request import Request as Request
    from sightline.wire.document import WireDocument as WireDocument
    from sightline.wire.sse import SseDecoder as SseDecoder

    EvalOptions = RunOptions
    Limits = RunLimits

_HOMES = {
    "translate_request": "sightline.dialects.translate",
    "translate_reply": "sightline.dialects.translate",
    "StreamTranslation": "sightline.dialects.translate",
    "dialect": "sightline.dialects.registry",
    "WireDocument": "sightline.wire.document",
    "SseDecoder": "sightline.wire.sse",
    "Request": "sightline.model.request",
    "Reply": "sightline.model.reply",
    "fold": "sightline.model.fold",
    "Fault": "sightline.errors",
    "run": "sightline.app.library",
    "run_async": "sightline.app.library",
    "RunResult": "sightline.app.library",
    "count_tokens": "sightline.app.library",
    "evaluate": "sightline.app.library",
    "evaluate_async": "sightline.app.library",
    "EvalOutcome": "sightline.app.library",
    "EvalOptions": "sightline.evals.core.run_state:RunOptions",
    "find_exchanges": "sightline.app.library",
    "find_exchanges_async": "sightline.app.library",
    "GatewayApp": "sightline.app.gateway_app",
    "Limits": "sightline.agent.core.limits:RunLimits",
    "Hook": "sightline.agent.tools.hooks",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("importlib.metadata").version("sightline")
    if name not in _HOMES:
        raise AttributeError(f"module 'sightline' has no attribute {name!r}")
    module, _, own_name = _HOMES[name].partition(":")
    return getattr(import_module(module), own_name or name)


def __dir__() -> list[str]:
    return [*__all__, "__all__", "__doc__", "__name__", "__version__"]
