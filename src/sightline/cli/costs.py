"""`sightline costs`: what recorded exchanges cost, in groups, and how that compares with a provider's own account."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sightline.cli.options import add_shared
from sightline.cli.terminal import harmless, many, read, say, write
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from datetime import tzinfo

    from sightline.workbench.caps import CapsShown
    from sightline.workbench.costs import CostRow, CostsShown
    from sightline.workbench.reconcile import Difference

_HEADINGS = ("REQUESTS", "INPUT", "CACHED", "OUTPUT", "COST", "SAVED")


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `costs`."""
    command = commands.add_parser(
        "costs",
        help="show what recorded exchanges cost",
        description="Add up tokens and costs of recorded exchanges, by day or whatever --by names. A cost that is not "
        "known is never counted as nothing: how many exchanges have none is shown beside the sum. With --reconcile, "
        "compare with a provider's usage or cost report, by day and model.",
    )
    command.add_argument(
        "--by",
        default="",
        metavar="NAMES",
        help="day, model, provider, client, session, project, origin; several with commas (default: day)",
    )
    command.add_argument(
        "--as", dest="form", choices=("table", "csv", "json"), default="table", help="how it is printed"
    )
    command.add_argument(
        "--reconcile", default="", metavar="FILE", help="a usage or cost report of OpenAI or Anthropic as JSON, or CSV"
    )
    command.add_argument("--caps", action="store_true", help="show what is left of the caps instead")
    command.add_argument("--store", default="", metavar="URL", help="the record in PostgreSQL: postgresql://…")
    add_shared(command)
    command.add_argument("filter", nargs="*", metavar="FILTER", help="a filter; without one, all")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the costs, or the comparison; with differences the exit code is 1."""
    import asyncio
    from datetime import UTC

    from sightline.workbench.costs import check_groups, to_csv
    from sightline.workbench.reconcile import read_report, reconcile

    if arguments.caps:
        if arguments.by or arguments.filter or arguments.reconcile:
            raise Fault(Code.USAGE, "--caps shows caps as they are", hint="Leave --by, --reconcile and filters out.")
        return _print_caps(asyncio.run(_caps(arguments)), arguments.form)
    if arguments.reconcile:
        if arguments.by:
            raise Fault(Code.USAGE, "--reconcile compares by day and model", hint="Leave --by out.")
        report = read_report(read(arguments.reconcile))
        # Providers bill by days of UTC.
        ours = asyncio.run(_account(arguments, ("day", "model"), UTC))
        return _print_differences(reconcile(report, ours), arguments.form)
    costs = asyncio.run(_account(arguments, check_groups((arguments.by or "day").split(",")), None))
    if arguments.form == "csv":
        write(to_csv(costs).encode())
    elif arguments.form == "json":
        import msgspec

        write(msgspec.json.encode(costs) + b"\n")
    elif costs.total.requests:
        write(_table(costs).encode())
        _say_gaps(costs.total)
        _say_prices(costs)
    else:
        say("nothing on record" if not arguments.filter else "no recorded exchange matches")
    return 0


async def _account(arguments: argparse.Namespace, by: Sequence[str], zone: "tzinfo | None") -> "CostsShown":
    from sightline.app.configuration import configuration
    from sightline.app.engine import open_record
    from sightline.app.machine import SystemClock
    from sightline.cli.traffic import parse_filter
    from sightline.exchange.recording.records import read_summaries
    from sightline.store.summary import price_list
    from sightline.workbench.costs import Accounting

    loaded, wanted = configuration(arguments.config), parse_filter(arguments.filter)
    accounting = Accounting(by, price_list(loaded.catalog), zone)
    async with open_record(loaded, arguments.data, arguments.store) as store:
        async for summary in read_summaries(store, wanted, SystemClock().now()):
            accounting.add(summary)
    return accounting.result()


async def _caps(arguments: argparse.Namespace) -> "CapsShown":
    from contextlib import AsyncExitStack

    from sightline.app.configuration import configuration, data_folder
    from sightline.app.engine import make_caps, open_record
    from sightline.app.machine import SystemClock
    from sightline.exchange.memory import Memory
    from sightline.workbench.caps import CapsShown, list_caps

    loaded, folder, clock = configuration(arguments.config), data_folder(arguments.data), SystemClock()
    async with open_record(loaded, arguments.data, arguments.store), AsyncExitStack() as stack:
        caps = make_caps(loaded, folder, Memory(folder, clock.now), stack, arguments.store)
        return CapsShown() if caps is None else await list_caps(caps, clock.now())


def _print_caps(shown: "CapsShown", form: str) -> int:
    if form == "json":
        import msgspec

        write(msgspec.json.encode(shown) + b"\n")
        return 0
    head = ("cap", "bucket", "period", "unit", "spent", "reserved", "limit", "share")
    rows = [
        (cap.name, ", ".join(bucket.values), bucket.period, cap.unit, bucket.spent, bucket.reserved, bucket.limit,
         bucket.share)
        for cap in shown.caps
        for bucket in cap.buckets
    ]  # fmt: skip
    if form == "csv":
        import csv
        import io

        from sightline.workbench.costs import plain

        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([head, *((row[0], plain(row[1]), *row[2:]) for row in rows)])
        write(out.getvalue().encode())
    elif rows:
        lines = [[name.upper() for name in head if name != "unit"]]
        for name, bucket, period, unit, *amounts, share in rows:
            cells = [f"${each:,.4f}" if unit == "dollars" else f"{each:,.0f}" for each in amounts]
            lines.append([name, harmless(bucket) or "–", period or "–", *cells, f"{share:.0%}"])
        write(_align(lines, left=3).encode())
    else:
        say("nothing is spent yet" if shown.caps else "no caps are set: see [[caps]] in the configuration")
    return 0


def _table(costs: "CostsShown") -> str:
    lines = [[*(name.upper() for name in costs.by), *_HEADINGS]]
    lines += [[*(harmless(key) or "–" for key in row.keys), *_cells(row)] for row in costs.rows]
    lines.append([*(["total"] + [""] * len(costs.by))[: len(costs.by)], *_cells(costs.total)])
    return _align(lines, left=len(costs.by))


def _cells(row: "CostRow") -> list[str]:
    share = f" ({row.cached_share:.0%})" if row.cached_share and row.cached_tokens else ""
    is_known = row.cost or row.requests > row.unpriced + row.uncounted
    about, more = "~" if row.estimated_cost else "", "+" if row.unpriced else ""
    cost = f"{about}${row.cost:,.4f}{more}" if is_known else "unknown"
    saved = f"${row.saved:,.4f}" if row.saved else "–"
    cached = f"{row.cached_tokens:,}{share}"
    return [f"{row.requests:,}", f"{row.input_tokens:,}", cached, f"{row.output_tokens:,}", cost, saved]


def _align(lines: list[list[str]], *, left: int) -> str:
    """The lines in columns; the first `left` begin at their left edge, numbers end at their right one."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "".join(
        "  ".join(
            cell.ljust(width) if index < left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        + "\n"
        for line in lines
    )


