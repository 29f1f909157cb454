import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Code, Fault
from sightline.evals.core.reading.document import Node
from sightline.evals.core.reading.yaml_edit import (
    EditedText,
    append_case,
    case_path,
    cases_in,
    in_flow,
    inline,
    is_block,
    item_lines,
    refusal,
    write_value,
    write_yaml,
)
from sightline.evals.core.reading.yaml_text import read_yaml
from sightline.model.json import Json

SCALARS = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20) | st.text(alphabet="ab \n:#-|'\"\t", max_size=20)
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS | TEXTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=8
)


def meant(text: str) -> Json:
    node = read_yaml(text.encode(), "a.yaml")
    assert isinstance(node, Node), (text, node)
    return node.json


@given(VALUES)
def test_what_is_written_is_read_as_it_was(value: Json) -> None:
    header, body = write_yaml(value)
    assert meant("\n".join([f"key: {header}", *body, "next: 1"])) == {"key": value, "next": 1}
    assert meant(f"key: {inline(value)}") == {"key": value}
    assert meant(f"[{in_flow(value)}, 1]") == [value, 1]
    first, rest = item_lines(value)
    assert meant("\n".join([f"- {first}", *rest, "- 1"])) == [value, 1]


def test_people_would_write_it_so() -> None:
    value: Json = {
        "id": "a case",
        "input": [{"role": "user", "content": "one\ntwo\n"}],
        "count": 1,
        "empty": [],
        "on": "yes",
    }
    assert "\n".join(write_yaml(value).body) == (
        "  id: a case\n"
        "  input:\n"
        "    - role: user\n"
        "      content: |\n"
        "        one\n"
        "        two\n"
        "  count: 1\n"
        "  empty: []\n"
        '  "on": "yes"'
    )


@pytest.mark.parametrize("text", ["one line", " a\nb", "a\n\n", "\n\n", "a\r\nb", "a\u2028\nb"])
def test_what_a_literal_block_would_bend_is_quoted(text: str) -> None:
    assert not is_block(text)
    assert meant(f"key: {write_yaml(text).header}") == {"key": text}


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
def test_value_is_replaced_in_place(text: str, path: tuple[str | int, ...], value: Json, after: str) -> None:
    assert edited(text, path, value) == after


def test_a_refusal_names_the_place() -> None:
    fault = refusal(("a", 0), "why")
    assert (fault.code, fault.message) == (Code.USAGE, "a[0]: why")
    assert refusal((), "why").message == "the document: why"


SUITE = """# A suite with everything in it
name:   'odd'    # quotes and spaces

defaults: &d {{type: contains, value: "x"}}   # an anchor

tests:
  # the first case
  - id: first          # its name
    input: "a very long line that nobody folds: {}"
    expected_output: |  # literal
      one
      two

    criteria: >-
      folded
      text
    assertions:
    - *d
    - {{type: is-json}}   # flow
  - id: second
    input:
      - role: user     # who
        content: hello # what
      - {{role: assistant, content: hi}}
    empty:
# the end
""".format("x" * 200)


def changed(path: tuple[str | int, ...], value: Json, text: str = SUITE) -> str:
    return write_value(text.encode(), "a.yaml", path, value).decode()


