"""`sightline show` and `sightline replay`: one recorded exchange, shown, sent again, or played as it came."""

import argparse
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from sightline.cli.options import add_shared
from sightline.cli.terminal import harmless, many, say, write, write_lines
from sightline.cli.traffic import money, outcome
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.app.configuration import Configuration
    from sightline.catalog.catalog import Catalog
    from sightline.exchange.recording.exchange_record import RecordedExchange
    from sightline.model.events import StreamEvent
    from sightline.model.parts import Part
    from sightline.model.reply import Reply
    from sightline.store.entries import FactEntry


_LONGEST = 2000
_INDENT = "  "


def summary_lines(exchange: "RecordedExchange") -> Iterator[str]:
    summary = exchange.summary
    when = datetime.fromtimestamp(summary.at).astimezone()
    sent = f" as {exchange.model}" if exchange.model != summary.model else ""
    spoken = f", asked in {exchange.spoken}" if exchange.spoken != summary.dialect else ""
    pieces = many(len(exchange.frames), "piece")
    first = f", first byte after {summary.first_byte:.2f} s" if summary.first_byte else ""
    rows = {
        "exchange": exchange.id + (f" (replays {summary.origin})" if summary.origin else ""),
        "when": f"{when:%Y-%m-%d %H:%M:%S %Z}",
        "client": " ".join(filter(None, (summary.client, f"session {summary.session}" if summary.session else ""))),
        "model": "" if exchange.is_raw else f"{summary.model} ({summary.dialect})",
        "request": f"{summary.method} {summary.path} ({summary.dialect})" if exchange.is_raw else "",
        "provider": f"{summary.provider}{sent}{spoken}" if summary.provider else "not sent",
        "outcome": outcome(summary) + (f": {summary.message}" if summary.message else ""),
        "tokens": _tokens(exchange),
        "cost": money(summary.cost, is_estimated=summary.is_estimated) or ("unknown" if summary.input_tokens else ""),
        "time": "" if summary.elapsed is None else f"{summary.elapsed:.2f} s{first}",
        "attempts": f"{summary.attempts}" if summary.attempts > 1 else "",
        "continues": summary.previous,
        "bytes": f"{len(exchange.sent):,} sent, {len(exchange.reply_body):,} back in {pieces}",
    }
    for name, value in rows.items():
        if value:
            yield f"{name:<10}{harmless(value)}"
    for loss in exchange.losses:
        yield f"{'lost':<10}{harmless(f'({loss.severity}) {loss.pointer or chr(47)}: {loss.what}: {loss.why}')}"
    if exchange.is_raw:
        yield from _raw_bodies(exchange)
        if not exchange.has_reply:
            return
    else:
        yield ""
        yield from _request(exchange)
    reply = exchange.reply()
    yield "Answered:"
    for part in reply.choice.parts:
        yield from _part(part)
    if reply.fault is not None:
        yield f"{_INDENT}{harmless(f'{reply.fault.code}: {reply.fault.message}')}"


def _raw_bodies(exchange: "RecordedExchange") -> Iterator[str]:
    """The bodies of an exchange that passed as it was; those that are text with their words."""
    for of, name, data in (("request", "sent", exchange.sent), ("reply", "back", exchange.reply_body)):
        passed = exchange.passed.get(of)
        if passed is None or not passed.size:
            continue
        kind = passed.media_type or "no media type"
        yield f"{name:<10}{harmless(kind)}, {passed.size:,} bytes, sha256 {passed.sha256}"
        if not passed.is_whole:
            yield f"{_INDENT}It broke off."
        try:
            yield from _indent(data.decode())
        except UnicodeDecodeError:
            yield f"{_INDENT}[no text; --as wire writes what was sent]"


def _tokens(exchange: "RecordedExchange") -> str:
    usage = exchange.usage
    if usage is None:
        return ""
    counts = (
        (usage.input_tokens, "in"),
        (usage.cached_tokens, "of them cached"),
        (usage.output_tokens, "out"),
        (usage.reasoning_tokens, "of them thinking"),
    )
    shown = ", ".join(f"{count:,} {what}" for count, what in counts if count is not None)
    return f"{shown} (estimated)" if usage.is_estimated else shown


def _request(exchange: "RecordedExchange") -> Iterator[str]:
    """The messages since the model's last answer; the earlier ones are only counted."""
    try:
        request = exchange.request()
    except Fault as fault:
        yield f"The request cannot be read: {harmless(fault.message)}"
        return
    messages = request.messages
    last = max((n for n, message in enumerate(messages) if message.role == "assistant"), default=-1)
    new = [message for message in messages[last + 1 :] if message.role not in ("system", "developer")]
    before = len(messages) - len(new)
    rest = f" ({many(before, 'message')} before it, {many(len(request.tools), 'tool')})"
    yield f"Asked{rest if before or request.tools else ''}:"
    for message in new:
        for part in message.parts:
            yield from _part(part)


def _part(part: "Part") -> Iterator[str]:
    from sightline.model.parts import Refusal, Text, Thinking, ToolCall, ToolResult

    match part:
        case Text(text=text) | Refusal(text=text):
            yield from _indent(text)
        case Thinking(text=text):
            yield from _indent(f"[thinking] {text}" if text else "[thinking, signed]")
        case ToolCall(name=name, arguments=arguments):
            yield from _indent(f"[calls {name}] {arguments}")
        case ToolResult(parts=parts):
            yield from _indent("[result] " + "".join(each.text for each in parts if isinstance(each, Text)))
        case _:
            yield f"{_INDENT}[{type(part).__name__.lower()}]"