def _say_gaps(total: "CostRow") -> None:
    if total.estimated:
        counted = f"{many(total.estimated, 'exchange')} that the provider did not count"
        say(f"{counted}: in the sum as estimated, ${total.estimated_cost:,.4f} of it")
    if total.unpriced:
        say(f"{many(total.unpriced, 'exchange')} with tokens but no known price: not in the sum")
    if total.uncounted:
        say(f"{many(total.uncounted, 'exchange')} without a count or an estimate: not in the sum")


def _say_prices(costs: "CostsShown") -> None:
    """Where the prices are from and of when, for those that were not set by the user."""
    models: dict[tuple[str, str], list[str]] = {}
    for each in costs.prices:
        if each.as_of and (each.input or each.output):
            models.setdefault((each.as_of, each.source), []).append(each.model)
    for (month, source), names in sorted(models.items()):
        shown = ", ".join(harmless(name) for name in dict.fromkeys(names))
        say(f"prices of {month}{f' ({source})' if source else ''}: {shown}")


def _print_differences(differences: "tuple[Difference, ...]", form: str) -> int:
    from sightline.cli.program import EXIT_FAILED

    if form == "json":
        import msgspec

        write(msgspec.json.encode(differences) + b"\n")
    elif form == "csv":
        raise Fault(Code.USAGE, "a comparison is printed as table or json", hint="Leave --as out, or use --as json.")
    else:
        lines = [["DAY", "MODEL", "", "INPUT", "OUTPUT", "COST"]]
        for each in differences:
            lines.append([each.day, harmless(each.model), "theirs", *_numbers(each, 0)])
            lines.append(["", "", "ours", *_numbers(each, 1)])
        write(_align(lines, left=3).encode())
    wrong = [each for each in differences if not each.agrees]
    for each in wrong:
        about = f", {each.estimated} of them estimated" if each.estimated else ""
        say(f"differs: sightline traffic '{each.filter}' lists {many(each.requests, 'exchange')}{about}")
    if not wrong:
        say(f"{many(len(differences), 'row')} agree")
    return EXIT_FAILED if wrong else 0


def _numbers(each: "Difference", side: int) -> list[str]:
    cost = each.cost[side]
    counts = [each.input_tokens[side], each.output_tokens[side]]
    return [*("–" if count is None else f"{count:,}" for count in counts), "–" if cost is None else f"${cost:,.4f}"]
