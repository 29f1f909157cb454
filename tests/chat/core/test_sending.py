import math

import msgspec
import pytest

from sightline.chat.core.facts import PairsDeleted, PairsHandled
from sightline.chat.core.sending import (
    Attempt,
    AttemptRefused,
    Cancelled,
    Delivered,
    Pause,
    Resumed,
    counter_of,
    trim_summary,
)
from sightline.errors import Code, Fault, Numbers
from sightline.model.reply import Usage
from sightline.settings import ChatSettings
from sightline.tokens.ledger import READY, Wait
from tests.chat.core.stage import BY_LETTER, answered, attempts, driven, history_of, planned, view_of

OVERFLOW = AttemptRefused(Fault(Code.CONTEXT_OVERFLOW, "maximum context length is 60"))
VIEW = view_of(history_of(*map(answered, "abcd")))
DONE = Delivered(Usage(input_tokens=90))


def stages(ending) -> list[str]:
    return [told.stage for told in ending.telemetry]


def settings(**more) -> ChatSettings:
    return msgspec.structs.replace(BY_LETTER, **more)


def refused(**numbers: int) -> AttemptRefused:
    return AttemptRefused(Fault(Code.CONTEXT_OVERFLOW, "too long", numbers=Numbers(**numbers)))


def test_what_fits_is_sent_once() -> None:
    steps, ending = driven(planned(VIEW), [DONE])
    assert attempts(steps) == ["abcd"]
    assert (ending.kind, ending.sent, ending.trimmed, ending.attempts) == ("delivered", tuple("abcd"), (), 1)
    assert stages(ending) == ["attempt", "success"]
    assert ending.trouble is None
    step = steps[0]
    assert isinstance(step, Attempt)
    assert (step.number, step.tokens, [told.stage for told in step.telemetry]) == (1, 85, ["attempt"])


def test_a_prompt_that_cannot_fit_is_never_sent() -> None:
    steps, ending = driven(planned(VIEW, "x" * 101), [])
    assert steps == []
    assert (ending.kind, stages(ending)) == ("failed", ["user_prompt_too_large"])
    assert ending.trouble.code == "user_prompt_too_large"


def test_a_prompt_larger_than_its_allowance_leaves_pairs_out_beforehand() -> None:
    steps, ending = driven(planned(VIEW, "x" * 45), [DONE])
    assert attempts(steps) == ["cd"]
    assert (ending.trimmed, ending.preflight) == (("a", "b"), 2)
    assert stages(ending) == ["preflight", "attempt", "success"]


def test_without_preflight_trimming_happens_only_after_an_overflow() -> None:
    view = view_of(history_of(*map(answered, "abcd")), settings=settings(preflight_trimming=False))
    steps, _ = driven(planned(view, "x" * 45), [OVERFLOW, OVERFLOW, DONE])
    assert attempts(steps) == ["abcd", "bcd", "cd"]


def test_one_pair_less_with_each_overflow() -> None:
    steps, ending = driven(planned(VIEW), [OVERFLOW, OVERFLOW, DONE])
    assert attempts(steps) == ["abcd", "bcd", "cd"]
    assert stages(ending) == ["attempt", "overflow_initial", "overflow_retry", "overflow_retry", "success"]
    assert [told.attempts_used for told in ending.telemetry] == [0, 0, 1, 2, 2]
    handed_out = tuple(told for step in steps for told in step.telemetry)
    assert handed_out == ending.telemetry[:-1], "each is told as it happens, and once"


def test_stated_figures_lead_straight_to_what_fits() -> None:
    steps, _ = driven(planned(VIEW), [refused(limit=50, requested=85, excess=35), DONE])
    assert attempts(steps) == ["abcd", "cd"]
    steps, _ = driven(planned(VIEW), [refused(excess=41), DONE])
    assert attempts(steps) == ["abcd", "d"]


def test_figures_in_the_providers_own_tokens_are_turned_into_ours() -> None:
    steps, _ = driven(planned(VIEW), [refused(limit=130, requested=170, excess=40), DONE])
    assert attempts(steps) == ["abcd", "bcd"]


