"""Redaction of exchanges, piece by piece."""

import json

import msgspec
import pytest

from sightline.errors import Fault
from sightline.exchange.recording.sharing import Redactor, exchange_of, texts_of
from sightline.model.exchange import ReplyStored
from sightline.store.entries import BodyEntry, Entry, FactEntry
from sightline.store.summary import Summary, summary_of
from tests.recordings import exchange
from tests.store.traffic import chat_body, chat_stream, noted, prices

HOME = "/" + "home"
MAIL = "anna.b@acme.org"


def line(entries: list[Entry]) -> Summary:
    return summary_of("x_1", [entry for entry in entries if isinstance(entry, FactEntry)], prices)


def redacted(entries: list[Entry], *patterns: str) -> tuple[Redactor, list[Entry]]:
    redactor = Redactor(patterns)
    redactor.learn(entries, line(entries))
    return redactor, redactor.redact(entries, line(entries))


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("ghp_abcdefghijklmnopqrstuv12", "key", "ghp_abcdefghijklmnopqrstuv12"),
        ("AKIAABCDEFGHIJKLMNOP", "key", "AKIAABCDEFGHIJKLMNOP"),
        ("Authorization: Bearer abcdefghij0123456789", "key", "abcdefghij0123456789"),
        ("call (555) 123-4567 now", "phone number", "(555) 123-4567"),
        (r"C:\Users\petra\x", "user name", "petra"),
        ("http://git.corp/x and wiki.lan", "internal host", "git.corp"),
        ("ssh 192.168.1.20", "internal host", "192.168.1.20"),
    ],
)
def test_what_is_found(text: str, kind: str, value: str) -> None:
    redactor, entries = redacted(exchange("x_1", chat_body(text), chat_stream("ok")))
    assert redactor.found[value].kind == kind
    body = next(entry for entry in entries if isinstance(entry, BodyEntry))
    assert value not in json.loads(body.data)["messages"][0]["content"]


@pytest.mark.parametrize(
    "text",
    ["version 1.2.3 of 2026-01-31", f"{HOME}/user/x {HOME}/al/z", "3e8a-4567-8901 and 8.8.8.8", "a@b"],
)
def test_what_is_no_secret_stays_as_it_is(text: str) -> None:
    entries = exchange("x_1", chat_body(text), chat_stream("ok"))
    redactor, same = redacted(entries)
    assert redactor.found == {}
    assert [each for each in same if isinstance(each, FactEntry)] == [e for e in entries if isinstance(e, FactEntry)]
    assert all(each in entries for each in same)


def test_an_escape_in_json_hides_nothing() -> None:
    body = chat_body(MAIL).replace(b"@", b"\\u0040")
    _, entries = redacted(exchange("x_1", body, chat_stream("ok")))
    assert "anna" not in "".join(texts_of(entries, line(entries)))


def test_a_stream_whose_frames_end_anywhere_is_redacted_whole() -> None:
    raw = b"".join(chat_stream("Dear ", MAIL, " and anna.b", "@acme.org"))
    frames = [raw[at : at + 7] for at in range(0, len(raw), 7)]
    entries = exchange("x_1", chat_body("hi"), frames)
    redactor, shared = redacted(entries)
    numbers = [entry.n for entry in shared if isinstance(entry, FactEntry)]
    assert numbers == [entry.n for entry in entries if isinstance(entry, FactEntry)]
    recorded = exchange_of(shared, line(shared))
    assert recorded is not None
    (part,) = recorded.reply().choice.parts
    assert getattr(part, "text", "") == "Dear person-1@example.com and person-1@example.com"
    redactor.check(texts_of(shared, line(shared)))


def test_an_answer_that_is_no_json_is_redacted_as_text() -> None:
    entries = exchange("x_1", chat_body("hi"), [f"<p>Ask {MAIL}</p>".encode()], stream=False)
    _, shared = redacted(entries)
    assert [text for text in texts_of(shared, line(shared)) if MAIL in text] == []


def test_a_title_that_ends_within_a_value_is_cut() -> None:
    entries = exchange("x_1", chat_body(f"Ask {MAIL}"), chat_stream("ok"))
    redactor, _ = redacted(entries)
    for title, shown in [("Ask anna.b@ac…", "Ask …"), (f"Ask {MAIL}", "Ask person-1@example.com"), ("Ask", "Ask")]:
        assert redactor.summary(msgspec.structs.replace(line(entries), title=title)).title == shown


def test_what_is_left_is_a_fault() -> None:
    redactor, _ = redacted(exchange("x_1", chat_body(MAIL), chat_stream("ok")))
    with pytest.raises(Fault, match="still in what would be written"):
        redactor.check(["fine", f"left: {MAIL}"])


def test_the_group_of_an_own_pattern_is_replaced() -> None:
    redactor, _ = redacted(exchange("x_1", chat_body("customer=Kranz; ok"), chat_stream("ok")), r"customer=(\w+)")
    assert redactor.replace("Kranz asked") == "redacted-1 asked"


def test_an_exchange_without_its_body_cannot_be_shown() -> None:
    entries = [entry for entry in exchange("x_1", chat_body("hi"), []) if isinstance(entry, FactEntry)]
    assert exchange_of(entries, line(list(entries))) is None


def test_whose_a_stored_reply_is_is_not_shared() -> None:
    entries = exchange("x_1", chat_body("hi"), chat_stream("ok"))
    entries += noted("x_1", [ReplyStored("ab12", 7)], first=len(entries))
    _, shared = redacted(entries)
    assert [entry.fact for entry in shared if isinstance(entry, FactEntry)][-1] == ReplyStored("", 7)
