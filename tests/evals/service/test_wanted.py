from sightline.errors import Code, Fault
from sightline.evals.service.target import CaseQuestion, no_answer


def test_why_there_is_no_answer_is_told_with_what_to_do() -> None:
    wanted = CaseQuestion(case="a", messages=(), question="France?")
    seen = no_answer(wanted, Fault(Code.AUTH, "no key", hint="Set it.")).observation
    assert (seen.error, seen.error_code, seen.question, seen.requests) == ("no key (Set it.)", "auth", "France?", 0)
    assert no_answer(wanted, Fault(Code.AUTH, "no key")).observation.error == "no key"
