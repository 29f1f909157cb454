"""The rules of the send-and-response workflow, sections 7 and 8, by their numbers: what the chat's core can show."""

import msgspec
import pytest

from sightline.agent.core.limits import quota_of, waiting_by
from sightline.catalog.facts import Facts
from sightline.chat.core.pair import TRIMMED_FOR, trouble_of
from sightline.chat.core.plan import SendPlan
from sightline.chat.core.sending import AttemptRefused, Delivered, Pause, Resumed, SendEnding, counter_of, trim_summary
from sightline.chat.core.sizing import ChatSettings, Sizer
from sightline.dialects.faults import provider_fault
from sightline.errors import Code, Fault, Numbers
from sightline.model.usage import Usage
from sightline.tokens.ledger import Ledger
from sightline.tokens.window_budget import model_limit
from tests.chat.core.stage import (
    BY_LETTER,
    NOW,
    SMALL,
    answered,
    attempts,
    driven,
    filtered,
    history_of,
    planned,
    view_of,
)

OVERFLOW = Fault(Code.CONTEXT_OVERFLOW, "maximum context length is 60")


def four(prompt: str = "hello") -> SendPlan:
    """Five pairs of 20 tokens, of which four go along: b to e."""
    return planned(view_of(history_of(*map(answered, "abcde"))), prompt)


def overflowing(times: int, plan: SendPlan | None = None) -> SendEnding:
    return driven(plan or four(), [*[AttemptRefused(OVERFLOW)] * times, Delivered()])[1]


# --- 7.1 Definitions and invariants ---------------------------------------------------------------


def test_7_1_the_model_limit_is_the_smaller_of_window_and_tokens_per_minute() -> None:
    assert model_limit(Facts(context_window=128_000, tpm=30_000)) == 30_000
    assert model_limit(Facts(context_window=8_000, tpm=30_000)) == 8_000


def test_7_1_the_first_attempt_is_the_prediction_with_the_prompt() -> None:
    first = overflowing(0).telemetry[0]
    assert first.attempt_history_tokens == first.predicted_history_tokens
    assert first.attempt_total_tokens == first.predicted_history_tokens + first.aut
    assert first.attempt_total_tokens == first.predicted_total_tokens + first.aut - first.user_request_allowance


def test_7_1_what_is_predicted_is_frozen() -> None:
    told = overflowing(3).telemetry
    assert len({(t.predicted_message_count, t.predicted_history_tokens, t.predicted_total_tokens) for t in told}) == 1


def test_7_1_attempts_never_grow_and_the_trimmed_never_shrink() -> None:
    told = overflowing(3).telemetry
    totals, trimmed = [each.attempt_total_tokens for each in told], [each.trimmed_count for each in told]
    assert totals == sorted(totals, reverse=True)
    assert trimmed == sorted(trimmed)


def test_7_1_the_allowance_is_never_refunded() -> None:
    assert len(four("x").items) == len(four("x" * 10).items) == 4
    _, ending = driven(four("x"), [Delivered()])
    assert ending.sent == tuple("bcde"), "a short prompt brings nothing back in"


def test_7_1_sent_is_predicted_less_trimmed() -> None:
    ending = overflowing(2)
    assert all(told.sent_count == told.predicted_message_count - told.trimmed_count for told in ending.telemetry)
    assert len(ending.sent) == 2


# --- 7.2 Mechanics --------------------------------------------------------------------------------


def test_7_2_1_prediction_stops_before_the_pair_that_would_be_too_much() -> None:
    view = view_of(history_of(answered("a", 4), answered("b", 60), answered("c", 40)), limit=100)
    assert [pair.id for pair in view.included] == ["c"], "also if an older, smaller one would fit"


def test_7_2_2_a_prompt_over_the_limit_is_refused_without_an_attempt() -> None:
    steps, ending = driven(four("x" * 101), [])
    assert (steps, ending.attempts) == ([], 0)
    assert ending.trouble is not None
    assert ending.trouble.code == "user_prompt_too_large"


