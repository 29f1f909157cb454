"""What a command opens to send or to read: an engine, the record, or a relay without a server."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from sightline.app.configuration import Configuration, data_folder
from sightline.app.machine import SystemClock
from sightline.app.parts import hearing, make_relay, means_of, nowhere, open_configured_store
from sightline.errors import Fault
from sightline.exchange.memory import Memory
from sightline.exchange.request_counter import RequestCounter

if TYPE_CHECKING:
    from sightline.exchange.engine import Engine
    from sightline.exchange.hub import Record
    from sightline.exchange.prepare import Prepared
    from sightline.exchange.relay import Relay
    from sightline.store.store import Store


def _say_nothing(_line: str) -> None:
    """For callers that have nobody to tell."""


def counter(data: str | None) -> RequestCounter:
    """What estimates how many tokens a request has, with what was learned so far."""
    return RequestCounter(Memory(data_folder(data), SystemClock().now))


def final(prepared: "Prepared", data: str | None, *, session: str) -> "Prepared":
    """What an engine of this data folder sends for this request, after masks; nothing is opened for it."""
    from sightline.exchange.interception.final_body import final_body
    from sightline.exchange.interception.store import KeptInterception

    _, masks = KeptInterception(data_folder(data)).read()
    body = final_body(prepared.body, prepared.dialect, prepared.choice.model, masks, session=session)
    return prepared.with_body(body.data)


@asynccontextmanager
async def open_engine(
    loaded: Configuration,
    data: str | None,
    *,
    is_recorded: bool = True,
    apart: bool = False,
    notice: Callable[[str], None] = _say_nothing,
) -> AsyncIterator["Engine"]:
    """An engine that is ready to send, and is closed with all that it started. A server that runs with this data folder
    sends for it, unless it is to send `apart`. A record that cannot be opened keeps nobody from an answer: the engine
    says what is wrong with it. `notice` takes lines for the person at the command."""
    from dataclasses import replace

    from sightline.app.command_engine import engine_here, engine_through, running_server

    clock, folder = SystemClock(), data_folder(data)
    unrecorded: Fault | None = None
    async with AsyncExitStack() as stack:
        server = await running_server(folder, stack, apart=apart)
        if server is not None:
            means = means_of(loaded, folder, stack)
            yield await engine_through(server, loaded, folder, means, stack, notice=notice, is_recorded=is_recorded)
            return
        record: Record = nowhere
        if is_recorded:
            try:
                store = await open_configured_store(loaded, folder, "", clock)
            except Fault as fault:
                unrecorded = fault
            else:
                stack.push_async_callback(store.close)
                record = store.record
        means = means_of(loaded, folder, stack)
        engine, _ = await engine_here(loaded, folder, means, record, stack, notice=notice, is_told=is_recorded)
        yield replace(engine, unrecorded=unrecorded)


@asynccontextmanager
async def open_record(loaded: Configuration, data: str | None, store: str = "") -> AsyncIterator["Store"]:
    """The record, also while a server writes to it. `store` is the URL of a database in place of the folder's own."""
    record = await open_configured_store(loaded, data_folder(data), store, SystemClock())
    try:
        await record.settle()
        yield record
    finally:
        await record.close()


@asynccontextmanager
async def open_relay(
    loaded: Configuration, data: str | None, *, store: str = "", unattended: Callable[[], None] | None = None
) -> AsyncIterator[tuple["Relay", "Store"]]:
    """A relay without a server, and the record that it writes to. With `unattended` what a rule would hold is sent, and
    this is called."""
    from sightline.exchange.interception.store import BorrowedInterception

    clock, folder = SystemClock(), data_folder(data)
    async with AsyncExitStack() as stack:
        record = await open_configured_store(loaded, folder, store, clock)
        stack.push_async_callback(record.close)
        means, kept = means_of(loaded, folder, stack), BorrowedInterception(folder)
        relay, hub = await make_relay(
            loaded, means, record.record, stack, is_told=True, interception=kept, unattended=unattended
        )
        hub.hear = hearing(record)
        yield relay, record
