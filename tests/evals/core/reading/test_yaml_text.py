import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.evals.core.reading import yaml_text
from sightline.evals.core.reading.document import Node
from sightline.evals.core.reading.yaml_text import read_yaml
from sightline.evals.core.suite import SuitePlace, SuiteProblem


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
    assert inner.members["c"].items[1].shown_path == "a[0].c[1]"


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
        ("a: .nan", 1, ".nan is no number", "quotes"),
        ("a: -.inf", 1, "-.inf is no number", "quotes"),
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
        ("[" * 5000, 1, "nested more than 100", ""),
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
