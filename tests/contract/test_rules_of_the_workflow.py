"""The rules of the send-and-response workflow, by their numbers, that the tests of the chat's core do not show."""

import msgspec
import pytest

from sightline.chat.core.facts import (
    ChatImported,
    PairAnswered,
    PairAsked,
    PairEdited,
    PairFailed,
    PairsDeleted,
    PairsFlagged,
    PairsHandled,
    PairsMoved,
    PairsStarred,
    TopicChanged,
)
from sightline.chat.core.pair import TRIMMED_FOR, MessagePair, Trouble, text_answer
from sightline.chat.core.plan import MessageSummary, SendPlan, summarize
from sightline.chat.core.rewriting import compaction_fact
from sightline.chat.core.sending import AttemptRefused, Delivered, SendEnding, counter_of
from sightline.chat.core.sizing import Sizer
from sightline.chat.core.topics import Topic
from sightline.chat.core.view import View
from sightline.dialects.faults import provider_fault
from sightline.errors import Code, Fault
from sightline.model.parts import Text
from sightline.model.reply import Usage
from sightline.model.request import Message
from tests.chat.core.stage import (
    BY_LETTER,
    NOW,
    SMALL,
    answered,
    driven,
    filtered,
    history_of,
    ids,
    planned,
    view_of,
)

OVERFLOW = Fault(Code.CONTEXT_OVERFLOW, "maximum context length is 60")


def five() -> View:
    """Five pairs of 20 tokens before a model of 100, of which 10 are held back: a to e, of which b to e go along."""
    return view_of(history_of(*map(answered, "abcde"), topics=[Topic(id="t", name="T")]))


def heard(view: View, fact) -> View:
    view.on_change(view.history.apply(fact))
    return view


def sent(plan: SendPlan) -> tuple[MessageSummary, ...]:
    return summarize(plan.messages(0))


def names(plan: SendPlan) -> str:
    return "".join(item.id for item in plan.items)


# --- 1. Core principle ----------------------------------------------------------------------------


def test_1_what_is_sent_is_what_is_visible_in_its_order_and_the_new_request() -> None:
    view = filtered(heard(five(), PairsStarred(("b", "d"), 2)), "s>=2")
    contents = [each.content for each in sent(planned(view, "new"))]
    b, d = view.history.get("b"), view.history.get("d")
    assert contents == [b.user_text, b.assistant_text, d.user_text, d.assistant_text, "new"]


@pytest.mark.parametrize("text", ["t", "m'acme'", "s>=1", "b", "e", "c'a?'", "!s0 & b", "d<1d", "r2", "i"])
def test_1_no_filter_lets_anything_through_that_is_not_rendered(text: str) -> None:
    view = five()
    for fact in (PairsStarred(("a", "c"), 1), PairsFlagged(("b",), "grey"), PairsMoved(("d",), "t")):
        heard(view, fact)
    filtered(view, text)
    assert set(names(planned(view))) <= set(ids(view.visible))


def test_1_several_parts_of_one_message_are_one_message() -> None:
    answer = msgspec.structs.replace(text_answer(""), messages=(Message("assistant", (Text("one "), Text("two"))),))
    view = view_of(history_of(answered("a", answer=answer)))
    assert [each.content for each in sent(planned(view))][1] == "one two"


def test_1_the_model_at_hand_decides_and_not_that_of_the_newest_pair() -> None:
    view = view_of(history_of(*(answered(name, model="tiny") for name in "abcde")))
    view.choose("large", view.sizer, 1000)
    assert (planned(view).model, ids(view.included)) == ("large", "abcde")


def test_1_the_colour_flag_alone_changes_nothing() -> None:
    view = five()
    before = names(planned(view))
    assert names(planned(heard(view, PairsFlagged(("d",), "grey")))) == before
    assert names(planned(filtered(view, "b"))) == "abce"


def test_1_compose_system_prelude_returns_the_system_message_or_none() -> None:
    view = five()
    assert planned(view).prompt_without(0).instructions == ""
    heard(view, TopicChanged(Topic(id="t", name="T", system_prompt="Be exact.", style_directives=("Be short.",))))
    view.enter("t")
    assert planned(view).prompt_without(0).instructions == "Be exact.\n\nBe short."


def test_1_payload_terms_are_what_telemetry_tells() -> None:
    _, ending = driven(planned(five(), "hello"), [AttemptRefused(OVERFLOW), Delivered()])
    first, last = ending.telemetry[0], ending.telemetry[-1]
    assert first.predicted_history_tokens == sum(each.tokens for each in first.selection)
    assert last.final_delivered_tokens == sum(each.tokens for each in last.selection) + last.aut
    assert [each.id for each in last.trimming_removed] == ["b"]
    assert last.trimming_removed_tokens == 20
    assert len(last.messages) == 2 * last.sent_count + 1


# --- 5. Branches ----------------------------------------------------------------------------------


def test_5_4_retry_uses_the_currently_visible_context() -> None:
    view = heard(heard(five(), PairAsked(answered("f"))), PairFailed("f", Trouble("network", "gone")))
    filtered(heard(view, PairsStarred(("a",), 3)), "s3")
    assert names(planned(view, view.history.get("f").user_text)) == "a"