@pytest.mark.parametrize(
    ("path", "value", "before", "after"),
    [
        (("name",), "even", "name:   'odd'    # quotes", "name: even    # quotes"),
        (("tests", 0, "id"), "new id: 1", "id: first          # its", 'id: "new id: 1"          # its'),
        (("tests", 0, "expected_output"), "three", "|  # literal\n      one\n      two\n", "three  # literal\n"),
        (("tests", 0, "expected_output"), "3\n4\n", "|  # literal\n      one\n      two\n",
         "|  # literal\n      3\n      4\n"),
        (("tests", 0, "criteria"), "plain", ">-\n      folded\n      text\n", "plain\n"),
        (("tests", 0, "assertions"), ["polite"], "\n    - *d\n    - {type: is-json}   # flow\n",
         "   # flow\n    - polite\n"),
        (("tests", 0, "assertions", 1, "type"), "equals", "{type: is-json}", '{type: "equals"}'),
        (("tests", 0, "assertions", 0), "polite", "    - *d\n", "    - polite\n"),
        (("tests", 1, "input"), "short", "\n      - role: user     # who\n        content: hello # what\n"
         "      - {role: assistant, content: hi}\n", " short\n"),
        (("tests", 1, "input", 0, "content"), "a\nb", "content: hello # what\n",
         "content: |- # what\n          a\n          b\n"),
        (("tests", 1, "input", 0), {"role": "system", "content": "x"},
         "- role: user     # who\n        content: hello # what\n", "- role: system # what\n        content: x\n"),
        (("tests", 1, "input", 1, "content"), [1, "x"], "content: hi}", 'content: [1, "x"]}'),
        (("tests", 1, "empty"), {"a": 1}, "empty:\n", "empty:\n      a: 1\n"),
        (("tests", 1, "criteria"), "good", "    empty:\n", "    empty:\n    criteria: good\n"),
        (("tests", 0, "assertions", 1, "weight"), 2, "{type: is-json}", '{type: is-json, "weight": 2}'),
        (("more",), {"x": []}, "    empty:\n", "    empty:\nmore:\n  x: []\n"),
    ],
)  # fmt: skip
def test_only_the_one_value_changes(path: tuple[str | int, ...], value: Json, before: str, after: str) -> None:
    assert before in SUITE
    assert changed(path, value) == SUITE.replace(before, after, 1)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_the_byte_order_mark_stay(ending: str, mark: str) -> None:
    text = (mark + SUITE.replace("\n", ending)).encode()
    path = ("tests", 0, "criteria")
    assert write_value(text, "a.yaml", path, "a\nb").decode() == (
        mark + SUITE.replace(">-\n      folded\n      text\n", "|-\n      a\n      b\n")
    ).replace("\n", ending)


@given(
    st.sampled_from(
        [
            ("name",), ("tests", 0, "id"), ("tests", 0, "input"), ("tests", 0, "expected_output"), ("tests", 0),
            ("tests", 0, "criteria"), ("tests", 0, "assertions"), ("tests", 0, "assertions", 1), ("tests", 1, "input"),
            ("tests", 1, "input", 0), ("tests", 1, "input", 1), ("tests", 1, "empty"), ("tests", 1, "new"), ("tests",),
        ]
    ),
    VALUES,
)  # fmt: skip
def test_whatever_is_saved_says_what_was_meant_and_keeps_the_lines_around_it(
    path: tuple[str | int, ...], value: Json
) -> None:
    text = changed(path, value)
    node = meant(text)
    for step in path:
        node = node[step]  # type: ignore[index,call-overload]
    assert node == value
    assert text.startswith("# A suite with everything in it\n")
    assert text.endswith("\n# the end\n")


def test_a_case_is_put_behind_the_last_one() -> None:
    case: Json = {"id": "third", "input": "one\ntwo"}
    assert append_case(SUITE.encode(), "a.yaml", case).decode() == SUITE.replace(
        "    empty:\n", "    empty:\n  - id: third\n    input: |-\n      one\n      two\n"
    )


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("tests: []  # none yet\n", "tests:  # none yet\n  - id: a\n"),
        ("tests: [{id: x}] # one\n", 'tests: [{id: x}, {"id": "a"}] # one\n'),
        ("- id: x", "- id: x\n- id: a"),
        ("eval_cases: &t\n- id: x # c\nname: n\n", "eval_cases: &t\n- id: x # c\n- id: a\nname: n\n"),
        ("tests:\n  -\n    id: x\n\n  # later\nname: n\n", "tests:\n  -\n    id: x\n  - id: a\n\n  # later\nname: n\n"),
        ("tests:\n- - deep\n  - er\n", "tests:\n- - deep\n  - er\n- id: a\n"),
        ("tests:\n  - x: *\n".replace("*", "&a 1\n  - y: *a"), "tests:\n  - x: &a 1\n  - y: *a\n  - id: a\n"),
    ],
)
def test_a_case_finds_its_place_in_every_kind_of_list(text: str, after: str) -> None:
    assert append_case(text.encode(), "a.yaml", {"id": "a"}).decode() == after


