"""Cache marks for an agent whose own API needs none: without them this provider caches nothing.

Marked are what hardly ever changes (the tools, then the system prompt) and the ends of the last two turns of the user:
the end of the last one is written to the cache, and the other one is where the request before this one ended. Both stay
where they are while the conversation grows, so that each request reads what the one before it wrote.
"""

from collections.abc import Iterator

from sightline.catalog.facts import Facts
from sightline.dialects.anthropic.names import NAME
from sightline.dialects.fields import objects_in
from sightline.model.json import Json, JsonObject
from sightline.model.parts import CacheBreakpoint
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.wire.jsontext import encode

_SHORTEST = 1024
"""Tokens of the shortest prefix that most models cache ("Prompt caching", platform.claude.com, 2026-11)."""

_CHARS_PER_TOKEN = 4.0
_WHY = f'{NAME} caches only what is marked; cache = "off" on the route leaves it out'


def mark_for_cache(body: JsonObject, request: Request, facts: Facts | None, report: Report) -> None:
    """Put marks into the body that was written for an agent, which is a request that offers tools. One that has marks
    of its own gets no others, and a prefix that is shorter than the model caches gets none."""
    if not body.get("tools") or _is_marked(request):
        return
    shortest = (None if facts is None else facts.cache_minimum) or _SHORTEST
    each = (None if facts is None else facts.chars_per_token) or _CHARS_PER_TOKEN
    length = 0
    for holder, key, at, size in _places(body):
        length += size
        if length >= shortest * each:
            content = holder[key]
            if isinstance(content, str):
                content = holder[key] = [{"type": "text", "text": content}]
            index, block = objects_in(content)[-1]
            block["cache_control"] = {"type": "ephemeral"}
            report.add(f"{at}/{index}/cache_control", "a cache mark", _WHY)


def _is_marked(request: Request) -> bool:
    return any(tool.cache is not None for tool in request.tools) or any(
        isinstance(part, CacheBreakpoint) for message in request.messages for part in message.parts
    )


def _places(body: JsonObject) -> Iterator[tuple[JsonObject, str, str, int]]:
    """The lists whose last object can be marked, in the order in which the provider reads a prompt: what holds each and
    under which key, its pointer, and the characters since the one before it."""
    yield body, "tools", "/tools", _size(body["tools"])
    if "system" in body:
        yield body, "system", "/system", _size(body["system"])
    messages = objects_in(body["messages"])
    roles = [message["role"] for _, message in messages]
    ends = [index for index, role in enumerate(roles) if role == "user" and roles[index + 1 : index + 2] != ["user"]]
    length = 0
    for index, message in messages:
        length += _size(message)
        if index in ends[-2:]:
            yield message, "content", f"/messages/{index}/content", length
            length = 0


def _size(value: Json) -> int:
    return len(encode(value))
