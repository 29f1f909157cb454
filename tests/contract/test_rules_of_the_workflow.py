"""The rules of the send-and-response workflow, sections 1 to 6, by their numbers: what the chat's core can show.

Section 7 and what follows is in `test_rules_of_the_budget.py`.
"""

import msgspec
import pytest

from sightline.chat.core.facts import (
    ChatImported,
    PairAnswered,
    PairAsked,
    PairCancelled,
    PairEdited,
    PairFailed,
    PairReasked,
    PairsDeleted,
    PairsFlagged,
    PairsHandled,
    PairsMoved,
    PairsStarred,
    TopicChanged,
)
from sightline.chat.core.pair import MessagePair, Trouble, text_answer
from sightline.chat.core.plan import MessageSummary, SendPlan, plan_of, summarize
from sightline.chat.core.rewriting import compaction_fact
from sightline.chat.core.sending import AttemptRefused, Delivered
from sightline.chat.core.sizing import Sizer
from sightline.chat.core.topics import Inherited, Topic, model_at_hand
from sightline.chat.core.view import View
from sightline.errors import Code, Fault
from sightline.model.message import Message
from sightline.model.parts import Text
from tests.chat.core.stage import (
    BY_LETTER,
    NOW,
    SMALL,
    answered,
    attempts,
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


def test_1_without_a_selection_the_newest_pairs_model_or_the_default_is_at_hand() -> None:
    newest = answered("a", model="tiny")
    assert model_at_hand("", Inherited(), newest, "gpt") == "tiny"
    assert model_at_hand("", Inherited(), None, "gpt") == "gpt"
    assert model_at_hand("large", Inherited(), newest, "gpt") == "large"


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


# --- 2. Entities ----------------------------------------------------------------------------------


def test_2_a_pair_has_the_fields_of_the_workflow_and_no_placeholder_for_an_answer() -> None:
    history = history_of()
    history.apply(PairAsked(MessagePair(id="a", topic="", model="acme", user_text="why?", at=NOW)))
    pair = history.get("a")
    assert (pair.star, pair.flag, pair.state, pair.at) == (0, "blue", "sending", NOW)
    assert (pair.answer, pair.assistant_text) == (None, "")


# --- 3. State machine -----------------------------------------------------------------------------


def test_3_sending_ends_complete_or_in_error() -> None:
    for fact, state in (
        (PairAnswered("a", text_answer("so")), "complete"),
        (PairFailed("a", Trouble("auth", "no key")), "error"),
        (PairCancelled("a", text_answer("so f")), "complete"),
    ):
        history = history_of()
        history.apply(PairAsked(answered("a")))
        assert history.get("a").state == "sending"
        history.apply(fact)
        assert history.get("a").state == state


def test_3_an_error_is_asked_anew_as_a_new_pair_at_the_end_and_the_old_one_is_deleted() -> None:
    history = history_of()
    history.apply(PairAsked(answered("a")))
    history.apply(PairFailed("a", Trouble("network", "gone")))
    history.apply(PairAsked(answered("b")))
    history.apply(PairAnswered("b", text_answer("so")))
    history.apply(PairAsked(answered("c", at=NOW + 9), replaces="a"))
    assert ids(history) == "bc"
    assert history.get("c").at == NOW + 9


# --- 4. Standard flow -----------------------------------------------------------------------------


def test_4_3_the_visible_pairs_are_gathered_at_the_instant_of_sending() -> None:
    view = five()
    plan = planned(view)
    filtered(view, "s3")
    assert names(plan) == "bcde"


def test_4_4_the_new_pair_is_not_part_of_its_own_context() -> None:
    view = five()
    plan = planned(view, "new")
    heard(view, PairAsked(answered("f")))
    assert "f" not in names(plan)


def test_4_6_there_is_no_second_send_while_one_is_on_its_way() -> None:
    view = heard(five(), PairAsked(answered("f")))
    with pytest.raises(Fault, match="on its way"):
        view.history.apply(PairAsked(answered("g")))


def test_4_7_each_side_that_is_there_is_a_message_and_the_new_one_is_last() -> None:
    pairs = (
        answered("a"),
        MessagePair(id="b", user_text="alone"),
        answered("c", user_text="", answer=text_answer("x")),
    )
    view = view_of(history_of(*pairs))
    assert [each.role for each in sent(planned(view))] == ["user", "assistant", "user", "assistant", "user"]


def test_4_8_an_answer_completes_the_pair() -> None:
    view = heard(heard(five(), PairAsked(answered("f"))), PairAnswered("f", text_answer("so")))
    assert (view.history.get("f").state, view.history.sending) == ("complete", "")


# --- 5. Branches ----------------------------------------------------------------------------------


def test_5_1_a_providers_error_stands_where_the_answer_would() -> None:
    _, ending = driven(planned(five()), [AttemptRefused(Fault(Code.AUTH, "Incorrect API key provided"))])
    assert ending.trouble is not None
    assert ending.trouble.line == "[error: auth] Incorrect API key provided"


def test_5_2_a_network_error_is_classed_as_such() -> None:
    _, ending = driven(planned(five()), [AttemptRefused(Fault(Code.NETWORK, "connection reset"))])
    assert ending.trouble is not None
    assert (ending.trouble.code, ending.trouble.label) == ("network", "net")


def test_5_3_a_person_can_abort_and_what_had_come_is_kept() -> None:
    view = heard(heard(five(), PairAsked(answered("f"))), PairCancelled("f", text_answer("so f")))
    pair = view.history.get("f")
    assert pair.answer is not None
    assert (pair.assistant_text, pair.answer.finish) == ("so f", "cancelled")


def test_5_4_asked_anew_it_uses_the_context_that_is_visible_now() -> None:
    view = heard(heard(five(), PairAsked(answered("f"))), PairFailed("f", Trouble("network", "gone")))
    filtered(heard(view, PairsStarred(("a",), 3)), "s3")
    assert names(planned(view, view.history.get("f").user_text)) == "a"


def test_5_4_asked_again_on_another_model_the_earlier_answer_is_kept() -> None:
    view = heard(heard(five(), PairReasked("c", "other")), PairAnswered("c", text_answer("anew")))
    pair = view.history.get("c")
    assert (pair.model, pair.assistant_text, len(pair.earlier)) == ("other", "anew", 1)
    assert names(plan_of(view, pair.user_text, before="c")) == "ab"


def test_5_5_a_filter_changed_in_flight_does_not_touch_the_request() -> None:
    view = five()
    plan = planned(view)
    heard(view, PairAsked(answered("f")))
    filtered(view, "s3")
    steps, ending = driven(plan, [Delivered()])
    assert (attempts(steps), ending.kind) == (["bcde"], "delivered")
    assert view.standing("f") == "hidden"
    assert filtered(view, "").standing("f") == "included"


def test_5_6_a_model_chosen_in_flight_is_for_the_next_send() -> None:
    view = five()
    plan = planned(view)
    view.choose("other", view.sizer, 40)
    assert (plan.model, plan.room.limit, planned(view).model) == ("acme", 100, "other")


def test_5_7_a_pair_can_be_deleted() -> None:
    assert ids(heard(five(), PairsDeleted(("d",))).visible) == "abce"


# --- 6. Context assembly --------------------------------------------------------------------------


def test_6_1_the_candidates_are_the_visible_pairs_from_top_to_bottom() -> None:
    assert ids(five().visible) == "abcde"


@pytest.mark.parametrize(
    ("limit", "included"), [(110, "abcde"), (109, "bcde"), (90, "bcde"), (89, "cde"), (29, ""), (5, "")]
)
def test_6_2_newest_first_until_the_next_would_exceed_the_limit(limit: int, included: str) -> None:
    view = view_of(history_of(*map(answered, "abcde")), limit=limit)
    assert ids(view.included) == included


def test_6_3_included_pairs_are_serialized_in_chronological_order() -> None:
    contents = [each.content for each in sent(planned(five()))]
    assert [content[0] for content in contents[::2]] == ["b", "c", "d", "e", "h"]


def test_6_3_blank_sides_are_not_emitted() -> None:
    pairs = (answered("a", user_text=" \n\t"), MessagePair(id="b", user_text="x", answer=text_answer("  ")))
    assert [each.role for each in sent(planned(view_of(history_of(*pairs))))] == ["assistant", "user", "user"]


def test_6_4_the_new_prompt_is_the_final_message() -> None:
    assert sent(planned(five(), "new"))[-1] == MessageSummary("user", "new")


def test_6_5_the_prelude_is_prepended_and_takes_room() -> None:
    view = heard(five(), TopicChanged(Topic(id="t", name="T", system_prompt="x" * 15)))
    view.enter("t")
    assert (planned(view).prompt_without(0).instructions, ids(view.included)) == ("x" * 15, "cde")


def test_6_6_an_error_knows_what_was_included() -> None:
    _, ending = driven(planned(five(), "new"), [AttemptRefused(Fault(Code.AUTH, "no"))])
    assert ending.sent == tuple("bcde")
    assert ending.telemetry[-1].messages[-1].content == "new"


def test_6_7_excluded_pairs_stay_visible_and_are_never_sent() -> None:
    view = five()
    assert view.standing("a") == "excluded"
    assert "a" in ids(view.visible)
    assert "a" not in names(planned(view))


def test_6_8_trimming_does_not_recompute_the_prediction() -> None:
    _, ending = driven(planned(five()), [AttemptRefused(OVERFLOW), AttemptRefused(OVERFLOW), Delivered()])
    assert {told.predicted_message_count for told in ending.telemetry} == {4}


def test_6_9_metadata_is_never_in_the_messages() -> None:
    marked = answered("a", star=3, flag="grey", topic="t", trouble=Trouble("auth", "secret trouble"))
    plain, view = five(), view_of(history_of(marked, topics=[Topic(id="t", name="Secret topic")]))
    assert sent(planned(view)) == sent(planned(view_of(history_of(answered("a")))))
    assert "Secret" not in str(sent(planned(view)))
    assert sent(planned(plain))


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


def test_6_9_option_b_drops_the_oldest_before_the_first_call_and_not_on_screen() -> None:
    view = five()
    steps, ending = driven(planned(view, "x" * 50), [Delivered()])
    assert (attempts(steps), ending.trimmed) == (["de"], ("b", "c"))
    assert ids(view.included) == "bcde"


def test_6_9_option_a_is_there_for_who_wants_it() -> None:
    view = five()
    settings = msgspec.structs.replace(BY_LETTER, preflight_trimming=False)
    view.adjust(settings, Sizer(SMALL, dialect="openai-chat", settings=settings))
    assert attempts(driven(planned(view, "x" * 50), [Delivered()])[0]) == ["bcde"]
