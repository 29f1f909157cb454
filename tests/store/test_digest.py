import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.registry import dialect
from sightline.errors import Fault
from sightline.model.exchange import AttemptStarted, ExchangeFailed, ExchangeFinished, Fact, Held, Received, Translated
from sightline.model.json import Json
from sightline.model.request import Request
from sightline.store.digest import (
    DIGEST_COLUMNS,
    MOST_IN_TITLE,
    MOST_LETTERS,
    REPLY,
    REQUEST,
    Digest,
    columns_of_digest,
    digest_of,
    fingerprints,
    is_errand,
    read_reply,
    reply_dialect,
    to_read,
    without_reminders,
)
from sightline.store.digest_reader import DigestReader
from sightline.store.entries import LEAST_SIZE, FactEntry
from tests.contract.cases import Case, cases
from tests.reply_samples import streamed, whole
from tests.store.traffic import chat_body, chat_stream


def anthropic(*messages: Json, **fields: Json) -> bytes:
    return json.dumps({"model": "m", "max_tokens": 9, "messages": list(messages), **fields}).encode()


def test_new_text_is_everything_since_the_last_model_turn() -> None:
    digest = digest_of("openai-chat", chat_body("first", "answer", "second", system="Be brief."))
    assert (digest.title, digest.new_text, digest.system) == ("second", "second", ("Be brief.",))
    assert len(digest.thread) == 3
    assert digest_of("openai-chat", chat_body("first")).new_text == "first"


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
    assert digest.new_text == "a.py\nchapter one"
    assert digest.title == "list"


def test_structured_results_are_words() -> None:
    part = {"functionResponse": {"name": "f", "response": {"city": "Oslo"}}}
    body = json.dumps({"contents": [{"role": "user", "parts": [part]}]}).encode()
    assert digest_of("gemini", body).title == digest_of("gemini", body).new_text == '{"city":"Oslo"}'
    assert digest_of("gemini", body.replace(b"Oslo", b"\\ud83d")).new_text == '{"city":"\\ud83d"}'


def test_a_title_is_one_short_line_of_the_persons_words() -> None:
    reminder = "<system-reminder>look out</system-reminder>"
    body = anthropic({"role": "user", "content": [{"type": "text", "text": t} for t in (reminder, "Fix\n\n the  bug")]})
    assert digest_of("anthropic", body).title == "Fix the bug"
    long = digest_of("openai-chat", chat_body("word " * 100)).title
    assert len(long) == MOST_IN_TITLE
    assert long.endswith("…")


@given(st.text(st.sampled_from("ab …\u00a0\n"), max_size=200) | st.text("ab ", min_size=119, max_size=124))
def test_a_title_has_the_words_one_space_apart(text: str) -> None:
    line = " ".join(text.split())
    title = digest_of("openai-chat", chat_body(text)).title
    assert title == (line if len(line) <= 120 else f"{line[:119]}…")


@pytest.mark.parametrize(("name", "body"), [("openai-chat", b"{broken"), ("openai-chat", b"[]"), ("other", b"{broken")])
def test_what_is_no_request_is_text_all_the_same(name: str, body: bytes) -> None:
    text = body.decode()
    assert digest_of(name, body) == Digest(title=text, new_text=text)


@pytest.mark.parametrize(
    ("digest", "stored"),
    [
        (Digest(), {"title": "", "thread": "", "is_side": 0, "continues": ""}),
        (
            Digest(title="a\0b", thread=(b"1", b"12"), continues="resp_\udc80"),
            {"title": "a\ufffdb", "thread": bytearray(b"12"), "is_side": 0, "continues": "resp_?"},
        ),
        (
            Digest(title="hi", thread=(b"1",), is_side=True),
            {"title": "hi", "thread": "", "is_side": 1, "continues": ""},
        ),
    ],
)
def test_every_column_of_a_digest_has_a_value_that_every_database_takes(digest: Digest, stored: dict[str, Any]) -> None:
    own, shared = columns_of_digest(digest)
    assert stored.items() <= dict(zip(DIGEST_COLUMNS, (*own, *shared), strict=True)).items()
    assert bool not in map(type, (*own, *shared))


def test_texts_are_searched_up_to_a_bound_and_hold_nothing_odd() -> None:
    assert len(digest_of("openai-chat", chat_body("x" * (MOST_LETTERS + 9))).new_text) == MOST_LETTERS
    assert digest_of("openai-chat", chat_body("a\ud800b")).new_text == "a?b"


