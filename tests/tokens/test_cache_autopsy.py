"""Why a turn read less from the cache than the one before had left there."""

from typing import Any

import pytest

from sightline.catalog.facts import Facts, Prices
from sightline.dialects.dialect import CacheRules
from sightline.model.parts import CacheBreakpoint, Image, Link, Opaque, Text
from sightline.model.reply import Usage
from sightline.model.request import FunctionTool, Message, OpaqueTool, Options, Reasoning, Request, SchemaFormat
from sightline.tokens.cache_autopsy import CacheAutopsy, Turn, count_left, examine, expect_read, price_loss
from sightline.tokens.estimator import Estimator

LONG = "The quick brown fox jumps over the lazy dog. " * 200
MARK, HOUR = CacheBreakpoint(), CacheBreakpoint(ttl="1h")
TOOLS = (FunctionTool("add", LONG, at="/tools/0"), FunctionTool("sub", "Subtract.", at="/tools/1"))
PRICES = Prices(input=3.0, output=15.0, cached=0.3, cache_write=3.75, cache_write_1h=6.0)
FACTS = Facts(prices=PRICES)
PLAIN = Usage(input_tokens=8000, output_tokens=1, cached_tokens=0)


def said(role: str, *parts: Any, at: str = "") -> Message:
    return Message(role, tuple(Text(part) if isinstance(part, str) else part for part in parts), at=at)


def system(text: str = f"Be kind. {LONG}", mark: CacheBreakpoint | None = MARK) -> Message:
    return said("system", text, *([] if mark is None else [mark]), at="/system/0")


def user(text: str, mark: CacheBreakpoint | None = None, at: str = "/messages/0") -> Message:
    return said("user", text, *([] if mark is None else [mark]), at=at)


FIRST = (system(), user(f"First. {LONG}", MARK))
NEXT = (system(), user(f"First. {LONG}"), said("assistant", "Well."), user("And?", MARK, "/messages/2"))


def ask(*messages: Message, dialect: str = "anthropic", **fields: Any) -> Request:
    return Request(**{"model": "m", "messages": messages, "tools": TOOLS, "dialect": dialect, **fields})


def before(request: Request | None = None, **fields: Any) -> Turn:
    usage = Usage(input_tokens=8000, output_tokens=1, cached_tokens=0, cache_write_tokens=8000)
    usual = {"request": request or ask(*FIRST), "at": 100.0, "usage": usage, "provider": "p", "model": "m"}
    return Turn(**{**usual, **fields})


def after(request: Request | None = None, read: int | None = 0, **fields: Any) -> Turn:
    usage = Usage(input_tokens=8200, output_tokens=1, cached_tokens=read, cache_write_tokens=0)
    return Turn(
        **{"request": request or ask(*NEXT), "at": 120.0, "usage": usage, "provider": "p", "model": "m", **fields}
    )


def autopsy(previous: Turn | None, turn: Turn, facts: Facts = FACTS) -> CacheAutopsy:
    return examine(previous, turn, Estimator(facts, dialect=turn.request.dialect), facts)


def test_a_turn_that_reads_all_has_lost_nothing() -> None:
    found = autopsy(before(), after(read=8000))
    assert (found.cause, found.could_tokens, found.read_tokens, found.lost_tokens) == ("", 8000, 8000, 0)


def test_the_first_turn_is_a_cold_start() -> None:
    found = autopsy(None, after(read=700))
    assert (found.cause, found.could_tokens, found.read_tokens) == ("cold_start", 700, 700)


@pytest.mark.parametrize(
    ("previous", "turn"),
    [
        (before(), after(read=None)),
        (before(), after(usage=None)),
        (before(usage=None), after()),
        (before(usage=Usage(input_tokens=9, output_tokens=1)), after()),
    ],
)
def test_without_counts_nothing_is_claimed(previous: Turn, turn: Turn) -> None:
    found = autopsy(previous, turn)
    assert (found.cause, found.lost_tokens) == ("unknown", 0)


