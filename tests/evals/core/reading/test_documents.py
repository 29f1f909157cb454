import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.catalog.problem import format_path
from sightline.evals.core.reading import yaml_text
from sightline.evals.core.reading.document import Node, SuiteFindings, node_of
from sightline.evals.core.reading.yaml_text import read_json_lines, read_yaml
from sightline.evals.core.suite import SuitePlace, SuiteProblem
from tests.evals.core.reading.stage import problem, read, sound

HERE = SuitePlace("a.yaml", 3, 5)


def test_inserted_value_takes_the_place_where_it_is_put() -> None:
    node = node_of({"a": [1, None, "x"], "b": {}}, HERE, ("tests", 0))
    assert node.json == {"a": [1, None, "x"], "b": {}}
    assert format_path(node.members["a"].items[2].path) == "tests[0].a[2]"
    assert node.members["a"].items[2].place == HERE
    assert node.key_place("a") == HERE


def test_a_node_says_what_it_is() -> None:
    kinds = [Node(value, HERE).kind for value in (None, True, 1, 1.5, "x", [], {})]
    assert kinds == ["nothing", "true or false", "a number", "a number", "text", "a list", "a mapping"]


def test_what_is_not_there_and_what_is_null_are_the_same_to_a_reader() -> None:
    node = node_of({"a": None, "b": 1}, HERE, ())
    assert node.get("a") is None
    assert node.get("c") is None
    assert node.get("b") is not None
    assert node_of("text", HERE, ()).get("a") is None


FINDINGS_HERE = SuitePlace("a.yaml", 1, 1)


def owner(**members: object) -> Node:
    return node_of(dict(members), FINDINGS_HERE, ())  # type: ignore[arg-type]


def test_the_same_problem_is_kept_once_and_lines_are_in_order() -> None:
    findings = SuiteFindings()
    late, early = Node("x", SuitePlace("a.yaml", 9, 1)), Node("y", SuitePlace("a.yaml", 2, 1))
    findings.odd(late, "late")
    findings.odd(late, "late")
    findings.odd(early, "early")
    assert [each.message for each in findings.problems] == ["early", "late"]
    assert not findings.has_errors
    findings.add([SuiteProblem(place=FINDINGS_HERE, path="", message="wrong")])
    assert findings.has_errors


def test_an_unknown_key_is_an_error_with_the_nearest_known_one() -> None:
    findings = SuiteFindings()
    findings.check_keys(owner(inptu="x", **{"x-mine": 1, "id": "a"}), ("id", "input"), "a test")
    assert [(each.path, each.suggestion) for each in findings.problems] == [("inptu", 'Did you mean "input"?')]


def test_lists_and_mappings_are_wanted_by_name() -> None:
    findings = SuiteFindings()
    node = owner(list="x", map=[])
    assert findings.items(node.members["list"], "list") == []
    assert not findings.is_mapping(node.members["map"], "map")
    assert [each.message for each in findings.problems] == [
        "list must be a list, not text",
        "map must be a mapping, not a list",
    ]


OLD = """evalcases:
  - id: a
    outcome: is polite
    input_messages: [{role: user, content: hi}]
    expected_messages: [{role: assistant, content: hello}]
    evaluators: [{type: is-json}]
"""


@pytest.mark.parametrize("name", ["evalcases", "eval_cases", "tests"])
def test_the_names_of_earlier_days_are_read(name: str) -> None:
    reading = read(OLD.replace("evalcases", name))
    assert reading.suite is not None
    (case,) = reading.suite.cases
    assert case.criteria == "is polite"
    assert [message.role for message in (*case.messages, *case.expected)] == ["user", "assistant"]
    assert [spec.type for spec in case.graders] == ["is-json"]
    assert not reading.problems


def test_assert_is_read_for_the_suite_and_for_a_case() -> None:
    suite = sound(OLD.replace("evaluators", "assert") + "assert: [{type: contains, value: x}]\n")
    assert [spec.type for spec in suite.cases[0].graders] == ["is-json", "contains"]


def test_the_old_and_the_new_name_at_once_is_an_error() -> None:
    found = problem("tests:\n  - {id: a, input: x, criteria: y, outcome: z}\n")
    assert found.message == "outcome is another name of criteria, and both are written"
    assert found.path == "tests[0].outcome"
    assert (found.place.line, found.place.column) == (2, 36)


