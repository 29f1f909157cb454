"""Redaction of exchanges, piece by piece."""

import json
from time import process_time

import msgspec
import pytest

from sightline.errors import Fault
from sightline.exchange.recording.section_texts import SECTIONS
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


@pytest.mark.parametrize("mail", ["", f" {MAIL} ", f" {MAIL}-x@acme.org "])
def test_a_long_token_is_searched_in_no_time(mail: str) -> None:
    token = "gAAAAABk_0-z" * 8_000
    began = process_time()
    redactor, _ = redacted(exchange("x_1", chat_body(f"{token}{mail}{token}"), chat_stream("ok")))
    assert process_time() - began < 5, "it took 40 s for each token"
    assert [(each.kind, each.value) for each in redactor.found.values()] == [
        ("e-mail address", value) for value in mail.strip().replace("org-", "org -").split()
    ]


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
    with pytest.raises(Fault, match="would still be written"):
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


FILE = "def parse(text):\n    return text.split('=')  # the house's own way\n"


def agent_body(*said: str) -> bytes:
    """A request in which a file was read, and written again."""
    calls = [("c1", "read", {"path": "parser.py"}), ("c2", "write", {"path": "copy.py", "content": FILE})]
    messages: list[dict[str, object]] = [{"role": "user", "content": text} for text in said]
    for name, tool, given in calls:
        function = {"name": tool, "arguments": json.dumps(given)}
        messages += [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": name, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": name, "content": FILE if tool == "read" else "written"},
        ]
    return json.dumps({"model": "m", "messages": messages}).encode()


def shared_without(entries: list[Entry], *names: str, kept: tuple[str, ...] = ()) -> tuple[Redactor, str]:
    """The body that is left when sections with these labels, or of these kinds, are left out."""
    listing = Redactor(lists_sections=True)
    listing.learn(entries, line(entries))
    ids = {each.label: each.id for each in listing.sections_listed.values()}
    redactor = Redactor(
        sections=[each if each in SECTIONS else ids[each] for each in names], kept=[ids[each] for each in kept]
    )
    redactor.learn(entries, line(entries))
    redactor.check_sections()
    shared = redactor.redact(entries, line(entries))
    redactor.check(texts_of(shared, line(shared)))
    return redactor, next(entry for entry in shared if isinstance(entry, BodyEntry)).data.decode()


def test_one_section_is_left_out_wherever_its_text_stands_and_others_of_its_kind_stay() -> None:
    entries = exchange("x_1", agent_body("Copy the parser."), chat_stream("Done."))
    redactor, body = shared_without(entries, "read parser.py")
    messages = json.loads(body)["messages"]
    assert messages[2]["content"] == "[results 1 left out]"
    assert json.loads(messages[3]["tool_calls"][0]["function"]["arguments"])["content"] == "[results 1 left out]"
    assert messages[4]["content"] == "written"
    assert [each.label for each in redactor.sections_listed.values() if each.is_left_out] == ["read parser.py"]


def test_a_section_can_stay_although_its_kind_is_left_out() -> None:
    entries = exchange("x_1", agent_body("Copy the parser.", "Quickly."), chat_stream("Done."))
    _, body = shared_without(entries, "user", kept=("Quickly.",))
    assert [each["content"] for each in json.loads(body)["messages"][:2]] == ["[user 1 left out]", "Quickly."]


def test_the_arguments_of_a_call_are_a_section() -> None:
    entries = exchange("x_1", agent_body("Copy the parser."), chat_stream("Done."))
    _, body = shared_without(entries, "calls")
    given = [json.loads(each["tool_calls"][0]["function"]["arguments"]) for each in json.loads(body)["messages"][1::2]]
    assert [list(each) for each in given] == [["path"], ["path", "content"]]
    assert "copy.py" not in body


def test_a_section_that_is_a_word_of_the_format_leaves_the_format_alone() -> None:
    entries = exchange("x_1", chat_body("user", "function", "model"), chat_stream("stop"))
    _, body = shared_without(entries, "user", "assistant")
    assert [(each["role"], "left out" in each["content"]) for each in json.loads(body)["messages"]] == [
        ("user", True),
        ("assistant", True),
        ("user", True),
    ]
    assert json.loads(body)["model"] == "large"


def test_a_section_that_is_not_there_is_a_fault() -> None:
    redactor = Redactor(sections=["section-0123456789ab"])
    entries = exchange("x_1", chat_body("hi"), chat_stream("ok"))
    redactor.learn(entries, line(entries))
    with pytest.raises(Fault, match="no section 'section-0123456789ab' in what is shared"):
        redactor.check_sections()


def test_a_title_that_begins_a_section_goes_with_it() -> None:
    entries = exchange("x_1", chat_body("A plan\nfor the   house"), chat_stream("ok"))
    redactor, _ = shared_without(entries, "A plan for the house")
    for title, shown in [("A plan for the…", ""), ("Another plan", "Another plan")]:
        assert redactor.summary(msgspec.structs.replace(line(entries), title=title)).title == shown


def test_a_value_is_found_where_a_longer_one_only_begins_like_it() -> None:
    redactor = Redactor([r"anna\b", r"anna of the long long winter nights, whole", r"anna of the"])
    entries = exchange("x_1", chat_body("anna of the long long winter nights, whole"), chat_stream("anna of the"))
    redactor.learn(entries, line(entries))
    assert redactor.replace("anna of the long long winter nights, half; anna off") == (
        "redacted-3 long long winter nights, half; redacted-1 off"
    )
