"""What a server sends: its list of tools as definitions with notes about the rest, and results as outcomes.

The list is filtered before the SDK reads it, because one invalid tool would make it refuse the whole list. Images and
audio are checked by their bytes: a provider refuses a whole request because of one that is invalid, which would end the
run.
"""

import base64
import binascii
import re
import warnings
from typing import assert_never, cast

import mcp_types

from sightline.agent.core.tool import Definition, ResultPart, ToolOutcome, definition_problems, truncate
from sightline.agent.tools.mcp.config import ServerLimits, mask_values
from sightline.agent.tools.tools import part_of
from sightline.errors import Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Audio, Document, Image, Text
from sightline.wire.jsontext import decode, encode

_WORD = 80


def outcome(result: mcp_types.CallToolResult, secret: frozenset[str]) -> ToolOutcome:
    """The outcome of a call, with `secret` values masked."""
    parts = tuple(
        Text(mask_values(part.text, secret)) if isinstance(part, Text) and secret else part
        for part in map(_part, result.content)
    )
    structured = cast(Json, result.structured_content)
    if structured is None:
        return ToolOutcome(parts, is_error=result.is_error)
    texts = [part.text for part in parts if isinstance(part, Text)]
    if secret:
        structured = _redact_json(structured, secret)
    if not isinstance(structured, dict):
        extra = () if _repeats(texts, structured) else (Text(encode(structured).decode()),)
        return ToolOutcome((*parts, *extra), is_error=result.is_error)
    if len(texts) == 1 and set(structured) == {"result"} and _repeats(texts, structured):
        # The wrapper that some servers put around a text is dropped.
        return ToolOutcome(parts, is_error=result.is_error)
    if _repeats(texts, structured):
        parts = tuple(part for part in parts if not isinstance(part, Text))
    return ToolOutcome(parts, is_error=result.is_error, structured=structured)


def _repeats(texts: list[str], structured: Json) -> bool:
    """Whether the text repeats the structured result, as the protocol advises for older clients."""
    values = [_value(text) for text in texts]
    inner = structured["result"] if isinstance(structured, dict) and set(structured) == {"result"} else structured
    same = [[structured], [inner], [inner if isinstance(inner, str) else encode(inner).decode()], inner]
    return values in same or texts in same


def _value(text: str) -> Json:
    try:
        return decode(text)
    except Fault:
        return text


def _redact_json(value: Json, secret: frozenset[str]) -> Json:
    match value:
        case str():
            return mask_values(value, secret)
        case list():
            return [_redact_json(each, secret) for each in value]
        case dict():
            return {mask_values(key, secret): _redact_json(each, secret) for key, each in value.items()}
        case _:
            return value


def _part(block: mcp_types.ContentBlock) -> ResultPart:
    match block:
        case mcp_types.TextContent():
            return Text(block.text)
        case mcp_types.ImageContent() | mcp_types.AudioContent():
            return _media(block.data, block.mime_type, "")
        case mcp_types.ResourceLink():
            facts = (block.mime_type, f"{block.size} bytes" if block.size is not None else "", block.description)
            more = "".join(f", {fact}" for fact in facts if fact)
            return Text(f"[resource {block.title or block.name}: {block.uri}{more}]")
        case mcp_types.EmbeddedResource(resource=resource):
            if isinstance(resource, mcp_types.BlobResourceContents):
                return _media(resource.blob, resource.mime_type or "", resource.uri)
            return Text(f"[{resource.uri}]\n{resource.text}")
        case unreachable:
            assert_never(unreachable)


def _media(data: str, claimed: str, uri: str) -> ResultPart:
    """An image, audio or document by its bytes; anything else becomes a note."""
    place = f" at {uri}" if uri else ""
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return Text(f"[{claimed[:_WORD] or 'a file'}{place} left out: it is not base64]")
    if isinstance(part := part_of(content, uri), Image | Audio | Document):
        return part
    return Text(f"[{claimed[:_WORD] or 'a file'} of {len(content)} bytes{place} left out: no model can be shown it]")


_MOST_REPEATS = 3
_DATA = ("const", "default", "enum", "examples")


def is_usable(pattern: str) -> bool:
    """Whether a pattern compiles and is safe to match."""
    if is_risky(pattern):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError, Warning):
        return False
    return True


def is_risky(pattern: str) -> bool:
    """Whether a repeated group contains a repetition or an alternative, or too many repetitions follow each other."""
    repeats = 0
    forks: list[bool] = [False]
    closed = False  # whether the group that was just closed contains a repetition or an alternative
    index = 0
    while index < len(pattern):
        letter, was_closed, closed = pattern[index], closed, False
        if letter == "\\":
            index += 1
        elif letter == "[":
            index = _class_end(pattern, index)
        elif letter == "(":
            forks.append(False)
        elif letter == ")" and len(forks) > 1:
            closed = forks.pop()
            forks[-1] = forks[-1] or closed
        elif letter == "|":
            forks[-1] = True
        elif letter in "*+" or (letter == "{" and "," in pattern[index : pattern.find("}", index) + 1]):
            if was_closed:
                return True
            repeats += 1
            forks[-1] = True
        elif letter == "{" and was_closed:
            return True
        index += 1
    return repeats > _MOST_REPEATS


def drop_unsafe_patterns(schema: Json) -> tuple[Json, int]:
    """Remove unusable patterns from a schema; returns it and how many were removed."""
    if isinstance(schema, list):
        pairs = [drop_unsafe_patterns(each) for each in schema]
        return [each for each, _ in pairs], sum(count for _, count in pairs)
    if not isinstance(schema, dict):
        return schema, 0
    kept: dict[str, Json] = {}
    total = 0
    for key, value in schema.items():
        if key == "pattern" and isinstance(value, str) and not is_usable(value):
            total += 1
            continue
        kept[key], count = (value, 0) if key in _DATA else drop_unsafe_patterns(value)
        total += count
    return kept, total


