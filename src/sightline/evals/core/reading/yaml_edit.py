"""Change one value in the text of a suite. Everything else, comments and spacing included, stays byte for byte."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ruamel.yaml.nodes import CollectionNode, MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.nodes import Node as Composed

from sightline.catalog.problem import Path, format_path
from sightline.errors import Code, Fault
from sightline.evals.core.reading.document import Node
from sightline.evals.core.reading.yaml_text import compose_yaml, read_yaml
from sightline.evals.core.suite import SuiteProblem
from sightline.model.json import Json, JsonObject
from sightline.wire import jsontext
from sightline.wire.document import WireDocument
from sightline.wire.pointer import join

_PLAIN = re.compile(r"[A-Za-z](?:[A-Za-z0-9 _./()-]*[A-Za-z0-9_./()-])?")
_RESERVED = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
_UNPRINTABLE = re.compile(r"[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|[\u2028\u2029]")
STEP = "  "


class YamlLines(NamedTuple):
    """The text on the line of the key, and the lines below it, indented as if the key were at the left margin."""

    header: str
    body: tuple[str, ...] = ()


def write_yaml(value: Json) -> YamlLines:
    """A value in block style."""
    match value:
        case str() if is_block(value):
            lines = value.removesuffix("\n").split("\n")
            return YamlLines(
                "|" if value.endswith("\n") else "|-", tuple(STEP + line if line else "" for line in lines)
            )
        case dict() if value:
            return YamlLines("", tuple(STEP + line for line in _members(value)))
        case list() if value:
            return YamlLines("", tuple(STEP + line for line in _items(value)))
        case _:
            return YamlLines(inline(value))


def document_text(value: Json) -> str:
    header, body = write_yaml(value)
    return "\n".join([*([header] if header else []), *(line.removeprefix(STEP) for line in body)]) + "\n"


def inline(value: Json) -> str:
    """A value on one line; anything but a plain word is JSON, which is also YAML."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _RESERVED:
        return value
    return in_flow(value)


