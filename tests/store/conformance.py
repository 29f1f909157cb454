"""What every store does, told as stories. A test class inherits them and says how its store is opened."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from operator import add
from typing import TypeAlias

import pytest
from msgspec.structs import replace

from sightline.filters.expression import EVERYTHING, Expression
from sightline.filters.fields import FilterField, Kind, add_field, remove_field
from sightline.filters.parsing import parse
from sightline.model.exchange import (
    AttemptStarted,
    Dropped,
    Edited,
    ExchangeCancelled,
    ExchangeFailed,
    ExchangeFinished,
    FrameArrived,
    Held,
    Received,
    Released,
    ReplyStored,
    Translated,
)
from sightline.model.reply import Usage
from sightline.model.report import Loss
from sightline.store.archive import load, write_archive
from sightline.store.entries import BodyEntry, Entry, FactEntry
from sightline.store.store import Store
from sightline.store.summary import Summary, SummedExchanges
from tests.store.traffic import NOON, answered, chat_body, chat_stream, noted, received, responded, sha256, whole

Opening: TypeAlias = Callable[[], Awaitable[Store]]
"""Opens the store of a test, again if it was closed."""


@asynccontextmanager
async def opened(opening: Opening) -> AsyncIterator[Store]:
    """An open store, which is closed at the end."""
    store = await opening()
    try:
        yield store
    finally:
        await store.close()


async def ids(store: Store, wanted: Expression | str = EVERYTHING, **page: object) -> list[str]:
    """The exchanges that a filter finds."""
    await store.settle()
    expression = parse(wanted) if isinstance(wanted, str) else wanted
    found = await store.find(expression, now=NOON + 100, **page)  # type: ignore[arg-type]
    return [summary.id for summary in found]


async def summary(store: Store, exchange: str) -> Summary:
    """The line of one exchange."""
    await store.settle()
    (found,) = await store.find(parse(f"id:{exchange}"), now=NOON)
    return found


async def exported(store: Store, wanted: Expression = EVERYTHING) -> list[Entry]:
    await store.settle()
    return [entry async for entry in store.export(wanted, now=NOON)]


def sums_of(exchanges: Sequence[SummedExchanges], by: tuple[str, ...]) -> dict[tuple[object, ...], tuple[float, ...]]:
    """How many there are of each kind, and their sums."""
    kinds = ("state", "provider", "model", "path", "is_estimated", *by)
    sums: dict[tuple[object, ...], tuple[float, ...]] = {}
    for each in exchanges:
        count, line = each.count, each.line
        key = tuple(getattr(line, name) for name in kinds)
        own = (line.input_tokens, line.output_tokens, line.cached_tokens, line.cost, line.saved)
        more = (count, *(value or 0 for value in own), count * (line.cost is None))
        sums[key] = tuple(map(add, sums.get(key, (0,) * len(more)), more))
    return sums


class StoreConformance:
    """Inherit it, and give a fixture `opening`."""

    # --- recording and reading -------------------------------------------------------------------

    async def test_half_a_character_and_an_impossible_number_close_nothing(self, opening: Opening) -> None:
        async with opened(opening) as store:
            body = rb'{"model":"m","messages":[{"role":"user","content":"hello \ud83d"}]}'
            store.record(whole("x_1", body, "hi"))
            absurd = ExchangeFinished("stop", 200, usage=Usage(input_tokens=2**63), tools=("a\ud83d",))
            store.record([*received("x_2", chat_body("more")), *noted("x_2", [absurd], first=1)])
            store.record(whole("x_3", chat_body("later"), "Good"))
            assert await ids(store) == ["x_3", "x_2", "x_1"]
            assert await ids(store, 'text:"hello"') == ["x_1"]
            assert await ids(store, 'text:"later"') == ["x_3"]

    async def test_what_cannot_be_stored_keeps_back_nothing_else(self, opening: Opening) -> None:
        async with opened(opening) as store:
            store.record(whole("x_1", chat_body("before"), "hi"))
            store.record([FactEntry("x_2", 2**63, NOON, Received("anthropic", "m", ""))])
            store.record(whole("x_3", chat_body("behind"), "hi"))
            assert await ids(store) == ["x_3", "x_1"]
            store.record(whole("x_4", chat_body("later"), "hi"))
            assert await ids(store) == ["x_4", "x_3", "x_1"]

    async def test_what_was_recorded_is_read_as_it_was(self, opening: Opening) -> None:
        async with opened(opening) as store:
            body = chat_body("hello")
            entries = whole("x_1", body, "Good ", "morning")
            store.record(entries)
            await store.settle()
            assert await store.facts("x_1") == [entry for entry in entries if isinstance(entry, FactEntry)]
            assert await store.body("x_1", sha256(body)) == body

    async def test_facts_of_every_kind_come_back(self, opening: Opening) -> None:
        facts = [
            Received("anthropic", "m", "", client="cli", headers=(("accept", "*/*"), ("x-ü", "é"))),
            Translated("gemini", sha256(b"{}"), 1, (Loss("/a", "b", "c", "option"),)),
            Held("tool_calls"),
            Edited("set_text", sha256(b"{}"), sha256(b"[]")),
            Released(sha256(b"[]")),
            AttemptStarted(1, "acme", sha256(b"[]"), detail="why", waited=0.5),
            FrameArrived(b"\x00\xff", 0.25),
            ExchangeFinished("stop", warning="odd"),
            ExchangeFailed("network", "cut", "again"),
            Dropped("no"),
            ExchangeCancelled(),
        ]
        async with opened(opening) as store:
            store.record([BodyEntry(sha256(b"{}"), b"{}"), BodyEntry(sha256(b"[]"), b"[]"), *noted("x_1", facts)])
            await store.settle()
            assert [each.fact for each in await store.facts("x_1")] == facts

    async def test_what_is_not_there_is_nothing(self, opening: Opening) -> None:
        async with opened(opening) as store:
            assert await store.facts("x_1") == []
            assert await store.body("x_1", sha256(b"nothing")) is None
            assert await store.body("x_1", "no hash") is None
            assert await ids(store) == []

    async def test_the_same_entries_twice_are_there_once(self, opening: Opening) -> None:
        async with opened(opening) as store:
            entries = whole("x_1", chat_body("hello"), "hi")
            store.record(entries)
            await store.settle()
            first = await store.facts("x_1")
            store.record(entries)
            store.record(entries[:2])
            assert (await summary(store, "x_1")).attempts == 1
            assert await store.facts("x_1") == first

    async def test_a_closed_store_opens_with_all_of_it(self, opening: Opening) -> None:
        body = chat_body("hello")
        async with opened(opening) as store:
            store.record(whole("x_1", body, "hi"))
        async with opened(opening) as store:
            assert await ids(store, "text:hello") == ["x_1"]
            assert await store.body("x_1", sha256(body)) == body

    async def test_texts_that_utf_8_cannot_carry_are_kept_as_far_as_it_can(self, opening: Opening) -> None:
        async with opened(opening) as store:
            fact = ExchangeFailed("upstream_error", "lone \ud800 and \0")
            store.record([*received("x_1", b'{"\\ud800"'), *noted("x_1", [fact], first=1)])
            assert (await summary(store, "x_1")).message.startswith("lone ")
            assert (await store.facts("x_1"))[1].fact.code == "upstream_error"

    # --- summaries -------------------------------------------------------------------------------

    async def test_a_summary_says_what_became_of_it(self, opening: Opening) -> None:
        async with opened(opening) as store:
            body = chat_body("What is\n  the time?")
            store.record(received("x_1", body, client="cli/1", is_stream=True, origin="x_0"))
            begun = await summary(store, "x_1")
            assert (begun.state, begun.title, begun.cost) == ("received", "What is the time?", None)
            store.record(answered("x_1", body, chat_stream("noon"), tools=("Clock",)))
            assert await summary(store, "x_1") == Summary(
                id="x_1", at=NOON, state="finished", dialect="openai-chat", provider="acme", model="large", session="s",
                client="cli/1", path="/v1/chat/completions", status=200, finish="stop", is_stream=True,
                input_tokens=1000, output_tokens=100, cached_tokens=0, cost=0.0045, attempts=1, tools=("Clock",),
                first_byte=0.2, elapsed=0.9, origin="x_0", title="What is the time?", transport="http",
            )  # fmt: skip

    async def test_a_failure_is_summed_up_with_its_words(self, opening: Opening) -> None:
        async with opened(opening) as store:
            store.record(received("x_1", chat_body("hi")))
            store.record(noted("x_1", [ExchangeFailed("rate_limited", "slow down", status=429)], first=1))
            found = await summary(store, "x_1")
            assert (found.state, found.fault, found.message, found.status) == (
                "failed",
                "rate_limited",
                "slow down",
                429,
            )

    # --- lists -----------------------------------------------------------------------------------

    async def test_lists_are_newest_first_and_go_on_where_they_ended(self, opening: Opening) -> None:
        async with opened(opening) as store:
            for number in range(7):
                store.record(whole(f"x_{number}", chat_body(str(number)), "ok", at=NOON + number))
            assert await ids(store, limit=3) == ["x_6", "x_5", "x_4"]
            assert await ids(store, limit=3, before="x_4") == ["x_3", "x_2", "x_1"]
            assert await ids(store, before="x_1") == ["x_0"]
            assert await ids(store, before="x_0") == []

    @pytest.mark.parametrize(
        ("wanted", "found"),
        [
            ("", ["x_3", "x_2", "x_1"]),
            ("session:blue", ["x_2"]),
            ("status:ok", ["x_2", "x_1"]),
            ("!status:ok", ["x_3"]),
            ("status:4xx", ["x_3"]),
            ("fault:rate*", ["x_3"]),
            ("tool:Bash", ["x_2"]),
            ("!tool:Bash", ["x_3", "x_1"]),
            ("cost>0.001", ["x_2", "x_1"]),
            ("tokens>=1100", ["x_2", "x_1"]),
            ("model:lar* & provider:acme", ["x_2", "x_1"]),
            ("stream", ["x_2"]),
            ("age<99s", ["x_3", "x_2"]),
            ("latest:1", ["x_3"]),
            ("latest:2 & text:dad", ["x_2"]),
            ("state:failed | session:blue", ["x_3", "x_2"]),
        ],
    )
    async def test_filters_choose(self, opening: Opening, wanted: str, found: list[str]) -> None:
        async with opened(opening) as store:
            store.record(whole("x_1", chat_body("one"), "ok"))
            body = chat_body("a dad joke")
            store.record(received("x_2", body, at=NOON + 2, session="blue", is_stream=True))
            store.record(answered("x_2", body, chat_stream("ha"), tools=("Bash", "Read")))
            store.record(received("x_3", chat_body("three"), at=NOON + 3))
            store.record(noted("x_3", [ExchangeFailed("rate_limited", "", status=429)], first=1))
            assert await ids(store, wanted) == found

    @pytest.mark.parametrize("by", [(), ("model",), ("session", "client", "tag", "origin")])
    @pytest.mark.parametrize("wanted", ["", "session:blue", "latest:3", "status:ok & !session:eval*", "cost>0"])
    async def test_sums_are_those_of_each_exchange(self, opening: Opening, wanted: str, by: tuple[str, ...]) -> None:
        async with opened(opening) as store:
            for number, session in enumerate(("blue", "blue", "red", "eval:1", "eval:1")):
                body = chat_body(str(number))
                store.record(received(f"x_{number}", body, session=session, client=f"cli/{number % 2}"))
                store.record(answered(f"x_{number}", body, chat_stream("ok")))
            store.record(received("x_5", chat_body("five"), session="red"))
            store.record(noted("x_5", [ExchangeFailed("rate_limited", "", status=429)], first=1))
            store.record(received("x_6", chat_body("six"), session="blue"))
            cached = Usage(input_tokens=1000, output_tokens=10, cached_tokens=600)
            for name, provider in (("x_7", "acme"), ("x_8", "other"), ("x_9", "other")):
                estimated = replace(cached, is_estimated=name == "x_9")
                end = ExchangeFinished("stop", 200, (), "", "large", estimated, (), 0.1, 0.2)
                facts = [AttemptStarted(1, provider, "", model="large"), end]
                store.record([*received(name, chat_body(name), session="blue"), *noted(name, facts, first=1)])
            await store.settle()
            found = await store.sums(parse(wanted), by, now=NOON)
            assert found is not None
            lines = await store.find(parse(wanted), now=NOON)
            each = [SummedExchanges(1, line) for line in lines]
            assert sums_of(found, by) == {key: pytest.approx(value) for key, value in sums_of(each, by).items()}

    async def test_sums_of_absurd_counts_are_sums(self, opening: Opening) -> None:
        async with opened(opening) as store:
            end = ExchangeFinished("stop", usage=Usage(input_tokens=2**63 - 1, output_tokens=2**62, cost=9e20))
            for name in ("x_1", "x_2", "x_3"):
                store.record([*received(name, chat_body("x")), *noted(name, [end], first=1)])
            await store.settle()
            (found,) = await store.sums(EVERYTHING, (), now=NOON) or ()
            sums = found.line.input_tokens, found.line.output_tokens, found.line.cost
            assert sums == pytest.approx((3 * 2**63, 3 * 2**62, 27e20))

    async def test_what_only_words_tell_has_no_sums(self, opening: Opening) -> None:
        async with opened(opening) as store:
            store.record(whole("x_1", chat_body("hello"), "hi"))
            await store.settle()
            assert await store.sums(parse("text:hello"), (), now=NOON) is None

    # --- search ----------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("words", "found"),
        [
            ("dad joke", ["x_1"]),
            ("DAD JOK", ["x_1"]),
            ("ad jo", ["x_1"]),
            ("knock knock", ["x_1"]),
            ("Grüße", ["x_2"]),
            ("grüsse", []),
            ("日本", ["x_2"]),
            ("be brief", ["x_1"]),
            ("no", ["x_1"]),
            ("d*joke", ["x_1"]),
            ("nowhere", []),
            ('"quoted"', ["x_2"]),
        ],
    )
    async def test_words_of_either_side_are_found(self, opening: Opening, words: str, found: list[str]) -> None:
        async with opened(opening) as store:
            store.record(whole("x_1", chat_body("tell a Dad Joke", system="Be brief."), "Knock ", "knock"))
            store.record(whole("x_2", chat_body('Viele GRÜẞE aus 日本, Grüße "quoted"', system="Be brief."), "ha"))
            assert await ids(store, "text:'" + words + "'") == found

    @pytest.fixture
    def refunds(self) -> Iterator[None]:
        add_field(FilterField("refunds", Kind.YES_NO, "", read=lambda exchange: exchange.says("re*fund")))
        yield
        remove_field("refunds")

    @pytest.mark.usefixtures("refunds")
    async def test_a_field_from_outside_may_ask_for_any_words(self, opening: Opening) -> None:
        async with opened(opening) as store:
            store.record(whole("x_1", chat_body("a REFUND, please"), "yes"))
            store.record(whole("x_2", chat_body("hello"), "your re-fund"))
            store.record(whole("x_3", chat_body("hello again"), "yes"))
            assert await ids(store, "refunds") == ["x_2", "x_1"]
            assert await ids(store, "!refunds") == ["x_3"]
            assert await ids(store, "refunds text:your") == ["x_2"]

    async def test_a_history_that_is_sent_again_is_not_found_again(self, opening: Opening) -> None:
        async with opened(opening) as store:
            store.record(whole("x_1", chat_body("a rare word"), "yes"))
            store.record(whole("x_2", chat_body("a rare word", "yes", "another"), "no"))
            assert await ids(store, "text:'rare word'") == ["x_1"]
            assert await ids(store, "text:another") == ["x_2"]

    async def test_a_history_that_no_exchange_has_is_found_once(self, opening: Opening) -> None:
        async with opened(opening) as store:
            store.record(whole("x_1", chat_body("an older word", "said so", "resumed"), "yes"))
            store.record(whole("x_2", chat_body("an older word", "said so", "elsewhere"), "no"))
            store.record(whole("x_3", chat_body("an older word", "said so", "resumed", "yes", "on"), "no"))
            assert await ids(store, "text:'older word'") == ["x_1"]
            assert await ids(store, "text:'said so'") == ["x_1"]
            assert await ids(store, "text:resumed") == ["x_1"]
            assert await ids(store, "text:elsewhere") == ["x_2"]

    # --- conversations ---------------------------------------------------------------------------

    async def test_a_turn_is_linked_to_the_one_that_it_continues(self, opening: Opening) -> None:
        async with opened(opening) as store:
            store.record(whole("x_1", chat_body("hi"), "yes"))
            store.record(whole("x_2", chat_body("something else"), "yes"))
            store.record(whole("x_3", chat_body("hi", "yes", "go on"), "on"))
            store.record(whole("x_4", chat_body("hi", "yes", "go on", "on", "more"), "more"))
            store.record(whole("x_5", chat_body("hi", "yes", "or else"), "else"))
            store.record(whole("x_6", chat_body("hi", "yes", "go on"), "elsewhere", session="other"))
            links = {each: (await summary(store, each)).previous for each in ("x_1", "x_2", "x_3", "x_4", "x_5", "x_6")}
            assert links == {"x_1": "", "x_2": "", "x_3": "x_1", "x_4": "x_3", "x_5": "x_1", "x_6": ""}

    async def test_side_request_is_marked_and_belongs_to_no_conversation(self, opening: Opening) -> None:
        async with opened(opening) as store:
            errand = chat_body("hi", system="Write a short title for the conversation.")
            store.record(whole("x_1", errand, "Greetings"))
            store.record(whole("x_2", chat_body("hi", tools=["Bash"]), "yes"))
            store.record(whole("x_3", chat_body("hi", "yes", "go on", tools=["Bash"]), "on"))
            assert (await summary(store, "x_1")).is_side
            assert (await summary(store, "x_3")).previous == "x_2"
            assert await ids(store, "!side") == ["x_3", "x_2"]

    @pytest.mark.parametrize("is_stream", [False, True])
    async def test_a_request_that_names_a_reply_continues_its_exchange(
        self, opening: Opening, *, is_stream: bool
    ) -> None:
        async with opened(opening) as store:
            asked = {"x_1": ("", "resp_1"), "x_2": ("resp_1", "resp_2"), "x_3": ("resp_1", "resp_3")}
            for exchange, (previous, own) in asked.items():
                store.record(responded(exchange, previous, own, is_stream=is_stream))
            store.record(responded("x_4", "resp_of_somebody_else", "resp_4", session="other"))
            store.record(responded("x_5", "resp_2", "resp_5", session="other"))
            store.record(responded("x_6", "resp_x_3", "resp_6"))  # stored here, by the exchange in its id
            links = {each: (await summary(store, each)).previous for each in (*asked, "x_4", "x_5", "x_6")}
            assert links == {"x_1": "", "x_2": "x_1", "x_3": "x_1", "x_4": "", "x_5": "x_2", "x_6": "x_3"}

    async def test_a_reply_is_found_by_the_client_that_it_is_stored_for_until_it_is_deleted(
        self, opening: Opening
    ) -> None:
        async with opened(opening) as store:
            for exchange, owner in (("x_1", "ab12"), ("x_2", "cd34")):
                store.record([*received(exchange, chat_body("hi")), *noted(exchange, [ReplyStored(owner, 7)], first=1)])
            assert await ids(store, "stored:ab12") == ["x_1"]
            assert await ids(store, "stored:*") == ["x_2", "x_1"]
            store.record(noted("x_1", [ReplyStored("ab12", 7, is_deleted=True)], first=2))
            assert await ids(store, "stored:*") == ["x_2"]

    async def test_a_reply_may_be_read_after_the_request_that_names_it(self, opening: Opening) -> None:
        async with opened(opening) as store:
            first = responded("x_1", "", "resp_1")
            store.record(first[:2])
            store.record(responded("x_2", "resp_1", "resp_2"))
            assert (await summary(store, "x_2")).previous == ""
            store.record(first[2:])
            assert (await summary(store, "x_2")).previous == "x_1"

    # --- bodies ----------------------------------------------------------------------------------

    async def test_a_growing_history_is_read_back_at_every_turn(self, opening: Opening) -> None:
        said = [f"{turn} " + "lorem ipsum dolor " * 40 for turn in range(120)]
        bodies = [chat_body(*said[: 2 * turn + 1], max_tokens=turn) for turn in range(60)]
        async with opened(opening) as store:
            for turn, body in enumerate(bodies):
                store.record(received(f"x_{turn:03}", body))
            await store.settle()
            for turn, body in enumerate(bodies):
                assert await store.body(f"x_{turn:03}", sha256(body)) == body

    async def test_bodies_of_any_kind_come_back(self, opening: Opening) -> None:
        bodies = [b"", b"\x00", b"a" * 70_000, b"a" * 69_999 + b"b", b"b" + b"a" * 69_999, b"a" * 140_000]
        async with opened(opening) as store:
            for number, body in enumerate(bodies):
                store.record(received(f"x_{number}", body))
            await store.settle()
            for number, body in enumerate(bodies):
                assert await store.body(f"x_{number}", sha256(body)) == body

    # --- forgetting ------------------------------------------------------------------------------

    async def test_what_is_within_its_limits_is_left_alone(self, opening: Opening) -> None:
        async with opened(opening) as store:
            store.record(whole("x_1", chat_body("hi"), "yes"))
            await store.settle()
            pruned = await store.prune(older_than=NOON - 1, larger_than=1 << 40)
            assert (pruned.exchanges, pruned.bytes_freed) == (0, 0)
            assert pruned.bytes_left > 0
            assert await ids(store) == ["x_1"]

    async def test_what_is_too_old_goes_and_what_was_built_on_it_stays(self, opening: Opening) -> None:
        said = [f"{turn} unusual-{turn} " + "lorem ipsum dolor " * 40 for turn in range(20)]
        bodies = [chat_body(*said[: 2 * turn + 1]) for turn in range(10)]
        async with opened(opening) as store:
            for turn, body in enumerate(bodies):
                store.record(whole(f"x_{turn}", body, "yes", at=NOON + 10 * turn))
            await store.settle()
            pruned = await store.prune(older_than=NOON + 65)
            assert pruned.exchanges == 7
            assert await ids(store) == ["x_9", "x_8", "x_7"]
            assert await store.facts("x_6") == []
            found = [await store.body(f"x_{turn}", sha256(body)) for turn, body in enumerate(bodies)]
            assert found == [None] * 7 + bodies[7:]
            assert await ids(store, "text:unusual-12") == []
            assert await ids(store, "text:unusual-18") == ["x_9"]
            store.record(whole("x_a", bodies[0], "again", at=NOON + 200))
            assert await ids(store, "text:unusual-0") == ["x_a"]
            assert await store.body("x_a", sha256(bodies[0])) == bodies[0]

    async def test_a_body_that_others_have_stays(self, opening: Opening) -> None:
        async with opened(opening) as store:
            body = chat_body("hi")
            store.record(whole("x_1", body, "yes"))
            store.record(whole("x_2", body, "yes", at=NOON + 50))
            await store.settle()
            assert (await store.prune(older_than=NOON + 1)).exchanges == 1
            assert await store.body("x_2", sha256(body)) == body

    async def test_what_is_still_under_way_is_not_forgotten(self, opening: Opening) -> None:
        async with opened(opening) as store:
            store.record(received("x_1", chat_body("hi")))
            await store.settle()
            assert (await store.prune(older_than=NOON + 1000, larger_than=0)).exchanges == 0
            assert await ids(store) == ["x_1"]

    async def test_the_oldest_go_until_the_record_is_small_enough(self, opening: Opening) -> None:
        async with opened(opening) as store:
            for number in range(200):
                # Words that nothing compresses, so that the record is as large as it looks.
                noise = "".join(sha256(f"{number} {line}".encode()) for line in range(60))
                store.record(whole(f"x_{number:03}", chat_body(noise), "yes", at=NOON + number, session=f"s{number}"))
            await store.settle()
            size = (await store.prune()).bytes_left
            pruned = await store.prune(larger_than=size // 2)
            left = await ids(store, limit=500)
            assert pruned.bytes_left <= size // 2
            assert pruned.exchanges + len(left) == 200
            assert 20 < len(left) < 150
            assert left[0] == "x_199"

    async def test_chosen_exchanges_are_forgotten_and_the_others_are_as_they_were(self, opening: Opening) -> None:
        said = [f"{turn} unusual-{turn} " + "lorem ipsum dolor " * 40 for turn in range(20)]
        bodies = [chat_body(*said[: 2 * turn + 1]) for turn in range(10)]
        chosen = [f"x_{turn}" for turn in (0, 3, 4, 8)]
        async with opened(opening) as store:
            for turn, body in enumerate(bodies):
                store.record(whole(f"x_{turn}", body, f"answer-{turn}", at=NOON + 10 * turn))
            store.record(received("x_open", chat_body("not over")))
            await store.settle()
            stays = [name for name in await ids(store) if name not in chosen]
            before = [await exported(store, parse(f"id:{name}")) for name in stays]
            measured = await store.forget([*chosen, "x_open", "x_unknown"], is_dry_run=True)
            assert measured.exchanges == 4
            assert measured.bytes > 0
            assert len(await ids(store)) == 11
            assert await store.forget([*chosen, "x_open", "x_unknown"]) == measured
            assert await ids(store) == stays
            assert [await exported(store, parse(f"id:{name}")) for name in stays] == before
            assert await ids(store, "text:answer-3") == []
            assert await ids(store, "text:answer-5") == ["x_5"]
            assert (await store.forget(chosen)).exchanges == 0
            assert (await store.forget([])).exchanges == 0

    # --- carrying it elsewhere -------------------------------------------------------------------

    async def test_an_export_holds_all_of_it_oldest_first(self, opening: Opening) -> None:
        async with opened(opening) as store:
            body = chat_body("hi")
            store.record(whole("x_2", chat_body("two"), "ok"))
            store.record(whole("x_1", body, "yes"))
            entries = await exported(store)
            assert entries[0] == BodyEntry(sha256(body), body, "s")
            assert [e.exchange for e in entries if isinstance(e, FactEntry) and e.n == 0] == ["x_1", "x_2"]
            assert [
                e for e in await exported(store, parse("text:two")) if isinstance(e, FactEntry)
            ] == await store.facts("x_2")

    async def test_an_archive_makes_the_same_record_and_changes_nothing_the_second_time(self, opening: Opening) -> None:
        async with opened(opening) as store:
            store.record(whole("x_1", chat_body("hi"), "yes"))
            store.record(whole("x_2", chat_body("hi", "yes", "go on"), "on", at=NOON + 5))
            await store.settle()
            before = await exported(store), await store.find(EVERYTHING, now=NOON)
            lines = [line async for line in write_archive(store.export(EVERYTHING, now=NOON))]
            await store.prune(older_than=NOON + 1000)
            assert await ids(store) == []
            for _ in range(2):
                assert load(store, lines) == len(before[0])
                await store.settle()
                assert (await exported(store), await store.find(EVERYTHING, now=NOON)) == before