def test_the_words_of_a_stream_and_of_a_whole_reply() -> None:
    assert read_reply("openai-chat", b"".join(chat_stream("Good ", "day")))[0] == "Good day"
    call = {"id": "c", "type": "function", "function": {"name": "Bash", "arguments": '{"a":1}'}}
    message = {"role": "assistant", "content": "hm", "tool_calls": [call]}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    assert read_reply("openai-chat", json.dumps(whole).encode())[0] == 'hm\nBash\n{"a":1}'


def test_a_reply_that_is_cut_or_an_error_keeps_its_words() -> None:
    assert "Good" in read_reply("openai-chat", chat_stream("Good ", "day")[0])[0]
    assert "slow down" in read_reply("openai-chat", b'{"error":{"message":"slow down","type":"x"}}')[0]
    assert read_reply("other", b"plain \xff") == ("plain \ufffd", "")


def test_error_reading_a_body_is_logged_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(name: str) -> object:
        raise LookupError(name)

    monkeypatch.setattr("sightline.store.digest.fingerprints", broken)
    monkeypatch.setattr("sightline.store.digest.fold", broken)
    body = anthropic({"role": "user", "content": "hi"}, top_k=1)
    assert digest_of("anthropic", body).new_text == body.decode()
    assert "Good" in read_reply("openai-chat", chat_stream("Good")[0])[0]
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]


@pytest.mark.parametrize("case", [case for case in cases("request.json") if case.dialect != "raw"], ids=str)
def test_a_conversation_that_grew_is_read_as_if_it_were_new(case: Case) -> None:
    spoken, document = dialect(case.dialect), json.loads(case.file("request.json"))
    items = document.get(spoken.editing.container)
    items = items if isinstance(items, list) else [items]
    reader = DigestReader()
    for count in (*range(1, len(items) + 1), len(items) - 1, len(items)):
        for head in ({}, {"user": "another"}):
            changed = {**document, **head, spoken.editing.container: items[:count]}
            # So long that a reader remembers it.
            body = json.dumps(changed).encode() + b" " * LEAST_SIZE
            digest = reader.read(case.dialect, body)
            assert digest == digest_of(case.dialect, body)
            try:
                request = spoken.read_request(changed)
            except Fault:
                continue
            assert digest.thread == tuple(fingerprints(request))
            assert digest.is_side == is_errand(request)


def assert_same_without_plain_texts(name: str, request: bytes, reply: bytes) -> None:
    quick = digest_of(name, request), read_reply(name, reply)
    with pytest.MonkeyPatch.context() as patch:
        full = replace(dialect(name), plain_texts=None)
        patch.setattr("sightline.store.digest.find_dialect", lambda _: full)
        assert (digest_of(name, request), read_reply(name, reply)) == quick


@pytest.mark.parametrize("case", cases("request.json"), ids=str)
def test_plain_texts_say_what_the_full_readers_say_of_recorded_requests(case: Case) -> None:
    assert_same_without_plain_texts(case.dialect, case.file("request.json"), b"")


@pytest.mark.parametrize("case", cases("reply.json"), ids=str)
def test_plain_texts_say_what_the_full_readers_say_of_recorded_replies(case: Case) -> None:
    assert_same_without_plain_texts(case.dialect, b"{}", case.file("reply.json"))


