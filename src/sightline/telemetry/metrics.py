"""Sums of tokens, costs and durations of exchanges, runs and tools: as OTLP for a collector, as text for Prometheus.

The names with `gen_ai.` are those of OpenTelemetry's conventions; names that these do not have begin with `sightline.`.
Every value is counted when it is recorded, which takes a few microseconds for each exchange, and written out only on
request. Nothing is counted before a collector is configured or the metrics are first requested: most users never do
that.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

import msgspec

from sightline.agent.core.facts import RunBegan, RunEnded, RunFact
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import ToolOutcome
from sightline.catalog.provider import OPENTELEMETRY_NAMES
from sightline.dialects.registry import find_dialect
from sightline.exchange.hub import Append, Record
from sightline.model.exchange import (
    RAW_HTTP,
    AttemptStarted,
    Dropped,
    ExchangeCancelled,
    ExchangeFailed,
    ExchangeFinished,
    Received,
)
from sightline.model.json import Json
from sightline.model.reply import Usage
from sightline.store.entries import FactEntry, KeptEntry
from sightline.store.summary import PriceList, find_prices
from sightline.store.whole import decode_entries
from sightline.telemetry.otlp import AGENT, FAILED_RUNS, attributes, nanoseconds
from sightline.tokens.cost import cost_of

TOKENS = "gen_ai.client.token.usage"
DURATION = "gen_ai.client.operation.duration"
FIRST_CHUNK = "gen_ai.client.operation.time_to_first_chunk"
AGENT_DURATION = "gen_ai.invoke_agent.duration"
TOOL_DURATION = "gen_ai.execute_tool.duration"
RETRIES = "sightline.client.retries"
INPUT = "sightline.client.input_tokens"
COST = "sightline.client.cost.usd"
UNPRICED = "sightline.client.unpriced"


class Instrument(NamedTuple):
    """A metric: its unit, what it counts, and the boundaries of its histogram; a counter has none."""

    unit: str
    about: str
    bounds: tuple[float, ...] = ()


# The conventions define the boundaries for tokens and durations. The first chunk uses those that they define for a
# server's time to first token.
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_FIRST = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_COUNTS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
INSTRUMENTS: dict[str, Instrument] = {
    TOKENS: Instrument("{token}", "Number of input and output tokens used.", _COUNTS),
    DURATION: Instrument("s", "GenAI operation duration.", _SECONDS),
    FIRST_CHUNK: Instrument("s", "Time to receive the first chunk of a streamed response.", _FIRST),
    AGENT_DURATION: Instrument("s", "Duration of a run of a model with tools.", _SECONDS),
    TOOL_DURATION: Instrument("s", "Duration of one tool execution.", _SECONDS),
    RETRIES: Instrument("{retry}", "Attempts after the first one, by what the attempt before ended with."),
    INPUT: Instrument("{token}", "Input tokens by what the provider's cache did with them."),
    COST: Instrument("{USD}", "Cost of the exchanges whose price is known, in US dollars."),
    UNPRICED: Instrument("{exchange}", "Exchanges with a token count whose cost is not known."),
}

TEXT_FORMAT = b"text/plain; version=0.0.4; charset=utf-8"
"""The content type of Prometheus' text format."""
_CUMULATIVE = 2
_MOST_SERIES = 2000
"""Model names come from clients; a client that makes up a new one for each request must not fill the memory. This is
OpenTelemetry's own limit for a metric."""
_OVERFLOW: "Labels" = (("otel.metric.overflow", True),)
"""The series for everything beyond the limit, with the label that OpenTelemetry defines for it."""
_LONGEST = 128
"""The longest value of a label, in characters."""

Labels: TypeAlias = tuple[tuple[str, Json], ...]


class _Series(msgspec.Struct, array_like=True):
    """The values of one metric with the same labels."""

    buckets: list[int]
    count: int = 0
    total: float = 0.0
    low: float = float("inf")
    high: float = float("-inf")


@dataclass(slots=True)
class _Group:
    """The series of exchanges of one kind, by metric and one further label, so that counting hashes few names."""

    labels: Labels
    series: dict[tuple[str, str, str], _Series] = field(default_factory=dict)


