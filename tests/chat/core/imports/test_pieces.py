from sightline.chat.core.facts import ChatImported
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.imports.pieces import pieces_of
from sightline.chat.core.pair import MessagePair
from sightline.chat.core.topics import Topic

A, C, D = (Topic(id=name.lower(), name=name) for name in "ACD")
TOPICS = (A, Topic(id="b", name="B", parent="a"), C, D)


def pair(number: int, topic: str = "", at: float | None = None) -> MessagePair:
    return MessagePair(id=f"p{number}", topic=topic, at=float(number) if at is None else at)


def test_a_small_import_is_one_piece() -> None:
    fact = ChatImported(TOPICS, (pair(2), pair(1)))
    assert list(pieces_of(fact)) == [fact]


def test_each_piece_has_the_topics_of_its_pairs_and_the_first_has_all() -> None:
    fact = ChatImported(TOPICS, (pair(3, "c"), pair(1, "b"), pair(2, "elsewhere"), pair(5, "b"), pair(4, "b")))
    told = [
        ([topic.id for topic in piece.topics], [each.id for each in piece.pairs]) for piece in pieces_of(fact, most=2)
    ]
    assert told == [(["a", "b", "c", "d"], ["p1", "p2"]), (["a", "b", "c"], ["p3", "p4"]), (["a", "b"], ["p5"])]


def test_pieces_make_the_history_that_the_whole_makes() -> None:
    topics = (Topic(id="x", name="a"), Topic(id="y", name="B", parent="x"))
    before = ChatImported(topics, (pair(100), pair(101, at=2.0)))
    fact = ChatImported(TOPICS, tuple(pair(n, ("b", "c", "nowhere")[n % 3], at=float(n // 2)) for n in range(9, 0, -1)))
    whole, pieced = ChatHistory([before, fact]), ChatHistory([before, *pieces_of(fact, most=2)])
    assert list(pieced) == list(whole)
    assert {each.topic for each in pieced} == {"y", "c", ""}
    assert list(pieced.topics) == list(whole.topics)
