"""Reads and writes content blocks. Each block is one part; a block that is not modelled stays unchanged and in place,
and anything that a block cannot express is reported as a loss."""

from collections.abc import Callable, Mapping
from typing import assert_never

from sightline.dialects.anthropic.names import NAME
from sightline.dialects.anthropic.sources import foreign_source, own_source, read_source
from sightline.dialects.conversation import safe_id
from sightline.dialects.fields import (
    as_object,
    compact,
    merge,
    nest_extras,
    objects_in,
    opt_bool,
    opt_list,
    opt_object,
    opt_str,
    rest,
    str_of,
    word_of,
    wrong,
)
from sightline.dialects.losses import describe, lose_unknown
from sightline.dialects.signatures import NEXT, unwrap
from sightline.dialects.tool_names import INPUT, arguments_object, as_function_arguments
from sightline.model.json import Json, JsonObject, Value
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Citation,
    Document,
    Image,
    Opaque,
    Part,
    PlainText,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.report import Report, Severity
from sightline.wire.jsontext import encode


def read_citation(value: Json, at: str) -> Citation:
    """One citation, unchanged, with its URL, title and quotation as fields."""
    citation = as_object(value, at)
    return Citation(
        url=word_of(citation, "url"),
        title=word_of(citation, "title") or word_of(citation, "document_title"),
        cited_text=word_of(citation, "cited_text"),
        value=citation,
        at=at,
    )


def write_citation(citation: Citation, report: Report) -> Json:
    """The citation as it was read, or None and a loss for another dialect's.

    The API's own kinds end in `_location`. A foreign citation cannot be written as one of them: each contains an index
    into this provider's documents or a signature (`encrypted_index`) that only this provider can make.
    """
    value = citation.value
    if isinstance(value, dict) and isinstance(kind := value.get("type"), str) and kind.endswith("_location"):
        return value
    report.lose(citation.at, "a citation", f"{NAME} cites by its own document indexes and signatures", "option")
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
    """The parts of a content field, and whether it was a single string."""
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
    """The cache mark of a block or a tool; None if it has none."""
    control = opt_object(holder, "cache_control", at)
    if control is None:
        return None
    place = f"{at}/cache_control"
    return CacheBreakpoint(
        str_of(control, "type", place), opt_str(control, "ttl", place), at=place, extras=rest(control, _CACHE)
    )


def _read_text(block: JsonObject, at: str) -> Text:
    if len(block) == 2:  # nearly every block has only type and text
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
    return Image(source, at=at, extras=nest_extras(rest(block, _IMAGE), "source", more))


def _read_document(block: JsonObject, at: str) -> Document | Opaque:
    holder = as_object(block.get("source"), f"{at}/source")
    source, more = read_source(holder, f"{at}/source")
    if source is None and holder["type"] == "content":
        # A document that consists of blocks: its text can be sent to any provider, its division into blocks only to
        # this one.
        source, more = PlainText(_words(holder.get("content"))), holder
    if source is None:
        return Opaque(NAME, block, at=at)
    citations = opt_object(block, "citations", at) or {}
    extras = nest_extras(rest(block, _DOCUMENT), "source", more)
    return Document(
        source,
        opt_str(block, "title", at),
        opt_str(block, "context", at),
        opt_bool(citations, "enabled", f"{at}/citations"),
        at=at,
        extras=nest_extras(extras, "citations", rest(citations, frozenset({"enabled"}))),
    )


def _read_search_result(block: JsonObject, at: str) -> Opaque:
    """A search result of the client's own: its text can be sent to any provider; citing it by number works only
    here."""
    title, source = block.get("title"), block.get("source")
    head = "\n".join(word for word in (title, source) if isinstance(word, str) and word)
    words = _words(block.get("content"))
    return Opaque(NAME, block, text="\n\n".join(filter(None, (head, words))), at=at)


def _words(content: Json) -> str:
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    texts = [block.get("text") for block in content if isinstance(block, dict)]
    return "\n\n".join(text for text in texts if isinstance(text, str))


def read_thinking(block: JsonObject, at: str) -> Thinking:
    """A thinking block; its signature may be one of another dialect that passed through the client."""
    text, wrapped = str_of(block, "thinking", at), opt_str(block, "signature", at)
    signature, signed_by, item = (None, None, None) if wrapped is None else unwrap(wrapped, NAME)
    return Thinking(text, id=item, signature=signature, signed_by=signed_by, at=at, extras=rest(block, _THINKING))


def read_redacted(block: JsonObject, at: str) -> Thinking:
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
"""The blocks that may be inside a tool result; anything else there is opaque."""