def test_7_2_4_one_oldest_pair_less_with_each_overflow() -> None:
    steps, _ = driven(four(), [*[AttemptRefused(OVERFLOW)] * 3, Delivered()])
    assert attempts(steps) == ["bcde", "cde", "de", "e"]


def test_7_2_4_when_the_attempts_are_used_up_it_is_an_error() -> None:
    view = view_of(
        history_of(*map(answered, "abcde")), settings=msgspec.structs.replace(BY_LETTER, max_trim_attempts=2)
    )
    steps, ending = driven(planned(view), [AttemptRefused(OVERFLOW)] * 9)
    assert len(steps) == 3
    assert ending.trouble is not None
    assert ending.trouble.code == "context_overflow_after_trimming"


def test_7_2_5_each_attempt_is_told_with_its_stage() -> None:
    assert [told.stage for told in overflowing(2).telemetry] == [
        "attempt", "overflow_initial", "overflow_retry", "overflow_retry", "success",
    ]  # fmt: skip
    exhausted = driven(four(), [AttemptRefused(OVERFLOW)] * 9)[1]
    assert exhausted.telemetry[-1].stage == "overflow_exhausted"


def test_7_2_where_the_provider_states_figures_the_next_attempt_fits() -> None:
    stated = Fault(Code.CONTEXT_OVERFLOW, "too long", numbers=Numbers(limit=50, requested=85, excess=35))
    assert attempts(driven(four(), [AttemptRefused(stated), Delivered()])[0]) == ["bcde", "de"]


# --- 7.3 Counter ----------------------------------------------------------------------------------


def test_7_3_the_counter_is_x_of_y_and_in_brackets_after_trimming() -> None:
    view = view_of(history_of(*map(answered, "abcde")))
    assert counter_of(view).text == "4 / 5"
    assert counter_of(view, overflowing(1, planned(view))).text == "[4-1]/5"


def test_7_3_the_breakdown_has_every_term() -> None:
    view = view_of(history_of(*map(answered, "abcde")))
    rows = dict(counter_of(view, overflowing(1, planned(view)), prompt=5).breakdown)
    assert rows.keys() >= {"Predicted", "Trimmed", "Sent", "Visible", "URA", "AUT", "ML"}


def test_7_3_a_person_is_told_what_was_left_out() -> None:
    assert trim_summary(overflowing(1)).startswith("1 of 4 pairs was left out: 1 because the provider")


# --- 7.4 Parameters -------------------------------------------------------------------------------


def test_7_4_the_defaults() -> None:
    settings = msgspec.convert({}, ChatSettings)
    assert (settings.chars_per_token, settings.user_request_allowance, settings.max_trim_attempts) == (3.5, 100, 10)


def test_7_4_tokens_by_characters_are_letters_divided_and_rounded_up() -> None:
    sizer = Sizer(Facts(), dialect="openai-chat", settings=ChatSettings(estimation="characters"))
    assert sizer.pair(answered("a", 16)).tokens == 3 + 3


# --- 7.5 Overflow classification ------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "context_length was exceeded",
        "This model's MAXIMUM CONTEXT LENGTH is 8192 tokens",
        "too many tokens",
        "context too long",
        "your input exceeds context window",
        "Request too large for gpt-4o",
        "it is too large for this model",
    ],
)
def test_7_5_the_phrases_of_an_overflow_trim(words: str) -> None:
    assert provider_fault(400, words).code in TRIMMED_FOR


def test_7_5_the_providers_own_code_goes_before_its_words() -> None:
    assert provider_fault(400, "no", words=("context_length_exceeded",)).code in TRIMMED_FOR


def test_7_5_a_rate_limit_does_not_trim_whatever_it_says() -> None:
    for words in (
        "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000, Requested 900",
        "too many tokens",
    ):
        fault = provider_fault(429, words)
        assert fault.code is Code.RATE_LIMITED
        assert attempts(driven(four(), [AttemptRefused(fault)])[0]) == ["bcde"]


def test_7_5_a_request_that_is_itself_too_large_for_the_rate_trims() -> None:
    fault = provider_fault(429, "Request too large for gpt-4o on tokens per min (TPM): Limit 60, Requested 85")
    assert attempts(driven(four(), [AttemptRefused(fault), Delivered()])[0]) == ["bcde", "de"]


