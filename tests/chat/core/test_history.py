import msgspec
import pytest

from sightline.chat.core.facts import (
    INTERRUPTED,
    ChatFact,
    ChatImported,
    CompactionUndone,
    PairAnswered,
    PairAsked,
    PairCancelled,
    PairEdited,
    PairFailed,
    PairReasked,
    PairsCompacted,
    PairsDeleted,
    PairsMoved,
    PairsRestored,
    PairsStarred,
    RunJoined,
    TopicAdded,
    TopicChanged,
    TopicRemoved,
)
from sightline.chat.core.history import ChatHistory, HistoryChange
from sightline.chat.core.pair import MessagePair, text_answer
from sightline.chat.core.topics import ROOT, Parameters, Topic
from sightline.errors import Code, Fault
from tests.chat.core.stage import NOW, answered, history_of, ids


def refused(history: ChatHistory, fact: ChatFact) -> str:
    """Why a fact cannot be; it must have changed nothing."""
    before = [*history], history.sending, [*history.topics]
    with pytest.raises(Fault) as caught:
        history.apply(fact)
    assert caught.value.code is Code.USAGE
    assert caught.value.hint
    assert ([*history], history.sending, [*history.topics]) == before
    return caught.value.message


def summary_of(*pairs: str, name: str = "S") -> MessagePair:
    return MessagePair(id=name, user_text="in short", summary_of=pairs)


def test_questions_are_kept_in_the_order_they_were_asked() -> None:
    history = history_of(answered("a"), answered("b"), answered("c"))
    assert ids(history) == "abc"
    assert len(history) == 3
    assert history.get("b").assistant_text


def test_a_clock_that_was_set_back_puts_no_question_before_older_ones() -> None:
    assert ids(history_of(answered("a"), answered("b", at=NOW - 500), answered("c", at=NOW - 400))) == "abc"


def test_one_answer_is_on_its_way_at_a_time() -> None:
    history = history_of(answered("a"))
    history.apply(PairAsked(answered("b")))
    assert history.sending == "b"
    assert "still arriving" in refused(history, PairAsked(answered("c")))
    assert "still arriving" in refused(history, PairReasked("a"))
    history.apply(PairCancelled("b"))
    assert history.sending == ""
    history.apply(PairReasked("a"))
    assert history.sending == "a"
    history.apply(PairAnswered("a", text_answer("again")))
    assert history.sending == ""


def test_a_run_that_is_taken_up_is_the_one_answer_on_its_way() -> None:
    history = history_of(answered("a"))
    history.apply(PairAsked(answered("b")))
    history.apply(RunJoined("b", "r_1"))
    assert (history.sending, history.get("b").run) == ("b", "r_1")
    assert "still arriving" in refused(history, RunJoined("a", "r_0"))
    history.apply(PairCancelled("b"))
    history.apply(RunJoined("b", "r_1"))
    assert history.sending == "b"
    assert "still arriving" in refused(history, PairAsked(answered("c")))


def test_what_was_on_its_way_when_the_program_ended_has_failed() -> None:
    history = history_of(answered("a"))
    history.apply(PairAsked(answered("b")))
    history.apply(PairFailed("b", INTERRUPTED))
    assert (history.get("b").state, history.sending) == ("error", "")


def test_replacing_question_is_appended_and_the_replaced_one_is_removed() -> None:
    history = history_of(answered("a"), answered("b"))
    assert history.apply(PairAsked(answered("c"), replaces="a")) == HistoryChange(("a", "c"))
    assert ids(history) == "bc"
    assert "not there any more" in refused(history_of_deleted(), PairAsked(answered("c"), replaces="a"))


def history_of_deleted() -> ChatHistory:
    history = history_of(answered("a"))
    history.apply(PairsDeleted(("a",)))
    return history


def test_a_pair_comes_once_and_into_a_topic_that_is_there() -> None:
    assert "already" in refused(history_of(answered("a")), PairAsked(answered("a")))
    assert "no topic" in refused(ChatHistory(), PairAsked(answered("a", topic="nowhere")))


def test_what_was_deleted_comes_back_to_its_place() -> None:
    history = history_of(answered("a"), answered("b"), answered("c"))
    assert history.apply(PairsDeleted(("b", "b"))) == HistoryChange(("b",))
    assert ids(history) == "ac"
    assert not history.is_live("b")
    assert "b" in history
    assert history.apply(PairsRestored(("b", "b", "a"))) == HistoryChange(("b",))
    assert ids(history) == "abc"


def test_what_waits_for_its_answer_is_broken_off_before_it_is_deleted() -> None:
    history = history_of(answered("a"))
    history.apply(PairAsked(answered("b")))
    assert "waiting" in refused(history, PairsDeleted(("a", "b")))