@pytest.mark.parametrize("case", cases("stream.sse"), ids=str)
def test_plain_texts_say_what_the_full_readers_say_of_recorded_streams(case: Case) -> None:
    stream = case.file("stream.sse")
    for reply in (stream, stream.rstrip(b"\n"), stream[: len(stream) // 2], stream.replace(b"\n", b"\r\n")):
        assert_same_without_plain_texts(case.dialect, b"{}", reply)


WORDS = (
    st.sampled_from(["", " ", "hi", "a title", "<env>x</env>", "<env>x</env> so", "Ünï \n", "\ud800", "\0"]) | st.text()
)
CONTENT = WORDS | st.none() | st.lists(WORDS.map(lambda text: {"type": "text", "text": text}), max_size=3)
ROLES = st.sampled_from(["system", "developer", "user", "assistant", "tool", "other"])


@given(st.lists(st.fixed_dictionaries({"role": ROLES, "content": CONTENT}), max_size=5), st.booleans(), WORDS)
def test_plain_texts_say_what_the_full_readers_say_of_any_texts(
    messages: list[Json], has_more: bool, answer: str
) -> None:
    more = {"tools": [], "temperature": 1} if has_more else {"temperature": 1, "stream_options": {}}
    message = {"role": "assistant", "content": answer, **({"refusal": "no"} if has_more else {"annotations": []})}
    reply = {"id": "r", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {}}
    request = {"model": "m", "messages": messages, **more}
    assert_same_without_plain_texts("openai-chat", json.dumps(request).encode(), json.dumps(reply).encode())


@given(st.lists(st.fixed_dictionaries({"role": ROLES, "content": CONTENT}), max_size=5), CONTENT, st.booleans())
def test_plain_texts_say_what_the_full_readers_say_of_any_messages(
    messages: list[Json], system: Json, has_more: bool
) -> None:
    more = {"tools": []} if has_more else {"temperature": 1}
    request = {"model": "m", "max_tokens": 9, "messages": messages, "system": system, **more}
    assert_same_without_plain_texts("anthropic", json.dumps(request).encode(), b"{}")


BLOCKS: list[Json] = [
    {"type": "text", "text": "a"},
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "tool_use", "id": "t", "name": "look", "input": {}},
]
DELTAS: list[Json] = [
    {"type": "text_delta", "text": "so "},
    {"type": "thinking_delta", "thinking": "h"},
    {"type": "signature_delta", "signature": "s"},
    {"type": "input_json_delta", "partial_json": "{}"},
]
EVENTS: list[Json] = [
    {"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 3}}},
    {"type": "ping"},
    *({"type": "content_block_start", "index": n, "content_block": block} for n, block in enumerate(BLOCKS)),
    *({"type": "content_block_delta", "index": n, "delta": delta} for n in range(3) for delta in DELTAS),
    *({"type": "content_block_stop", "index": n} for n in range(3)),
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
    {"type": "message_stop"},
    {"type": "error", "error": {"type": "overloaded_error", "message": "later"}},
]
SPOKEN = [EVENTS[n] for n in (0, 2, 5, 5, 17, 3, 10, 11, 18, 4, 16, 19, 20, 21)]
EVENT = st.sampled_from(EVENTS)


@given(st.lists(st.tuples(st.integers(0, 13), EVENT | st.none()), max_size=3))
def test_plain_texts_say_what_the_full_readers_say_of_any_stream(changes: list[tuple[int, Json]]) -> None:
    events: list[Json] = list(SPOKEN)
    for place, other in changes:
        events[place] = other
    stream = b"".join(
        b"event: %s\ndata: %s\n\n" % (str(event["type"]).encode(), json.dumps(event).encode())
        for event in events
        if isinstance(event, dict)
    )
    assert_same_without_plain_texts("anthropic", b"{}", stream)


DELTA = st.sampled_from(
    [
        {"content": "so "},
        {"role": "assistant", "content": ""},
        {"content": None},
        {},
        {"refusal": "n"},
        {"tool_calls": []},
        {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "look", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":1}'}}]},
        {"tool_calls": [{"index": 1, "id": "d", "type": "function", "function": {"name": "go", "arguments": "{}"}}]},
        {"tool_calls": [{"index": 1, "id": "d", "function": {"name": "go", "arguments": "{"}}], "content": "b"},
    ]
)
CHUNK = st.fixed_dictionaries(
    {
        "choices": st.lists(
            st.fixed_dictionaries(
                {
                    "index": st.sampled_from([0, 0, 0, 1]),
                    "delta": DELTA,
                    "finish_reason": st.sampled_from([None, None, None, None, "stop", "length", "tool_calls", "error"]),
                }
            ),
            max_size=2,
        ),
        "usage": st.sampled_from([None, {"prompt_tokens": 3}]),
    }
)  # fmt: skip


@given(st.lists(CHUNK, max_size=5), st.booleans())
def test_plain_texts_say_what_the_full_readers_say_of_any_chunks(chunks: list[Json], is_done: bool) -> None:
    frames = [b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks]
    assert_same_without_plain_texts("openai-chat", b"{}", b"".join(frames) + b"data: [DONE]\n\n" * is_done)


ITEMS = st.sampled_from(
    [
        {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "so "}]},
        {"type": "message", "id": "n", "role": "assistant", "content": [{"type": "output_text", "text": ""}] * 2},
        {"type": "message", "id": "o", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        {"type": "function_call", "id": "f", "call_id": "c", "name": "look", "arguments": '{"a":"\ud800"}'},
        {"type": "function_call", "id": "g", "call_id": "d", "name": "look", "arguments": "", "namespace": "x"},
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": text} for text in ("hm", "ha")]},
        {"type": "reasoning", "id": "s", "summary": [], "content": [{"type": "reasoning_text", "text": "deep"}]},
        {"type": "web_search_call", "id": "w", "status": "completed"},
    ]
)


@given(
    st.lists(ITEMS, max_size=4),
    st.sampled_from(["completed", "completed", "completed", "incomplete", "failed"]),
    st.sampled_from([None, {"code": "server_error", "message": "later"}]),
    st.integers(0, 9),
    st.booleans(),
)
def test_words_of_a_response_are_those_that_the_full_reader_finds(
    items: list[Json], status: str, error: Json, missing: int, is_done: bool
) -> None:
    items = [{**item, "id": f"i_{n}"} for n, item in enumerate(items) if isinstance(item, dict)]
    reply = {"id": "resp_1", "object": "response", "status": status, "error": error, "output": items}
    ends = ("added", "done")
    events: list[Json] = [{"type": "response.created", "response": {**reply, "output": [], "status": "in_progress"}}]
    for index, item in enumerate(items):
        events += [{"type": f"response.output_item.{end}", "output_index": index, "item": item} for end in ends]
    events.append({"type": f"response.{status}", "response": reply})
    del events[missing : missing + 1]
    frames = [b"data: %s\n\n" % json.dumps(event, separators=(",", ":")).encode() for event in events]
    stream = b"".join(frames) + b"data: [DONE]\n\n" * is_done
    for data in (json.dumps(reply).encode(), stream):
        assert_same_without_plain_texts("openai-responses", b"{}", data)


@pytest.mark.parametrize("is_plain", [True, False])
def test_only_what_is_new_of_a_conversation_is_read(monkeypatch: pytest.MonkeyPatch, is_plain: bool) -> None:
    spoken, seen = dialect("anthropic"), list[int]()
    plain = spoken.plain_texts if is_plain else None

    def read_request(document: Any) -> Request:
        seen.append(len(document["messages"]))
        return spoken.read_request(document)

    turns = [said(role, f"{role} {n} " * 1000) for n in range(3) for role in ("user", "assistant")]
    bodies = [anthropic(*turns[:count], top_k=1) for count in (1, 3, 5)]  # one that is nothing but texts is read anew
    expected = [digest_of("anthropic", body) for body in bodies]
    counting = replace(spoken, read_request=read_request, plain_texts=plain)
    monkeypatch.setattr("sightline.store.digest.find_dialect", lambda _: counting)
    reader = DigestReader()
    assert [reader.read("anthropic", body) for body in bodies] == expected
    assert seen == ([1] if is_plain else [1, 2, 2]), "new texts are left to the typed decoder, if there is one"


def test_a_reader_remembers_a_bounded_number_of_conversations() -> None:
    reader = DigestReader()
    for n in range(40):
        body = anthropic(said("user", f"{n} " * 50_000))
        assert reader.read("anthropic", body) == digest_of("anthropic", body)
    assert len(reader._known) < 40


def claude_body(*messages: Json, **fields: Json) -> Request:
    return dialect("anthropic").read_request({"model": "m", "max_tokens": 9, "messages": list(messages), **fields})


def said(role: str, *blocks: Json) -> Json:
    return {
        "role": role,
        "content": [{"type": "text", "text": each} if isinstance(each, str) else each for each in blocks],
    }


CALL = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a.py"}


def test_each_turn_begins_with_the_turns_before_it() -> None:
    first = fingerprints(claude_body(said("user", "hi")))
    third = fingerprints(claude_body(said("user", "hi"), said("assistant", "yes"), said("user", "go on")))
    assert len(third) == 3
    assert third[:1] == first
    assert fingerprints(claude_body(said("user", "ho")))[0] != first[0]


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(
            said("user", {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}), id="cache mark"
        ),
        pytest.param({"role": "user", "content": "hi"}, id="one string"),
        pytest.param(said("user", "<system-reminder>be kind</system-reminder>", "hi"), id="reminder"),
        pytest.param(said("user", " hi\n"), id="space around"),
    ],
)
def test_what_clients_change_in_an_old_turn_does_not_matter(again: Json) -> None:
    assert fingerprints(claude_body(again)) == fingerprints(claude_body(said("user", "hi")))


