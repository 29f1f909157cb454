import msgspec
import pytest

from sightline.catalog.facts import Prices
from sightline.filters.fields import FIELDS as KNOWN
from sightline.filters.fields import SUMS
from sightline.model.exchange import (
    Answered,
    AttemptStarted,
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
    Translated,
)
from sightline.model.reply import Usage
from sightline.store.digest import Digest, storable
from sightline.store.entries import FactEntry
from sightline.store.summary import (
    DIGESTED,
    FIELDS,
    FOLDED,
    NAMES,
    ExchangeSubject,
    Summary,
    Unfinished,
    bodies_of,
    interruptions,
    row_of,
    summary_in,
    summary_of,
    with_digest,
)


def test_a_summary_in_json_says_only_what_is_known() -> None:
    assert msgspec.json.encode(Summary(id="x_1", at=1.5)) == b'{"id":"x_1","at":1.5}'


FULL = Summary(
    id="x_1", at=1.0, state="finished", dialect="anthropic", provider="acme", model="m", session="s", client="c",
    path="/p", status=200, finish="stop", fault="", message="odd", is_stream=True, input_tokens=1, output_tokens=2,
    cached_tokens=3, cost=0.5, losses=4, attempts=5, tools=("Bash", "Read"), first_byte=0.1, elapsed=0.2, origin="x_0",
    method="GET", transport="tls", stored="ab12", tag="t", saved=0.25, previous="x_00", is_side=True, title="hi",
)  # fmt: skip


def test_the_columns_are_the_fields_of_a_summary() -> None:
    assert sorted(NAMES) == sorted(field.name for field in msgspec.structs.fields(Summary))


def test_a_row_is_a_summary_again() -> None:
    digested: list[str | int | float | None] = ["x_00", 1, "hi"]
    assert len(digested) == len(DIGESTED), f"`digested` in this test needs one value for each of {DIGESTED}"
    row = ["x_1", *row_of(msgspec.structs.asdict(FULL)), *digested]
    assert summary_in(row) == FULL


def test_texts_hold_no_character_that_a_database_ends_them_at() -> None:
    row = row_of(msgspec.structs.asdict(FULL) | {"message": "a\0b", "tools": ("x\0",)})
    assert row[FOLDED.index("message")] == storable("a\0b") == "a\ufffdb"
    assert storable("plain") == "plain"


def test_a_filter_gets_every_field_that_it_may_ask_for() -> None:
    subject = ExchangeSubject(FULL, bool)
    derived = {*SUMS, "ok", "error", "text", "age", "date", "latest"}
    of_chats = {"topic", "stars", "flag", "attachments", "context"}
    assert {field.name for field in KNOWN} - derived - of_chats == set(FIELDS) - {"at"}
    assert subject.value("tool") == ("Bash", "Read")
    assert (subject.value("time"), subject.value("first"), subject.value("side")) == (0.2, 0.1, True)
    assert subject.value("stars") is None


def test_a_status_that_has_not_come_is_none() -> None:
    assert ExchangeSubject(FULL, bool).value("status") == 200
    assert ExchangeSubject(Summary(id="x", at=0.0), bool).value("status") is None


ASKED = Received(
    "anthropic", "claude", "aa", session="s", client="cli", path="/v1/messages", is_stream=True, origin="x_0"
)


def free(_provider: str, _model: str) -> Prices | None:
    return None


def folded(*facts: Fact) -> Summary:
    return summary_of("x_1", [FactEntry("x_1", n, 10.0 + n, fact) for n, fact in enumerate(facts)], free)