def test_the_first_byte_that_differs_is_shown_with_its_text() -> None:
    later = (system(f"Bé cold. {LONG}"), *NEXT[1:])
    found = autopsy(before(ask(system(f"Bé kind. {LONG}"), *FIRST[1:])), after(ask(*later)))
    assert (found.cause, found.pointer, found.offset) == ("system", "/system/0", 4)
    assert found.before.startswith("Bé kind. The")
    assert found.after.startswith("Bé cold. The")
    assert (found.could_tokens, found.read_tokens, found.lost_tokens, found.also) == (8000, 0, 8000, ())
    assert found.money == pytest.approx((8200 * 3.0 - 200 * 3.0 - 8000 * 0.3) / 1e6)


CHANGED = FunctionTool("add", f"Add. {LONG}", at="/tools/0")
OPAQUE = OpaqueTool("anthropic", {"type": "web_search"}, at="/tools/2")


@pytest.mark.parametrize(
    ("cause", "fields"),
    [
        ("tools", {"tools": (CHANGED, TOOLS[1])}),
        ("tools", {"tools": TOOLS[:1]}),
        ("tools", {"tools": (*TOOLS, OPAQUE)}),
        ("tools_order", {"tools": (TOOLS[1], TOOLS[0])}),
        ("settings", {"options": Options(reasoning=Reasoning(effort="high"))}),
    ],
)
def test_what_changed_is_the_cause(cause: str, fields: dict[str, Any]) -> None:
    found = autopsy(before(), after(ask(*NEXT, **fields)))
    assert found.cause == cause
    assert found.offset is not None


def test_a_changed_message_leaves_what_comes_before_it() -> None:
    later = (system(), user(f"Other. {LONG}"), said("assistant", "Well."), user("And?", MARK, "/messages/2"))
    kept = autopsy(before(), after(ask(*later), read=5000))
    assert (kept.cause, kept.pointer, kept.lost_tokens) == ("messages", "/messages/0", 3000)
    assert autopsy(before(), after(ask(*later))).cause == "evicted", "not even the beginning that is the same was read"


def test_a_line_that_only_the_provider_reads_is_no_difference() -> None:
    def billed(number: int, *messages: Message) -> Request:
        line = f"x-anthropic-billing-header: cch={number};"
        return ask(said("system", line, *messages[0].parts, at="/system"), *messages[1:])

    later = (NEXT[0], user(f"Other. {LONG}"), *NEXT[2:])
    found = autopsy(before(billed(1, *FIRST)), after(billed(2, *later), read=5000))
    assert (found.cause, found.pointer, found.also) == ("messages", "/messages/0", ())


def test_a_shorter_conversation_and_pieces_that_are_no_text_have_a_place() -> None:
    image = Image(Link("https://a.b/c.png"), at="/messages/0/content/0")
    previous = before(ask(system(), said("user", image, LONG, MARK), said("assistant", "Well."), user("Go.", MARK)))
    found = autopsy(
        previous, after(ask(system(), said("user", Image(Link("https://a.b/d.png")), LONG, MARK)), read=4000)
    )
    assert found.cause == "messages"
    assert "c.png" in found.before
    assert "d.png" in found.after
    gone = autopsy(previous, after(ask(system()), read=4000))
    assert (gone.cause, gone.after) == ("messages", "")


@pytest.mark.parametrize(
    ("cause", "fields"),
    [
        ("provider", {"provider": "q"}),
        ("model", {"model": "n", "request": ask(*NEXT, model="n")}),
        ("organisation", {"organisation": "org-2"}),
        ("cache_key", {"request": ask(*NEXT, options=Options(cache_key="k"))}),
        ("in_flight", {"at": 100.5}),
        ("expired", {"at": 401.0}),
        ("tier", {"request": ask(*NEXT, options=Options(service_tier="flex"))}),
        ("version", {"version": "2"}),
        ("beta", {"betas": frozenset({"b"})}),
        ("evicted", {}),
    ],
)
def test_what_is_beside_the_prompt_is_a_cause(cause: str, fields: dict[str, Any]) -> None:
    found = autopsy(before(organisation="org-1", ready=101.0), after(**fields))
    assert (found.cause, found.lost_tokens) == (cause, 8000)
    assert found.lifetime == (300.0 if cause == "expired" else None)


