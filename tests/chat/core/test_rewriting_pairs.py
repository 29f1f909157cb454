"""The history keeps what was sent of a request that a person changed while it was held."""

import json
from typing import Any

import pytest

from sightline.chat.core.facts import CompactionUndone, PairRevised, pair_after
from sightline.chat.core.pair import ChatAnswer, MessagePair, text_answer
from sightline.chat.core.rewriting import INSTRUCTION, compaction_fact, compare, drafting, revise_pairs, revision
from sightline.chat.core.topics import Topic
from sightline.editing.comparing import SectionChange, changes_between
from sightline.editing.draft import Draft
from sightline.editing.operations import Delete, Edit, Insert, Remove, SetText
from sightline.errors import Fault
from sightline.model.parts import Image, Inline, Text, ToolCall, ToolResult
from sightline.model.request import Message
from tests.chat.core.stage import answered, history_of, ids, view_of


def test_draft_prompt_contains_the_selected_pairs_and_the_instruction() -> None:
    view = view_of(history_of(*map(answered, "abc")))
    prompt = drafting(view.visible[:2], view.sizer, INSTRUCTION)
    assert [message.role for message in prompt.messages] == ["user", "assistant", "user", "assistant", "user"]
    assert prompt.messages[-1].parts == (Text(INSTRUCTION),)
    assert prompt.instructions == ""
    with pytest.raises(Fault):
        drafting([], view.sizer, INSTRUCTION)


def test_before_and_after_are_compared() -> None:
    view = view_of(history_of(*map(answered, "abc")))
    shown = compare(view.visible[:2], "in short", view.sizer)
    assert (shown.before.tokens, shown.after.tokens) == (40, 8)
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
    assert view.figures.history == 28
    view.on_change(history.apply(CompactionUndone("S")))
    assert ids(view.included) == "abc"
    assert view.figures.history == 60


@pytest.mark.parametrize(("chosen", "text"), [((), "in short"), (("a",), " ")])
def test_a_summary_needs_pairs_and_words(chosen: tuple[str, ...], text: str) -> None:
    with pytest.raises(Fault):
        compaction_fact(history_of(answered("a")), chosen, text, new_id="S")


PICTURE = Image(Inline("image/png", "aGk="))
URL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


def chat(*messages: dict[str, Any]) -> Draft:
    body = {"model": "m", "messages": [{"role": "system", "content": "Be kind."}, *messages]}
    return Draft.of(json.dumps(body).encode(), "openai-chat")


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def at(draft: Draft, number: int) -> str:
    """The id of a message's section, the system prompt's being 0."""
    return draft.sections[number].id


def changes(draft: Draft, *edits: Edit) -> tuple[SectionChange, ...]:
    now = draft
    for edit in edits:
        now = now.with_edit(edit)
    return changes_between(draft, now)


def pair(name: str, text: str, said: str | None = None, **more: Any) -> MessagePair:
    return MessagePair(id=name, user_text=text, answer=None if said is None else text_answer(said), **more)


def test_edited_text_is_assigned_to_its_original_pair() -> None:
    draft = chat(user("one"), assistant("yes"), user("one"), assistant("yes"), user("now"))
    found = changes(
        draft,
        SetText(section=at(draft, 3), text="two"),
        SetText(section=at(draft, 4), text="no"),
        SetText(section=at(draft, 5), text="later"),
        SetText(section=at(draft, 0), text="Be terse."),
    )
    pairs = [pair("a", "one", "yes"), pair("b", "one", "yes"), pair("c", "now")]
    now = revise_pairs(pairs, "c", found)
    assert list(now) == ["b", "c"]
    assert (now["b"].user_text, now["b"].assistant_text, now["b"].is_edited) == ("two", "no", True)
    assert (now["c"].user_text, now["c"].answer) == ("later", None)
    assert revision(pairs[2], now["c"]) == PairRevised("c", "later")
    fact = revision(pairs[1], now["b"])
    assert pair_after(pairs[1], fact) == now["b"]


def test_nothing_was_changed_and_nothing_is_revised() -> None:
    draft = chat(user("one"))
    assert changes(draft) == ()
    assert changes(draft, Insert(pointer="/messages/-", value=user("more"))) == ()
    assert revise_pairs([pair("a", "one")], "a", ()) == {}


def test_what_was_left_out_of_one_request_stays_but_for_the_question() -> None:
    draft = chat(user("one"), assistant("yes"), user("now"))
    found = changes(draft, Delete(section=at(draft, 1)), Remove(pointer="/messages/2"))
    now = revise_pairs([pair("a", "one", "yes"), pair("b", "now")], "b", found)
    assert list(now) == ["b"]
    assert now["b"].user_text == ""


