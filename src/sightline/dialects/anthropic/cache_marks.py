"""Cache marks for an agent whose own API needs none: without marks this provider caches nothing.

The marks are set on what hardly ever changes (the tools, then the system prompt) and on the ends of the user's last two
turns: the end of the last turn is written to the cache, and the other one is where the previous request ended. Both
stay in place while the conversation grows, so that each request reads what the one before it wrote.
"""

from collections.abc import Iterator

from sightline.catalog.facts import Facts
from sightline.dialects.anthropic.names import NAME
from sightline.dialects.fields import objects_in
from sightline.model.json import Json, JsonObject
from sightline.model.parts import CacheBreakpoint
from sightline.model.report import Report
from sightline.model.request import Request, parts_of
from sightline.wire.jsontext import encode
from sightline.wire.pointer import resolve

_SHORTEST = 1024
"""Tokens of the shortest prefix that most models cache ("Prompt caching", platform.claude.com, 2026-11)."""

_CHARS_PER_TOKEN = 4.0
_WHY = f'{NAME} caches only what is marked; cache = "off" on the route leaves it out'


def mark_for_cache(body: JsonObject, request: Request, facts: Facts | None, report: Report) -> None:
    """Put marks into a body that was written for an agent, that is, a request that offers tools. A request that has
    marks of its own gets no others, and a prefix that is too short for the model's cache gets none."""
    if not body.get("tools") or _is_marked(request):
        return
    shortest = (None if facts is None else facts.cache_minimum) or _SHORTEST
    each = (None if facts is None else facts.chars_per_token) or _CHARS_PER_TOKEN
    length = 0
    for holder, key, at, new in _places(body):
        if length < shortest * each:  # beyond that the exact length does not matter
            length += sum(len(encode(value)) for value in new)
        if length >= shortest * each:
            content = holder[key]
            if isinstance(content, str):
                content = holder[key] = [{"type": "text", "text": content}]
            index, block = objects_in(content)[-1]
            block["cache_control"] = {"type": "ephemeral"}
            report.add(f"{at}/{index}/cache_control", "a cache mark", _WHY)


def _is_marked(request: Request) -> bool:
    is_among_tools = any(tool.cache is not None for tool in request.tools)
    return is_among_tools or CacheBreakpoint in map(type, parts_of(request.messages))


def _places(body: JsonObject) -> Iterator[tuple[JsonObject, str, str, list[Json]]]:
    """The lists whose last object can be marked, in the order in which the provider reads a prompt: the holder and the
    key of each, its pointer, and everything from the end of the previous list to the end of this one."""
    yield body, "tools", "/tools", [body["tools"]]
    if "system" in body:
        yield body, "system", "/system", [body["system"]]
    messages = objects_in(body["messages"])
    roles = [message["role"] for _, message in messages]
    ends = [index for index, role in enumerate(roles) if role == "user" and roles[index + 1 : index + 2] != ["user"]]
    start = 0
    for index in ends[-2:]:
        new: list[Json] = [message for _, message in messages[start : index + 1]]
        yield messages[index][1], "content", f"/messages/{index}/content", new
        start = index + 1


_MARK_DISTANCE = 19
"""A mark finds what was written at most 20 blocks before it, so marks at this distance leave no gap."""
_UNMARKABLE = ("thinking", "redacted_thinking")


def place_marks(body: JsonObject, ttl: str) -> list[tuple[str, Json]]:
    """The places and values to set so that the marks of a request ask for this lifetime; None removes a mark.

    A request without marks, and any request if no lifetime is given, is marked at the end of its tools or system
    prompt, at the end of its messages, and twice before that, at the distance at which a mark still finds what an
    earlier request wrote.
    """
    mark: JsonObject = {"type": "ephemeral", "ttl": ttl} if ttl else {"type": "ephemeral"}
    front, behind = _blocks(body)
    holders: list[tuple[str, JsonObject]] = [("", body), *front, *behind]
    marked = [(f"{at}/cache_control", holder) for at, holder in holders if holder.get("cache_control")]
    if marked and ttl:
        return [(at, mark) for at, _ in marked]
    ends = [each for each in behind if each[1].get("type") not in _UNMARKABLE and each[1].get("text") != ""]
    chosen = [*front[-1:], *reversed(ends[::-1][: 2 * _MARK_DISTANCE + 1 : _MARK_DISTANCE])]
    places = {at for at, _ in chosen}
    edits: list[tuple[str, Json]] = [(at, None) for at, _ in marked if at.removesuffix("/cache_control") not in places]
    for at, block in chosen:
        is_bare = isinstance(resolve(body, at), str)  # a string becomes the equivalent block
        edits.append((at, [block | {"cache_control": mark}]) if is_bare else (f"{at}/cache_control", mark))
    return edits


def _blocks(body: JsonObject) -> tuple[list[tuple[str, JsonObject]], list[tuple[str, JsonObject]]]:
    """The blocks of tools and system prompt, and those of the messages, each with its place."""
    front = [(f"/tools/{index}", tool) for index, tool in objects_in(body.get("tools"))]
    front += _blocks_at(body.get("system"), "/system")
    behind: list[tuple[str, JsonObject]] = []
    for index, message in objects_in(body.get("messages")):
        behind += _blocks_at(message.get("content"), f"/messages/{index}/content")
    return front, behind


def _blocks_at(content: Json, at: str) -> list[tuple[str, JsonObject]]:
    if isinstance(content, str):
        return [(at, {"type": "text", "text": content})]
    return [(f"{at}/{index}", block) for index, block in objects_in(content)]
