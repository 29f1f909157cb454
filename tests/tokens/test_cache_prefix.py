from sightline.catalog.facts import Facts
from sightline.model.message import Message
from sightline.model.options import JsonFormat, Options, Reasoning
from sightline.model.parts import CacheBreakpoint, Opaque, Text, ToolResult
from sightline.model.request import Request
from sightline.model.tools import FunctionTool, OpaqueTool, ToolChoice
from sightline.tokens.cache_prefix import Prefix, pieces_of, same_piece
from sightline.tokens.estimator import Estimator

LONG = "The quick brown fox jumps over the lazy dog. " * 200
TOOLS = (FunctionTool("add", LONG, at="/tools/0"), FunctionTool("sub", LONG, at="/tools/1"))
TALK = (
    Message("system", (Text(LONG, at="/system"),), at="/system"),
    Message("user", (Text("hello", at="/messages/0/content/0"), Text(LONG, at="/messages/0/content/1")), at="/m/0"),
)


def prefix(dialect: str = "anthropic", **fields) -> Prefix:
    request = Request(**{"model": "m", "messages": TALK, "tools": TOOLS, "dialect": dialect, **fields})
    return Prefix(request, Estimator(Facts(), dialect=dialect))


def kinds(made: Prefix) -> list[str]:
    return [unit.kind for unit in made.units]


def test_each_provider_caches_in_its_own_order() -> None:
    assert kinds(prefix("anthropic")) == ["model", "tools", "system", "settings", "message"]
    assert kinds(prefix("gemini")) == ["model", "system", "tools", "message"]
    for dialect in ("openai-chat", "openai-responses", "raw"):
        assert kinds(prefix(dialect)) == ["model", "format", "tools", "system", "message"]


def test_a_system_message_in_the_middle_stays_in_the_middle() -> None:
    late = prefix(messages=(*TALK, Message("system", (Text("also"),))))
    assert kinds(late)[-2:] == ["message", "system"]
    assert kinds(prefix(messages=TALK[:1])) == ["model", "tools", "system", "settings"]


def test_units_know_where_they_stand() -> None:
    made = prefix("openai-chat", options=Options(format=JsonFormat(at="/response_format")), tools=(), messages=TALK[1:])
    assert [unit.pointer for unit in made.units] == ["/model", "/response_format", "", "/m/0"]
    assert prefix().units[1].pointer == "/tools"
    assert prefix().units[3].pointer == ""
    assert prefix(tool_choice=ToolChoice("auto", at="/tool_choice")).units[3].pointer == "/tool_choice"
    assert prefix(options=Options(reasoning=Reasoning(mode="on", at="/thinking"))).units[3].pointer == "/thinking"
    assert prefix("openai-chat").units[1].pointer == ""


def test_the_units_add_up_to_the_whole() -> None:
    made = prefix()
    assert made.tokens == sum(unit.tokens for unit in made.units) > 3000
    assert made.tokens_before(0, 0) == 0
    assert made.tokens_before(len(made.units), 0) == made.tokens
    assert made.tokens_before(1, 0) == 0
    assert made.tokens_before(1, 2) == made.units[1].tokens


def test_a_part_of_a_unit_is_a_part_of_its_tokens() -> None:
    made = prefix()
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
    made = prefix(messages=(marked,), tools=tools, extras={"cache_control": {"type": "ephemeral"}})
    assert [(mark.pointer, mark.unit, mark.pieces, mark.blocks) for mark in made.marks] == [
        ("/t0", 1, 1, 1),
        ("/t1", 1, 2, 2),
        ("/a", 3, 1, 5),
        ("/b", 3, 2, 6),
        ("/c", 3, 3, 7),
        ("/cache_control", 3, 5, 9),
    ]
    assert made.marks[-1].tokens == made.tokens


def test_marks_and_places_are_not_what_is_said() -> None:
    one = prefix(messages=(Message("user", (Text("a", at="/1"), CacheBreakpoint()), at="/1"),))
    other = prefix(messages=(Message("user", (Text("a", at="/2"),), at="/2"),))
    assert one.units[-1].says_the_same(other.units[-1])
    assert not one.units[-1].says_the_same(one.units[1])
    assert not one.units[0].says_the_same(prefix(model="n").units[0])
    marked = prefix(tools=(FunctionTool("add", cache=CacheBreakpoint()),)).units[1]
    assert marked.says_the_same(prefix(tools=(FunctionTool("add"),)).units[1])
    assert not marked.says_the_same(prefix().units[1])
    assert not prefix(messages=TALK[:1]).units[2].says_the_same(prefix(messages=TALK[1:]).units[2])


def test_pieces_are_compared_by_what_they_say() -> None:
    assert same_piece(Text("a", at="/1"), Text("a", at="/2"))
    assert same_piece(FunctionTool("a", cache=CacheBreakpoint()), FunctionTool("a"))
    assert not same_piece(Text("a"), Text("b"))
    assert pieces_of({"model": "m"}) == ()


def test_a_request_that_leans_on_the_provider_says_so() -> None:
    assert not prefix().is_stateful
    assert prefix(extras={"thread": {"type": "continue"}}).is_stateful
    assert prefix("openai-responses", options=Options(previous_response_id="r")).is_stateful


def test_what_two_requests_share_is_taken_over() -> None:
    made = prefix()
    more = Message("assistant", (Text("yes"),))
    request = Request(model="m", messages=(*TALK, more), tools=TOOLS, dialect="anthropic")
    like = Prefix(request, Estimator(Facts(), dialect="anthropic"), made)
    assert like.units[2] is made.units[2]
    assert like.units[4] is made.units[4]
    assert like.units[-1].value is more
    assert like.by_message[id(more)] is like.units[-1]
