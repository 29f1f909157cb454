import pytest

from sightline.evals.core.graders.judge import ALIASES, NAMES
from sightline.evals.core.reading.document import SuiteFindings, node_of
from sightline.evals.core.reading.files import (
    candidates,
    display_path,
    files_of,
    folder_of,
    is_link,
    join_path,
    read_variables,
    refusal_of,
)
from sightline.evals.core.reading.sources import with_environment, with_variables
from sightline.evals.core.suite import FileSegment, SuitePlace
from sightline.model.json import Json
from tests.evals.core.reading.stage import case, messages_of, one, problem, read, sound, told


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/etc/passwd", "absolute"), ("~/x", "absolute"), ("C:/x", "absolute"), ("a\\b", "backslashes"),
        ("https://x/y", "URL"), (" ", "empty"), ("a\nb", "characters"),
    ],
)  # fmt: skip
def test_a_path_that_is_not_relative_is_refused(path: str, why: str) -> None:
    refusal = refusal_of(path)
    assert refusal is not None
    assert why in refusal[0]
    assert refusal[1]


def test_a_slash_in_front_is_the_top_of_the_repository_where_that_is_meant() -> None:
    assert refusal_of("/docs/a.md", from_top=True) is None
    assert refusal_of("~/a.md", from_top=True) is not None


def test_relative_paths_are_taken_and_shown_as_they_are_named() -> None:
    assert refusal_of("../shared/a b.md") is None
    assert display_path("./a//b.md") == "a/b.md"
    assert display_path("../b.md") == "../b.md"


def test_files_are_searched_beside_the_suite_and_in_each_folder_above() -> None:
    assert candidates("f.md", "x/y/a.yaml") == ["x/y/f.md", "x/f.md", "f.md"]
    assert candidates("f.md", "x/y/a.yaml", "z/b.yaml") == ["x/y/f.md", "x/f.md", "f.md", "z/f.md"]
    assert candidates("../f.md", "x/y/a.yaml") == ["x/f.md", "f.md"]
    assert candidates("../f.md", "a.yaml") == []


def test_no_path_leads_out_of_the_folder() -> None:
    assert join_path("a/b", "../../c") == "c"
    assert join_path("a/b", "../../../c") is None
    assert folder_of("c.md") == ""


def test_links_are_what_a_provider_can_fetch() -> None:
    assert is_link("https://x/y.png")
    assert is_link("data:image/png;base64,AA")
    assert not is_link("ftp://x")


def test_only_what_is_wanted_is_kept() -> None:
    assert read_variables(b"A=1\nSECRET=x\nB=2\n", {"A", "B", "C"}) == {"A": "1", "B": "2"}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=plain", "plain"),
        ("  export A = spaced out  ", "spaced out"),
        ("A=value # a remark", "value"),
        ("A=with#sign", "with#sign"),
        ("A=# nothing", ""),
        ("A=", ""),
        ("A='as $it is # here\\n'", "as $it is # here\\n"),
        ('A="two\\nlines \\"quoted\\" \\\\ \\x"', 'two\nlines "quoted" \\ x'),
        ('A="open', '"open'),
    ],
)
def test_a_value_is_read_as_shells_write_it(line: str, value: str) -> None:
    assert read_variables(line.encode(), {"A"}) == {"A": value}


def test_what_is_no_variable_is_passed_over_and_the_last_of_two_counts() -> None:
    text = "\ufeffA=first\r\n# A=remark\nnot a line\n1A=x\nA=last\n".encode()
    assert read_variables(text, {"A", "1A"}) == {"A": "last"}
    assert read_variables(b"\xff\nA=1", {"A"}) == {"A": "1"}


BODY = "input:\n  - {role: user, content: [{type: file, value: %s}]}"


def resolved(path: str, *files: str) -> str:
    (message,) = case(BODY % path, dict.fromkeys(files, b"x"), file="x/y/a.yaml").messages
    (segment,) = message.segments
    assert isinstance(segment, FileSegment)
    assert segment.path == path.removeprefix("./")
    return segment.resolved


def test_a_file_is_found_beside_the_suite_first_and_then_above() -> None:
    assert resolved("./f.md", "x/y/f.md", "f.md") == "x/y/f.md"
    assert resolved("f.md", "x/f.md", "f.md") == "x/f.md"
    assert resolved("f.md", "f.md") == "f.md"
    assert resolved("../f.md", "x/f.md") == "x/f.md"


