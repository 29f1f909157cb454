"""Where the words of a part stand in the document: the strings, or the piece of JSON, that an edit of it replaces."""

from collections.abc import Iterator

import msgspec

from sightline.dialects.dialect import LeafPaths
from sightline.dialects.registry import dialect
from sightline.dialects.tool_names import BUILT_IN
from sightline.model.json import Json
from sightline.model.parts import Opaque, Part, Refusal, Text, Thinking, ToolCall, ToolResult
from sightline.model.tools import OpaqueTool, Tool
from sightline.wire.jsontext import encode
from sightline.wire.pointer import join, resolve

_SEALS = (b'"encrypted', b'"signature"', b'"thoughtSignature"', b'"thought_signature"')


class Leaf(msgspec.Struct, frozen=True):
    """A place whose value is shown as `text`. With `is_json` it is JSON, else a string; it may not be there yet."""

    pointer: str
    text: str
    is_json: bool = False
    is_there: bool = True


class EditableText(msgspec.Struct, frozen=True):
    """The leaves of one part, and why they cannot be edited if they cannot. Without leaves, `text` is what is shown."""

    leaves: tuple[Leaf, ...] = ()
    text: str = ""
    reason: str = ""

    @property
    def shown(self) -> str:
        """What a person reads."""
        return "".join(leaf.text for leaf in self.leaves) if self.leaves else self.text

    @property
    def is_editable(self) -> bool:
        """Whether a text can take its place."""
        return bool(self.leaves) and not self.reason

    @property
    def is_json(self) -> bool:
        """Whether only JSON can take its place."""
        return any(leaf.is_json for leaf in self.leaves)


def words_of(part: Part, document: Json, dialect_name: str) -> EditableText:
    """The text of a part that was read from this document of this dialect."""
    paths = dialect(dialect_name).editing.leaves
    match part:
        case Text():
            return EditableText(tuple(_strings(part.at, "text", document)), reason=_reason_if_signed(part.signature))
        case Refusal():
            return EditableText(tuple(_strings(part.at, "refusal", document)))
        case Thinking():
            return _thought(part, document, paths)
        case ToolCall():
            leaf = _arguments(part, document, paths)
            return EditableText((leaf,) if leaf else (), part.arguments, _reason_if_signed(part.signature))
        case ToolResult():
            return _result(part, document, paths)
        case Opaque():
            return _opaque(part)
        case _:
            return EditableText(reason="Only words can be edited here.")


def words_of_tool(tool: Tool, document: Json) -> EditableText:
    """The definition of a tool, as JSON."""
    value = resolve(document, tool.at)
    if isinstance(tool, OpaqueTool) and tool.value != value:
        return EditableText(
            text=as_text(tool.value), reason="It stands in one object with other tools: edit it by its place."
        )
    return EditableText((Leaf(tool.at, as_text(value), is_json=True),))


def words_of_option(place: str, value: Json) -> EditableText:
    """An option, as JSON."""
    return EditableText((Leaf(place, as_text(value), is_json=True),))


def as_text(value: Json) -> str:
    """A value as compact JSON."""
    return encode(value).decode()


def _strings(at: str, key: str, document: Json) -> Iterator[Leaf]:
    """The string of a part: the value itself, or the member of this name."""
    value = resolve(document, at)
    if isinstance(value, dict):
        at, value = join(at, key), value.get(key)
    if isinstance(value, str):
        yield Leaf(at, value)


def _thought(part: Thinking, document: Json, paths: LeafPaths) -> EditableText:
    if part.signature is not None or part.signed_by is not None:
        return EditableText(text=part.text, reason="It is sealed by the provider, who refuses it when it is changed.")
    value = resolve(document, part.at)
    if value == part.text:
        return EditableText((Leaf(part.at, part.text),))
    for path in paths.thinking:
        if _follow(value, path) == part.text:
            return EditableText((Leaf(join(part.at, *path), part.text),))
    return EditableText(text=part.text, reason="It stands in several pieces: edit each by its place.")


def _arguments(part: ToolCall, document: Json, paths: LeafPaths) -> Leaf | None:
    value = resolve(document, part.at)
    for path in paths.arguments if part.kind not in BUILT_IN else paths.actions:
        found = _follow(value, path)
        if isinstance(found, str):
            return Leaf(join(part.at, *path), found)
        if isinstance(found, dict | list):
            return Leaf(join(part.at, *path), as_text(found), is_json=True)
    # A call may leave its arguments out, or say null.
    for *above, last in paths.arguments:
        holder = _follow(value, tuple(above))
        if above and isinstance(holder, dict):
            is_json = last == "args"
            pointer = join(part.at, *above, last)
            return Leaf(pointer, "{}" if is_json else "", is_json=is_json, is_there=last in holder)
    return None


def _result(part: ToolResult, document: Json, paths: LeafPaths) -> EditableText:
    leaves = [leaf for each in part.parts if isinstance(each, Text) for leaf in _strings(each.at, "text", document)]
    if leaves:
        return EditableText(tuple(leaves))
    value = resolve(document, part.at)
    for path in paths.responses if part.kind not in BUILT_IN else paths.outputs:
        found = _follow(value, path)
        if isinstance(found, str):
            return EditableText((Leaf(join(part.at, *path), found),))
        if isinstance(found, dict | list):
            return EditableText((Leaf(join(part.at, *path), as_text(found), is_json=True),))
    if part.kind == "apply_patch":  # it may say nothing but how it went
        return EditableText(
            (Leaf(join(part.at, "output"), "", is_there=isinstance(value, dict) and "output" in value),)
        )
    return EditableText(reason="The result has no words.")


def _opaque(part: Opaque) -> EditableText:
    spelled = encode(part.value)
    if part.mirrored:
        return EditableText(text=spelled.decode(), reason="It says what stands elsewhere too: edit it by its place.")
    if any(seal in spelled for seal in _SEALS):
        return EditableText(
            text=spelled.decode(), reason="It holds something sealed by the provider: edit it by its place."
        )
    return EditableText((Leaf(part.at, spelled.decode(), is_json=True),))


def _follow(value: Json, path: tuple[str, ...]) -> Json:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _reason_if_signed(signature: str | None) -> str:
    return "" if signature is None else "It is signed by the provider, who refuses it when it is changed."