def test_every_line_is_a_value_that_knows_its_place() -> None:
    nodes, problems = read_json_lines(
        b'{"id": "a"}\r\n\n  {"id": "\xc3\xbc", "input": [{"role": "user"}]}\n', "a.jsonl"
    )
    assert not problems
    assert [node.json for node in nodes] == [{"id": "a"}, {"id": "ü", "input": [{"role": "user"}]}]
    assert nodes[1].key_place("input") == SuitePlace("a.jsonl", 3, 15)
    assert nodes[1].members["input"].items[0].members["role"].place == SuitePlace("a.jsonl", 3, 34)
    assert format_path(nodes[1].members["input"].items[0].path) == "[1].input[0]"


def test_a_line_that_cannot_be_read_does_not_hide_the_others() -> None:
    text = (
        b'\xef\xbb\xbf{"id": "a"}\n{"id": }\n{"id": "b", "id": "c"}\n{"n": 99999999999999999999}\n\xff\n{"id": "d"}\n'
    )
    nodes, problems = read_json_lines(text, "a.jsonl")
    assert [node.json for node in nodes] == [{"id": "a"}, {"id": "d"}]
    assert [(each.place.line, each.place.column) for each in problems] == [(2, 8), (3, 13), (4, 7), (5, 1)]
    assert "expecting value" in problems[0].message
    assert 'the key "id" is written twice' in problems[1].message
    assert "too large" in problems[2].message


def test_half_a_character_is_refused() -> None:
    nodes, (problem,) = read_json_lines(b'{"a": "\\ud83d\\ude00"}\n{"a": "\\ud83d"}\n', "a.jsonl")
    assert nodes[0].json == {"a": "😀"}
    assert "half of a character" in problem.message


def test_a_line_that_is_nested_without_end_is_a_problem() -> None:
    _, (problem,) = read_json_lines(b"[" * 3000 + b"]" * 3000, "a.jsonl")
    assert problem.place == SuitePlace("a.jsonl", 1, 1)


def value(text: str) -> object:
    node = read_yaml(text.encode(), "a.yaml")
    assert isinstance(node, Node), node
    return node.json


def refused(text: str | bytes) -> SuiteProblem:
    problem = read_yaml(text if isinstance(text, bytes) else text.encode(), "a.yaml")
    assert isinstance(problem, SuiteProblem)
    assert problem.place.file == "a.yaml"
    assert problem.place.line >= 1
    assert problem.place.column >= 1
    return problem


@pytest.mark.parametrize("word", ["yes", "no", "on", "off", "y", "1_000", "2024-01-31", "1:30", "=", "<<x", "0b1"])
def test_words_of_older_yaml_are_text(word: str) -> None:
    assert value(f"a: {word}") == {"a": word}


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("true", True), ("False", False), ("~", None), ("null", None), ("", None), ("12", 12), ("-3", -3), ("+3", 3),
        ("0o17", 15), ("0x1f", 31), ("010", 10), ("1.5", 1.5), (".5", 0.5), ("1e3", 1000.0), ("'12'", "12"),
        ("!!str 12", "12"), ("<<", "<<"),
    ],
)  # fmt: skip
def test_words_mean_what_yaml_1_2_says(word: str, meant: object) -> None:
    assert value(f"a: {word}") == {"a": meant}


def test_two_escapes_make_one_character_as_in_json() -> None:
    assert value('{"\\ud83d\\ude00": "a \\ud83d\\ude00"}') == {"😀": "a 😀"}


def test_every_value_and_key_knows_its_line_and_column() -> None:
    node = read_yaml(b"a:\n  - b: x\n    c: [1, 2]\n", "a.yaml")
    assert isinstance(node, Node)
    inner = node.members["a"].items[0]
    assert inner.key_place("c") == SuitePlace("a.yaml", 3, 5)
    assert inner.members["c"].items[1].place == SuitePlace("a.yaml", 3, 12)
    assert format_path(inner.members["c"].items[1].path) == "a[0].c[1]"


def test_anchors_aliases_and_merged_mappings_are_followed() -> None:
    text = "base: &b {x: 1, y: 2}\nmore: &m {y: 3, z: 4}\none:\n  <<: *b\n  x: 9\ntwo:\n  <<: [*b, *m]\n"
    assert value(text) == {
        "base": {"x": 1, "y": 2},
        "more": {"y": 3, "z": 4},
        "one": {"x": 9, "y": 2},
        "two": {"x": 1, "y": 2, "z": 4},
    }


def test_an_anchor_may_be_named_anew() -> None:
    assert value("a: &x 1\nb: &x 2\nc: *x\n") == {"a": 1, "b": 2, "c": 2}


