import pytest

from sightline.errors import Code
from sightline.evals.core.reading.yaml_edit import EditedText, refusal
from sightline.model.json import Json


def edited(text: str, path: tuple[str | int, ...], value: Json) -> str:
    document = EditedText(text.encode(), "a.yaml")
    document.set(path, value)
    return document.data.decode()


@pytest.mark.parametrize(
    ("text", "path", "value", "after"),
    [
        ("{}", ("a",), 1, '{"a": 1}'),
        ("a: {}\n", ("a", "b"), 1, 'a: {"b": 1}\n'),
        ("a: [x, y] # c\n", ("a", 1), "z", 'a: [x, "z"] # c\n'),
        ("[{a: [1]}]", (0, "a", 0), 2, "[{a: [2]}]"),
        ("- # why\n  a: 1\n- b\n", (0,), "x", "- x # why\n- b\n"),
        ("a: # why\n  - 1\nb: 2\n", ("a",), [3], "a: # why\n  - 3\nb: 2\n"),
        ("a: 'x\n  y' # c\nb: 1\n", ("a",), "z", "a: z # c\nb: 1\n"),
        ("a: 'has # inside\n  y'\nb: 1\n", ("a",), "z", "a: z\nb: 1\n"),
        ("a:\n- 1\n- 2\nb: 1\n", ("a",), ["x"], "a:\n- x\nb: 1\n"),
        ("a:\n- 1\nb: 1\n", ("a",), "x", "a: x\nb: 1\n"),
        ("-\n- b\n", (0,), "x", "- x\n- b\n"),
        ("a: &x 1\nb:\n  c: *x\nd: 2\n", ("b",), 3, "a: &x 1\nb: 3\nd: 2\n"),
        ("a: &x 1\nb: *x # c\n", ("b",), 3, "a: &x 1\nb: 3 # c\n"),
        ("? a\n: 1\n", ("a",), 2, "? a\n: 2\n"),
    ],
)
def test_a_value_is_replaced_where_it_stands(text: str, path: tuple[str | int, ...], value: Json, after: str) -> None:
    assert edited(text, path, value) == after


def test_a_refusal_names_the_place() -> None:
    fault = refusal(("a", 0), "why")
    assert (fault.code, fault.message) == (Code.USAGE, "a[0]: why")
    assert refusal((), "why").message == "the document: why"
