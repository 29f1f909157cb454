"""Usage as providers report it, whole and streamed, and what it costs: to a billionth of a dollar, or unknown.

What is expected is computed here with fractions, from prices that are easy to tell apart.
"""

import json
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from sightline.app.configuration import configuration
from sightline.catalog.catalog import facts_of
from sightline.catalog.facts import LongPrices, Prices
from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder, read_plain_reply
from sightline.model.fold import fold
from sightline.model.reply import Usage, possible
from sightline.tokens.cost import cost_of

PRICES = Prices(
    input=3.0,
    output=15.0,
    cached=0.3,
    cache_write=3.75,
    cache_write_1h=6.0,
    audio_input=40.0,
    audio_output=80.0,
    image_output=120.0,
    tiers={"batch": 0.5, "flex": 0.5, "priority": 2.0},
    regions={"us": 1.1},
    tools={"web_search": 10.0, "file_search": 2.5, "web_fetch": 0.0},
    long=LongPrices(above=200_000, input=6.0, output=22.5, cached=0.6, cache_write=7.5, cache_write_1h=12.0),
)
CACHE = [(0, 0, 0), (900, 0, 0), (0, 500, 0), (0, 500, 500), (300, 400, 150)]
"""Tokens that were read from the cache, written to it, and of these written for an hour."""


def price(name: str, prompt: int) -> Fraction:
    long = PRICES.long
    assert long is not None
    return Fraction(str(getattr(long if prompt > long.above else PRICES, name)))


def expected(
    prompt: int, output: int, cached: int = 0, written: int = 0, hour: int = 0, share: str = "1", calls: str = "0"
) -> Fraction:
    """Dollars: tokens by the million, times the tier and the region, and calls."""
    parts = [
        (prompt - cached - written, "input"),
        (cached, "cached"),
        (written - hour, "cache_write"),
        (hour, "cache_write_1h"),
        (output, "output"),
    ]
    tokens = sum((count * price(name, prompt) for count, name in parts), Fraction())
    return tokens * Fraction(share) / 1_000_000 + Fraction(calls)


# --- replies of each dialect --------------------------------------------------------------------------


def chat_whole(usage: Any, **around: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
    body = {
        "id": "r",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": usage,
        **around,
    }
    return json.dumps(body).encode()


def chat_stream(*usages: Any, **around: Any) -> bytes:
    head = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m", **around}
    deltas = [{"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]}]
    deltas += [{"choices": [], "usage": usage} for usage in usages]
    return (
        b"".join(b"data: " + json.dumps({**head, **each}).encode() + b"\n\n" for each in deltas) + b"data: [DONE]\n\n"
    )


def events(*frames: dict[str, Any]) -> bytes:
    return b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in frames)


def messages_whole(usage: Any) -> bytes:
    body = {
        "id": "r",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "hi"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }
    return json.dumps(body).encode()


def messages_stream(first: Any, *later: Any) -> bytes:
    message = {
        "id": "r",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": first,
    }
    return events(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
        {"type": "content_block_stop", "index": 0},
        *({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage} for usage in later),
        {"type": "message_stop"},
    )


def responses_body(usage: Any, items: tuple[dict[str, Any], ...] = (), **around: Any) -> dict[str, Any]:
    text = {"type": "output_text", "text": "hi", "annotations": []}
    message = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [text]}
    return {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": [*items, message],
        "usage": usage,
        **around,
    }


def responses_stream(usage: Any, items: tuple[dict[str, Any], ...] = (), **around: Any) -> bytes:
    body = responses_body(usage, items, **around)
    begun = {**body, "status": "in_progress", "output": [], "usage": None}
    return events(
        {"type": "response.created", "sequence_number": 0, "response": begun},
        {"type": "response.completed", "sequence_number": 1, "response": body},
    )


def gemini_whole(usage: Any) -> bytes:
    content = {"role": "model", "parts": [{"text": "hi"}]}
    body = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}
    return json.dumps(body).encode()


def gemini_stream(*usages: Any) -> bytes:
    """Each chunk repeats the counts so far."""
    last = len(usages) - 1
    chunks = []
    for n, usage in enumerate(usages):
        content = {"role": "model", "parts": [{"text": "hi"}]}
        candidate = {"content": content, "index": 0, **({"finishReason": "STOP"} if n == last else {})}
        chunks.append(json.dumps({"candidates": [candidate], "usageMetadata": usage}))
    return "".join(f"data: {chunk}\n\n" for chunk in chunks).encode()