def in_flow(value: Json) -> str:
    """A value within brackets: always JSON, because a plain word could contain a comma or a brace."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _UNPRINTABLE.sub(lambda match: json.dumps(match[0])[1:-1], text)


def is_block(text: str) -> bool:
    """Whether a literal block can hold the text exactly: it has several lines, and does not start with white space."""
    return (
        "\n" in text
        and not text[0].isspace()
        and not text.endswith("\n\n")
        and bool(text.strip())
        and not _UNPRINTABLE.search(text)
    )


def _members(value: dict[str, Json]) -> list[str]:
    lines: list[str] = []
    for key, each in value.items():
        header, body = write_yaml(each)
        lines += [f"{inline(key)}:{' ' if header else ''}{header}", *body]
    return lines


def _items(value: list[Json]) -> list[str]:
    lines: list[str] = []
    for each in value:
        first, rest = item_lines(each)
        lines += [f"- {first}", *rest]
    return lines


def item_lines(value: Json) -> YamlLines:
    """A value after a dash: a mapping or a list begins on the same line."""
    header, body = write_yaml(value)
    return YamlLines(header, body) if header else YamlLines(body[0].removeprefix(STEP), body[1:])


_COLON = re.compile(r"\s*:")
_ALIAS = re.compile(r"\s*\*[^\s,\]}]+")
_COMMENT = re.compile(r"[ \t]+#[^\r\n]*")
_HEADER = re.compile(r"[|>][-+0-9]*")


class EditedText:
    """A text with one change. The YAML library locates the values; only their characters are replaced."""

    def __init__(self, data: bytes, file: str) -> None:
        self._mark = jsontext.BOM if data.startswith(jsontext.BOM) else b""
        self._text = data.removeprefix(self._mark).decode("utf-8")
        self._end_of_line = "\r\n" if "\r\n" in self._text else "\n"
        self._root = compose_yaml(self._text, file)

    @property
    def data(self) -> bytes:
        return self._mark + self._text.encode("utf-8")

    def set(self, path: Path, value: Json) -> None:
        """Set the value at an existing path; its last key may be new. Raises a `Fault` if that is not possible."""
        if not path:
            raise refusal(path, "the whole document cannot be replaced")
        holder, flows = self._walk(path)
        step = path[-1]
        if isinstance(holder, SequenceNode) and isinstance(step, int):
            dash, end = self._item(holder, step)
            if flows:
                self._replace(dash, end, in_flow(value))
            else:
                self._write(dash + 1, end, _column(self._text, dash), item_lines(value))
            return
        assert isinstance(holder, MappingNode)  # the path was checked in the tree before
        entry = next((pair for pair in holder.value if pair[0].value == step), None)
        if entry is None:
            self._add(holder, str(step), value, flows=flows)
            return
        key, old = entry
        start = self._after_colon(key)
        end = max(start, self._end(old, start, key.start_mark.index))
        if flows:
            self._replace(start, end, f" {in_flow(value)}")
        else:
            self._write(start, end, key.start_mark.column, self._align_list(old, key, value))

    def append(self, path: Path, case: JsonObject, *, is_empty: bool) -> None:
        """Append a case to the list at a path."""
        if is_empty:
            self.set(path, [case])
            return
        node: Composed = self._root
        if path:
            node = next(value for key, value in self._root.value if key.value == path[0])
        assert isinstance(node, SequenceNode)
        dash, end = self._item(node, len(node.value) - 1)
        if node.flow_style:
            self._replace(end, end, f", {in_flow(case)}")
            return
        header, body = item_lines(case)
        self._insert_lines(end, _column(self._text, dash), (f"- {header}", *body))

    def _walk(self, path: Path) -> tuple[Composed, bool]:
        """The collection that contains the last step, and whether it is in flow style."""
        node = self._root
        flows = _is_flow(node)
        for step in path[:-1]:
            if isinstance(node, SequenceNode) and isinstance(step, int):
                child = node.value[step]
                before = node.value[step - 1].start_mark.index if step else node.start_mark.index - 1
            else:
                found = [pair for pair in node.value if pair[0].value == step]
                if not found:
                    raise refusal(path, "it comes from another mapping by <<")
                key, child = found[0]
                before = key.start_mark.index
            if child.start_mark.index <= before:
                raise refusal(path, "it comes from another place by an alias")
            node = child
            flows = flows or _is_flow(node)
        return node, flows

    def _after_colon(self, key: ScalarNode) -> int:
        found = _COLON.match(self._text, key.end_mark.index)
        assert found is not None
        return found.end()

    def _item(self, sequence: SequenceNode, index: int) -> tuple[int, int]:
        """The position of an item's dash, or of the item itself in flow style, and the position of its end."""
        at = sequence.start_mark.index
        if sequence.flow_style:
            item = sequence.value[index]
            return item.start_mark.index, self._end(item, item.start_mark.index, at)
        column = sequence.start_mark.column
        dash, end = at, at
        for number, item in enumerate(sequence.value[: index + 1]):
            if number or not self._text.startswith("-", at):
                pattern = re.compile(r"^ *-(?=\s|$)" if not number else rf"^ {{{column}}}-(?=\s|$)", re.MULTILINE)
                found = pattern.search(self._text, end)
                assert found is not None
                dash = found.end() - 1
                column = _column(self._text, dash)
            end = max(dash + 1, self._end(item, dash + 1, dash))
        return dash, end

    def _end(self, node: Composed, start: int, above: int) -> int:
        """The end position of a value. `start` is where it may begin, `above` is the position of its key or dash."""
        if node.start_mark.index <= above:  # an alias: its value is further up
            found = _ALIAS.match(self._text, start)
            return found.end() if found is not None else start
        if isinstance(node, ScalarNode) and node.style in ("|", ">"):
            return len(self._text[: node.end_mark.index].rstrip())
        if isinstance(node, ScalarNode) or _is_flow(node):
            return start if node.start_mark.index == node.end_mark.index else int(node.end_mark.index)
        if isinstance(node, SequenceNode):
            return self._item(node, len(node.value) - 1)[1]
        key, value = node.value[-1]
        after = self._after_colon(key)
        return max(after, self._end(value, after, key.start_mark.index))

    def _align_list(self, old: Composed, key: ScalarNode, value: Json) -> YamlLines:
        """The value as lines. A list is placed like the old list: at the column of its key, or indented."""
        new = write_yaml(value)
        is_beneath = isinstance(old, SequenceNode) and old.start_mark.column == key.start_mark.column
        if is_beneath and not _is_flow(old) and isinstance(value, list):
            return YamlLines(new.header, tuple(line.removeprefix(STEP) for line in new.body))
        return new

    def _add(self, mapping: MappingNode, key: str, value: Json, *, flows: bool) -> None:
        if flows:
            close = mapping.end_mark.index - 1
            comma = ", " if mapping.value else ""
            self._replace(close, close, f"{comma}{in_flow(key)}: {in_flow(value)}")
            return
        lines = [line.removeprefix(STEP) for line in write_yaml({key: value}).body]
        self._insert_lines(self._end(mapping, 0, -1), mapping.value[0][0].start_mark.column, lines)

    def _insert_lines(self, after: int, column: int, lines: Sequence[str]) -> None:
        """Insert lines below the line of this position."""
        end = self._line_end(after)
        indented = (" " * column + line if line else "" for line in lines)
        self._replace(end, end, self._end_of_line + self._end_of_line.join(indented))

    def _line_end(self, at: int) -> int:
        found = re.compile(r"[^\r\n]*").match(self._text, at)
        assert found is not None
        return found.end()

    def _write(self, start: int, end: int, column: int, new: YamlLines) -> None:
        """Replace the value after a colon or a dash. A comment on its line stays there."""
        line_end = self._line_end(start)
        last = self._line_end(end)
        tail = self._text[end:last].rstrip()
        if end > line_end:
            first = self._text[start:line_end]
            comment = (
                _COMMENT.search(first) if _HEADER.match(first.lstrip()) or not first.split("#")[0].strip() else None
            )
            tail = (comment[0] if comment else "") + tail
        lines = [f" {new.header}" if new.header else "", *(" " * column + line if line else "" for line in new.body)]
        lines[0] += tail
        self._replace(start, last, self._end_of_line.join(lines))

    def _replace(self, start: int, end: int, text: str) -> None:
        self._text = self._text[:start] + text + self._text[end:]


