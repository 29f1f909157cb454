from random import Random

import pytest

from sightline.catalog.facts import Facts
from sightline.chat.core import facts
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.pair import MessagePair, text_answer
from sightline.chat.core.sizing import Sizer
from sightline.chat.core.topics import ROOT, Parameters, Topic
from sightline.chat.core.view import View
from sightline.errors import Fault
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse
from sightline.model.request import FunctionTool
from sightline.settings import ChatSettings
from sightline.tokens.estimate import Estimate, exactly
from tests.chat.core.stage import BY_LETTER, NOW, SMALL, answered, filtered, history_of, ids, view_of

FIVE = tuple(map(answered, "abcde"))
"""Each of 20 letters: with 100 tokens of which 10 are held back, four go along."""


def told(view: View, fact: facts.ChatFact) -> View:
    view.on_change(view.history.apply(fact))
    return view


def test_newest_pairs_are_included_and_older_ones_stay_visible() -> None:
    view = view_of(history_of(*FIVE))
    assert ids(view.visible) == "abcde"
    assert view.start == 1
    assert ids(view.included) == "bcde"
    assert view.figures.history == 80
    assert [view.standing(pair) for pair in ("a", "b", "x")] == ["excluded", "included", "hidden"]


def test_filter_determines_the_included_pairs() -> None:
    view = view_of(history_of(*FIVE))
    told(view, facts.PairsStarred(("a", "c"), 2))
    assert ids(filtered(view, "s>=2").included) == "ac"
    assert view.standing("b") == "hidden"


def test_filter_can_select_the_included_pairs() -> None:
    view = view_of(history_of(*FIVE))
    assert ids(filtered(view, "o").visible) == "bcde"
    assert ids(filtered(view, "o1").visible) == "abcde"
    assert ids(filtered(view, "!o").visible) == "a"
    assert ids(filtered(view_of(history_of(*FIVE), limit=10), "o").visible) == ""


def test_filter_can_refer_to_the_current_topic_and_model() -> None:
    view = view_of(history_of(*FIVE, topics=[Topic(id="t", name="T")]))
    told(view, facts.PairsMoved(("a", "b"), "t"))
    view.enter("t")
    assert ids(filtered(view, "t").visible) == "ab"
    assert ids(filtered(view, "t1").visible) == "b"
    view.enter(ROOT)
    assert ids(filtered(view, "t").visible) == "cde"
    assert ids(filtered(view, "m").visible) == "abcde"
    view.choose("other", view.sizer, 100)
    assert ids(view.visible) == ""
    assert ids(filtered(view, "r2").visible) == "de"


def test_a_person_takes_in_and_leaves_out_by_hand() -> None:
    view = filtered(view_of(history_of(*FIVE)), "s>=1")
    told(view, facts.PairsStarred(("a", "b", "c"), 1))
    assert ids(view.visible) == "abc"
    told(view, facts.PairsHandled(("b",), "out"))
    told(view, facts.PairsHandled(("e",), "in"))
    assert ids(view.visible) == "ace"
    assert ids(view.left_out) == "b"
    assert view.standing("b") == "left_out"
    again = filtered(view, "s>=1")
    assert (ids(again.visible), ids(again.left_out)) == ("ace", "b")
    told(view, facts.PairsHandled(("b", "e"), ""))
    assert (ids(view.visible), ids(view.left_out)) == ("abc", "")


def test_what_is_left_out_by_hand_takes_no_room() -> None:
    view = view_of(history_of(*FIVE))
    told(view, facts.PairsHandled(("e",), "out"))
    assert ids(view.included) == "abcd"
    assert ids(filtered(view, "o").visible) == "abcd"


def test_the_system_prompt_takes_room() -> None:
    view = view_of(history_of(*FIVE, topics=[Topic(id="t", name="T", system_prompt="x" * 30)]))
    assert view.room.system == 0
    view.enter("t")
    assert (view.prelude, view.room.system) == ("x" * 30, 30)
    assert ids(view.included) == "cde"


