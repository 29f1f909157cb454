"""The costs of recorded exchanges: tokens and money by day, model, provider, client, session, project or tag.

An unknown cost is never counted as zero: the exchanges without a known cost are counted separately. Tokens that the
provider did not count are in the sum as estimates, and the estimated part of the sum is also reported.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, tzinfo
from functools import lru_cache
from math import fsum

import msgspec

from sightline.catalog.problem import quote_word
from sightline.editing.masks import project_of
from sightline.errors import Code, Fault
from sightline.exchange.recording.records import read_summaries
from sightline.filters.expression import Expression, TextTerm, both, negate
from sightline.filters.parsing import parse
from sightline.model.reply import Usage
from sightline.store.store import Store
from sightline.store.summary import PriceList, Summary
from sightline.tokens.cost import savings_of
from sightline.web.bodies import Query

_MOST_GROUPS = 3
_COUNTING = re.compile(r"(?:/count_tokens|:countTokens|/input_tokens)/*(?:\?|$)")


class CostRow(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of one group. `keys` are its values in the requested order. `cost` is the sum of what is known;
    `estimated_cost` is the part of it for the `estimated` exchanges, whose tokens are estimates. `unpriced` exchanges
    have tokens whose cost is not known; `uncounted` ones were answered without a token count, and could not be
    estimated. `saved` is how much more the tokens from the cache would have cost."""

    keys: tuple[str, ...] = ()
    requests: int = 0
    failed: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    saved: float = 0.0
    unpriced: int = 0
    uncounted: int = 0
    estimated: int = 0
    estimated_cost: float = 0.0

    @property
    def cached_share(self) -> float | None:
        """The share of the input that came from the cache; None without input."""
        return self.cached_tokens / self.input_tokens if self.input_tokens else None


class PriceUsed(msgspec.Struct, frozen=True, kw_only=True):
    """The prices of a model of a provider in US dollars per million tokens, and when and where they were looked up. The
    user's own prices have no month."""

    provider: str
    model: str
    input: float | None
    output: float | None
    as_of: str
    source: str


class CostsShown(msgspec.Struct, frozen=True, kw_only=True):
    """The groups, the most expensive first but days in order, the sums of all, and the prices of their models."""

    by: tuple[str, ...]
    rows: tuple[CostRow, ...]
    total: CostRow
    prices: tuple[PriceUsed, ...] = ()


class _Sums:
    """The running sums of one group."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys = keys
        self.requests = self.failed = self.unpriced = self.uncounted = self.estimated = 0
        self.input = self.cached = self.output = 0
        self.costs: list[float] = []
        self.estimates: list[float] = []
        self.savings: list[float] = []

    def add(self, summary: Summary, saved: float | None, count: int = 1) -> None:
        self.requests += count
        self.failed += count * (summary.state == "failed")
        if only_counts(summary):
            return
        self.input += summary.input_tokens or 0
        self.cached += summary.cached_tokens or 0
        self.output += summary.output_tokens or 0
        self.estimated += count * summary.is_estimated
        if summary.cost is not None:
            self.costs.append(summary.cost)
            self.estimates += [summary.cost] if summary.is_estimated else []
        elif summary.input_tokens is not None or summary.output_tokens is not None:
            self.unpriced += count
        elif summary.state == "finished":
            self.uncounted += count
        if saved:
            self.savings.append(saved)

    def row(self) -> CostRow:
        """The sums; `fsum` adds a million small costs without a rounding error."""
        return CostRow(
            keys=self.keys,
            requests=self.requests,
            failed=self.failed,
            input_tokens=self.input,
            cached_tokens=self.cached,
            output_tokens=self.output,
            cost=fsum(self.costs),
            saved=fsum(self.savings),
            unpriced=self.unpriced,
            uncounted=self.uncounted,
            estimated=self.estimated,
            estimated_cost=fsum(self.estimates),
        )


def only_counts(summary: Summary) -> bool:
    """Whether the exchange only counts the tokens of a prompt, which is free and not a turn of a conversation."""
    return _COUNTING.search(summary.path) is not None


def add_up(summaries: Iterable[Summary]) -> CostRow:
    """The sums of these exchanges; savings that an older record does not contain are missing."""
    sums = _Sums(())
    for summary in summaries:
        sums.add(summary, summary.saved)
    return sums.row()


class Accounting:
    """Adds up exchanges. Days are those of `zone`; None is this machine's time zone, with daylight saving time."""

    def __init__(self, by: Sequence[str], prices: PriceList, zone: tzinfo | None = None) -> None:
        self._by = check_groups(by)
        self._prices = prices
        self._groups: dict[tuple[str, ...], _Sums] = {}
        self._total = _Sums(())
        self._models: dict[tuple[str, str], None] = {}
        self._readers = [group_readers(zone)[name] for name in self._by]

    async def add_all(self, store: Store, wanted: Expression, now: float) -> None:
        """Add all exchanges of a record that match a filter."""
        columns = [_COLUMNS.get(name, name) for name in self._by]
        found = None if "day" in columns else await store.sums(wanted, columns, now=now)
        if found is None:
            async for summary in read_summaries(store, wanted, now):
                self.add(summary)
            return
        for each in found:
            self.add(each.line, each.count)

    def add(self, summary: Summary, count: int = 1) -> None:
        """Add one exchange, or the sums of `count` exchanges of one kind."""
        saved = summary.saved if summary.saved is not None or not summary.cached_tokens else self._savings(summary)
        keys = tuple(read(summary) for read in self._readers)
        self._total.add(summary, saved, count)
        self._models[summary.provider, summary.model] = None
        if keys:
            self._groups.setdefault(keys, _Sums(keys)).add(summary, saved, count)

    def _savings(self, summary: Summary) -> float | None:
        """The savings of an exchange that was recorded before savings were."""
        usage = Usage(input_tokens=summary.input_tokens, output_tokens=0, cached_tokens=summary.cached_tokens)
        return savings_of(usage, self._prices(summary.provider, summary.model))

    def result(self) -> CostsShown:
        """The sums so far."""
        rows = [each.row() for each in self._groups.values()]
        if self._by[:1] == ("day",):
            rows.sort(key=lambda row: (row.keys[0], -row.cost, row.keys))
        else:
            rows.sort(key=lambda row: (-row.cost, -row.input_tokens, row.keys))
        return CostsShown(by=self._by, rows=tuple(rows), total=self._total.row(), prices=self._prices_used())

    def _prices_used(self) -> tuple[PriceUsed, ...]:
        """The current prices of the requested models."""
        found = ((provider, model, self._prices(provider, model)) for provider, model in sorted(self._models))
        return tuple(
            PriceUsed(
                provider=provider,
                model=model.removeprefix(f"{provider}/"),
                input=prices.input,
                output=prices.output,
                as_of=prices.as_of,
                source=prices.source,
            )
            for provider, model, prices in found
            if prices is not None
        )