def refusal(path: Path, why: str) -> Fault:
    return Fault(Code.USAGE, f"{format_path(path) or 'the document'}: {why}", hint="Change the file in an editor.")


def _is_flow(node: Composed) -> bool:
    """Whether a node is a collection in flow style."""
    return isinstance(node, CollectionNode) and bool(node.flow_style)


def _column(text: str, at: int) -> int:
    return at - (text.rfind("\n", 0, at) + 1)


_TESTS = ("tests", "eval_cases", "evalcases")


def case_path(data: bytes, file: str, name: str) -> Path | None:
    """The path of the case with this id; None if the file has none."""
    return next((path for path, case in _cases(data, file) if case.get("id") == name), None)


def cases_in(data: bytes, file: str) -> dict[str, Json]:
    """The cases of a text by id, each as it is written; if an id occurs twice, the first case counts."""
    named = ((case.get("id"), case) for _, case in reversed([*_cases(data, file)]))
    return {name: case for name, case in named if isinstance(name, str)}


def _cases(data: bytes, file: str) -> Iterator[tuple[Path, JsonObject]]:
    """The cases of a text that are mappings, with their paths."""
    found: Iterable[tuple[Path, Json]]
    if file.lower().endswith(".jsonl"):
        lines = enumerate(data.split(b"\n"))
        found = (((number,), jsontext.decode(line)) for number, line in lines if line.strip())
    else:
        path, tests = _tests_in(_tree(data, file))
        found = (((*path, index), each.json) for index, each in enumerate(tests.items))
    for place, case in found:
        if isinstance(case, dict):
            yield place, case


