"""The summary of an exchange: folded from its facts, stored as a row, and matched by filters.

The fields of `Summary` are the columns of the table: what is written, read and checked follows from them. A new column
needs a field and a line of `_apply_fact` here, and a migration for each database. A line of `filters/fields.py` with
its name makes it a field of filters and rules, and lists can be sorted by it. A column that depends on the content of
the request needs only the field here: its value is a field of `Digest` with the same name, and what the databases store
of it is in `DIGEST_COLUMNS` and `columns_of_digest` (`digest.py`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from math import nan
from operator import itemgetter, or_
from typing import Any, NamedTuple, TypeAlias, assert_never, get_type_hints

import msgspec

from sightline.catalog.catalog import Catalog, facts_of, prices_at_address
from sightline.catalog.facts import Prices
from sightline.filters import fields
from sightline.filters.predicate import Value
from sightline.model.exchange import (
    Answered,
    AttemptStarted,
    BodyPassed,
    Budgeted,
    Dropped,
    Edited,
    ExchangeCancelled,
    ExchangeFailed,
    ExchangeFinished,
    Fact,
    FrameArrived,
    Held,
    Received,
    Released,
    ReplyStored,
    State,
    Translated,
)
from sightline.model.header_names import tag_of
from sightline.model.reply import Usage
from sightline.store.digest import DIGEST_COLUMNS, Digest, storable
from sightline.store.entries import BodyEntry, Entry, FactEntry
from sightline.store.whole import RequestHead, WholeExchange
from sightline.tokens.cost import cost_of, savings_of


class Summary(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One line about an exchange. `at` is when it was received; `status` what the client got; token counts are the
    provider's own. `previous` is the exchange whose conversation this one continues; `is_side` marks a side request of
    the client (for a title, or to choose a model). `method` is that of a raw request. `transport` is http, websocket or
    tls. `stored` is the fingerprint of the client for which a translated reply is stored. `saved` is how much more the
    tokens from the cache would have cost, in US dollars. `is_masked`: kept edits changed the request. `is_estimated`:
    tokens and cost are estimates, because the provider did not count them."""

    id: str
    at: float
    state: State = "received"
    dialect: str = ""
    provider: str = ""
    model: str = ""
    session: str = ""
    client: str = ""
    path: str = ""
    status: int = 0
    finish: str = ""
    fault: str = ""
    message: str = ""
    is_stream: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None
    losses: int = 0
    attempts: int = 0
    tools: tuple[str, ...] = ()
    first_byte: float | None = None
    elapsed: float | None = None
    origin: str = ""
    method: str = ""
    transport: str = ""
    stored: str = ""
    tag: str = ""
    saved: float | None = None
    is_masked: bool = False
    is_estimated: bool = False
    previous: str = ""
    is_side: bool = False
    title: str = ""


class SummedExchanges(msgspec.Struct, frozen=True):
    """A number of exchanges of one kind: `line` has the values that they share, and the sums of their tokens, costs and
    savings."""

    count: int
    line: Summary


NAMES = Summary.__struct_fields__
"""The columns of the table, which have the same names in every database."""
_OF_DIGEST = tuple(name for name in NAMES if name in DIGEST_COLUMNS)
DIGESTED = ("previous", *_OF_DIGEST)
"""The columns that are read from the request."""
FOLDED = tuple(name for name in NAMES if name not in ("id", *DIGESTED))
"""The columns that are computed only from facts."""

FIELDS: Mapping[str, str] = {
    field.name: field.column or field.name for field in fields.FIELDS if (field.column or field.name) in NAMES
} | {"at": "at"}
"""The column for each field name of filters."""
_VALUES = itemgetter(*FOLDED)
_DEFAULTS = {each.name: each.default for each in msgspec.structs.fields(Summary) if each.name in FOLDED} | {"at": 0.0}
_TOOLS = FOLDED.index("tools")
_TYPES = [get_type_hints(Summary)[name] for name in FOLDED]
_COUNTS = [index for index, kind in enumerate(_TYPES) if kind in (int, int | None)]
_TEXTS = [index for index, kind in enumerate(_TYPES) if kind is str or index == _TOOLS]
_texts_in, _counts_in = itemgetter(*_TEXTS), itemgetter(*_COUNTS)
_LARGEST = 2**63 - 1

