"""A changed value back in the text of a suite. Everything else, comments and spacing included, stays byte for byte.

Only the letters of the one value are replaced. Then the new text is read, and if it does not say exactly what it said
before with the one change, nothing is saved and a fault says so.
"""

from sightline.catalog.problem import Path
from sightline.errors import Code, Fault
from sightline.evals.core.place import SuiteProblem
from sightline.evals.core.reading.node import Node
from sightline.evals.core.reading.yaml_edit import EditedText, refusal
from sightline.evals.core.reading.yaml_text import read_yaml
from sightline.model.json import Json, JsonObject
from sightline.wire import jsontext
from sightline.wire.document import WireDocument
from sightline.wire.pointer import join

_TESTS = ("tests", "eval_cases", "evalcases")


def case_path(data: bytes, file: str, name: str) -> Path | None:
    """The way to the case with this id; None where the file has none."""
    if file.lower().endswith(".jsonl"):
        for number, line in enumerate(data.split(b"\n")):
            value = jsontext.decode(line) if line.strip() else None
            if isinstance(value, dict) and value.get("id") == name:
                return (number,)
        return None
    root = _tree(data, file)
    path = _list_path(root)
    tests = root if not path else root.members[str(path[0])]
    for index, each in enumerate(tests.items):
        found = each.get("id")
        if found is not None and found.value == name:
            return (*path, index)
    return None


def cases_in(data: bytes, file: str) -> dict[str, Json]:
    """The cases of a text by their ids, each as it is written; of two with one id the first."""
    if file.lower().endswith(".jsonl"):
        found = [jsontext.decode(line) for line in data.split(b"\n") if line.strip()]
    else:
        root = _tree(data, file)
        path = _list_path(root)
        tests = root if not path else root.members[str(path[0])]
        found = [each.json for each in tests.items]
    named = ((each.get("id"), each) for each in reversed(found) if isinstance(each, dict))
    return {name: each for name, each in named if isinstance(name, str)}


def write_value(data: bytes, file: str, path: Path, value: Json) -> bytes:
    """The text with this value at this path. A key that is not there yet is added to its mapping.

    In a file of JSON lines the path begins with the number of the line, counted from 0.
    """
    if file.lower().endswith(".jsonl"):
        lines = data.split(b"\n")
        number = path[0] if path else -1
        if not isinstance(number, int) or not 0 <= number < len(lines) or not lines[number].strip():
            raise refusal(path, "there is no such line")
        lines[number] = WireDocument(lines[number]).set(join("", *path[1:]), value).data
        return b"\n".join(lines)
    before = _tree(data, file)
    wanted = _with(before.json, path, value, path)
    text = EditedText(data, file)
    text.set(path, value)
    return _verify(text.data, file, wanted, path)


def append_case(data: bytes, file: str, case: JsonObject) -> bytes:
    """The text with one more case at the end of its tests."""
    if file.lower().endswith(".jsonl"):
        end = b"" if not data or data.endswith(b"\n") else b"\n"
        return data + end + jsontext.encode(case) + b"\n"
    before = _tree(data, file)
    path = _list_path(before)
    tests = before if not path else before.members[str(path[0])]
    if not isinstance(tests.value, list):
        hint = "Append it to the file that it names."
        raise Fault(Code.USAGE, f"{file}: the tests stand in another file", hint=hint)
    text = EditedText(data, file)
    text.append(path, case, is_empty=not tests.value)
    old = tests.json
    assert isinstance(old, list)
    return _verify(text.data, file, _with(before.json, path, [*old, case], path), path)


def _list_path(root: Node) -> Path:
    if isinstance(root.value, list):
        return ()
    found = [key for key in _TESTS if key in root.members]
    if not found:
        raise Fault(Code.USAGE, "the suite has no tests", hint="Write tests: [] first.")
    return (found[0],)


def _tree(data: bytes, file: str) -> Node:
    tree = read_yaml(data, file)
    if isinstance(tree, SuiteProblem):
        raise Fault(Code.USAGE, f"{tree.place}: {tree.message}", hint=tree.suggestion)
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
    after = read_yaml(data, file)
    if isinstance(after, SuiteProblem) or after.json != wanted:
        raise refusal(path, "the value is shared with other places, or written in a way that cannot be changed alone")
    return data
