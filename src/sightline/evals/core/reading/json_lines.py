"""JSON lines as nodes that know their places: one value a line, blank lines between them."""

from sightline.catalog.problem import Path, format_path, quote_word
from sightline.errors import Fault
from sightline.evals.core.place import SuitePlace, SuiteProblem
from sightline.evals.core.reading.node import Content, Node
from sightline.evals.core.reading.yaml_text import is_whole
from sightline.model.json import Json
from sightline.wire import jsontext
from sightline.wire.spans import Span, layout_of

_LARGEST = 2**63


class _Refused(Exception):
    def __init__(self, problem: SuiteProblem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def read_json_lines(data: bytes, file: str) -> tuple[list[Node], list[SuiteProblem]]:
    """The values of the lines that can be read, and what is wrong with the others."""
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


class _Line:
    def __init__(self, data: bytes, number: int, file: str) -> None:
        self._data = data
        self._number = number
        self._file = file

    def read(self, path: Path) -> Node:
        try:
            value = jsontext.decode(self._data)
        except Fault as fault:
            words, _, column = fault.message.rpartition(" at line 1, column ")
            place = SuitePlace(self._file, self._number, int(column) if words else 1)
            problem = SuiteProblem(
                place=place,
                path="",
                message=f"line {self._number}: {words or fault.message}",
                suggestion="Every line has to be one JSON object.",
            )
            raise _Refused(problem) from None
        start = len(self._data) - len(self._data.lstrip())
        return self._node(value, Span(start, len(self._data)), path)

    def _place(self, start: int) -> SuitePlace:
        return SuitePlace(self._file, self._number, len(self._data[:start].decode("utf-8")) + 1)

    def _node(self, value: Json, span: Span, path: Path) -> Node:
        place = self._place(span.start)
        if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
            raise self._refusal(place, path, "the number is too large to be kept exactly", "Put it in quotes.")
        if isinstance(value, str) and not is_whole(value):
            raise self._refusal(place, path, "an escape is only half of a character", "Write both halves.")
        if not isinstance(value, dict | list):
            return Node(value, place, path)
        layout = layout_of(self._data, span, "")
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
                message = f"the key {quote_word(key)} stands here twice"
                raise self._refusal(keys_place, (*path, key), message, "Remove one of them: only one can count.")
            keys[key] = keys_place
            members[key] = self._node(value[key], at, (*path, key))
        return Node(members, place, path, keys)

    def _refusal(self, place: SuitePlace, path: Path, message: str, suggestion: str) -> _Refused:
        return _Refused(SuiteProblem(place=place, path=format_path(path), message=message, suggestion=suggestion))
