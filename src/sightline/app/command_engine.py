"""What a command sends with: the server that runs with its data folder, else an engine of its own."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.app.configuration import Configuration
from sightline.app.machine import SystemClock
from sightline.app.parts import RelayResources, make_relay, nowhere, open_exporter
from sightline.exchange.engine import Engine
from sightline.exchange.interception.store import BorrowedInterception, KeptInterception
from sightline.exchange.remote_relay import RemoteRelay, RunningServer
from sightline.exchange.request_counter import RequestCounter

if TYPE_CHECKING:
    from sightline.exchange.hub import Hub, Record

Notice = Callable[[str], None]
"""Takes one line for the person at the command."""


async def running_server(folder: Path, stack: AsyncExitStack, *, apart: bool) -> RunningServer | None:
    """The server to send through, which stays as long as the stack does if it is one that runs share; None where none
    runs with this data folder, or the command sends `apart`."""
    if apart:
        return None
    from sightline.app.running_server import find_server, keep_server

    found = await asyncio.to_thread(find_server, folder)
    return found if found is not None and stack.enter_context(keep_server(folder)) else None


async def engine_through(
    server: RunningServer,
    loaded: Configuration,
    folder: Path,
    means: RelayResources,
    stack: AsyncExitStack,
    *,
    notice: Notice,
    is_recorded: bool = True,
) -> Engine:
    """An engine whose requests this server sends."""
    # The server keeps the count of what was used, and this process must not add the same to it once more.
    stack.callback(means.memory.ledger.mark_saved)

    def on_hold(link: str) -> None:
        notice(f"note: held until you decide: {link}")

    _, masks = KeptInterception(folder).read()
    observer = await open_exporter(loaded, means.client, stack)

    def relay(*, is_recorded: bool) -> RemoteRelay:
        return RemoteRelay(
            server,
            means.client,
            catalog=loaded.catalog,
            environment=loaded.environment,
            ledger=means.memory.ledger,
            clock=SystemClock(),
            on_held=on_hold,
            masks=masks,
            observer=observer,
            is_recorded=is_recorded,
        )

    through, aside = relay(is_recorded=is_recorded), relay(is_recorded=False)
    return Engine(through, aside, RequestCounter(means.memory), means.memory, SystemClock(), limits=through.wait)


async def engine_here(
    loaded: Configuration,
    folder: Path,
    means: RelayResources,
    record: "Record",
    stack: AsyncExitStack,
    *,
    notice: Notice,
    is_told: bool = True,
) -> tuple[Engine, "Hub"]:
    """An engine of this process, and the hub that tells what it does. The masks and rules of the data folder apply; but
    nobody can decide here about what a rule would hold, so that it is sent and the person is told once."""
    has_said: list[str] = []

    def warn_unattended() -> None:
        if not has_said:
            has_said.append("said")
            notice("note: hold is on, but no server is running to decide; sent")

    aside, _ = await make_relay(loaded, means, nowhere, stack)
    kept = BorrowedInterception(folder)
    relay, hub = await make_relay(
        loaded, means, record, stack, is_told=is_told, interception=kept, unattended=warn_unattended
    )
    return Engine(relay, aside, RequestCounter(means.memory), means.memory, SystemClock()), hub
