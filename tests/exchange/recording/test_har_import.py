"""Archives of browsers and proxies become exchanges, without the credentials that they hold."""

import base64
import json
from typing import Any

import pytest

from sightline.errors import Fault
from sightline.exchange.recording.har import HarImport, is_har, read_har
from sightline.model.exchange import ExchangeFailed, ExchangeFinished, Fact
from sightline.store.entries import BodyEntry, Entry, FactEntry
from tests.store.traffic import chat_stream

KEY = "sk-secret-0123456789"
BODY = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": f"my key is {KEY}"}]})


def pair(name: str, value: str) -> dict[str, str]:
    return {"name": name, "value": value}


def entry(url: str = "https://api.acme.test/v1/chat/completions", **changes: Any) -> dict[str, Any]:
    """What a browser's network panel saves."""
    text = b"".join(chat_stream("Hel", "lo")).decode()
    return {
        "startedDateTime": "2026-11-15T10:00:00.250+01:00",
        "time": 1500.0,
        "request": {
            "method": "POST",
            "url": url,
            "headers": [
                pair(":authority", "x"),
                pair("Authorization", f"Bearer {KEY}"),
                pair("User-Agent", "curl/8 x"),
            ],
            "postData": {"mimeType": "application/json", "text": BODY},
        },
        "response": {
            "status": 200,
            "headers": [pair("content-type", "text/event-stream"), pair("content-encoding", "br")],
            "content": {"mimeType": "text/event-stream", "text": text},
        },
        "timings": {"wait": 500.0, "dns": None},
        **changes,
    }


def imported(*entries: Any) -> HarImport:
    data = json.dumps({"log": {"version": "1.2", "entries": entries}}).encode()
    assert is_har(data)
    return read_har(data, lambda url: url.split("/")[2])


def facts(entries: tuple[Entry, ...]) -> list[Fact]:
    return [each.fact for each in entries if isinstance(each, FactEntry)]


def facts_of(*changed: Any, **changes: Any) -> list[Fact]:
    """Those of the one exchange that such an entry becomes."""
    (exchange,) = imported(*(changed or [entry(**changes)])).exchanges
    return facts(exchange)


def test_a_request_and_its_answer_become_one_exchange() -> None:
    found = imported(entry(), {**entry(), "request": {"method": "GET", "url": "https://x.test/v1/models"}})
    assert found.others == 1
    (exchange,) = found.exchanges
    received, attempt, frame, end = facts(exchange)
    assert (received.dialect, received.model, received.is_stream) == ("openai-chat", "m", True)
    assert (received.session, received.client, received.path) == ("import", "curl/8", "/v1/chat/completions")
    assert attempt.provider == "api.acme.test"
    assert frame.after == 0.5
    assert (end.finish, end.status, end.first_byte, end.elapsed) == ("stop", 200, 0.5, 1.5)
    assert end.headers == (("content-type", "text/event-stream"),)
    assert found.ids == [each.exchange for each in imported(entry()).exchanges[0][1:2] if isinstance(each, FactEntry)]
    assert all(each.at == 1794733200.25 for each in exchange if isinstance(each, FactEntry))


def test_credentials_are_masked_wherever_they_stand() -> None:
    url = f"https://g.test/v1beta/models/gem:streamGenerateContent?key={KEY}&alt=sse"
    (exchange,) = imported(entry(url)).exchanges
    kept = exchange[0]
    assert isinstance(kept, BodyEntry)
    assert KEY.encode() not in kept.data
    received = facts(exchange)[0]
    assert (received.dialect, received.model, received.is_stream) == ("gemini", "gem", True)
    assert KEY not in repr(exchange)
    assert "alt=sse" in received.path


def test_an_error_and_an_answer_that_is_missing_are_failures() -> None:
    end = facts_of(response={"status": 429, "content": {"text": '{"error":{"message":"slow down"}}'}})[-1]
    assert (end.code, end.message, end.status) == ("rate_limited", "slow down", 429)
    assert facts_of(response={"status": 200})[-1].code == "upstream_protocol"
    cut = {"status": 200, "content": {"text": chat_stream("Hel", "lo")[0].decode()}}
    assert isinstance(facts_of(response=cut)[-1], ExchangeFailed)
    end = facts_of(response={"status": 0})[-1]
    assert (end.code, end.message, end.status) == ("network", "the archive holds no answer", 0)


def test_the_address_is_the_one_in_the_archive_without_its_credentials() -> None:
    attempt = facts_of(entry(f"https://me:pw@far.test:8/deep/v1/chat/completions?key={KEY}&v=2"))[1]
    assert attempt.url == "https://far.test:8/deep/v1/chat/completions?key=***&v=2"


def test_contents_may_be_in_base64_and_bodies_need_not_be_json() -> None:
    text = base64.b64encode(b"".join(chat_stream("Hi"))).decode()
    answer = {"status": 200, "content": {"text": text, "encoding": "base64"}}
    assert isinstance(facts_of(response=answer)[-1], ExchangeFinished)
    changed = entry()
    changed["request"]["postData"]["text"] = "[1"
    assert facts_of(changed)[0].model == ""


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (entry(startedDateTime="yesterday"), "no time"),
        (entry(response={"status": 200, "content": {"text": "*", "encoding": "base64"}}), "base64"),
        (entry(request={"method": 1}), "entry 0"),
    ],
)
def test_what_cannot_be_read_is_named_by_its_number(broken: Any, words: str) -> None:
    with pytest.raises(Fault, match=words) as caught:
        imported(broken)
    assert caught.value.hint
