"""YAML 1.2 text as a tree of nodes that know their places. Every mistake is a problem, never an exception.

Scalars follow the core schema of YAML 1.2: `yes`, `no`, `on`, `off`, dates and `1_000` are text. Aliases are followed
and `<<` is merged. Anything that JSON cannot represent (NaN, other tags, keys that are collections) is rejected.
"""

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, ComposerError
from ruamel.yaml.error import MarkedYAMLError, StringMark
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.nodes import Node as Composed
from ruamel.yaml.parser import Parser
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.scanner import Scanner

from sightline.catalog.problem import Path, format_path, quote_word
from sightline.errors import Fault
from sightline.evals.core.reading.document import Content, Node, Scalar, SuiteFindings
from sightline.evals.core.suite import SuitePlace, SuiteProblem
from sightline.model.json import Json
from sightline.wire import jsontext
from sightline.wire.spans import Span, layout_of

MOST_NODES = 1_000_000
"""The most values that a file may have with its aliases followed."""

DEPTH = 100

_TOO_DEEP = f"values are nested more than {DEPTH} levels deep"

_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(_TAG + name for name in ("str", "null", "bool", "int", "float", "timestamp", "merge", "value"))
_QUOTED_TAGS = frozenset({_TAG + "str"})
_COLLECTION_TAGS = frozenset({_TAG + "map", _TAG + "seq"})
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LARGEST = 2**63
_LONG_ESCAPE = re.compile(r"\\U([0-9a-fA-F]{8})")
_LAST_CHARACTER = 0x10FFFF
_HALF = re.compile("[\ud800-\udfff]")
_MOST_DIGITS = 20


class _Refused(Exception):
    """Raised for a value that cannot be read; `problem` describes it."""

    def __init__(self, place: SuitePlace, path: Path, message: str, suggestion: str) -> None:
        super().__init__(message)
        self.problem = SuiteProblem(place=place, path=format_path(path), message=message, suggestion=suggestion)


class _Parser(Parser):
    """Caches its scanner. The library's own parser looks it up twice per token, which takes a tenth of the time."""

    @cached_property
    def scanner(self) -> Scanner:
        found: Scanner = self.loader.scanner
        return found


class _ShallowComposer(Composer):
    """Stops at the first value that is nested too deep, because the library takes ever longer for each level."""

    _depth = 0

    @cached_property
    def parser(self) -> Parser:
        found: Parser = self.loader.parser
        return found

    def compose_node(self, parent: Composed | None, index: object) -> Composed:
        self._depth += 1
        if self._depth > DEPTH:
            mark = self.parser.peek_event().start_mark
            raise ComposerError(problem=_TOO_DEEP, problem_mark=mark)
        node: Composed = super().compose_node(parent, index)
        self._depth -= 1
        return node


def read_yaml(data: bytes, file: str) -> Node | SuiteProblem:
    """The only document of a text, or the problem that keeps it from being read."""
    text = decode_text(data, file)
    if isinstance(text, SuiteProblem):
        return text
    try:
        document = compose_yaml(text, file)
        builder = _Builder(file)
        builder.check_size(document, {})
        return builder.node(document, (), frozenset())
    except _Refused as refused:
        return refused.problem


def read_document(data: bytes, file: str, findings: SuiteFindings) -> Node | None:
    """The only document of a text; None if it cannot be read, which is reported."""
    document = read_yaml(data, file)
    if isinstance(document, SuiteProblem):
        findings.add([document])
        return None
    return document


def decode_text(data: bytes, file: str) -> str | SuiteProblem:
    """The text of a UTF-8 file, without its byte order mark."""
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        place = _place_of_index(data[: error.start].decode("utf-8"), error.start, file)
        message = f"the file is not UTF-8: byte {error.start} is 0x{data[error.start]:02x}"
        return _Refused(place, (), message, "Save it as UTF-8.").problem