def write_value(data: bytes, file: str, path: Path, value: Json) -> bytes:
    """The text with this value at this path. A missing key is added to its mapping. Raises a `Fault` if that is not
    possible.

    In a file of JSON lines, the path begins with the number of the line, counted from 0.
    """
    if file.lower().endswith(".jsonl"):
        lines = data.split(b"\n")
        number = path[0] if path else -1
        if not isinstance(number, int) or not 0 <= number < len(lines) or not lines[number].strip():
            raise refusal(path, "there is no such line")
        line, pointer = WireDocument(lines[number]), join("", *path[1:])
        holder = line.get(join("", *path[1:-1])) if len(path) > 1 else None
        is_new = isinstance(holder, dict) and path[-1] not in holder
        lines[number] = (line.insert if is_new else line.set)(pointer, value).data
        return b"\n".join(lines)
    before = _tree(data, file)
    wanted = _with(before.json, path, value, path)
    text = EditedText(data, file)
    text.set(path, value)
    return _verify(text.data, file, wanted, path)


def append_case(data: bytes, file: str, case: JsonObject) -> bytes:
    """The text with one more case at the end of its tests. Raises a `Fault` if the tests are in another file."""
    if file.lower().endswith(".jsonl"):
        end = b"" if not data or data.endswith(b"\n") else b"\n"
        return data + end + jsontext.encode(case) + b"\n"
    before = _tree(data, file)
    path, tests = _tests_in(before)
    if not isinstance(tests.value, list):
        hint = "Append it to the file that it names."
        raise Fault(Code.USAGE, f"{file}: the tests are in another file", hint=hint)
    text = EditedText(data, file)
    text.append(path, case, is_empty=not tests.value)
    old = tests.json
    assert isinstance(old, list)
    return _verify(text.data, file, _with(before.json, path, [*old, case], path), path)


def _tests_in(root: Node) -> tuple[Path, Node]:
    """The path of the tests in a suite, and the tests."""
    if isinstance(root.value, list):
        return (), root
    found = [key for key in _TESTS if key in root.members]
    if not found:
        raise Fault(Code.USAGE, "the suite has no tests", hint="Write tests: [] first.")
    return (found[0],), root.members[found[0]]


def _tree(data: bytes, file: str) -> Node:
    tree = read_yaml(data, file)
    if isinstance(tree, SuiteProblem):
        raise tree.fault(Code.USAGE)
    return tree


def _with(document: Json, path: Path, value: Json, whole: Path) -> Json:
    if not path:
        return value
    step, *rest = path
    if isinstance(document, dict) and isinstance(step, str) and (step in document or not rest):
        return {**document, step: _with(document.get(step), tuple(rest), value, whole)}
    if isinstance(document, list) and isinstance(step, int) and 0 <= step < len(document):
        return [
            _with(each, tuple(rest), value, whole) if index == step else each for index, each in enumerate(document)
        ]
    raise refusal(whole, "there is no such place")


def _verify(data: bytes, file: str, wanted: Json, path: Path) -> bytes:
    # Behind a text without a last line end, a literal block lacks that of its last line.
    end = b"" if data.endswith(b"\n") else b"\r\n" if b"\r\n" in data else b"\n"
    for changed in dict.fromkeys((data, data + end)):
        after = read_yaml(changed, file)
        if isinstance(after, Node) and after.json == wanted:
            return changed
    raise refusal(path, "the value is shared with other places, or written in a way that cannot be changed alone")
