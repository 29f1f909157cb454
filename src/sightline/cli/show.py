"""`sightline show`: one recorded exchange, as a summary or in another format."""

import argparse
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from sightline.cli.options import add_shared
from sightline.cli.terminal import harmless, say, write
from sightline.cli.traffic import money, outcome
from sightline.errors import Fault

if TYPE_CHECKING:
    from sightline.catalog.catalog import Catalog
    from sightline.exchange.recording.exchange_record import RecordedExchange
    from sightline.model.message import Message
    from sightline.model.parts import Part


_LONGEST = 2000
_INDENT = "  "


def summary_lines(exchange: "RecordedExchange") -> Iterator[str]:
    """The lines."""
    summary = exchange.summary
    when = datetime.fromtimestamp(summary.at).astimezone()
    sent = f" as {exchange.model}" if exchange.model != summary.model else ""
    spoken = f", asked in {exchange.spoken}" if exchange.spoken != summary.dialect else ""
    pieces = _many(len(exchange.frames), "piece")
    rows = {
        "exchange": exchange.id + (f" (replays {summary.origin})" if summary.origin else ""),
        "when": f"{when:%Y-%m-%d %H:%M:%S %Z}",
        "client": " ".join(filter(None, (summary.client, f"session {summary.session}" if summary.session else ""))),
        "model": f"{summary.model} ({summary.dialect})",
        "provider": f"{summary.provider}{sent}{spoken}" if summary.provider else "not sent",
        "outcome": outcome(summary) + (f": {summary.message}" if summary.message else ""),
        "tokens": _tokens(exchange),
        "cost": money(summary.cost),
        "time": _times(exchange),
        "attempts": f"{summary.attempts}" if summary.attempts > 1 else "",
        "continues": summary.previous,
        "bytes": f"{len(exchange.sent):,} sent, {len(exchange.reply_body):,} back in {pieces}",
    }
    for name, value in rows.items():
        if value:
            yield f"{name:<10}{harmless(value)}"
    for loss in exchange.losses:
        yield f"{'lost':<10}{harmless(f'({loss.severity}) {loss.pointer or chr(47)}: {loss.what}: {loss.why}')}"
    yield ""
    yield from _request(exchange)
    yield from _reply(exchange)


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
    return ", ".join(f"{count:,} {what}" for count, what in counts if count is not None)


def _times(exchange: "RecordedExchange") -> str:
    summary = exchange.summary
    if summary.elapsed is None:
        return ""
    first = f", first byte after {summary.first_byte:.2f} s" if summary.first_byte else ""
    return f"{summary.elapsed:.2f} s{first}"


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
    rest = f" ({_many(before, 'message')} before it, {_many(len(request.tools), 'tool')})"
    yield f"Asked{rest if before or request.tools else ''}:"
    for message in new:
        yield from _message(message)


def _message(message: "Message") -> Iterator[str]:
    for part in message.parts:
        yield from _part(part)


def _reply(exchange: "RecordedExchange") -> Iterator[str]:
    reply = exchange.reply()
    yield "Answered:"
    for part in reply.choice.parts:
        yield from _part(part)
    if reply.fault is not None:
        yield f"{_INDENT}{harmless(f'{reply.fault.code}: {reply.fault.message}')}"


def _part(part: "Part") -> Iterator[str]:
    from sightline.model.parts import Refusal, Text, Thinking, ToolCall, ToolResult

    match part:
        case Text(text=text) | Refusal(text=text):
            yield from _indent(text)
        case Thinking(text=text):
            yield from _indent(f"[thinking] {text}" if text else "[thinking, sealed]")
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


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


FORMS = ("wire", "curl", "python", "canonical", "raw", "events", "facts", "har", "html")


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `show`."""
    command = commands.add_parser(
        "show",
        help="show one recorded exchange",
        description="Show one exchange: a summary, or with --as the exact body that was sent, a command that sends it "
        "again, the request in the raw schema, the reply's events, every fact, an HTTP archive, or a page to share.",
    )
    command.add_argument("--as", dest="form", choices=FORMS, help="the format (default: a summary)")
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
    write(_summary(exchange) if arguments.form is None else render(exchange, arguments.form, loaded.catalog))
    return 0


def render(exchange: "RecordedExchange", form: str, catalog: "Catalog") -> bytes:
    """The exchange in one of the formats."""
    match form:
        case "curl" | "python":
            from sightline.exchange.recording.replay_request import call_of
            from sightline.wire import snippet

            return (snippet.curl if form == "curl" else snippet.python)(call_of(exchange, catalog)).encode()
        case "canonical":
            from sightline.dialects.translate import write_canonical

            return write_canonical(exchange.request()) + b"\n"
        case "raw":
            return _raw(exchange)
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
            from sightline.exchange.recording.replay_request import call_of

            return har([(exchange, call_of(exchange, catalog))], version("sightline"))
        case "html":
            from sightline.exchange.recording.page import page

            return page(exchange)
        case _:
            if exchange.attempt is None:
                say("note: it was not sent; this is what would have been sent")
            return exchange.sent


def _raw(exchange: "RecordedExchange") -> bytes:
    from sightline.dialects.dialect import Target
    from sightline.dialects.translate import write_request
    from sightline.model.report import Report

    report = Report()
    document = write_request(exchange.request(), "raw", Target(), report)
    for loss in report.losses:
        say(f"note: lost {loss.what} at {loss.pointer or '/'}: {loss.why}")
    return document + b"\n"


def _summary(exchange: "RecordedExchange") -> bytes:

    return "".join(f"{line}\n" for line in summary_lines(exchange)).encode("utf-8", "replace")
