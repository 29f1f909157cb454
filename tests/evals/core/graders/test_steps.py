from sightline.errors import Code
from sightline.evals.core.graders.steps import FileContent, Judge, unfit


def test_a_driver_that_answers_something_else_is_told_what() -> None:
    fault = unfit(Judge(messages=(), schema={}), FileContent(b""))
    assert (fault.code, fault.message) == (Code.USAGE, "Judge was answered by FileContent")
