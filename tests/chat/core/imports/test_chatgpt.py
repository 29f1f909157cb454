from sightline.chat.core.imports.reading import read_chatgpt
from sightline.chat.core.sizing import messages_of
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Citation, Thinking


def node(name: str, parent: str | None, role: str, content: Json, **more: Json) -> JsonObject:
    body = {"content_type": "text", "parts": [content]} if isinstance(content, str) else content
    message: JsonObject = {
        "id": name,
        "author": {"role": role},
        "create_time": 100.0 + len(name),
        "content": body,
        **more,
    }
    return {"id": name, "parent": parent, "children": [], "message": message}


def conversation(*nodes: JsonObject, leaf: str = "", **more: Json) -> JsonObject:
    root: JsonObject = {"id": "root", "parent": None, "children": [], "message": None}
    mapping: JsonObject = {"root": root} | {str(each["id"]): each for each in nodes}
    return {"title": "Sky", "create_time": 50.0, "mapping": mapping, "current_node": leaf, "id": "k", **more}


def test_the_branch_on_screen_becomes_pairs() -> None:
    talk = conversation(
        node("s", "root", "system", ""),
        node("u", "s", "user", "Why is it blue?"),
        node("a", "u", "assistant", "An old answer."),
        node("b", "u", "assistant", "Scattering.", metadata={"model_slug": "gpt-4o"}),
        node("u2", "b", "user", "Thanks!"),
        leaf="u2",
    )
    gathered = read_chatgpt([talk])
    assert gathered.source == "chatgpt"
    assert [topic.name for topic in gathered.fact.topics] == ["ChatGPT", "Sky"]
    first, second = gathered.fact.pairs
    assert (first.user_text, first.assistant_text, first.model, first.at) == (
        "Why is it blue?",
        "Scattering.",
        "gpt-4o",
        101,
    )
    assert (second.user_text, second.state, second.topic) == ("Thanks!", "idle", gathered.fact.topics[1].id)
    assert gathered.notes == ("messages of other branches were left out: 1",)


def test_without_a_leaf_the_newest_end_is_taken() -> None:
    talk = conversation(
        node("u", "root", "user", "Hi"), node("a", "u", "assistant", "old"), node("longer", "u", "assistant", "new")
    )
    assert read_chatgpt(talk).fact.pairs[0].assistant_text == "new"
    assert read_chatgpt([conversation(), {"mapping": {}}]).fact.pairs == ()


def test_calls_of_tools_and_their_results_are_kept_together() -> None:
    talk = conversation(
        node("u", "root", "user", "Plot it"),
        node("t", "u", "assistant", {"content_type": "thoughts", "thoughts": [{"summary": "Hm", "content": ""}, {}]}),
        node("r", "t", "assistant", {"content_type": "reasoning_recap", "content": "Thought for 3 s"}),
        node("c", "r", "assistant", {"content_type": "code", "text": "plot()"}, recipient="python.run"),
        node("o", "c", "tool", {"content_type": "execution_output", "text": "done"}),
        node("a", "o", "assistant", "Here.", recipient="all"),
        leaf="a",
        default_model_slug="o3",
    )
    (pair,) = read_chatgpt(talk).fact.pairs
    assert (pair.assistant_text, pair.model) == ("Here.", "o3")
    assert (pair.answer.messages[0].parts[0], pair.answer.tools) == (Thinking("Hm"), ("python_run",))
    assert [message.role for message in messages_of(pair, "openai-chat")] == ["user", "assistant", "tool", "assistant"]


def test_skipped_content_is_noted() -> None:
    picture: JsonObject = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://x"}
    talk = conversation(
        node("i", "root", "system", "Custom instructions"),
        node("h", "i", "user", "hidden", metadata={"is_visually_hidden_from_conversation": True}),
        node("w", "h", "assistant", "weightless", weight=0),
        node("u", "w", "user", {"content_type": "multimodal_text", "parts": [picture, "What is it?"]}),
        node("o", "u", "tool", "no call"),
        node("e", "o", "assistant", ""),
        leaf="e",
    )
    gathered = read_chatgpt(talk)
    assert [pair.user_text for pair in gathered.fact.pairs] == ["What is it?"]
    assert gathered.notes == (
        "hidden instructions were left out: 1",
        "pictures and files are not in the export: 1",
        "results of tools without a call were left out: 1",
    )


def test_a_tree_that_runs_in_circles_ends() -> None:
    talk = conversation(node("a", "b", "user", "x"), node("b", "a", "assistant", "y"), leaf="b")
    assert len(read_chatgpt(talk).fact.pairs) == 1


def test_citations_are_imported_and_those_without_url_are_noted() -> None:
    page: Json = {"start_ix": 0, "end_ix": 3, "metadata": {"url": "https://a.example", "title": "A"}}
    said = node("b", "a", "assistant", "So.", metadata={"citations": [page, {"metadata": {"type": "file"}}]})
    thoughts: Json = {"content_type": "thoughts", "thoughts": [{"content": "hm"}]}
    thought = node("c", "b", "assistant", thoughts, metadata={"citations": [page]})
    gathered = read_chatgpt(conversation(node("a", None, "user", "Why?"), said, thought, leaf="c"))
    answer = gathered.fact.pairs[0].answer
    assert answer.citations == (Citation("https://a.example", "A", start=0, end=3),)
    assert gathered.notes == ("citations without an address were left out: 1", "citations of no words were left out: 1")