PriceList: TypeAlias = Callable[[str, str], Prices | None]
"""Returns the prices of a provider's model; None if they are not known."""
Row: TypeAlias = list[str | int | float | None]


def row_of(columns: Mapping[str, Any]) -> Row:
    """The values of the columns in `FOLDED`, as databases store them; tools are a JSON list."""
    return _make_storable(list(_VALUES(columns)))


def _make_storable(row: list[Any]) -> Row:
    row[_TOOLS] = msgspec.json.encode([storable(name) for name in row[_TOOLS]]).decode() if row[_TOOLS] else "[]"
    texts = "".join(_texts_in(row))  # one check of all texts is usually enough
    if not texts.isascii() or "\0" in texts:
        for index in _TEXTS:
            row[index] = storable(str(row[index]))
    # The OR of all counts is negative if one of them is, and large if one of them is.
    if not 0 <= reduce(or_, filter(None, _counts_in(row)), 0) <= _LARGEST:
        for index in _COUNTS:
            row[index] = row[index] and _clamp(row[index])
    return row


HEAD_COLUMNS = (
    "dialect", "provider", "model", "session", "client", "path", "origin", "method", "transport", "tag", "is_stream",
    "attempts",
)  # fmt: skip
"""The columns of `columns_of_head`."""
SHARED_COLUMNS = "status", "finish", "message", "tools", "is_estimated"
OWN_COLUMNS = "at", "input_tokens", "output_tokens", "cached_tokens", "cost", "first_byte", "elapsed", "saved"
"""The columns of `row_of_whole`: those whose values many exchanges share, and the others."""
WHOLE_VALUES = {"state": "'finished'", "fault": "''", "losses": "0", "stored": "''", "is_masked": "0"}
"""The columns that always have the same value, as SQL."""


def row_of_whole(whole: WholeExchange, prices: PriceList) -> tuple[tuple[int | str, ...], list[Any]]:
    """The values that `row_of` would compute from the facts of this exchange, without those of its head, in a third of
    the time. True is 1 here, and a missing number is NaN, which SQLite stores as NULL: `sqlite3` looks for an adapter
    of each `bool` and `None`, which takes half a microsecond or more."""
    head, finished = whole.head, whole.finished.fact
    usage = finished.usage or _NOT_COUNTED
    asked, written, cached = usage.input_tokens, usage.output_tokens, usage.cached_tokens
    cost: float | None = None
    saved: float | None = None
    if usage is not _NOT_COUNTED:
        models = finished.model, head.attempt.model, head.received.model
        found = find_prices(prices, head.attempt.provider, models, head.attempt.url)
        if found is not None or usage.cost is not None:
            cost, saved = _cost_of(usage, found), savings_of(usage, found)
    tools = msgspec.json.encode(list(map(storable, finished.tools))).decode() if finished.tools else "[]"
    finish, message, status = finished.finish, finished.warning, finished.status
    if message or not finish.isascii() or "\0" in finish:
        finish, message = storable(finish), storable(message)
    # The OR of all counts is negative if one of them is, and large if one of them is.
    if not 0 <= status | (asked or 0) | (written or 0) | (cached or 0) <= _LARGEST:
        status = _clamp(status)
        asked, written, cached = (each and _clamp(each) for each in (asked, written, cached))
    return (status, finish, message, tools, +usage.is_estimated), [
        whole.received.at, nan if asked is None else asked, nan if written is None else written,
        nan if cached is None else cached, nan if cost is None else cost, finished.first_byte, finished.elapsed,
        nan if saved is None else saved,
    ]  # fmt: skip


def _cost_of(usage: Usage, prices: Prices | None) -> float | None:
    cost = cost_of(usage, prices)
    return None if cost is None else cost.dollars


def _clamp(count: int) -> int:
    return max(-_LARGEST, min(count, _LARGEST))