# --- 6. Context assembly --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "included"), [(110, "abcde"), (109, "bcde"), (90, "bcde"), (89, "cde"), (29, ""), (5, "")]
)
def test_6_2_newest_first_until_the_next_would_exceed_the_limit(limit: int, included: str) -> None:
    view = view_of(history_of(*map(answered, "abcde")), limit=limit)
    assert ids(view.included) == included


def test_6_6_an_error_knows_what_was_included() -> None:
    _, ending = driven(planned(five(), "new"), [AttemptRefused(Fault(Code.AUTH, "no"))])
    assert ending.sent == tuple("bcde")
    assert ending.telemetry[-1].messages[-1].content == "new"


# --- 6.9 When the boundary is found anew ----------------------------------------------------------


def resized(view: View) -> None:
    settings = msgspec.structs.replace(BY_LETTER, user_request_allowance=30)
    view.adjust(settings, Sizer(SMALL, dialect="openai-chat", settings=settings))


def recounted(view: View) -> None:
    settings = msgspec.structs.replace(BY_LETTER, chars_per_token=2)
    view.adjust(settings, Sizer(SMALL, dialect="openai-chat", settings=settings))


@pytest.mark.parametrize(
    ("trigger", "included"),
    [
        pytest.param(lambda view: filtered(view, "!c'c?'"), "abde", id="filter"),
        pytest.param(lambda view: view.choose("tiny", view.sizer, 50), "de", id="model"),
        pytest.param(resized, "cde", id="URA"),
        pytest.param(recounted, "abcde", id="charsPerToken"),
        pytest.param(lambda view: heard(view, PairsDeleted(("e",))), "abcd", id="deletion"),
        pytest.param(lambda view: heard(view, PairEdited("e", user_text="x" * 25)), "cde", id="edit"),
        pytest.param(lambda view: heard(view, PairEdited("e", assistant_text="x" * 61)), "e", id="edited answer"),
        pytest.param(lambda view: heard(view, PairsHandled(("e",), "out")), "abcd", id="by hand"),
        pytest.param(lambda view: heard(view, ChatImported((), (answered("f", 40, at=NOW + 1),))), "def", id="import"),
        pytest.param(
            lambda view: heard(view, compaction_fact(view.history, ("d", "e"), "short", new_id="S")),
            "abcS",
            id="compaction",
        ),
    ],
)
def test_6_9_recompute_triggers(trigger, included: str) -> None:
    view = five()
    assert ids(view.included) == "bcde"
    trigger(view)
    assert ids(view.included) == included


def test_6_9_an_arriving_answer_is_a_trigger() -> None:
    view = heard(five(), PairAsked(MessagePair(id="f", user_text="x", at=NOW)))
    assert ids(view.included) == "bcdef"
    assert ids(heard(view, PairAnswered("f", text_answer("y" * 30))).included) == "def"


def test_6_9_a_mark_is_a_trigger_where_the_filter_asks_for_it_and_only_there() -> None:
    view = filtered(five(), "!s3")
    assert ids(heard(view, PairsStarred(("e",), 3)).included) == "abcd"
    plain = five()
    plain.start  # noqa: B018 - looked at once
    assert ids(heard(plain, PairsStarred(("e",), 3)).included) == "bcde"
    assert plain.selections == 1


def test_6_9_typing_moves_nothing() -> None:
    view = five()
    before = ids(view.included), view.selections
    for length in range(1, 90, 7):
        planned(view, "x" * length)
    assert (ids(view.included), view.selections) == before


def test_6_9_a_clean_boundary_is_used_again() -> None:
    view = five()
    planned(view)
    planned(view)
    assert view.selections == 1


def four(prompt: str = "hello") -> SendPlan:
    """Five pairs of 20 tokens, of which four go along: b to e."""
    return planned(view_of(history_of(*map(answered, "abcde"))), prompt)


def overflowing(times: int, plan: SendPlan | None = None) -> SendEnding:
    return driven(plan or four(), [*[AttemptRefused(OVERFLOW)] * times, Delivered()])[1]


# --- 7.1 Definitions and invariants ---------------------------------------------------------------


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


# --- 7.3 Counter ----------------------------------------------------------------------------------


def test_7_3_the_breakdown_has_every_term() -> None:
    view = view_of(history_of(*map(answered, "abcde")))
    rows = dict(counter_of(view, overflowing(1, planned(view)), prompt=5).breakdown)
    assert rows.keys() >= {"Predicted", "Trimmed", "Sent", "Visible", "URA", "AUT", "ML"}


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


def test_7_7_provider_reported_tokens_are_kept_beside_the_prediction() -> None:
    last = driven(four(), [Delivered(Usage(input_tokens=77))])[1].telemetry[-1]
    assert (last.final_delivered_tokens, last.reported_input_tokens) == (85, 77)
    assert last.bands.keys() == {"predictedHistory", "attemptHistory", "AUT"}
