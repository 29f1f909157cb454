"""`sightline cache`: why providers' caches missed, turn by turn, and what would have helped."""

import argparse
from datetime import datetime
from typing import TYPE_CHECKING

from sightline.cli.options import add_session, count
from sightline.cli.terminal import harmless, many, write
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.workbench.cache_report import CacheReport
    from sightline.workbench.cache_turns import CacheTurn

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
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    import asyncio

    import msgspec

    report = asyncio.run(_report(arguments))
    if arguments.keep:
        write(_keep(report, arguments).encode())
        return 0
    write(msgspec.json.encode(report) + b"\n" if arguments.json else _page(report).encode())
    return 0


def _keep(report: "CacheReport", arguments: argparse.Namespace) -> str:
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


async def _report(arguments: argparse.Namespace) -> "CacheReport":
    from sightline.app.configuration import configuration
    from sightline.app.engine import open_viewer
    from sightline.app.machine import SystemClock
    from sightline.workbench.cache_report import CacheReports
    from sightline.workbench.cache_turns import TurnExaminer

    async with open_viewer(configuration(arguments.config), arguments.data, arguments.store) as viewer:
        reports = CacheReports(TurnExaminer(viewer, SystemClock().now))
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
        lines.append(f"      byte {autopsy.offset:,}: {_quote(autopsy.before)} became {_quote(autopsy.after)}")
    if turn.provider_reason:
        lines.append(f"      the provider says: {harmless(turn.provider_reason)}")
    return lines


def _quote(text: str) -> str:
    return f"“{harmless(' '.join(text.split()))}”"