def test_a_file_that_is_nowhere_is_an_error_at_every_place_that_names_it() -> None:
    body = "input:\n" + "  - {role: user, content: [{type: file, value: f.md}]}\n" * 2
    reading = read(one(body))
    assert reading.suite is not None  # the other cases can be run
    assert [each.case for each in reading.problems] == ["one", "one"]
    assert [each.place.line for each in reading.problems] == [5, 6]
    assert reading.problems[0].message == 'there is no file "f.md"'
    assert reading.problems[0].path == "tests[0]"
    assert reading.problems[0].suggestion == "Looked for suites/f.md, f.md."


def test_a_path_that_leads_out_is_an_error() -> None:
    reading = read(one(BODY % "../../../f.md"))
    (found,) = reading.problems
    assert (reading.suite, found.case) == (None, "")
    assert found.message == 'the path "../../../f.md" leads out of the folder'


def test_all_files_of_a_case_are_known_before_it_runs() -> None:
    body = """input:
  - {role: user, content: [{type: file, value: a.md}, {type: image, value: b.png}, {type: image, value: 'https://x'}]}
turns:
  - input: [{type: file, value: a.md}, {type: file, value: c.md}]
    expected_output: [{role: assistant, content: [{type: file, value: d.md}]}]
"""
    found = case(body, dict.fromkeys(["suites/a.md", "b.png", "suites/c.md", "suites/d.md"], b"x"))
    assert files_of(found) == ("suites/a.md", "b.png", "suites/c.md")
    (expected,) = found.turns[0].expected[0].segments
    assert isinstance(expected, FileSegment)
    assert expected.resolved == "suites/d.md"


HERE = SuitePlace("a.yaml", 1, 1)


def filled(value: Json, variables: dict[str, Json], *path: str) -> tuple[Json, list[str]]:
    findings = SuiteFindings()
    node = with_variables(node_of(value, HERE, path), variables, findings)
    return node.json, [f"{each.severity}: {each.message}" for each in findings.problems]


def from_environment(value: Json, **environment: str) -> tuple[Json, list[str]]:
    findings = SuiteFindings()
    node = with_environment(node_of(value, HERE, ()), environment, findings)
    return node.json, [each.message for each in findings.problems]


@pytest.mark.parametrize(
    ("value", "variables", "shown"),
    [
        (
            {"a": ["Hello {{ name }}, {{name}}", 3], "b": {"c": "{{ user.first }}"}, "d": "plain"},
            {"name": "Ada", "user": {"first": "A"}},
            {"a": ["Hello Ada, Ada", 3], "b": {"c": "A"}, "d": "plain"},
        ),
        pytest.param(" {{ rows }} ", {"rows": [1, {"x": 2}]}, [1, {"x": 2}], id="a text that is one becomes its value"),
        ("rows: {{ rows }}", {"rows": [1]}, "rows: [1]"),
        pytest.param("{{ name }}", {}, "{{ name }}", id="without variables nothing is one"),
        pytest.param("{{ a }}!", {"a": "{{ b }}", "b": "x"}, "{{ b }}!", id="its value is not read again"),
        pytest.param("${{ HOME }} {{ a }}", {"a": "x", "HOME": "wrong"}, "${{ HOME }} x", id="the environment is none"),
    ],
)
def test_variables_fill_texts_wherever_they_stand(value: Json, variables: dict[str, Json], shown: Json) -> None:
    assert filled(value, variables) == (shown, [])


def test_unknown_variable_is_left_in_place_and_reported() -> None:
    text, problems = filled("{{ nmae }} {{ name.deep }}", {"name": "Ada"})
    assert text == "{{ nmae }} {{ name.deep }}"
    assert problems == [
        'warning: vars has no "nmae": it stays as it stands',
        'warning: vars has no "name.deep": it stays as it stands',
    ]


def test_names_of_a_graders_own_prompt_are_left_to_it() -> None:
    variables: dict[str, Json] = {"output": "no", "x": 1}
    assert filled("{{ output }} {{ x }}", variables, "turns", "assertions") == ("{{ output }} 1", [])
    for name in (*NAMES, *ALIASES):  # every name that a prompt of a grader knows
        assert filled(f"{{{{ {name} }}}}", variables, "assertions") == (f"{{{{ {name} }}}}", [])
    assert filled("{{ output }} {{ x }}", variables, "input") == ("no 1", [])


