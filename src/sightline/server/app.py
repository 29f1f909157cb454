"""The application: guards the door, and shows each request to the one who serves it."""

import asyncio
from collections.abc import Awaitable
from typing import Final

from sightline.gateway.gateway import Gateway
from sightline.web.access import OriginGuard
from sightline.web.asgi import RUNNING, AsgiScope, Receive, Send
from sightline.workbench.workbench import Workbench


class App:
    """A bare ASGI callable. Paths are taken as they were written, so that no spelling leads around a rule."""

    def __init__(self, guard: OriginGuard, gateway: Gateway, workbench: Workbench) -> None:
        self._guard: Final = guard
        self._gateway: Final = gateway
        self._workbench: Final = workbench
        self._tasks: set[asyncio.Task[object]] = set()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one request; a client that disconnects cancels it."""
        task = asyncio.current_task()
        assert task is not None  # a server runs each request in a task
        connection = scope.get("extensions", {}).get(RUNNING, self._tasks)
        self._tasks.add(task)
        connection.add(task)
        try:
            await self._serving(scope, receive, send)
        except asyncio.CancelledError:
            # The client has gone, or the server ends: both are ways for a request to end, and no failure of it.
            return
        finally:
            connection.discard(task)
            self._tasks.discard(task)

    def _serving(self, scope: AsgiScope, receive: Receive, send: Send) -> Awaitable[None]:
        """What serves it, to be awaited. A coroutine around another would cost time for each chunk of a stream."""
        is_workbench = self._workbench.serves(scope)
        refusal = self._guard.refusal(scope["headers"])
        if refusal is not None:
            refusing = self._workbench if is_workbench else self._gateway
            return refusing.refusal(scope, refusal).to(send)
        serving = self._workbench if is_workbench else self._gateway
        return serving.serve(scope, receive, send)

    async def wait_for_aborted(self) -> None:
        """Wait for requests that were cut off."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
