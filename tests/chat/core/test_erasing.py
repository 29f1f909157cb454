"""Deleting for good what was said in a pair: every fact loses its words, and the history folds as before."""

import msgspec
import pytest

from sightline.chat.core.facts import (
    ERASED,
    ChatFact,
    ChatImported,
    PairAnswered,
    PairAsked,
    PairCancelled,
    PairEdited,
    PairFailed,
    PairReasked,
    PairRevised,
    PairsCompacted,
    PairsStarred,
    erase_texts,
    exchanges_in,
)
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.pair import ChatAnswer, MessagePair, Trouble, text_answer
from sightline.model.parts import Text

WORD = "planted"
ANSWER = msgspec.structs.replace(text_answer(WORD), exchange="x_1", run="r_1")
PAIR = MessagePair(
    id="p",
    user_text=WORD,
    attachments=(Text(WORD),),
    answer=ANSWER,
    earlier=(msgspec.structs.replace(ANSWER, exchange="x_0"),),
    trouble=Trouble("network", WORD),
    exchange="x_2",
)
SUMMARY = MessagePair(id="s", user_text=WORD, summary_of=("p",))
FACTS: list[ChatFact] = [
    PairAsked(PAIR),
    PairAnswered("p", ANSWER),
    PairFailed("p", Trouble("network", WORD), ANSWER, "x_1"),
    PairFailed("p", Trouble("network", WORD)),
    PairCancelled("p", ANSWER, "x_1"),
    PairEdited("p", WORD, WORD, (Text(WORD),)),
    PairEdited("p", assistant_text=WORD),
    PairRevised("p", WORD, (Text(WORD),), ANSWER),
    PairsCompacted(SUMMARY),
    ChatImported((), (PAIR,)),
]


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: type(fact).__name__)
def test_no_word_of_the_pair_is_left_and_no_name_of_its_exchange(fact: ChatFact) -> None:
    after = msgspec.json.encode(erase_texts(fact, {"p"})).decode()
    assert WORD not in after
    assert "x_" not in after
    assert ERASED in after


@pytest.mark.parametrize("fact", [*FACTS, PairReasked("p"), PairsStarred(("p",), 2)])
def test_other_pairs_and_marks_stay_as_they_are(fact: ChatFact) -> None:
    assert erase_texts(fact, {"q"}) == fact
    assert erase_texts(PairReasked("p"), {"p"}) == PairReasked("p")


def test_what_was_not_changed_stays_unchanged() -> None:
    assert erase_texts(PairEdited("p", user_text=WORD), {"p"}) == PairEdited("p", user_text=ERASED)
    assert erase_texts(PairRevised("p"), {"p"}) == PairRevised("p")
    assert erase_texts(PairAnswered("p", ChatAnswer()), {"p"}) == PairAnswered("p", ChatAnswer())


def test_the_exchanges_of_a_fact_by_pair() -> None:
    assert exchanges_in(PairAsked(PAIR)) == {"p": ("x_2", "x_0", "x_1")}
    assert exchanges_in(PairsCompacted(SUMMARY)) == {"s": ("",)}
    assert exchanges_in(PairAnswered("p", ANSWER)) == {"p": ("x_1",)}
    assert exchanges_in(PairFailed("p", Trouble("a", "b"), exchange="x_3")) == {"p": ("x_3",)}
    assert exchanges_in(PairCancelled("p", exchange="x_3")) == {"p": ("x_3",)}
    assert exchanges_in(ChatImported((), (PAIR, SUMMARY))) == {"p": ("x_2", "x_0", "x_1"), "s": ("",)}
    assert exchanges_in(PairsStarred(("p",), 1)) == {}


def test_the_history_has_the_same_pairs_with_the_same_marks() -> None:
    asked = MessagePair(id="p", user_text=WORD, state="sending")
    facts: list[ChatFact] = [PairAsked(asked), PairAnswered("p", ANSWER), PairsStarred(("p",), 2)]
    (pair,) = ChatHistory(erase_texts(fact, {"p"}) for fact in facts)
    assert (pair.id, pair.star, pair.state, pair.user_text, pair.assistant_text) == ("p", 2, "complete", ERASED, ERASED)
