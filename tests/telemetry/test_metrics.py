import re
from typing import Any

import msgspec

from sightline.agent.core.facts import RunBegan, RunEnded
from sightline.agent.core.run import RunPlan
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import text_outcome
from sightline.catalog.facts import Prices
from sightline.model.exchange import AttemptStarted, Dropped, ExchangeCancelled, ExchangeFailed, Received
from sightline.model.request import Request
from sightline.store.entries import FactEntry, KeptEntry
from sightline.telemetry.metrics import (
    AGENT_DURATION,
    COST,
    DURATION,
    FIRST_CHUNK,
    INPUT,
    RETRIES,
    TOKENS,
    TOOL_DURATION,
    UNPRICED,
    Metrics,
)
from tests.telemetry.test_spans import FINISHED, RECEIVED, told, values

ATTEMPT = AttemptStarted(1, "acme", "aa", model="m", dialect="openai-chat", url="https://api.acme.example/v1/x")
SHARED = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "acme",
    "gen_ai.request.model": "m",
    "server.address": "api.acme.example",
    "server.port": 443,
}
ANSWERED = {**SHARED, "gen_ai.response.model": "acme-large-2"}


def points(metrics: Metrics, name: str) -> list[Any]:
    """The points of one metric so far."""
    metrics._is_new = True
    taken: Any = metrics.export_new(20.0)
    found = [each for each in taken if each["name"] == name]
    return [] if not found else found[0].get("histogram", found[0].get("sum"))["dataPoints"]


def test_tokens_and_times_are_histograms_of_the_conventions() -> None:
    metrics = Metrics(10.0)
    assert metrics.export_new(11.0) is None
    metrics.took(told(RECEIVED, ATTEMPT, FINISHED))
    metrics.took(told(RECEIVED, ATTEMPT, FINISHED))
    whole: Any = metrics.export_new(20.0)
    assert metrics.export_new(21.0) is None, "nothing is new"
    tokens, times = whole[:2]
    assert (tokens["name"], tokens["unit"]) == ("gen_ai.client.token.usage", "{token}")
    assert (times["name"], times["unit"]) == ("gen_ai.client.operation.duration", "s")
    assert tokens["histogram"]["aggregationTemporality"] == 2
    given, got = tokens["histogram"]["dataPoints"]
    assert values(given) == {**ANSWERED, "gen_ai.token.type": "input"}
    assert values(got) == {**ANSWERED, "gen_ai.token.type": "output"}
    assert (given["count"], given["sum"], given["min"], given["max"]) == ("2", 18, 9, 9)
    assert (given["startTimeUnixNano"], given["timeUnixNano"]) == ("10000000000", "20000000000")
    assert given["explicitBounds"][:4] == [1, 4, 16, 64]
    assert given["bucketCounts"][:4] == ["0", "0", "2", "0"]
    assert len(given["bucketCounts"]) == len(given["explicitBounds"]) + 1
    (time,) = times["histogram"]["dataPoints"]
    assert (time["count"], time["sum"]) == ("2", 2.0)
    assert values(time) == ANSWERED


def test_what_fails_is_timed_with_its_kind() -> None:
    metrics = Metrics(0.0)
    metrics.took(told(RECEIVED, ATTEMPT, ExchangeFailed("overloaded", "busy", elapsed=0.5)))
    metrics.took(told(RECEIVED, ExchangeCancelled()))
    metrics.took(told(RECEIVED, Dropped("no")))
    kinds = [values(each)["error.type"] for each in points(metrics, DURATION)]
    assert kinds == ["overloaded", "cancelled", "dropped"]
    assert points(metrics, TOKENS) == []


def test_the_first_chunk_is_timed_of_streams_alone() -> None:
    metrics = Metrics(0.0)
    metrics.took(told(RECEIVED, ATTEMPT, FINISHED))
    assert points(metrics, FIRST_CHUNK) == []
    streamed = Received("openai-chat", "large", "aa", is_stream=True)
    metrics.took(told(streamed, ATTEMPT, FINISHED))
    (point,) = points(metrics, FIRST_CHUNK)
    assert (values(point), point["sum"]) == (ANSWERED, 0.25)