def test_request_fields_are_in_the_summary_immediately() -> None:
    assert folded(ASKED) == Summary(
        id="x_1", at=10.0, dialect="anthropic", model="claude", session="s", client="cli", path="/v1/messages",
        is_stream=True, origin="x_0", transport="http",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ((), "received"),
        ((Translated("openai-chat", "bb", 2),), "received"),
        ((Held(),), "held"),
        ((AttemptStarted(1, "acme", "aa"), Held("tool_calls")), "held"),
        ((Held(), Edited("set", "aa", "bb")), "held"),
        ((Held(), Released("aa")), "sending"),
        ((AttemptStarted(1, "acme", "aa"), FrameArrived(b"x")), "sending"),
        ((Held(), Dropped("no")), "dropped"),
        ((Held(), Answered("cc")), "sending"),
        ((AttemptStarted(1, "acme", "aa"), ExchangeFinished("stop")), "finished"),
        ((ExchangeFailed("network", "gone"),), "failed"),
        ((Held(), ExchangeCancelled()), "cancelled"),
        ((Budgeted({}), ExchangeFinished("stop"), Budgeted({"stage": "success"})), "finished"),
    ],
)
def test_the_state_follows_the_facts(facts: tuple[Fact, ...], state: str) -> None:
    assert folded(ASKED, *facts).state == state


def test_losses_attempts_and_reasons_are_counted() -> None:
    found = folded(ASKED, Translated("gemini", "bb", 3), AttemptStarted(1, "a", "bb"), AttemptStarted(2, "b", "bb"))
    assert (found.losses, found.attempts, found.provider) == (3, 2, "b")
    assert folded(ASKED, Dropped("not now")).message == "not now"


def test_an_end_brings_its_numbers() -> None:
    usage = Usage(input_tokens=10, output_tokens=5, cached_tokens=2)
    end = ExchangeFinished("stop", 200, (), "cc", "claude-2", usage, ("Bash",), 0.1, 0.5, "odd")
    found = folded(ASKED, AttemptStarted(1, "acme", "aa"), end)
    assert (found.status, found.finish, found.tools, found.message) == (200, "stop", ("Bash",), "odd")
    assert (found.input_tokens, found.output_tokens, found.cached_tokens) == (10, 5, 2)
    assert (found.first_byte, found.elapsed, found.cost) == (0.1, 0.5, None)


def test_a_failure_before_any_answer_has_no_times() -> None:
    found = folded(ASKED, ExchangeFailed("network", "gone"))
    assert (found.fault, found.message, found.first_byte, found.elapsed) == ("network", "gone", None, None)
    late = folded(ASKED, ExchangeFailed("timeout_idle", "slow", status=200, usage=Usage(input_tokens=1), elapsed=9.0))
    assert (late.status, late.input_tokens, late.elapsed) == (200, 1, 9.0)


@pytest.mark.parametrize(
    ("known", "cost"),
    [("claude-2", 20.0), ("sent", 20.0), ("claude", 20.0), ("another", None)],
)
def test_cost_uses_the_model_answered_then_sent_then_requested(known: str, cost: float | None) -> None:
    def prices(provider: str, model: str) -> Prices | None:
        assert provider == "acme"
        return Prices(input=5, output=15) if model == known else None

    usage = Usage(input_tokens=1_000_000, output_tokens=1_000_000)
    facts = [
        ASKED,
        AttemptStarted(1, "acme", "aa", model="sent"),
        ExchangeFinished("stop", model="claude-2", usage=usage),
    ]
    assert summary_of("x_1", [FactEntry("x_1", n, 0.0, fact) for n, fact in enumerate(facts)], prices).cost == cost


@pytest.mark.parametrize(("host", "cost"), [("api.acme.com", 20.0), ("eu.api.acme.com", 22.0), ("", 22.0)])
def test_cost_is_that_of_the_address_which_the_request_was_sent_to(host: str, cost: float) -> None:
    """The provider has the address of a region now; where the request went is on record."""
    hosts, regions = {"*.api.acme.com": "regional"}, {"regional": 1.1}
    now = Prices(input=5, output=15, hosts=hosts, regions=regions, region="regional")
    usage = Usage(input_tokens=1_000_000, output_tokens=1_000_000)
    sent = AttemptStarted(1, "acme", "aa", model="sent", url=f"https://{host}/v1/chat" if host else "")
    facts = [ASKED, sent, ExchangeFinished("stop", usage=usage)]
    summary = summary_of("x_1", [FactEntry("x_1", n, 0.0, fact) for n, fact in enumerate(facts)], lambda *_: now)
    assert summary.cost == pytest.approx(cost, abs=1e-9)


