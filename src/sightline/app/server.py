"""The server with everything behind it."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from sightline.app.configuration import Configuration, data_folder
from sightline.app.machine import SystemClock
from sightline.app.parts import (
    hearing,
    make_relay,
    means_of,
    nowhere,
    open_configured_store,
    price_list,
    relay_of,
    why_no_embedded_model,
)
from sightline.app.running_server import announce, withdraw
from sightline.exchange.memory import Memory, save_regularly
from sightline.transport.probing import probe

if TYPE_CHECKING:
    from sightline.agent.api.runs import Runs
    from sightline.app.parts import RelayResources as SendingMeans
    from sightline.catalog.provider import Provider
    from sightline.chat.api.calls import ChatParts
    from sightline.evals.api.calls import EvalCalls
    from sightline.exchange.client_response import RequestHandler
    from sightline.exchange.hub import Hub
    from sightline.exchange.relay import Relay
    from sightline.exchange.resend import Resender
    from sightline.filters.expression import Expression
    from sightline.server.listener import ListeningServer
    from sightline.store.store import Store
    from sightline.web.guard import OriginGuard
    from sightline.workbench.command_relay import CommandRelays
    from sightline.workbench.providers import Providers


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
) -> AsyncIterator[tuple["ListeningServer", str]]:
    """A server for sockets at this address, and the link that opens its page. `store` is the URL of a database in place
    of the data folder's own. With `replay`, clients are answered from these exchanges of the record and nothing is
    sent to anybody; `fast` does so without the waits that there were."""
    # Commands that serve nobody start without all of this.
    from sightline.app.workbench import Parts, assemble_workbench
    from sightline.exchange.recording.records import Retention
    from sightline.gateway.gateway import Gateway
    from sightline.server.app import App
    from sightline.server.listener import GRACE, ListeningServer
    from sightline.web.token import load_token
    from sightline.workbench.access import Access
    from sightline.workbench.command_relay import CommandCalls

    clock, folder = SystemClock(), data_folder(data)
    token = load_token(folder, lambda: secrets.token_urlsafe(24))
    async with AsyncExitStack() as stack:
        record = await open_configured_store(loaded, folder, store, clock)
        stack.push_async_callback(record.close)
        keep = loaded.settings.store
        tending = asyncio.ensure_future(Retention(record, clock, keep.keep_days, keep.keep_mb).run())
        stack.push_async_callback(_cancel, tending)
        if replay is None:
            behind = await _live(loaded, folder, record, stack, own=frozenset({(host, port)}))
        else:
            behind = await _replaying(folder, record, replay, clock, fast=fast)
        address, guard = _entrance(loaded, host, port)
        workbench = assemble_workbench(
            Parts(
                access=Access(token, port),
                hub=behind.hub,
                store=record,
                memory=behind.memory,
                catalog=loaded.catalog,
                has_key=loaded.has_key,
                address=address,
                now=clock.now,
                prices=price_list(loaded.catalog),
                relay=behind.sending,
                resending=behind.resending,
                chat=behind.chat,
                runs=behind.runs,
                evals=behind.evals,
                commands=None if behind.commands is None else CommandCalls(behind.commands),
                providers=behind.providers,
                toolsets=tuple(loaded.settings.tools),
            )
        )

        async def ending() -> None:
            withdraw(folder, address)  # no command begins now that would be cut off
            behind.hub.close()  # listeners never end by themselves
            await behind.leave_runs()
            await asyncio.gather(behind.relay.close(GRACE), behind.close_commands(GRACE))

        app = App(guard, Gateway(behind.relay, loaded.catalog, loaded.has_key, clock.monotonic), workbench)
        # The relay tells each client that it has to end; only who does not hear it is cut off.
        listening = ListeningServer(app, ending=ending, grace=GRACE + 2)

        async def end() -> None:
            await behind.close(0 if listening.force_exit else GRACE)

        stack.push_async_callback(end)
        if replay is None:  # one that answers from the record sends nothing for a command
            announce(folder, address)
            stack.callback(withdraw, folder, address)
        yield listening, f"{address}/?token={token}"


def _entrance(loaded: Configuration, host: str, port: int) -> tuple[str, "OriginGuard"]:
    """The address as a person would write it, and who guards the door there."""
    from sightline.web.guard import LOOPBACK, OriginGuard, host_name

    name = host_name(host)
    origins = frozenset(map(str.lower, loaded.settings.server.allowed_origins))
    address = f"http://{LOOPBACK[0] if name == 'localhost' else name}:{port}"
    return address, OriginGuard(port, frozenset({*LOOPBACK, name}), origins)


@dataclass(frozen=True, slots=True)
class _Behind:
    """What answers behind the server. Where it answers from the record, nobody sends."""

    relay: "RequestHandler"
    hub: "Hub"
    memory: Memory
    sending: "Relay | None" = None
    resending: "Resender | None" = None
    chat: "ChatParts | None" = None
    runs: "Runs | None" = None
    evals: "EvalCalls | None" = None
    commands: "CommandRelays | None" = None
    providers: "Providers | None" = None

    async def close_commands(self, grace: float) -> None:
        """Let requests of commands end within so many seconds."""
        if self.commands is not None:
            await self.commands.close(grace)

    async def close(self, grace: float) -> None:
        """End what no client waits for, which is not among the server's requests."""
        await self.leave_runs()
        if self.resending is not None:
            await self.resending.close(grace)
        if self.chat is not None:
            await self.chat.service.close(grace)

    async def leave_runs(self) -> None:
        """Let go of runs while they can still be taken up: a request that is cut off would be their end."""
        if self.evals is not None:
            await self.evals.close()
        if self.runs is not None:
            await self.runs.close()


