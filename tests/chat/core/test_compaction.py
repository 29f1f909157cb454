import pytest

from sightline.chat.core.compaction import INSTRUCTION, compaction_fact, compare, drafting
from sightline.chat.core.facts import CompactionUndone
from sightline.chat.core.topics import Topic
from sightline.errors import Fault
from sightline.model.parts import Text
from tests.chat.core.stage import answered, history_of, ids, view_of


def test_a_draft_is_asked_for_with_the_pairs_as_they_stand() -> None:
    view = view_of(history_of(*map(answered, "abc")))
    prompt = drafting(view.visible[:2], view.sizer)
    assert [message.role for message in prompt.messages] == ["user", "assistant", "user", "assistant", "user"]
    assert prompt.messages[-1].parts == (Text(INSTRUCTION),)
    assert prompt.instructions == ""
    with pytest.raises(Fault):
        drafting([], view.sizer)


def test_before_and_after_are_compared() -> None:
    view = view_of(history_of(*map(answered, "abc")))
    shown = compare(view.visible[:2], "in short", view.sizer)
    assert (shown.ids, shown.before.tokens, shown.after.tokens, shown.saved) == (("a", "b"), 40, 8, 32)
    assert compare(view.visible[:1], " ", view.sizer).after.tokens == 0


def test_an_accepted_summary_is_sent_in_the_place_of_its_pairs_and_can_be_undone() -> None:
    history = history_of(
        answered("a", star=2), answered("b", topic="t"), answered("c"), topics=[Topic(id="t", name="T")]
    )
    view = view_of(history)
    assert ids(view.included) == "abc"
    fact = compaction_fact(history, ("b", "a"), "in short", new_id="S")
    assert (fact.summary.summary_of, fact.summary.topic, fact.summary.star) == (("a", "b"), "t", 2)
    view.on_change(history.apply(fact))
    assert ids(view.included) == "Sc"
    assert view.history_tokens == 28
    view.on_change(history.apply(CompactionUndone("S")))
    assert ids(view.included) == "abc"
    assert view.history_tokens == 60


@pytest.mark.parametrize(("chosen", "text"), [((), "in short"), (("a",), " ")])
def test_a_summary_needs_pairs_and_words(chosen: tuple[str, ...], text: str) -> None:
    with pytest.raises(Fault):
        compaction_fact(history_of(answered("a")), chosen, text, new_id="S")
