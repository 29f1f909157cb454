"""A provider's own account next to ours: its export of usage or costs, by day and model, and where the two differ.

It reads OpenAI's and Anthropic's usage and cost reports as JSON (a page as the API returns it, or a list of pages), and
comma-separated values whose header names a day, a model, and tokens or a cost.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from math import fsum, isfinite

import msgspec

from sightline.errors import Code, Fault
from sightline.model.json import Json
from sightline.wire.jsontext import decode
from sightline.workbench.costs import CostRow, CostsShown

_HINT = (
    "Give the JSON of OpenAI's or Anthropic's usage or cost report, or CSV with a head that names day, model, and "
    "input_tokens, output_tokens or cost."
)
_CENT = 0.01
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_SECONDS = re.compile(r"[0-9]{10}")
"""Seconds since 1970, as OpenAI's CSV has them."""

_LATEST = 32_503_680_000
"""The year 3000."""

# A dated name counts as the model's plain name: reports have `gpt-4o-2024-08-06` for requests with `gpt-4o`.
_DATED = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "day": ("day", "date", "usage_date", "usage_date_utc", "start_time", "starting_at"),
    "model": ("model", "model_version", "snapshot_id", "line_item"),
    "input_tokens": ("input_tokens", "prompt_tokens", "n_context_tokens_total"),
    "output_tokens": ("output_tokens", "completion_tokens", "n_generated_tokens_total", "usage_output_tokens"),
    "cost": ("cost", "cost_usd", "amount", "amount_value", "total_cost"),
}

_PARTS_OF_INPUT = (
    ("usage_input_tokens_no_cache", "uncached_input_tokens"),
    ("usage_input_tokens_cache_read", "cache_read_input_tokens"),
    ("usage_input_tokens_cache_write_5m", "cache_creation_ephemeral_5m_input_tokens"),
    ("usage_input_tokens_cache_write_1h", "cache_creation_ephemeral_1h_input_tokens"),
)
"""The columns of Anthropic's CSV, which has no total for the prompt: tokens read from the cache and written to it are
separate from the rest."""


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """What the provider reports for one model on one day; None for what its report leaves out."""

    day: str
    model: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One model on one day, as (theirs, ours). `filter` finds its exchanges; for the `estimated` ones the provider did
    not count the tokens."""

    day: str
    model: str
    input_tokens: tuple[int | None, int]
    output_tokens: tuple[int | None, int]
    cost: tuple[float | None, float]
    requests: int
    unpriced: int
    filter: str
    estimated: int = 0

    @property
    def agrees(self) -> bool:
        """Whether every number that the provider reports equals ours, to the cent."""
        tokens = (self.input_tokens, self.output_tokens)
        theirs, ours = self.cost
        return all(given in (None, own) for given, own in tokens) and (theirs is None or abs(theirs - ours) < _CENT)


def reconcile(reported: Iterable[Reported], ours: CostsShown) -> tuple[Difference, ...]:
    """Both accounts by day and model; `ours` must be grouped by these two. Models that only one side has on a reported
    day are included."""
    theirs = _sum_up(reported)
    own: dict[tuple[str, str], list[CostRow]] = {}
    for row in ours.rows:
        own.setdefault((row.keys[0], base_name(row.keys[1])), []).append(row)
    days = {each.day for each in theirs.values()}
    differences = []
    for day, model in sorted({*theirs, *(key for key in own if key[0] in days)}):
        given, rows = theirs.get((day, model), Reported(day=day, model=model)), own.get((day, model), [])
        differences.append(
            Difference(
                day=day,
                model=model,
                input_tokens=(given.input_tokens, sum(row.input_tokens for row in rows)),
                output_tokens=(given.output_tokens, sum(row.output_tokens for row in rows)),
                cost=(given.cost, fsum(row.cost for row in rows)),
                requests=sum(row.requests for row in rows),
                unpriced=sum(row.unpriced for row in rows),
                filter=f"date:{day} & model:*{model}*",
                estimated=sum(row.estimated for row in rows),
            )
        )
    return tuple(differences)


def base_name(model: str) -> str:
    """A model's name without provider and date."""
    return _DATED.sub("", model.rpartition("/")[2]).lower()


def _sum_up(reported: Iterable[Reported]) -> dict[tuple[str, str], Reported]:
    groups: dict[tuple[str, str], list[Reported]] = {}
    for each in reported:
        groups.setdefault((each.day, base_name(each.model)), []).append(each)
    return {
        (day, model): Reported(
            day=day,
            model=model,
            input_tokens=_sum_known(each.input_tokens for each in group),
            output_tokens=_sum_known(each.output_tokens for each in group),
            cost=None if all(each.cost is None for each in group) else fsum(each.cost or 0.0 for each in group),
        )
        for (day, model), group in groups.items()
    }


