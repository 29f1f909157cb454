import json
from pathlib import Path
from typing import Any

import pytest

from sightline.agent.core.facts import RunBegan, RunEnded
from sightline.agent.core.run import RunPlan
from sightline.agent.core.steps import Replied, RunnableCall
from sightline.agent.core.tool import ToolOutcome, text_outcome
from sightline.model.exchange import (
    AttemptStarted,
    Dropped,
    ExchangeCancelled,
    ExchangeFailed,
    ExchangeFinished,
    Fact,
    FrameArrived,
    Received,
)
from sightline.model.parts import Image, Inline, Link, Refusal, Text, Thinking, ToolCall, ToolResult
from sightline.model.reply import Choice, Reply, Usage
from sightline.model.request import Message, Request
from sightline.store.entries import FactEntry
from sightline.telemetry.exporter import Exporter
from sightline.telemetry.metrics import Metrics
from sightline.telemetry.otlp import attributes
from sightline.telemetry.spans import input_messages, output_message, place_of, run_span, span, system_parts, tool_span
from tests.loop_stage import calls, count, says
from tests.running_stage import open_stage, plays
from tests.store.traffic import NOON, chat_body, chat_stream, sha256
from tests.upstream import Upstream, answer

BODY = chat_body("hi", "ho", "hum", system="Be brief.", temperature=0, stop=["x"])
RECEIVED = Received("openai-chat", "large", sha256(BODY), session="s1", client="curl/8")
ATTEMPT = AttemptStarted(2, "acme", sha256(BODY), model="acme-large", dialect="openai-chat")
USAGE = Usage(input_tokens=9, output_tokens=2, cached_tokens=4, cache_write_tokens=0, reasoning_tokens=1)
FINISHED = ExchangeFinished("stop", 200, (), "", "acme-large-2", USAGE, (), 0.25, 1.0)


def told(*facts: Fact) -> list[FactEntry]:
    return [FactEntry("x_1", n, NOON + n, fact) for n, fact in enumerate(facts)]


def values(shown: dict[str, Any]) -> dict[str, Any]:
    """The attributes as plain values."""
    plain = {}
    for each in shown["attributes"]:
        ((kind, value),) = each["value"].items()
        if kind == "arrayValue":
            value = [next(iter(item.values())) for item in value["values"]]
        plain[each["key"]] = int(value) if kind == "intValue" else value
    return plain


def test_an_exchange_is_a_span_in_the_words_of_the_conventions() -> None:
    shown = span(told(RECEIVED, ATTEMPT, FINISHED), {})
    assert (shown["name"], shown["kind"]) == ("chat acme-large", 3)
    assert (len(str(shown["traceId"])), len(str(shown["spanId"]))) == (32, 16)
    assert int(str(shown["endTimeUnixNano"])) - int(str(shown["startTimeUnixNano"])) == 2 * 10**9
    assert "parentSpanId" not in shown
    assert "status" not in shown
    assert values(shown) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "acme",
        "gen_ai.request.model": "acme-large",
        "gen_ai.response.model": "acme-large-2",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.conversation.id": "s1",
        "gen_ai.usage.input_tokens": 9,
        "gen_ai.usage.output_tokens": 2,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.usage.cache_creation.input_tokens": 0,
        "gen_ai.usage.reasoning.output_tokens": 1,
        "http.response.status_code": 200,
        "user_agent.original": "curl/8",
        "sightline.exchange": "x_1",
        "sightline.dialect": "openai-chat",
        "sightline.attempts": 2,
        "sightline.time_to_first_byte": 0.25,
    }


def test_span_includes_message_content_only_with_bodies() -> None:
    frames = [FrameArrived(data) for data in chat_stream("Hel", "lo")]
    facts = told(RECEIVED, ATTEMPT, *frames, FINISHED)
    assert "Be brief" not in json.dumps(span(facts, {}))
    shown = values(span(facts, {RECEIVED.sha256: BODY}))
    assert json.loads(shown["gen_ai.system_instructions"]) == [{"type": "text", "content": "Be brief."}]
    asked = json.loads(shown["gen_ai.input.messages"])
    assert [message["role"] for message in asked] == ["user", "assistant", "user"]
    (answer,) = json.loads(shown["gen_ai.output.messages"])
    assert answer == {"role": "assistant", "parts": [{"type": "text", "content": "Hello"}], "finish_reason": "stop"}
    assert (shown["gen_ai.request.temperature"], shown["gen_ai.request.stop_sequences"]) == (0, ["x"])
    assert shown["gen_ai.response.id"] == "c1"


