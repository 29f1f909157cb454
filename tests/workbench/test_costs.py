"""Costs: sums by group, with what is not known beside them, and a provider's own account beside ours."""

import csv
import io
import json
from datetime import UTC, timedelta, timezone

import pytest

from sightline.catalog.facts import Prices
from sightline.errors import Fault
from sightline.store.summary import Summary
from sightline.workbench.costs import Accounting, CostsShown, to_csv
from sightline.workbench.reconcile import read_report, reconcile

NOON = 1_767_268_800.0  # 2026-01-01T12:00:00Z
PRICES = Prices(input=2.0, output=8.0, cached=0.5)


def answered(at: float = NOON, model: str = "m", cost: float | None = 0.001, **fields: object) -> Summary:
    values = {"state": "finished", "provider": "acme", "input_tokens": 400, "output_tokens": 25, **fields}
    return Summary(id=f"x_{at}", at=at, model=model, cost=cost, **values)  # type: ignore[arg-type]


def costs_of(*summaries: Summary, by: str = "day") -> CostsShown:
    accounting = Accounting(by.split(","), lambda provider, model: PRICES if model == "m" else None, UTC)
    for summary in summaries:
        accounting.add(summary)
    return accounting.result()


def test_costs_are_summed_by_day_and_model() -> None:
    found = costs_of(
        answered(), answered(NOON + 60), answered(NOON + 86_400), answered(model="n", cost=0.5), by="day,model"
    )
    assert [(row.keys, row.requests, row.cost) for row in found.rows] == [
        (("2026-01-01", "n"), 1, 0.5),
        (("2026-01-01", "m"), 2, 0.002),
        (("2026-01-02", "m"), 1, 0.001),
    ]
    assert (found.total.requests, found.total.input_tokens) == (4, 1600)


def test_the_prices_of_the_models_in_the_sum_are_named_with_their_source() -> None:
    dated = Prices(input=2.0, output=8.0, as_of="2026-11", source="https://acme/prices")
    accounting = Accounting((), lambda provider, model: dated if model == "m" else None, UTC)
    for summary in (answered(), answered(NOON + 1), answered(model="n", cost=None)):
        accounting.add(summary)
    (used,) = accounting.result().prices
    assert (used.provider, used.model, used.input, used.output) == ("acme", "m", 2.0, 8.0)
    assert (used.as_of, used.source) == ("2026-11", "https://acme/prices")


def test_a_day_is_that_of_the_zone() -> None:
    accounting = Accounting(("day",), lambda provider, model: None, timezone(timedelta(hours=13)))
    accounting.add(answered())
    assert accounting.result().rows[0].keys == ("2026-01-02",)


def test_what_is_not_known_is_counted_beside_the_sum() -> None:
    total = costs_of(
        answered(), answered(cost=None), answered(cost=None, input_tokens=None, output_tokens=None),
        answered(cost=None, input_tokens=None, output_tokens=None, state="failed"),
    ).total  # fmt: skip
    assert (total.cost, total.unpriced, total.uncounted, total.failed) == (0.001, 1, 1, 1)


def test_savings_are_what_cached_tokens_would_have_cost_more() -> None:
    total = costs_of(
        answered(input_tokens=1_000_000, cached_tokens=400_000), answered(model="n", cached_tokens=9)
    ).total
    assert total.saved == pytest.approx(0.4 * (2.0 - 0.5), abs=1e-12)
    assert costs_of(answered(cached_tokens=300)).total.cached_share == 0.75


def test_a_project_is_what_follows_the_at_sign_of_a_session() -> None:
    found = costs_of(answered(session="fix@shop"), answered(session="loose"), by="project")
    assert {row.keys for row in found.rows} == {("shop",), ("",)}


@pytest.mark.parametrize("by", ["colour", "day,model,client,session"])
def test_groups_that_do_not_exist_are_refused(by: str) -> None:
    with pytest.raises(Fault, match=r"grouped by"):
        costs_of(by=by)


def test_a_thousand_small_costs_add_up_exactly() -> None:
    assert costs_of(*(answered(cost=0.1) for _ in range(1000))).total.cost == 100.0


def test_csv_has_a_head_a_total_and_no_formula() -> None:
    text = to_csv(costs_of(answered(session="=1+1"), by="session"))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["session"] for row in rows] == ["'=1+1", "total"]
    assert rows[1]["cost"] == "0.001"


# --- a provider's account ---------------------------------------------------------------------------