def test_a_limit_alone_is_trimmed_to_and_at_least_by_one() -> None:
    steps, _ = driven(planned(VIEW), [refused(limit=50), DONE])
    assert attempts(steps) == ["abcd", "cd"]
    steps, _ = driven(planned(VIEW), [refused(limit=500), DONE])
    assert attempts(steps) == ["abcd", "bcd"]


def test_where_the_figures_say_that_nothing_helps_nothing_more_is_sent() -> None:
    steps, ending = driven(planned(VIEW), [refused(limit=2, requested=85, excess=83)])
    assert attempts(steps) == ["abcd"]
    assert stages(ending)[-1] == "overflow_exhausted"
    assert ending.trouble.code == "context_overflow_after_trimming"


def test_pairs_that_are_far_larger_than_they_were_thought_to_be_are_all_left_out() -> None:
    steps, ending = driven(planned(VIEW), [refused(limit=50, requested=9_000, excess=8_950), DONE])
    assert (attempts(steps), ending.kind) == (["abcd", ""], "delivered")
    steps, ending = driven(planned(VIEW), [refused(excess=8_950), refused(excess=10)])
    assert (attempts(steps), ending.kind) == (["abcd", ""], "failed")


def test_when_all_pairs_are_gone_it_ends() -> None:
    steps, ending = driven(planned(VIEW), [OVERFLOW] * 5)
    assert attempts(steps) == ["abcd", "bcd", "cd", "d", ""]
    assert (ending.kind, stages(ending)[-1]) == ("failed", "overflow_exhausted")


@pytest.mark.parametrize("most", [0, 1, 2])
def test_it_is_made_smaller_as_often_as_is_allowed(most: int) -> None:
    view = view_of(history_of(*map(answered, "abcd")), settings=settings(max_trim_attempts=most))
    steps, ending = driven(planned(view), [OVERFLOW] * 5)
    assert len(attempts(steps)) == most + 1
    assert len(ending.trimmed) == most


@pytest.mark.parametrize(
    "code", [Code.RATE_LIMITED, Code.QUOTA, Code.NETWORK, Code.AUTH, Code.OVERLOADED, Code.REQUEST_TOO_LARGE]
)
def test_no_other_failure_makes_the_history_smaller(code: Code) -> None:
    steps, ending = driven(planned(VIEW), [AttemptRefused(Fault(code, "no"))])
    assert attempts(steps) == ["abcd"]
    assert (ending.kind, ending.trimmed, stages(ending)) == ("failed", (), ["attempt", "error"])
    assert ending.telemetry[-1].overflow_matched is False


def test_too_large_for_the_rate_is_made_smaller() -> None:
    too_large = AttemptRefused(Fault(Code.REQUEST_TOO_LARGE_FOR_RATE, "Limit 60, Requested 85"))
    assert attempts(driven(planned(VIEW), [too_large, DONE])[0]) == ["abcd", "bcd"]


def test_another_filter_stops_the_trimming_with_a_notice() -> None:
    plan = planned(VIEW)
    unchanged = AttemptRefused(OVERFLOW.fault, plan.filter_version)
    changed = AttemptRefused(OVERFLOW.fault, plan.filter_version + 1)
    steps, ending = driven(plan, [unchanged, changed])
    assert attempts(steps) == ["abcd", "bcd"]
    assert stages(ending)[-1] == "filter_changed"
    assert ending.trouble.code == "filter_changed"


def test_a_person_can_break_it_off() -> None:
    _, ending = driven(planned(VIEW), [Cancelled()])
    assert (ending.kind, stages(ending)[-1], ending.fault) == ("cancelled", "cancelled", None)


def test_exhausted_limit_is_reported_before_anything_is_sent() -> None:
    waits = iter([Wait(30, "used_up", "rpm", 5), READY])
    steps, ending = driven(planned(VIEW), [Resumed(), DONE], quota=lambda _tokens: next(waits))
    assert isinstance(steps[0], Pause)
    assert (steps[0].wait.seconds, steps[0].telemetry[-1].wait_seconds) == (30, 30)
    assert attempts(steps) == ["abcd"]
    assert stages(ending) == ["waiting", "attempt", "success"]


