from sightline.evals.core.reading.yaml_text import read_json_lines
from sightline.evals.core.suite import SuitePlace


def test_every_line_is_a_value_that_knows_its_place() -> None:
    nodes, problems = read_json_lines(
        b'{"id": "a"}\r\n\n  {"id": "\xc3\xbc", "input": [{"role": "user"}]}\n', "a.jsonl"
    )
    assert not problems
    assert [node.json for node in nodes] == [{"id": "a"}, {"id": "ü", "input": [{"role": "user"}]}]
    assert nodes[1].key_place("input") == SuitePlace("a.jsonl", 3, 15)
    assert nodes[1].members["input"].items[0].members["role"].place == SuitePlace("a.jsonl", 3, 34)
    assert nodes[1].members["input"].items[0].shown_path == "[1].input[0]"


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
