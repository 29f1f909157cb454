"""`sightline replay`: sends a recorded request again, or plays its recorded answer as it arrived."""

import argparse
import asyncio

from msgspec.structs import replace

from sightline.app.configuration import Configuration, configuration
from sightline.app.engine import open_record, open_relay
from sightline.app.machine import SystemClock
from sightline.catalog.choose import prices_of
from sightline.cli.answer import AnswerView, exit_code_of, print_ending, summary
from sightline.cli.terminal import say
from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.errors import Code, Fault
from sightline.exchange.engine import read_answer
from sightline.exchange.recording.exchange_record import RecordedExchange, find_exchange, load_exchange
from sightline.exchange.resend import ResendSources
from sightline.model.events import StreamEvent
from sightline.model.exchange import AttemptStarted, Translated
from sightline.model.fold import Fold
from sightline.model.reply import Reply
from sightline.store.entries import FactEntry


def run(arguments: argparse.Namespace) -> int:
    if arguments.offline and arguments.to:
        raise Fault(
            Code.USAGE, "--to cannot be combined with --offline, which asks no model", hint="Leave one of them out."
        )
    if arguments.fast and not arguments.offline:
        raise Fault(Code.USAGE, "--fast needs --offline", hint="A provider's answer has no recorded delays.")
    loaded = configuration(arguments.config)
    return asyncio.run((_offline if arguments.offline else _online)(arguments, loaded))


async def _offline(arguments: argparse.Namespace, loaded: Configuration) -> int:
    clock = SystemClock()
    async with open_record(loaded, arguments.data, arguments.store) as store:
        exchange = await load_exchange(store, await find_exchange(store, arguments.id, now=clock.now()))
    view = AnswerView(is_silent=arguments.json)
    decoder, fold = ReplyDecoder(dialect(exchange.spoken)), Fold(exchange.spoken)
    started = clock.monotonic()

    def take(events: list[StreamEvent]) -> None:
        for event in events:
            fold.add(event)
            view.on_event(event)

    try:
        for frame in exchange.frames:
            left = started + frame.after - clock.monotonic()
            if left > 0 and not arguments.fast:
                await clock.sleep(left)
            take(decoder.feed(frame.data))
        take(exchange.last_events(decoder))
    finally:
        view.finish()
    return _conclude(arguments, loaded, exchange, fold.reply, exchange.summary.elapsed or 0.0)


async def _online(arguments: argparse.Namespace, loaded: Configuration) -> int:
    clock, view = SystemClock(), AnswerView(is_silent=arguments.json)

    def on_recorded(entry: FactEntry) -> None:
        if isinstance(entry.fact, AttemptStarted):
            view.on_attempt(entry.fact)
        elif isinstance(entry.fact, Translated):
            for loss in entry.fact.report:
                say(f"note: lost ({loss.severity}) {loss.pointer or '/'}: {loss.what}: {loss.why}")

    def pass_hold() -> None:
        say("note: interception is on, but a replay is sent at once")

    async with open_relay(loaded, arguments.data, store=arguments.store, unattended=pass_hold) as (relay, store):
        await store.settle()
        exchange = await load_exchange(store, await find_exchange(store, arguments.id, now=clock.now()))
        request = ResendSources(loaded.catalog, loaded.environment).request_for(exchange, model=arguments.to)
        started = clock.monotonic()
        async with await relay.start(replace(request, received=started), on_recorded) as relayed:
            try:
                reply = await read_answer(relayed, request.dialect, view.on_event)
            except Fault as fault:
                reply = Reply(fault=fault)
            finally:
                view.finish()
        seconds = clock.monotonic() - started
        await store.settle()
        fresh = await load_exchange(store, await find_exchange(store, relayed.exchange, now=clock.now()))
    return _conclude(arguments, loaded, fresh, reply, seconds, f"recorded as {fresh.id}")


def _conclude(
    arguments: argparse.Namespace,
    loaded: Configuration,
    exchange: RecordedExchange,
    reply: Reply,
    seconds: float,
    note: str = "",
) -> int:
    provider = exchange.summary.provider
    names = filter(None, (reply.model, exchange.model))
    found = (prices_of(loaded.catalog, provider, name) for name in names)
    prices = next((each for each in found if each is not None), None)
    name = f"{provider}/{exchange.model}"
    print_ending(arguments, reply, summary(reply, name=name, prices=prices, estimate=None, seconds=seconds))
    if note and not arguments.quiet:
        say(note)
    return exit_code_of(reply, is_replay=True)