def test_what_cannot_be_read_is_left_out() -> None:
    shown = values(span(told(RECEIVED, ATTEMPT, FINISHED), {RECEIVED.sha256: b"no json"}))
    assert "gen_ai.input.messages" not in shown
    assert "gen_ai.output.messages" not in shown


def test_a_span_belongs_to_the_trace_of_its_client() -> None:
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    headers = (("Traceparent", f"00-{trace}-{parent}-01"),)
    shown = span(told(Received("gemini", "g", "", headers=headers), FINISHED), {})
    assert (shown["traceId"], shown["parentSpanId"]) == (trace, parent)
    assert shown["name"] == "generate_content g"
    nonsense = (("traceparent", f"00-{'0' * 32}-{parent}-01"),)
    assert "parentSpanId" not in span(told(Received("gemini", "g", "", headers=nonsense), FINISHED), {})


@pytest.mark.parametrize(
    ("end", "kind", "is_error"),
    [
        (ExchangeFailed("overloaded", "busy", status=529), "overloaded", True),
        (Dropped("not today"), "dropped", True),
        (ExchangeCancelled(), "cancelled", False),
    ],
)
def test_span_reports_the_error_type(end: Fact, kind: str, is_error: bool) -> None:
    shown = span(told(RECEIVED, end), {})
    assert values(shown)["error.type"] == kind
    assert ("status" in shown) == is_error


def test_values_are_written_as_otlp_has_them() -> None:
    written = attributes({"a": True, "b": 1, "c": 1.5, "d": ["x"], "e": "y", "f": None, "g": ""})
    assert written == [
        {"key": "a", "value": {"boolValue": True}},
        {"key": "b", "value": {"intValue": "1"}},
        {"key": "c", "value": {"doubleValue": 1.5}},
        {"key": "d", "value": {"arrayValue": {"values": [{"stringValue": "x"}]}}},
        {"key": "e", "value": {"stringValue": "y"}},
    ]


def test_span_names_the_server_and_the_conversation() -> None:
    attempt = AttemptStarted(1, "acme", "aa", dialect="openai-chat", url="http://10.0.0.7:8080/v1/x?key=***")
    shown = values(span(told(RECEIVED, attempt, FINISHED), {}))
    assert (shown["server.address"], shown["server.port"]) == ("10.0.0.7", 8080)
    headers = (("X-Claude-Code-Session-Id", "s-9"),)
    for received, conversation in (
        (Received("anthropic", "m", "aa", headers=headers), "s-9"),
        (Received("anthropic", "m", "aa", session="label", headers=headers), "label"),
        (Received("anthropic", "m", "aa", session="chat", conversation="chat:t_1"), "chat:t_1"),
    ):
        assert values(span(told(received, FINISHED), {}))["gen_ai.conversation.id"] == conversation


def test_the_exchanges_of_a_session_are_one_trace() -> None:
    def trace(received: Received, exchange: str, at: float = NOON) -> str:
        facts = [FactEntry(exchange, n, at, fact) for n, fact in enumerate((received, FINISHED))]
        shown = span(facts, {})
        assert "parentSpanId" not in shown, "a session has no span of its own"
        return str(shown["traceId"])

    named = Received("anthropic", "m", "aa", headers=(("x-claude-code-session-id", "s-9"),))
    topic = Received("anthropic", "m", "aa", session="chat", conversation="chat:t_1")
    label = Received("anthropic", "m", "aa", session="blue")
    for received in (named, topic):
        assert trace(received, "x_1") == trace(received, "x_2", NOON + 2 * 86400)
    assert trace(label, "x_1") == trace(label, "x_2")
    assert trace(label, "x_1") != trace(label, "x_2", NOON + 86400), "a label may be in use for months"
    alone = Received("anthropic", "m", "aa")
    assert len({trace(named, "x_1"), trace(topic, "x_1"), trace(label, "x_1"), trace(alone, "x_1")}) == 4
    assert trace(alone, "x_1") != trace(alone, "x_2")


def test_a_streamed_exchange_says_when_its_first_chunk_came() -> None:
    received = Received("openai-chat", "large", "aa", is_stream=True)
    shown = values(span(told(received, ATTEMPT, FINISHED), {}, cost=0.25))
    assert shown["gen_ai.request.stream"] is True
    assert shown["gen_ai.response.time_to_first_chunk"] == 0.25
    assert shown["sightline.cost.usd"] == 0.25


