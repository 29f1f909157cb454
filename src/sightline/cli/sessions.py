"""`sightline cache`: why providers' caches missed in a client's sessions; `sightline context`: what fills the context
of a session."""

import argparse
import asyncio
import shutil
import sys
import time
from datetime import datetime

import msgspec

from sightline.app.configuration import configuration, data_folder
from sightline.app.engine import open_viewer
from sightline.app.machine import SystemClock
from sightline.app.running_server import call_server, find_server
from sightline.cli.terminal import harmless, is_terminal, many, write, write_lines
from sightline.editing.masks import project_of, with_id
from sightline.errors import Code, Fault
from sightline.exchange.interception.store import KeptInterception
from sightline.wire.jsontext import encode
from sightline.workbench.cache_report import CacheReport, CacheReports
from sightline.workbench.cache_turns import CacheTurn, TurnExaminer
from sightline.workbench.context import ContextRow, ContextShown, measure_context

_MOST_LINES = 40


def run_cache(arguments: argparse.Namespace) -> int:
    report = asyncio.run(_cache_report(arguments))
    if arguments.keep:
        write_lines([_keep_edit(report, arguments)])
    elif arguments.json:
        _write_json(report)
    else:
        write_lines(_cache_page(report))
    return 0


def _write_json(value: object) -> None:
    """Write a value as JSON. Names of tools and texts of requests may contain lone surrogates, which this encoder
    escapes."""
    write(encode(msgspec.to_builtins(value)) + b"\n")


def _keep_edit(report: CacheReport, arguments: argparse.Namespace) -> str:
    """Keep one of the edits, through the server of the data folder, or in its file if no server runs."""
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
    return f"Kept for {where}: {edit.label} ({about}). To undo it, stop it on the page under Kept edits."


async def _cache_report(arguments: argparse.Namespace) -> CacheReport:
    async with open_viewer(configuration(arguments.config), arguments.data, arguments.store) as viewer:
        reports = CacheReports(TurnExaminer(viewer, SystemClock().now))
        return await reports.report(arguments.session, arguments.filter, arguments.by)


def _cache_page(report: CacheReport) -> list[str]:
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
    return lines


def _money(known: float, unpriced: int) -> str:
    """The cost, with a remark if prices are missing."""
    if unpriced:
        return f", ${known:.4f} and more" if known else ", at unknown prices"
    return f", ${known:.4f}" if known else ""


def _turn_lines(turn: CacheTurn) -> list[str]:
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


def run_context(arguments: argparse.Namespace) -> int:
    shown = asyncio.run(_measure_context(arguments))
    if arguments.json:
        _write_json(shown)
    else:
        width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else _CONTEXT_WIDTH
        write_lines(_context_page(shown, width))
    return 0


async def _measure_context(arguments: argparse.Namespace) -> ContextShown:
    async with open_viewer(configuration(arguments.config), arguments.data, arguments.store) as viewer:
        return await measure_context(viewer, SystemClock().now, arguments.session)


def _context_page(shown: ContextShown, width: int) -> list[str]:
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
    return lines


def _context_rows(rows: tuple[ContextRow, ...], whole: int, width: int) -> list[str]:
    """A line per row: its name, its tokens and share, and a bar in proportion to the largest."""
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
