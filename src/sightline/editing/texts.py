"""The text of sections and parts: where it is in the document, and how an edited text is distributed over several
parts.

The edit is split into hunks. A hunk belongs to the first part that it touches, which keeps its head and takes the
replacement; other touched parts keep their tails; an insertion on a boundary goes to the left part. Parts therefore
never move, merge or vanish, and a part that no hunk touches stays as it is.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, chain
from typing import NamedTuple

import msgspec

from sightline.dialects.dialect import LeafPaths
from sightline.dialects.registry import dialect
from sightline.dialects.tool_names import BUILT_IN
from sightline.editing.section import Option, SectionContent
from sightline.model.json import Json
from sightline.model.parts import Opaque, Refusal, Text, Thinking, ToolCall, ToolResult
from sightline.model.request import CustomTool, FunctionTool, OpaqueTool
from sightline.wire.jsontext import encode
from sightline.wire.pointer import join, resolve

_SIGNED = "It is signed by the provider, who refuses it when it is changed."
_SIGNATURES = ('"encrypted', '"signature"', '"thoughtSignature"', '"thought_signature"')


class Leaf(msgspec.Struct, frozen=True):
    """A place whose value is shown as `text`. With `is_json` the value is JSON, otherwise a string. The place may not
    exist yet."""

    pointer: str
    text: str
    is_json: bool = False
    is_there: bool = True


class EditableText(msgspec.Struct, frozen=True):
    """The leaves of a part, and the reason if they cannot be edited. Without leaves, `text` is shown."""

    leaves: tuple[Leaf, ...] = ()
    text: str = ""
    reason: str = ""

    @property
    def shown(self) -> str:
        """The text that the user sees."""
        return "".join([leaf.text for leaf in self.leaves]) if self.leaves else self.text

    @property
    def is_editable(self) -> bool:
        """Whether the text can be replaced."""
        return bool(self.leaves) and not self.reason

    @property
    def is_json(self) -> bool:
        """Whether only JSON can replace the text."""
        return bool(self.leaves) and self.leaves[0].is_json  # a JSON value is the only leaf


def words_of(content: SectionContent, document: Json, dialect_name: str) -> EditableText:
    """The editable text of a part, tool or option that was read from this document of this dialect."""
    paths = dialect(dialect_name).editing.leaves
    match content:
        case Text():
            return EditableText(_string_at(content.at, "text", document), reason=_reason_if_signed(content.signature))
        case Refusal():
            return EditableText(_string_at(content.at, "refusal", document))
        case Thinking():
            return _thinking_text(content, document, paths)
        case ToolCall():
            leaf = _arguments(content, document, paths)
            return EditableText((leaf,) if leaf else (), content.arguments, _reason_if_signed(content.signature))
        case ToolResult():
            return _result(content, document, paths)
        case Opaque():
            spelled = as_text(content.value)
            if content.mirrored:
                return EditableText(text=spelled, reason="It says what stands elsewhere too: edit it by its place.")
            if any(name in spelled for name in _SIGNATURES):
                reason = "It holds something signed by the provider: edit it by its place."
                return EditableText(text=spelled, reason=reason)
            return EditableText((Leaf(content.at, spelled, is_json=True),))
        case FunctionTool() | CustomTool() | OpaqueTool():
            value = resolve(document, content.at)
            if isinstance(content, OpaqueTool) and content.value != value:
                reason = "It is in one object with other tools: edit it by its place."
                return EditableText(text=as_text(content.value), reason=reason)
            return EditableText((Leaf(content.at, as_text(value), is_json=True),))
        case Option():
            return EditableText((Leaf(content.at, as_text(content.value), is_json=True),))
        case _:
            return EditableText(reason="Only words can be edited here.")


def as_text(value: Json) -> str:
    """A value as compact JSON."""
    return encode(value).decode()


def _string_at(at: str, key: str, document: Json) -> tuple[Leaf, ...]:
    """The string of a part, if it has one: the value itself, or its member of this name."""
    value = resolve(document, at)
    if isinstance(value, dict):
        at, value = join(at, key), value.get(key)
    return (Leaf(at, value),) if isinstance(value, str) else ()


def _thinking_text(part: Thinking, document: Json, paths: LeafPaths) -> EditableText:
    if part.signature is not None or part.signed_by is not None:
        return EditableText(text=part.text, reason=_SIGNED)
    value = resolve(document, part.at)
    if value == part.text:
        return EditableText((Leaf(part.at, part.text),))
    for path in paths.thinking:
        if _follow(value, path) == part.text:
            return EditableText((Leaf(join(part.at, *path), part.text),))
    return EditableText(text=part.text, reason="It is in several pieces: edit each by its place.")


def _arguments(part: ToolCall, document: Json, paths: LeafPaths) -> Leaf | None:
    value = resolve(document, part.at)
    if leaf := _first_leaf(part.at, value, paths.arguments if part.kind not in BUILT_IN else paths.actions):
        return leaf
    # A call may omit its arguments, or have null.
    for *above, last in paths.arguments:
        holder = _follow(value, tuple(above))
        if above and isinstance(holder, dict):
            is_json = last == "args"
            pointer = join(part.at, *above, last)
            return Leaf(pointer, "{}" if is_json else "", is_json=is_json, is_there=last in holder)
    return None


def _result(part: ToolResult, document: Json, paths: LeafPaths) -> EditableText:
    texts = [_string_at(each.at, "text", document) for each in part.parts if isinstance(each, Text)]
    if leaves := tuple(chain.from_iterable(texts)):
        return EditableText(leaves)
    value = resolve(document, part.at)
    if leaf := _first_leaf(part.at, value, paths.responses if part.kind not in BUILT_IN else paths.outputs):
        return EditableText((leaf,))
    if part.kind == "apply_patch":  # it may report only its status
        is_there = isinstance(value, dict) and "output" in value
        return EditableText((Leaf(join(part.at, "output"), "", is_there=is_there),))
    return EditableText(reason="The result has no words.")


def _first_leaf(at: str, value: Json, paths: Iterable[tuple[str, ...]]) -> Leaf | None:
    """The first of these places below `at` that has a string, an object or a list; None if none has."""
    for path in paths:
        found = _follow(value, path)
        if isinstance(found, str):
            return Leaf(join(at, *path), found)
        if isinstance(found, dict | list):
            return Leaf(join(at, *path), as_text(found), is_json=True)
    return None


def _follow(value: Json, path: tuple[str, ...]) -> Json:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _reason_if_signed(signature: str | None) -> str:
    return "" if signature is None else _SIGNED


LEAST_COMMON = 0.4
"""With less in common than this, the edit is one hunk: what a diff would match is coincidence."""
_MOST_CHARACTERS = 4_000
_MOST_LINES = 4_000
"""How much is compared, counting both sides. Beyond that the diff would take longer than a user waits."""


class _Hunk(NamedTuple):
    """The text from `start` to `stop` is replaced by `text`."""

    start: int
    stop: int
    text: str


def divide_over_parts(old: Sequence[str], new: str) -> list[str]:
    """The parts after their joined text has become `new`; as many as before."""
    parts = list(old)
    before = "".join(parts)
    if before == new:
        return parts
    if len(parts) == 1:
        return [new]
    ends = list(accumulate(map(len, parts)))
    for hunk in reversed(_hunks(before, new, ends)):
        _apply(parts, ends, hunk)
    return parts


def _apply(parts: list[str], ends: list[int], hunk: _Hunk) -> None:
    """Apply one hunk. Later hunks have been applied already, and have changed nothing that it touches."""
    first = _owner(ends, hunk)
    start = ends[first - 1] if first else 0
    if hunk.stop <= ends[first]:
        text = parts[first]
        parts[first] = text[: hunk.start - start] + hunk.text + text[hunk.stop - start :]
        return
    parts[first] = parts[first][: hunk.start - start] + hunk.text
    for number in range(first + 1, len(parts)):
        begin = ends[number - 1]
        if begin >= hunk.stop:
            break
        parts[number] = parts[number][min(hunk.stop, ends[number]) - begin :]


def _owner(ends: list[int], hunk: _Hunk) -> int:
    """The first part that a hunk touches; for an insertion at a boundary, the left one."""
    if hunk.start == hunk.stop:
        return bisect_left(ends, hunk.start)
    return next(number for number, end in enumerate(ends) if end > hunk.start)


def _hunks(before: str, new: str, ends: list[int]) -> list[_Hunk]:
    head, tail = common_ends(before, new)
    window = _Hunk(head, len(before) - tail, new[head : len(new) - tail])
    if _fits_one_part(window, ends):
        return [window]
    found = list(_differences(before[head : window.stop], window.text))
    common = head + tail + window.stop - head - sum(hunk.stop - hunk.start for hunk in found)
    if 2 * common < LEAST_COMMON * (len(before) + len(new)):
        return [_whole(before, new, ends)]
    return [_Hunk(hunk.start + head, hunk.stop + head, hunk.text) for hunk in found]


def _fits_one_part(window: _Hunk, ends: list[int]) -> bool:
    """Whether the window results in the same parts however it is split."""
    if window.start == window.stop:
        return True
    owner = _owner(ends, window)
    # An insertion in front of the rest would belong to the part on the left.
    begins_within = owner == 0 or window.start > ends[owner - 1]
    return window.stop <= ends[owner] and (begins_within or not window.text)


def _whole(before: str, new: str, ends: list[int]) -> _Hunk:
    """One hunk of the whole text, except the leading and trailing parts that the new text also has."""
    size, room = len(before), len(new)
    start = max(end for end in (0, *ends) if new.startswith(before[:end]))
    ends_alike = (at for at in (*ends, 0) if at >= start and size - at + start <= room and new.endswith(before[at:]))
    stop = min(ends_alike)
    return _Hunk(start, stop, new[start : room - (size - stop)])


def _differences(before: str, new: str) -> Iterator[_Hunk]:
    """The hunks between two texts: by characters, or first by lines if they are long."""
    is_short = len(before) + len(new) <= _MOST_CHARACTERS
    for window in [_Hunk(0, len(before), new)] if is_short else differing_lines(before, new):
        if window.stop - window.start + len(window.text) > _MOST_CHARACTERS:
            yield window
            continue
        old = before[window.start : window.stop]
        for tag, start, stop, begin, end in SequenceMatcher(None, old, window.text, autojunk=False).get_opcodes():
            if tag != "equal":
                yield _Hunk(start + window.start, stop + window.start, window.text[begin:end])


def differing_lines(old: str, new: str) -> Iterator[_Hunk]:
    """Each group of differing lines; the whole text as one group if it has so many lines that a diff takes too long."""
    old_lines, new_lines = old.splitlines(keepends=True), new.splitlines(keepends=True)
    if len(old_lines) + len(new_lines) > _MOST_LINES:
        old_lines, new_lines = [old], [new]
    old_at, new_at = ([0, *accumulate(map(len, lines))] for lines in (old_lines, new_lines))
    for tag, i, j, k, m in SequenceMatcher(None, old_lines, new_lines, autojunk=False).get_opcodes():
        if tag != "equal":
            yield _Hunk(old_at[i], old_at[j], new[new_at[k] : new_at[m]])


def differing_stretches(old: str, new: str) -> Iterator[_Hunk]:
    """The differing lines, without the characters at both ends of each group that are the same."""
    for start, stop, text in differing_lines(old, new):
        head, tail = common_ends(old[start:stop], text)
        yield _Hunk(start + head, stop - tail, text[head : len(text) - tail])


def common_ends(one: str, other: str) -> tuple[int, int]:
    """The lengths of the common prefix of two texts and of the common suffix of the rest."""
    head = _common_prefix(one, other)
    return head, _common_prefix(one[head:][::-1], other[head:][::-1])


def _common_prefix(one: str, other: str) -> int:
    """The length of the common prefix, by binary search, because Python compares slices fast."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
