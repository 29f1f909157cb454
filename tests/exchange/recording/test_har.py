import asyncio
import dataclasses
import json
from datetime import datetime
from pathlib import Path
from typing import Any

from sightline.exchange.recording.har import har
from sightline.wire.call import RequestTemplate, Variable
from tests.recordings import exchange, failed, one
from tests.store.traffic import chat_body, chat_stream

BODY = chat_body("Grüße")
HEADERS = (("content-type", "application/json"), ("authorization", Variable("ACME_KEY", "Bearer ")))
CALL = RequestTemplate("POST", "http://127.0.0.1:9/v1/chat/completions?a=1&b=", HEADERS, BODY)

# What the specification demands of an entry, besides what is optional.
REQUEST = {"method", "url", "httpVersion", "cookies", "headers", "queryString", "headersSize", "bodySize"}
RESPONSE = {
    "status",
    "statusText",
    "httpVersion",
    "cookies",
    "headers",
    "content",
    "redirectURL",
    "headersSize",
    "bodySize",
}


def entry(data: bytes) -> Any:
    log = json.loads(data)["log"]
    assert log["version"] == "1.2"
    assert log["creator"] == {"name": "Sightline", "version": "9"}
    assert [page["id"] for page in log["pages"]] == ["x_1"]
    (only,) = log["entries"]
    assert only["pageref"] == "x_1"
    assert datetime.fromisoformat(only["startedDateTime"]).tzinfo is not None
    assert set(only["request"]) >= REQUEST
    assert set(only["response"]) >= RESPONSE
    assert set(only["timings"]) >= {"send", "wait", "receive"}
    return only


def test_an_exchange_is_one_entry_with_what_went_out_and_what_came_back(tmp_path: Path) -> None:
    frames = chat_stream("Hel", "lo")
    only = entry(har([(asyncio.run(one(tmp_path, exchange("x_1", BODY, frames))), CALL)], "9"))
    assert only["request"]["postData"]["text"].encode() == BODY
    assert {"name": "authorization", "value": "Bearer ***"} in only["request"]["headers"]
    assert only["request"]["queryString"] == [{"name": "a", "value": "1"}, {"name": "b", "value": ""}]
    assert (only["response"]["status"], only["response"]["statusText"]) == (200, "OK")
    assert only["response"]["content"]["text"].encode() == b"".join(frames)
    assert only["response"]["content"]["mimeType"] == "text/event-stream"
    assert (only["time"], only["timings"]["wait"], only["timings"]["receive"]) == (1500, 500, 1000)


def test_the_page_has_the_title_of_what_was_sent(tmp_path: Path) -> None:
    recorded = asyncio.run(one(tmp_path, exchange("x_1", BODY, chat_stream("Hi"))))
    edited = dataclasses.replace(recorded, sent=chat_body("Other words"))
    titles = [json.loads(har([(each, CALL)], "9"))["log"]["pages"][0]["title"] for each in (recorded, edited)]
    assert titles == ["Grüße", "Other words"]


def test_bytes_that_are_no_text_are_in_base64_and_the_coding_is_not_claimed(tmp_path: Path) -> None:
    told = asyncio.run(one(tmp_path, exchange("x_1", BODY, [b"\xff\xfe"], stream=False)))
    only = entry(har([(told, CALL)], "9"))
    assert (only["response"]["content"]["text"], only["response"]["content"]["encoding"]) == ("//4=", "base64")
    assert "content-encoding" not in {each["name"] for each in only["response"]["headers"]}


def test_an_exchange_without_an_answer_has_no_status(tmp_path: Path) -> None:
    told = asyncio.run(one(tmp_path, exchange("x_1", BODY, end=failed(502, "network"))))
    only = entry(har([(told, RequestTemplate("POST", Variable("LOCAL_URL", suffix="/v1/x"), (), BODY))], "9"))
    assert (only["response"]["status"], only["response"]["statusText"]) == (0, "")
    assert only["request"]["url"] == "http://local_url/v1/x"
