import pytest

from sightline.evals.core.graders.expectation import ABSENT, plain_text, reference_data, reference_text
from sightline.evals.core.graders.finding import Grading
from sightline.evals.core.graders.steps import FileContent, NeedFile, StepFailed
from sightline.evals.core.suite import CallSegment, CaseMessage, FileSegment, ImageSegment, TextSegment
from tests.grading_stage import driven


def says(text: str, role: str = "assistant") -> CaseMessage:
    return CaseMessage(role=role, segments=(TextSegment(text),))


@pytest.mark.parametrize(
    ("grading", "data"),
    [
        (Grading(expected_value={"a": 1}, expected=(says("{}"),)), {"a": 1}),
        (Grading(expected_value='{"a": 1}'), {"a": 1}),
        (Grading(expected=(says('{"a": 1}'), says("words"), says("{}", "user"))), {"a": 1}),
        (Grading(expected=(says("words"),)), ABSENT),
        (Grading(), ABSENT),
    ],
)
def test_the_value_that_is_expected(grading: Grading, data: object) -> None:
    assert reference_data(grading) == data


@pytest.mark.parametrize(
    ("grading", "text"),
    [
        (Grading(), ""),
        (Grading(expected_value="four"), "four"),
        (Grading(expected_value={"a": 1}), '{\n  "a": 1\n}'),
        (Grading(expected=(says(" four "),)), "four"),
        (Grading(expected=(says("two?", "user"), says("four"))), "user:\ntwo?\n\nassistant:\nfour"),
    ],
)
def test_the_reference_answer(grading: Grading, text: str) -> None:
    assert driven(reference_text(grading), []) == (text, [])


def test_a_reference_answer_may_hold_files_pictures_and_calls() -> None:
    segments = (
        FileSegment("a.md", resolved="docs/a.md"),
        ImageSegment("b.png"),
        CallSegment("search", {"q": 1}),
        TextSegment("done"),
    )
    grading = Grading(expected=(CaseMessage(role="assistant", segments=segments),))
    text, steps = driven(reference_text(grading), [FileContent(b"inside")])
    assert steps == [NeedFile("docs/a.md")]
    assert text == 'a.md:\ninside\n[image b.png]\n[calls search with {\n  "q": 1\n}]\ndone'
    failed, _ = driven(reference_text(grading), [FileContent(None)])
    assert isinstance(failed, StepFailed)


def test_the_words_of_a_message_are_its_texts() -> None:
    assert (
        plain_text(CaseMessage(role="user", segments=(TextSegment("a"), FileSegment("b"), TextSegment("c")))) == "a\nc"
    )
