"""The server with everything behind it."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from sightline.build.configured import Configuration, data_folder
from sightline.build.machine import SystemClock
from sightline.build.parts import means_of, opened_relay, opened_store, price_list
from sightline.engine.memory import Memory

if TYPE_CHECKING:
    from sightline.engine.relay import Relay
    from sightline.engine.relayed import Relaying
    from sightline.engine.replaying import Replaying
    from sightline.filter.expression import Expression
    from sightline.server.guard import Guard
    from sightline.server.listening import Listening
    from sightline.store.store import Store


@asynccontextmanager
async def open_server(
    loaded: Configuration,
    data: str | None,
    *,
    host: str,
    port: int,
    store: str = "",
    replay: "Expression | None" = None,
    fast: bool = False,
) -> AsyncIterator[tuple["Listening", str]]:
    """A server for sockets at this address, and the link that opens its page. `store` is the URL of a database in place
    of the data folder's own. With `replay`, clients are answered from these exchanges of the record and nothing is
    sent to anybody; `fast` does so without the waits that there were."""
    # Commands that serve nobody start without all of this.
    from sightline.engine.hub import Hub
    from sightline.engine.kept_interception import KeptInterception
    from sightline.engine.resending import Means, Resending
    from sightline.engine.retention import Retention
    from sightline.server.app import App
    from sightline.server.gateway.gateway import Gateway
    from sightline.server.listening import GRACE, Listening
    from sightline.server.token import kept_token
    from sightline.server.workbench.access import Access
    from sightline.server.workbench.assembling import Parts, assembled

    clock, folder = SystemClock(), data_folder(data)
    token = kept_token(folder, lambda: secrets.token_urlsafe(24))
    async with AsyncExitStack() as stack:
        record = await opened_store(loaded, folder, store, clock)
        stack.push_async_callback(record.close)
        keep = loaded.settings.store
        tending = asyncio.ensure_future(Retention(record, clock, keep.keep_days, keep.keep_mb).run())
        stack.push_async_callback(_ended, tending)
        relay: Relaying
        sending: Relay | None = None
        resending: Resending | None = None
        if replay is None:
            means = means_of(loaded, folder, stack)
            own = frozenset({(host, port)})
            sending, hub = await opened_relay(
                loaded, means, record.record, stack, own=own, is_told=True, interception=KeptInterception(folder)
            )
            relay, memory = sending, means.memory
            resending = Resending(sending, record, Means(loaded.catalog, loaded.environment), clock)
        else:
            memory = Memory(folder, clock.now)
            relay, hub = await _replaying(record, replay, clock, fast=fast), Hub(record.record)
        address, guard = _entrance(loaded, host, port)
        workbench = assembled(
            Parts(
                access=Access(token, port),
                hub=hub,
                store=record,
                memory=memory,
                catalog=loaded.catalog,
                has_key=loaded.has_key,
                address=address,
                now=clock.now,
                prices=price_list(loaded.catalog),
                relay=sending,
                resending=resending,
            )
        )

        async def ending() -> None:
            hub.close()  # listeners never end by themselves
            await relay.close(GRACE)

        app = App(guard, Gateway(relay, loaded.catalog, loaded.has_key, clock.elapsed), workbench)
        # The relay tells each client that it has to end; only who does not hear it is cut off.
        listening = Listening(app, ending=ending, grace=GRACE + 2)

        async def ended() -> None:
            if resending is not None:  # what no client waits for is not among the server's requests
                await resending.close(0 if listening.force_exit else GRACE)

        stack.push_async_callback(ended)
        yield listening, f"{address}/?token={token}"


def _entrance(loaded: Configuration, host: str, port: int) -> tuple[str, "Guard"]:
    """The address as a person would write it, and who guards the door there."""
    from sightline.server.guard import LOOPBACK, Guard, host_name

    name = host_name(host)
    origins = frozenset(map(str.lower, loaded.settings.server.allowed_origins))
    address = f"http://{LOOPBACK[0] if name == 'localhost' else name}:{port}"
    return address, Guard(port, frozenset({*LOOPBACK, name}), origins)


async def _replaying(record: "Store", wanted: "Expression", clock: SystemClock, *, fast: bool) -> "Replaying":
    from sightline.engine.recording.library import Library
    from sightline.engine.replaying import Replaying

    library = Library(record)
    await library.fill(wanted, now=clock.now())
    return Replaying(library, clock, fast=fast)


async def _ended(task: "asyncio.Future[None]") -> None:
    """Stop it, and wait until it has."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