def test_a_text_of_several_lines_goes_behind_the_last_line_also_if_that_has_no_end() -> None:
    text = b"tests:\n  - id: one\n    input: hi"
    case = {"id": "two", "input": "a\nb\n"}
    appended = text + b"\n  - id: two\n    input: |\n      a\n      b\n"
    assert append_case(text, "a.yaml", case) == appended
    changed = b"tests:\n  - id: one\n    input: |\n      a\n      b\n"
    assert write_value(text, "a.yaml", ("tests", 0, "input"), "a\nb\n") == changed
    assert write_value(text, "a.yaml", ("tests", 0, "input"), "ho") == text[:-2] + b"ho"


def test_lines_of_json_are_changed_one_by_one() -> None:
    text = b'{"id":"a",  "input":"x"}\n\n{"id": "b"}'
    assert write_value(text, "a.jsonl", (0, "input"), "y") == b'{"id":"a",  "input":"y"}\n\n{"id": "b"}'
    assert write_value(text, "a.jsonl", (2, "meta"), [1]) == b'{"id":"a",  "input":"x"}\n\n{"id": "b","meta": [1]}'
    assert append_case(text, "a.jsonl", {"id": "c"}) == text + b'\n{"id":"c"}\n'
    assert append_case(b"", "a.jsonl", {"id": "c"}) == b'{"id":"c"}\n'
    assert case_path(text, "a.jsonl", "b") == (2,)
    assert case_path(text, "a.jsonl", "z") is None
    for path in ((), (1, "id"), (9, "id"), ("x",)):
        with pytest.raises(Fault, match="no such line"):
            write_value(text, "a.jsonl", path, 1)


def test_a_case_is_found_by_its_id() -> None:
    assert case_path(SUITE.encode(), "a.yaml", "second") == ("tests", 1)
    assert case_path(b"- {id: x}\n- {}\n- {id: y}\n", "a.yaml", "y") == (2,)
    assert case_path(b"tests: c.yaml\n", "a.yaml", "y") is None


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("a: &x {b: 1}\nc: *x\n", ("c", "b"), "by an alias"),
        ("a: &x [1]\nc: [2, *x]\n", ("c", 1, 0), "by an alias"),
        ("a: &x {b: {c: 1}}\nd:\n  <<: *x\n", ("d", "b", "c"), "by <<"),
        ("a: &x 1\nb: *x\n", ("a",), "shared with other places"),
        ("a: 1\n", ("a", "b"), "no such place"),
        ("a: [1]\n", ("a", 1), "no such place"),
        ("a: 1\n", (), "whole document"),
        ("a: [\n", ("a",), "expected"),
    ],
)
def test_what_cannot_be_changed_alone_is_refused(text: str, path: tuple[str | int, ...], words: str) -> None:
    with pytest.raises(Fault, match=words) as caught:
        write_value(text.encode(), "a.yaml", path, 2)
    assert caught.value.hint


def test_a_key_that_was_merged_is_written_out() -> None:
    assert changed(("d", "b"), 2, "a: &x {b: 1}\nd:\n  <<: *x\n") == "a: &x {b: 1}\nd:\n  <<: *x\n  b: 2\n"


def test_a_suite_whose_tests_are_elsewhere_takes_no_case() -> None:
    with pytest.raises(Fault, match="another file"):
        append_case(b"tests: c.yaml\n", "a.yaml", {"id": "a"})
    with pytest.raises(Fault, match="has no tests"):
        append_case(b"name: x\n", "a.yaml", {"id": "a"})


def test_cases_are_found_by_their_ids_as_they_are_written() -> None:
    assert cases_in(b"- {id: x, input: a}\n- {}\n- 3\n- {id: 4}\n- {id: x, input: b}\n", "a.yaml") == {
        "x": {"id": "x", "input": "a"}
    }
    assert list(cases_in(SUITE.encode(), "a.yaml")) == ["second", "first"]
    assert cases_in(b'{"id": "a"}\n\n{"id": "b"}\n', "a.jsonl") == {"b": {"id": "b"}, "a": {"id": "a"}}
    with pytest.raises(Fault):
        cases_in(b"tests: [", "a.yaml")
