import json
from typing import Any

import pytest

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
from sightline.model.usage import Usage
from sightline.store.entries import FactEntry
from sightline.telemetry.spans import attributes, span
from tests.store.traffic import NOON, chat_body, chat_stream, sha256

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


def test_what_was_said_is_told_only_with_bodies() -> None:
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
def test_what_went_wrong_is_told(end: Fact, kind: str, is_error: bool) -> None:
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


def test_the_server_and_the_conversation_are_told() -> None:
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


def test_an_exchange_of_a_run_is_below_it() -> None:
    shown = span(told(RECEIVED, ATTEMPT, FINISHED), {}, ("a" * 32, "b" * 16))
    assert (shown["traceId"], shown["parentSpanId"]) == ("a" * 32, "b" * 16)
