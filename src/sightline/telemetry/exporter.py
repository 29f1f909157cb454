"""Exports spans, logs and metrics to a collector: collected from the record, sent in batches, dropped if late.

An exchange never waits for the collector.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Self

from sightline.agent.core.facts import RequestStarted, RunFact
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import ToolOutcome
from sightline.errors import Fault
from sightline.evals.core.run_state import CaseDone, EvalEnded, EvalFact, EvalState
from sightline.exchange.hub import RUN_PREFIX
from sightline.model.exchange import (
    ENDS,
    Budgeted,
    ExchangeCancelled,
    ExchangeFailed,
    ExchangeFinished,
    FrameArrived,
    Received,
)
from sightline.model.json import Json, JsonObject
from sightline.store.entries import BodyEntry, FactEntry, KeptEntry, plain_entries
from sightline.telemetry import spans
from sightline.telemetry.metrics import Metrics
from sightline.telemetry.otlp import attributes
from sightline.transport.http.client import HttpClient
from sightline.transport.http.target import Timeouts
from sightline.wire.cache import BoundedCache
from sightline.wire.call import HttpRequest
from sightline.wire.jsontext import encode

_LOG = logging.getLogger("sightline.telemetry")
_TRACES: Final = "/v1/traces"
_MOST_WAITING = 2048
_MOST_AT_ONCE = 256
_PAUSE = 5.0
_LAST_WORDS = 2.0
_TIMEOUTS = Timeouts(connect=5.0, first_byte=10.0, idle=10.0)
_RETRY_STATUSES = frozenset({429, 502, 503, 504})

_MOST_RUNS = 4096
_UNSUPPORTED_STATUSES = frozenset({404, 405, 501})
"""The statuses of a collector that does not support a signal; collectors that accept only traces are common."""

_WITH_USAGE = (ExchangeFinished, ExchangeFailed, ExchangeCancelled)


class EndedExchange(NamedTuple):
    """An exchange that has ended, its bodies if content is exported, and the run that it is part of."""

    facts: tuple[FactEntry, ...]
    bodies: dict[str, bytes]
    run: str = ""


class _Outbox:
    """The queue of one signal for the collector, the oldest first. Beyond the limit, the oldest is dropped. `key` is
    OTLP's name for the values of the signal."""

    def __init__(self, url: str, signal: str, key: str) -> None:
        self.url, self.signal, self.key = url, signal, key
        self.what = signal.lower()
        self.waiting: deque[EndedExchange | JsonObject] = deque()
        self.is_refused = False
        self.has_warned = False

    def put(self, ended: EndedExchange | JsonObject) -> None:
        if len(self.waiting) >= _MOST_WAITING:
            self.waiting.popleft()
        self.waiting.append(ended)

    def take(self) -> list[EndedExchange | JsonObject]:
        return [self.waiting.popleft() for _ in range(min(_MOST_AT_ONCE, len(self.waiting)))]

    def put_back(self, batch: list[EndedExchange | JsonObject]) -> None:
        self.waiting.extendleft(reversed(batch[: _MOST_WAITING - len(self.waiting)]))

    def warn(self, why: str) -> None:
        """Log a warning once for each outage, and not for every batch."""
        if not self.has_warned:
            self.has_warned = True
            _LOG.warning("the collector at %s does not take %s: %s", self.url, self.what, why)


