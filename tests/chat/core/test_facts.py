from typing import get_args

import msgspec
import pytest

from sightline.chat.core.facts import ChatFact, ChatImported, Event, Growth, Mark, PairAsked, PairsStarred, Presence
from sightline.chat.core.pair import MessagePair
from sightline.chat.core.topics import Topic


def test_every_fact_has_its_own_kind_and_its_own_place() -> None:
    every = get_args(ChatFact)
    assert len({msgspec.inspect.type_info(fact).tag for fact in every}) == len(every)
    assert set(every) == {*get_args(Event), *get_args(Mark), *get_args(Presence), *get_args(Growth)}


@pytest.mark.parametrize(
    "fact",
    [
        PairAsked(MessagePair(id="a", user_text="why?"), replaces="b"),
        PairsStarred(("a", "b"), 3),
        ChatImported((Topic(id="t", name="T"),), (MessagePair(id="a"),)),
    ],
)
def test_a_fact_can_be_kept_and_read_again(fact: ChatFact) -> None:
    assert msgspec.json.decode(msgspec.json.encode(fact), type=ChatFact) == fact


def test_more_than_three_stars_are_no_fact() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"kind":"starred","ids":["a"],"star":4}', type=ChatFact)