def columns_of_head(head: RequestHead) -> tuple[str | int, ...]:
    """The column values that the exchanges with this head share."""
    if head.columns:
        return head.columns
    received, attempt = head.received, head.attempt
    texts = [
        received.dialect, attempt.provider, received.model, received.session, received.client, received.path,
        received.origin, received.method, received.transport, head.tag,
    ]  # fmt: skip
    if not "".join(texts).isascii() or "\0" in "".join(texts):
        texts = list(map(storable, texts))
    head.columns = *texts, +received.is_stream, _clamp(max(0, attempt.number))
    return head.columns


def summary_in(row: Sequence[str | int | float | None]) -> Summary:
    """The summary with these values, in the order of `NAMES`."""
    values = dict(zip(NAMES, row, strict=True))
    values["tools"] = msgspec.json.decode(str(values["tools"]))
    return msgspec.convert(values, Summary, strict=False)


class ExchangeSubject:
    """An exchange as a filter sees it. `says` returns whether a pattern occurs in its request's new words or in its
    reply."""

    def __init__(self, summary: Summary, says: Callable[[str], bool]) -> None:
        self.summary = summary
        self.says = says

    def value(self, name: str) -> Value:
        """The value of a field; None for a status that has not arrived."""
        column = FIELDS.get(name)
        value: Value = None if column is None else getattr(self.summary, column)
        return None if name == "status" and value == 0 else value


def price_list(catalog: Catalog) -> PriceList:
    """The prices in a catalogue; each is looked up once."""

    @lru_cache(maxsize=1024)
    def prices(provider: str, model: str) -> Prices | None:
        return facts_of(catalog, provider, model).prices

    return prices


@lru_cache(maxsize=256)
def find_prices(prices: PriceList, provider: str, models: tuple[str, ...], url: str) -> Prices | None:
    """The prices of the first of these models that has any, for the URL to which the request was sent; None if none
    has."""
    named = (prices(provider, name) for name in dict.fromkeys(models) if name)
    found = next((found for found in named if found is not None), None)
    return None if found is None else prices_at_address(found, url)


def fold_facts(facts: Iterable[FactEntry], prices: PriceList) -> dict[str, Any]:
    """The columns in `FOLDED` of the exchange with these facts, which are in order; frames may be left out."""
    columns, sent = _DEFAULTS.copy(), _NOT_SENT
    for entry in facts:
        if type(entry.fact) is AttemptStarted:
            sent = entry.fact
        _apply_fact(columns, entry, sent, prices)
    return columns


def summary_of(exchange: str, facts: Iterable[FactEntry], prices: PriceList) -> Summary:
    """The summary of the exchange with these facts, which are in order; frames may be left out."""
    return Summary(id=exchange, **fold_facts(facts, prices))


def with_digest(summary: Summary, digest: Digest) -> Summary:
    """The summary with the values that were read from the request."""
    return msgspec.structs.replace(summary, **{name: getattr(digest, name) for name in _OF_DIGEST})


def bodies_of(fact: Fact) -> tuple[str, ...]:
    """The hashes of the request bodies that a fact names. A reply consists of frames and is not a body."""
    match fact:  # the most frequent kinds first, as below
        case ExchangeFinished():
            return ()
        case AttemptStarted() | Received() | Translated() | Released() | Answered():
            return (fact.sha256,) if fact.sha256 else ()
        case Edited():
            return tuple(sha256 for sha256 in (fact.before, fact.after) if sha256)
        case BodyPassed():
            return (fact.kept_sha256,) if fact.kept_sha256 else ()
        case Held() | Dropped() | Budgeted() | ReplyStored() | FrameArrived():
            return ()
        case ExchangeFailed() | ExchangeCancelled():
            return ()
        case unreachable:
            assert_never(unreachable)


def bodies_first(facts: Iterable[FactEntry], bodies: Mapping[str, BodyEntry]) -> list[Entry]:
    """These facts, and before each the bodies that it is the first to name."""
    entries: list[Entry] = []
    left = dict(bodies)
    for entry in facts:
        entries += [left.pop(name) for name in bodies_of(entry.fact) if name in left]
        entries.append(entry)
    return entries


