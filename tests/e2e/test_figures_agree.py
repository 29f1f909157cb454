"""One answer, and its tokens and cost wherever they are shown: they are the same everywhere.

It is an answer of an eval, so that all of them see it: the record, the commands, the page's calls, the exports, the
collector and Prometheus, the caps, and the eval's own report. Another model answers than was asked for, at other
prices; part of the prompt is cached, written for five minutes and for an hour; a tier, a region's host, searches and
reasoning are charged, too.
"""

import csv
import io
import json
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest

from tests.background import upstream_in_background
from tests.gateway_server import Served, served
from tests.server_process import PROGRAM
from tests.telemetry.test_spans import values
from tests.upstream import says

CONFIG = """
[providers.acme]
dialect = "anthropic"
base_url = "{url}"
key_env = ""
[providers.acme.charges]
tiers = {{ priority = 1.5 }}
hosts = {{ "127.0.0.1" = "regional" }}
regions = {{ regional = 2.0 }}
tools = {{ web_search = 10.0 }}
[models."acme/asked"]
prices = {{ input = 1.0, output = 5.0 }}
[models."acme/answers"]
prices = {{ input = 4.0, output = 20.0, cached = 0.4, cache_write = 5.0, cache_write_1h = 8.0 }}
[telemetry]
otlp_endpoint = "{collector}"
[[caps]]
name = "month"
window = "month"
dollars = 100
[[caps]]
name = "tokens"
window = "month"
tokens = 1_000_000
"""
SUITE = "tests:\n  - id: one\n    input: hi\n    assertions: [{type: contains, value: Hi}]\n"
USAGE = {
    "input_tokens": 1_000,
    "cache_read_input_tokens": 2_000,
    "cache_creation_input_tokens": 3_000,
    "cache_creation": {"ephemeral_5m_input_tokens": 1_000, "ephemeral_1h_input_tokens": 2_000},
    "output_tokens": 400,
    "server_tool_use": {"web_search_requests": 3},
    "service_tier": "priority",
}
REPLY = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "answers",
    "content": [{"type": "text", "text": "Hi."}],
    "stop_reason": "end_turn",
    "usage": USAGE,
}
INPUT, CACHED, WRITTEN, OUTPUT = 6_000, 2_000, 3_000, 400
TOKENS = 1_000 * 4.0 + 2_000 * 0.4 + 1_000 * 5.0 + 2_000 * 8.0 + 400 * 20.0
COST = TOKENS * 1.5 * 2.0 / 1e6 + 3 * 10.0 / 1e3


class Figures(NamedTuple):
    """What one place says. A place that says less has None for the rest."""

    input: int | None
    output: int | None
    cost: float
    cached: int | None = None
    saved: float | None = None


EXPECTED = Figures(INPUT, OUTPUT, COST, CACHED, 2_000 * (4.0 - 0.4) * 1.5 * 2.0 / 1e6)