async def _live(
    loaded: Configuration, folder: Path, record: "Store", stack: AsyncExitStack, *, own: frozenset[tuple[str, int]]
) -> _Behind:
    """A relay to the providers, and all that sends through it."""
    from sightline.agent.api.approvals import Approvals
    from sightline.agent.api.runs import Runs
    from sightline.agent.service.approval_store import KeptRules
    from sightline.app.agent_runs import runner_of, toolsets_of
    from sightline.app.chat import open_chat
    from sightline.app.eval_page import evals_of, suites_place
    from sightline.app.evals import evaluation_of
    from sightline.chat.service.tool_answerer import WithTools
    from sightline.exchange.engine import Engine
    from sightline.exchange.interception.store import KeptInterception
    from sightline.exchange.request_counter import RequestCounter
    from sightline.exchange.resend import Resender, ResendSources

    clock, means = SystemClock(), means_of(loaded, folder, stack)
    stack.callback(asyncio.create_task(save_regularly(means.memory)).cancel)
    kept = KeptInterception(folder)
    relay, hub = await make_relay(loaded, means, record.record, stack, own=own, is_told=True, interception=kept)
    hub.hear = hearing(record)
    resending = Resender(relay, record, ResendSources(loaded.catalog, loaded.environment), clock)
    aside, _ = await make_relay(loaded, means, nowhere, stack, own=own)
    engine = Engine(relay, aside, RequestCounter(means.memory), means.memory, clock)
    runner, toolsets = runner_of(loaded, engine, record.logbook, store=record, hub=hub), toolsets_of(loaded)
    stack.push_async_callback(toolsets.close)
    rules = KeptRules(folder)
    answering = WithTools(engine, runner, toolsets.open_toolsets, rules)
    chat = open_chat(loaded, engine, hub, record.logbook, answering)
    root, suites = suites_place(loaded)
    evaluation = evaluation_of(
        loaded, engine, record, root, hub=hub, runner=runner, toolsets=toolsets, client=means.client
    )
    evals = evals_of(
        loaded,
        evaluation,
        record,
        suites,
        clock,
        relaying=lambda other: relay_of(other, means, hub, relay.holds, own),
    )
    chat.service.chat.warm()
    runs = Runs(runner, toolsets, chat.service.sends.take_up, Approvals(rules))
    commands = _command_relays(loaded, means, relay, hub, aside)
    providers = _providers(loaded, means)
    return _Behind(relay, hub, means.memory, relay, resending, chat, runs, evals, commands, providers)


def _providers(loaded: Configuration, means: "SendingMeans") -> "Providers":
    """What says which providers answer."""
    from sightline.workbench.providers import Providers

    return Providers(
        loaded.catalog,
        loaded.has_key,
        loaded.environment,
        probe=lambda request: probe(means.client, request),
        embedded=lambda: why_no_embedded_model(means.embedded, means.client),
    )


def _command_relays(
    loaded: Configuration, means: "SendingMeans", relay: "Relay", hub: "Hub", aside: "Relay"
) -> "CommandRelays":
    """What sends for commands that run beside this server."""
    from sightline.exchange.hub import Hub
    from sightline.workbench.command_relay import CommandRelays

    unrecorded = Hub(nowhere)

    def make_relay(name: str, provider: "Provider", environment: Mapping[str, str], *, is_recorded: bool) -> "Relay":
        catalog = msgspec.structs.replace(loaded.catalog, providers={**loaded.catalog.providers, name: provider})
        other = replace(loaded, catalog=catalog, environment=environment)
        holds = relay.holds if is_recorded else aside.holds
        return relay_of(other, means, hub if is_recorded else unrecorded, holds, relay.own)

    return CommandRelays(
        relay,
        aside,
        catalog=loaded.catalog,
        environment=loaded.environment,
        make_relay=make_relay,
        ledger=means.memory.ledger,
        clock=SystemClock(),
    )


async def _replaying(folder: Path, record: "Store", wanted: "Expression", clock: SystemClock, *, fast: bool) -> _Behind:
    """Answers from the record."""
    from sightline.exchange.hub import Hub
    from sightline.exchange.recording.library import Library
    from sightline.exchange.replay_handler import ReplayHandler

    library = Library(record)
    await library.fill(wanted, now=clock.now())
    return _Behind(ReplayHandler(library, clock, fast=fast), Hub(record.record), Memory(folder, clock.now))


async def _cancel(task: "asyncio.Future[None]") -> None:
    """Stop it, and wait until it has."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