_NOT_SENT = AttemptStarted(0, "", "")
_NOT_COUNTED = Usage()


def _apply_fact(columns: dict[str, Any], entry: FactEntry, sent: AttemptStarted, prices: PriceList) -> None:
    """Apply one more fact to the columns. This runs for every fact of the record; replacing a struct each time would
    take ten times as long."""
    match entry.fact:  # the most frequent kinds first: each case is a comparison
        case Received() as fact:
            columns["at"], columns["dialect"], columns["model"] = entry.at, fact.dialect, fact.model
            columns["session"], columns["client"], columns["path"] = fact.session, fact.client, fact.path
            columns["is_stream"], columns["origin"], columns["method"] = fact.is_stream, fact.origin, fact.method
            columns["transport"], columns["tag"] = fact.transport, tag_of(fact.session, fact.headers)
        case AttemptStarted() as fact:
            columns["state"], columns["provider"] = "sending", fact.provider
            columns["attempts"] = max(columns["attempts"], fact.number)
        case ExchangeFinished() as fact:
            columns["state"], columns["finish"], columns["status"] = "finished", fact.finish, fact.status
            columns["tools"], columns["message"] = fact.tools, fact.warning
            columns["first_byte"], columns["elapsed"] = fact.first_byte, fact.elapsed
            _note_usage(columns, fact.usage, fact.model, sent, prices)
        case Translated() as fact:
            columns["losses"] += fact.losses
        case Held() | Released() | Answered() as fact:
            columns["state"] = "held" if type(fact) is Held else "sending"
        case Dropped() as fact:
            columns["state"], columns["message"] = "dropped", fact.reason
        case ExchangeFailed() as fact:
            columns["state"], columns["fault"], columns["message"] = "failed", fact.code, fact.message
            columns["status"] = fact.status
            columns["first_byte"], columns["elapsed"] = fact.first_byte or None, fact.elapsed or None
            _note_usage(columns, fact.usage, "", sent, prices)
        case ExchangeCancelled() as fact:
            columns["state"], columns["message"] = "cancelled", fact.reason
            _note_usage(columns, fact.usage, "", sent, prices)
        case ReplyStored() as fact:
            columns["stored"] = "" if fact.is_deleted else fact.owner
        case Edited() as fact:
            columns["is_masked"] = columns["is_masked"] or fact.operation == "mask"
        case Budgeted() | BodyPassed() | FrameArrived():
            pass
        case unreachable:
            assert_never(unreachable)


def _note_usage(
    columns: dict[str, Any], usage: Usage | None, answered: str, sent: AttemptStarted, prices: PriceList
) -> None:
    """Add the provider's counts and their cost, with the prices for the URL that the request was sent to: those of the
    model that answered, otherwise of the model that was sent, otherwise of the requested model."""
    if usage is None:
        return
    found = find_prices(prices, columns["provider"], (answered, sent.model, columns["model"]), sent.url)
    columns["input_tokens"], columns["output_tokens"] = usage.input_tokens, usage.output_tokens
    columns["cached_tokens"], columns["is_estimated"] = usage.cached_tokens, usage.is_estimated
    columns["cost"], columns["saved"] = _cost_of(usage, found), savings_of(usage, found)


OPEN_STATES: tuple[State, ...] = ("received", "held", "sending")
CODE = "interrupted"
_MESSAGE = "Sightline ended before the answer was whole"
_HINT = "Send it again."


class Unfinished(NamedTuple):
    """An exchange that has not ended, and the number of its next fact."""

    exchange: str
    n: int
    state: State


def interruptions(unfinished: Iterable[Unfinished], at: float) -> list[FactEntry]:
    """The facts that end these exchanges: a held one is cancelled, any other has failed."""
    cancelled, failed = ExchangeCancelled("interrupted"), ExchangeFailed(CODE, _MESSAGE, _HINT)
    return [FactEntry(exchange, n, at, cancelled if state == "held" else failed) for exchange, n, state in unfinished]
