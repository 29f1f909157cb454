"""`sightline cache`: why providers' caches missed, turn by turn, and what would have helped."""

import argparse
from datetime import datetime
from typing import TYPE_CHECKING

from sightline.cli.options import add_session
from sightline.cli.terminal import harmless, many, write

if TYPE_CHECKING:
    from sightline.workbench.cache_report import CacheReport, CacheTurn

_MOST_LINES = 40


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `cache`."""
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
    add_session(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    import asyncio

    import msgspec

    report = asyncio.run(_report(arguments))
    write(msgspec.json.encode(report) + b"\n" if arguments.json else _page(report).encode())
    return 0


async def _report(arguments: argparse.Namespace) -> "CacheReport":
    from sightline.app.configuration import configuration
    from sightline.app.engine import open_viewer
    from sightline.app.machine import SystemClock
    from sightline.workbench.cache_report import CacheReports

    async with open_viewer(configuration(arguments.config), arguments.data, arguments.store) as viewer:
        reports = CacheReports(viewer, SystemClock().now)
        return await reports.report(arguments.session, arguments.filter, arguments.by)


def _page(report: "CacheReport") -> str:
    named = f"session {harmless(report.session)}, " if report.session else ""
    share = f" ({report.read_tokens / report.could_tokens:.0%})" if report.could_tokens else ""
    head = f"{named}{many(len(report.turns), 'turn')}: read {report.read_tokens:,} of {report.could_tokens:,}"
    head += f" tokens that the cache could have held{share}"
    lines = [head + (", the newest turns only" if report.is_cut else "")]
    if report.lost_tokens:
        lines.append(f"lost {report.lost_tokens:,} tokens{_money(report.money, report.unpriced)}")
    if report.agreed + report.disagreed:
        told = report.agreed + report.disagreed
        lines.append(f"the provider gives the same reason for {report.agreed} of {many(told, 'turn')}")
    lines += ["", "Causes"]
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
            lines += _turn(turn)
    if report.advice:
        lines += ["", "What would have helped"]
        for advice in report.advice:
            where = f" [{harmless(advice.section_name)}]" if advice.section_name else ""
            saved = f"{advice.saved_tokens:,} tokens" + ("" if advice.money is None else f", ${advice.money:.4f}")
            lines.append(f"  {advice.text}{where} Saves {saved} in {many(advice.turns, 'turn')}.")
    return "\n".join(lines) + "\n"


def _money(known: float, unpriced: int) -> str:
    """What it cost, with a word where prices are missing."""
    if unpriced:
        return f", ${known:.4f} and more" if known else ", at unknown prices"
    return f", ${known:.4f}" if known else ""


def _turn(turn: "CacheTurn") -> list[str]:
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
        lines.append(f"      byte {autopsy.offset:,}: {_quoted(autopsy.before)} became {_quoted(autopsy.after)}")
    if turn.provider_reason:
        lines.append(f"      the provider says: {harmless(turn.provider_reason)}")
    return lines


def _quoted(text: str) -> str:
    return f"“{harmless(' '.join(text.split()))}”"
