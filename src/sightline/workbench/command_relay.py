"""Sends the requests of commands that run next to this server with the same data folder.

A command hands over the request that it composed. The server sends it like one of its own, so that its mode, rules,
masks and limits apply, and returns every fact and every byte as they arrive.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from sightline.catalog.catalog import Catalog
from sightline.catalog.provider import Provider
from sightline.errors import Code, Fault
from sightline.exchange import relay_messages as messages
from sightline.exchange.interception.holds import changes_while_held
from sightline.exchange.relay import Relay
from sightline.model.exchange import Released
from sightline.store.entries import FactEntry
from sightline.tokens.ledger import Ledger
from sightline.transport.waiting import Clock
from sightline.web import replies
from sightline.web.asgi import Receive, Send, WebResponse, response_body, response_start
from sightline.web.bodies import MOST_WITH_BODY, read_bytes
from sightline.wire.cache import BoundedCache

MOST_OTHERS = 64
"""How many relays to providers from the configurations of commands are cached."""


MakeRelay: TypeAlias = Callable[[str, Provider, Mapping[str, str], Relay], Relay]
"""Creates a relay that knows a provider under a name, with these variables; it shares record, holds and limits with
another relay."""

_TYPE = (b"content-type", b"application/msgpack")


@dataclass(frozen=True, slots=True)
class CommandCalls:
    """The two calls of commands. Their requests go through the server's own relay, through the one that records
    nothing, or through a relay to a provider that only a command's configuration has."""

    own: Relay
    aside: Relay
    catalog: Catalog
    environment: Mapping[str, str]
    make_relay: MakeRelay
    ledger: Ledger
    clock: Clock
    _others: BoundedCache[tuple[str, bool, bytes], Relay] = field(default_factory=lambda: BoundedCache(MOST_OTHERS))

    def relay_for(self, call: messages.RelayCall) -> Relay:
        """The relay for a call.

        A provider that this server also has is used with this server's keys; the command's keys are used if one is
        missing. If the command's definition differs, only the command's variables are used, so that no key of this
        server is sent to a URL that is not in its own configuration.
        """
        name, provider = call.asked.provider, call.provider
        usual = self.own if call.is_recorded else self.aside
        own = self.catalog.providers.get(name)
        if provider is None or (own is not None and own.embedded and provider.embedded):
            return usual
        if provider == own:
            missing = {each: value for each, value in call.variables.items() if not self.environment.get(each)}
            return self._other(call, provider, missing, {**self.environment, **missing}) if missing else usual
        if provider.embedded:
            hint = "Set the same [local] and [providers.local] for both, or send from this process with --apart."
            message = f"the running server has no embedded model named {name!r}"
            raise Fault(Code.CONFIG, message, hint=hint, status=409)
        return self._other(call, provider, call.variables, call.variables)

    def _other(
        self, call: messages.RelayCall, provider: Provider, brought: Mapping[str, str], environment: Mapping[str, str]
    ) -> Relay:
        """A relay with these variables, some of which the command `brought`."""
        name = call.asked.provider
        # Two commands with the same definition and the same keys share connections and limits.
        key = name, call.is_recorded, msgspec.msgpack.encode((provider, sorted(brought.items())))
        relay = self._others.get(key)
        if relay is None:
            usual = self.own if call.is_recorded else self.aside
            relay = self.make_relay(name, provider, environment, usual)
            self._others.put(key, relay)
        return relay

    async def close(self, grace: float) -> None:
        """Let requests in progress finish within so many seconds."""
        await asyncio.gather(*(relay.close(grace) for relay in self._others.values()))

    async def wait(self, receive: Receive, send: Send) -> None:
        try:
            wait_call = messages.read_message(await read_bytes(receive, MOST_WITH_BODY), messages.WaitCall)
        except Fault as fault:
            await replies.failure(fault).to(send)
            return
        now = self.clock.now()
        wait = self.ledger.wait(wait_call.provider, wait_call.model, wait_call.tokens, now, wait_call.facts)
        await WebResponse(200, messages.write_call(wait), [_TYPE, *replies.GUARDED]).to(send)

    async def relay(self, receive: Receive, send: Send) -> None:
        """Send a request and report what happens. If the command disconnects, the request is cancelled as for any
        client."""
        try:
            call = messages.read_message(await read_bytes(receive, MOST_WITH_BODY), messages.RelayCall)
            relay = self.relay_for(call)
        except Fault as fault:
            await replies.failure(fault).to(send)
            return
        await send(response_start(200, [_TYPE, *replies.GUARDED]))
        outbox: asyncio.Queue[messages.Frame | None] = asyncio.Queue()
        writing = asyncio.get_running_loop().create_task(_write(outbox, send))
        try:
            await self._relay_call(call, relay, outbox)
            outbox.put_nowait(None)
            await writing
        finally:
            writing.cancel()

    async def _relay_call(
        self, call: messages.RelayCall, relay: Relay, outbox: "asyncio.Queue[messages.Frame | None]"
    ) -> None:
        request = replace(call.asked, received=self.clock.monotonic())

        def on_recorded(entry: FactEntry) -> None:
            outbox.put_nowait(_fact(entry, relay, request.body))

        async with await relay.start(request, on_recorded) as relayed:
            fault = relayed.fault
            error = None if fault is None else messages.write_fault(fault)
            outbox.put_nowait(messages.HeadFrame(relayed.exchange, relayed.status, tuple(relayed.headers), error))
            try:
                async for piece in relayed:
                    error = None
                    if relayed.fault is not fault and relayed.fault is not None:
                        fault, error = relayed.fault, messages.write_fault(relayed.fault)
                    outbox.put_nowait(messages.PieceFrame(bytes(piece), error))
                    await outbox.join()  # the provider is read no faster than the command reads
            except Fault as broken:
                outbox.put_nowait(messages.EndFrame(messages.write_fault(broken)))
            else:
                outbox.put_nowait(messages.EndFrame())


async def _write(outbox: "asyncio.Queue[messages.Frame | None]", send: Send) -> None:
    """Send the frames in order, until None."""
    while (frame := await outbox.get()) is not None:
        await send(response_body(messages.write_frame(frame), more=True))
        outbox.task_done()
    await send(response_body(b"", more=False))


def _fact(entry: FactEntry, relay: Relay, sent_body: bytes) -> messages.FactFrame:
    """A fact as a frame. If the user released another body than the command's, that body is included."""
    hold = relay.holds.find(entry.exchange) if isinstance(entry.fact, Released) else None
    if hold is None or hold.draft.data == sent_body:
        return messages.FactFrame(messages.write_fact_entry(entry))
    changes = tuple(change for each in changes_while_held(relay.holds, entry) for change in each)
    return messages.FactFrame(
        messages.write_fact_entry(entry), hold.draft.data, hold.phase, messages.write_changes(changes)
    )