def test_each_retry_counts_with_what_came_before_it() -> None:
    again = [
        AttemptStarted(number, "acme", "aa", reason=reason, model="m", dialect="openai-chat", url=ATTEMPT.url)
        for number, reason in ((2, "overloaded"), (3, "overloaded"), (4, "timeout"))
    ]
    metrics = Metrics(0.0)
    metrics.took(told(RECEIVED, ATTEMPT, *again, FINISHED))
    counted = {values(each)["error.type"]: each["asDouble"] for each in points(metrics, RETRIES)}
    assert counted == {"overloaded": 2, "timeout": 1}


def test_the_share_of_the_cache_follows_from_the_input_tokens() -> None:
    metrics = Metrics(0.0)
    metrics.took(told(RECEIVED, ATTEMPT, FINISHED))
    metrics.took(told(RECEIVED, ATTEMPT, FINISHED))
    counted = {values(each)["gen_ai.token.cache"]: each["asDouble"] for each in points(metrics, INPUT)}
    assert counted == {"read": 8, "none": 10}, "9 tokens a request, 4 of them from the cache"


def test_cost_is_added_up_and_what_has_no_price_is_counted_beside_it() -> None:
    asked: list[tuple[str, str]] = []

    def prices(provider: str, model: str) -> Prices | None:
        asked.append((provider, model))
        return Prices(input=1.0, output=2.0, cached=1.0) if model == "m" else None

    metrics = Metrics(0.0, prices)
    metrics.took(told(RECEIVED, ATTEMPT, FINISHED))
    assert asked == [("acme", "acme-large-2"), ("acme", "m")], "the model that answered, then the one that was asked"
    (point,) = points(metrics, COST)
    assert round(point["asDouble"] * 1e6, 6) == 9 * 1 + 2 * 2
    assert points(metrics, UNPRICED) == []
    unknown = AttemptStarted(1, "acme", "aa", model="new", dialect="openai-chat")
    metrics.took(told(Received("openai-chat", "new", "aa"), unknown, FINISHED))
    assert [each["asDouble"] for each in points(metrics, UNPRICED)] == [1]
    assert len(points(metrics, COST)) == 1


def test_runs_and_their_tools_are_timed() -> None:
    metrics = Metrics(0.0)
    began = RunBegan(Request(model="m"), RunPlan(dialect="openai-chat"), "gemini")
    metrics.observe_run("r_1", [(1.0, began)], 1)
    metrics.observe_run("r_1", [(1.0, began), (4.0, RunEnded("answered"))], 1)
    metrics.observe_run("r_2", [(1.0, began), (2.0, RunEnded("limit"))], 1)
    call = RunnableCall(key="1.0", id="c", name="weigh", arguments={})
    metrics.observe_tool("r_1", call, 1.0, 1.5, text_outcome("3 kg"))
    metrics.observe_tool("r_1", call, 1.0, 1.5, text_outcome("no", is_error=True))
    ended, reached = points(metrics, AGENT_DURATION)
    assert (values(ended)["gen_ai.provider.name"], ended["sum"]) == ("gcp.gemini", 3.0)
    assert values(reached)["error.type"] == "limit"
    right, wrong = points(metrics, TOOL_DURATION)
    assert (values(right)["gen_ai.tool.name"], right["sum"]) == ("weigh", 0.5)
    assert values(wrong)["error.type"] == "tool_error"


def test_names_that_clients_make_up_do_not_fill_the_memory() -> None:
    metrics = Metrics(0.0)
    for number in range(2100):
        attempt = AttemptStarted(1, "acme", "aa", model=f"m{number}", dialect="openai-chat")
        metrics.took(told(RECEIVED, attempt, ExchangeCancelled()))
    series = points(metrics, DURATION)
    assert len(series) == 2001
    assert (values(series[-1]), series[-1]["count"]) == ({"otel.metric.overflow": True}, "100")


def test_a_model_that_nothing_was_sent_to_is_no_label() -> None:
    metrics = Metrics(0.0)
    for name in ("a", "b"):
        metrics.took(told(Received("openai-chat", name, "aa"), ExchangeFailed("not_found", "no such model")))
    (point,) = points(metrics, DURATION)
    assert values(point) == {"gen_ai.operation.name": "chat", "error.type": "not_found"}