def test_a_mark_for_an_hour_outlives_the_others() -> None:
    first = ask(system(mark=HOUR), *FIRST[1:])
    later = ask(system(mark=HOUR), *NEXT[1:])
    partly = autopsy(before(first), after(later, read=5300, at=500.0))
    assert (partly.cause, partly.lost_tokens) == ("expired", 2700)
    assert autopsy(before(first), after(later, read=0, at=500.0)).cause == "evicted"


def test_several_causes_are_ranked_by_what_was_read() -> None:
    changed = ask(system("Be cold."), *NEXT[1:])
    found = autopsy(before(), after(changed, at=500.0))
    assert (found.cause, found.also) == ("expired", ("system",))
    tiered = ask(*NEXT, options=Options(service_tier="flex", reasoning=Reasoning(effort="low")))
    assert autopsy(before(), after(tiered, version="2", betas=frozenset({"b"}))).also == ("settings", "version", "beta")


def test_marks_that_are_gone_out_of_reach_or_too_many_find_nothing() -> None:
    bare = autopsy(before(), after(ask(system(mark=None), *NEXT[1:3], user("And?"))))
    assert (bare.cause, bare.pointer) == ("marks_missing", "")
    many = said("user", *["word"] * 30, MARK, at="/messages/2")
    far = autopsy(before(), after(ask(system(mark=None), *NEXT[1:3], many)))
    assert far.cause == "marks_moved"
    tools = tuple(FunctionTool(f"t{n}", LONG, cache=MARK, at=f"/tools/{n}") for n in range(4))
    previous = before(ask(*FIRST, tools=tuple(FunctionTool(f"t{n}", LONG, at=f"/tools/{n}") for n in range(4))))
    over = autopsy(previous, after(ask(*NEXT, tools=tools)))
    assert over.cause == "marks_limit"


def test_what_was_never_cached_is_estimated() -> None:
    nothing = Usage(input_tokens=8000, output_tokens=1, cached_tokens=0, cache_write_tokens=0)
    bare = ask(system(mark=None), user(f"First. {LONG}"))
    missing = autopsy(before(bare, usage=nothing), after())
    assert (missing.cause, missing.lost_tokens, missing.is_estimated) == ("marks_missing", 8000, True)
    changed = autopsy(before(bare, usage=nothing), after(ask(system(), user(f"Other. {LONG}", MARK))))
    assert 2000 < changed.lost_tokens < 7000
    short = Usage(input_tokens=900, output_tokens=1, cached_tokens=0, cache_write_tokens=0)
    assert autopsy(before(usage=short), after()).cause == "below_minimum"
    assert autopsy(before(usage=short), after(), Facts(cache_minimum=512)).cause == "unknown"
    assert autopsy(before(usage=short), after(read=900)).cause == ""


def test_a_provider_that_needs_no_marks_is_expected_to_cache_everything() -> None:
    counted = Usage(input_tokens=8000, output_tokens=1, cached_tokens=0)
    plain = (system(mark=None), user(f"First. {LONG}"))
    first = ask(*plain, dialect="openai-chat")
    later = ask(*plain, said("assistant", "Well."), user("And?"), dialect="openai-chat")
    previous = before(first, usage=counted)
    assert autopsy(previous, after(later, read=7936)).cause == ""
    assert autopsy(previous, after(later)).cause == "evicted"
    assert autopsy(previous, after(later, at=500.0)).cause == "expired"
    kept = before(ask(*plain, dialect="openai-chat", options=Options(cache_retention="24h")), usage=counted)
    assert autopsy(kept, after(later, at=500.0)).cause == "evicted"
    form = ask(*later.messages, dialect="openai-chat", options=Options(format=SchemaFormat({"type": "object"})))
    assert autopsy(previous, after(form)).cause == "format"
    other = ask(plain[0], user(f"Other. {LONG}"), dialect="openai-chat")
    assert autopsy(previous, after(other, read=5120)).cause == "messages"
    short = Usage(input_tokens=900, output_tokens=1, cached_tokens=0)
    assert autopsy(before(first, usage=short), after(later)).cause == "below_minimum"
    stateful = ask(user("And?"), dialect="openai-chat", options=Options(previous_response_id="r"))
    assert autopsy(previous, after(stateful)).cause == "evicted"


