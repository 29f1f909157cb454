import pytest

from sightline.catalog.facts import Facts, LongPrices, Prices
from sightline.model.parts import CacheBreakpoint, Opaque, Text, ToolResult
from sightline.model.request import (
    FunctionTool,
    JsonFormat,
    Message,
    OpaqueTool,
    Options,
    Reasoning,
    Request,
    SchemaFormat,
    ToolChoice,
)
from sightline.tokens.cache_cost import NOTHING_KNOWN, Prefix, Reuse, alike, money, pieces_of, reuse, same_piece
from sightline.tokens.estimator import Estimator

LONG = "The quick brown fox jumps over the lazy dog. " * 200
MARK = CacheBreakpoint()
TOOLS = (FunctionTool("add", LONG, at="/tools/0"), FunctionTool("sub", LONG, at="/tools/1"))


def said(role: str, *parts, at: str = "") -> Message:
    return Message(role, tuple(Text(part) if isinstance(part, str) else part for part in parts), at=at)


SYSTEM = said("system", f"Be kind. {LONG}", at="/system")
FIRST = said("user", f"First. {LONG}", at="/messages/0")
ANSWER = said("assistant", "Well.", at="/messages/1")
SECOND = said("user", "Second.", at="/messages/2")


def prefix(*messages: Message, dialect: str = "openai-chat", **fields) -> Prefix:
    request = Request(**{"model": "m", "messages": messages, "tools": TOOLS, "dialect": dialect, **fields})
    return Prefix(request, Estimator(Facts(), dialect=dialect))


def test_a_conversation_that_goes_on_keeps_everything() -> None:
    previous = prefix(SYSTEM, FIRST)
    assert reuse(previous, prefix(SYSTEM, FIRST, ANSWER, SECOND)) == Reuse(previous.tokens)


def test_what_is_too_short_was_never_cached() -> None:
    assert reuse(prefix(ANSWER, tools=()), prefix(SECOND, tools=())) == Reuse()


@pytest.mark.parametrize(
    ("later", "reason", "pointer"),
    [
        (prefix(SYSTEM, FIRST, model="other"), "the model or the cache key changed", "/model"),
        (
            prefix(SYSTEM, FIRST, options=Options(format=SchemaFormat({"type": "object"}, at="/response_format"))),
            "the schema of the answer changed",
            "/response_format",
        ),
        (prefix(SYSTEM, FIRST, tools=TOOLS[1:]), "tool definitions changed", "/tools"),
        (prefix(FIRST), "system prompt changed", "/messages/0"),
        (prefix(said("system", "Be brief.", at="/system"), FIRST), "system prompt changed", "/system"),
    ],
)
def test_the_reason_names_what_changed(later: Prefix, reason: str, pointer: str) -> None:
    found = reuse(prefix(SYSTEM, FIRST, ANSWER), later)
    assert (found.reason, found.pointer) == (reason, pointer)
    assert found.broken_tokens > 1024


def test_a_changed_message_breaks_what_comes_behind_it() -> None:
    previous = prefix(SYSTEM, FIRST, ANSWER, SECOND)
    changed = said("user", "Other words.", at="/messages/0")
    found = reuse(previous, prefix(SYSTEM, changed, ANSWER, SECOND))
    assert found.kept_tokens + found.broken_tokens == previous.tokens
    assert found.kept_tokens == previous.tokens_before(4, 0)
    assert (found.reason, found.pointer) == ("an earlier message changed", "/messages/0")


def test_added_or_removed_message_is_distinguished_from_a_changed_one() -> None:
    previous = prefix(SYSTEM, FIRST, ANSWER, SECOND)
    assert reuse(previous, prefix(SYSTEM, SECOND, FIRST, ANSWER)).reason == "a message was put in before"
    assert reuse(previous, prefix(SYSTEM, ANSWER, SECOND)).reason == "a message was taken out"
    assert reuse(previous, prefix(SYSTEM, said("user", "x"))).reason == "an earlier message changed"
    assert reuse(prefix(SYSTEM, FIRST), prefix(SYSTEM, said("user", "x"))).reason == "an earlier message changed"
    shorter = reuse(previous, prefix(SYSTEM, FIRST))
    assert (shorter.reason, shorter.pointer) == ("the conversation is shorter", "")
    assert shorter.broken_tokens == previous.tokens - prefix(SYSTEM, FIRST).tokens


