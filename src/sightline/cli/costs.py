"""`sightline costs`: what recorded exchanges cost, in groups or compared with a provider's account, and what is left of
caps."""

import argparse
import asyncio
import csv
import io
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, tzinfo

import msgspec

from sightline.app.configuration import configuration, data_folder
from sightline.app.engine import make_caps, open_record
from sightline.app.machine import SystemClock
from sightline.cli.options import parse_filter
from sightline.cli.program import EXIT_FAILED
from sightline.cli.terminal import harmless, many, read, say, table, write, write_lines
from sightline.errors import Code, Fault
from sightline.exchange.memory import Memory
from sightline.store.summary import price_list
from sightline.workbench.costs import Accounting, CostRow, CostsShown, check_groups, plain, to_csv
from sightline.workbench.page_settings import CapsShown, list_caps
from sightline.workbench.reconcile import Difference, read_report, reconcile

_HEADINGS = ("REQUESTS", "INPUT", "CACHED", "OUTPUT", "COST", "SAVED")


def run(arguments: argparse.Namespace) -> int:
    """Print the costs, or the comparison. The exit code is 1 if there are differences."""
    if arguments.caps:
        if arguments.by or arguments.filter or arguments.reconcile:
            raise Fault(Code.USAGE, "--caps shows caps as they are", hint="Leave --by, --reconcile and filters out.")
        return _print_caps(asyncio.run(_caps(arguments)), arguments.form)
    if arguments.reconcile:
        if arguments.by:
            raise Fault(Code.USAGE, "--reconcile compares by day and model", hint="Leave --by out.")
        report = read_report(read(arguments.reconcile))
        # Providers bill by UTC days.
        ours = asyncio.run(_account(arguments, ("day", "model"), UTC))
        return _print_differences(reconcile(report, ours), arguments.form)
    costs = asyncio.run(_account(arguments, check_groups((arguments.by or "day").split(",")), None))
    if arguments.form == "csv":
        write(to_csv(costs).encode())
    elif arguments.form == "json":
        write(msgspec.json.encode(costs) + b"\n")
    elif costs.total.requests:
        write_lines(_table(costs))
        _say_gaps(costs.total)
        _say_prices(costs)
    else:
        say("nothing on record" if not arguments.filter else "no recorded exchange matches")
    return 0


async def _account(arguments: argparse.Namespace, by: Sequence[str], zone: tzinfo | None) -> CostsShown:
    loaded, wanted = configuration(arguments.config), parse_filter(arguments.filter)
    accounting = Accounting(by, price_list(loaded.catalog), zone)
    async with open_record(loaded, arguments.data, arguments.store) as store:
        await accounting.add_all(store, wanted, SystemClock().now())
    return accounting.result()


async def _caps(arguments: argparse.Namespace) -> CapsShown:
    loaded, folder, clock = configuration(arguments.config), data_folder(arguments.data), SystemClock()
    async with open_record(loaded, arguments.data, arguments.store), AsyncExitStack() as stack:
        caps = make_caps(loaded, folder, Memory(folder, clock.now), stack, arguments.store)
        return CapsShown() if caps is None else await list_caps(caps, clock.now())


def _print_caps(shown: CapsShown, form: str) -> int:
    if form == "json":
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
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([head, *((row[0], plain(row[1]), *row[2:]) for row in rows)])
        write(out.getvalue().encode())
    elif rows:
        lines = [[name.upper() for name in head if name != "unit"]]
        for name, bucket, period, unit, *amounts, share in rows:
            cells = [f"${each:,.4f}" if unit == "dollars" else f"{each:,.0f}" for each in amounts]
            lines.append([name, harmless(bucket) or "–", period or "–", *cells, f"{share:.0%}"])
        write_lines(table(lines, right=range(3, len(lines[0]))))
    else:
        say("nothing is spent yet" if shown.caps else "no caps are set: see [[caps]] in the configuration")
    return 0


def _table(costs: CostsShown) -> list[str]:
    lines = [[*(name.upper() for name in costs.by), *_HEADINGS]]
    lines += [[*(harmless(key) or "–" for key in row.keys), *_cells(row)] for row in costs.rows]
    lines.append([*(["total"] + [""] * len(costs.by))[: len(costs.by)], *_cells(costs.total)])
    return table(lines, right=range(len(costs.by), len(lines[0])))


def _cells(row: CostRow) -> list[str]:
    share = f" ({row.cached_share:.0%})" if row.cached_share and row.cached_tokens else ""
    # Failed requests cost nothing, and do not make the sum of requests without a price known.
    is_known = row.cost or (not row.unpriced and row.requests > row.uncounted)
    about, more = "~" if row.estimated_cost else "", "+" if row.unpriced else ""
    cost = f"{about}${row.cost:,.4f}{more}" if is_known else "unknown"
    saved = f"${row.saved:,.4f}" if row.saved else "–"
    cached = f"{row.cached_tokens:,}{share}"
    return [f"{row.requests:,}", f"{row.input_tokens:,}", cached, f"{row.output_tokens:,}", cost, saved]


def _say_gaps(total: CostRow) -> None:
    if total.estimated:
        counted = f"{many(total.estimated, 'exchange')} that the provider did not count"
        say(f"{counted}: in the sum as estimated, ${total.estimated_cost:,.4f} of it")
    if total.unpriced:
        say(f"{many(total.unpriced, 'exchange')} with tokens but no known price: not in the sum")
    if total.uncounted:
        say(f"{many(total.uncounted, 'exchange')} without a count or an estimate: not in the sum")


def _say_prices(costs: CostsShown) -> None:
    """Report the source and month of the prices that were not set by the user."""
    models: dict[tuple[str, str], list[str]] = {}
    for each in costs.prices:
        if each.as_of and (each.input or each.output):
            models.setdefault((each.as_of, each.source), []).append(each.model)
    for (month, source), names in sorted(models.items()):
        shown = ", ".join(harmless(name) for name in dict.fromkeys(names))
        say(f"prices of {month}{f' ({source})' if source else ''}: {shown}")


def _print_differences(differences: tuple[Difference, ...], form: str) -> int:
    if form == "json":
        write(msgspec.json.encode(differences) + b"\n")
    elif form == "csv":
        raise Fault(Code.USAGE, "a comparison is printed as table or json", hint="Leave --as out, or use --as json.")
    else:
        lines = [["DAY", "MODEL", "", "INPUT", "OUTPUT", "COST"]]
        for each in differences:
            lines.append([each.day, harmless(each.model), "theirs", *_numbers(each, 0)])
            lines.append(["", "", "ours", *_numbers(each, 1)])
        write_lines(table(lines, right=range(3, len(lines[0]))))
    wrong = [each for each in differences if not each.agrees]
    for each in wrong:
        about = f", {each.estimated} of them estimated" if each.estimated else ""
        say(f"differs: sightline traffic '{each.filter}' lists {many(each.requests, 'exchange')}{about}")
    if not wrong:
        say(f"{many(len(differences), 'row')} agree")
    return EXIT_FAILED if wrong else 0


def _numbers(each: Difference, side: int) -> list[str]:
    cost = each.cost[side]
    counts = [each.input_tokens[side], each.output_tokens[side]]
    return [*("–" if count is None else f"{count:,}" for count in counts), "–" if cost is None else f"${cost:,.4f}"]