def _indent(text: str) -> Iterator[str]:
    clipped = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text):,} characters)"
    for line in clipped.splitlines():
        yield f"{_INDENT}{harmless(line)}"


def add_show(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "show",
        help="show one recorded exchange",
        description="Show one exchange: a summary, or with --as the exact body that was sent, a command that sends it "
        "again, the request in the raw schema, the reply's events, every fact, an HTTP archive, or a page to share.",
    )
    forms = ("wire", "curl", "python", "canonical", "raw", "events", "facts", "har", "html")
    command.add_argument("--as", dest="form", choices=forms, help="the format (default: a summary)")
    command.add_argument("--store", default="", metavar="URL", help="the record in PostgreSQL: postgresql://…")
    add_shared(command)
    command.add_argument("id", metavar="ID", help="its id, or how it begins")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show it."""
    import asyncio

    from sightline.app.configuration import configuration
    from sightline.app.engine import open_record
    from sightline.app.machine import SystemClock
    from sightline.exchange.recording.exchange_record import find_exchange, load_exchange

    loaded = configuration(arguments.config)

    async def find() -> "RecordedExchange":
        async with open_record(loaded, arguments.data, arguments.store) as store:
            summary = await find_exchange(store, arguments.id, now=SystemClock().now())
            return await load_exchange(store, summary, needs_bodies=arguments.form != "facts")

    exchange = asyncio.run(find())
    if arguments.form is None:
        write_lines(summary_lines(exchange))
    else:
        write(render(exchange, arguments.form, loaded.catalog))
    return 0


def render(exchange: "RecordedExchange", form: str, catalog: "Catalog") -> bytes:
    """The exchange in one of the formats."""
    match form:
        case "curl" | "python":
            from sightline.exchange.resend import call_of
            from sightline.wire import snippet

            return (snippet.curl if form == "curl" else snippet.python)(call_of(exchange, catalog)).encode()
        case "canonical":
            from sightline.dialects.translate import write_canonical

            return write_canonical(exchange.request()) + b"\n"
        case "raw":
            from sightline.dialects.dialect import Target
            from sightline.dialects.translate import write_request
            from sightline.model.report import Report

            report = Report()
            document = write_request(exchange.request(), "raw", Target(), report)
            for loss in report.losses:
                say(f"note: lost {loss.what} at {loss.pointer or '/'}: {loss.why}")
            return document + b"\n"
        case "events":
            from sightline.dialects.translate import EventLines

            return b"".join(map(EventLines().feed, exchange.events()))
        case "facts":
            from sightline.wire.jsontext import encode
            from sightline.workbench.exchange_views import fact_shown

            return b"".join(encode(fact_shown(entry)) + b"\n" for entry in exchange.facts)
        case "har":
            from importlib.metadata import version

            from sightline.exchange.recording.har import har
            from sightline.exchange.resend import call_of

            return har([(exchange, call_of(exchange, catalog))], version("sightline"))
        case "html":
            from sightline.exchange.recording.page import page

            return page(exchange)
        case _:
            if exchange.attempt is None:
                say("note: it was not sent; this is what would have been sent")
            return exchange.sent


def add_replay(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "replay",
        help="send a recorded request again, or play its recorded answer",
        description="Send a recorded request again: the same bytes to the same provider, or with --to the same request "
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
    command.set_defaults(run=run_replay)


def run_replay(arguments: argparse.Namespace) -> int:
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
    view = AnswerView(is_silent=arguments.json)
    decoder, fold = ReplyDecoder(dialect(exchange.spoken)), Fold(exchange.spoken)
    started = clock.monotonic()

    def take(events: "list[StreamEvent]") -> None:
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


async def _online(arguments: argparse.Namespace, loaded: "Configuration") -> int:
    from msgspec.structs import replace

    from sightline.app.engine import open_relay
    from sightline.app.machine import SystemClock
    from sightline.cli.answer import AnswerView
    from sightline.exchange.engine import read_answer
    from sightline.exchange.recording.exchange_record import find_exchange, load_exchange
    from sightline.exchange.resend import ResendSources
    from sightline.model.exchange import AttemptStarted, Translated
    from sightline.model.reply import Reply

    clock, view = SystemClock(), AnswerView(is_silent=arguments.json)

    def on_recorded(entry: "FactEntry") -> None:
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
    loaded: "Configuration",
    exchange: "RecordedExchange",
    reply: "Reply",
    seconds: float,
    note: str = "",
) -> int:
    from sightline.catalog.choose import prices_of
    from sightline.cli.answer import exit_code_of, print_ending

    provider = exchange.summary.provider
    names = filter(None, (reply.model, exchange.model))
    found = (prices_of(loaded.catalog, provider, name) for name in names)
    prices = next((each for each in found if each is not None), None)
    print_ending(arguments, reply, name=f"{provider}/{exchange.model}", prices=prices, estimate=None, seconds=seconds)
    if note and not arguments.quiet:
        say(note)
    return exit_code_of(reply, is_replay=True)
