"""`sightline replay`: send a recorded request again, to the same model or another, or play its recorded answer."""

import argparse
from typing import TYPE_CHECKING

from sightline.cli.options import add_shared
from sightline.cli.terminal import say, write
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.app.configuration import Configuration
    from sightline.cli.answer import AnswerView
    from sightline.exchange.recorder import FactObserver
    from sightline.exchange.recording.exchange_record import RecordedExchange
    from sightline.model.events import StreamEvent
    from sightline.model.reply import Reply
    from sightline.store.entries import FactEntry


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `replay`."""
    command = commands.add_parser(
        "replay",
        help="send a recorded request again, or show its recorded answer as it came",
        description="Send a recorded request again: the very bytes to the same provider, or with --to the same request "
        "to another model. It is recorded as a new exchange that names this one. Credentials are not on record, so the "
        "provider needs key_env. With --offline nothing is sent: the recorded answer comes as it came then.",
    )
    command.add_argument("--to", default="", metavar="MODEL", help="another model, or PROVIDER/MODEL")
    command.add_argument("--offline", action="store_true", help="send nothing; play the recorded answer")
    command.add_argument("--fast", action="store_true", help="with --offline: without the recorded delays")
    command.add_argument("--json", action="store_true", help="print the whole reply as one JSON object")
    command.add_argument("--quiet", action="store_true", help="do not print usage, cost and time at the end")
    command.add_argument("--store", default="", metavar="URL", help="the record in PostgreSQL: postgresql://…")
    add_shared(command)
    command.add_argument("id", metavar="ID", help="the id of an exchange, or how it begins")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Replay it."""
    import asyncio

    from sightline.app.configuration import configuration

    if arguments.offline and arguments.to:
        raise Fault(
            Code.USAGE, "--to cannot be combined with --offline, which asks no model", hint="Leave one of them out."
        )
    if arguments.fast and not arguments.offline:
        raise Fault(Code.USAGE, "--fast needs --offline", hint="A provider's answer has no recorded delays.")
    loaded = configuration(arguments.config)
    return asyncio.run((_offline if arguments.offline else _online)(arguments, loaded))


def _pass_hold() -> None:
    say("note: interception is on, but a replay is sent at once")


async def _offline(arguments: argparse.Namespace, loaded: "Configuration") -> int:
    from sightline.app.engine import open_record
    from sightline.app.machine import SystemClock
    from sightline.cli.answer import AnswerView
    from sightline.dialects.registry import dialect
    from sightline.dialects.reply_decoder import ReplyDecoder
    from sightline.exchange.recording.exchange_record import find_exchange, load_exchange
    from sightline.model.fold import Fold

    clock = SystemClock()
    async with open_record(loaded, arguments.data, arguments.store) as store:
        exchange = await load_exchange(store, await find_exchange(store, arguments.id, now=clock.now()))
    view = AnswerView()
    on_event = _ignore if arguments.json else view.on_event
    hearing, fold = ReplyDecoder(dialect(exchange.spoken)), Fold(exchange.spoken)
    started = clock.monotonic()

    def tell(events: "list[StreamEvent]") -> None:
        for event in events:
            fold.add(event)
            on_event(event)

    try:
        for frame in exchange.frames:
            left = started + frame.after - clock.monotonic()
            if left > 0 and not arguments.fast:
                await clock.sleep(left)
            tell(hearing.feed(frame.data))
        tell(exchange.last_events(hearing))
    finally:
        view.finish()
    _conclude(arguments, loaded, exchange, fold.reply, exchange.summary.elapsed or 0.0)
    return _exit_code(fold.reply)


async def _online(arguments: argparse.Namespace, loaded: "Configuration") -> int:
    from msgspec.structs import replace

    from sightline.app.engine import open_relay
    from sightline.app.machine import SystemClock
    from sightline.cli.answer import AnswerView
    from sightline.exchange.answer_reading import read_answer
    from sightline.exchange.recording.exchange_record import find_exchange, load_exchange
    from sightline.exchange.resend import ResendSources
    from sightline.model.reply import Reply

    clock, view = SystemClock(), AnswerView()
    async with open_relay(loaded, arguments.data, store=arguments.store, unattended=_pass_hold) as (relay, store):
        await store.settle()
        exchange = await load_exchange(store, await find_exchange(store, arguments.id, now=clock.now()))
        request = ResendSources(loaded.catalog, loaded.environment).request_for(exchange, model=arguments.to)
        started = clock.monotonic()
        async with await relay.start(replace(request, received=started), _telling(view)) as relayed:
            try:
                reply = await read_answer(relayed, request.dialect, _ignore if arguments.json else view.on_event)
            except Fault as fault:
                reply = Reply(fault=fault)
            finally:
                view.finish()
        seconds = clock.monotonic() - started
        await store.settle()
        fresh = await load_exchange(store, await find_exchange(store, relayed.exchange, now=clock.now()))
    _conclude(arguments, loaded, fresh, reply, seconds)
    if not arguments.quiet:
        say(f"recorded as {fresh.id}")
    return _exit_code(reply)


def _telling(view: "AnswerView") -> "FactObserver":
    """Report attempts and losses as they come."""
    from sightline.model.exchange import AttemptStarted, Translated

    def on_recorded(entry: "FactEntry") -> None:
        if isinstance(entry.fact, AttemptStarted):
            view.on_attempt(entry.fact)
        elif isinstance(entry.fact, Translated):
            for loss in entry.fact.report:
                say(f"note: lost ({loss.severity}) {loss.pointer or '/'}: {loss.what}: {loss.why}")

    return on_recorded


def _ignore(_event: "StreamEvent") -> None:
    """Ignore events; the whole reply is printed at the end."""


def _conclude(
    arguments: argparse.Namespace, loaded: "Configuration", exchange: "RecordedExchange", reply: "Reply", seconds: float
) -> None:
    from sightline.catalog.catalog import facts_of
    from sightline.cli.answer import summary
    from sightline.model.reply import reply_json
    from sightline.wire.jsontext import encode

    if arguments.json:
        write(encode(reply_json(reply)) + b"\n")
    if not arguments.quiet:
        provider = exchange.summary.provider
        facts = facts_of(loaded.catalog, provider, exchange.model)
        say(summary(reply, name=f"{provider}/{exchange.model}", facts=facts, estimate=None, seconds=seconds))


def _exit_code(reply: "Reply") -> int:
    """The exit code. An incomplete answer is reported and is not a success."""
    from sightline.cli.program import EXIT_FAILED

    if reply.fault is not None:
        raise reply.fault
    match reply.choice.finish:
        case "length":
            say("note: the answer was truncated at its token limit")
        case "content_filter":
            say("note: the provider's filter stopped the answer")
            return EXIT_FAILED
        case "tool_calls":
            say("note: the model wants to call a tool; --json shows the call")
        case _:
            pass
    return 0
