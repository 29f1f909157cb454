import json

import pytest

from sightline.model.json import Json
from sightline.store.digest import MOST_IN_TITLE, MOST_LETTERS, Digest, digest_of, reply_words
from tests.store.traffic import chat_body, chat_stream


def anthropic(*messages: Json, **fields: Json) -> bytes:
    return json.dumps({"model": "m", "max_tokens": 9, "messages": list(messages), **fields}).encode()


def test_what_is_new_since_the_models_last_turn_is_asked() -> None:
    digest = digest_of("openai-chat", chat_body("first", "answer", "second", system="Be brief."))
    assert (digest.title, digest.asked, digest.system) == ("second", "second", ("Be brief.",))
    assert len(digest.thread) == 3
    assert digest_of("openai-chat", chat_body("first")).asked == "first"


def test_results_calls_and_documents_are_words() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "a.py"}]}
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "chapter one"}}
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aaaa"}}
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    body = anthropic(
        {"role": "user", "content": "list"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result, document, picture]},
    )
    digest = digest_of("anthropic", body)
    assert digest.asked == "a.py\nchapter one"
    assert digest.title == "list"


def test_structured_results_are_words() -> None:
    part = {"functionResponse": {"name": "f", "response": {"city": "Oslo"}}}
    body = json.dumps({"contents": [{"role": "user", "parts": [part]}]}).encode()
    assert digest_of("gemini", body).title == digest_of("gemini", body).asked == '{"city":"Oslo"}'
    assert digest_of("gemini", body.replace(b"Oslo", b"\\ud83d")).asked == '{"city":"\\ud83d"}'


def test_a_title_is_one_short_line_of_the_persons_words() -> None:
    reminder = "<system-reminder>look out</system-reminder>"
    body = anthropic({"role": "user", "content": [{"type": "text", "text": t} for t in (reminder, "Fix\n\n the  bug")]})
    assert digest_of("anthropic", body).title == "Fix the bug"
    long = digest_of("openai-chat", chat_body("word " * 100)).title
    assert len(long) == MOST_IN_TITLE
    assert long.endswith("…")


@pytest.mark.parametrize(("name", "body"), [("openai-chat", b"{broken"), ("openai-chat", b"[]"), ("other", b"{broken")])
def test_what_is_no_request_is_text_all_the_same(name: str, body: bytes) -> None:
    text = body.decode()
    assert digest_of(name, body) == Digest(title=text, asked=text)


def test_texts_are_searched_up_to_a_bound_and_hold_nothing_odd() -> None:
    assert len(digest_of("openai-chat", chat_body("x" * (MOST_LETTERS + 9))).asked) == MOST_LETTERS
    assert digest_of("openai-chat", chat_body("a\ud800b")).asked == "a?b"


def test_the_words_of_a_stream_and_of_a_whole_reply() -> None:
    assert reply_words("openai-chat", b"".join(chat_stream("Good ", "day"))) == "Good day"
    call = {"id": "c", "type": "function", "function": {"name": "Bash", "arguments": '{"a":1}'}}
    message = {"role": "assistant", "content": "hm", "tool_calls": [call]}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    assert reply_words("openai-chat", json.dumps(whole).encode()) == 'hm\nBash\n{"a":1}'


def test_a_reply_that_is_cut_or_an_error_keeps_its_words() -> None:
    assert "Good" in reply_words("openai-chat", chat_stream("Good ", "day")[0])
    assert "slow down" in reply_words("openai-chat", b'{"error":{"message":"slow down","type":"x"}}')
    assert reply_words("other", b"plain \xff") == "plain \ufffd"


def test_a_mistake_in_reading_one_body_is_told_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(name: str) -> object:
        raise LookupError(name)

    monkeypatch.setattr("sightline.store.digest.fingerprints", broken)
    monkeypatch.setattr("sightline.store.digest.fold", broken)
    assert digest_of("openai-chat", chat_body("hi")).asked == chat_body("hi").decode()
    assert "Good" in reply_words("openai-chat", chat_stream("Good")[0])
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
