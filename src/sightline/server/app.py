"""The application: guards the door, and shows each request to the one who serves it."""

from collections.abc import Awaitable
from typing import Final

from sightline.gateway.gateway import Gateway
from sightline.web.asgi import AsgiScope, ClientWriter, Receive
from sightline.web.guard import OriginGuard
from sightline.workbench.workbench import Workbench


class App:
    """A bare ASGI callable. Paths are taken as they were written, so that no spelling leads around a rule."""

    def __init__(self, guard: OriginGuard, gateway: Gateway, workbench: Workbench) -> None:
        self._guard: Final = guard
        self._gateway: Final = gateway
        self._workbench: Final = workbench

    def __call__(self, scope: AsgiScope, receive: Receive, send: ClientWriter) -> Awaitable[None]:
        """Answer one request, once this is awaited. A coroutine around another would cost time for each chunk."""
        serving = self._workbench if self._workbench.serves(scope) else self._gateway
        refusal = self._guard.refusal(scope["headers"])
        if refusal is not None:
            return serving.refusal(scope, refusal).to(send)
        return serving.serve(scope, receive, send)