def test_what_is_known_to_be_alike_need_not_be_compared_again() -> None:
    previous, later = prefix(SYSTEM, FIRST, ANSWER), prefix(SYSTEM, FIRST, SECOND)
    assert alike(previous, later) == 5
    assert alike(previous, previous) == 6
    assert reuse(previous, later, known=5) == reuse(previous, later)


def test_within_a_message_the_first_parts_are_kept() -> None:
    parts = (Text(LONG, at="/0"), Text("middle", at="/1"), Text(LONG, at="/2"))
    previous = prefix(said("user", *parts), tools=())
    changed = prefix(said("user", parts[0], Text("muddle", at="/1"), parts[2]), ANSWER, tools=())
    found = reuse(prefix(said("user", *parts), ANSWER, tools=()), changed)
    assert found.pointer == "/1"
    assert found.kept_tokens == previous.tokens_before(3, 1)


def test_a_last_message_that_goes_on_breaks_nothing() -> None:
    previous = prefix(SYSTEM, FIRST, said("assistant", "Well"))
    assert reuse(previous, prefix(SYSTEM, FIRST, said("assistant", "Well", "and so on"))).broken_tokens == 0


def test_a_short_beginning_in_common_was_not_cached() -> None:
    previous = prefix(said("system", "Short."), FIRST, tools=())
    found = reuse(previous, prefix(said("system", "Short."), said("user", "else"), tools=()))
    assert (found.kept_tokens, found.broken_tokens) == (0, previous.tokens)


def test_a_change_at_the_end_of_what_was_cached_breaks_nothing_that_counts() -> None:
    previous = prefix(SYSTEM, FIRST, Message("assistant"))
    assert reuse(previous, prefix(SYSTEM, FIRST, said("user", "x"))).broken_tokens < 10


def test_cache_use_is_unknown_if_the_provider_keeps_the_history() -> None:
    leaning = prefix(SYSTEM, dialect="openai-responses", options=Options(previous_response_id="r"))
    assert reuse(prefix(SYSTEM, FIRST), leaning) is NOTHING_KNOWN
    assert reuse(leaning, prefix(SYSTEM, FIRST)) is NOTHING_KNOWN


def claude(*messages: Message, **fields) -> Prefix:
    return prefix(*messages, dialect="anthropic", **fields)


MARKED_SYSTEM = Message("system", (*SYSTEM.parts, MARK), at="/system")
MARKED_FIRST = Message("user", (*FIRST.parts, MARK), at="/messages/0")
MARKED_SECOND = Message("user", (*SECOND.parts, CacheBreakpoint(at="/messages/2/cache")), at="/messages/2")


def test_without_marks_anthropic_caches_nothing() -> None:
    assert reuse(claude(SYSTEM, FIRST), claude(SYSTEM, SECOND)) == Reuse(is_written=True)


def test_a_mark_that_moves_on_finds_what_was_written_before() -> None:
    previous = claude(MARKED_SYSTEM, MARKED_FIRST)
    found = reuse(previous, claude(MARKED_SYSTEM, FIRST, ANSWER, MARKED_SECOND))
    assert found == Reuse(previous.tokens, is_written=True)


def test_an_edit_of_a_message_leaves_the_marked_system_prompt() -> None:
    previous = claude(MARKED_SYSTEM, MARKED_FIRST)
    found = reuse(previous, claude(MARKED_SYSTEM, said("user", "else", MARK, at="/messages/0")))
    assert found.kept_tokens == previous.tokens_before(3, 0)
    assert found.kept_tokens + found.broken_tokens == previous.tokens
    assert (found.reason, found.pointer) == ("an earlier message changed", "/messages/0")


def test_change_after_the_last_breakpoint_breaks_no_cached_tokens() -> None:
    found = reuse(claude(MARKED_SYSTEM, FIRST), claude(MARKED_SYSTEM, SECOND))
    assert (found.broken_tokens, found.reason) == (0, "")


