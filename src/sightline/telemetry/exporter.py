"""Spans on their way to a collector: gathered from what is recorded, sent in batches, dropped and never waited for."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Self

import msgspec

from sightline.agent.core.facts import RequestStarted, RunBegan, RunEnded, RunFact
from sightline.agent.core.limits import total_usage, usage_of
from sightline.agent.core.output import ToolOutcome
from sightline.agent.core.steps import Replied, RunnableCall
from sightline.agent.service.run_log import conversation_of
from sightline.errors import Fault
from sightline.exchange.hub import RUN_PREFIX
from sightline.model.exchange import Budgeted, FrameArrived, Received
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Text
from sightline.store.entries import BodyEntry, Entry, FactEntry
from sightline.telemetry.metrics import Metrics
from sightline.telemetry.spans import ENDS, attributes, hash_of, nanoseconds, provider_name, span
from sightline.transport.http.client import HttpClient
from sightline.transport.http.timeouts import Timeouts
from sightline.wire.call import HttpRequest
from sightline.wire.jsontext import encode

AGENT = "sightline"
_INTERNAL, _ERROR = 1, 2
_FAILED = frozenset({"failed", "cancelled", "limit"})


def place_of(run: str) -> tuple[str, str]:
    """The trace of a run, and the run's own span in it."""
    return hash_of(run)[:32], hash_of(run)[32:48]


def run_span(run: str, facts: Sequence[tuple[float, RunFact]]) -> JsonObject | None:
    """The span of a run that has ended, from all of its facts; None where it has not."""
    began, end = facts[0][1], facts[-1][1]
    if not isinstance(began, RunBegan) or not isinstance(end, RunEnded):
        return None
    replies = [fact for _, fact in facts if isinstance(fact, Replied)]
    usage = total_usage(usage_of(each.reply.usage, None) for each in replies)
    told: dict[str, Json] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": AGENT,
        "gen_ai.agent.id": run,
        "gen_ai.conversation.id": conversation_of(began, run),
        "gen_ai.provider.name": provider_name(began.provider),
        "gen_ai.request.model": began.request.model,
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "sightline.run.rounds": len(replies),
        "sightline.run.end": end.why,
        "error.type": end.why if end.why in _FAILED else None,
    }
    trace, span = place_of(run)
    shown: JsonObject = {
        "traceId": trace,
        "spanId": span,
        "name": f"invoke_agent {AGENT}",
        "kind": _INTERNAL,
        "startTimeUnixNano": nanoseconds(facts[0][0]),
        "endTimeUnixNano": nanoseconds(facts[-1][0]),
        "attributes": attributes(told),
    }
    if end.why in _FAILED:
        shown["status"] = {"code": _ERROR, "message": f"the run ended: {end.why}"}
    return shown


def tool_span(
    run: str, call: RunnableCall, began: float, ended: float, outcome: ToolOutcome, *, with_content: bool
) -> JsonObject:
    """The span of a tool that was run; with content it tells the arguments and the result."""
    trace, parent = place_of(run)
    told: dict[str, Json] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.type": "function",
        "gen_ai.agent.name": AGENT,
        "error.type": "tool_error" if outcome.is_error else None,
    }
    if with_content:
        arguments = call.arguments
        told["gen_ai.tool.call.arguments"] = arguments if isinstance(arguments, str) else encode(arguments).decode()
        told["gen_ai.tool.call.result"] = _result(outcome)
    shown: JsonObject = {
        "traceId": trace,
        "spanId": hash_of(f"{run} {call.key} {began}")[32:48],
        "parentSpanId": parent,
        "name": f"execute_tool {call.name}",
        "kind": _INTERNAL,
        "startTimeUnixNano": nanoseconds(began),
        "endTimeUnixNano": nanoseconds(ended),
        "attributes": attributes(told),
    }
    if outcome.is_error:
        shown["status"] = {"code": _ERROR, "message": "the tool reports an error"}
    return shown


def _result(outcome: ToolOutcome) -> str:
    if outcome.structured is not None:
        return encode(outcome.structured).decode()
    words = "".join(part.text for part in outcome.parts if isinstance(part, Text))
    return words or encode([{"type": each["type"]} for each in msgspec.to_builtins(outcome.parts)]).decode()


_LOG = logging.getLogger("sightline.telemetry")
_PATH = "/v1/traces"
_METRICS_PATH = "/v1/metrics"
_MOST_WAITING = 2048
_MOST_AT_ONCE = 256
_PAUSE = 5.0
_LAST_WORDS = 2.0
_TIMEOUTS = Timeouts(connect=5.0, first_byte=10.0, idle=10.0)
_TRY_AGAIN = frozenset({429, 502, 503, 504})

_MOST_RUNS = 4096
_NO_METRICS = frozenset({404, 405, 501})


class EndedExchange(NamedTuple):
    """An exchange that has ended, what is told of its contents, and the run that it is part of."""

    facts: tuple[FactEntry, ...]
    bodies: dict[str, bytes]
    run: str = ""


_RESOURCE: Json = {"attributes": attributes({"service.name": "sightline"})}


def _run_of(facts: Sequence[FactEntry]) -> str:
    """The run of a request that another process, a command, sends through this one."""
    told = (each.fact.conversation for each in facts if isinstance(each.fact, Received))
    return next((name for name in told if name.startswith(RUN_PREFIX)), "")


def _span(ended: EndedExchange) -> JsonObject:
    return span(ended.facts, ended.bodies, place_of(ended.run) if ended.run else None, ended.run)


class Exporter:
    """Give it what is recorded, by `took`, and what runs do, as a `RunObserver`. `with_content` sends what was said
    too; `headers` are the collector's. Spans go to `/v1/traces` and metrics to `/v1/metrics` of the endpoint.

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
        pause: float = _PAUSE,
        now: Callable[[], float] | None = None,
    ) -> None:
        self._client = client
        root = endpoint.rstrip("/").removesuffix(_PATH)
        self._url, self._metrics_url = root + _PATH, root + _METRICS_PATH
        self._now = now
        self._metrics = None if now is None else Metrics(now())
        self._runs: dict[str, str] = {}
        """The run of each request that is under way."""
        self._version = version
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
            is_taken = await self._post(encode(self._document(batch)))
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
        told = None if self._metrics is None or self._now is None else self._metrics.export_new(self._now())
        if told is None:
            return
        scope: Json = {"scope": self._scope, "metrics": told}
        body = encode({"resourceMetrics": [{"resource": _RESOURCE, "scopeMetrics": [scope]}]})
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

    @property
    def _scope(self) -> Json:
        return {"name": "sightline", "version": self._version}

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

    def _document(self, batch: Sequence[EndedExchange | JsonObject]) -> Json:
        spans: list[Json] = [_span(each) if isinstance(each, EndedExchange) else each for each in batch]
        return {"resourceSpans": [{"resource": _RESOURCE, "scopeSpans": [{"scope": self._scope, "spans": spans}]}]}

    def _tell(self, why: str) -> None:
        """Once for each time that it goes wrong, and not for every batch."""
        if not self._is_silent:
            self._is_silent = True
            _LOG.warning("the collector at %s does not take spans: %s", self._url, why)