def _sum_known(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


# --- reading reports --------------------------------------------------------------------------------


def read_report(data: bytes) -> list[Reported]:
    """Read the rows of a provider's report. Raises a Fault if it is not one, or has nothing to compare."""
    text = data.decode("utf-8-sig", "replace").strip()
    try:
        rows = list(_read_json(decode(text.encode())) if text[:1] in ("{", "[") else _read_csv(text))
    except csv.Error as error:
        raise Fault(Code.USAGE, f"the CSV cannot be read: {error}", hint=_HINT) from None
    if not rows:
        raise Fault(Code.USAGE, "the report has no row with a day and a model", hint=_HINT)
    return rows


def _read_json(document: Json) -> Iterator[Reported]:
    pages = document if isinstance(document, list) else [document]
    for page in pages:
        buckets = page.get("data") if isinstance(page, dict) else None
        if not isinstance(buckets, list):
            raise Fault(Code.USAGE, "the JSON is not a usage or cost report", hint=_HINT)
        for bucket in buckets:
            if isinstance(bucket, dict):
                day = _day_of(bucket.get("starting_at") or bucket.get("start_time"))
                results = bucket.get("results") or bucket.get("result")
                for result in results if isinstance(results, list) else []:
                    if day and isinstance(result, dict):
                        yield from _read_result(day, result)


def _read_result(day: str, result: dict[str, Json]) -> Iterator[Reported]:
    """One result of a bucket: OpenAI's usage or cost, or Anthropic's."""
    amount = result.get("amount")
    if isinstance(amount, dict):  # OpenAI's costs: dollars, and `line_item` begins with the model
        yield Reported(day=day, model=_model_of_item(result.get("line_item")), cost=_number(amount.get("value")))
    elif amount is not None:  # Anthropic's costs: a decimal number of cents as text
        cents = _number(amount)
        model = result.get("model") or result.get("description")
        yield Reported(day=day, model=str(model or ""), cost=None if cents is None else cents / 100)
    else:
        yield _read_usage(day, result)


def _read_usage(day: str, result: dict[str, Json]) -> Reported:
    # Anthropic counts tokens read from and written to the cache separately from the rest of the input; OpenAI includes
    # them.
    parts = [result.get("uncached_input_tokens"), result.get("cache_read_input_tokens")]
    written = result.get("cache_creation")
    parts += list(written.values()) if isinstance(written, dict) else []
    counts = [part for part in parts if isinstance(part, int)]
    whole = result.get("input_tokens")
    return Reported(
        day=day,
        model=str(result.get("model") or ""),
        input_tokens=whole if isinstance(whole, int) else sum(counts) if counts else None,
        output_tokens=count if isinstance(count := result.get("output_tokens"), int) else None,
    )


def _model_of_item(item: Json) -> str:
    """The model of a line item, such as `gpt-4o-2024-08-06, input`."""
    return str(item or "").partition(",")[0].strip()


def _read_csv(text: str) -> Iterator[Reported]:
    rows = csv.DictReader(io.StringIO(text, newline=""))
    names = {
        re.sub(r"[^a-z0-9]+", "_", (name or "").strip().lower()).strip("_"): name for name in rows.fieldnames or ()
    }
    found = {field: next((names[name] for name in known if name in names), None) for field, known in _COLUMNS.items()}
    if found["day"] is None or found["model"] is None:
        raise Fault(Code.USAGE, "the head of the CSV names no day or no model", hint=_HINT)

    def number(row: Mapping[str, str | None], field: str) -> float | None:
        column = found[field]
        return None if column is None else _number(row.get(column))

    parts = [names[name] for known in _PARTS_OF_INPUT for name in known if name in names]

    def prompt(row: Mapping[str, str | None]) -> float | None:
        counts = [count for column in parts if (count := _number(row.get(column))) is not None]
        return number(row, "input_tokens") if not counts else sum(counts)

    for row in rows:
        day, model = _day_of(row.get(found["day"])), (row.get(found["model"]) or "").strip()
        asked, answered = prompt(row), number(row, "output_tokens")
        if day and model:
            yield Reported(
                day=day,
                model=_model_of_item(model),
                input_tokens=None if asked is None else int(asked),
                output_tokens=None if answered is None else int(answered),
                cost=number(row, "cost"),
            )


def _day_of(value: Json) -> str:
    """The day of a time in a report, in UTC, which providers use for billing. Empty if it is not a time."""
    if isinstance(value, str) and _SECONDS.fullmatch(value.strip()):
        value = int(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, UTC).date().isoformat() if 0 <= value <= _LATEST else ""
    found = _DAY.match(value.strip()) if isinstance(value, str) else None
    return found[0] if found else ""


def _number(value: Json) -> float | None:
    try:
        number = float(str(value).replace("$", "").replace(",", "").strip())
    except ValueError:
        return None
    return number if isfinite(number) else None  # a program may have written `nan` for an empty field
