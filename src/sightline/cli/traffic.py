"""`sightline traffic`: exchanges of the record as lines."""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime

from sightline.app.configuration import configuration
from sightline.app.engine import open_record
from sightline.app.machine import SystemClock
from sightline.cli.options import parse_filter
from sightline.cli.show import outcome
from sightline.cli.terminal import harmless, has_colours, is_terminal, money, say, write
from sightline.store.summary import Summary
from sightline.wire.jsontext import encode
from sightline.workbench.exchange_views import line

_PAGE = 500
_WIDEST = 28
_WIDTH_IN_A_PIPE = 160
_RED, _DIM, _PLAIN = "\x1b[31m", "\x1b[2m", "\x1b[0m"
_HEADINGS = ("TIME", "ID", "CLIENT", "MODEL", "STATE", "TOKENS", "COST", "TOOK", "TITLE")
_TO_THE_RIGHT = frozenset({"TOKENS", "COST", "TOOK"})
_LEFT_OUT = ("TOOK", "COST", "CLIENT", "TOKENS", "MODEL", "TIME")
"""What a narrow terminal goes without, the first of it first: 80 columns would else end before the state."""
_ROOM_FOR_TITLE = 16


def run(arguments: argparse.Namespace) -> int:
    loaded = configuration(arguments.config)  # first: plug-ins add fields to filters
    wanted = parse_filter(arguments.filter)
    limit = arguments.limit

    async def list_exchanges() -> int:
        columns = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None
        table = _Table(columns, has_colours=has_colours(sys.stdout))
        count = 0
        async with open_record(loaded, arguments.data, arguments.store) as store:
            before, now = "", SystemClock().now()
            while not limit or count < limit:
                size = min(_PAGE, limit - count) if limit else _PAGE
                page = await store.find(wanted, now=now, before=before, limit=size)
                if page:
                    if arguments.json:
                        write(b"".join(encode(line(summary)) + b"\n" for summary in page))
                    else:
                        write(table.page(page))
                    before = page[-1].id
                    count += len(page)
                if len(page) < size:
                    break
        if not count and not arguments.json:
            say("nothing on record" if not arguments.filter else "no recorded exchange matches")
        return 0

    return asyncio.run(list_exchanges())


class _Table:
    """Columns sized by the first page, so that the rest can be printed as it is read. A terminal with fewer `columns`
    gets fewer of them; a pipe, for which they are None, gets all."""

    def __init__(self, columns: int | None, *, has_colours: bool) -> None:
        self._has_colours = has_colours
        self._columns = columns
        self._widths: dict[str, int] = {}

    def page(self, page: Sequence[Summary]) -> bytes:
        rows = [_row(summary) for summary in page]
        out: list[str] = []
        if not self._widths:
            self._widths = {
                heading: max(len(heading), *(len(row[column]) for row in rows))
                for column, heading in enumerate(_HEADINGS)
            }
            self._leave_out()
            out.append(self._colour(self._line(_HEADINGS), _DIM))
        for summary, row in zip(page, rows, strict=True):
            has_failed = summary.state in ("failed", "dropped") or summary.status >= 400
            out.append(self._colour(self._line(row), _RED if has_failed else _DIM if summary.is_side else ""))
        return "".join(f"{line}\n" for line in out).encode("utf-8", "replace")

    def _leave_out(self) -> None:
        """Take away columns until a title has room."""
        for heading in _LEFT_OUT:
            rest = sum(self._widths.values()) - self._widths["TITLE"] + 2 * (len(self._widths) - 1)
            if self._columns is None or rest + min(self._widths["TITLE"], _ROOM_FOR_TITLE) <= self._columns:
                return
            del self._widths[heading]

    def _line(self, row: Sequence[str]) -> str:
        cells = [
            cell.rjust(self._widths[heading]) if heading in _TO_THE_RIGHT else cell.ljust(self._widths[heading])
            for heading, cell in zip(_HEADINGS, row, strict=True)
            if heading in self._widths
        ]
        line = "  ".join(cells).rstrip()
        width = self._columns or _WIDTH_IN_A_PIPE
        return line if len(line) <= width else f"{line[: width - 1]}…"

    def _colour(self, line: str, colour: str) -> str:
        return f"{colour}{line}{_PLAIN}" if self._has_colours and colour else line


def _row(summary: Summary) -> tuple[str, ...]:
    where = f"{summary.model} → {summary.provider}" if summary.provider else summary.model
    when = datetime.fromtimestamp(summary.at).astimezone()
    return tuple(
        harmless(cell).replace("\n", " ")
        for cell in (
            f"{when:%m-%d %H:%M:%S}",
            summary.id,
            _clip(summary.client) + (f" ({summary.transport})" if summary.transport not in ("", "http") else ""),
            _clip(where, 2 * _WIDEST),
            outcome(summary),
            tokens(summary),
            money(summary.cost, is_estimated=summary.is_estimated),
            "" if summary.elapsed is None else f"{summary.elapsed:.1f} s",
            summary.title,
        )
    )


def tokens(summary: Summary) -> str:
    if summary.input_tokens is None and summary.output_tokens is None:
        return ""
    return f"{'~' if summary.is_estimated else ''}{_short(summary.input_tokens)}→{_short(summary.output_tokens)}"


def _short(count: int | None) -> str:
    if count is None:
        return "?"
    return str(count) if count < 10_000 else f"{count / 1000:.0f}k"


def _clip(text: str, most: int = _WIDEST) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
