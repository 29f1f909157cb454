"""Spans and metrics on their way to a collector: gathered from the record, sent in batches, dropped if late.

An exchange never waits for the collector.
"""

import asyncio
import logging
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self, TypeAlias

from sightline.agent.core.facts import RequestStarted, RunFact
from sightline.agent.core.output import ToolOutcome
from sightline.agent.core.steps import RunnableCall
from sightline.errors import Fault
from sightline.exchange.hub import RUN_PREFIX
from sightline.model.exchange import Budgeted, ExchangeFailed, ExchangeFinished, FrameArrived, Received
from sightline.model.json import Json, JsonObject
from sightline.store.entries import BodyEntry, Entry, FactEntry
from sightline.telemetry.spans import ENDS, attributes, identity, nanoseconds, place_of, run_span, span, tool_span
from sightline.transport.http.client import HttpClient
from sightline.transport.http.target import Timeouts
from sightline.wire.call import HttpRequest
from sightline.wire.jsontext import encode

TOKENS = "gen_ai.client.token.usage"
DURATION = "gen_ai.client.operation.duration"
# The conventions name these boundaries.
_BOUNDS: dict[str, tuple[float, ...]] = {
    TOKENS: (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864),
    DURATION: (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
}
_UNITS = {TOKENS: "{token}", DURATION: "s"}
_ABOUT = {TOKENS: "Number of input and output tokens used.", DURATION: "GenAI operation duration."}
_CUMULATIVE = 2
_MOST_SERIES = 2000
"""Names of models come from clients; one that makes up a new one for each request must not fill the memory."""

_Key: TypeAlias = tuple[str, tuple[tuple[str, Json], ...]]


@dataclass
class _Series:
    """The values of one metric with the same attributes."""

    buckets: list[int]
    count: int = 0
    total: float = 0.0
    low: float = float("inf")
    high: float = float("-inf")

    def add(self, value: float, bounds: Sequence[float]) -> None:
        self.buckets[bisect_left(bounds, value)] += 1
        self.count += 1
        self.total += value
        self.low, self.high = min(self.low, value), max(self.high, value)


@dataclass
class Metrics:
    """What has been counted since `since`. Counts only grow, so that a report that is lost costs nothing."""

    since: float
    _series: dict[_Key, _Series] = field(default_factory=dict)
    _is_new: bool = False

    def count(self, facts: Sequence[FactEntry]) -> None:
        """Add an exchange that has ended."""
        end = facts[-1].fact
        assert isinstance(end, ENDS)
        values: dict[str, Json] = {name: each for name, each in identity(facts).items() if each not in (None, "")}
        ended = end if isinstance(end, ExchangeFinished | ExchangeFailed) else None
        seconds = facts[-1].at - facts[0].at if ended is None else ended.elapsed
        if isinstance(end, ExchangeFinished):
            values |= {"gen_ai.response.model": end.model} if end.model else {}
            self._add(DURATION, seconds, values)
        else:
            code = end.code if isinstance(end, ExchangeFailed) else str(type(end).__struct_config__.tag)
            self._add(DURATION, seconds, {**values, "error.type": code})
        usage = None if ended is None else ended.usage
        if usage is not None:
            for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
                if tokens is not None:
                    self._add(TOKENS, tokens, {**values, "gen_ai.token.type": kind})

    def _add(self, name: str, value: float, attributes: dict[str, Json]) -> None:
        key = name, tuple(sorted(attributes.items()))
        if key not in self._series:
            if len(self._series) >= _MOST_SERIES:
                return
            self._series[key] = _Series([0] * (len(_BOUNDS[name]) + 1))
        self._series[key].add(value, _BOUNDS[name])
        self._is_new = True

    def export_new(self, now: float) -> list[Json] | None:
        """All metrics as OTLP writes them; None where nothing was added since the last time."""
        if not self._is_new:
            return None
        self._is_new = False
        return [self._metric(name, now) for name in _BOUNDS if any(key[0] == name for key in self._series)]

    def _metric(self, name: str, now: float) -> Json:
        points: list[Json] = [
            {
                "attributes": attributes(dict(labels)),
                "startTimeUnixNano": nanoseconds(self.since),
                "timeUnixNano": nanoseconds(now),
                "count": str(series.count),
                "sum": series.total,
                "min": series.low,
                "max": series.high,
                "bucketCounts": [str(each) for each in series.buckets],
                "explicitBounds": list(_BOUNDS[name]),
            }
            for (of, labels), series in self._series.items()
            if of == name
        ]
        histogram: Json = {"aggregationTemporality": _CUMULATIVE, "dataPoints": points}
        return {"name": name, "unit": _UNITS[name], "description": _ABOUT[name], "histogram": histogram}


_LOG = logging.getLogger("sightline.telemetry")
_PATH = "/v1/traces"
_MOST_WAITING = 2048
_MOST_AT_ONCE = 256
_PAUSE = 5.0
_LAST_WORDS = 2.0
_TIMEOUTS = Timeouts(connect=5.0, first_byte=10.0, idle=10.0)
_TRY_AGAIN = frozenset({429, 502, 503, 504})

_MOST_RUNS = 4096
_NO_METRICS = frozenset({404, 405, 501})


class EndedExchange(NamedTuple):
    """An exchange that has ended, its content attributes, and the run that it is part of."""

    facts: tuple[FactEntry, ...]
    bodies: dict[str, bytes]
    run: str = ""


def _run_of(facts: Sequence[FactEntry]) -> str:
    """The run of a request that another process, a command, sends through this one."""
    values = (each.fact.conversation for each in facts if isinstance(each.fact, Received))
    return next((name for name in values if name.startswith(RUN_PREFIX)), "")


class Exporter:
    """Give it what is recorded, by `took`, and what runs do, as a `RunObserver`. `with_content` sends what was said
    too; `headers` are the collector's. Spans go to `/v1/traces` and metrics to `/v1/metrics` of the endpoint.

    `instance` names this process, if several export at once: a collector would mix their counts up.
    `pause` is the longest that a span waits for others; `now` is the time of day, without which nothing is counted. It
    belongs to the loop in which it is entered.
    """

    def __init__(
        self,
        client: HttpClient,
        endpoint: str,
        *,
        version: str,
        headers: Mapping[str, str] | None = None,
        with_content: bool = False,
        instance: str = "",
        pause: float = _PAUSE,
        now: Callable[[], float] | None = None,
    ) -> None:
        self._client = client
        root = endpoint.rstrip("/").removesuffix(_PATH)
        self._url, self._metrics_url = root + _PATH, f"{root}/v1/metrics"
        self._now = now
        self._metrics = None if now is None else Metrics(now())
        self._runs: dict[str, str] = {}
        """The run of each request that is under way."""
        self._scope: Json = {"name": "sightline", "version": version}
        named = {"service.name": "sightline"} | ({"service.instance.id": instance} if instance else {})
        self._resource: Json = {"attributes": attributes(named)}
        self._headers = (("content-type", "application/json"), *(headers or {}).items())
        self._with_content = with_content
        self._pause = pause
        self._open: dict[str, tuple[list[FactEntry], dict[str, bytes]]] = {}
        self._ready: deque[EndedExchange | JsonObject] = deque()
        self._news = asyncio.Event()
        self._is_full = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._dropped = 0
        self._is_silent = False
        self._is_closing = False

    # --- what is recorded ---

    def took(self, entries: Sequence[Entry]) -> None:
        """These were recorded. Nothing is done with them here but to remember those that are needed."""
        bodies: dict[str, bytes] = {}
        for entry in entries:
            if isinstance(entry, BodyEntry):
                bodies[entry.sha256] = entry.data
            elif isinstance(entry.fact, Budgeted):
                continue  # no span tells of it, and it may come when the span is gone
            elif self._with_content or not isinstance(entry.fact, FrameArrived):
                facts, kept = self._open.setdefault(entry.exchange, ([], {}))
                facts.append(entry)
                if self._with_content:
                    kept.update(bodies)
                if isinstance(entry.fact, ENDS):
                    del self._open[entry.exchange]
                    ended = EndedExchange(tuple(facts), kept, self._runs.pop(entry.exchange, "") or _run_of(facts))
                    if self._metrics is not None and any(isinstance(each.fact, Received) for each in facts):
                        self._metrics.count(ended.facts)
                    self._end(ended)

    def observe_run(self, run: str, facts: Sequence[tuple[float, RunFact]], fresh: int) -> None:
        """A run went on: its requests belong to its trace, and its end is the span above them."""
        for _, fact in facts[len(facts) - fresh :]:
            if isinstance(fact, RequestStarted):
                self._runs[fact.exchange] = run
                if len(self._runs) > _MOST_RUNS:
                    del self._runs[next(iter(self._runs))]
        if fresh and (shown := run_span(run, facts)) is not None:
            self._end(shown)

    def observe_tool(self, run: str, call: RunnableCall, began: float, ended: float, outcome: ToolOutcome) -> None:
        """A tool of a run was run."""
        self._end(tool_span(run, call, began, ended, outcome, with_content=self._with_content))

    def _end(self, ended: EndedExchange | JsonObject) -> None:
        if len(self._ready) >= _MOST_WAITING:
            self._ready.popleft()
            self._dropped += 1
        self._ready.append(ended)
        self._news.set()
        if len(self._ready) >= _MOST_AT_ONCE:
            self._is_full.set()

    # --- and sent ---

    async def __aenter__(self) -> Self:
        self._running = asyncio.get_running_loop().create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Send what is left, unless that takes long."""
        assert self._running is not None
        self._is_closing = True
        self._news.set()
        self._is_full.set()
        try:
            async with asyncio.timeout(_LAST_WORDS):
                await self._running
        except TimeoutError:
            _LOG.warning("%d spans did not reach %s", len(self._ready), self._url)

    async def _run(self) -> None:
        while True:
            await self._news.wait()
            try:
                async with asyncio.timeout(self._pause):
                    await self._is_full.wait()
            except TimeoutError:
                pass
            self._news.clear()
            self._is_full.clear()
            is_last = self._is_closing  # what comes while this is sent is sent in another turn
            while self._ready and await self._send():
                pass
            await self._send_metrics()
            if is_last:
                return

    async def _send(self) -> bool:
        """One batch; False where the collector cannot be reached now, and the batch waits for the next time."""
        batch = [self._ready.popleft() for _ in range(min(_MOST_AT_ONCE, len(self._ready)))]
        try:
            spans: list[Json] = [
                span(each.facts, each.bodies, place_of(each.run) if each.run else None, each.run)
                if isinstance(each, EndedExchange)
                else each
                for each in batch
            ]
            scope: Json = {"scope": self._scope, "spans": spans}
            is_taken = await self._post(
                encode({"resourceSpans": [{"resource": self._resource, "scopeSpans": [scope]}]})
            )
        except Fault as fault:
            is_taken = False
            self._tell(fault.message)
        except asyncio.CancelledError:
            self._ready.extendleft(reversed(batch))
            raise
        if not is_taken:
            self._ready.extendleft(reversed(batch[: _MOST_WAITING - len(self._ready)]))
            self._news.set()
        return is_taken

    async def _send_metrics(self) -> None:
        """What was counted so far. Counts only grow: what does not arrive now is in the next report."""
        values = None if self._metrics is None or self._now is None else self._metrics.export_new(self._now())
        if values is None:
            return
        scope: Json = {"scope": self._scope, "metrics": values}
        body = encode({"resourceMetrics": [{"resource": self._resource, "scopeMetrics": [scope]}]})
        request = HttpRequest("POST", self._metrics_url, self._headers, body)
        try:
            async with await self._client.send(request, _TIMEOUTS) as response:
                await response.read()
        except Fault as fault:
            _LOG.info("metrics did not reach %s: %s", self._metrics_url, fault.message)
            return
        if response.status in _NO_METRICS:
            _LOG.info("the collector at %s takes no metrics: status %d", self._metrics_url, response.status)
            self._metrics = None

    async def _post(self, body: bytes) -> bool:
        request = HttpRequest("POST", self._url, self._headers, body)
        async with await self._client.send(request, _TIMEOUTS) as response:
            await response.read()
        if response.status in _TRY_AGAIN:
            self._tell(f"status {response.status}")
            return False
        if response.status >= 300:
            self._tell(f"status {response.status}; these spans are dropped")
        else:
            self._is_silent = False
        return True

    def _tell(self, why: str) -> None:
        """Once for each time that it goes wrong, and not for every batch."""
        if not self._is_silent:
            self._is_silent = True
            _LOG.warning("the collector at %s does not take spans: %s", self._url, why)