def group_readers(zone: tzinfo | None) -> dict[str, Callable[[Summary], str]]:
    """The groups that requests can be summed by: how each is read from a summary. Days are those of this zone."""

    @lru_cache(maxsize=4096)
    def day(quarter: int) -> str:
        return datetime.fromtimestamp(quarter * 900, zone).date().isoformat()

    return {
        "day": lambda summary: day(int(summary.at // 900)),  # no time zone begins a day inside a quarter of an hour
        "model": lambda summary: summary.model,
        "provider": lambda summary: summary.provider,
        "client": lambda summary: summary.client,
        "session": lambda summary: summary.session,
        "project": lambda summary: project_of(summary.session),
        "tag": lambda summary: summary.tag,
        "origin": lambda summary: summary.origin,
    }


_COLUMNS = {"project": "session"}
"""The columns of a summary from which groups are read, if their names differ."""
GROUPS = ("day", "model", "provider", "client", "session", "project", "tag", "origin")


def check_groups(by: Sequence[str]) -> tuple[str, ...]:
    """The names of groups without repetition. Raises a Fault for an unknown one, or for too many."""
    names = tuple(dict.fromkeys(name.strip() for name in by if name.strip()))
    for name in names:
        if name not in GROUPS:
            hint = f"There are {', '.join(GROUPS)}."
            raise Fault(Code.INVALID_REQUEST, f"costs are not grouped by {quote_word(name)}", hint=hint)
    if len(names) > _MOST_GROUPS:
        hint = f"Name at most {_MOST_GROUPS}."
        raise Fault(Code.INVALID_REQUEST, "costs are grouped by too many values", hint=hint)
    return names


_OF_EVALS = TextTerm("session", "eval:*")
_IS_HELD = TextTerm("state", "held")


def list_filter(query: Query) -> Expression:
    """The filter of a query. With `evals=0`, it excludes the requests of eval runs and their judges, except held ones,
    which wait for a decision; with `evals=only`, it matches only these."""
    wanted = parse(query.text("filter"))
    hidden = both(_OF_EVALS, negate(_IS_HELD))
    match query.text("evals"):
        case "0":
            return both(wanted, negate(hidden))
        case "only":
            return both(wanted, hidden)
        case _:
            return wanted


def to_csv(costs: CostsShown) -> str:
    """The groups and the total as comma-separated values with a header."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    fields = [name for name in CostRow.__struct_fields__ if name != "keys"]
    writer.writerow([*costs.by, *fields])
    for row in (*costs.rows, costs.total):
        keys = row.keys or ("total",) * len(costs.by)
        writer.writerow([*(plain(key) for key in keys), *(getattr(row, name) for name in fields)])
    return out.getvalue()


def plain(text: str) -> str:
    """The text in a form that no spreadsheet takes for a formula: session names come from clients."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


async def report_costs(store: Store, prices: PriceList, now: Callable[[], float], query: Query) -> CostsShown:
    """The HTTP call `GET /api/costs?by=day,model&filter=…`: the costs of the exchanges that match a filter, in
    groups."""
    accounting = Accounting((query.text("by") or "day").split(","), prices)
    wanted = list_filter(query)
    await store.settle()
    await accounting.add_all(store, wanted, now())
    return accounting.result()