def compose_yaml(text: str, file: str) -> Composed:
    """The only document of a text, as composed by the library."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an anchor may be redefined; YAML has a rule for it
            library = YAML(typ="safe", pure=True)
            library.Parser, library.Composer = _Parser, _ShallowComposer
            documents = list(library.compose_all(text))
    except ReaderError as error:
        place = _place_of_index(text, error.position, file)
        message = f"the character U+{ord(text[error.position]):04X} is not allowed in YAML"
        raise _Refused(place, (), message, "Write it as an escape in double quotes, or remove it.") from None
    except MarkedYAMLError as error:
        raise _refusal_at_mark(error, text, file) from None
    except (OverflowError, ValueError):  # what the library raises for an escape beyond the last character
        found = next((match for match in _LONG_ESCAPE.finditer(text) if int(match[1], 16) > _LAST_CHARACTER), None)
        place = _place_of_index(text, found.start() if found else 0, file)
        hint = "Correct it, or write the character itself."
        raise _Refused(place, (), "an escape names no character there is", hint) from None
    if not documents or documents[0] is None:
        raise _Refused(SuitePlace(file, 1, 1), (), "the file is empty", "A suite has at least `tests`.")
    if len(documents) > 1:
        place = place_of(documents[1].start_mark, file)
        raise _Refused(place, (), "the file has more than one document", "Put each suite into a file of its own.")
    document: Composed = documents[0]
    return document


def is_whole(text: str) -> bool:
    """Whether the text has no lone surrogates."""
    return not _HALF.search(text)


def place_of(mark: StringMark, file: str) -> SuitePlace:
    """The library's mark as a place, counted from 1."""
    return SuitePlace(file, mark.line + 1, mark.column + 1)