def test_tools_and_the_reply_take_room() -> None:
    settings = ChatSettings(estimation="characters", chars_per_token=1, assistant_response_allowance=800)
    tool = FunctionTool("look_up", None, {"type": "object"})
    view = view_of(history_of(), settings=settings, limit=1000, tools=(tool,))
    assert view.room.tools > 0
    assert view.room.reply == 250
    told(view, facts.TopicAdded(Topic(id="t", name="T", parameters=Parameters(max_tokens=77))))
    view.enter("t")
    assert view.room.reply == 77


def test_view_follows_changes_of_its_current_topic() -> None:
    view = view_of(history_of(*FIVE, topics=[Topic(id="t", name="T")]))
    view.enter("t")
    assert ids(view.included) == "bcde"
    told(view, facts.TopicChanged(Topic(id="t", name="T", system_prompt="x" * 60)))
    assert ids(view.included) == "e"
    told(view, facts.TopicRemoved("t"))
    assert (view.topic, ids(view.included)) == (ROOT, "bcde")
    with pytest.raises(Fault):
        view.enter("t")


def test_another_model_has_another_limit() -> None:
    view = view_of(history_of(*FIVE))
    assert ids(view.included) == "bcde"
    view.choose("large", Sizer(Facts(), dialect="openai-chat", settings=BY_LETTER), 1000)
    assert ids(view.included) == "abcde"
    assert view.selections == 1, "what is visible is the same"


def test_other_settings_are_other_counts() -> None:
    view = view_of(history_of(*FIVE))
    settings = ChatSettings(estimation="characters", chars_per_token=2, assistant_response_allowance=0)
    view.adjust(settings, Sizer(SMALL, dialect="openai-chat", settings=settings))
    assert view.room.user == 100
    assert ids(view.included) == ""
    assert view.settings is settings


def test_one_more_pair_among_a_hundred_thousand_is_no_second_look_at_them(monkeypatch) -> None:
    pairs = tuple(answered(str(number), at=float(number)) for number in range(100_000))
    view = view_of(ChatHistory([facts.ChatImported((), pairs)]), limit=10_010)
    assert len(view.included) == 500
    counted: list[str] = []
    original = Sizer.messages
    monkeypatch.setattr(Sizer, "messages", lambda self, pair: (counted.append(pair.id), original(self, pair))[1])
    told(view, facts.PairAsked(answered("new", at=1e6)))
    told(view, facts.PairAnswered("new", text_answer("!" * 10)))
    assert len(view.included) == 500
    assert view.selections == 1
    assert set(counted) == {"new"}


def test_unread_view_applies_changes_without_recomputing() -> None:
    view = view_of(history_of(*FIVE))
    told(view, facts.PairsDeleted(("a",)))
    assert view.selections == 0
    assert ids(view.visible) == "bcde"


FILTERS = ("", "s>=1", "b & !s0", "r4", "t", "o", "!o1 | s3", "!e", "m'acme'", "c'b'", "t'T...'")


