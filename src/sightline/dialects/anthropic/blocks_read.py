"""Content blocks to parts, one for one; what we do not model stays whole and in place."""

from collections.abc import Callable, Mapping

from sightline.dialects.anthropic.names import NAME
from sightline.dialects.anthropic.sources import read_source
from sightline.dialects.fields import as_object, opt_bool, opt_list, opt_object, opt_str, rest, str_of, wrong
from sightline.dialects.signatures import unwrap
from sightline.model.json import Json, JsonObject
from sightline.model.parts import (
    CacheBreakpoint,
    Citation,
    Document,
    Image,
    Opaque,
    Part,
    PlainText,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.report import Report
from sightline.wire.jsontext import encode


def read_citation(value: Json, at: str) -> Citation:
    """One citation, whole, with its address, title and quotation beside it."""
    citation = as_object(value, at)
    return Citation(
        url=_word(citation, "url"),
        title=_word(citation, "title") or _word(citation, "document_title"),
        cited_text=_word(citation, "cited_text"),
        value=citation,
        at=at,
    )


def _word(citation: JsonObject, key: str) -> str:
    value = citation.get(key)
    return value if isinstance(value, str) else ""


def write_citation(citation: Citation, report: Report) -> Json:
    """The citation as it was read, or None and a loss for another dialect's.

    The API's own kinds end in `_location`. A foreign one can never be spelled as one of them: each names an index into
    this provider's documents or a seal (`encrypted_index`) that only it can make.
    """
    value = citation.value
    if isinstance(value, dict) and isinstance(kind := value.get("type"), str) and kind.endswith("_location"):
        return value
    report.lose(citation.at, "a citation", f"{NAME} cites by its own document indexes and seals", "option")
    return None


_TEXT = frozenset({"type", "text", "citations", "cache_control"})
_IMAGE = frozenset({"type", "source", "cache_control"})
_DOCUMENT = frozenset({"type", "source", "title", "context", "citations", "cache_control"})
_THINKING = frozenset({"type", "thinking", "signature", "cache_control"})
_REDACTED = frozenset({"type", "data", "cache_control"})
_TOOL_USE = frozenset({"type", "id", "name", "input", "cache_control"})
_TOOL_RESULT = frozenset({"type", "tool_use_id", "content", "is_error", "cache_control"})
_CACHE = frozenset({"type", "ttl"})


def read_content(content: Json, at: str, *, nested: bool = False) -> tuple[tuple[Part, ...], bool]:
    """The parts of a content field, and whether it was one string."""
    if type(content) is str:
        return (Text(content, at=at),), True
    if type(content) is list:
        return _read_blocks(content, at, NESTED if nested else BLOCKS), False
    raise wrong(content, at, "a string or a list of blocks")


def _read_blocks(blocks: list[Json], at: str, readers: "Readers") -> tuple[Part, ...]:
    parts: list[Part] = []
    for index, value in enumerate(blocks):
        place = f"{at}/{index}"
        block = as_object(value, place)
        reader = readers.get(str_of(block, "type", place))
        part = Opaque(NAME, block, at=place) if reader is None else reader(block, place)
        parts.append(part)
        if "cache_control" in block and type(part) is not Opaque:
            cache = read_cache(block, place)
            if cache is not None:
                parts.append(cache)
    return tuple(parts)


def read_cache(holder: JsonObject, at: str) -> CacheBreakpoint | None:
    """The cache mark of a block or a tool."""
    control = opt_object(holder, "cache_control", at)
    if control is None:
        return None
    place = f"{at}/cache_control"
    return CacheBreakpoint(
        str_of(control, "type", place), opt_str(control, "ttl", place), at=place, extras=rest(control, _CACHE)
    )


def _read_text(block: JsonObject, at: str) -> Text:
    if len(block) == 2:  # nearly every block is type and text
        return Text(str_of(block, "text", at), at=at)
    citations = opt_list(block, "citations", at)
    return Text(
        str_of(block, "text", at),
        tuple(read_citation(value, f"{at}/citations/{index}") for index, value in enumerate(citations)),
        at=at,
        extras=rest(block, _TEXT),
    )


def _read_image(block: JsonObject, at: str) -> Image | Opaque:
    source, more = read_source(as_object(block.get("source"), f"{at}/source"), f"{at}/source")
    if source is None:
        return Opaque(NAME, block, at=at)
    return Image(source, at=at, extras=_with_nested(rest(block, _IMAGE), "source", more))


def _read_document(block: JsonObject, at: str) -> Document | Opaque:
    holder = as_object(block.get("source"), f"{at}/source")
    source, more = read_source(holder, f"{at}/source")
    if source is None and holder["type"] == "content":
        # A document that is made of blocks: its words go anywhere, its division into blocks only here.
        source, more = PlainText(_words(holder.get("content"))), holder
    if source is None:
        return Opaque(NAME, block, at=at)
    citations = opt_object(block, "citations", at) or {}
    extras = _with_nested(rest(block, _DOCUMENT), "source", more)
    return Document(
        source,
        opt_str(block, "title", at),
        opt_str(block, "context", at),
        opt_bool(citations, "enabled", f"{at}/citations"),
        at=at,
        extras=_with_nested(extras, "citations", rest(citations, frozenset({"enabled"}))),
    )


def _read_search_result(block: JsonObject, at: str) -> Opaque:
    """A search result of the client's own: its words can be sent anywhere, citing it by its number only here."""
    title, source = block.get("title"), block.get("source")
    head = "\n".join(word for word in (title, source) if isinstance(word, str) and word)
    words = _words(block.get("content"))
    return Opaque(NAME, block, text="\n\n".join(filter(None, (head, words))), at=at)


def _words(content: Json) -> str:
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    texts = [block.get("text") for block in content if isinstance(block, dict)]
    return "\n\n".join(text for text in texts if isinstance(text, str))


def _with_nested(extras: JsonObject, key: str, more: JsonObject) -> JsonObject:
    return {**extras, key: more} if more else extras


def read_thinking(block: JsonObject, at: str) -> Thinking:
    """A thinking block; its signature may be a seal of another dialect that travelled through the client."""
    text, sealed = str_of(block, "thinking", at), opt_str(block, "signature", at)
    if sealed is None:
        return Thinking(text, at=at, extras=rest(block, _THINKING))
    signature, signed_by, item = unwrap(sealed, NAME)
    return Thinking(text, id=item, signature=signature, signed_by=signed_by, at=at, extras=rest(block, _THINKING))


def read_redacted(block: JsonObject, at: str) -> Thinking:
    """A redacted thinking block."""
    signature, signed_by, item = unwrap(str_of(block, "data", at), NAME)
    return Thinking(
        id=item, signature=signature, signed_by=signed_by, redacted=True, at=at, extras=rest(block, _REDACTED)
    )


def _read_tool_use(block: JsonObject, at: str) -> ToolCall:
    arguments = encode(opt_object(block, "input", at) or {}).decode()
    return ToolCall(str_of(block, "id", at), str_of(block, "name", at), arguments, at=at, extras=rest(block, _TOOL_USE))


def _read_tool_result(block: JsonObject, at: str) -> ToolResult:
    content = block.get("content")
    parts, bare = ((), False) if content is None else read_content(content, f"{at}/content", nested=True)
    return ToolResult(
        str_of(block, "tool_use_id", at),
        parts,
        is_error=opt_bool(block, "is_error", at),
        bare=bare,
        at=at,
        extras=rest(block, _TOOL_RESULT),
    )


Readers = Mapping[str, Callable[[JsonObject, str], Part]]

NESTED: Readers = {
    "text": _read_text,
    "image": _read_image,
    "document": _read_document,
    "search_result": _read_search_result,
}
"""The blocks that stand inside a tool result; anything else there is opaque."""

BLOCKS: Readers = {
    **NESTED,
    "thinking": read_thinking,
    "redacted_thinking": read_redacted,
    "tool_use": _read_tool_use,
    "tool_result": _read_tool_result,
}