@dataclass(slots=True)
class _OpenExchange:
    """An exchange that has not ended."""

    received: Received
    at: float
    attempt: AttemptStarted | None = None
    retries: list[str] = field(default_factory=list)


_PACKED = msgspec.msgpack.Decoder(dict[str, list[tuple[Labels, _Series]]])


class Metrics:
    """Counts since `since`. Counts only grow, so a lost report does no harm. `took` receives what is recorded; runs are
    observed as a `RunObserver`. Without `prices`, costs are those that providers report. While not `is_counting`,
    nothing is counted."""

    def __init__(self, since: float, prices: PriceList | None = None, *, is_counting: bool = True) -> None:
        self.is_counting = is_counting
        self._since = since
        self._prices = prices
        self._begun: dict[str, _OpenExchange] = {}
        self._series: dict[str, dict[Labels, _Series]] = {name: {} for name in INSTRUMENTS}
        self._groups: dict[tuple[str, ...], _Group] = {}
        self._is_new = False

    # --- counting ---

    def took(self, entries: Sequence[KeptEntry]) -> None:
        if not self.is_counting:
            return
        for entry in entries:
            if not isinstance(entry, FactEntry):
                continue
            match fact := entry.fact:
                case Received():
                    self._begun[entry.exchange] = _OpenExchange(fact, entry.at)
                case AttemptStarted():
                    begun = self._begun.get(entry.exchange)
                    if begun is not None:
                        if fact.number > 1:
                            begun.retries.append(fact.reason or "unknown")
                        begun.attempt = fact
                case ExchangeFinished() | ExchangeFailed() | ExchangeCancelled() | Dropped():
                    begun = self._begun.pop(entry.exchange, None)
                    if begun is not None:
                        self._count(begun, fact, entry.at)
                case _:
                    continue

    def append_or_count(self, append: Append | None, record: Record) -> Append | None:
        """A function that appends encoded entries, or while metrics are counted, decodes them and passes them to
        `record`, which counts them. None if `append` is None."""
        if append is None:
            return None

        def append_uncounted(data: bytes) -> None:
            if self.is_counting:
                record(decode_entries(memoryview(data)))
            else:
                append(data)

        return append_uncounted

    def _count(
        self, begun: _OpenExchange, end: ExchangeFinished | ExchangeFailed | ExchangeCancelled | Dropped, at: float
    ) -> None:
        attempt, model = begun.attempt, end.model if isinstance(end, ExchangeFinished) else ""
        # If nothing was sent, the name of the model is any text that a client made up: it does not become a label.
        sent = (
            ("", "", begun.received.dialect, "")
            if attempt is None
            else (attempt.provider, attempt.model or begun.received.model, attempt.dialect, attempt.url)
        )
        group = self._group(sent, model)
        for reason in begun.retries:
            self._count_in(group, RETRIES, 1, "error.type", reason)
        match end:
            case ExchangeFinished():
                self._count_in(group, DURATION, end.elapsed)
                if begun.received.is_stream and end.first_byte:
                    self._count_in(group, FIRST_CHUNK, end.first_byte)
                self._count_usage(begun, end.usage, (model,), group)
            case ExchangeFailed():
                self._count_in(group, DURATION, end.elapsed, "error.type", end.code)
                self._count_usage(begun, end.usage, (), group)
            case _:
                kind = str(type(end).__struct_config__.tag)
                self._count_in(group, DURATION, at - begun.at, "error.type", kind)
                if isinstance(end, ExchangeCancelled):
                    self._count_usage(begun, end.usage, (), group)

    def _group(self, sent: tuple[str, str, str, str], answered: str) -> _Group:
        key = (*sent, answered)
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= _MOST_SERIES:
                self._groups.clear()  # the series stay, and are found again by their labels
            model: Labels = (("gen_ai.response.model", answered[:_LONGEST]),) if answered else ()
            group = self._groups[key] = _Group((*identity_labels(*sent), *model))
        return group

    def _count_in(self, group: _Group, name: str, value: float, label: str = "", of: str = "") -> None:
        """Add to a series of a group. Finding it by all of its labels would take three times as long."""
        key = name, label, of
        one = group.series.get(key)
        if one is None:
            labels = (*group.labels, (label, of)) if label else group.labels
            one = group.series[key] = self._find(name, labels)
        self._add(one, INSTRUMENTS[name].bounds, value)

    def _count_usage(self, begun: _OpenExchange, usage: Usage | None, answered: tuple[str, ...], group: _Group) -> None:
        if usage is None:
            return
        dollars = self.cost(begun.attempt, begun.received, usage, answered)
        if usage.is_estimated:  # the conventions forbid counting tokens that the provider did not report
            if dollars is not None:
                self._count_in(group, COST, dollars, "sightline.usage.estimated", "true")
            else:
                self._count_in(group, UNPRICED, 1)
            return
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            if tokens is not None:
                self._count_in(group, TOKENS, tokens, "gen_ai.token.type", kind)
        if usage.input_tokens is not None:
            read, created = usage.cached_tokens or 0, usage.cache_write_tokens or 0
            rest = max(0, usage.input_tokens - read - created)
            for kind, tokens in (("read", read), ("creation", created), ("none", rest)):
                if tokens:
                    self._count_in(group, INPUT, tokens, "gen_ai.token.cache", kind)
        if dollars is not None:
            self._count_in(group, COST, dollars)
        elif usage.input_tokens is not None or usage.output_tokens is not None:
            self._count_in(group, UNPRICED, 1)

    def cost(
        self, attempt: AttemptStarted | None, received: Received, usage: Usage, answered: tuple[str, ...]
    ) -> float | None:
        """The cost of an exchange, by the first of its models whose price is known; None if it is not known."""
        sent = attempt or AttemptStarted(0, "", "")
        found = None
        if self._prices is not None:
            found = find_prices(self._prices, sent.provider, (*answered, sent.model, received.model), sent.url)
        cost = cost_of(usage, found)
        return None if cost is None else cost.dollars

    def observe_run(self, _run: str, facts: Sequence[tuple[float, RunFact]], fresh: int) -> None:
        """Take new facts of a run; when it ends, its duration is counted."""
        (began_at, began), (ended_at, end) = facts[0], facts[-1]
        if self.is_counting and fresh and isinstance(began, RunBegan) and isinstance(end, RunEnded):
            labels: Labels = (
                ("gen_ai.operation.name", "invoke_agent"),
                ("gen_ai.agent.name", AGENT),
                ("gen_ai.provider.name", OPENTELEMETRY_NAMES.get(began.provider, began.provider)),
                ("gen_ai.request.model", began.request.model[:_LONGEST]),
                ("error.type", end.why if end.why in FAILED_RUNS else ""),
            )
            one = self._find(AGENT_DURATION, tuple(each for each in labels if each[1]))
            self._add(one, _SECONDS, ended_at - began_at)

    def observe_tool(self, _run: str, call: RunnableCall, began: float, ended: float, outcome: ToolOutcome) -> None:
        if not self.is_counting:
            return
        labels: Labels = (("gen_ai.operation.name", "execute_tool"), ("gen_ai.tool.name", call.name[:_LONGEST]))
        labels = (*labels, ("error.type", "tool_error")) if outcome.is_error else labels
        self._add(self._find(TOOL_DURATION, labels), _SECONDS, ended - began)

    def _find(self, name: str, labels: Labels) -> _Series:
        """The series with these labels; beyond the limit, the overflow series."""
        series = self._series[name]
        if labels not in series and len(series) >= _MOST_SERIES:
            labels = _OVERFLOW
        return series.setdefault(labels, _Series([0] * (len(INSTRUMENTS[name].bounds) + 1)))

    def _add(self, one: _Series, bounds: tuple[float, ...], value: float) -> None:
        if bounds:
            one.buckets[bisect_left(bounds, value)] += 1
            one.low, one.high = min(one.low, value), max(one.high, value)
        one.count += 1
        one.total += value
        self._is_new = True

    # --- merging with other processes ---

    def pack(self) -> bytes:
        return msgspec.msgpack.encode({name: list(series.items()) for name, series in self._series.items()})

    def add(self, packed: bytes) -> None:
        """Add the series of another process to these."""
        added = ((name, *each) for name, series in _PACKED.decode(packed).items() for each in series)
        for name, labels, other in added:
            one = self._find(name, labels)
            one.buckets = [mine + theirs for mine, theirs in zip(one.buckets, other.buckets, strict=True)]
            one.low, one.high = min(one.low, other.low), max(one.high, other.high)
            one.count += other.count
            one.total += other.total

    # --- output ---

    def export_new(self, now: float) -> list[Json] | None:
        """All metrics as OTLP; None if nothing was added since the last call."""
        if not self._is_new:
            return None
        self._is_new = False
        return [self._metric(name, now) for name in INSTRUMENTS if self._series[name]]

    def _metric(self, name: str, now: float) -> Json:
        unit, about, bounds = INSTRUMENTS[name]
        points: list[Json] = []
        for labels, one in self._series[name].items():
            point: dict[str, Json] = {
                "attributes": attributes(dict(labels)),
                "startTimeUnixNano": nanoseconds(self._since),
                "timeUnixNano": nanoseconds(now),
            }
            if bounds:
                point |= {
                    "count": str(one.count),
                    "sum": one.total,
                    "min": one.low,
                    "max": one.high,
                    "bucketCounts": [str(each) for each in one.buckets],
                    "explicitBounds": list(bounds),
                }
            else:
                point["asDouble"] = one.total
            points.append(point)
        data: dict[str, Json] = {"aggregationTemporality": _CUMULATIVE, "dataPoints": points}
        kind = {"histogram": data} if bounds else {"sum": {**data, "isMonotonic": True}}
        return {"name": name, "unit": unit, "description": about, **kind}

    def prometheus(self) -> str:
        """All metrics in Prometheus' text format, under the names that a collector's exporter would give them."""
        lines: list[str] = []
        for name, (unit, about, bounds) in INSTRUMENTS.items():
            shown = name.replace(".", "_") + ("_seconds" if unit == "s" else "") + ("" if bounds else "_total")
            lines += [f"# HELP {shown} {about}", f"# TYPE {shown} {'histogram' if bounds else 'counter'}"]
            for labels, one in self._series[name].items():
                if bounds:
                    lines += _histogram(shown, labels, one, bounds)
                else:
                    lines.append(f"{shown}{_write_labels(labels)} {_number(one.total)}")
        return "\n".join(lines) + "\n"


