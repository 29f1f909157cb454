"""What sessions of clients hold, lose and cost: `sightline costs`, in groups and beside a provider's own account;
`sightline cache`, why providers' caches missed; `sightline context`, what fills the context of a session.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from sightline.cli.options import add_session, add_shared, count
from sightline.cli.terminal import harmless, is_terminal, many, read, say, table, write, write_lines
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from datetime import tzinfo

    from sightline.workbench.cache_report import CacheReport
    from sightline.workbench.cache_turns import CacheTurn
    from sightline.workbench.context import ContextRow, ContextShown
    from sightline.workbench.costs import CostRow, CostsShown
    from sightline.workbench.page_settings import CapsShown
    from sightline.workbench.reconcile import Difference


_HEADINGS = ("REQUESTS", "INPUT", "CACHED", "OUTPUT", "COST", "SAVED")


def add_costs(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
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
        help="day, model, provider, client, session, project, tag, origin; several with commas (default: day)",
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
    command.set_defaults(run=run_costs)


def run_costs(arguments: argparse.Namespace) -> int:
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
        write_lines(_table(costs))
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
    from sightline.store.summary import price_list
    from sightline.workbench.costs import Accounting

    loaded, wanted = configuration(arguments.config), parse_filter(arguments.filter)
    accounting = Accounting(by, price_list(loaded.catalog), zone)
    async with open_record(loaded, arguments.data, arguments.store) as store:
        await accounting.add_all(store, wanted, SystemClock().now())
    return accounting.result()


async def _caps(arguments: argparse.Namespace) -> "CapsShown":
    from contextlib import AsyncExitStack

    from sightline.app.configuration import configuration, data_folder
    from sightline.app.engine import make_caps, open_record
    from sightline.app.machine import SystemClock
    from sightline.exchange.memory import Memory
    from sightline.workbench.page_settings import CapsShown, list_caps

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
        write_lines(table(lines, right=range(3, len(lines[0]))))
    else:
        say("nothing is spent yet" if shown.caps else "no caps are set: see [[caps]] in the configuration")
    return 0


def _table(costs: "CostsShown") -> list[str]:
    lines = [[*(name.upper() for name in costs.by), *_HEADINGS]]
    lines += [[*(harmless(key) or "–" for key in row.keys), *_cells(row)] for row in costs.rows]
    lines.append([*(["total"] + [""] * len(costs.by))[: len(costs.by)], *_cells(costs.total)])
    return table(lines, right=range(len(costs.by), len(lines[0])))


def _cells(row: "CostRow") -> list[str]:
    share = f" ({row.cached_share:.0%})" if row.cached_share and row.cached_tokens else ""
    # Requests that failed cost nothing, and do not make a sum of those without a price known.
    is_known = row.cost or (not row.unpriced and row.requests > row.uncounted)
    about, more = "~" if row.estimated_cost else "", "+" if row.unpriced else ""
    cost = f"{about}${row.cost:,.4f}{more}" if is_known else "unknown"
    saved = f"${row.saved:,.4f}" if row.saved else "–"
    cached = f"{row.cached_tokens:,}{share}"
    return [f"{row.requests:,}", f"{row.input_tokens:,}", cached, f"{row.output_tokens:,}", cost, saved]


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
        write_lines(table(lines, right=range(3, len(lines[0]))))
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


_MOST_LINES = 40


def add_cache(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "cache",
        help="show why the provider's cache missed",
        description="For every turn of a session: what the provider could have read from its prompt cache, what it "
        "read, and why not all of it; the tokens and money lost, summed by cause, and what would have saved them. "
        "Without a session or a filter, the session of the latest request.",
    )
    command.add_argument("--filter", default="", metavar="FILTER", help="other turns, such as 'age<1d' or 'client:c*'")
    command.add_argument(
        "--by", default="", choices=("day", "client", "model", "session"), help="sum the causes by this as well"
    )
    command.add_argument(
        "--keep", type=count, default=0, metavar="N", help="keep the edit with this number for later requests"
    )
    command.add_argument(
        "--for",
        dest="scope",
        choices=("session", "project", "all"),
        default="",
        help="with --keep: where (default: where it would have helped: the session, else the project, else all)",
    )
    add_session(command)
    command.set_defaults(run=run_cache)


def run_cache(arguments: argparse.Namespace) -> int:
    """Print it."""
    import asyncio

    import msgspec

    report = asyncio.run(_cache_report(arguments))
    if arguments.keep:
        write(_keep_edit(report, arguments).encode())
        return 0
    write(msgspec.json.encode(report) + b"\n" if arguments.json else _cache_page(report).encode())
    return 0


def _keep_edit(report: "CacheReport", arguments: argparse.Namespace) -> str:
    """Keep one of the edits, through the server of the data folder, or in its file while none runs."""
    import time

    import msgspec

    from sightline.app.configuration import data_folder
    from sightline.app.running_server import call_server, find_server
    from sightline.editing.masks import project_of, with_id
    from sightline.exchange.interception.store import KeptInterception

    edits = [edit for advice in report.advice for edit in advice.edits]
    if arguments.keep > len(edits):
        hint = (
            "`sightline cache` without --keep numbers them." if edits else "Nothing that Sightline can edit was lost."
        )
        raise Fault(Code.USAGE, f"there is no edit {arguments.keep}; there are {len(edits)}", hint=hint)
    edit = edits[arguments.keep - 1]
    own = edit.mask.name if edit.mask.scope == "session" else report.session
    names = {edit.mask.scope: edit.mask.name, "session": own, "all": ""}
    names.setdefault("project", project_of(own))
    scope = arguments.scope or edit.mask.scope
    if scope != "all" and not names[scope]:
        hint = "Keep it with --for all, or give sessions names: `sightline run --session NAME@PROJECT`."
        raise Fault(Code.USAGE, f"these requests have no {scope}", hint=hint)
    mask = with_id(msgspec.structs.replace(edit.mask, scope=scope, name=names[scope], created=time.time()))
    folder = data_folder(arguments.data)
    server = find_server(folder)
    if server is not None:
        call_server(server, "POST", "/api/masks", msgspec.to_builtins(mask))
    else:
        kept = KeptInterception(folder)
        interception, masks, counts = kept.read_all()
        kept.write(interception, (*(each for each in masks if each.id != mask.id), mask), counts)
    where = f"{scope} {harmless(names[scope])}" if names[scope] else "all requests"
    about = harmless(edit.words) or edit.action
    return f"Kept for {where}: {edit.label} ({about}). To undo it, stop it on the page under Kept edits.\n"


async def _cache_report(arguments: argparse.Namespace) -> "CacheReport":
    from sightline.app.configuration import configuration
    from sightline.app.engine import open_viewer
    from sightline.app.machine import SystemClock
    from sightline.workbench.cache_report import CacheReports
    from sightline.workbench.cache_turns import TurnExaminer

    async with open_viewer(configuration(arguments.config), arguments.data, arguments.store) as viewer:
        reports = CacheReports(TurnExaminer(viewer, SystemClock().now))
        return await reports.report(arguments.session, arguments.filter, arguments.by)


def _cache_page(report: "CacheReport") -> str:
    named = f"session {harmless(report.session)}, " if report.session else ""
    share = f" ({report.read_tokens / report.could_tokens:.0%})" if report.could_tokens else ""
    head = f"{named}{many(len(report.turns), 'turn')}: read {report.read_tokens:,} of {report.could_tokens:,}"
    head += f" tokens that the cache could have held{share}"
    lines = [head + (", the newest turns only" if report.is_cut else "")]
    if report.lost_tokens:
        lines.append(f"lost {report.lost_tokens:,} tokens{_money(report.money, report.unpriced)}")
    if report.agreed + report.disagreed:
        compared = report.agreed + report.disagreed
        lines.append(f"the provider gives the same reason for {report.agreed} of {many(compared, 'turn')}")
    lines += ["", "Causes"] if report.causes else []
    key = ""
    for row in report.causes:
        if row.key != key:
            key = row.key
            lines.append(f"  {harmless(key)}")
        money = _money(row.money, row.unpriced)
        lines.append(f"  {row.lost_tokens:>10,}  {row.turns:>4}×  {row.reason}{money}")
    missed = [turn for turn in report.turns if turn.autopsy.lost_tokens]
    if missed:
        lines += ["", "Turns that lost tokens"]
        for turn in missed[-_MOST_LINES:]:
            lines += _turn_lines(turn)
    if report.advice:
        lines += ["", "What would have helped"]
        number = 0
        for advice in report.advice:
            where = f" [{harmless(advice.section_name)}]" if advice.section_name else ""
            saved = f"{advice.saved_tokens:,} tokens" + ("" if advice.money is None else f", ${advice.money:.4f}")
            lines.append(f"  {advice.text}{where} Saves {saved} in {many(advice.turns, 'turn')}.")
            for edit in advice.edits:
                number += 1
                worth = f"{edit.saved_tokens:,} tokens" + ("" if edit.money is None else f", ${edit.money:.4f}")
                about = f" “{harmless(edit.words)[:60]}”" if edit.words else ""
                lines.append(f"    --keep {number}  {edit.label}{about}: {worth}")
    return "\n".join(lines) + "\n"


def _money(known: float, unpriced: int) -> str:
    """What it cost, with a word where prices are missing."""
    if unpriced:
        return f", ${known:.4f} and more" if known else ", at unknown prices"
    return f", ${known:.4f}" if known else ""


def _turn_lines(turn: "CacheTurn") -> list[str]:
    autopsy = turn.autopsy
    when = datetime.fromtimestamp(turn.at).astimezone().strftime("%H:%M:%S")
    about = "about " if autopsy.is_estimated else ""
    where = f" at {harmless(turn.section_name)}" if turn.section_name else ""
    pause = ""
    if autopsy.cause == "expired" and autopsy.idle is not None and autopsy.lifetime is not None:
        pause = f" after {autopsy.idle:.0f} s, kept for {autopsy.lifetime:.0f} s"
    lines = [
        f"  {when}  {turn.exchange}  read {autopsy.read_tokens:,} of {about}{autopsy.could_tokens:,}: "
        f"{turn.reason}{where}{pause}"
    ]
    if autopsy.offset is not None:
        lines.append(f"      byte {autopsy.offset:,}: {_quote(autopsy.before)} became {_quote(autopsy.after)}")
    if turn.provider_reason:
        lines.append(f"      the provider says: {harmless(turn.provider_reason)}")
    return lines


def _quote(text: str) -> str:
    return f"“{harmless(' '.join(text.split()))}”"


_CONTEXT_WIDTH = 100
_MOST_TOOLS = 12


def add_context(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "context",
        help="show what fills the context of a session",
        description="Show what the latest request of a session is made of: tokens by kind of content, by tool and by "
        "MCP server, the model's window and what would still fit. Without a session, the latest request of any client.",
    )
    add_session(command)
    command.set_defaults(run=run_context)


def run_context(arguments: argparse.Namespace) -> int:
    """Print it."""
    import asyncio

    import msgspec

    shown = asyncio.run(_measure_context(arguments))
    if arguments.json:
        write(msgspec.json.encode(shown) + b"\n")
    else:
        width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else _CONTEXT_WIDTH
        write(_context_page(shown, width).encode())
    return 0


async def _measure_context(arguments: argparse.Namespace) -> "ContextShown":
    from sightline.app.configuration import configuration
    from sightline.app.engine import open_viewer
    from sightline.app.machine import SystemClock
    from sightline.workbench.context import ContextMeter

    async with open_viewer(configuration(arguments.config), arguments.data, arguments.store) as viewer:
        return await ContextMeter(viewer, SystemClock().now).measure(arguments.session)


def _context_page(shown: "ContextShown", width: int) -> str:
    of_window = f" of {shown.window:,} ({shown.tokens / shown.window:.0%})" if shown.window else ""
    head = f"{harmless(shown.model)}  {shown.tokens:,} tokens{of_window}"
    if shown.counted is not None:
        head += f", counted {shown.counted:,}"
        head += f", {shown.cached:,} from the cache" if shown.cached else ""
    named = f"session {harmless(shown.session)}, " if shown.session else ""
    lines = [head, f"{named}{harmless(shown.client) or 'no client'}, request {shown.exchange}", ""]
    lines += _context_rows(shown.kinds, shown.tokens, width)
    if shown.free is not None:
        reserve = f" beside {shown.reserve:,} for the reply" if shown.reserve else ""
        lines += ["", f"{shown.free:,} tokens would still fit{reserve}"]
    if shown.servers:
        lines += ["", "MCP servers", *_context_rows(shown.servers, shown.tokens, width)]
    if shown.tools:
        more = len(shown.tools) - _MOST_TOOLS
        lines += ["", "Tools", *_context_rows(shown.tools[:_MOST_TOOLS], shown.tokens, width)]
        lines += [f"  and {more} more"] if more > 0 else []
    return "\n".join(lines) + "\n"


def _context_rows(rows: "tuple[ContextRow, ...]", whole: int, width: int) -> list[str]:
    """A line for each: its name, its tokens and share, and a bar as long as its share of the largest."""
    names = [harmless(row.name) + (f" ({row.count})" if row.count > 1 else "") for row in rows]
    broad = min(max(map(len, names), default=0), 40)
    largest = max((row.tokens + row.results for row in rows), default=0) or 1
    room = max(width - broad - 26, 10)
    lines = []
    for name, row in zip(names, rows, strict=True):
        taken = row.tokens + row.results
        bar = "█" * max(round(room * taken / largest), 1 if taken else 0)
        lines.append(f"  {name[:broad]:{broad}}  {taken:>9,}  {taken / (whole or 1):>5.1%}  {bar}".rstrip())
    return lines
