import pytest

from sightline.evals.core.graders.grade import check_graders
from tests.evals.core.reading.stage import read

SUITE = """tests:
  - id: a
    input: x
    assertions:
      - {type: word-count, least: 3, weight: 2, negate: true}
      - {type: word_count, name: short}
      - {type: contains, value: x}
  - id: b
    turns: [{input: x, assertions: [{type: word-count}]}]
"""


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("suites/.agentv/assertions/word-count.ts", ".agentv/assertions/word-count.ts"),
        (".agentv/assertions/word-count.js", "../.agentv/assertions/word-count.js"),
        (".agentv/graders/word-count.mts", "../.agentv/graders/word-count.mts"),
        (".agentv/judges/word-count.mjs", "../.agentv/judges/word-count.mjs"),
    ],
)
def test_a_script_of_the_repository_grades_under_its_name(path: str, seen: str) -> None:
    reading = read(SUITE, {path: b""})
    assert reading.suite is not None
    first, second = reading.suite.cases
    counted, short, other = first.graders
    assert (counted.type, counted.name, counted.weight, counted.negate) == ("code-grader", "word-count", 2, True)
    assert counted.config == {"command": ["bun", "run", seen], "config": {"least": 3}}
    assert (short.type, short.name, other.type) == ("code-grader", "short", "contains")
    assert [spec.type for spec in second.turns[0].graders] == ["code-grader"]
    assert check_graders(first.graders) == ()


@pytest.mark.parametrize("kind", ["word-count", "../up", "a/b", "code-judge"])
def test_a_type_without_a_script_stays_what_nobody_knows(kind: str) -> None:
    files = {"up.ts": b"", "suites/.agentv/assertions/a/b.ts": b"", ".agentv/assertions/code-judge.ts": b""}
    reading = read(f"tests: [{{id: a, input: x, assertions: [{{type: {kind}}}]}}]\n", files, file="top.yaml")
    assert reading.suite is not None
    (problem,) = check_graders(reading.suite.cases[0].graders)
    assert "there is no grader" in problem.message