def _histogram(name: str, labels: Labels, one: _Series, bounds: Sequence[float]) -> Iterable[str]:
    below = 0
    for bound, count in zip((*map(_number, bounds), "+Inf"), one.buckets, strict=True):
        below += count
        yield f"{name}_bucket{_write_labels((*labels, ('le', bound)))} {below}"
    yield f"{name}_sum{_write_labels(labels)} {_number(one.total)}"
    yield f"{name}_count{_write_labels(labels)} {one.count}"


def _write_labels(labels: Labels) -> str:
    pairs = (f'{name.replace(".", "_")}="{_escape(value)}"' for name, value in labels)
    return "{" + ",".join(pairs) + "}" if labels else ""


def _escape(value: Json) -> str:
    text = "true" if value is True else str(value)
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


_PORTS = {"http": 80, "https": 443}


@lru_cache(maxsize=4096)
def identity_labels(provider: str, model: str, dialect: str, url: str) -> Labels:
    """The operation, provider, model and server: the attributes that spans and metrics of exchanges share. Empty values
    are left out."""
    # Parsing the URL takes longer than the rest of the counting: 2 of 3 microseconds.
    parsed = urlsplit(url)  # empty if the URL is not recorded
    labels: Labels = (
        ("gen_ai.operation.name", _operation(dialect)),
        ("gen_ai.provider.name", OPENTELEMETRY_NAMES.get(provider, provider)),
        ("gen_ai.request.model", model[:_LONGEST]),
        ("server.address", parsed.hostname or ""),
        ("server.port", parsed.port or _PORTS.get(parsed.scheme)),
    )
    return tuple(each for each in labels if each[1])


def _operation(dialect: str) -> str:
    """The operation of a dialect; empty for requests that are forwarded unchanged, for which the conventions have
    none."""
    spoken = find_dialect(dialect)
    return "" if dialect == RAW_HTTP else "chat" if spoken is None else spoken.operation
