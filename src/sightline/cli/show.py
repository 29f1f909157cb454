"""`sightline show`: one exchange of the record, for a person or as something to use."""

import argparse
from typing import TYPE_CHECKING

from sightline.cli.options import add_shared
from sightline.cli.terminal import say, write

if TYPE_CHECKING:
    from sightline.catalog.catalog import Catalog
    from sightline.exchange.recording.exchange_record import RecordedExchange

FORMS = ("wire", "curl", "python", "canonical", "raw", "events", "facts", "har", "html")


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`show` and its options."""
    command = commands.add_parser(
        "show",
        help="show one exchange of the record",
        description="Show one exchange: a summary, or with --as the exact body that was sent, a command that sends it "
        "again, the request in the raw schema, the reply's events, every fact, an HTTP archive, or a page to share.",
    )
    command.add_argument("--as", dest="form", choices=FORMS, help="how to show it (default: a summary)")
    command.add_argument("--store", default="", metavar="URL", help="the record in PostgreSQL: postgresql://…")
    add_shared(command)
    command.add_argument("id", metavar="ID", help="its id, or the beginning of it")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show it."""
    import asyncio

    from sightline.app.configuration import configuration
    from sightline.app.machine import SystemClock
    from sightline.app.openers import open_record
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
    """The exchange in one of the forms."""
    match form:
        case "curl" | "python":
            from sightline.exchange.recording.replay_request import call_of
            from sightline.wire import snippet

            return (snippet.curl if form == "curl" else snippet.python)(call_of(exchange, catalog)).encode()
        case "canonical":
            from sightline.dialects.views import write_canonical

            return write_canonical(exchange.request()) + b"\n"
        case "raw":
            return _raw(exchange)
        case "events":
            from sightline.dialects.views import EventLines

            return b"".join(map(EventLines().feed, exchange.events()))
        case "facts":
            from sightline.wire.jsontext import encode
            from sightline.workbench.views import fact_shown

            return b"".join(encode(fact_shown(noted)) + b"\n" for noted in exchange.facts)
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
                say("note: it was not sent to anybody; this is what would have been")
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
    from sightline.cli.show_summary import summary_lines

    return "".join(f"{line}\n" for line in summary_lines(exchange)).encode("utf-8", "replace")