def test_what_the_request_tells_is_added() -> None:
    digest = Digest(title="Hello", is_side=True)
    found = with_digest(summary_of("x_1", [FactEntry("x_1", 0, 0.0, ASKED)], free), digest)
    assert (found.title, found.is_side) == ("Hello", True)


@pytest.mark.parametrize(
    ("fact", "names"),
    [
        (ASKED, ("aa",)),
        (Received("raw", "m", ""), ()),
        (Translated("gemini", "bb", 0), ("bb",)),
        (Edited("set", "aa", "bb"), ("aa", "bb")),
        (Released("cc"), ("cc",)),
        (Answered("cc"), ("cc",)),
        (AttemptStarted(1, "acme", "dd"), ("dd",)),
        (ExchangeFinished("stop", sha256="ee"), ()),
        (FrameArrived(b""), ()),
        (Budgeted({"sha256": "aa"}), ()),
    ],
)
def test_facts_name_the_bodies_of_requests(fact: Fact, names: tuple[str, ...]) -> None:
    assert bodies_of(fact) == names


def test_a_hold_is_cancelled_and_anything_else_has_failed() -> None:
    held, sent = interruptions([Unfinished("x_1", 2, "held"), Unfinished("x_2", 3, "sending")], at=7.0)
    assert held == FactEntry("x_1", 2, 7.0, ExchangeCancelled("interrupted"))
    assert (sent.exchange, sent.n, sent.at) == ("x_2", 3, 7.0)
    assert isinstance(sent.fact, ExchangeFailed)
    assert (sent.fact.code, sent.fact.hint) == ("interrupted", "Send it again.")


def test_how_it_came_and_for_whom_it_is_stored_are_columns() -> None:
    asked = msgspec.structs.replace(ASKED, transport="websocket")
    facts: list[Fact] = [asked, ReplyStored("ab12", 7), ExchangeFinished("stop"), ReplyStored("ab12", 7, {"a": "b"})]
    entries = [FactEntry("x_1", n, 1.0, fact) for n, fact in enumerate(facts)]
    told = summary_of("x_1", entries, free)
    assert (told.transport, told.stored, told.state) == ("websocket", "ab12", "finished")
    deleted = FactEntry("x_1", 4, 2.0, ReplyStored("ab12", 7, is_deleted=True))
    assert summary_of("x_1", [*entries, deleted], free).stored == ""
    assert bodies_of(deleted.fact) == ()


def test_the_tag_of_the_client_and_what_the_cache_saved_are_columns() -> None:
    def told(session: str, *headers: tuple[str, str], usage: Usage | None = None) -> Summary:
        asked = msgspec.structs.replace(ASKED, session=session, headers=headers)
        facts: list[Fact] = [asked, AttemptStarted(1, "acme", "ab"), ExchangeFinished("stop", usage=usage)]
        prices = Prices(input=4.0, output=20.0, cached=1.0, tiers={"priority": 2.0})
        return summary_of("x_1", [FactEntry("x_1", n, 1.0, f) for n, f in enumerate(facts)], lambda _p, _m: prices)

    assert told("fix@shop").tag == ""
    assert told("fix@shop#release").tag == "release"
    assert told("fix@shop#release", ("X-Sightline-Tag", " nightly ")).tag == "nightly"
    cached = Usage(input_tokens=1_000, output_tokens=0, cached_tokens=500, tier="priority")
    assert told("s", usage=cached).saved == pytest.approx(500 * 3.0 * 2 / 1e6)
    assert told("s", usage=Usage(input_tokens=1, output_tokens=1)).saved is None