def test_unfinished_wait_is_reported_again_and_can_be_skipped() -> None:
    steps, _ = driven(
        planned(VIEW), [Resumed(), Resumed(anyway=True), DONE], quota=lambda _tokens: Wait(math.inf, "too_large", "tpm")
    )
    assert [type(step) for step in steps] == [Pause, Pause, Attempt]
    assert steps[0].telemetry[-1].wait_seconds is None


def test_cancelling_the_wait_sends_nothing() -> None:
    steps, ending = driven(planned(VIEW, "x" * 45), [Cancelled()], quota=lambda _tokens: Wait(30))
    assert attempts(steps) == []
    assert (ending.kind, ending.attempts, ending.predicted) == ("cancelled", 0, 4)
    assert (ending.sent, ending.trimmed, ending.preflight) == ((), (), 0)


def test_quota_is_checked_with_the_tokens_of_each_attempt() -> None:
    asked: list[int] = []
    driven(planned(VIEW), [OVERFLOW, DONE], quota=lambda tokens: (asked.append(tokens), READY)[1])
    assert asked == [85, 65]


COUNTER_OVERFLOW = AttemptRefused(Fault(Code.CONTEXT_OVERFLOW, "too long"))


def test_counter_shows_included_of_visible_pairs() -> None:
    view = view_of(history_of(*map(answered, "abcde")))
    assert counter_of(view).text == "4 / 5"
    view.on_change(view.history.apply(PairsHandled(("e",), "out")))
    rows = dict(counter_of(view, prompt=12).breakdown)
    assert counter_of(view).text == "4 / 4"
    assert (rows["Left out by hand"], rows["AUT"], rows["ML"], rows["URA"]) == (1, 12, 100, 10)


def test_after_a_send_that_left_pairs_out_it_is_in_brackets() -> None:
    view = view_of(history_of(*map(answered, "abcde")))
    _, trimmed = driven(planned(view), [COUNTER_OVERFLOW, Delivered()])
    assert counter_of(view, trimmed).text == "[4-1]/5"
    assert dict(counter_of(view, trimmed).breakdown)["Sent"] == 3
    _, whole = driven(planned(view), [Delivered()])
    assert counter_of(view, whole).text == "4 / 5"


def test_the_counter_never_has_more_chosen_than_visible_after_deletions() -> None:
    view = view_of(history_of(*map(answered, "abcdefghi")), limit=200)
    _, trimmed = driven(planned(view), [COUNTER_OVERFLOW, COUNTER_OVERFLOW, COUNTER_OVERFLOW, Delivered()])
    assert counter_of(view, trimmed).text == "[9-3]/9"
    view.on_change(view.history.apply(PairsDeleted(tuple("fghi"))))
    assert counter_of(view, trimmed).text == "5 / 5"
    assert dict(counter_of(view, trimmed).breakdown)["Trimmed"] == 0


def test_what_is_left_out_by_hand_or_shown_anew_is_another_choice() -> None:
    view = view_of(history_of(*map(answered, "abcde")))
    _, trimmed = driven(planned(view), [COUNTER_OVERFLOW, Delivered()])
    view.on_change(view.history.apply(PairsHandled(("e",), "out")))
    assert counter_of(view, trimmed).text == "4 / 4"


def test_trimmed_pairs_are_summarized_in_words() -> None:
    view = view_of(history_of(*map(answered, "abcde")))
    assert trim_summary(driven(planned(view), [Delivered()])[1]) == ""
    early = trim_summary(driven(planned(view, "x" * 30), [Delivered()])[1])
    assert early.startswith("1 of 4 pairs was left out: 1 before sending, because the prompt")
    late = trim_summary(driven(planned(view), [COUNTER_OVERFLOW, COUNTER_OVERFLOW, Delivered()])[1])
    assert late.startswith("2 of 4 pairs were left out: 2 because the provider")
    both = trim_summary(driven(planned(view, "x" * 30), [COUNTER_OVERFLOW, Delivered()])[1])
    assert "1 before sending" in both
    assert "1 because the provider" in both