def test_the_environment_fills_texts_and_types_whole_ones() -> None:
    value = ["to ${{ WHO }}", "${{ COUNT }}", "${{ RATE }}", "${{ FLAG }}", "${{ OFF }}", "${{ HEX }}", 1, None]
    environment = {"WHO": "Ada", "COUNT": "12", "RATE": "-0.5", "FLAG": "true", "OFF": "false", "HEX": "0x10"}
    assert from_environment(value, **environment) == (["to Ada", 12, -0.5, True, False, "0x10", 1, None], [])


def test_what_the_environment_lacks_is_an_error_and_never_an_empty_text() -> None:
    value, problems = from_environment({"a": "${{ MISSING }} and ${{ WHO }}"}, WHO="Ada")
    assert value == {"a": "${{ MISSING }} and ${{ WHO }}"}
    assert problems == ["the environment has no MISSING"]


SUITE = """assertions: [{include: safe}]
tests:
  - id: a
    input: x
    assert:
      - {type: is-json}
      - {include: ../shared/words.yaml}
      - {type: composite, assertions: [{include: safe}], aggregator: {type: threshold, threshold: 0.5}}
    execution: {evaluators: [{include: safe}]}
  - id: b
    turns: [{input: x, assertions: [{include: safe}, is short]}]
    execution: {skip_defaults: true}
"""
FILES = {
    ".agentv/templates/safe.yml": b"name: safe\nassertions: [{type: contains, value: '${{ WORD }}'}]\n",
    "shared/words.yaml": b"assertions:\n  - {type: regex, value: a}\n  - {include: ./more.yaml}\n",
    "shared/more.yaml": b"assertions: [{type: regex, value: b}, is kind]\n",
}


def test_graders_of_other_files_stand_where_they_are_named() -> None:
    suite = sound(SUITE, FILES, environment={"WORD": "fine"})
    first, second = suite.cases
    assert [spec.type for spec in first.graders] == [
        *("is-json", "regex", "regex", "rubrics", "composite", "contains", "contains")
    ]
    assert [spec.config.get("value") for spec in first.graders[1:3]] == ["a", "b"]
    assert str(first.graders[2].place) == "shared/more.yaml:1:14"
    assert first.graders[4].config["assertions"] == [{"type": "contains", "value": "fine"}]
    assert [spec.type for spec in second.turns[0].graders] == ["contains", "rubrics"]


def including(name: str) -> str:
    return f"tests:\n  - id: a\n    input: x\n    assertions:\n      - {{type: is-json}}\n      - include: {name}\n"


@pytest.mark.parametrize(
    ("name", "files", "words", "where"),
    [
        ("nowhere", {}, 'no file "nowhere"', "suites/a.eval.yaml:6:18"),
        ("./nowhere.yaml", {}, 'no file "./nowhere.yaml"', "suites/a.eval.yaml:6:18"),
        ("../../x.yaml", {}, "no file", "suites/a.eval.yaml:6:18"),
        ("/etc/x.yaml", {}, "absolute", "suites/a.eval.yaml:6:18"),
        ("3", {}, "the path is empty", "suites/a.eval.yaml:6:18"),
        ("./x.yaml", {"suites/x.yaml": b"a: [\n"}, "", "suites/x.yaml:2:1"),
        ("./x.yaml", {"suites/x.yaml": b"[{type: is-json}]\n"}, "must be a mapping", "suites/x.yaml:1:1"),
        ("./x.yaml", {"suites/x.yaml": b"name: x\n"}, "has no assertions", "suites/x.yaml:1:1"),
        ("./x.yaml", {"suites/x.yaml": b"assertions: x\n"}, "must be a list", "suites/x.yaml:1:13"),
        ("./x.yaml", {"suites/x.yaml": b"tests: []\nassertions: []\n"}, 'no key "tests"', "suites/x.yaml:1:1"),
        ("./x.yaml", {"suites/x.yaml": b"assertions: [{include: ./x.yaml}]\n"}, "in a circle", "suites/x.yaml:1:24"),
    ],
)
def test_what_cannot_be_taken_in_is_an_error_at_its_place(
    name: str, files: dict[str, bytes], words: str, where: str
) -> None:
    found = problem(including(name), files)
    assert found.severity == "error"
    assert words in found.message
    assert str(found.place) == where, told(found)


