import pytest

from sightline.errors import Code, Fault
from sightline.evals.core.graders.steps import Executed, FileContent, NeedFile, StepFailed, ask, file_text
from tests.grading_stage import BROKEN, driven


def test_what_came_of_a_step_is_its_answer_or_why_there_is_none() -> None:
    assert driven(ask(NeedFile("a"), FileContent), [FileContent(b"x")]) == (FileContent(b"x"), [NeedFile("a")])
    assert driven(ask(NeedFile("a"), FileContent), [BROKEN])[0] is BROKEN
    with pytest.raises(Fault) as raised:
        driven(ask(NeedFile("a"), FileContent), [Executed(code=0)])
    assert raised.value.code is Code.USAGE


def test_a_files_text_has_plain_line_ends_and_no_mark() -> None:
    assert driven(file_text("a.md"), [FileContent(b"\xef\xbb\xbfone\r\ntwo")])[0] == "one\ntwo"


@pytest.mark.parametrize(("data", "words"), [(None, "there is no file a.md"), (b"\xff", "a.md is no text in UTF-8")])
def test_a_file_that_cannot_be_read_is_told_by_name(data: bytes | None, words: str) -> None:
    failed, _ = driven(file_text("a.md"), [FileContent(data)])
    assert isinstance(failed, StepFailed)
    assert failed.fault.message == words
    assert driven(file_text("a.md"), [BROKEN])[0] is BROKEN