def test_edit_of_text_that_matches_no_pair_is_ignored() -> None:
    draft = chat(user("one, as a mask has it"), assistant("yes"), user("now"))
    found = changes(draft, SetText(section=at(draft, 1), text="two"))
    assert revise_pairs([pair("a", "one", "yes"), pair("b", "now")], "b", found) == {}


def test_the_question_is_what_was_sent_whatever_masks_made_of_it_before() -> None:
    draft = chat(user("now, masked"))
    found = changes(draft, SetText(section=at(draft, 1), text="now, masked and edited"))
    assert revise_pairs([pair("a", "now")], "a", found)["a"].user_text == "now, masked and edited"


def test_attachments_that_were_deleted_are_gone_and_words_stay_in_their_parts() -> None:
    parts = [URL, {"type": "text", "text": "A file. "}, {"type": "text", "text": "What is it?"}]
    draft = chat(user(parts))
    section = draft.sections[1]
    asked = pair("a", "What is it?", attachments=(PICTURE, Text("A file. ")))
    picture = section.parts[0].id
    now = revise_pairs([asked], "a", changes(draft, Delete(section=section.id, part=picture)))["a"]
    assert (now.attachments, now.user_text) == ((Text("A file. "),), "What is it?")
    now = revise_pairs([asked], "a", changes(draft, SetText(section=section.id, text="A file. What was it?")))["a"]
    assert (now.attachments, now.user_text) == ((PICTURE, Text("A file. ")), "What was it?")
    words = section.parts[2].id
    now = revise_pairs([asked], "a", changes(draft, Delete(section=section.id, part=words)))["a"]
    assert (now.attachments, now.user_text) == ((PICTURE, Text("A file. ")), "")
    other = pair("a", "What is it?", attachments=(Text("A file. "),))
    now = revise_pairs([other], "a", changes(draft, Delete(section=section.id, part=picture)))
    assert now["a"].attachments == (Text("A file. "),), "nobody can say which part that was"


def test_a_picture_that_got_words_has_them() -> None:
    draft = chat(user([URL]))
    found = changes(draft, SetText(section=at(draft, 1), text="What is it?"))
    now = revise_pairs([pair("a", "", attachments=(PICTURE,))], "a", found)["a"]
    assert (now.attachments, now.user_text) == ((PICTURE,), "What is it?")


def test_rounds_with_tools_are_kept_as_they_were_sent() -> None:
    def call(name: str, arguments: str) -> dict[str, Any]:
        return {"id": name, "type": "function", "function": {"name": "look", "arguments": arguments}}

    draft = chat(
        user("go"),
        assistant(None, tool_calls=[call("c1", '{"a": 1}')]),
        {"role": "tool", "tool_call_id": "c1", "content": "found it"},
        user("By the way."),
    )
    rounds = (
        Message("assistant", (ToolCall("c1", "look", '{"a": 1}'), ToolCall("c0", "look", '{"a": 1}'))),
        Message("tool", (ToolResult("c0", (PICTURE, Text("other"))), ToolResult("c1", (PICTURE, Text("found it"))))),
        Message("user", (Text("By the way."),)),
        Message("assistant", (Text("Done."), Text(" So.")), bare=False),
    )
    asked = pair("a", "go", None)
    asked = MessagePair(id="a", user_text="go", answer=ChatAnswer(messages=rounds))
    found = changes(
        draft,
        SetText(section=at(draft, 2), text='{"a": 2}'),
        SetText(section=at(draft, 3), text="found nothing"),
    )
    now = revise_pairs([asked], "a", found)["a"].answer
    assert [part.arguments for part in now.messages[0].parts] == ['{"a": 2}', '{"a": 1}']
    assert now.messages[1].parts[1].parts == (PICTURE, Text("found nothing"))
    assert now.messages[1].parts[0] == rounds[1].parts[0]
    assert now.messages[2:] == rounds[2:]


def test_an_answer_in_several_texts_keeps_them() -> None:
    draft = chat(user("go"), assistant("Done. So."), user("now"))
    found = changes(draft, SetText(section=at(draft, 2), text="Done. Well."))
    message = Message("assistant", (Text("Done."), Text(" So.")))
    before = MessagePair(id="a", user_text="go", answer=ChatAnswer(messages=(message,)))
    now = revise_pairs([before, pair("b", "now")], "b", found)["a"].answer
    assert [part.text for part in now.messages[0].parts] == ["Done.", " Well."]
