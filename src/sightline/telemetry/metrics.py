"""Tokens and times of exchanges as histograms, in the words of OpenTelemetry's conventions for generative AI."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sightline.model.exchange import ExchangeFailed, ExchangeFinished
from sightline.model.json import Json, JsonObject
from sightline.store.entries import FactEntry
from sightline.telemetry.spans import ENDS, attributes, identity, nanoseconds

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
        told: dict[str, Json] = {name: each for name, each in identity(facts).items() if each not in (None, "")}
        ended = end if isinstance(end, ExchangeFinished | ExchangeFailed) else None
        seconds = facts[-1].at - facts[0].at if ended is None else ended.elapsed
        if isinstance(end, ExchangeFinished):
            told |= {"gen_ai.response.model": end.model} if end.model else {}
            self._add(DURATION, seconds, told)
        else:
            code = end.code if isinstance(end, ExchangeFailed) else str(type(end).__struct_config__.tag)
            self._add(DURATION, seconds, {**told, "error.type": code})
        usage = None if ended is None else ended.usage
        if usage is not None:
            for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
                if tokens is not None:
                    self._add(TOKENS, tokens, {**told, "gen_ai.token.type": kind})

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
            self._point(series, _BOUNDS[name], told, now) for (of, told), series in self._series.items() if of == name
        ]
        histogram: Json = {"aggregationTemporality": _CUMULATIVE, "dataPoints": points}
        return {"name": name, "unit": _UNITS[name], "description": _ABOUT[name], "histogram": histogram}

    def _point(
        self, series: _Series, bounds: Sequence[float], labels: tuple[tuple[str, Json], ...], now: float
    ) -> JsonObject:
        return {
            "attributes": attributes(dict(labels)),
            "startTimeUnixNano": nanoseconds(self.since),
            "timeUnixNano": nanoseconds(now),
            "count": str(series.count),
            "sum": series.total,
            "min": series.low,
            "max": series.high,
            "bucketCounts": [str(each) for each in series.buckets],
            "explicitBounds": list(bounds),
        }
