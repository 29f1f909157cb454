"""Splits a large import into pieces, so that other work can run in between."""

from collections.abc import Iterator

from sightline.chat.core.facts import ChatImported
from sightline.chat.core.topics import Topic

MOST_PAIRS = 1000


def pieces_of(fact: ChatImported, most: int = MOST_PAIRS) -> Iterator[ChatImported]:
    """Facts that are equivalent together, oldest pairs first. All topics are in the first piece; each piece repeats the
    topics of its pairs, because they may have another id here."""
    if len(fact.pairs) <= most:
        yield fact
        return
    pairs = sorted(fact.pairs, key=lambda pair: pair.at)
    known = {topic.id: topic for topic in fact.topics}
    for start in range(0, len(pairs), most):
        piece = tuple(pairs[start : start + most])
        needed = known.keys() if not start else _with_those_above({pair.topic for pair in piece}, known)
        yield ChatImported(tuple(topic for topic in fact.topics if topic.id in needed), piece)


def _with_those_above(topics: set[str], known: dict[str, Topic]) -> set[str]:
    found: set[str] = set()
    for topic in topics:
        while topic in known and topic not in found:
            found.add(topic)
            topic = known[topic].parent
    return found