# --- 7.6 Edge conditions --------------------------------------------------------------------------


def test_7_6_all_predicted_trimmed_and_still_too_large_gives_guidance() -> None:
    steps, ending = driven(four(), [AttemptRefused(OVERFLOW)] * 9)
    assert attempts(steps)[-1] == ""
    assert ending.trouble is not None
    assert ending.trouble.code == "context_overflow_after_trimming"
    assert "larger window" in ending.trouble.hint


def test_7_6_a_filter_changed_during_retries_stops_them_with_a_notice() -> None:
    view = view_of(history_of(*map(answered, "abcde")))
    plan = planned(view)
    filtered(view, "s3")
    steps, ending = driven(plan, [AttemptRefused(OVERFLOW, view.filter_version)])
    assert attempts(steps) == ["bcde"]
    assert ending.trouble is not None
    assert (ending.trouble.code, ending.telemetry[-1].stage) == ("filter_changed", "filter_changed")


def test_7_6_a_setting_changed_in_flight_is_for_the_next_send() -> None:
    view = view_of(history_of(*map(answered, "abcde")))
    plan = planned(view)
    settings = msgspec.structs.replace(BY_LETTER, max_trim_attempts=0, user_request_allowance=50)
    view.adjust(settings, Sizer(SMALL, dialect="openai-chat", settings=settings))
    assert attempts(driven(plan, [AttemptRefused(OVERFLOW), Delivered()])[0]) == ["bcde", "cde"]
    assert len(planned(view).items) == 2


# --- 7.7 Telemetry --------------------------------------------------------------------------------


def test_7_7_every_field_of_the_schema_is_there_by_its_name() -> None:
    fields = {
        "model", "budget", "selection", "predictedMessageCount", "predictedHistoryTokens", "predictedTotalTokens",
        "attemptHistoryTokens", "attemptTotalTokens", "AUT", "trimmedCount", "attemptsUsed", "charsPerToken",
        "remainingReserve", "stage", "lastErrorMessage", "overflowMatched", "messages",
    }  # fmt: skip
    told = msgspec.to_builtins(driven(four(), [AttemptRefused(OVERFLOW), Delivered()])[1].telemetry[1])
    assert told.keys() >= fields
    assert told["budget"].keys() == {"maxContext", "maxUsableRaw"}
    assert told["selection"][0].keys() == {"id", "model", "tokens"}


def test_7_7_what_the_provider_reports_stands_beside_the_prediction() -> None:
    last = driven(four(), [Delivered(Usage(input_tokens=77))])[1].telemetry[-1]
    assert (last.final_delivered_tokens, last.reported_input_tokens) == (85, 77)
    assert last.bands.keys() == {"predictedHistory", "attemptHistory", "AUT"}


# --- 7.8 What was pending -------------------------------------------------------------------------


def test_7_8_quotas_are_modelled_from_the_ledger() -> None:
    ledger, facts, clock = Ledger(), Facts(rpm=1), iter([NOW, NOW + 61])
    ledger.add_request("acme", "large", 10, NOW)
    quota = quota_of(ledger, "acme", "large", 85, NOW, facts)
    assert quota.can_go_at == NOW + 61
    waiting = waiting_by(ledger, "acme", "large", lambda: next(clock), facts)
    steps, ending = driven(four(), [Resumed(), Delivered()], quota=waiting)
    assert isinstance(steps[0], Pause)
    assert ending.kind == "delivered"


# --- 8. Error codes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "label"),
    [
        (provider_fault(401, "Incorrect API key"), "auth"),
        (provider_fault(403, "may not"), "auth"),
        (provider_fault(429, "rate limit"), "quota"),
        (provider_fault(400, "maximum context length is 5"), "quota"),
        (Fault(Code.NETWORK, "gone"), "net"),
        (provider_fault(404, "The model `x` does not exist"), "model"),
        (provider_fault(418, "generated strangely"), "unknown"),
    ],
)
def test_8_short_codes(fault: Fault, label: str) -> None:
    assert trouble_of(fault).label == label
