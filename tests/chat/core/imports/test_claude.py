from sightline.chat.core.imports.reading import read_claude
from sightline.chat.core.sizing import messages_of
from sightline.dialects.dialect import Target
from sightline.dialects.translate import write_request
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Citation, Document, PlainText, Thinking
from sightline.model.report import Report
from sightline.model.request import Options, Request


def message(sender: str, content: Json = None, text: str = "", **more: Json) -> JsonObject:
    return {"sender": sender, "text": text, "content": content, "created_at": "2023-11-14T22:13:20Z", **more}


def conversation(*messages: Json) -> JsonObject:
    return {"uuid": "k", "name": "Sky", "chat_messages": list(messages)}


def test_messages_become_pairs() -> None:
    talk = conversation(
        message("human", text="Why?", uuid="m1"),
        message("assistant", [{"type": "text", "text": "So."}, {"type": "text", "text": " "}]),
        message("human", [{"type": "text", "text": "Well?"}]),
        message("human", text=" "),
    )
    gathered = read_claude([talk, {"chat_messages": []}])
    assert [(pair.user_text, pair.assistant_text) for pair in gathered.fact.pairs] == [("Why?", "So."), ("Well?", "")]
    assert gathered.fact.pairs[0].at == 1_700_000_000.0
    assert [topic.name for topic in gathered.fact.topics] == ["Claude", "Sky"]
    assert gathered.notes == ()


def test_thinking_tools_and_their_results_are_kept() -> None:
    blocks: Json = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "tool_use", "id": "c1", "name": "web search", "input": {"q": "sky"}},
        {"type": "tool_use", "name": "other", "input": None},
        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "blue"}, {"type": "image"}]},
        {"type": "tool_result", "content": "said", "is_error": True},
        {"type": "text", "text": "So."},
        {"type": "tool_result", "content": "of nothing"},
    ]
    gathered = read_claude(conversation(message("human", text="Why?"), message("assistant", blocks)))
    (pair,) = gathered.fact.pairs
    assert (pair.assistant_text, pair.answer.tools) == ("So.", ("web_search", "other"))
    assert pair.answer.messages[0].parts[0] == Thinking("hm")
    assert [each.role for each in messages_of(pair, "openai-chat")] == ["user", "assistant", "tool", "assistant"]
    assert gathered.notes == ("blocks of an unknown kind were left out: 1",)


def test_an_answer_may_end_with_a_result() -> None:
    blocks: Json = [{"type": "tool_use", "name": "search"}, {"type": "tool_result", "content": "found"}]
    (pair,) = read_claude(conversation(message("human", text="Why?"), message("assistant", blocks))).fact.pairs
    assert [each.role for each in messages_of(pair, "openai-chat")] == ["user", "assistant", "tool"]


def test_files_whose_text_is_there_are_attached() -> None:
    attached: Json = [{"file_name": "a.txt", "extracted_content": "words"}, {"file_name": "b.png"}]
    talk = conversation(message("user", text="Read it", attachments=attached, files=[{"file_name": "c.png"}]))
    gathered = read_claude(talk)
    assert gathered.fact.pairs[0].attachments == (Document(PlainText("words"), title="a.txt"),)
    assert gathered.notes == ("pictures and files are not in the export: 2",)


def test_citations_are_imported_and_those_without_url_are_noted() -> None:
    newer: Json = {
        "start_index": 0,
        "end_index": 3,
        "details": {"type": "web_search_citation", "url": "https://a.example"},
    }
    older: Json = {"url": "https://b.example", "title": "B", "start_index": "0"}
    block: Json = {"type": "text", "text": "So.", "citations": [newer, older, {"uuid": "x"}]}
    gathered = read_claude(conversation(message("human", text="Why?"), message("assistant", [block])))
    (pair,) = gathered.fact.pairs
    assert pair.answer.citations == (
        Citation("https://a.example", start=0, end=3),
        Citation("https://b.example", "B"),
    )
    assert gathered.notes == ("citations without an address were left out: 1",)
    for spoken in ("anthropic", "openai-chat", "openai-responses", "gemini"):
        request = Request(model="m", messages=messages_of(pair, spoken), options=Options(max_tokens=5))
        assert b"So." in write_request(request, spoken, Target(), Report())