def test_thinking_breaks_the_messages_and_not_the_system_prompt() -> None:
    previous = claude(MARKED_SYSTEM, MARKED_FIRST)
    thinking = Options(reasoning=Reasoning(mode="on", budget=2000, at="/thinking"))
    found = reuse(previous, claude(MARKED_SYSTEM, MARKED_FIRST, options=thinking))
    assert (found.reason, found.pointer) == ("thinking or the choice of tools changed", "/thinking")
    assert found.kept_tokens == previous.tokens_before(3, 0)


def test_marks_that_are_gone_or_out_of_reach_find_nothing() -> None:
    previous = claude(SYSTEM, MARKED_FIRST)
    gone = reuse(previous, claude(SYSTEM, FIRST))
    assert (gone.kept_tokens, gone.broken_tokens) == (0, previous.tokens)
    assert (gone.reason, gone.pointer) == ("the cache marks are gone", "")
    far = [said("assistant", str(number)) for number in range(25)]
    moved = reuse(previous, claude(SYSTEM, FIRST, *far, MARKED_SECOND))
    assert (moved.reason, moved.pointer) == ("a cache mark moved out of reach", "/messages/2/cache")
    assert reuse(previous, claude(MARKED_SYSTEM, FIRST)).reason == "a cache mark moved out of reach"


PRICES = Prices(input=3.0, output=15.0, cached=0.3, cache_write=3.75)


def test_broken_tokens_are_paid_as_input_or_as_written() -> None:
    assert money(Reuse(1000, 2000), 2000, 5000, PRICES) == pytest.approx(2000 * (3.0 - 0.3) / 1e6)
    written = Reuse(1000, 2000, is_written=True)
    assert money(written, 2000, 5000, PRICES) == pytest.approx(2000 * (3.75 - 0.3) / 1e6)


def test_a_long_prompt_is_paid_at_its_own_prices() -> None:
    prices = Prices(input=3.0, output=15.0, cached=0.3, long=LongPrices(above=4000, input=6.0, cached=0.6))
    assert money(Reuse(0, 2000), 2000, 5000, prices) == pytest.approx(2000 * (6.0 - 0.6) / 1e6)


def test_a_shorter_prompt_still_pays_for_what_broke() -> None:
    assert money(Reuse(1000, 2000), 2000, 500, PRICES) == pytest.approx(2000 * (3.0 - 0.3) / 1e6)


def test_without_prices_there_is_no_sum() -> None:
    assert money(Reuse(0, 2000), 2000, 5000, None) is None
    assert money(Reuse(0, 2000), 2000, 5000, Prices(input=3.0, output=15.0)) is None
    assert money(Reuse(5000), 0, 5000, PRICES) == 0


TALK = (
    Message("system", (Text(LONG, at="/system"),), at="/system"),
    Message("user", (Text("hello", at="/messages/0/content/0"), Text(LONG, at="/messages/0/content/1")), at="/m/0"),
)


def prefix_for(dialect: str = "anthropic", **fields) -> Prefix:
    request = Request(**{"model": "m", "messages": TALK, "tools": TOOLS, "dialect": dialect, **fields})
    return Prefix(request, Estimator(Facts(), dialect=dialect))


def kinds(made: Prefix) -> list[str]:
    return [unit.kind for unit in made.units]


def test_each_provider_caches_in_its_own_order() -> None:
    assert kinds(prefix_for("anthropic")) == ["model", "tools", "system", "settings", "message"]
    assert kinds(prefix_for("gemini")) == ["model", "system", "tools", "message"]
    for dialect in ("openai-chat", "openai-responses", "raw"):
        assert kinds(prefix_for(dialect)) == ["model", "format", "tools", "system", "message"]


def test_a_system_message_in_the_middle_stays_in_the_middle() -> None:
    late = prefix_for(messages=(*TALK, Message("system", (Text("also"),))))
    assert kinds(late)[-2:] == ["message", "system"]
    assert kinds(prefix_for(messages=TALK[:1])) == ["model", "tools", "system", "settings"]