def test_ids_and_reasoning_do_not_matter() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    one = claude_body(said("user", "hi"), said("assistant", thought, CALL), said("user", RESULT))
    other = claude_body(
        said("user", "hi"), said("assistant", CALL | {"id": "t2"}), said("user", RESULT | {"tool_use_id": "t2"})
    )
    assert fingerprints(one) == fingerprints(other)
    differs = claude_body(said("user", "hi"), said("assistant", CALL | {"input": {}}), said("user", RESULT))
    assert fingerprints(differs)[0] == fingerprints(one)[0]
    assert fingerprints(differs)[1:] != fingerprints(one)[1:]


def test_instructions_and_messages_that_say_nothing_are_passed_over() -> None:
    with_system = claude_body(said("user", "hi"), said("assistant", ""), system="Be kind.")
    assert fingerprints(with_system) == fingerprints(claude_body(said("user", "hi")))


def test_pictures_and_structured_results_count() -> None:
    def shown(data: str) -> list[bytes]:
        source = {"type": "base64", "media_type": "image/png", "data": data}
        return fingerprints(claude_body(said("user", {"type": "image", "source": source})))

    assert shown("aaaa") != shown("bbbb")
    assert len(shown("aaaa")) == 1

    def linked(url: str) -> list[bytes]:
        return fingerprints(claude_body(said("user", {"type": "image", "source": {"type": "url", "url": url}})))

    assert linked("https://a.test/\ud83d") != linked("https://a.test/\ud83e")

    def answered(value: object) -> list[bytes]:
        response = {"functionResponse": {"name": "f", "response": {"value": value}}}
        return fingerprints(dialect("gemini").read_request({"contents": [{"role": "user", "parts": [response]}]}))

    assert answered(1) != answered(2)
    assert answered("\ud83d") != answered("\ud83e")


SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}}
ROUTER = {"type": "OBJECT", "properties": {"reasoning": {"type": "STRING"}, "complexity_score": {"type": "INTEGER"}}}
TOOL = {"name": "Bash", "input_schema": {"type": "object"}}


def structured(schema: Json) -> Json:
    return {"format": {"type": "json_schema", "schema": schema}}


@pytest.mark.parametrize(
    ("expected", "fields"),
    [
        (False, {}),
        (True, {"system": "Generate a title for the session.", "output_config": structured(SCHEMA)}),
        (True, {"output_config": structured(SCHEMA)}),
        (False, {"output_config": structured({"properties": {"city": {}, "street": {}}})}),  # a program wants data
        (False, {"output_config": structured({"type": "string"})}),
        (True, {"system": "You write a short title for this thread."}),
        (False, {"system": "You are a router of packets."}),  # a person's own instructions
        (False, {"system": "Write a title.", "tools": [TOOL]}),
    ],
)
def test_side_requests_are_distinguished_from_turns(fields: dict[str, Json], *, expected: bool) -> None:
    assert is_errand(claude_body(said("user", "hi"), **fields)) is expected


def test_a_request_with_calls_is_a_turn() -> None:
    assert not is_errand(claude_body(said("user", "hi"), said("assistant", CALL), said("user", RESULT), system="title"))


def test_a_question_to_a_router_is_a_side_request() -> None:
    body: dict[str, Json] = {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "systemInstruction": {"parts": [{"text": "You are a Task Routing AI. Rate the complexity."}]},
        "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": ROUTER},
    }
    assert is_errand(dialect("gemini").read_request(body))


def test_reminders_are_taken_out() -> None:
    assert without_reminders("<system-reminder>\na\n</system-reminder>\nhi <b>") == "hi <b>"
    assert json.loads(without_reminders(' {"a": 1} ')) == {"a": 1}


@pytest.mark.parametrize(
    ("name", "data", "found"),
    [
        ("openai-responses", b"".join(streamed("openai-responses")), "r_1"),
        ("openai-responses", whole("openai-responses"), "r_1"),
        ("openai-responses", b": wait\n\n" * 5000 + b"".join(streamed("openai-responses")), "r_1"),
        ("openai-responses", b"<html>", ""),
        ("openai-responses", b"", ""),
        ("openai-chat", whole("openai-chat"), ""),
        ("", b"{}", ""),
    ],
)
def test_a_reply_that_can_be_named_has_an_id(name: str, data: bytes, found: str) -> None:
    assert read_reply(name, data)[1] == found


ASKED = Received("anthropic", "m", "aa")


def read(*facts: Fact) -> int:
    return to_read([FactEntry("x", n, 0.0, fact) for n, fact in enumerate(facts)])


def test_a_request_and_an_end_are_to_be_read() -> None:
    assert read(Held()) == 0
    assert read(ASKED, Held()) == REQUEST
    assert read(ExchangeFailed("network", "cut")) == REPLY
    assert read(ASKED, ExchangeFinished("stop")) == REQUEST | REPLY


def test_the_reply_speaks_the_dialect_that_was_sent() -> None:
    assert reply_dialect([]) == ""
    assert reply_dialect([ASKED, AttemptStarted(1, "acme", "aa")]) == "anthropic"
    assert reply_dialect([ASKED, Translated("gemini", "bb", 0)]) == "gemini"
    sent = AttemptStarted(1, "acme", "aa", dialect="openai-chat")
    assert reply_dialect([ASKED, sent]) == "openai-chat"
    assert reply_dialect([ASKED, sent, Translated("anthropic", "cc", 1)]) == "openai-chat"
