"""Whether calls and results of a case fit together, before anything is sent."""

from collections.abc import Iterable

from sightline.catalog.problem import quote_word
from sightline.evals.core.place import SuitePlace, SuiteProblem
from sightline.evals.core.suite import CallSegment, Case, CaseMessage


def check_pairing(case: Case) -> tuple[SuiteProblem, ...]:
    """Calls that nobody answers are errors, for no provider takes them; so are results that name a call that is not
    there. A result without any call before it is told: a call is put in front of it."""
    problems: list[SuiteProblem] = []
    waiting: list[CallSegment] = []
    messages: Iterable[CaseMessage] = (*case.messages, *(each for turn in case.turns for each in turn.messages))
    for message in messages:
        if message.role == "tool":
            problems += _check_result(message, waiting)
            continue
        if message.role in ("user", "assistant") and waiting:
            problems += [_problem_of_call(call) for call in waiting]
            waiting = []
        waiting += [segment for segment in message.segments if isinstance(segment, CallSegment)]
    return (*problems, *(_problem_of_call(call) for call in waiting))


def find_call(message: CaseMessage, waiting: Iterable[CallSegment]) -> CallSegment | None:
    """The call that a tool message answers: by id, else by name, else the oldest."""
    calls = list(waiting)
    if message.call_id:
        return next((call for call in calls if call.id == message.call_id), None)
    named = [call for call in calls if message.name and call.name == message.name]
    return next(iter(named or calls), None)


def _check_result(message: CaseMessage, waiting: list[CallSegment]) -> list[SuiteProblem]:
    call = find_call(message, waiting)
    if call is not None:
        waiting[:] = [each for each in waiting if each is not call]
        return []
    if message.call_id:
        known = ", ".join(each.id for each in waiting if each.id)
        hint = f"Calls that wait: {known}." if known else "Write the call into tool_calls of the message before."
        return [_problem(message.place, f"no call before it has the id {quote_word(message.call_id)}", hint)]
    text = "no call stands before this result: one without arguments is put there"
    hint = "Write tool_calls: [{name: …, arguments: {…}}] into the assistant message before."
    return [_problem(message.place, text, hint, is_error=False)]


def _problem_of_call(call: CallSegment) -> SuiteProblem:
    hint = "Add a message with role: tool behind it."
    return _problem(call.place, f"the call of {quote_word(call.name)} has no result", hint)


def _problem(place: SuitePlace, message: str, suggestion: str, *, is_error: bool = True) -> SuiteProblem:
    return SuiteProblem(
        place=place,
        path="",
        message=message,
        suggestion=suggestion,
        severity="error" if is_error else "warning",
    )
