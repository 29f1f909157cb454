"""Sessions whose cache breaks for a known cause, streamed through the relay to a provider that really keeps a cache."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Model, Prices
from sightline.catalog.provider import Provider, Route
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.interception.holds import Holds
from sightline.exchange.interception.viewer import Viewer
from sightline.exchange.memory import Memory
from sightline.exchange.recording.records import Records
from sightline.store.sqlite import open_store
from sightline.store.summary import price_list
from sightline.workbench.cache_report import CacheReport, CacheReports
from sightline.workbench.cache_turns import TurnExaminer
from tests.caching_provider import CachingProvider
from tests.fake_clock import FakeClock
from tests.relay_stage import Stage, open_stage
from tests.upstream import Seen

Body = dict[str, Any]
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
PRICES = Prices(input=3.0, output=15.0, cached=0.3, cache_write=3.75, cache_write_1h=6.0)
MODELS = {name: Model(providers=("open",), prices=PRICES, cache_minimum=1024) for name in ("large", "other")}
MODELS["marking"] = Model(
    providers=("responses",), prices=PRICES, cache_minimum=1024, cache_lifetime=1800, cache_marks=True
)
MODELS |= {name: Model(providers=("gemini",), prices=PRICES, cache_minimum=4096) for name in ("pro", "flash")}
PATHS = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "gemini": "/v1beta/models/{model}:streamGenerateContent",
}
WORDS = ("amber", "basin", "cobalt", "delta", "ember", "fjord", "gravel", "harbour", "island", "juniper", "kettle")


def words(random_: random.Random, count: int) -> str:
    return " ".join(random_.choices(WORDS, k=count))


@dataclass
class Sending:
    """One turn to send: the body, the headers, and how long the client waits before."""

    body: Body
    pause: float = 20.0
    key: str = "key-1"
    version: str = "2023-06-01"
    beta: str = ""
    model: str = ""
    """Where the path names it."""

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        found = [("Content-Type", "application/json")]
        if self.model:
            return (*found, ("x-goog-api-key", f"sk-{self.key}-0123456789"))
        found += [("Authorization", f"Bearer sk-{self.key}-0123456789")]
        found += [("anthropic-version", self.version)] + ([("anthropic-beta", self.beta)] if self.beta else [])
        return tuple(found)


@dataclass
class Break:
    """A session of turns of which the last one loses what it would have read as `whole`, for this cause.

    `evicts`: the provider forgets everything before it. `lost` are the tokens if nothing was ever cached."""

    cause: str
    dialect: str
    turns: list[Sending]
    whole: Sending
    evicts: bool = False
    never: bool = False
    name: str = ""
    lost: int = field(default=0, init=False)


def marked(random_: random.Random, turns: int = 2) -> list[Body]:
    """The bodies of a conversation with Messages that grows, with marks on the system prompt and the last message."""
    schema = {"type": "object"}
    tools = [{"name": f"tool_{n}", "description": words(random_, 60), "input_schema": schema} for n in range(4)]
    system = [{"type": "text", "text": words(random_, 400), "cache_control": MARK}]
    bodies: list[Body] = []
    messages: list[Body] = []
    for _ in range(turns + 1):
        messages.append({"role": "user", "content": [{"type": "text", "text": words(random_, 60)}]})
        body = {
            "model": "large",
            "max_tokens": 10,
            "stream": True,
            "tools": tools,
            "system": system,
            "messages": messages,
        }
        bodies.append(copy.deepcopy(body))
        bodies[-1]["messages"][-1]["content"][-1]["cache_control"] = MARK
        messages.append({"role": "assistant", "content": [{"type": "text", "text": words(random_, 30)}]})
    return bodies


def plain(random_: random.Random, turns: int = 2) -> list[Body]:
    """The same with Chat Completions, which need no marks."""
    tools = [
        {
            "type": "function",
            "function": {"name": f"tool_{n}", "description": words(random_, 60), "parameters": {}},
        }
        for n in range(4)
    ]
    messages: list[Body] = [{"role": "system", "content": words(random_, 600)}]
    bodies: list[Body] = []
    for _ in range(turns + 1):
        messages.append({"role": "user", "content": words(random_, 200)})
        body = {"model": "large", "stream": True, "stream_options": {"include_usage": True}, "tools": tools}
        bodies.append(copy.deepcopy({**body, "messages": messages}))
        messages.append({"role": "assistant", "content": words(random_, 30)})
    return bodies


def edit_text(text: str, random_: random.Random) -> str:
    at = random_.randrange(len(text) // 2)
    return f"{text[:at]} {random_.randrange(10**6)} {text[at:]}"


def change_system(body: Body, random_: random.Random) -> None:
    body["system"][0]["text"] = edit_text(body["system"][0]["text"], random_)


def change_tool(body: Body, random_: random.Random) -> None:
    tool = random_.choice(body["tools"])
    tool["description"] = edit_text(tool["description"], random_)


def add_tool(body: Body, random_: random.Random) -> None:
    body["tools"].append({"name": "late", "description": words(random_, 20), "input_schema": {"type": "object"}})


def swap_tools(body: Body, random_: random.Random) -> None:
    one, other = random_.sample(range(len(body["tools"])), 2)
    body["tools"][one], body["tools"][other] = body["tools"][other], body["tools"][one]


def think(body: Body, random_: random.Random) -> None:
    body["thinking"] = {"type": "enabled", "budget_tokens": 1024 + random_.randrange(1000)}


def choose_tool(body: Body, random_: random.Random) -> None:
    body["tool_choice"] = {"type": "tool", "name": random_.choice(body["tools"])["name"]}


def change_message(body: Body, random_: random.Random) -> None:
    part = body["messages"][random_.choice((0, 1, 2))]["content"][0]
    part["text"] = edit_text(part["text"], random_)


def drop_messages(body: Body, random_: random.Random) -> None:
    del body["messages"][1:3]


def insert_message(body: Body, random_: random.Random) -> None:
    body["messages"][1:1] = [{"role": "assistant", "content": [{"type": "text", "text": words(random_, 9)}]}]


def unmark(body: Body, random_: random.Random) -> None:
    for part in (*body["system"], *(part for message in body["messages"] for part in message["content"])):
        part.pop("cache_control", None)


def outrun_marks(body: Body, random_: random.Random) -> None:
    """More blocks than a mark looks back, and a mark on the last of them alone."""
    unmark(body, random_)
    new = [{"type": "text", "text": words(random_, 5)} for _ in range(random_.randrange(21, 40))]
    body["messages"][-1]["content"] = [*new, {"type": "text", "text": "Now?", "cache_control": MARK}]


def overmark(body: Body, random_: random.Random) -> None:
    """Marks on tools and system, so that the one at the end is too many."""
    for tool in body["tools"]:
        tool["cache_control"] = MARK


MARKED_CHANGES: list[tuple[str, Callable[[Body, random.Random], None]]] = [
    ("system", change_system),
    ("tools", change_tool),
    ("tools", add_tool),
    ("tools_order", swap_tools),
    ("settings", think),
    ("settings", choose_tool),
    ("messages", change_message),
    ("messages", drop_messages),
    ("messages", insert_message),
    ("marks_missing", unmark),
    ("marks_moved", outrun_marks),
    ("marks_limit", overmark),
]


def plain_change(cause: str, body: Body, random_: random.Random) -> None:
    match cause:
        case "system":
            body["messages"][0]["content"] = edit_text(body["messages"][0]["content"], random_)
        case "tools":
            function = random_.choice(body["tools"])["function"]
            function["description"] = edit_text(function["description"], random_)
        case "tools_order":
            swap_tools(body, random_)
        case "messages":
            chosen = body["messages"][random_.choice((1, 2))]
            chosen["content"] = edit_text(chosen["content"], random_)
        case "format":
            schema = {"name": "answer", "schema": {"type": "object"}}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        case "cache_key":
            body["prompt_cache_key"] = f"k{random_.randrange(999)}"
        case "tier":
            body["service_tier"] = "flex"
        case "settings":
            body["reasoning_effort"] = "high"
        case "model":
            body["model"] = "other"


def breaks(random_: random.Random) -> Iterator[Break]:
    """Every cause several times."""

    def marked_break(cause: str, **changes: Any) -> Break:
        bodies = marked(random_, turns=random_.choice((2, 3)))
        turns, body = [Sending(each) for each in bodies[:-1]], bodies[-1]
        return Break(
            cause, "anthropic", [*turns, Sending(copy.deepcopy(body), **changes)], Sending(body), name=str(changes)
        )

    for _ in range(3):
        for cause, change in MARKED_CHANGES:
            made = marked_break(cause)
            change(made.turns[-1].body, random_)
            made.name = change.__name__
            yield made
        yield marked_break("expired", pause=301.0 + random_.randrange(3000))
        yield marked_break("organisation", key="key-2")
        yield marked_break("version", version="2026-01-01")
        yield marked_break("beta", beta="context-management-2025-06-27")
        evicted = marked_break("evicted")
        evicted.evicts = True
        yield evicted
        other = marked_break("model")
        other.turns[-1].body["model"] = "other"
        yield other
        partly = marked_break("expired", pause=400.0)
        for turn in (*partly.turns, partly.whole):
            turn.body["system"][0]["cache_control"] = HOUR
        partly.name = "the part for five minutes"
        yield partly
        short = marked(random_, turns=2)
        for body in short:
            body["tools"], body["system"] = [], [{"type": "text", "text": words(random_, 20), "cache_control": MARK}]
            body["system"][0]["text"] = short[0]["system"][0]["text"]
        yield Break("below_minimum", "anthropic", [Sending(body) for body in short], Sending(short[-1]), never=True)
        bare = marked(random_, turns=2)
        for body in bare:
            unmark(body, random_)
        yield Break("marks_missing", "anthropic", [Sending(body) for body in bare], Sending(bare[-1]), never=True)
        for cause in ("system", "tools", "tools_order", "messages", "format", "cache_key", "tier", "settings", "model",
                      "organisation", "expired", "evicted"):  # fmt: skip
            bodies = plain(random_)
            pause = 301.0 + random_.randrange(3000) if cause == "expired" else 20.0
            last = Sending(copy.deepcopy(bodies[-1]), pause, "key-2" if cause == "organisation" else "key-1")
            plain_change(cause, last.body, random_)
            turns = [*map(Sending, bodies[:-1]), last]
            yield Break(cause, "openai-chat", turns, Sending(bodies[-1]), evicts=cause == "evicted")
        yield from other_breaks(random_)


def responses(random_: random.Random, model: str = "large", turns: int = 2) -> list[Body]:
    """A conversation with Responses."""
    tools = [
        {"type": "function", "name": f"tool_{n}", "description": words(random_, 60), "parameters": {}} for n in range(4)
    ]
    head = {"model": model, "stream": True, "tools": tools, "instructions": words(random_, 600)}
    items: list[Body] = []
    bodies: list[Body] = []
    for _ in range(turns + 1):
        items.append({"role": "user", "content": [{"type": "input_text", "text": words(random_, 200)}]})
        bodies.append(copy.deepcopy({**head, "input": items}))
        items.append({"role": "assistant", "content": [{"type": "output_text", "text": words(random_, 30)}]})
    return bodies


def change_responses(cause: str, body: Body, random_: random.Random) -> None:
    match cause:
        case "system":
            body["instructions"] = edit_text(body["instructions"], random_)
        case "tools":
            change_tool(body, random_)
        case "tools_order":
            swap_tools(body, random_)
        case "messages":
            part = body["input"][random_.choice((0, 1))]["content"][0]
            part["text"] = edit_text(part["text"], random_)
        case "format":
            schema = {"type": "json_schema", "name": "answer", "schema": {"type": "object"}}
            body["text"] = {"format": schema}
        case "cache_key":
            body["prompt_cache_key"] = f"k{random_.randrange(999)}"
        case "tier":
            body["service_tier"] = "flex"
        case "settings":
            body["reasoning"] = {"effort": "high"}
        case "model":
            body["model"] = "other"
        case "marks_missing":
            body["prompt_cache_options"] = {"mode": "explicit"}
        case _:
            pass


def gemini(random_: random.Random, turns: int = 2) -> list[Body]:
    """A conversation with Gemini."""
    tools = [
        {"name": f"tool_{n}", "description": words(random_, 120), "parameters": {"type": "object"}} for n in range(4)
    ]
    system = {"parts": [{"text": words(random_, 2000)}]}
    contents: list[Body] = []
    bodies: list[Body] = []
    for _ in range(turns + 1):
        contents.append({"role": "user", "parts": [{"text": words(random_, 300)}]})
        body = {"systemInstruction": system, "tools": [{"functionDeclarations": tools}], "contents": contents}
        bodies.append(copy.deepcopy(body))
        contents.append({"role": "model", "parts": [{"text": words(random_, 30)}]})
    return bodies


def change_gemini(cause: str, body: Body, random_: random.Random) -> None:
    match cause:
        case "system":
            part = body["systemInstruction"]["parts"][0]
            part["text"] = edit_text(part["text"], random_)
        case "tools":
            tool = random_.choice(body["tools"][0]["functionDeclarations"])
            tool["description"] = edit_text(tool["description"], random_)
        case "tools_order":
            body["tools"][0]["functionDeclarations"].reverse()
        case "messages":
            part = body["contents"][random_.choice((0, 1))]["parts"][0]
            part["text"] = edit_text(part["text"], random_)
        case _:
            pass


def other_breaks(random_: random.Random) -> Iterator[Break]:
    """The causes of the dialects that cache without marks, once each."""
    for model, causes, pause in (
        ("large", ("system", "tools", "tools_order", "messages", "format", "cache_key", "tier", "settings", "model",
                   "organisation", "expired", "evicted"), 301.0),
        ("marking", ("system", "tools", "tools_order", "messages", "format", "cache_key", "tier", "settings",
                     "organisation", "expired", "evicted"), 1801.0),
    ):  # fmt: skip
        for cause in causes:
            bodies = responses(random_, model)
            waits = pause + random_.randrange(3000) if cause == "expired" else 20.0
            last = Sending(copy.deepcopy(bodies[-1]), waits, "key-2" if cause == "organisation" else "key-1")
            change_responses(cause, last.body, random_)
            turns = [*map(Sending, bodies[:-1]), last]
            yield Break(cause, "openai-responses", turns, Sending(bodies[-1]), evicts=cause == "evicted", name=model)
    bare = responses(random_, "marking")
    for body in bare:
        body["prompt_cache_options"] = {"mode": "explicit"}
    yield Break("marks_missing", "openai-responses", [*map(Sending, bare)], Sending(bare[-1]), never=True)
    for cause in ("system", "tools", "tools_order", "messages", "model", "key", "cache_key", "expired", "evicted"):
        contents = [Sending(body, model="pro") for body in gemini(random_)]
        last = copy.deepcopy(contents[-1])
        last.pause = 86_401.0 + random_.randrange(9999) if cause == "expired" else 20.0
        last.key = "key-2" if cause == "key" else "key-1"
        last.model = "flash" if cause == "model" else "pro"
        if cause == "cache_key":
            for each in contents:
                each.body["cachedContent"] = "cachedContents/a"
        change_gemini(cause, last.body, random_)
        yield Break(cause, "gemini", [*contents[:-1], last], contents[-1], evicts=cause == "evicted")
    short = [Sending(body, model="pro") for body in gemini(random_)]
    for each in short:
        each.body["systemInstruction"] = {"parts": [{"text": "Be kind."}]}
    yield Break("below_minimum", "gemini", short, short[-1], never=True)
    brief = responses(random_)
    for body in brief:
        body["instructions"], body["tools"] = "Be kind.", []
    yield Break(
        "below_minimum",
        "openai-responses",
        [*map(Sending, brief[:1]), Sending(brief[1])],
        Sending(brief[1]),
        never=True,
    )


def path_of(sending: Sending, dialect: str) -> str:
    return PATHS[dialect].format(model=sending.model)


def as_seen(sending: Sending, dialect: str) -> Seen:
    return Seen("POST", path_of(sending, dialect), sending.headers, json.dumps(sending.body).encode(), 0)


async def send(stage: Stage, sending: Sending, dialect: str, session: str) -> None:
    stage.clock.time += sending.pause
    asked = ClientRequest(
        dialect,
        json.dumps(sending.body).encode(),
        sending.headers,
        path_of(sending, dialect),
        query="alt=sse" if sending.model else "",
        model=sending.model or sending.body["model"],
        is_stream=True,
        session=session,
        provider="open" if dialect == "anthropic" else dialect,
        received=stage.clock.monotonic(),
    )
    got = await stage.ask(asked)
    assert got.status == 200, got.body


async def play_break(stage: Stage, provider: CachingProvider, found: Break, session: str) -> None:
    """Send the turns, and note what the last one loses by the provider's own books."""
    for turn in found.turns[:-1]:
        await send(stage, turn, found.dialect, session)
    last = found.turns[-1]
    stage.clock.time += 20.0
    whole = provider.take(as_seen(found.whole, found.dialect), is_kept=False).read
    stage.clock.time += last.pause - 20.0
    if found.evicts:
        provider.evict()
    read = provider.take(as_seen(last, found.dialect), is_kept=False).read
    if found.never:
        whole = provider.take(as_seen(found.turns[-2], found.dialect), is_kept=False).whole
    last.pause = 0.0
    await send(stage, last, found.dialect, session)
    found.lost = whole - read


