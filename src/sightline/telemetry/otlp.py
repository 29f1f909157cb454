"""The JSON form of OTLP: attributes, spans and log records, and the ids that connect them."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from sightline.model.json import Json, JsonObject

AGENT: Final = "sightline"
"""The name of the agent that runs tools in Sightline."""
FAILED_RUNS: Final = frozenset({"failed", "cancelled", "limit"})
"""The ends of a run that are errors."""

INTERNAL: Final = 1
CLIENT: Final = 3
INFO: Final = 9
WARN: Final = 13
_SEVERITIES: Final = {INFO: "INFO", WARN: "WARN"}
_ERROR: Final = 2


class SpanContext(NamedTuple):
    """The position of a span: its trace, its own id, and the id of its parent, which may be empty."""

    trace: str
    span: str
    parent: str = ""


def attributes(values: Mapping[str, Json]) -> list[Json]:
    """Names and values in the form of OTLP; empty values are left out."""
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value not in (None, "", [])]


def _value(value: Json) -> Json:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list() | tuple():
            return {"arrayValue": {"values": [_value(each) for each in value]}}
        case _:
            return {"stringValue": str(value)}


def hash_of(name: str) -> str:
    """The hash from which ids of spans and traces are made: the same name gives the same ids in every process."""
    return hashlib.sha256(name.encode()).hexdigest()


def trace_of(name: str) -> str:
    """The trace id of a run, a session or an exchange."""
    return hash_of(name)[:32]


def span_of(name: str) -> str:
    """The span id of a run or an exchange."""
    return hash_of(name)[32:48]


def nanoseconds(at: float) -> str:
    """A time of day in the form of OTLP."""
    return str(int(at * 1_000_000) * 1000)


def write_span(
    place: SpanContext,
    name: str,
    kind: int,
    times: tuple[float, float],
    values: Mapping[str, Json],
    *,
    failure: str | None = None,
    links: Sequence[SpanContext] = (),
) -> JsonObject:
    """A span. `failure` makes its status an error; `links` are the positions of other spans that belong to it."""
    shown: JsonObject = {
        "traceId": place.trace,
        "spanId": place.span,
        "name": name,
        "kind": kind,
        "startTimeUnixNano": nanoseconds(times[0]),
        "endTimeUnixNano": nanoseconds(times[1]),
        "attributes": attributes(values),
    }
    if place.parent:
        shown["parentSpanId"] = place.parent
    if links:
        shown["links"] = [{"traceId": each.trace, "spanId": each.span} for each in links]
    if failure is not None:
        shown["status"] = {"code": _ERROR, "message": failure}
    return shown


def write_event(place: SpanContext, event: str, severity: int, at: float, values: Mapping[str, Json]) -> JsonObject:
    """A log record with the name of an event, which belongs to the span at this position."""
    return {
        "timeUnixNano": nanoseconds(at),
        "observedTimeUnixNano": nanoseconds(at),
        "severityNumber": severity,
        "severityText": _SEVERITIES[severity],
        "eventName": event,
        "attributes": attributes(values),
        "traceId": place.trace,
        "spanId": place.span,
    }
