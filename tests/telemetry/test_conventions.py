"""Everything that is sent to a collector, by the conventions' own registry and by the JSON form of OTLP."""

import base64
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sightline.model.exchange import AttemptStarted, ExchangeFailed, FrameArrived
from sightline.telemetry.exporter import Exporter
from sightline.telemetry.metrics import Metrics
from sightline.telemetry.otlp import span_of, trace_of
from sightline.telemetry.spans import place_of
from tests.eval_stage import ACME, KNOWN, EvalStage, knows
from tests.loop_stage import calls, count, says
from tests.recordings import exchange
from tests.running_stage import RunStage, open_stage, plays
from tests.store.traffic import chat_stream
from tests.telemetry.test_spans import ATTEMPT, BODY, FINISHED, RECEIVED, told, values
from tests.upstream import Upstream, answer

HERE = Path(__file__).parent
REGISTRY = json.loads((HERE / "gen_ai_registry.json").read_text())
FORM = jsonschema.Draft202012Validator(json.loads((HERE / "otlp.schema.json").read_text()))
_VALUES = {
    "string": "stringValue",
    "int": "intValue",
    "double": "doubleValue",
    "boolean": "boolValue",
    "string[]": "arrayValue",
}


class Sent:
    """What a collector got."""

    def __init__(self, collector: Upstream) -> None:
        self.bodies: list[Any] = [seen.json() for seen in collector.seen]
        self.spans = list(self._all("resourceSpans", "scopeSpans", "spans"))
        self.logs = list(self._all("resourceLogs", "scopeLogs", "logRecords"))
        self.metrics = list(self._all("resourceMetrics", "scopeMetrics", "metrics"))

    def _all(self, top: str, scopes: str, items: str) -> Iterator[Any]:
        for body in self.bodies:
            for resource in body.get(top, ()):
                yield from (item for scope in resource[scopes] for item in scope[items])

    def check(self) -> None:
        """Hold everything against the form and the registry."""
        for body in self.bodies:
            FORM.validate(body)
        for span in self.spans:
            _check_attributes(span["attributes"])
            plain = values(span)
            rule = REGISTRY["spans"].get(plain["gen_ai.operation.name"])
            if rule is not None:
                assert span["kind"] == rule["kind"]
                assert not [name for name in rule["required"] if name not in plain], span["name"]
                assert span["name"] == _named(rule["name"], plain)
        for log in self.logs:
            _check_attributes(log["attributes"])
            rule = REGISTRY["events"][log["eventName"]]
            assert log["severityNumber"] == rule.get("severity", log["severityNumber"])
            assert not [name for name in rule["required"] if name not in values(log)]
        for metric in self.metrics:
            _check_metric(metric)


def _named(pattern: str, plain: dict[str, Any]) -> str:
    for name, value in plain.items():
        pattern = pattern.replace("{" + name + "}", str(value))
    return pattern


def _check_attributes(attributes: list[Any]) -> None:
    for each in attributes:
        name, (kind,) = each["key"], each["value"]
        known = REGISTRY["attributes"].get(name)
        assert known is not None or name.startswith("sightline."), f"{name} is in no registry"
        assert known in (None, "any") or kind == _VALUES[known], f"{name} is a {known}, not a {kind}"
        allowed = REGISTRY["values"].get(name)
        assert allowed is None or each["value"][kind] in allowed


def _check_metric(metric: Any) -> None:
    rule = REGISTRY["metrics"].get(metric["name"])
    assert rule is not None or metric["name"].startswith("sightline.")
    points = metric.get("histogram", metric.get("sum"))["dataPoints"]
    for point in points:
        _check_attributes(point["attributes"])
        if rule is not None:
            assert not [name for name in rule["required"] if name not in values(point)], metric["name"]
            assert point["explicitBounds"] == rule.get("bounds", point["explicitBounds"])
            assert sum(map(int, point["bucketCounts"])) == int(point["count"])
    if rule is not None:
        assert (metric["unit"], rule["instrument"] in metric) == (rule["unit"], True)