def test_what_a_provider_keeps_for_a_time_it_does_not_tell_never_expires() -> None:
    request = ask(system(mark=None), user(LONG), dialect="raw")
    assert autopsy(before(request, usage=PLAIN), after(request, at=9e9)).cause == "evicted"


@pytest.mark.parametrize(("seconds", "cause"), [(301.0, "expired"), (299.0, "evicted")])
def test_a_models_own_lifetime_is_that_of_its_cache(seconds: float, cause: str) -> None:
    request = ask(system(mark=None), user(LONG), dialect="openai-chat")
    turns = before(request, usage=PLAIN), after(request, at=100.0 + seconds)
    assert autopsy(*turns).cause == cause
    assert autopsy(*turns, Facts(cache_lifetime=100)).cause == "expired"
    assert autopsy(*turns, Facts(cache_lifetime=86_400)).cause == "evicted"


# --- providers that set a mark of their own, and take more ---

OWN_MARKS = Facts(prices=PRICES, cache_marks=True)
BREAKPOINT = {"prompt_cache_breakpoint": {"mode": "explicit"}}
EXPLICIT = {"prompt_cache_options": {"mode": "explicit"}}
OLD = user(f"First. {LONG}", at="/messages/1")
SAID = (system(mark=None), OLD, said("assistant", "Well."))


def marked(text: str, at: str) -> Message:
    return Message("user", (Text(text, extras=BREAKPOINT),), at=at)


def responses(*messages: Message, **fields: Any) -> Request:
    return ask(*messages, dialect="openai-responses", **fields)


def test_a_mark_of_the_providers_own_is_at_the_end_of_each_message_of_the_client() -> None:
    previous = before(responses(*SAID, user("Second.", at="/messages/3")))
    later = (*SAID, user("Second.", at="/messages/3"), said("assistant", "Hm."), user("Third.", at="/messages/5"))
    assert autopsy(previous, after(responses(*later), read=8000), OWN_MARKS).cause == ""
    changed = (*SAID[:2], said("assistant", "Ill."), *later[3:])
    found = autopsy(previous, after(responses(*changed), read=7950), OWN_MARKS)
    assert found.cause == "", "what is before the changed message was read"
    lost = autopsy(previous, after(responses(SAID[0], user("Else."), *later[2:]), read=5200), OWN_MARKS)
    assert lost.cause == "messages"


def test_marks_in_a_field_are_found_without_a_limit_of_blocks_and_are_not_read_by_the_model() -> None:
    first = responses(SAID[0], marked(f"First. {LONG}", "/messages/1"), extras=EXPLICIT)
    many = said("user", *["word"] * 40, at="/messages/3")
    later = responses(*SAID, Message("user", (*many.parts, Text("Go.", extras=BREAKPOINT))), extras=EXPLICIT)
    assert autopsy(before(first), after(later, read=8000), OWN_MARKS).cause == ""
    assert autopsy(before(first), after(later), OWN_MARKS).cause == "evicted"
    bare = autopsy(before(first), after(responses(*SAID, user("And?"), extras=EXPLICIT)), OWN_MARKS)
    assert bare.cause == "marks_missing"
    assert autopsy(before(first), after(responses(*SAID, user("And?"))), OWN_MARKS).cause == "evicted"