BLOCKS: Readers = {
    **NESTED,
    "thinking": read_thinking,
    "redacted_thinking": read_redacted,
    "tool_use": _read_tool_use,
    "tool_result": _read_tool_result,
}


_UNMARKABLE = ("thinking", "redacted_thinking")


class BlockWriter:
    """Writes the blocks of one document in order. `same`: the parts were read from this dialect.

    It remembers the last block, whichever message it is in: a cache mark belongs to the block before it, and the text
    that an answer should begin with must not end in white space. It also remembers the name of every call so far: an id
    may be used again, and a result answers the last call before it that has its id.
    """

    def __init__(self, report: Report, *, same: bool) -> None:
        self._report = report
        self._names: dict[str, str] = {}
        self._same = same
        self._last: JsonObject | None = None
        self._last_at = ""

    def write(self, parts: tuple[Part, ...]) -> list[Json]:
        blocks: list[Json] = []
        for part in parts:
            if isinstance(part, CacheBreakpoint):
                last = self._last
                if last is None:
                    self._report.lose(part.at, "a cache breakpoint", "no block stands before it", "option")
                elif "cache_control" in last:
                    self._report.lose(part.at, "a cache breakpoint", "the block before it is marked already", "option")
                elif last["type"] in _UNMARKABLE and not self._same:
                    self._report.lose(part.at, "a cache breakpoint", "thinking cannot be marked", "option")
                else:
                    last["cache_control"] = write_cache(part, same=self._same)
                continue
            block = self._block(part)
            if block is not None:
                if self._same:
                    merge(block, part.extras)
                self._last, self._last_at = block, part.at
                blocks.append(block)
        return blocks

    def write_words(self, parts: tuple[Part, ...]) -> list[Json]:
        """The blocks of a system prompt, which takes only text."""
        if self._same:
            return self.write(parts)
        kept: list[Part] = []
        for part in parts:
            if isinstance(part, (Text, Refusal, CacheBreakpoint, Thinking)):
                kept.append(part)
            elif not isinstance(part, Opaque) or not part.mirrored:
                what = f"a {describe(part)} in a system message"
                self._report.lose(part.at, what, "it takes text only", "content")
        return self.write(tuple(kept))

    def trim_end(self) -> None:
        """Remove the white space at the end of the last block, with which the answer should begin."""
        last = self._last
        text = None if last is None else last.get("text")
        if last is not None and isinstance(text, str) and text != text.rstrip():
            self._report.lose(self._last_at, "trailing white space", f"{NAME} rejects it at the end", "content")
            last["text"] = text.rstrip()

    def _block(self, part: Part) -> JsonObject | None:
        match part:
            case Text():  # the most frequent kinds come first
                return self._text(part)
            case ToolResult():
                return self._tool_result(part)
            case ToolCall():
                self._lose_signature(part)
                self._lose_item(part, part.item)
                self._names[part.id] = part.name
                arguments = part.arguments if self._same else as_function_arguments(part)
                return {
                    "type": "tool_use",
                    "id": part.id if self._same else safe_id(part.id, part.at, self._report, NAME),
                    "name": part.name,
                    "input": self._input(arguments, part.at),
                }
            case Thinking():
                return self._thinking(part)
            case Refusal(text):
                self._report.lose(part.at, "that these words are a refusal", f"{NAME} has no such block", "identity")
                return self._text(Text(text, at=part.at))
            case Image() | Document():
                return self._media(part)
            case Opaque(dialect, value):
                if dialect == NAME and isinstance(value, dict):
                    return dict(value)
                lose_unknown(part, NAME, self._report)
                return None
            case Audio() | CacheBreakpoint():
                self._report.lose(part.at, type(part).__name__.lower(), f"{NAME} does not take it here", "content")
                return None
            case unreachable:
                assert_never(unreachable)

    def _text(self, part: Text) -> JsonObject | None:
        self._lose_signature(part)
        if not self._same and not part.text.strip():
            what = "blank text" if part.text else "empty text"
            self._report.lose(part.at, what, f"{NAME} rejects it", "content" if part.text else "identity")
            return None
        block: JsonObject = {"type": "text", "text": part.text}
        if not part.citations:
            return block
        citations = [
            citation.value if self._same else write_citation(citation, self._report) for citation in part.citations
        ]
        known: list[Json] = [value for value in citations if value is not None]
        if known:
            block["citations"] = known
        return block

    def _media(self, part: Image | Document) -> JsonObject | None:
        source = own_source(part.source) if self._same else foreign_source(part, self._report)
        if source is None:
            return None
        if isinstance(part, Image):
            self._lose_signature(part)
            if part.detail is not None:
                severity: Severity = "identity" if part.detail == "auto" else "option"
                self._report.lose(part.at, "detail of a picture", f"{NAME} has no such option", severity)
            return {"type": "image", "source": source}
        divided = part.extras.get("source")
        if self._same and isinstance(divided, dict) and divided.get("type") == "content":
            source = divided
        citations: JsonObject | None = None if part.cite is None else {"enabled": part.cite}
        return compact(
            {"type": "document", "source": source, "title": part.title, "context": part.context, "citations": citations}
        )

    def _thinking(self, part: Thinking) -> JsonObject | None:
        if part.id == NEXT or part.signed_by not in (None, NAME) or (not self._same and part.signature is None):
            # Only thinking that this provider has signed may be sent back to it.
            if part.signature is not None or part.id is not None or not part.text:
                self._report.lose(part.at, "a signature over thinking", "it is another provider's", "identity")
            if part.text:
                self._report.lose(
                    part.at, "thinking", f"{NAME} takes only thinking that it has signed itself", "content"
                )
            return None
        if part.id is not None:
            self._lose_item(part, part.id)
        summary = "\n\n".join(part.summary)
        if (part.text and part.redacted) or summary not in ("", part.text):
            self._report.lose(part.at, "words beside signed thinking", f"{NAME} takes them as they were", "content")
        if part.redacted:
            return {"type": "redacted_thinking", "data": part.signature or ""}
        return compact({"type": "thinking", "thinking": part.text, "signature": part.signature})

    def _input(self, arguments: str, at: str) -> JsonObject:
        value = arguments_object(arguments)
        if value is None:
            self._report.lose(at, "arguments as they were written", f"{NAME} takes a JSON object only", "content")
            return {INPUT: arguments}
        return value

    def _tool_result(self, part: ToolResult) -> JsonObject:
        self._lose_item(part, part.item)
        if part.name is not None and self._names.get(part.id) != part.name:
            self._report.lose(part.at, "tool name of a result", f"{NAME} names a tool in its call only", "identity")
        content = self._result_content(part)
        call_id = part.id if self._same else safe_id(part.id, part.at, self._report, NAME)
        block: JsonObject = {"type": "tool_result", "tool_use_id": call_id}
        if content != []:
            block["content"] = content
        if part.is_error and not self._same and not _is_text(content):
            why = f"{NAME} takes it with text and nothing else"
            self._report.lose(part.at, "error flag of a tool result", why, "option")
        elif part.is_error is not None:
            block["is_error"] = part.is_error
        return block

    def _result_content(self, part: ToolResult) -> Json:
        """The content of a result: a string if it was one, otherwise blocks; nothing if it is empty."""
        only = part.parts[0] if len(part.parts) == 1 and part.bare and part.structured is None else None
        if isinstance(only, Text) and only.text.strip() and only == Text(only.text, at=only.at):
            return only.text  # the case for most results
        content = BlockWriter(self._report, same=self._same).write(part.parts)
        if part.structured is not None:
            content.insert(0, {"type": "text", "text": encode(part.structured).decode()})
        bare = bare_text(content) if part.bare or part.structured is not None else None
        return content if bare is None else bare

    def _lose_signature(self, part: Text | Image | ToolCall) -> None:
        if part.signature is not None:
            what, why = f"a signature of {part.signed_by}", "it means nothing to another provider"
            self._report.lose(part.at, what, why, "identity")

    def _lose_item(self, part: Value, item: str | None) -> None:
        if item is not None:
            self._report.lose(part.at, "id of the item", f"{NAME} has blocks, not items", "identity")


def _is_text(content: Json) -> bool:
    """Whether the content of a result fits an error: "all content must be type "text" if "is_error" is true", and it
    "cannot be empty if "is_error" is true"."""
    return bool(content) and all(block["type"] == "text" for _, block in objects_in(content))


def write_cache(mark: CacheBreakpoint, *, same: bool) -> JsonObject:
    """A cache mark in the form that a block or a tool carries."""
    control: JsonObject = compact({"type": mark.kind, "ttl": mark.ttl})
    return merge(control, mark.extras) if same else control


def bare_text(blocks: list[Json]) -> str | None:
    """The string that is equivalent to a list of one plain text block; None for any other list."""
    if len(blocks) != 1 or not isinstance(block := blocks[0], dict) or len(block) != 2 or "type" not in block:
        return None
    text = block.get("text")
    return text if isinstance(text, str) else None