def _place_of_index(text: str, index: int, file: str) -> SuitePlace:
    before = text[:index]
    return SuitePlace(file, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


def _refusal_at_mark(error: MarkedYAMLError, text: str, file: str) -> _Refused:
    mark = error.problem_mark or error.context_mark
    words = f"{error.context}: {error.problem}" if error.context else f"{error.problem}"
    line = text.splitlines()[mark.line] if mark.line < len(text.splitlines()) else ""
    suggestion = "Check the indentation and the quotes."
    if "\t" in line[: mark.column + 1]:
        words, suggestion = "a tab stands where YAML wants spaces", "Indent with spaces."
    elif ": " in line and "mapping values" in words:
        suggestion = 'A text with ": " in it needs quotes.'
    return _Refused(place_of(mark, file), (), words, suggestion)


class _Builder:
    def __init__(self, file: str) -> None:
        self._file = file

    def check_size(self, source: Composed, known: dict[int, int]) -> int:
        """Count the values with their aliases followed, each node visited once: a few lines of aliases can stand for
        more values than could ever be visited. A value inside itself is reported by the code that walks the tree."""
        if id(source) in known:
            return known[id(source)]
        known[id(source)] = 1
        below: list[Composed] = source.value if isinstance(source, SequenceNode) else []
        if isinstance(source, MappingNode):
            below = [each for pair in source.value for each in pair]
        size = 1 + sum(self.check_size(each, known) for each in below)
        if size > MOST_NODES:
            place = place_of(source.start_mark, self._file)
            hint = "Write out what is needed of it, in place of aliases."
            raise _Refused(place, (), f"there are more than {MOST_NODES} values in the file", hint)
        known[id(source)] = size
        return size

    def node(self, source: Composed, path: Path, above: frozenset[int]) -> Node:
        place = place_of(source.start_mark, self._file)
        if id(source) in above:
            raise _Refused(place, path, "an alias is inside of what it names", "Write the value out.")
        if len(path) > DEPTH:
            raise _Refused(place, path, _TOO_DEEP, "")
        self._check_tag(source, place, path)
        below = above | {id(source)}
        keys: dict[str, SuitePlace] = {}
        match source:
            case MappingNode():
                value: Content = self._members(source, path, below, keys)
            case SequenceNode():
                value = [self.node(each, (*path, index), below) for index, each in enumerate(source.value)]
            case _:
                assert isinstance(source, ScalarNode)
                value = self._scalar(source, place, path)
        return Node(value, place, path, keys)

    def _check_tag(self, source: Composed, place: SuitePlace, path: Path) -> None:
        tag = str(source.tag)
        if not isinstance(source, ScalarNode):
            allowed = _COLLECTION_TAGS
        else:
            allowed = _PLAIN_TAGS if source.style is None else _QUOTED_TAGS
        if tag not in allowed:
            short = tag.replace(_TAG, "!!")
            raise _Refused(place, path, f"the tag {quote_word(short)} is not known", "Leave the tag out.")

    def _members(
        self, source: MappingNode, path: Path, below: frozenset[int], keys: dict[str, SuitePlace]
    ) -> dict[str, Node]:
        members: dict[str, Node] = {}
        merged: list[Node] = []
        for key_node, value_node in source.value:
            place = place_of(key_node.start_mark, self._file)
            if not isinstance(key_node, ScalarNode):
                raise _Refused(place, path, "a key has to be one word or text", "Put it in quotes.")
            key = self._whole_text(key_node.value, place, path)
            if str(key_node.tag) == _TAG + "merge":
                merged += self._merge(value_node, path, below)
                continue
            if key in keys:
                message = f"the key {quote_word(key)} is written twice, first in line {keys[key].line}"
                raise _Refused(place, (*path, key), message, "Remove one of them: only one can count.")
            keys[key] = place
            members[key] = self.node(value_node, (*path, key), below)
        for other in merged:
            for key, node in other.members.items():
                if members.setdefault(key, node) is node:
                    keys[key] = other.keys[key]
        return members

    def _merge(self, source: Composed, path: Path, below: frozenset[int]) -> Iterator[Node]:
        sources = source.value if isinstance(source, SequenceNode) else [source]
        for each in sources:
            if not isinstance(each, MappingNode):
                place = place_of(each.start_mark, self._file)
                raise _Refused(place, path, "only mappings can be merged by <<", "Name the anchor of a mapping.")
            yield self.node(each, path, below)

    def _scalar(self, source: ScalarNode, place: SuitePlace, path: Path) -> Scalar:
        text = self._whole_text(source.value, place, path)
        if source.style is not None or str(source.tag) == _TAG + "str":
            return text
        if text in _NULL:
            return None
        if text in _BOOL:
            return _BOOL[text]
        if _NOT_FINITE.fullmatch(text):
            raise _Refused(place, path, f"{text} is not a JSON number", "Put it in quotes, or leave it out.")
        if len(text) > _MOST_DIGITS and _INT.fullmatch(text):
            raise self._too_large(place, path)
        number = _parse_int(text)
        if number is not None:
            if not -_LARGEST <= number < _LARGEST:
                raise self._too_large(place, path)
            return number
        if _FLOAT.fullmatch(text):
            value = float(text)
            if value in (float("inf"), float("-inf")):
                raise self._too_large(place, path)
            return value
        return text

    def _whole_text(self, text: str, place: SuitePlace, path: Path) -> str:
        """The text with surrogate pairs joined, since JSON writes such a character as two escapes."""
        if is_whole(text):
            return text
        try:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise _Refused(place, path, "an escape is only half of a character", "Write both halves.") from None

    def _too_large(self, place: SuitePlace, path: Path) -> _Refused:
        message = "the number is too large to be kept exactly"
        return _Refused(place, path, message, "Put it in quotes, so that it stays as it is written.")


def _parse_int(text: str) -> int | None:
    if _INT.fullmatch(text):
        return int(text)
    if _OCTAL.fullmatch(text):
        return int(text, 8)
    return int(text, 16) if _HEX.fullmatch(text) else None


def read_json_lines(data: bytes, file: str) -> tuple[list[Node], list[SuiteProblem]]:
    """The values of the readable lines, and the problems of the others."""
    nodes: list[Node] = []
    problems: list[SuiteProblem] = []
    for number, line in enumerate(data.removeprefix(jsontext.BOM).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            nodes.append(_Line(line.rstrip(), number, file).read((len(nodes),)))
        except _Refused as refused:
            problems.append(refused.problem)
    return nodes, problems


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of JSON: its bytes, its number from 1, and its file."""

    data: bytes
    number: int
    file: str

    def read(self, path: Path) -> Node:
        try:
            value = jsontext.decode(self.data)
        except Fault as fault:
            words, _, column = fault.message.rpartition(" at line 1, column ")
            place = SuitePlace(self.file, self.number, int(column) if words else 1)
            message = f"line {self.number}: {words or fault.message}"
            raise _Refused(place, (), message, "Every line has to be one JSON object.") from None
        start = len(self.data) - len(self.data.lstrip())
        return self._node(value, Span(start, len(self.data)), path)

    def _place(self, start: int) -> SuitePlace:
        return SuitePlace(self.file, self.number, len(self.data[:start].decode("utf-8")) + 1)

    def _node(self, value: Json, span: Span, path: Path) -> Node:
        place = self._place(span.start)
        if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
            raise _Refused(place, path, "the number is too large to be kept exactly", "Put it in quotes.")
        if isinstance(value, str) and not is_whole(value):
            raise _Refused(place, path, "an escape is only half of a character", "Write both halves.")
        if not isinstance(value, dict | list):
            return Node(value, place, path)
        layout = layout_of(self.data, span, "")
        spans = [Span(start, stop) for start, stop in zip(layout.starts, layout.stops, strict=True)]
        if isinstance(value, list):
            below: Content = [
                self._node(each, at, (*path, index)) for index, (each, at) in enumerate(zip(value, spans, strict=True))
            ]
            return Node(below, place, path)
        members: dict[str, Node] = {}
        keys: dict[str, SuitePlace] = {}
        for key, head, at in zip(layout.keys or (), layout.heads, spans, strict=True):
            keys_place = self._place(head)
            if key in keys:
                message = f"the key {quote_word(key)} is written twice"
                raise _Refused(keys_place, (*path, key), message, "Remove one of them: only one can count.")
            keys[key] = keys_place
            members[key] = self._node(value[key], at, (*path, key))
        return Node(members, place, path, keys)