def usage_in(name: str, data: bytes) -> Usage | None:
    decoder = ReplyDecoder(dialect(name))
    usage = possible(fold([*decoder.feed(data), *decoder.close()]).usage)
    plain = read_plain_reply(dialect(name), data)
    if plain is not None:  # the quick reader of whole answers has to say the same
        assert possible(plain.usage) == usage
    return usage


def openai_usage(prompt: int, output: int, cached: int, names: tuple[str, str], **more: Any) -> dict[str, Any]:
    asked, written = names
    return {
        asked: prompt,
        written: output,
        "total_tokens": prompt + output,
        f"{asked}_details": {"cached_tokens": cached, "audio_tokens": 0},
        f"{written}_details": {"reasoning_tokens": output // 2, "audio_tokens": 0},
        **more,
    }


CHAT, RESPONSES = ("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens")
SIZES = [(1_000, 20), (250_000, 800)]
TIERS = [("default", "1"), ("flex", "0.5"), ("priority", "2"), (None, "1")]


def openai_shapes() -> list[Any]:
    shapes = []
    for (prompt, output), cached, (tier, share), form in product(SIZES, (0, 900), TIERS, ("whole", "stream")):
        dollars = expected(prompt, output, cached, share=share)
        usage, around = openai_usage(prompt, output, cached, CHAT), {} if tier is None else {"service_tier": tier}
        data = chat_whole(usage, **around) if form == "whole" else chat_stream(usage, **around)
        shapes.append(pytest.param("openai-chat", data, dollars, id=f"chat-{form}-{prompt}-{cached}-{tier}"))
        usage = openai_usage(prompt, output, cached, RESPONSES)
        body = responses_body(usage, **around)
        data = json.dumps(body).encode() if form == "whole" else responses_stream(usage, **around)
        shapes.append(pytest.param("openai-responses", data, dollars, id=f"responses-{form}-{prompt}-{cached}-{tier}"))
    return shapes


def anthropic_usage(prompt: int, output: int, cached: int, written: int, hour: int, **more: Any) -> dict[str, Any]:
    return {
        "input_tokens": prompt - cached - written,
        "output_tokens": output,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
        "service_tier": "standard",
        "cache_creation": {"ephemeral_5m_input_tokens": written - hour, "ephemeral_1h_input_tokens": hour},
        **more,
    }


ANTHROPIC_MORE: list[tuple[str, dict[str, Any], str, str]] = [
    ("plain", {}, "1", "0"),
    ("batch", {"service_tier": "batch"}, "0.5", "0"),
    ("us", {"inference_geo": "us"}, "1.1", "0"),
    ("global", {"inference_geo": "global"}, "1", "0"),
    ("searches", {"server_tool_use": {"web_search_requests": 3, "web_fetch_requests": 2}}, "1", "0.03"),
]


def anthropic_shapes() -> list[Any]:
    shapes = []
    for (prompt, output), (cached, written, hour), (name, more, share, calls) in product(SIZES, CACHE, ANTHROPIC_MORE):
        usage = anthropic_usage(prompt, output, cached, written, hour, **more)
        dollars = expected(prompt, output, cached, written, hour, share, calls)
        shown = f"{prompt}-{cached}-{written}-{hour}-{name}"
        begun = {**usage, "output_tokens": 1}
        shapes.append(pytest.param("anthropic", messages_whole(usage), dollars, id=f"messages-whole-{shown}"))
        final = {"output_tokens": output} if prompt == SIZES[0][0] else usage  # older and newer servers
        data = messages_stream(begun, {"output_tokens": 2}, final)
        shapes.append(pytest.param("anthropic", data, dollars, id=f"messages-stream-{shown}"))
    return shapes


def gemini_shapes() -> list[Any]:
    shapes = []
    for (prompt, output), cached, (tier, share) in product(SIZES, (0, 900), [("standard", "1"), ("flex", "0.5")]):
        usage = {
            "promptTokenCount": prompt,
            "candidatesTokenCount": output - 5,
            "thoughtsTokenCount": 5,
            "cachedContentTokenCount": cached,
            "totalTokenCount": prompt + output,
            "serviceTier": tier,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": prompt}],
        }
        dollars = expected(prompt, output, cached, share=share)
        shown = f"{prompt}-{cached}-{tier}"
        shapes.append(pytest.param("gemini", gemini_whole(usage), dollars, id=f"gemini-whole-{shown}"))
        earlier = {**usage, "candidatesTokenCount": 1}
        data = gemini_stream(earlier, earlier, usage)
        shapes.append(pytest.param("gemini", data, dollars, id=f"gemini-cumulative-{shown}"))
    return shapes


SEARCH = {"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "x"}}
OPENED = {"type": "web_search_call", "id": "v", "status": "completed", "action": {"type": "open_page", "url": "x"}}
FILES = {"type": "file_search_call", "id": "f", "status": "completed", "queries": ["x"], "results": None}
BASE = openai_usage(1_000, 20, 0, CHAT)
SPOKEN = {**BASE, "prompt_tokens_details": {"audio_tokens": 400}, "completion_tokens_details": {"audio_tokens": 10}}
AUDIO = expected(1_000, 20) + Fraction(400 * 37 + 10 * 65, 1_000_000)
ROUTED = {**BASE, "cost": 0.00123}
OWN_KEY = {**BASE, "cost": 0.0001, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.002}}
LISTENED = {
    "promptTokenCount": 1_000,
    "candidatesTokenCount": 20,
    "totalTokenCount": 1_020,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 600}, {"modality": "AUDIO", "tokenCount": 400}],
    "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 10}],
}
COMPACTION = {
    "type": "compaction",
    "input_tokens": 1_000,
    "output_tokens": 3_500,
    "cache_read_input_tokens": 150_000,
    "cache_creation_input_tokens": 500,
    "cache_creation": {"ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 200},
}
ANSWERED = {"type": "message", "input_tokens": 20_000, "output_tokens": 800, "cache_read_input_tokens": 3_000}
COMPACTED = {**ANSWERED, "cache_creation_input_tokens": 0, "iterations": [COMPACTION, ANSWERED, "x"]}
SUMMARISED = expected(174_500, 4_300, 153_000, 500, 200)
"""A conversation that became too long is summarised by a call of its own, which the counts beside it leave out."""
KIMI = {**{name: BASE[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")}, "cached_tokens": 900}


def chat_stream_with_usage_in_the_choice(usage: Any) -> bytes:
    """Moonshot's stream: the counts are beside the finish, in the choice."""
    choice = {"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop", "usage": usage}
    chunk = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\ndata: [DONE]\n\n"


def responses_stream_with_short_end(usage: Any, items: tuple[dict[str, Any], ...]) -> bytes:
    """The last event of some servers leaves out the items, which have arrived one by one."""
    body = responses_body(usage)
    done = [{"type": "response.output_item.done", "output_index": n, "item": item} for n, item in enumerate(items)]
    return events(*done, {"type": "response.completed", "response": {**body, "output": []}})


SPECIAL = [
    pytest.param("anthropic", messages_whole(COMPACTED), SUMMARISED, id="compaction"),
    pytest.param(
        "anthropic",
        messages_stream(
            {**ANSWERED, "output_tokens": 1, "iterations": None}, {"output_tokens": 2}, COMPACTED, COMPACTED
        ),
        SUMMARISED,
        id="compaction-streamed",
    ),
    pytest.param("openai-chat", chat_whole(KIMI), expected(1_000, 20, 900), id="cached-beside"),
    pytest.param("openai-chat", chat_stream(KIMI), expected(1_000, 20, 900), id="cached-beside-streamed"),
    pytest.param(
        "openai-chat", chat_stream_with_usage_in_the_choice(KIMI), expected(1_000, 20, 900), id="usage-in-the-choice"
    ),
    pytest.param(
        "openai-responses",
        responses_stream_with_short_end(openai_usage(1_000, 20, 0, RESPONSES), (SEARCH, OPENED, SEARCH, FILES)),
        expected(1_000, 20, calls="0.0225"),
        id="tools-that-the-end-leaves-out",
    ),
    pytest.param("openai-chat", chat_whole(SPOKEN), AUDIO, id="audio"),
    pytest.param("openai-chat", chat_stream(SPOKEN), AUDIO, id="audio-streamed"),
    pytest.param(
        "gemini", gemini_whole(LISTENED), expected(1_000, 20) + Fraction(400 * 37 + 10 * 105, 1_000_000), id="image"
    ),
    pytest.param("openai-chat", chat_whole(ROUTED), Fraction("0.00123"), id="routers-own-cost"),
    pytest.param("openai-chat", chat_stream(ROUTED), Fraction("0.00123"), id="routers-own-cost-streamed"),
    pytest.param("openai-chat", chat_whole(OWN_KEY), Fraction("0.0021"), id="fee-and-vendor"),
    pytest.param("openai-chat", chat_stream(BASE, BASE), expected(1_000, 20), id="reported-twice"),
    pytest.param(
        "openai-chat",
        chat_stream({**BASE, "completion_tokens": 3, "total_tokens": 1_003}, BASE),
        expected(1_000, 20),
        id="cumulative",
    ),
    *(
        pytest.param(
            "openai-responses",
            make(openai_usage(1_000, 20, 0, RESPONSES), (SEARCH, OPENED, SEARCH, FILES)),
            expected(1_000, 20, calls="0.0225"),
            id=f"tools-{form}",
        )
        for form, make in (
            ("whole", lambda *given: json.dumps(responses_body(*given)).encode()),
            ("stream", responses_stream),
        )
    ),
]


@pytest.mark.parametrize(
    ("name", "data", "dollars"), [*openai_shapes(), *anthropic_shapes(), *gemini_shapes(), *SPECIAL]
)
def test_a_documented_form_has_its_cost(name: str, data: bytes, dollars: Fraction) -> None:
    usage = usage_in(name, data)
    assert usage is not None
    cost = cost_of(usage, PRICES)
    assert cost is not None
    assert abs(Fraction(cost.dollars) - dollars) < Fraction(1, 10**9)


NEGATIVE = {**BASE, "prompt_tokens": -5, "total_tokens": 15}
HUGE = {**BASE, "prompt_tokens": 10**15, "total_tokens": 10**15 + 20}
RUN = {
    "type": "code_interpreter_call",
    "id": "c",
    "status": "completed",
    "code": "1",
    "container_id": "k",
    "outputs": None,
}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        pytest.param("openai-chat", chat_whole(None), id="missing"),
        pytest.param("openai-chat", chat_stream(), id="missing-streamed"),
        pytest.param(
            "openai-chat", chat_whole({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}), id="zero"
        ),
        pytest.param("openai-chat", chat_whole({"prompt_tokens": 7}), id="half"),
        pytest.param("openai-chat", chat_whole(NEGATIVE), id="negative"),
        pytest.param("openai-chat", chat_whole(HUGE), id="absurd"),
        pytest.param("openai-chat", chat_whole(BASE, service_tier="scale"), id="unknown-tier"),
        pytest.param("anthropic", messages_whole(anthropic_usage(1_000, 20, 0, 0, 0, speed="fast")), id="fast"),
        pytest.param(
            "anthropic", messages_whole(anthropic_usage(1_000, 20, 0, 0, 0, inference_geo="moon")), id="region"
        ),
        pytest.param(
            "openai-responses", responses_stream(openai_usage(1_000, 20, 0, RESPONSES), (RUN,)), id="unpriced-tool"
        ),
    ],
)
def test_what_has_no_known_price_is_unknown_and_never_nothing(name: str, data: bytes) -> None:
    usage = usage_in(name, data)
    assert usage is None or cost_of(usage, PRICES) is None


def test_audio_without_a_price_is_unknown() -> None:
    usage = usage_in("openai-chat", chat_whole(SPOKEN))
    assert usage is not None
    assert cost_of(usage, Prices(input=1.0, output=1.0)) is None


def test_the_same_model_on_an_own_server_has_no_price() -> None:
    catalog = configuration(None).catalog
    assert facts_of(catalog, "vllm", "gpt-4o").prices is None


COUNTED = {"promptTokenCount": 1_000, "candidatesTokenCount": 20, "totalTokenCount": 1_020}
GROUNDED = {"webSearchQueries": ["rain", "snow", "rain"], "groundingChunks": [], "groundingSupports": []}


@pytest.mark.parametrize("when", ["whole", "with-the-counts", "before-the-counts"])
@pytest.mark.parametrize(("model", "dollars"), [("gemini-2.5-flash", 0.03535), ("gemini-3-flash-preview", 0.02856)])
def test_a_grounded_answer_costs_its_searches(when: str, model: str, dollars: float) -> None:
    """Two queries: by the query with Gemini 3, by the prompt before that."""
    if when == "whole":
        body = json.loads(gemini_whole(COUNTED))
        body["candidates"][0]["groundingMetadata"] = GROUNDED
        data = json.dumps(body).encode()
    else:
        found = {
            "content": {"role": "model", "parts": [{"text": "It rains."}]},
            "groundingMetadata": GROUNDED,
            "index": 0,
        }
        ended = {"content": {"role": "model", "parts": [{"text": "!"}]}, "finishReason": "STOP", "index": 0}
        first = {"candidates": [found], **({"usageMetadata": COUNTED} if when == "with-the-counts" else {})}
        chunks = [first, {"candidates": [ended], "usageMetadata": COUNTED}]
        data = b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in chunks)
    usage = usage_in("gemini", data)
    assert usage is not None
    assert usage.server_tools == {"google_search": 2, "grounded_prompt": 1}
    cost = cost_of(usage, facts_of(configuration(None).catalog, "gemini", model).prices)
    assert cost is not None
    assert cost.dollars == pytest.approx(dollars, abs=1e-9)