def test_an_exchange_of_a_run_is_below_it() -> None:
    shown = span(told(RECEIVED, ATTEMPT, FINISHED), {}, "r_1")
    assert (shown["traceId"], shown["parentSpanId"]) == place_of("r_1")[:2]


REQUEST = Request(
    messages=(
        Message("system", (Text(text="Be brief."),)),
        Message("user", (Text(text="hi"), Image(source=Link("http://x")))),
        Message("assistant", (Thinking(text="hm"), Thinking(), ToolCall(id="c", name="ls", arguments="{}"))),
        Message("tool", (ToolResult(id="c", parts=(Text(text="a"), Text(text="b"))),)),
        Message("tool", (ToolResult(id="d", structured={"k": 1}),)),
    )
)


def test_instructions_stand_apart_from_the_conversation() -> None:
    assert system_parts(REQUEST) == [{"type": "text", "content": "Be brief."}]
    assert input_messages(REQUEST) == [
        {"role": "user", "parts": [{"type": "text", "content": "hi"}, {"type": "image"}]},
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "hm"},
                {"type": "thinking"},
                {"type": "tool_call", "id": "c", "name": "ls", "arguments": "{}"},
            ],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "ab"}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "d", "response": {"k": 1}}]},
    ]


def test_an_answer_says_why_it_ended() -> None:
    assert output_message(Choice(parts=(Refusal(text="no"),), finish="tool_calls")) == {
        "role": "assistant",
        "parts": [{"type": "text", "content": "no"}],
        "finish_reason": "tool_call",
    }
    assert output_message(Choice())["finish_reason"] == "error"


BEGAN = RunBegan(Request(model="m"), RunPlan(dialect="openai-chat"), "gemini", "s", {"conversation": "chat:t"})
CALL = RunnableCall(key="1.0", id="call_1", name="weigh", arguments={"what": "a stone"})


def test_a_run_is_a_span_with_what_its_rounds_took() -> None:
    replied = [Replied(Reply(usage=Usage(input_tokens=n, output_tokens=1))) for n in (5, 7)]
    facts = [(float(n), fact) for n, fact in enumerate((BEGAN, *replied, RunEnded("answered")))]
    shown = run_span("r_1", facts)
    assert (shown["traceId"], shown["spanId"]) == place_of("r_1")[:2]
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
def test_tool_span_includes_content_only_if_allowed(outcome: ToolOutcome, result: str) -> None:
    shown = tool_span("r_1", CALL, 1.0, 2.5, outcome, with_content=True)
    assert (shown["traceId"], shown["parentSpanId"]) == place_of("r_1")[:2]
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
    assert wrong["status"]["code"] == 2


async def test_a_run_with_its_requests_and_tools_is_one_trace(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        upstream.script = [plays(calls(count(1, "a"), count(2, "b"))), plays(says("Both."))]
        async with Upstream() as collector:
            collector.script = [answer(200, b"{}")]
            exporter = Exporter(stage.client, collector.url, Metrics(0), stage.clock.now, version="9")
            record = stage.hub._record
            stage.hub._record = lambda entries: (record(entries), exporter.took(entries))[0]
            stage.hub.observer = exporter
            async with exporter:
                await stage.run(origin={"conversation": "chat:t"})
            told: dict[str, list[Any]] = {}
            for seen in collector.seen:
                told.setdefault(seen.target, []).append(seen.json())
        spans = [span for body in told["/v1/traces"] for span in body["resourceSpans"][0]["scopeSpans"][0]["spans"]]
        trace, above, _ = place_of("r_1")
        assert {span["traceId"] for span in spans} == {trace}
        assert sorted(span["name"] for span in spans) == [
            "chat m", "chat m", "execute_tool count", "execute_tool count", "invoke_agent sightline"
        ]  # fmt: skip
        assert len({span["spanId"] for span in spans}) == 5
        for each in spans:
            is_run = each["name"].startswith("invoke_agent")
            assert (each["spanId"] if is_run else each["parentSpanId"]) == above
            assert is_run == ("parentSpanId" not in each)
        asked = [values(span) for span in spans if not span["name"].startswith("execute_tool")]
        assert {each["gen_ai.conversation.id"] for each in asked} == {"chat:t"}
        chats = [each for each in asked if each["gen_ai.operation.name"] == "chat"]
        assert {(each["server.address"], each["server.port"]) for each in chats} == {("127.0.0.1", upstream.port)}
        (metrics,) = told["/v1/metrics"]
        names = [each["name"] for each in metrics["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]]
        assert names[:2] == ["gen_ai.client.token.usage", "gen_ai.client.operation.duration"]