def test_marks_are_for_pairs_that_are_known() -> None:
    history = history_of(answered("a"), answered("b"), topics=[Topic(id="t", name="T")])
    history.apply(PairsStarred(("a", "b"), 3))
    assert [pair.star for pair in history] == [3, 3]
    assert "no pair" in refused(history, PairsStarred(("a", "x"), 1))
    assert "no topic" in refused(history, PairsMoved(("a",), "nowhere"))
    history.apply(PairsMoved(("a",), "t"))
    assert history.get("a").topic == "t"


def test_summary_takes_the_place_of_its_newest_pair() -> None:
    history = history_of(*map(answered, "abcd"))
    history.apply(PairsCompacted(summary_of("a", "c")))
    assert ids(history) == "bSd"
    assert history.get("a").user_text, "the originals stay"


def test_a_compaction_is_undone_and_done_again() -> None:
    history = history_of(*map(answered, "abc"))
    history.apply(PairsCompacted(summary_of("a", "b")))
    history.apply(CompactionUndone("S"))
    assert ids(history) == "abc"
    history.apply(PairsCompacted(summary_of("a", "b")))
    assert ids(history) == "Sc"


def test_a_summary_can_be_summed_up_and_laid_open_step_by_step() -> None:
    history = history_of(*map(answered, "abc"))
    history.apply(PairsCompacted(summary_of("a", "b")))
    history.apply(PairsCompacted(summary_of("S", "c", name="T")))
    assert ids(history) == "T"
    history.apply(CompactionUndone("T"))
    assert ids(history) == "Sc"
    history.apply(CompactionUndone("S"))
    assert ids(history) == "abc"


def test_a_deleted_summary_comes_back_only_as_long_as_it_stands_for_its_pairs() -> None:
    history = history_of(*map(answered, "abc"))
    history.apply(PairsCompacted(summary_of("a", "b")))
    history.apply(PairsDeleted(("S",)))
    history.apply(PairsRestored(("S",)))
    assert ids(history) == "Sc"
    history.apply(CompactionUndone("S"))
    assert history.apply(PairsRestored(("S",))).ids == ()
    assert ids(history) == "abc"
    history.apply(PairsCompacted(summary_of("b", "c", name="T")))
    history.apply(PairsRestored(("S",)))
    assert ids(history) == "aT"


def test_a_summary_that_waits_for_its_answer_is_stopped_before_it_is_laid_open() -> None:
    history = history_of(*map(answered, "abc"))
    history.apply(PairsCompacted(summary_of("a", "b")))
    history.apply(PairEdited("S", assistant_text="I see"))
    history.apply(PairReasked("S"))
    assert "waiting for its answer" in refused(history, CompactionUndone("S"))
    history.apply(PairCancelled("S"))
    history.apply(CompactionUndone("S"))
    assert (ids(history), history.sending) == ("abc", "")


@pytest.mark.parametrize(
    "summary", [summary_of(), summary_of("a", "a"), summary_of("a", name="b"), summary_of("x"), summary_of("d")]
)
def test_summary_must_be_new_and_cover_existing_pairs(summary: MessagePair) -> None:
    history = history_of(*map(answered, "abcd"))
    history.apply(PairsDeleted(("d",)))
    refused(history, PairsCompacted(summary))


def test_nothing_takes_the_id_of_a_deleted_pair() -> None:
    history = history_of(*map(answered, "ab"))
    history.apply(PairsDeleted(("b",)))
    assert "new pair" in refused(history, PairsCompacted(summary_of("a", name="b")))


def test_what_waits_for_its_answer_cannot_be_summed_up() -> None:
    history = history_of(answered("a"))
    history.apply(PairAsked(answered("b")))
    assert "waits" in refused(history, PairsCompacted(summary_of("a", "b")))


def test_only_a_summary_can_be_laid_open() -> None:
    assert "not a summary" in refused(history_of(answered("a")), CompactionUndone("a"))


def test_what_is_imported_goes_to_its_place_in_time() -> None:
    history = history_of(answered("b"))
    topic = Topic(id="i", name="Imported")
    pairs = (answered("c", at=NOW + 5), answered("a", at=NOW - 5, topic="i"))
    assert history.apply(ChatImported((topic,), pairs)) == HistoryChange(is_wide=True)
    assert ids(history) == "abc"
    assert history.get("a").topic == "i"
    history.apply(PairAsked(answered("d", at=NOW)))
    assert ids(history) == "abcd", "a new question stands at the end, also behind what came from the future"


def test_what_is_imported_twice_is_there_once() -> None:
    fact = ChatImported((Topic(id="i", name="Imported"),), (answered("a", topic="i"),))
    history = ChatHistory([fact])
    history.apply(PairsStarred(("a",), 3))
    history.apply(TopicChanged(Topic(id="i", name="Mine")))
    history.apply(fact)
    assert [pair.star for pair in history] == [3]
    assert [topic.name for topic in history.topics] == ["", "Mine"]