def test_files_that_name_files_are_followed_three_deep() -> None:
    files = {f"suites/{n}.yaml": f"assertions: [{{include: ./{n + 1}.yaml}}]\n".encode() for n in range(1, 4)}
    files["suites/4.yaml"] = b"assertions: [{type: is-json}]\n"
    assert read(including("./2.yaml"), files).suite is not None
    assert "more than 3 files deep: suites/1.yaml → " in problem(including("./1.yaml"), files).message


def test_file_is_read_once_and_its_problem_reported_once() -> None:
    files = {"suites/x.yaml": b"nothing: here\n"}
    text = including("./x.yaml") + "  - {id: b, input: x, assertions: [{include: ./x.yaml}, {type: is-json}]}\n"
    assert len(read(text, files).problems) == 2


CASE = "id: {}, input: x, criteria: y"
YAML = "- {{" + CASE + "}}\n"


def ids(text: str, **files: str) -> list[str]:
    suite = sound(text, {path: content.encode() for path, content in files.items()}, environment={"WHO": "Ada"})
    return [case.id for case in suite.cases]


def test_tests_stand_in_a_file_of_their_own() -> None:
    assert ids("tests: ./cases.yaml\n", **{"suites/cases.yaml": YAML.format("a")}) == ["a"]
    assert ids("tests: file://cases.yml\n", **{"suites/cases.yml": "tests:\n" + YAML.format("a")}) == ["a"]
    assert ids("tests: ../c.jsonl\n", **{"c.jsonl": '{"id": "a", "input": "x", "criteria": "${{ WHO }}"}\n'}) == ["a"]


def test_files_and_tests_may_stand_side_by_side() -> None:
    text = f"tests:\n  - {{{CASE.format('here')}}}\n  - file://more/*.yaml\n  - file://all/**/x.yaml\n"
    files = {
        "suites/more/b.yaml": YAML.format("b"),
        "suites/more/a.yaml": YAML.format("a"),
        "suites/more/a.txt": "no",
        "suites/all/deep/er/x.yaml": YAML.format("x"),
    }
    assert ids(text, **files) == ["here", "a", "b", "x"]


def test_a_pattern_may_begin_at_the_topmost_folder() -> None:
    assert sound("tests: '*.cases.yaml'\n", {"a.cases.yaml": YAML.format("a").encode()}, file="s.yaml")


def test_a_folder_has_a_folder_for_each_case() -> None:
    files = {
        "suites/cases/first/case.yaml": "input: x\ncriteria: y\n",
        "suites/cases/second/case.yml": "id: named\ninput: x\ncriteria: y\n",
        "suites/cases/second/other.md": "",
    }
    assert ids("tests: ./cases/\n", **files) == ["first", "named"]


def test_problems_in_another_file_are_reported_with_its_name() -> None:
    found = problem("tests: c.yaml\n", {"suites/c.yaml": b"- {id: a, inptu: x, input: x, criteria: y}\n"})
    assert found.place == SuitePlace("suites/c.yaml", 1, 11)


@pytest.mark.parametrize(
    ("tests", "files", "words"),
    [
        ("tests: none.yaml", {}, 'there is no file "suites/none.yaml"'),
        ("tests: /c.yaml", {}, "absolute"),
        ("tests: ../../c.yaml", {}, "leads out of the folder"),
        ("tests: ../../*.yaml", {}, "leads out of the folder"),
        ("tests: 'c/*.yaml'", {}, "no file matches"),
        ("tests: 'c/[.yaml'", {}, "is not closed"),
        ("tests: c.csv", {"suites/c.csv": b"x"}, "is no file of tests"),
        ("tests: c.jsonl", {"suites/c.jsonl": b"\n"}, "there are no tests in the file"),
        ("tests: c.jsonl", {"suites/c.jsonl": b"{\n"}, "not JSON"),
        ("tests: c.yaml", {"suites/c.yaml": b"a: [\n"}, "expected"),
        ("tests: c.yaml", {"suites/c.yaml": b"a: 1\n"}, "a file of tests must be a list"),
        ("tests: c.yaml", {"suites/c.yaml": b"tests: []\nname: x\n"}, 'has no key "name"'),
        ("tests: []", {}, "the list of tests is empty"),
        ("tests: 3", {}, "tests must be a list"),
        ("name: x", {}, "the suite has no tests"),
    ],
)
def test_tests_that_cannot_be_had_are_errors(tests: str, files: dict[str, bytes], words: str) -> None:
    reading = read(tests + "\n", files)
    assert reading.suite is None
    assert any(words in each for each in messages_of(reading)), messages_of(reading)