OPENAI_USAGE = {"data": [{"start_time": 1_767_225_600, "results": [
    {"input_tokens": 400, "output_tokens": 25, "model": "m-2025-08-07"},
]}]}  # fmt: skip
OPENAI_COSTS = {"data": [{"start_time": 1_767_225_600, "results": [
    {"amount": {"value": 0.0006, "currency": "usd"}, "line_item": "m-2025-08-07, input"},
    {"amount": {"value": 0.0004, "currency": "usd"}, "line_item": "m-2025-08-07, output"},
]}]}  # fmt: skip
ANTHROPIC_USAGE = {"data": [{"starting_at": "2026-01-01T00:00:00Z", "results": [
    {"uncached_input_tokens": 100, "cache_read_input_tokens": 250, "output_tokens": 25, "model": "m",
     "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 30}},
]}]}  # fmt: skip
ANTHROPIC_COSTS = {"data": [{"starting_at": "2026-01-01T00:00:00Z", "results": [{"amount": "0.1", "model": "m"}]}]}
ANTHROPIC_TABLE = (
    "usage_date_utc,model_version,usage_input_tokens_no_cache,usage_input_tokens_cache_write_5m,"
    "usage_input_tokens_cache_write_1h,usage_input_tokens_cache_read,usage_output_tokens\n"
    "2026-01-01,m-20260101,100,20,30,250,25\n"
)
OPENAI_TABLE = (
    "start_time,end_time,start_time_iso,end_time_iso,model,input_tokens,output_tokens\n"
    "1767225600,1767312000,2026-01-01T00:00:00+00:00,2026-01-02T00:00:00+00:00,m-2025-08-07,400,25\n"
)
OPENAI_COST_TABLE = (
    "start_time,end_time,start_time_iso,end_time_iso,amount_value,amount_currency,line_item\n"
    '1767225600,1767312000,2026-01-01T00:00:00+00:00,2026-01-02T00:00:00+00:00,0.001,usd,"m-2025-08-07, input"\n'
)
TABLE = "Date,Model,Input Tokens,Output Tokens,Cost (USD)\n2026-01-01,m,400,25,$0.001\n"


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(json.dumps(OPENAI_USAGE), id="openai-usage"),
        pytest.param(json.dumps([OPENAI_COSTS]), id="openai-costs"),
        pytest.param(json.dumps(ANTHROPIC_USAGE), id="anthropic-usage"),
        pytest.param(json.dumps(ANTHROPIC_COSTS), id="anthropic-costs-in-cents"),
        pytest.param(ANTHROPIC_TABLE, id="anthropic-csv"),
        pytest.param(OPENAI_TABLE, id="openai-csv"),
        pytest.param(OPENAI_COST_TABLE, id="openai-costs-csv"),
        pytest.param(TABLE, id="csv"),
    ],
)
def test_a_report_that_agrees_has_no_difference(report: str) -> None:
    (only,) = reconcile(read_report(report.encode()), costs_of(answered(), by="day,model"))
    assert only.agrees
    assert (only.day, only.model, only.requests) == ("2026-01-01", "m", 1)


def test_a_difference_names_the_exchanges_behind_it() -> None:
    differences = reconcile(read_report(TABLE.encode()), costs_of(answered(), answered(NOON + 1), by="day,model"))
    assert not differences[0].agrees
    assert differences[0].input_tokens == (400, 800)
    assert differences[0].filter == "date:2026-01-01 & model:*m*"


def test_a_model_that_only_one_side_has_is_a_difference() -> None:
    table = "day,model,cost\n2026-01-01,other,5\n"
    differences = reconcile(read_report(table.encode()), costs_of(answered(), by="day,model"))
    assert [(each.model, each.cost) for each in differences] == [("m", (None, 0.001)), ("other", (5.0, 0.0))]
    assert not differences[1].agrees


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_the_lines_of_a_table_may_end_in_any_way(end: str) -> None:
    assert read_report(TABLE.replace("\n", end).encode()) == read_report(TABLE.encode())


def test_numbers_and_times_that_are_none_are_left_out() -> None:
    table = "day,model,input_tokens,output_tokens,cost\n2026-01-01,m,nan,25,inf\n"
    (only,) = read_report(table.encode())
    assert (only.input_tokens, only.output_tokens, only.cost) == (None, 25, None)
    late = {"data": [{"start_time": 1_767_225_600_000, "results": [{"model": "m"}]}, *OPENAI_USAGE["data"]]}
    assert [each.day for each in read_report(json.dumps(late).encode())] == ["2026-01-01"]


@pytest.mark.parametrize("report", ["", "{}", "[1]", "colour,model\nred,m\n", "day,model\nsoon,m\n", '{"data":[{}]}'])
def test_what_is_no_report_is_refused_with_what_is_read(report: str) -> None:
    with pytest.raises(Fault) as refused:
        read_report(report.encode())
    assert "CSV with a head" in refused.value.hint


def test_a_field_without_an_end_is_refused() -> None:
    with pytest.raises(Fault, match="the CSV cannot be read: field larger than field limit"):
        read_report(b'day,model,cost\n"' + b"x" * 200_000)