def test_imported_topics_join_those_of_the_same_name() -> None:
    history = history_of(topics=[Topic(id="t", name="Work")])
    topics = (Topic(id="w", name="work"), Topic(id="p", name="Plans", parent="w"))
    history.apply(ChatImported(topics, (answered("a", topic="w"), answered("b", topic="p"), answered("c", topic="?"))))
    assert history.get("a").topic == "t"
    assert history.topics.path(history.get("b").topic) == ("Work", "Plans")
    assert history.get("c").topic == ROOT


def test_imported_pairs_wait_for_nothing_and_stand_for_nothing() -> None:
    history = ChatHistory([ChatImported((), (answered("a", state="sending", summary_of=("x",)),))])
    assert (history.get("a").state, history.get("a").summary_of, history.sending) == ("idle", (), "")


def test_an_import_that_cannot_be_changes_nothing() -> None:
    topics = (Topic(id="a", name="A"), Topic(id="b", name="B", parent="nowhere"))
    assert "no topic" in refused(ChatHistory(), ChatImported(topics, ()))


def test_a_topic_that_has_pairs_stays() -> None:
    history = history_of(answered("a", topic="t"), topics=[Topic(id="t", name="T")])
    assert "has pairs" in refused(history, TopicRemoved("t"))
    history.apply(PairsDeleted(("a",)))
    assert history.apply(TopicRemoved("t")) == HistoryChange()
    history.apply(PairsRestored(("a",)))
    assert history.get("a").topic == ROOT, "its topic is gone"


def test_a_topic_elsewhere_or_by_another_name_changes_what_filters_see() -> None:
    history = ChatHistory()
    assert history.apply(TopicAdded(Topic(id="t", name="T"))).is_wide, "a filter may have named it before"
    assert not history.apply(TopicChanged(Topic(id="t", name="T", parameters=Parameters(temperature=1)))).is_wide
    assert history.apply(TopicChanged(Topic(id="t", name="U"))).is_wide


def test_a_history_is_what_its_kept_facts_say() -> None:
    facts: list[ChatFact] = [
        TopicAdded(Topic(id="t", name="T")),
        PairAsked(answered("a", topic="t")),
        PairAnswered("a", text_answer("yes")),
        ChatImported((), (answered("b", at=1.0),)),
        PairsCompacted(summary_of("b")),
        PairsStarred(("a",), 2),
    ]
    kept = [msgspec.json.decode(msgspec.json.encode(fact), type=ChatFact) for fact in facts]
    assert [*ChatHistory(kept)] == [*ChatHistory(facts)]


def test_the_latest_few_are_at_hand() -> None:
    history = history_of(*map(answered, "abc"))
    assert ids(history.latest(2)) == "bc"
    assert ids(history.latest(9)) == "abc"
    assert history.latest(0) == []


def test_a_fact_is_checked_before_it_changes_anything() -> None:
    history = history_of(answered("a"), topics=[Topic(id="t", name="T")])
    apply = [history.check(fact) for fact in (PairsStarred(("a",), 2), TopicAdded(Topic(id="u", name="U")))]
    assert (history.get("a").star, "u" in history.topics) == (0, False)
    for each in apply:
        each()
    assert (history.get("a").star, "u" in history.topics) == (2, True)


def test_the_newest_is_the_last_of_those_that_are_there() -> None:
    history = history_of(answered("a"), answered("b"))
    assert history.newest is history.get("b")
    history.apply(PairsDeleted(("b",)))
    assert history.newest is history.get("a")
    assert ChatHistory().newest is None


@pytest.mark.parametrize("step", [1, 2, 3])
def test_many_go_and_come_back_as_a_few_do(step: int) -> None:
    pairs = tuple(MessagePair(id=f"p{n}", at=float(n % 250)) for n in range(500))
    some = tuple(f"p{n}" for n in range(0, 500, step))
    by_one, at_once = ChatHistory([ChatImported((), pairs)]), ChatHistory([ChatImported((), pairs)])
    assert ids(at_once) == ids(sorted(pairs, key=lambda pair: pair.at))
    for kind in (PairsDeleted, PairsRestored):
        for each in some:
            by_one.apply(kind((each,)))
        assert at_once.apply(kind(some)) == HistoryChange(some)
        assert ids(at_once) == ids(by_one)
    at_once.apply(PairsCompacted(summary_of(*some)))
    assert len(at_once) == 500 - len(some) + 1
    at_once.apply(CompactionUndone("S"))
    assert ids(at_once) == ids(by_one)


def test_many_that_are_imported_stand_among_those_that_were_there() -> None:
    there = tuple(MessagePair(id=f"a{n}", at=float(n)) for n in range(0, 400, 2))
    fresh = tuple(MessagePair(id=f"b{n}", at=float(n)) for n in range(301, 100, -2))
    history = ChatHistory([ChatImported((), there), ChatImported((), fresh), ChatImported((), fresh)])
    assert ids(history) == ids(sorted((*there, *fresh), key=lambda pair: pair.at))
