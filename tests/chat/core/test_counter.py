from sightline.chat.core.counter import counter_of, trim_summary
from sightline.chat.core.facts import PairsDeleted, PairsHandled
from sightline.chat.core.sending import AttemptRefused, Delivered
from sightline.errors import Code, Fault
from tests.chat.core.stage import answered, driven, history_of, planned, view_of

OVERFLOW = AttemptRefused(Fault(Code.CONTEXT_OVERFLOW, "too long"))


def test_the_counter_is_what_goes_along_of_what_is_visible() -> None:
    view = view_of(history_of(*map(answered, "abcde")))
    assert counter_of(view).text == "4 / 5"
    view.on_change(view.history.apply(PairsHandled(("e",), "out")))
    rows = dict(counter_of(view, prompt=12).breakdown)
    assert counter_of(view).text == "4 / 4"
    assert (rows["Left out by hand"], rows["AUT"], rows["ML"], rows["URA"]) == (1, 12, 100, 10)


def test_after_a_send_that_left_pairs_out_it_is_in_brackets() -> None:
    view = view_of(history_of(*map(answered, "abcde")))
    _, trimmed = driven(planned(view), [OVERFLOW, Delivered()])
    assert counter_of(view, trimmed).text == "[4-1]/5"
    assert dict(counter_of(view, trimmed).breakdown)["Sent"] == 3
    _, whole = driven(planned(view), [Delivered()])
    assert counter_of(view, whole).text == "4 / 5"


def test_the_counter_never_has_more_chosen_than_visible_after_deletions() -> None:
    view = view_of(history_of(*map(answered, "abcdefghi")), limit=200)
    _, trimmed = driven(planned(view), [OVERFLOW, OVERFLOW, OVERFLOW, Delivered()])
    assert counter_of(view, trimmed).text == "[9-3]/9"
    view.on_change(view.history.apply(PairsDeleted(tuple("fghi"))))
    assert counter_of(view, trimmed).text == "5 / 5"
    assert dict(counter_of(view, trimmed).breakdown)["Trimmed"] == 0


def test_what_is_left_out_by_hand_or_shown_anew_is_another_choice() -> None:
    view = view_of(history_of(*map(answered, "abcde")))
    _, trimmed = driven(planned(view), [OVERFLOW, Delivered()])
    view.on_change(view.history.apply(PairsHandled(("e",), "out")))
    assert counter_of(view, trimmed).text == "4 / 4"


def test_what_was_left_out_is_said_in_words() -> None:
    view = view_of(history_of(*map(answered, "abcde")))
    assert trim_summary(driven(planned(view), [Delivered()])[1]) == ""
    early = trim_summary(driven(planned(view, "x" * 30), [Delivered()])[1])
    assert early.startswith("1 of 4 pairs was left out: 1 before sending, because the prompt")
    late = trim_summary(driven(planned(view), [OVERFLOW, OVERFLOW, Delivered()])[1])
    assert late.startswith("2 of 4 pairs were left out: 2 because the provider")
    both = trim_summary(driven(planned(view, "x" * 30), [OVERFLOW, Delivered()])[1])
    assert "1 before sending" in both
    assert "1 because the provider" in both
