from typing import Any

from sightline.model.exchange import AttemptStarted, Dropped, ExchangeCancelled, ExchangeFailed
from sightline.telemetry.metrics import DURATION, TOKENS, Metrics
from tests.telemetry.test_spans import FINISHED, RECEIVED, told, values

ATTEMPT = AttemptStarted(1, "acme", "aa", model="m", dialect="openai-chat", url="https://api.acme.example/v1/x")


def points(metrics: Metrics, name: str) -> list[Any]:
    taken = metrics.export_new(20.0)
    assert taken is not None
    found: list[Any] = [each for each in taken if each["name"] == name]  # type: ignore[index,call-overload]
    return [] if not found else found[0]["histogram"]["dataPoints"]


def test_tokens_and_times_are_histograms_of_the_conventions() -> None:
    metrics = Metrics(10.0)
    assert metrics.export_new(11.0) is None
    metrics.count(told(RECEIVED, ATTEMPT, FINISHED))
    metrics.count(told(RECEIVED, ATTEMPT, FINISHED))
    whole: Any = metrics.export_new(20.0)
    assert metrics.export_new(21.0) is None, "nothing is new"
    tokens, times = whole
    assert (tokens["name"], tokens["unit"]) == ("gen_ai.client.token.usage", "{token}")
    assert (times["name"], times["unit"]) == ("gen_ai.client.operation.duration", "s")
    assert tokens["histogram"]["aggregationTemporality"] == 2
    given, got = tokens["histogram"]["dataPoints"]
    shared = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "acme",
        "gen_ai.request.model": "m",
        "gen_ai.response.model": "acme-large-2",
        "server.address": "api.acme.example",
        "server.port": 443,
    }
    assert values(given) == {**shared, "gen_ai.token.type": "input"}
    assert values(got) == {**shared, "gen_ai.token.type": "output"}
    assert (given["count"], given["sum"], given["min"], given["max"]) == ("2", 18, 9, 9)
    assert (given["startTimeUnixNano"], given["timeUnixNano"]) == ("10000000000", "20000000000")
    assert given["explicitBounds"][:4] == [1, 4, 16, 64]
    assert given["bucketCounts"][:4] == ["0", "0", "2", "0"]
    assert len(given["bucketCounts"]) == len(given["explicitBounds"]) + 1
    (time,) = times["histogram"]["dataPoints"]
    assert (time["count"], time["sum"]) == ("2", 2.0)
    assert values(time) == shared


def test_what_fails_is_timed_with_its_kind() -> None:
    metrics = Metrics(0.0)
    metrics.count(told(RECEIVED, ATTEMPT, ExchangeFailed("overloaded", "busy", elapsed=0.5)))
    metrics.count(told(RECEIVED, ExchangeCancelled()))
    metrics.count(told(RECEIVED, Dropped("no")))
    kinds = [values(each)["error.type"] for each in points(metrics, DURATION)]
    assert kinds == ["overloaded", "cancelled", "dropped"]
    metrics.count(told(RECEIVED, Dropped("no")))
    assert points(metrics, TOKENS) == []


def test_names_that_clients_make_up_do_not_fill_the_memory() -> None:
    metrics = Metrics(0.0)
    for number in range(2100):
        attempt = AttemptStarted(1, "acme", "aa", model=f"m{number}", dialect="openai-chat")
        metrics.count(told(RECEIVED, attempt, ExchangeCancelled()))
    assert len(points(metrics, DURATION)) == 2000