def command(folder: Path, *words: str) -> str:
    """The output of a command in this folder."""
    places = ("--data", str(folder / "data"), "--config", str(folder / "sightline.toml"))
    done = subprocess.run([*PROGRAM, *words, *places], cwd=folder, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stderr
    return done.stdout


def counts_in(row: dict[str, Any]) -> Figures:
    """The figures of a row that has them under the names of the record."""
    return Figures(row["input_tokens"], row["output_tokens"], row["cost"], row["cached_tokens"], row.get("saved"))


def in_the_api(running: Served) -> dict[str, Figures]:
    (line,) = running.api("/api/exchanges")["exchanges"]
    shown, costs = running.api(f"/api/exchanges/{line['id']}"), running.api("/api/costs?by=model")
    session = running.api(f"/api/sessions/{line['id']}")
    dollars, tokens = (cap["buckets"][0]["spent"] for cap in running.api("/api/caps")["caps"])
    (run,) = running.api("/api/evals")
    (target,) = run["summary"]
    cell = running.api(f"/api/evals/{run['run']}")["matrix"][0]["cells"][0]["trials"][0]
    return {
        "list": counts_in(line),
        "exchange": Figures(shown["tokens"]["input_tokens"], shown["tokens"]["output_tokens"], shown["cost"]),
        "costs": counts_in(costs["rows"][0]),
        "total of costs": counts_in(costs["total"]),
        "session": counts_in(session),
        "caps": Figures(round(tokens) - OUTPUT, OUTPUT, dollars),
        "eval": Figures(target["tokens"] - OUTPUT, OUTPUT, target["cost"]),
        "trial": Figures(None, None, cell["cost"]),
    }


def in_the_metrics(running: Served) -> Figures:
    """What Prometheus scrapes."""
    text = running.data("/api/metrics").decode()

    def value(name: str, label: str = "") -> float:
        (found,) = re.findall(rf"^{name}{{[^}}]*{label}[^}}]*}} (\S+)$", text, re.MULTILINE)
        return float(found)

    used = [int(value("gen_ai_client_token_usage_sum", f'gen_ai_token_type="{kind}"')) for kind in ("input", "output")]
    cached = int(value("sightline_client_input_tokens_total", 'gen_ai_token_cache="read"'))
    return Figures(used[0], used[1], value("sightline_client_cost_usd_total"), cached)


def in_the_span(reported: list[tuple[str, Any]]) -> Figures:
    """What the collector got of the exchange."""
    traces = [body for path, body in reported if path == "/v1/traces"]
    spans = [span for body in traces for span in body["resourceSpans"][0]["scopeSpans"][0]["spans"]]
    (told,) = [found for found in map(values, spans) if found.get("gen_ai.operation.name") == "chat"]
    names = ("input_tokens", "output_tokens", "cache_read.input_tokens")
    usage = [int(told.get(f"gen_ai.usage.{name}", 0)) for name in names]
    return Figures(usage[0], usage[1], told["sightline.cost.usd"], usage[2])


def in_the_commands(folder: Path, exchange: str) -> dict[str, Figures]:
    line = json.loads(command(folder, "traffic", "--json"))
    costs = json.loads(command(folder, "costs", "--as", "json"))
    table = command(folder, "costs", "--as", "csv")
    day, total = (
        {name: float(cell) for name, cell in row.items() if name != "day"} for row in csv.DictReader(io.StringIO(table))
    )
    shown = command(folder, "show", exchange)
    counted = re.search(r"tokens +([\d,]+) in, ([\d,]+) of them cached, ([\d,]+) out\ncost +\$(\S+)", shown)
    assert counted is not None, shown
    return {
        "traffic": counts_in(line),
        "show": Figures(_whole(counted[1]), _whole(counted[3]), float(counted[4]), _whole(counted[2])),
        "costs by day": counts_in(costs["rows"][0]),
        "costs in all": counts_in(costs["total"]),
        "costs by day in CSV": counts_in(day),
        "costs in all in CSV": counts_in(total),
    }


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


def in_the_exports(folder: Path) -> dict[str, Figures]:
    """What is told in each form; the archive by what it says once it is read into another record."""
    page = command(folder, "export", "--as", "html")
    counted = re.search(r"<dd>([\d,]+) input, ([\d,]+) output, ([\d,]+) cached.*?<dt>cost</dt><dd>\$([\d.]+)", page)
    assert counted is not None
    text = command(folder, "export", "--as", "markdown")
    written = re.search(r"([\d,]+) → ([\d,]+) tokens · \$([\d.]+)", text)
    assert written is not None
    command(folder, "export", "-o", "archive.jsonl")
    other = folder / "other"
    other.mkdir()
    for name in ("sightline.toml", "archive.jsonl"):
        (other / name).write_bytes((folder / name).read_bytes())
    command(other, "import", "archive.jsonl")
    return {
        "HTML": Figures(_whole(counted[1]), _whole(counted[2]), float(counted[4]), _whole(counted[3])),
        "Markdown": Figures(_whole(written[1]), _whole(written[2]), float(written[3])),
        "archive": counts_in(json.loads(command(other, "traffic", "--json"))),
    }


def in_the_eval(folder: Path) -> dict[str, Figures]:
    """What the eval's own files say."""
    result = json.loads((folder / "out" / "results.jsonl").read_text())
    usage = result["result"]["observation"]["usage"]
    row = json.loads((folder / "out" / "index.jsonl").read_text())
    used = row["token_usage"]
    suite = ElementTree.parse(folder / "out" / "junit.xml").getroot()
    told = {each.get("name"): each.get("value") for each in suite.iter("property")}
    (target,) = json.loads((folder / "out" / "summary.json").read_text())
    return {
        "results.jsonl": Figures(result["input_tokens"], result["output_tokens"], result["cost_usd"]),
        "usage in results.jsonl": Figures(
            INPUT, OUTPUT, result["result"]["observation"]["cost"], usage["cached_tokens"]
        ),
        "index.jsonl": Figures(used["input"], used["output"], row["cost_usd"], used["cached"]),
        "junit.xml": Figures(
            int(told["input_tokens"] or 0), int(told["output_tokens"] or 0), float(told["cost_usd"] or 0)
        ),
        "summary.json": Figures(*(target[name]["total"] for name in ("input_tokens", "output_tokens", "cost"))),
    }


def test_tokens_and_cost_of_one_answer_are_the_same_wherever_they_are_shown(tmp_path: Path) -> None:
    (tmp_path / "a.eval.yaml").write_text(SUITE)
    with upstream_in_background() as upstream, upstream_in_background() as collector:
        upstream.script, collector.script = [says(REPLY)], [says({})]
        with served(tmp_path, CONFIG.format(url=upstream.url, collector=collector.url)) as running:
            command(tmp_path, "eval", "run", "a.eval.yaml", "--target", "acme/asked", "--output", "out")
            exchange = running.api("/api/exchanges")["exchanges"][0]["id"]
            found = {**in_the_api(running), "Prometheus": in_the_metrics(running)}
        found["OpenTelemetry"] = in_the_span([(seen.target, json.loads(seen.body)) for seen in collector.seen])
    found |= {**in_the_commands(tmp_path, exchange), **in_the_exports(tmp_path), **in_the_eval(tmp_path)}
    wrong = {
        place: figures
        for place, figures in found.items()
        if any(
            said is not None and said != pytest.approx(meant, abs=1e-9)
            for said, meant in zip(figures, EXPECTED, strict=True)
        )
    }
    assert not wrong, f"it took {EXPECTED}"
    assert len(found) == 24


def test_an_answer_that_the_provider_did_not_count_is_estimated_alike_everywhere_and_marked(tmp_path: Path) -> None:
    uncounted = {name: value for name, value in REPLY.items() if name != "usage"}
    with upstream_in_background() as upstream, upstream_in_background() as collector:
        upstream.script, collector.script = [says({**uncounted, "model": "asked"})], [says({})]
        with served(tmp_path, CONFIG.format(url=upstream.url, collector=collector.url)) as running:
            command(tmp_path, "ask", "--model", "acme/asked", "How are you today?")
            (line,) = running.api("/api/exchanges")["exchanges"]
            costs, session = running.api("/api/costs?by=model")["total"], running.api(f"/api/sessions/{line['id']}")
            shown = running.api(f"/api/exchanges/{line['id']}")
            (listed,) = running.api("/api/sessions")["sessions"]
        span = in_the_span([(seen.target, json.loads(seen.body)) for seen in collector.seen])
    assert line["is_estimated"]
    assert shown["tokens"]["is_estimated"]
    meant = Figures(line["input_tokens"], line["output_tokens"], line["cost"])
    assert meant.cost == pytest.approx((meant.input * 1.0 + meant.output * 5.0) * 2.0 / 1e6, abs=1e-12)
    assert span[:3] == pytest.approx(meant[:3], abs=1e-12)
    places = [costs, session, listed, json.loads(command(tmp_path, "costs", "--as", "json"))["total"]]
    for sums in places:
        assert (sums["input_tokens"], sums["output_tokens"]) == meant[:2]
        assert sums["cost"] == sums["estimated_cost"] == pytest.approx(meant.cost, abs=1e-12)
    assert f"~${meant.cost:.6f}" in command(tmp_path, "export", "--as", "markdown")
    assert f"~{meant.input}→{meant.output}" in command(tmp_path, "traffic")
