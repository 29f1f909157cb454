"""`sightline traffic` and `sightline show`: lists exchanges of the record, and shows one in full."""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from importlib.metadata import version

from sightline.app.configuration import configuration
from sightline.app.engine import open_record
from sightline.app.machine import SystemClock
from sightline.catalog.catalog import Catalog
from sightline.cli.options import parse_filter
from sightline.cli.terminal import harmless, has_colours, is_terminal, many, money, say, write, write_lines
from sightline.dialects.dialect import Target
from sightline.dialects.translate import EventLines, write_canonical, write_request
from sightline.errors import Fault
from sightline.exchange.recording.exchange_record import RecordedExchange, find_exchange, load_exchange
from sightline.model.parts import Part, Refusal, Text, Thinking, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.store.summary import Summary
from sightline.wire import snippet
from sightline.wire.jsontext import encode

_PAGE = 500
_WIDEST = 28
_WIDTH_IN_A_PIPE = 160
_RED, _DIM, _PLAIN = "\x1b[31m", "\x1b[2m", "\x1b[0m"
_HEADINGS = ("TIME", "ID", "CLIENT", "MODEL", "STATE", "TOKENS", "COST", "TOOK", "TITLE")
_RIGHT_ALIGNED = frozenset({"TOKENS", "COST", "TOOK"})
_DROP_ORDER = ("TOOK", "COST", "CLIENT", "TOKENS", "MODEL", "TIME")
"""The columns that a narrow terminal does without, in this order: otherwise 80 columns would end before the state."""
_ROOM_FOR_TITLE = 16


def run(arguments: argparse.Namespace) -> int:
    loaded = configuration(arguments.config)  # first, because plug-ins add fields to filters
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
                        from sightline.workbench.exchange_views import line

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
    """A table with columns sized by the first page, so that the rest can be printed as it is read. A narrow terminal
    gets fewer columns; a pipe (`columns` None) gets all."""

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
        """Remove columns until there is room for a title."""
        for heading in _DROP_ORDER:
            rest = sum(self._widths.values()) - self._widths["TITLE"] + 2 * (len(self._widths) - 1)
            if self._columns is None or rest + min(self._widths["TITLE"], _ROOM_FOR_TITLE) <= self._columns:
                return
            del self._widths[heading]

    def _line(self, row: Sequence[str]) -> str:
        cells = [
            cell.rjust(self._widths[heading]) if heading in _RIGHT_ALIGNED else cell.ljust(self._widths[heading])
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


def outcome(summary: Summary) -> str:
    """The outcome, or the current state, in a word or two."""
    if summary.state == "failed":
        return " ".join(filter(None, (str(summary.status or ""), summary.fault)))
    if summary.state == "finished":
        return " ".join(filter(None, (str(summary.status or ""), summary.finish)))
    return summary.state


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


_LONGEST = 2000
_INDENT = "  "


def summary_lines(exchange: RecordedExchange) -> Iterator[str]:
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


def _raw_bodies(exchange: RecordedExchange) -> Iterator[str]:
    """The bodies of an exchange that was passed through unread, with their content if it is text."""
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


def _tokens(exchange: RecordedExchange) -> str:
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


def _request(exchange: RecordedExchange) -> Iterator[str]:
    """The messages since the model's last answer; earlier ones are only counted."""
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


def _part(part: Part) -> Iterator[str]:
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


def run_show(arguments: argparse.Namespace) -> int:
    loaded = configuration(arguments.config)

    async def find() -> RecordedExchange:
        async with open_record(loaded, arguments.data, arguments.store) as store:
            summary = await find_exchange(store, arguments.id, now=SystemClock().now())
            return await load_exchange(store, summary, needs_bodies=arguments.form != "facts")

    exchange = asyncio.run(find())
    if arguments.form is None:
        write_lines(summary_lines(exchange))
    else:
        write(render(exchange, arguments.form, loaded.catalog))
    return 0


def render(exchange: RecordedExchange, form: str, catalog: Catalog) -> bytes:
    """The exchange in one of the formats. The modules that write them are half of the program, and the summary needs
    none of them, so they are imported here."""
    from sightline.exchange.recording.har import har
    from sightline.exchange.recording.page import page
    from sightline.exchange.resend import call_of
    from sightline.workbench.exchange_views import fact_shown

    match form:
        case "curl" | "python":
            return (snippet.curl if form == "curl" else snippet.python)(call_of(exchange, catalog)).encode()
        case "canonical":
            return write_canonical(exchange.request()) + b"\n"
        case "raw":
            report = Report()
            document = write_request(exchange.request(), "raw", Target(), report)
            for loss in report.losses:
                say(f"note: lost {loss.what} at {loss.pointer or '/'}: {loss.why}")
            return document + b"\n"
        case "events":
            return b"".join(map(EventLines().feed, exchange.events()))
        case "facts":
            return b"".join(encode(fact_shown(entry)) + b"\n" for entry in exchange.facts)
        case "har":
            return har([(exchange, call_of(exchange, catalog))], version("sightline"))
        case "html":
            return page(exchange)
        case _:
            if exchange.attempt is None:
                say("note: it was not sent; this is what would have been sent")
            return exchange.sent