@asynccontextmanager
async def observed(stage: RunStage, **options: Any) -> AsyncIterator[Upstream]:
    """A collector that gets what is recorded on a stage until the end of the block."""
    async with Upstream() as collector:
        collector.script = [answer(200, b"{}")]
        metrics, now = Metrics(stage.clock.now()), stage.clock.now
        exporter = Exporter(stage.client, collector.url, metrics, now, version="9", instance="p1", **options)
        record = stage.hub._record
        stage.hub._record = lambda entries: (record(entries), exporter.took(entries))[0]
        stage.hub.observer = exporter
        async with exporter:
            yield collector


@pytest.mark.parametrize("with_content", [False, True])
async def test_a_run_is_sent_as_the_conventions_have_it(tmp_path: Path, with_content: bool) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        upstream.script = [plays(calls(count(1, "a"))), plays(says("Done."))]
        async with observed(stage, with_content=with_content) as collector:
            await stage.run()
        sent = Sent(collector)
        sent.check()
        assert {values(span)["gen_ai.operation.name"] for span in sent.spans} == {
            "chat", "invoke_agent", "execute_tool"
        }  # fmt: skip
        named = {each["key"] for span in sent.spans for each in span["attributes"]}
        opt_in = {name for rule in REGISTRY["spans"].values() for name in rule.get("opt_in", ())}
        content = {"gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.call.arguments"}
        assert content <= named if with_content else not named & opt_in
        metrics = {each["name"] for each in sent.metrics}
        assert {name for name in REGISTRY["metrics"] if "first_chunk" not in name} <= metrics
        resource = values(sent.bodies[0]["resourceSpans"][0]["resource"])
        assert resource == {"service.name": "sightline", "service.version": "9", "service.instance.id": "p1"}


async def test_every_attribute_of_an_exchange_has_the_type_of_the_registry(tmp_path: Path) -> None:
    frames = [FrameArrived(data) for data in chat_stream("Hel", "lo")]
    async with open_stage(tmp_path) as (stage, _):
        async with observed(stage, with_content=True) as collector:
            body, *_ = exchange("x_1", BODY)
            stage.hub.observer.took([body, *told(RECEIVED, ATTEMPT, *frames, FINISHED)])  # type: ignore[attr-defined]
        sent = Sent(collector)
        sent.check()
        (span,) = sent.spans
        assert values(span)["gen_ai.request.temperature"] == 0.0
        assert values(span)["gen_ai.request.stop_sequences"] == ["x"]


async def test_faults_are_logs_that_name_their_span(tmp_path: Path) -> None:
    again = AttemptStarted(2, "acme", "aa", reason="overloaded", detail="busy", model="m", dialect="openai-chat")
    failed = ExchangeFailed("timeout", "no answer came", hint="Try again.")
    async with open_stage(tmp_path) as (stage, _):
        async with observed(stage) as collector:
            stage.hub.observer.took(told(RECEIVED, ATTEMPT, again, failed))  # type: ignore[attr-defined]
            stage.hub.observer.took(told(RECEIVED, ATTEMPT, FINISHED))  # type: ignore[attr-defined]
        sent = Sent(collector)
        sent.check()
        told_of = [(values(log)["exception.type"], values(log)["exception.message"]) for log in sent.logs]
        assert told_of == [("overloaded", "busy"), ("timeout", "no answer came")]
        assert values(sent.logs[1])["sightline.hint"] == "Try again."
        span = sent.spans[0]
        assert {(log["traceId"], log["spanId"]) for log in sent.logs} == {(span["traceId"], span["spanId"])}
        assert {log["eventName"] for log in sent.logs} == {"gen_ai.client.operation.exception"}
        assert [seen.target for seen in collector.seen] == ["/v1/traces", "/v1/logs", "/v1/metrics"]


async def test_a_collector_that_takes_no_logs_is_not_asked_again(tmp_path: Path) -> None:
    failed = ExchangeFailed("timeout", "no answer came")
    async with open_stage(tmp_path) as (stage, _), Upstream() as collector:
        collector.script = [answer(200, b"{}"), answer(404, b""), answer(200, b"{}")]
        metrics = Metrics(0, is_counting=False)
        async with Exporter(stage.client, collector.url, metrics, lambda: 1.0, version="9", pause=0) as exporter:
            exporter.took(told(RECEIVED, failed))
            await collector.arrived(2)
            exporter.took(told(RECEIVED, failed))
        assert [seen.target for seen in collector.seen] == ["/v1/traces", "/v1/logs", "/v1/traces"]