@pytest.mark.parametrize("seed", range(60))
def test_whatever_happens_the_view_is_what_a_new_one_would_be(seed: int) -> None:
    random = Random(seed)
    history = history_of(*map(answered, "abcdefg"), topics=[Topic(id="t", name="T"), Topic(id="u", name="U")])
    view = filtered(view_of(history), random.choice(FILTERS))
    for number in range(25):
        live = [pair.id for pair in history if pair.state != "sending"]
        some = tuple(random.sample(live, min(len(live), random.randint(1, 3))))
        acts: list[facts.ChatFact] = [
            facts.PairsStarred(some, random.randrange(4)),
            facts.PairsFlagged(some, random.choice(("blue", "grey"))),
            facts.PairsHandled(some, random.choice(("", "in", "out"))),
            facts.PairsMoved(some, random.choice((ROOT, "t", "u"))),
            facts.PairsDeleted(some),
            facts.PairsRestored(tuple("abcdefg")),
            facts.PairsCompacted(MessagePair(id=f"s{number}", user_text="in short", summary_of=some)),
            facts.PairAsked(answered(f"n{number}", random.randrange(60))),
            facts.TopicChanged(Topic(id="u", name=f"U{number}", parent=random.choice((ROOT, "t")))),
            facts.ChatImported((), (answered(f"i{number}", at=NOW - number),)),
        ]
        if live:
            acts.append(facts.PairEdited(some[0], user_text="b" * random.randrange(50)))
        if history.sending:
            acts.append(facts.PairAnswered(history.sending, text_answer("!" * random.randrange(40))))
        acts += [facts.CompactionUndone(each) for each in live if history.get(each).summary_of]
        try:
            change = history.apply(random.choice(acts))
        except Fault:
            continue
        view.on_change(change)
        if random.random() < 0.2:
            view.enter(random.choice((ROOT, "t")))
        if random.random() < 0.2:
            view.choose("acme", view.sizer, random.choice((60, 100, 300)))
        if random.random() < 0.5:
            fresh = View(history, view.sizer, view.room.limit, view.settings, now=NOW)
            fresh.choose("acme", view.sizer, view.room.limit)
            fresh.enter(view.topic)
            fresh.execute(view.expression, NOW)
            assert [*view.visible] == [*fresh.visible]
            assert (view.start, view.figures.history) == (fresh.start, fresh.figures.history)
            assert view.left_out == fresh.left_out


def test_match_ignores_manual_choices_and_leaves_the_view_unchanged() -> None:
    view = filtered(view_of(history_of(*FIVE)), "r2")
    told(view, facts.PairsStarred(("a", "c"), 2))
    told(view, facts.PairsHandled(("b",), "in"))
    told(view, facts.PairsHandled(("c",), "out"))
    assert ids(view.match(parse("s2", scope=FilterScope.CHAT), NOW)) == "ac"
    assert ids(view.match(parse("o & !s2", scope=FilterScope.CHAT), NOW)) == "bde"
    assert ids(view.visible) == "bde"


def test_what_was_measured_is_shared_out_to_all_that_is_sent() -> None:
    view = view_of(history_of(*FIVE))
    assert view.figures.total == view.figures.history == 80
    assert view.share(Estimate(170, 150, 200), exactly(5))
    figures, room = view.figures, view.shown_room
    assert figures.total == 160
    assert [size.tokens for size in figures.pairs.values()] == [40, 40, 40, 40]
    assert view.size(view.included[0]) == Estimate(40, 35, 47)
    assert view.size(view.visible[0]) == exactly(20, "characters per token"), "a pair that is not sent"
    assert (view.figures.history, room.system, room.tools, room.margin) == (160, 0, 0, 0)
    told(view, facts.PairAsked(answered("f")))
    assert view.figures.history == 90, "the measure is of other pairs"
    view.forget_measure()
    assert view.figures.total == 90


def test_a_measure_that_may_not_fit_leaves_pairs_out_until_one_does() -> None:
    settings = ChatSettings(user_request_allowance=10, assistant_response_allowance=0)
    view = view_of(history_of(*FIVE), settings=settings, limit=400)
    assert ids(view.included) == "abcde"
    assert not view.share(Estimate(390, 380, 440), exactly(5))
    assert ids(view.included) == "bcde"
    assert view.share(Estimate(300, 290, 330), exactly(5))
    room = view.shown_room
    assert view.figures.history <= room.history == room.limit - room.system - room.tools - room.margin - room.user


def test_a_wrong_lesson_leaves_most_of_the_history() -> None:
    settings = ChatSettings(user_request_allowance=10, assistant_response_allowance=0)
    view = view_of(history_of(*FIVE), settings=settings, limit=400)
    assert not view.share(Estimate(500, 490, 510), exactly(5))
    assert view.share(Estimate(500, 490, 510), exactly(5)), "an eighth of the limit is the most that is given up"
    assert len(view.included) > 0