class Exporter:
    """Exports what is recorded, which `took` receives, and what runs and evals do, as their observer. `with_content`
    includes prompts and replies; `headers` are sent to the collector, `instance` names this process. Spans go to
    `/v1/traces` of the endpoint, faults and scores to `/v1/logs`, and `metrics`, which are also counted here, to
    `/v1/metrics`.

    `pause` is the longest that a span waits for others; `now` returns the time of day. An exporter belongs to the event
    loop in which it is entered.
    """

    def __init__(
        self,
        client: HttpClient,
        endpoint: str,
        metrics: Metrics,
        now: Callable[[], float],
        *,
        version: str,
        instance: str = "",
        headers: Mapping[str, str] | None = None,
        with_content: bool = False,
        pause: float = _PAUSE,
    ) -> None:
        self._client = client
        root = endpoint.rstrip("/").removesuffix(_TRACES)
        self._spans = _Outbox(root + _TRACES, "Spans", "spans")
        self._logs = _Outbox(f"{root}/v1/logs", "Logs", "logRecords")
        self._metrics_url = f"{root}/v1/metrics"
        self._now = now
        self._metrics = metrics
        self._takes_metrics = True
        self._runs: BoundedCache[str, str] = BoundedCache(_MOST_RUNS)
        """The run of each request in progress."""
        about: dict[str, Json] = {"service.name": "sightline", "service.version": version}
        # The counts of several processes are separate sums only if their names differ.
        self._resource: Json = {"attributes": attributes({**about, "service.instance.id": instance})}
        self._scope: Json = {"name": "sightline", "version": version}
        self._headers = (("content-type", "application/json"), *(headers or {}).items())
        self._with_content = with_content
        self._pause = pause
        self._open: dict[str, tuple[list[FactEntry], dict[str, bytes]]] = {}
        self._news = asyncio.Event()
        self._is_full = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._is_closing = False

    # --- collecting ---

    def took(self, entries: Sequence[KeptEntry]) -> None:
        """Take entries that were recorded. This only remembers those that are needed."""
        self._metrics.took(entries)
        bodies: dict[str, bytes] = {}
        for entry in plain_entries(entries):
            if isinstance(entry, BodyEntry):
                bodies[entry.sha256] = entry.data
            elif isinstance(entry.fact, Budgeted):
                continue  # no span uses it, and it may arrive after the span is gone
            elif self._with_content or not isinstance(entry.fact, FrameArrived):
                facts, kept = self._open.setdefault(entry.exchange, ([], {}))
                facts.append(entry)
                if self._with_content:
                    kept.update(bodies)
                if isinstance(entry.fact, ENDS):
                    del self._open[entry.exchange]
                    if not any(isinstance(each.fact, Received) for each in facts):
                        continue  # it began before this process did
                    named = spans.find_received(facts).conversation
                    # Otherwise it is a run of a command in another process, which sends its requests through this one.
                    run = self._runs.pop(entry.exchange) or (named if named.startswith(RUN_PREFIX) else "")
                    self._end(EndedExchange(tuple(facts), kept, run))
                    self._log(*spans.fault_events(facts, run))

    def observe_run(self, run: str, facts: Sequence[tuple[float, RunFact]], fresh: int) -> None:
        """Take new facts of a run: its requests belong to its trace, and its end completes the span above them."""
        self._metrics.observe_run(run, facts, fresh)
        for _, fact in facts[len(facts) - fresh :]:
            if isinstance(fact, RequestStarted):
                self._runs.put(fact.exchange, run)
        if fresh and (shown := spans.run_span(run, facts)) is not None:
            self._end(shown)

    def observe_tool(self, run: str, call: RunnableCall, began: float, ended: float, outcome: ToolOutcome) -> None:
        self._metrics.observe_tool(run, call, began, ended, outcome)
        self._end(spans.tool_span(run, call, began, ended, outcome, with_content=self._with_content))

    def observe_eval(self, run: str, fact: EvalFact, standing: EvalState) -> None:
        """Take a new fact of an eval run: each case is a span with its scores, and the end completes the span above
        them."""
        if isinstance(fact, CaseDone):
            self._end(spans.case_span(run, fact.result))
            self._log(*spans.result_events(run, fact.result, with_content=self._with_content))
        elif isinstance(fact, EvalEnded):
            self._end(spans.eval_span(run, standing))

    def _end(self, ended: EndedExchange | JsonObject) -> None:
        self._spans.put(ended)
        self._news.set()
        if len(self._spans.waiting) >= _MOST_AT_ONCE:
            self._is_full.set()

    def _log(self, *events: JsonObject) -> None:
        if not self._logs.is_refused:
            for event in events:
                self._logs.put(event)

    # --- sending ---

    async def __aenter__(self) -> Self:
        self._running = asyncio.get_running_loop().create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Send what is left, unless that takes too long."""
        assert self._running is not None
        self._is_closing = True
        self._news.set()
        self._is_full.set()
        try:
            async with asyncio.timeout(_LAST_WORDS):
                await self._running
        except TimeoutError:
            _LOG.warning("%d spans did not reach %s", len(self._spans.waiting), self._spans.url)

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
            is_last = self._is_closing  # what arrives during sending is sent in another round
            for outbox in (self._spans, self._logs):
                while outbox.waiting and await self._send(outbox):
                    pass
            await self._send_metrics()
            if is_last:
                return

    async def _send(self, outbox: _Outbox) -> bool:
        """Send one batch; returns False if the collector cannot be reached now. The batch is then sent again later."""
        batch = outbox.take()
        shown: list[Json] = [self._span(each) if isinstance(each, EndedExchange) else each for each in batch]
        try:
            status = await self._post(outbox.url, outbox.signal, outbox.key, shown)
        except Fault as fault:
            outbox.warn(fault.message)
        except asyncio.CancelledError:
            outbox.put_back(batch)
            raise
        else:
            if status not in _RETRY_STATUSES:
                self._note_answer(outbox, status)
                return True
            outbox.warn(f"status {status}")
        outbox.put_back(batch)
        self._news.set()
        return False

    def _note_answer(self, outbox: _Outbox, status: int) -> None:
        if outbox is self._logs and status in _UNSUPPORTED_STATUSES:
            _LOG.info("the collector at %s takes no logs: status %d", outbox.url, status)
            outbox.is_refused = True
            outbox.waiting.clear()
        elif status >= 300:
            outbox.warn(f"status {status}; these {outbox.what} are dropped")
        else:
            outbox.has_warned = False

    async def _post(self, url: str, signal: str, key: str, values: list[Json]) -> int:
        """Send values of a signal; returns the status of the answer."""
        scope: Json = {"scope": self._scope, key: values}
        body = encode({f"resource{signal}": [{"resource": self._resource, f"scope{signal}": [scope]}]})
        async with await self._client.send(HttpRequest("POST", url, self._headers, body), _TIMEOUTS) as response:
            await response.read()
        return response.status

    def _span(self, ended: EndedExchange) -> JsonObject:
        end, cost = ended.facts[-1].fact, None
        if isinstance(end, _WITH_USAGE) and end.usage is not None:
            answered = (end.model,) if isinstance(end, ExchangeFinished) else ()
            sent, received = spans.attempt_of(ended.facts), spans.find_received(ended.facts)
            cost = self._metrics.cost(sent, received, end.usage, answered)
        return spans.span(ended.facts, ended.bodies, ended.run, cost=cost)

    async def _send_metrics(self) -> None:
        """Send the current counts. They only grow, so a lost report is made up for by the next one."""
        values = self._metrics.export_new(self._now()) if self._takes_metrics else None
        if values is None:
            return
        try:
            status = await self._post(self._metrics_url, "Metrics", "metrics", values)
        except Fault as fault:
            _LOG.info("metrics did not reach %s: %s", self._metrics_url, fault.message)
            return
        if status in _UNSUPPORTED_STATUSES:
            _LOG.info("the collector at %s takes no metrics: status %d", self._metrics_url, status)
            self._takes_metrics = False
