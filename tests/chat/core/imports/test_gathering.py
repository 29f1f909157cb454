from sightline.chat.core.imports.conversations import Gathering, ImportedTurn, tool_name
from sightline.chat.core.pair import MessagePair
from sightline.model.parts import Image, Link, Text, ToolCall

PICTURE = Image(Link("https://example.org/a.png"))


def test_a_question_and_all_that_follows_are_a_pair() -> None:
    gathering = Gathering("test")
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
    assert second.answer is not None
    assert second.answer.finish == "tool_calls"
    assert (third.answer, third.state, third.at) == (None, "idle", 4.0)


def test_nothing_said_is_no_pair() -> None:
    gathering = Gathering("test")
    gathering.conversation("k", "t", [])
    assert gathering.finish().fact.pairs == ()


def test_the_same_source_gives_the_same_ids() -> None:
    def pairs() -> tuple[MessagePair, ...]:
        gathering = Gathering("test")
        gathering.conversation("k", gathering.topic("k", "Title"), [ImportedTurn("user", (Text("a"),), "1")])
        gathering.pair(MessagePair(id=gathering.own_id("x")))
        return gathering.finish().fact.pairs

    assert pairs() == pairs()
    assert len({pair.id for pair in pairs()}) == 2


def test_topics_of_one_name_are_numbered() -> None:
    gathering = Gathering("test")
    for key in "abc":
        gathering.topic(key, " A\n b ")
    gathering.topic("d", "")
    assert [topic.name for topic in gathering.finish().fact.topics] == ["A b", "A b (2)", "A b (3)", "Untitled"]


def test_what_was_lost_is_counted() -> None:
    gathering = Gathering("test")
    gathering.lose("pictures were left out")
    gathering.lose("pictures were left out", 2)
    assert gathering.finish().notes == ("pictures were left out: 3",)


def test_names_of_tools_are_such_as_everybody_takes() -> None:
    assert tool_name("dalle.text2im") == "dalle_text2im"
    assert tool_name("") == "tool"