def test_a_byte_order_mark_and_windows_line_ends_are_no_trouble() -> None:
    node = read_yaml(b"\xef\xbb\xbfa: |\r\n  x\r\n  y\r\nb: c\r\n", "a.yaml")
    assert isinstance(node, Node)
    assert node.json == {"a": "x\ny\n", "b": "c"}
    assert node.members["b"].place.line == 4


@pytest.mark.parametrize(
    ("text", "line", "words", "hint"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, 'the key "a" is written twice, first in line 1', "Remove one"),
        ("a: .nan", 1, ".nan is not a JSON number", "quotes"),
        ("a: -.inf", 1, "-.inf is not a JSON number", "quotes"),
        ("a: 99999999999999999999999", 1, "too large", "quotes"),
        ("a: 9223372036854775808", 1, "too large", "quotes"),
        ("a: 0xffffffffffffffffffff", 1, "too large", "quotes"),
        ("a: -1e999", 1, "too large", "quotes"),
        ("a:\n\tb: 1", 2, "a tab", "spaces"),
        ("a: b: c", 1, "mapping values", 'with ": "'),
        ("a: 'b", 1, "quoted scalar", "indentation"),
        ("a: *x", 1, "undefined alias", ""),
        ("a: &x [*x]", 1, "inside of what it names", "Write the value out"),
        ("<<: 1", 1, "only mappings can be merged", "anchor"),
        ("? [a]\n: b", 1, "a key has to be", "quotes"),
        ("a: !mine x", 1, '"!mine"', "Leave the tag out"),
        ("a: !!set {x}", 1, '"!!set"', "Leave the tag out"),
        ("a: !!int '5'", 1, '"!!int"', "Leave the tag out"),
        ("a: 1\n---\nb: 2", 3, "more than one document", "file of its own"),
        ("", 1, "empty", "tests"),
        ("# nothing\n", 1, "empty", "tests"),
        ("a: x\nb: \x07", 2, "U+0007", "escape"),
        ("%OTHER\n", 2, "document start", ""),
        ('a: 1\nb: "\\UFFFFFFFF"', 2, "names no character", "Correct it"),
        ('a: "\\U00110000"', 1, "names no character", "Correct it"),
        ('a: "\\ud800"', 1, "half of a character", "both halves"),
        ("[" * 500, 1, "nested more than 100", ""),
        ("[" * 150 + "]" * 150, 1, "nested more than 100", ""),
    ],
)  # fmt: skip
def test_a_mistake_is_a_problem_with_its_place(text: str, line: int, words: str, hint: str) -> None:
    problem = refused(text)
    assert problem.place.line == line
    assert words in problem.message
    assert hint in problem.suggestion


def test_what_is_not_utf_8_is_named_by_its_byte() -> None:
    problem = refused(b"a: x\nb: caf\xe9\n")
    assert (problem.place.line, problem.place.column) == (2, 7)
    assert "byte 11 is 0xe9" in problem.message
    assert refused("a: ü".encode("utf-16")).suggestion == "Save it as UTF-8."


def test_aliases_lead_no_deeper_than_brackets() -> None:
    levels = "".join(f"l{n}: &l{n} [*l{n - 1}]\n" for n in range(1, 120))
    assert "nested more than 100" in refused("l0: &l0 1\n" + levels).message


def test_aliases_of_aliases_cannot_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_text, "MOST_NODES", 1000)
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 9))
    assert "more than 1000 values" in refused("l0: &l0 [1]\n" + levels).message


def test_billions_of_values_in_twelve_lines_are_refused_before_they_are_walked_through() -> None:
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 13))
    found = refused("l0: &l0 {a: 1}\n" + levels)
    assert "more than 1000000 values" in found.message
    assert str(found.place).endswith(":7:5")
    assert "aliases" in found.suggestion


@given(
    st.text(alphabet=st.characters(codec="utf-8"), max_size=40)
    | st.text(alphabet="ab:-[]{}&*!|>'\"%#?\\x \n\t,<", max_size=30)
)
def test_no_text_is_more_than_a_problem(text: str) -> None:
    assert isinstance(read_yaml(text.encode(), "a.yaml"), Node | SuiteProblem)


@given(st.binary(max_size=30))
def test_no_bytes_are_more_than_a_problem(data: bytes) -> None:
    assert isinstance(read_yaml(data, "a.yaml"), Node | SuiteProblem)