def has_unusable_names(schema: Json) -> bool:
    """Whether `patternProperties` has an unusable pattern; dropping one would change the schema's meaning."""
    if isinstance(schema, list):
        return any(has_unusable_names(each) for each in schema)
    if not isinstance(schema, dict):
        return False
    named = schema.get("patternProperties")
    if isinstance(named, dict) and not all(is_usable(name) for name in named):
        return True
    return any(has_unusable_names(value) for key, value in schema.items() if key not in _DATA)


def _class_end(pattern: str, start: int) -> int:
    """The end of a character class. A bracket that comes first in it is a literal."""
    index = start + 1
    if pattern[index : index + 1] == "^":
        index += 1
    if pattern[index : index + 1] == "]":
        index += 1
    while index < len(pattern) and pattern[index] != "]":
        index += 2 if pattern[index] == "\\" else 1
    return index


_MOST_NOTES = 10
_LONGEST_NAME = 200
_SHOWN = 60


class ToolListing:
    """The result of one reading of the list: `tools` by the server's own names."""

    def __init__(self, bounds: ServerLimits) -> None:
        self.tools: dict[str, Definition] = {}
        self.is_full = False
        self._bounds = bounds
        self._notes: list[str] = []
        self._left_out = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out and why, limited to a readable number."""
        more = self._left_out - len(self._notes)
        return (*self._notes, f"{more} more such notes") if more else tuple(self._notes)

    def filter_page(self, answer: JsonObject) -> JsonObject:
        """Filter a page of the list to the tools that can be used."""
        entries = answer.get("tools")
        if not isinstance(entries, list):
            self.note("its list of tools is none")
            entries = []
        cursor = answer.get("nextCursor")
        kept: list[Json] = []
        room = self._bounds.tools - len(self.tools)
        if len(entries) > room:
            self.is_full = True
            self.note(f"{self._bounds.tools} of its tools are the most that are taken, and the rest is left out")
        for entry in entries[:room]:
            problem = self._problem(entry)
            if problem:
                self.note(f"its tool {_describe_entry(entry)} is left out: {problem}")
            else:
                kept.append(self._clean(cast(JsonObject, entry)))
        others = {key: value for key, value in answer.items() if key not in ("tools", "nextCursor")}
        return {**others, "tools": kept, **({"nextCursor": cursor} if isinstance(cursor, str) and cursor else {})}

    def add(self, tools: list[mcp_types.Tool]) -> None:
        """Add a page that the SDK has parsed."""
        for tool in tools:
            if tool.name in self.tools:
                self.note(f"its tool {tool.name[:_SHOWN]!r} is listed twice; the first one counts")
            else:
                hint = tool.annotations is not None and tool.annotations.read_only_hint is True
                description = truncate((tool.description or tool.title or "").strip(), self._bounds.description)
                self.tools[tool.name] = Definition(
                    name=tool.name, description=description, schema=dict(tool.input_schema), is_parallel=hint
                )

    def note(self, text: str) -> None:
        self._left_out += 1
        if len(self._notes) < _MOST_NOTES:
            self._notes.append(text)

    def _problem(self, entry: Json) -> str:
        if not isinstance(entry, dict):
            return "it is no object"
        name, schema = entry.get("name"), entry.get("inputSchema")
        if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME:
            return "it has no name that can be used"
        if not isinstance(schema, dict):
            return "what it calls its schema is none"
        execution = entry.get("execution")
        if isinstance(execution, dict) and execution.get("taskSupport") == "required":
            return "it can only be run as a task, which is not supported"
        if _is_deeper(schema, self._bounds.levels):
            return "its schema is nested too deep"
        size = len(encode(schema))
        if size > self._bounds.schema:
            return f"its schema is {size} bytes long, and {self._bounds.schema} are the most"
        if has_unusable_names(schema):
            return "a pattern in its schema cannot be read or could take for ever"
        problems = definition_problems(
            Definition(name="its schema", schema=cast(JsonObject, drop_unsafe_patterns(schema)[0]))
        )
        return problems[0][:_LONGEST_NAME] if problems else ""

    def _clean(self, entry: JsonObject) -> JsonObject:
        """The keys used of a tool. Its output schema is dropped: answers are not validated."""
        schema, aside = drop_unsafe_patterns(entry["inputSchema"])
        if aside:
            self.note(
                f"a pattern of its tool {_describe_entry(entry)} cannot be read or could take for ever: "
                "it is not checked"
            )
        tool: JsonObject = {"name": entry["name"], "inputSchema": {"type": "object", **cast(JsonObject, schema)}}
        for key in ("title", "description"):
            if isinstance(entry.get(key), str):
                tool[key] = entry[key]
        annotations = entry.get("annotations")
        if isinstance(annotations, dict) and annotations.get("readOnlyHint") is True:
            tool["annotations"] = {"readOnlyHint": True}
        return tool


def _is_deeper(value: Json, levels: int) -> bool:
    """Whether a value is nested more deeply than that; stops at the limit."""
    inner: list[Json] = [value]
    for _ in range(levels):
        nested = [each for each in inner if isinstance(each, dict | list)]
        inner = [each for one in nested for each in (one.values() if isinstance(one, dict) else one)]
    return any(isinstance(each, dict | list) for each in inner)


def _describe_entry(entry: Json) -> str:
    name = entry.get("name") if isinstance(entry, dict) else None
    return repr(name[:_SHOWN]) if isinstance(name, str) else "without a name"
