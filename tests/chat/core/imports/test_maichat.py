import pytest

from sightline.chat.core.imports.formats import OWN_SCHEMA, read_maichat
from sightline.errors import Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Citation


def exported(*pairs: Json, **more: Json) -> JsonObject:
    return {"schemaVersion": "1", "count": len(pairs), "pairs": list(pairs), **more}


PAIR: JsonObject = {
    "id": "p1",
    "createdAt": "2023-11-14T22:13:20.000Z",
    "topicPath": "AI > Research",
    "model": "gpt-4o",
    "stars": 7,
    "flagColor": "g",
    "userText": "Why?",
    "assistantText": "So.",
    "errorState": False,
}


def test_pairs_come_with_their_marks_and_topics() -> None:
    gathered = read_maichat(exported(PAIR, {**PAIR, "id": "p2", "topicPath": "AI", "star": 1}))
    first, second = gathered.fact.pairs
    assert (first.user_text, first.assistant_text, first.star, first.flag) == ("Why?", "So.", 3, "grey")
    assert (first.model, first.at, first.state) == ("gpt-4o", 1_700_000_000.0, "complete")
    research, ai = gathered.fact.topics[1], gathered.fact.topics[0]
    assert (ai.name, research.name, research.parent) == ("AI", "Research", ai.id)
    assert (first.topic, second.topic, second.star) == (research.id, ai.id, 1)


def test_an_error_stays_one() -> None:
    error: JsonObject = {"userText": "Why?", "errorState": True, "errorMessage": "401", "createdAt": 1_700_000_000_000}
    silent: JsonObject = {"userText": "Well?", "errorState": True}
    first, second = read_maichat(exported(error, silent)).fact.pairs
    assert (first.state, first.trouble.message, first.at, first.topic) == ("error", "401", 1_700_000_000.0, "")
    assert second.trouble is not None
    assert first.id != second.id


def test_pair_without_an_answer_is_idle_and_missing_images_are_noted() -> None:
    gathered = read_maichat(exported({"id": "x", "userText": "Why?", "stars": "many", "attachments": ["img1", "img2"]}))
    assert (gathered.fact.pairs[0].state, gathered.fact.pairs[0].star) == ("idle", 0)
    assert gathered.notes == ("pictures and files are not in the export: 2",)


def test_our_own_export_must_be_whole() -> None:
    wrong = exported({"id": "x", "kept": {"answer": {"messages": 5}}}, schema=OWN_SCHEMA)
    with pytest.raises(Fault) as caught:
        read_maichat(wrong)
    assert "cannot be read" in caught.value.message


def test_citations_are_imported_and_those_without_url_are_noted() -> None:
    sources = ["https://a.example", {"url": "https://b.example", "title": "B"}, {"title": "none"}, 5]
    gathered = read_maichat(exported({"id": "x", "userText": "Why?", "assistantText": "So.", "citations": sources}))
    answer = gathered.fact.pairs[0].answer
    assert (answer.text, answer.finish) == ("So.", "stop")
    assert answer.citations == (Citation("https://a.example"), Citation("https://b.example", "B"))
    assert gathered.notes == ("citations without an address were left out: 2",)


def test_what_looks_like_it() -> None:
    assert read_maichat([]).fact.pairs == ()
