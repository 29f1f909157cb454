import json
from pathlib import Path
from typing import Any

import pytest

from sightline.agent.core.facts import RunBegan, RunEnded
from sightline.agent.core.output import ToolOutcome, text_outcome
from sightline.agent.core.run import RunPlan
from sightline.agent.core.steps import Replied, RunnableCall
from sightline.model.parts import Image, Inline
from sightline.model.reply import Reply
from sightline.model.request import Request
from sightline.model.usage import Usage
from sightline.telemetry.exporter import Exporter, place_of, run_span, tool_span
from tests.loop_stage import calls, count, says
from tests.running_stage import RunStage, play, plays
from tests.telemetry.test_spans import values
from tests.upstream import Upstream, answer

BEGAN = RunBegan(Request(model="m"), RunPlan(dialect="openai-chat"), "gemini", "s", {"conversation": "chat:t"})
CALL = RunnableCall(key="1.0", id="call_1", name="weigh", arguments={"what": "a stone"})


def test_a_run_is_a_span_with_what_its_rounds_took() -> None:
    replied = [Replied(Reply(usage=Usage(input_tokens=n, output_tokens=1))) for n in (5, 7)]
    facts = [(float(n), fact) for n, fact in enumerate((BEGAN, *replied, RunEnded("answered")))]
    shown = run_span("r_1", facts)
    assert shown is not None
    assert (shown["traceId"], shown["spanId"]) == place_of("r_1")
    assert (shown["name"], shown["kind"]) == ("invoke_agent sightline", 1)
    assert (shown["startTimeUnixNano"], shown["endTimeUnixNano"]) == ("0", "3000000000")
    assert "status" not in shown
    assert values(shown) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "sightline",
        "gen_ai.agent.id": "r_1",
        "gen_ai.conversation.id": "chat:t",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "m",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 2,
        "sightline.run.rounds": 2,
        "sightline.run.end": "answered",
    }


def test_a_run_that_has_not_ended_is_no_span_and_one_that_failed_says_so() -> None:
    assert run_span("r_1", [(0.0, BEGAN)]) is None
    failed = run_span("r_1", [(0.0, RunBegan(Request(), RunPlan(dialect="openai-chat"))), (1.0, RunEnded("failed"))])
    assert failed is not None
    assert failed["status"] == {"code": 2, "message": "the run ended: failed"}
    assert values(failed)["gen_ai.conversation.id"] == "r_1"


@pytest.mark.parametrize(
    ("outcome", "result"),
    [
        (text_outcome("3 kg"), "3 kg"),
        (ToolOutcome(structured={"kg": 3}), '{"kg":3}'),
        (ToolOutcome((Image(Inline("image/png", "aa")),)), '[{"type":"image"}]'),
    ],
)
def test_a_tool_is_a_span_and_tells_what_was_said_only_if_it_may(outcome: ToolOutcome, result: str) -> None:
    shown = tool_span("r_1", CALL, 1.0, 2.5, outcome, with_content=True)
    assert (shown["traceId"], shown["parentSpanId"]) == place_of("r_1")
    assert shown["name"] == "execute_tool weigh"
    assert values(shown) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "weigh",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.tool.type": "function",
        "gen_ai.agent.name": "sightline",
        "gen_ai.tool.call.arguments": '{"what":"a stone"}',
        "gen_ai.tool.call.result": result,
    }
    quiet = json.dumps(tool_span("r_1", CALL, 1.0, 2.5, outcome, with_content=False))
    assert "stone" not in quiet
    wrong = tool_span("r_1", CALL, 1.0, 2.5, text_outcome("no", is_error=True), with_content=False)
    assert values(wrong)["error.type"] == "tool_error"
    assert wrong["status"]["code"] == 2  # type: ignore[index,call-overload]


def test_a_run_with_its_requests_and_tools_is_one_trace(tmp_path: Path) -> None:
    async def story(stage: RunStage, upstream: Upstream) -> None:
        upstream.script = [plays(calls(count(1, "a"), count(2, "b"))), plays(says("Both."))]
        async with Upstream() as collector:
            collector.script = [answer(200, b"{}")]
            exporter = Exporter(stage.client, collector.url, version="9", now=stage.clock.now)
            record = stage.hub._record
            stage.hub._record = lambda entries: (record(entries), exporter.took(entries))[0]
            stage.hub.observer = exporter
            async with exporter:
                await stage.run(origin={"conversation": "chat:t"})
            told: dict[str, list[Any]] = {}
            for seen in collector.seen:
                told.setdefault(seen.target, []).append(seen.json())
        spans = [span for body in told["/v1/traces"] for span in body["resourceSpans"][0]["scopeSpans"][0]["spans"]]
        trace, above = place_of("r_1")
        assert {span["traceId"] for span in spans} == {trace}
        assert sorted(span["name"] for span in spans) == [
            "chat m", "chat m", "execute_tool count", "execute_tool count", "invoke_agent sightline"
        ]  # fmt: skip
        assert len({span["spanId"] for span in spans}) == 5
        for span in spans:
            is_run = span["name"].startswith("invoke_agent")
            assert (span["spanId"] if is_run else span["parentSpanId"]) == above
            assert is_run == ("parentSpanId" not in span)
        asked = [values(span) for span in spans if not span["name"].startswith("execute_tool")]
        assert {each["gen_ai.conversation.id"] for each in asked} == {"chat:t"}
        chats = [each for each in asked if each["gen_ai.operation.name"] == "chat"]
        assert {(each["server.address"], each["server.port"]) for each in chats} == {("127.0.0.1", upstream.port)}
        (metrics,) = told["/v1/metrics"]
        names = [each["name"] for each in metrics["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]]
        assert names == ["gen_ai.client.token.usage", "gen_ai.client.operation.duration"]

    play(story, tmp_path)
