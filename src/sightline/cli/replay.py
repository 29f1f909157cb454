"""`sightline replay`: a recorded request again, to the same model or another, or its recorded answer as it came."""

import argparse
from typing import TYPE_CHECKING

from sightline.cli.options import add_shared
from sightline.cli.terminal import say, write
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sightline.build import Configuration
    from sightline.cli.answer import AnswerView
    from sightline.engine.asked import Asked
    from sightline.engine.recording.recorded import Recorded
    from sightline.engine.relay import Relay
    from sightline.model.events import StreamEvent
    from sightline.model.reply import Reply
    from sightline.store.entries import Entry


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`replay` and its options."""
    command = commands.add_parser(
        "replay",
        help="send a recorded request again, or show its recorded answer as it came",
        description="Send a recorded request again: the very bytes to the same provider, or with --to the same request "
        "to another model. It is recorded as a new exchange that names this one. Credentials are not on record, so the "
        "provider needs key_env. With --offline nothing is sent: the recorded answer comes as it came then.",
    )
    command.add_argument("--to", default="", metavar="MODEL", help="another model, or PROVIDER/MODEL")
    command.add_argument("--offline", action="store_true", help="send nothing; play the recorded answer")
    command.add_argument("--fast", action="store_true", help="with --offline: without the waits that there were")
    command.add_argument("--json", action="store_true", help="print the whole reply as one JSON object")
    command.add_argument("--quiet", action="store_true", help="no usage, cost and time at the end")
    command.add_argument("--store", default="", metavar="URL", help="the record in PostgreSQL: postgresql://…")
    add_shared(command)
    command.add_argument("id", metavar="ID", help="the id of an exchange, or the beginning of it")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Replay it."""
    import asyncio

    from sightline.build import configuration

    if arguments.offline and arguments.to:
        raise Fault(Code.USAGE, "--offline asks no model, so --to has no meaning", hint="Leave one of them out.")
    if arguments.fast and not arguments.offline:
        raise Fault(Code.USAGE, "--fast is for --offline", hint="A provider answers as fast as it does.")
    loaded = configuration(arguments.config)
    return asyncio.run((_offline if arguments.offline else _online)(arguments, loaded))


async def _offline(arguments: argparse.Namespace, loaded: "Configuration") -> int:
    from sightline.build import SystemClock, open_record
    from sightline.cli.answer import AnswerView
    from sightline.dialects.hearing import Hearing
    from sightline.dialects.registry import dialect
    from sightline.engine.recording.recorded import recorded, resolved
    from sightline.model.fold import Fold

    clock = SystemClock()
    async with open_record(loaded, arguments.data, arguments.store) as store:
        exchange = await recorded(store, await resolved(store, arguments.id, now=clock.now()))
    view = AnswerView()
    heard = _ignore if arguments.json else view.heard
    hearing, fold = Hearing(dialect(exchange.spoken)), Fold(exchange.spoken)
    started = clock.elapsed()

    def tell(events: "list[StreamEvent]") -> None:
        for event in events:
            fold.add(event)
            heard(event)

    try:
        for frame in exchange.frames:
            left = started + frame.after - clock.elapsed()
            if left > 0 and not arguments.fast:
                await clock.sleep(left)
            tell(hearing.feed(frame.data))
        tell(exchange.last_events(hearing))
    finally:
        view.done()
    _conclude(arguments, loaded, exchange, fold.reply, exchange.summary.elapsed or 0.0)
    return _ended(fold.reply, exchange.fault)


async def _online(arguments: argparse.Namespace, loaded: "Configuration") -> int:
    from dataclasses import replace

    from sightline.build import SystemClock, open_relay
    from sightline.cli.answer import AnswerView
    from sightline.engine.recording.recorded import recorded, resolved

    clock, view = SystemClock(), AnswerView()
    noted = _Noted(view)
    async with open_relay(loaded, arguments.data, store=arguments.store, noted=noted.took) as (relay, store):
        await store.settle()
        exchange = await recorded(store, await resolved(store, arguments.id, now=clock.now()))
        asked = _asked(arguments, loaded, exchange)
        started = clock.elapsed()
        try:
            heard = _ignore if arguments.json else view.heard
            reply = await _heard(replace(asked, received=started), relay, heard)
        finally:
            view.done()
        seconds = clock.elapsed() - started
        await store.settle()
        summary = await resolved(store, noted.exchange, now=clock.now())
        fresh = await recorded(store, summary)
    _conclude(arguments, loaded, fresh, reply, seconds)
    if not arguments.quiet:
        say(f"recorded as {fresh.id}")
    return _ended(reply, fresh.fault)