def test_units_know_where_they_stand() -> None:
    made = prefix_for(
        "openai-chat", options=Options(format=JsonFormat(at="/response_format")), tools=(), messages=TALK[1:]
    )
    assert [unit.pointer for unit in made.units] == ["/model", "/response_format", "", "/m/0"]
    assert prefix_for().units[1].pointer == "/tools"
    assert prefix_for().units[3].pointer == ""
    assert prefix_for(tool_choice=ToolChoice("auto", at="/tool_choice")).units[3].pointer == "/tool_choice"
    assert prefix_for(options=Options(reasoning=Reasoning(mode="on", at="/thinking"))).units[3].pointer == "/thinking"
    assert prefix_for("openai-chat").units[1].pointer == ""


def test_the_units_add_up_to_the_whole() -> None:
    made = prefix_for()
    assert made.tokens == sum(unit.tokens for unit in made.units) > 3000
    assert made.tokens_before(0, 0) == 0
    assert made.tokens_before(len(made.units), 0) == made.tokens
    assert made.tokens_before(1, 0) == 0
    assert made.tokens_before(1, 2) == made.units[1].tokens


def test_a_part_of_a_unit_is_a_part_of_its_tokens() -> None:
    made = prefix_for()
    start = made.tokens_before(4, 0)
    assert start < made.tokens_before(4, 1) < start + 20
    assert made.tokens_before(4, 2) == made.tokens
    half = made.tokens_before(1, 1)
    assert 0.4 < half / made.units[1].tokens < 0.6


def test_marks_are_found_wherever_they_stand() -> None:
    marked = Message(
        "user",
        (
            Text("a"),
            CacheBreakpoint(at="/a"),
            ToolResult("c", (Text("r"), CacheBreakpoint(at="/b"))),
            Opaque("anthropic", {"cache_control": {"type": "ephemeral"}}, at="/c"),
            Opaque("anthropic", "unmarked"),
            Text("z"),
        ),
    )
    tools = (
        FunctionTool("add", cache=CacheBreakpoint(at="/t0")),
        OpaqueTool("anthropic", {"cache_control": {"type": "ephemeral"}}, at="/t1"),
        OpaqueTool("anthropic", {"type": "search"}),
        FunctionTool("sub"),
    )
    made = prefix_for(messages=(marked,), tools=tools, extras={"cache_control": {"type": "ephemeral"}})
    assert [(mark.pointer, mark.unit, mark.pieces, mark.blocks) for mark in made.marks] == [
        ("/t0", 1, 1, 1),
        ("/t1", 1, 2, 2),
        ("/a", 3, 1, 5),
        ("/b", 3, 2, 6),
        ("/c", 3, 3, 7),
        ("/cache_control", 3, 5, 9),
    ]
    assert made.marks[-1].tokens == made.tokens


def test_breakpoints_and_pointers_are_ignored_in_comparison() -> None:
    one = prefix_for(messages=(Message("user", (Text("a", at="/1"), CacheBreakpoint()), at="/1"),))
    other = prefix_for(messages=(Message("user", (Text("a", at="/2"),), at="/2"),))
    assert one.units[-1].says_the_same(other.units[-1])
    assert not one.units[-1].says_the_same(one.units[1])
    assert not one.units[0].says_the_same(prefix_for(model="n").units[0])
    marked = prefix_for(tools=(FunctionTool("add", cache=CacheBreakpoint()),)).units[1]
    assert marked.says_the_same(prefix_for(tools=(FunctionTool("add"),)).units[1])
    assert not marked.says_the_same(prefix_for().units[1])
    assert not prefix_for(messages=TALK[:1]).units[2].says_the_same(prefix_for(messages=TALK[1:]).units[2])


def test_pieces_are_compared_by_what_they_say() -> None:
    assert same_piece(Text("a", at="/1"), Text("a", at="/2"))
    assert same_piece(FunctionTool("a", cache=CacheBreakpoint()), FunctionTool("a"))
    assert not same_piece(Text("a"), Text("b"))
    assert pieces_of({"model": "m"}) == ()


def test_a_request_that_leans_on_the_provider_says_so() -> None:
    assert not prefix_for().is_stateful
    assert prefix_for(extras={"thread": {"type": "continue"}}).is_stateful
    assert prefix_for("openai-responses", options=Options(previous_response_id="r")).is_stateful
