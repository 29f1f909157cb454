import pytest

from sightline.chat.core.facts import ChatImported
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.imports.conversations import (
    ChatImporter,
    ImportedTurn,
    member,
    members,
    moment,
    text,
    tool_name,
)
from sightline.chat.core.imports.reading import pieces_of, read_chat
from sightline.chat.core.pair import MessagePair
from sightline.chat.core.topics import Topic
from sightline.errors import Code, Fault
from sightline.model.json import Json
from sightline.model.parts import Image, Link, Text, ToolCall

PICTURE = Image(Link("https://example.org/a.png"))


def test_a_question_and_all_that_follows_are_a_pair() -> None:
    gathering = ChatImporter("test")
    turns = [
        ImportedTurn("assistant", (Text("Hello."),), "0", 1.0, "acme"),
        ImportedTurn("user", (Text("Why?"), PICTURE, Text("And how?")), "1", 2.0),
        ImportedTurn("assistant", (ToolCall("c", "look_up", "{}"),), "2", 3.0, "acme"),
        ImportedTurn("user", (Text("Well?"),), "3", 4.0),
    ]
    gathering.conversation("k", "t", turns)
    first, second, third = gathering.finish().fact.pairs
    assert (first.user_text, first.assistant_text, first.state) == ("", "Hello.", "complete")
    assert (second.user_text, second.attachments, second.model) == ("Why?\n\nAnd how?", (PICTURE,), "acme")
    assert second.answer.finish == "tool_calls"
    assert (third.answer, third.state, third.at) == (None, "idle", 4.0)


def test_empty_conversation_yields_no_pair() -> None:
    gathering = ChatImporter("test")
    gathering.conversation("k", "t", [])
    assert gathering.finish().fact.pairs == ()


def test_the_same_source_gives_the_same_ids() -> None:
    def pairs() -> tuple[MessagePair, ...]:
        gathering = ChatImporter("test")
        gathering.conversation("k", gathering.topic("k", "Title"), [ImportedTurn("user", (Text("a"),), "1")])
        gathering.pairs.append(MessagePair(id=gathering.id_of("pair", "x")))
        return gathering.finish().fact.pairs

    assert pairs() == pairs()
    assert len({pair.id for pair in pairs()}) == 2


def test_topics_of_one_name_are_numbered() -> None:
    gathering = ChatImporter("test")
    for key in "abc":
        gathering.topic(key, " A\n b ")
    gathering.topic("d", "")
    assert [topic.name for topic in gathering.finish().fact.topics] == ["A b", "A b (2)", "A b (3)", "Untitled"]


def test_what_was_lost_is_counted() -> None:
    gathering = ChatImporter("test")
    gathering.lose("pictures were left out")
    gathering.lose("pictures were left out", 2)
    assert gathering.finish().notes == ("pictures were left out: 3",)


def test_tool_names_are_normalized_to_allowed_characters() -> None:
    assert tool_name("dalle.text2im") == "dalle_text2im"
    assert tool_name("") == "tool"


def test_what_is_not_as_expected_is_not_there() -> None:
    holder: dict[str, Json] = {"a": "x", "b": 1, "c": {"d": 2}, "e": [{"f": 3}, 4]}
    assert (text(holder, "a"), text(holder, "b"), text(holder, "z")) == ("x", "", "")
    assert (member(holder, "c"), member(holder, "a")) == ({"d": 2}, {})
    assert (members(holder["e"]), members(holder["a"])) == ([{"f": 3}], [])


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (1_700_000_000, 1_700_000_000.0),
        (1_700_000_000.5, 1_700_000_000.5),
        (1_700_000_000_500, 1_700_000_000.5),
        ("2023-11-14T22:13:20Z", 1_700_000_000.0),
        ("2023-11-14T22:13:20.500+00:00", 1_700_000_000.5),
        ("2023-11-14T22:13:20", 0.0),
        ("yesterday", 0.0),
        ("0001-01-01T00:00:00Z", 0.0),
        (None, 0.0),
        (True, 0.0),
        (-5, 0.0),
        (10**13, 10.0**10),
        (9 * 10**13, 0.0),
        (10**400, 0.0),
        ("0001-01-01T00:00:00+14:00", 0.0),
    ],
)
def test_times_are_read_however_they_are_written(value: Json, seconds: float) -> None:
    assert moment(value) == seconds


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


@pytest.mark.parametrize(
    ("data", "source"),
    [
        (b'[{"title":"x","mapping":{}}]', "chatgpt"),
        (b'[{"name":"x","chat_messages":[]}]', "claude"),
        (b'\xef\xbb\xbf {"schemaVersion":"1","pairs":[]}', "maichat"),
        (b'{"schema":"sightline-chat/1","pairs":[]}', "sightline"),
        (b"\xef\xbb\xbf## User\nWhy?", "markdown"),
    ],
)
def test_an_export_is_known_by_its_looks(data: bytes, source: str) -> None:
    assert read_chat(data).source == source


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"PK\x03\x04...", "archive"),
        (b'{"some":"json"}', "no export"),
        (b"[not json", ""),
        (b"\xff\xfe\x00", "no text"),
        (b"just words", "names a speaker"),
    ],
)
def test_anything_else_is_refused_with_what_to_do(data: bytes, why: str) -> None:
    with pytest.raises(Fault) as caught:
        read_chat(data)
    assert caught.value.code in (Code.INVALID_REQUEST, Code.USAGE)
    assert why in caught.value.message
    assert caught.value.hint