@pytest.mark.parametrize(("name", "cause"), [("cachedContents/b", "cache_key"), ("cachedContents/a", "")])
def test_a_cache_that_a_request_names_holds_what_was_read_of_it(name: str, cause: str) -> None:
    usage = Usage(input_tokens=8000, output_tokens=1, cached_tokens=5000)
    first = ask(user(LONG), dialect="gemini", extras={"cachedContent": "cachedContents/a"})
    later = ask(user(LONG), dialect="gemini", extras={"cachedContent": name})
    found = autopsy(before(first, usage=usage), after(later, read=0 if cause else 5000))
    assert (found.cause, found.could_tokens) == (cause, 5000)


def test_a_provider_that_omits_zeros_has_read_nothing() -> None:
    silent = Usage(input_tokens=8000, output_tokens=1)
    request = ask(system(mark=None), user(LONG), dialect="gemini")
    found = autopsy(before(request, usage=silent), after(request, usage=silent))
    assert (found.cause, found.lost_tokens) == ("evicted", 8000)


def test_a_request_that_wants_nothing_cached_but_its_marks_leaves_nothing_without_any() -> None:
    first = responses(*SAID[:2], extras=EXPLICIT)
    usage = Usage(input_tokens=8000, output_tokens=1, cached_tokens=0, cache_write_tokens=0)
    found = autopsy(before(first, usage=usage), after(responses(*SAID, user("And?"), extras=EXPLICIT)), Facts())
    assert (found.cause, found.is_estimated) == ("marks_missing", True)


def test_another_key_is_a_cause_where_the_account_is_unknown() -> None:
    assert autopsy(before(key="a"), after(key="b")).cause == "key"
    assert autopsy(before(key="a"), after(key="a")).cause == "evicted"
    same = before(key="a", organisation="org-1"), after(key="b", organisation="org-1")
    assert autopsy(*same).cause == "evicted"


def test_what_would_be_read_follows_from_the_rules() -> None:
    def expect(previous: Turn, turn: Turn, facts: Facts = FACTS) -> int | None:
        return expect_read(previous, turn, Estimator(facts, dialect=turn.request.dialect), facts)

    assert expect(before(), after()) == 8000
    assert expect(before(), after(provider="q")) == 0
    assert expect(before(), after(at=500.0)) == 0
    assert expect(before(usage=None), after()) is None
    nothing = Usage(input_tokens=8000, output_tokens=1, cached_tokens=0, cache_write_tokens=0)
    assert expect(before(usage=nothing), after()) == pytest.approx(8000, rel=0.02)
    short = Usage(input_tokens=900, output_tokens=1, cached_tokens=0, cache_write_tokens=0)
    assert expect(before(usage=short), after()) == 0
    assert expect(before(), after(usage=None)) == 8000


def test_what_a_turn_left_is_what_the_provider_counted() -> None:
    rules = CacheRules(order=(), needs_marks=False, step=128)
    assert count_left(Usage(input_tokens=2000, output_tokens=0, cached_tokens=0), rules, Facts()) == 1920
    assert count_left(Usage(input_tokens=2000, output_tokens=0, cache_write_tokens=1500), rules, Facts()) == 1500


def test_tokens_that_are_written_again_for_an_hour_cost_what_they_cost() -> None:
    usage = Usage(
        input_tokens=3000, output_tokens=0, cached_tokens=0, cache_write_tokens=3000, cache_write_1h_tokens=1000
    )
    dollars = price_loss(usage, 2000, PRICES)
    assert dollars == pytest.approx((1000 * 6.0 + 1000 * 3.75 - 2000 * 0.3) / 1e6)
    assert price_loss(usage, 2000, None) is None


def test_marks_of_parts_that_are_not_modelled_have_their_lifetime() -> None:
    opaque = Opaque("anthropic", {"type": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}, at="/messages/0")
    first, later = (
        ask(system(mark=None), said("user", LONG, opaque)),
        ask(system(mark=None), said("user", LONG, opaque)),
    )
    assert autopsy(before(first), after(later, at=500.0)).cause == "evicted"
    plain = Opaque("anthropic", {"type": "x", "cache_control": "yes"}, at="/messages/0")
    first = ask(system(mark=None), said("user", LONG, plain))
    assert autopsy(before(first), after(first, at=500.0)).cause == "expired"
