import json

import msgspec

from sightline.chat.core.facts import PairAsked, PairCancelled, PairsHandled, TopicChanged
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.imports.formats import to_json, to_jsonl, to_markdown
from sightline.chat.core.imports.reading import read_chat
from sightline.chat.core.pair import ChatAnswer, MessagePair, text_answer
from sightline.chat.core.topics import Topic
from sightline.model.parts import Image, Inline, Text, Thinking, ToolCall, ToolResult
from sightline.model.request import Message
from sightline.settings import ChatSettings
from tests.chat.core.stage import NOW, answered, history_of

TOPICS = [Topic(id="ai", name="AI", system_prompt="Be exact."), Topic(id="re", name="Research", parent="ai")]
ROUNDS = ChatAnswer(
    messages=(
        Message("assistant", (Thinking("hm"), ToolCall("c1", "look_up", '{"q":1}'))),
        Message("tool", (ToolResult("c1", (Text("found"),)),)),
        Message("assistant", (Text("It is so."),)),
    ),
    finish="stop",
    exchange="x_1",
)


def history() -> ChatHistory:
    made = history_of(
        MessagePair(
            id="a",
            topic="re",
            model="acme",
            user_text="# Why?\n\n```py\nUser: not a name\n```\n## User\n\\done",
            answer=text_answer("So:\nUser: it is"),
            attachments=(Image(Inline("image/png", "iVBORw0KGgo=")),),
            star=2,
            at=NOW,
        ),
        MessagePair(
            id="b",
            topic="re",
            model="acme",
            user_text="Look it up.",
            answer=ROUNDS,
            flag="grey",
            at=NOW + 1.5,
            run="r_1",
            is_edited=True,
        ),
        MessagePair(id="c", model="acme", user_text="And now?", answer=text_answer("Now."), at=NOW + 2),
        topics=TOPICS,
    )
    made.apply(PairAsked(MessagePair(id="d", user_text="Never mind.", at=NOW + 3)))
    made.apply(PairCancelled("d"))
    made.apply(PairsHandled(("c",), "out"))
    return made


def test_json_keeps_everything_under_the_names_of_the_workflow() -> None:
    kept = history()
    document = json.loads(to_json(kept, [*kept], now=NOW, filter_text="s>=1"))
    assert document["filterInput"] == "s>=1"
    assert document["pairs"][0].keys() >= {
        "id", "topicId", "model", "userText", "assistantText", "star", "colorFlag", "lifecycleState", "timestamp"
    }  # fmt: skip
    gathered = read_chat(to_json(kept, [*kept], now=NOW))
    again = ChatHistory([gathered.fact])
    assert gathered.notes == ()
    assert [*again] == [*kept]
    assert {topic.id: topic for topic in again.topics} == {topic.id: topic for topic in kept.topics}


def test_topics_above_come_first_however_they_were_moved() -> None:
    kept = history()
    kept.apply(TopicChanged(Topic(id="ai", name="AI", parent="")))
    moved = history_of(topics=[Topic(id="x", name="X"), Topic(id="y", name="Y")])
    moved.apply(TopicChanged(Topic(id="x", name="X", parent="y")))
    assert ChatHistory([read_chat(to_json(moved, [], now=NOW)).fact]).topics.path("x") == ("Y", "X")


def test_markdown_is_read_again_with_every_word() -> None:
    kept = history()
    text = to_markdown(kept, kept)
    assert "## AI > Research — acme — " in text.decode()
    assert "> [error: cancelled]" in text.decode()
    again = [*ChatHistory([read_chat(text).fact])]
    assert [pair.user_text for pair in again] == [pair.user_text for pair in kept]
    assert [pair.assistant_text for pair in again][:3] == [pair.assistant_text for pair in kept][:3]
    assert [pair.model for pair in again] == ["acme", "acme", "acme", ""]
    assert [pair.at for pair in again] == [pair.at for pair in kept]


def test_training_lines_have_whole_answers_only() -> None:
    kept = history()
    lines = [json.loads(line) for line in to_jsonl(kept, kept, ChatSettings()).splitlines()]
    assert [line["messages"][-1]["content"] for line in lines] == ["So:\nUser: it is", "It is so.", "Now."]
    assert lines[0]["messages"][0] == {"role": "system", "content": "Be exact."}
    assert [message["role"] for message in lines[1]["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    assert lines[2]["messages"][0]["role"] == "user"


def test_training_lines_can_be_whole_topics() -> None:
    kept = history()
    lines = [json.loads(line) for line in to_jsonl(kept, kept, ChatSettings(), whole_topics=True).splitlines()]
    assert [len(line["messages"]) for line in lines] == [7, 2]


def test_a_pair_of_nothing_is_no_line() -> None:
    empty = msgspec.structs.replace(answered("a"), user_text="", answer=text_answer(" "))
    assert to_jsonl(history_of(empty), [empty], ChatSettings()) == b""


def test_a_side_that_says_nothing_has_no_heading() -> None:
    silent = history_of(MessagePair(id="a", answer=text_answer("Hello."), at=NOW))
    assert b"### User" not in to_markdown(silent, silent)


def test_what_no_text_can_hold_does_not_stop_an_export() -> None:
    odd = history_of(MessagePair(id="a", user_text="\ud800?", at=NOW))
    assert b"??" in to_markdown(odd, odd)
    assert read_chat(to_json(odd, [*odd], now=NOW)).fact.pairs[0].user_text == "\ud800?"