def _asked(arguments: argparse.Namespace, loaded: "Configuration", exchange: "Recorded") -> "Asked":
    """What to send; a key that is missing is told before anything else is tried."""
    from sightline.catalog.choose import choose
    from sightline.engine.recording.asking import again, elsewhere, had_credential

    if exchange.is_count:
        raise Fault(Code.USAGE, f"{exchange.id} only counted tokens", hint="Replay one that asked a model.")
    if arguments.to:
        arriving = exchange.received.dialect
        provider = choose(loaded.catalog, arguments.to, has_key=loaded.has_key, arriving=arriving).provider  # type: ignore[arg-type] # as it came
        _need_key(loaded, provider.key_env, provider.key_help)
        return elsewhere(exchange, arguments.to)
    name = exchange.summary.provider
    provider_now = loaded.catalog.providers.get(name)
    if not name:
        raise Fault(Code.USAGE, f"{exchange.id} was not sent to anybody", hint="Say where it is to go: --to MODEL.")
    if provider_now is None:
        message = f"the provider {name!r} is no longer configured"
        raise Fault(Code.CONFIG, message, hint="Add it to sightline.toml, or say where it is to go: --to MODEL.")
    if not provider_now.key_env and had_credential(exchange):
        message = f"the client's credential for {name} is not on record"
        raise Fault(Code.AUTH, message, hint=f"Set key_env in [providers.{name}] to the name of a variable.")
    _need_key(loaded, provider_now.key_env, provider_now.key_help)
    return again(exchange)


def _need_key(loaded: "Configuration", variable: str, help_: str) -> None:
    if variable and not loaded.environment.get(variable, "").strip():
        hint = f"Set {variable} in the environment: credentials are not on record. {help_}".strip()
        raise Fault(Code.AUTH, f"the variable {variable} is not set", hint=hint)


class _Noted:
    """Hears what is recorded meanwhile: attempts and losses are told as they come."""

    def __init__(self, view: "AnswerView") -> None:
        self._view = view
        self.exchange = ""

    def took(self, entries: "Sequence[Entry]") -> None:
        from sightline.model.exchange import AttemptStarted, Translated
        from sightline.store.entries import Noted

        for entry in entries:
            if not isinstance(entry, Noted):
                continue
            self.exchange = entry.exchange
            if isinstance(entry.fact, AttemptStarted):
                self._view.tried(entry.fact)
            elif isinstance(entry.fact, Translated):
                for loss in entry.fact.report:
                    say(f"note: lost ({loss.severity}) {loss.pointer or '/'}: {loss.what}: {loss.why}")


async def _heard(asked: "Asked", relay: "Relay", heard: "Callable[[StreamEvent], None]") -> "Reply":
    """What comes back, in the dialect in which it was asked."""
    from sightline.dialects.hearing import Hearing
    from sightline.dialects.registry import dialect
    from sightline.model.fold import Fold

    hearing, fold = Hearing(dialect(asked.dialect)), Fold(asked.dialect)

    def tell(events: "list[StreamEvent]") -> None:
        for event in events:
            fold.add(event)
            heard(event)

    async with await relay.start(asked) as relayed:
        try:
            async for data in relayed:
                tell(hearing.feed(data))
            tell(hearing.close())
        except Fault as fault:
            tell(hearing.fail(fault))
    return fold.reply


def _ignore(_event: "StreamEvent") -> None:
    """The whole reply is printed at the end."""


def _conclude(
    arguments: argparse.Namespace, loaded: "Configuration", exchange: "Recorded", reply: "Reply", seconds: float
) -> None:
    from sightline.catalog.lookup import facts_of
    from sightline.cli.answer import summary
    from sightline.model.reply import folded
    from sightline.wire.jsontext import encode

    if arguments.json:
        write(encode(folded(reply)) + b"\n")
    if not arguments.quiet:
        provider = exchange.summary.provider
        facts = facts_of(loaded.catalog, provider, exchange.model)
        say(summary(reply, name=f"{provider}/{exchange.model}", facts=facts, estimate=None, seconds=seconds))


def _ended(reply: "Reply", fault: Fault | None) -> int:
    """The exit code; an answer that is not whole is never a success in silence."""
    from sightline.cli.program import EXIT_FAILED

    if reply.fault is not None:
        raise fault or reply.fault
    match reply.choice.finish:
        case "length":
            say("note: the answer was cut at its limit of tokens")
        case "content_filter":
            say("note: the provider's filter stopped the answer")
            return EXIT_FAILED
        case "tool_calls":
            say("note: the model wants to call a tool; --json shows the call")
        case _:
            pass
    return 0