def test_an_exchange_that_began_before_is_not_counted() -> None:
    metrics = Metrics(0.0)
    metrics.took(told(RECEIVED, ATTEMPT, FINISHED)[1:])
    assert metrics.export_new(1.0) is None


LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)')


def test_prometheus_reads_the_same_counts_as_text() -> None:
    metrics = Metrics(0.0, lambda _provider, _model: Prices(input=1.0, output=2.0))
    odd = AttemptStarted(
        2, "acme", "aa", reason="overloaded", model='a "b"\\\n', dialect="openai-chat", url=ATTEMPT.url
    )
    metrics.took(told(RECEIVED, ATTEMPT, FINISHED))
    metrics.took(told(RECEIVED, odd, FINISHED))
    text = metrics.prometheus()
    assert text.endswith("\n")
    samples: dict[str, list[tuple[str, float]]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            found = LINE.fullmatch(line)
            assert found is not None, line
            samples.setdefault(found[1], []).append((found[2] or "", float(found[3])))
    assert "# TYPE gen_ai_client_operation_duration_seconds histogram" in text
    assert "# TYPE sightline_client_retries_total counter" in text
    assert [value for _, value in samples["sightline_client_retries_total"]] == [1]
    assert [value for _, value in samples["gen_ai_client_operation_duration_seconds_count"]] == [1, 1]
    buckets = samples["gen_ai_client_operation_duration_seconds_bucket"][:15]
    assert [value for _, value in buckets] == [0] * 7 + [1] * 8, "1 s, and each bucket has those below it"
    assert 'le="1.28"' in buckets[7][0]
    assert 'le="+Inf"' in buckets[-1][0]
    assert any(
        'gen_ai_request_model="a \\"b\\"\\\\\\n"' in labels for labels, _ in samples["sightline_client_cost_usd_total"]
    )


def test_a_label_is_never_longer_than_128_characters() -> None:
    metrics = Metrics(0.0)
    attempt = AttemptStarted(1, "acme", "aa", model="m" * 5000, dialect="openai-chat")
    metrics.took(told(RECEIVED, attempt, ExchangeCancelled()))
    assert len(values(points(metrics, DURATION)[0])["gen_ai.request.model"]) == 128


def test_metrics_of_several_processes_add_up() -> None:
    one, other, none, sum_of_all = Metrics(0.0), Metrics(0.0), Metrics(0.0), Metrics(0.0)
    one.took(told(RECEIVED, ATTEMPT, FINISHED))
    for _ in range(2):
        other.took(told(RECEIVED, ATTEMPT, FINISHED))
    other.took(told(RECEIVED, ATTEMPT, ExchangeFailed("overloaded", "busy", elapsed=0.5)))
    for each in (one, other, none):
        sum_of_all.add(each.pack())
    whole = Metrics(0.0)
    for _ in range(3):
        whole.took(told(RECEIVED, ATTEMPT, FINISHED))
    whole.took(told(RECEIVED, ATTEMPT, ExchangeFailed("overloaded", "busy", elapsed=0.5)))
    assert sum_of_all.prometheus() == whole.prometheus()


def test_what_no_one_asked_for_is_not_counted() -> None:
    metrics = Metrics(0.0, is_counting=False)
    began, *rest = told(RECEIVED, ATTEMPT, FINISHED)
    metrics.took([began])
    metrics.is_counting = True
    metrics.took(rest)
    assert metrics.export_new(1.0) is None, "half an exchange is none"
    metrics.took(told(RECEIVED, ATTEMPT, FINISHED))
    assert metrics.export_new(2.0) is not None


def test_encoded_entries_are_counted_while_anyone_counts() -> None:
    metrics = Metrics(0.0, is_counting=False)
    appended: list[bytes] = []
    recorded: list[KeptEntry] = []
    assert metrics.append_or_count(None, recorded.extend) is None
    append = metrics.append_or_count(appended.append, recorded.extend)
    assert append is not None
    entry = FactEntry("x_1", 0, 1.0, Dropped("no"))
    data = msgspec.msgpack.encode([entry])
    append(data)
    metrics.is_counting = True
    append(data)
    assert (appended, recorded) == ([data], [entry])