@pytest.mark.parametrize("with_content", [False, True])
async def test_a_run_of_a_suite_is_one_trace_with_cases_and_scores(tmp_path: Path, with_content: bool) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        upstream.script = [knows(upstream, KNOWN)]
        async with observed(stage, with_content=with_content) as collector:
            standing = await EvalStage(stage, tmp_path).run(targets=(ACME,))
        sent = Sent(collector)
        sent.check()
        place = place_of("eval:e_1")
        assert {span["traceId"] for span in sent.spans} == {place.trace}
        above = [span for span in sent.spans if "parentSpanId" not in span]
        assert [(span["name"], span["spanId"]) for span in above] == [("invoke_workflow capitals", place.span)]
        assert (values(above[0])["sightline.eval.cases"], values(above[0])["sightline.eval.passed"]) == (3, 2)
        below = [span for span in sent.spans if "parentSpanId" in span]
        assert {span["parentSpanId"] for span in below} == {place.span}
        cases = {values(span)["sightline.eval.case"]: span for span in below if span["name"] == "evaluate capitals"}
        assert len(below) == 6
        assert sorted(cases) == ["france", "italy", "spain"]
        asked = {values(span)["sightline.exchange"]: span["spanId"] for span in below if span["name"] == "chat m"}
        for result in standing.results:
            links = [link["spanId"] for link in cases[result.case]["links"]]
            assert links == [asked[name] for name in result.observation.exchanges]
        labels = {log["spanId"]: values(log)["gen_ai.evaluation.score.label"] for log in sent.logs}
        assert {name: labels[span["spanId"]] for name, span in cases.items()} == {
            "france": "pass", "italy": "pass", "spain": "fail"
        }  # fmt: skip
        explained = ["gen_ai.evaluation.explanation" in values(log) for log in sent.logs]
        assert any(explained) == (with_content and any(each.score.scores[0].reason for each in standing.results))


IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}


def with_binary_ids(value: Any) -> Any:
    """OTLP in JSON as the definitions read it, which have ids in base64: OTLP's own rule is hexadecimal."""
    if isinstance(value, list):
        return [with_binary_ids(each) for each in value]
    if not isinstance(value, dict):
        return value
    for name in IDS.keys() & value.keys():
        data = bytes.fromhex(value[name])
        assert len(data) == IDS[name]
        assert any(data), "an id of zeros is none"
        value = {**value, name: base64.b64encode(data).decode()}
    return {name: each if name in IDS else with_binary_ids(each) for name, each in value.items()}


async def test_a_collectors_own_definitions_take_everything(tmp_path: Path) -> None:
    """By OTLP's protocol buffers: a field that they do not have, and a value of another type, is refused."""
    pytest.importorskip("opentelemetry.proto.collector", reason="opentelemetry-proto is not installed")
    from google.protobuf import json_format
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    requests = {
        "/v1/traces": ExportTraceServiceRequest,
        "/v1/logs": ExportLogsServiceRequest,
        "/v1/metrics": ExportMetricsServiceRequest,
    }
    failed = ExchangeFailed("timeout", "no answer came", hint="Try again.")
    async with open_stage(tmp_path) as (stage, upstream):
        upstream.script = [plays(calls(count(1, "a"))), plays(says("Done.")), knows(upstream, KNOWN)]
        async with observed(stage, with_content=True) as collector:
            await stage.run()
            await EvalStage(stage, tmp_path).run(targets=(ACME,))
            stage.hub.observer.took(told(RECEIVED, ATTEMPT, failed))  # type: ignore[attr-defined]
        assert {seen.target for seen in collector.seen} == set(requests)
        for seen in collector.seen:
            sent = with_binary_ids(seen.json())
            read = json_format.ParseDict(sent, requests[seen.target]())
            assert json_format.MessageToDict(read, use_integers_for_enums=True) == sent, "nothing is in another form"


def test_ids_are_the_same_in_every_process() -> None:
    assert (trace_of("r_1"), span_of("r_1")) == (trace_of("r_1"), span_of("r_1"))
    assert trace_of("r_1") != trace_of("r_2")