def catalog(stage: Stage) -> Catalog:
    return Catalog(providers=stage.providers, models=MODELS, routes=())


async def play_all(folder: Path, played: list[tuple[str, Break]]) -> list[CacheReport]:
    clock = FakeClock()
    reports = []
    async with open_stage(folder, "anthropic", clock=clock, routes=(Route(provider="open"),), models=MODELS) as stage:
        for name in ("openai-chat", "openai-responses"):
            stage.providers[name] = Provider(dialect=name, base_url=f"{stage.upstream.url}/v1")
        stage.providers["gemini"] = Provider(dialect="gemini", base_url=stage.upstream.url)
        provider = CachingProvider(clock)
        stage.upstream.script = [provider.play]
        for session, found in played:
            await play_break(stage, provider, found, session)
        store = await open_store(folder / "record", prices=price_list(catalog(stage)), now=clock.now)
        try:
            store.record(stage.entries)
            await store.settle()
            memory = Memory(folder, clock.now)
            records = Records(store, clock.now, price_list(catalog(stage)))
            viewer = Viewer(Holds(memory, clock.now), records, catalog(stage), memory)
            caches = CacheReports(TurnExaminer(viewer, clock.now))
            for session, _ in played:
                reports.append(await caches.report(session))
        finally:
            await store.close()
    return reports
