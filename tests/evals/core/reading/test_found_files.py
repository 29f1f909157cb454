from sightline.evals.core.reading.files import files_of
from sightline.evals.core.suite import FileSegment
from tests.evals.core.reading.stage import case, one, read

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
