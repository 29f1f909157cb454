import json

from sightline.evals.core.suite import FileSegment, TextSegment
from tests.evals.core.reading.stage import messages_of, read

EVALS = {
    "skill_name": "csv",
    "evals": [
        {
            "id": 1,
            "prompt": "Sum it.",
            "expected_output": "42",
            "files": ["data.csv"],
            "assertions": ["It says 42.", "It is short."],
        },
        {"id": "two", "prompt": "Hello", "expected_output": "Hi", "files": [], "assertions": []},
    ],
}


def test_evals_of_a_skill_are_a_suite() -> None:
    reading = read(json.dumps(EVALS), {"suites/data.csv": b"x"}, file="suites/evals.json")
    assert reading.suite is not None, messages_of(reading)
    first, second = reading.suite.cases
    assert (first.id, second.id) == ("1", "two")
    file, text = first.messages[0].segments
    assert isinstance(file, FileSegment)
    assert isinstance(text, TextSegment)
    assert (file.resolved, text.text) == ("suites/data.csv", "Sum it.")
    assert [spec.type for spec in first.graders] == ["rubrics"]
    assert first.metadata == {"skill_name": "csv"}
    assert [spec.type for spec in second.graders] == ["llm-grader"]  # it only says what is expected


def test_what_is_wrong_with_them_is_told_at_its_place() -> None:
    wrong = {"evals": [{"id": True, "prompt": "x", "assertions": ["y"]}, {"id": 2, "prompt": "x", "hint": "z"}, 3]}
    text = json.dumps({**wrong, "other": 1}, indent=1)
    told = messages_of(read(text, file="evals.json"))
    assert 'evals of a skill has no key "other"' in told
    assert 'an eval of a skill has no key "hint"' in told
    assert "id must be text, not true" in told
    assert "nothing says how the test is graded" in told
    assert len([each for each in told if "mapping" in each or "lacks" in each]) >= 1
