"""An exchange as an HTTP archive (HAR 1.2), which the network panels of browsers and many other tools open."""

import base64
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

from sightline.exchange.recording.exchange_record import RecordedExchange
from sightline.model.header_names import is_secret_header
from sightline.model.json import Json, JsonObject
from sightline.store.digest import digest_of
from sightline.wire.call import RequestTemplate, TemplateValue
from sightline.wire.secrets import MASK

_VERSION = "1.2"
_PROTOCOL = "HTTP/1.1"
_UNKNOWN = -1


def har(exchanges: Sequence[tuple[RecordedExchange, RequestTemplate]], version: str) -> bytes:
    """The archive with these exchanges: each call as it went to the provider, and the provider's answer."""
    log: Json = {
        "version": _VERSION,
        "creator": {"name": "Sightline", "version": version},
        "pages": [_page(recorded) for recorded, _ in exchanges],
        "entries": [_entry(recorded, call) for recorded, call in exchanges],
    }
    return json.dumps({"log": log}, ensure_ascii=False, indent=1).encode("utf-8", "replace") + b"\n"


def _page(recorded: RecordedExchange) -> Json:
    # The title of what was sent, which is all that an archive holds: read back, an edited request keeps it.
    received = recorded.received
    is_raw = recorded.is_raw
    title = f"{received.method} {received.path}" if is_raw else digest_of(recorded.spoken, recorded.sent).title
    return {
        "startedDateTime": _start_time(recorded),
        "id": recorded.id,
        "title": title or recorded.id,
        "pageTimings": {"onContentLoad": None, "onLoad": None},
    }


def _entry(recorded: RecordedExchange, call: RequestTemplate) -> Json:
    summary = recorded.summary
    return {
        "pageref": recorded.id,
        "startedDateTime": _start_time(recorded),
        "time": _milliseconds(summary.elapsed),
        "request": _request(call, recorded.url),
        "response": _response(recorded),
        "cache": {},
        "timings": _timings(recorded),
        "comment": f"{summary.client} asked {summary.provider}, in {recorded.spoken}",
        # A member of our own, as the format allows: read back, the exchange keeps its name.
        "_sightline": {
            "id": recorded.id,
            "provider": summary.provider,
            "session": summary.session,
            "client": summary.client,
        },
    }


def _start_time(recorded: RecordedExchange) -> str:
    moment = datetime.fromtimestamp(recorded.summary.at, UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _request(call: RequestTemplate, address: str) -> JsonObject:
    """The request, at the address that is on record; else at the one that the settings give its provider today."""
    url = address or _address(call.url)
    headers = [(name, MASK if is_secret_header(name) and isinstance(value, str) else _plain(value))
               for name, value in call.headers]  # fmt: skip
    kind = next((value for name, value in headers if name.lower() == "content-type"), "application/json")
    return {
        "method": call.method,
        "url": url,
        "httpVersion": _PROTOCOL,
        "cookies": [],
        "headers": _pairs(headers),
        "queryString": _pairs(parse_qsl(urlsplit(url).query, keep_blank_values=True)),
        "postData": _post_data(kind, call.body),
        "headersSize": _UNKNOWN,
        "bodySize": len(call.body),
    }


def _post_data(kind: str, body: bytes) -> JsonObject:
    """The body of a request. HAR has no place for one that is no text, so that one is marked by a member of our own."""
    try:
        return {"mimeType": kind, "params": [], "text": body.decode()}
    except UnicodeDecodeError:
        encoded = base64.b64encode(body).decode()
        return {"mimeType": kind, "params": [], "text": encoded, "_encoding": "base64"}


def _response(recorded: RecordedExchange) -> JsonObject:
    status = recorded.summary.status if recorded.frames else 0
    # The body is on record without its coding, and the size of the coded one is not known.
    headers = [(name, value) for name, value in recorded.headers if name.lower() != "content-encoding"]
    return {
        "status": status,
        "statusText": _phrase(status),
        "httpVersion": _PROTOCOL,
        "cookies": [],
        "headers": _pairs(headers),
        "content": _content(recorded),
        "redirectURL": "",
        "headersSize": _UNKNOWN,
        "bodySize": _UNKNOWN,
    }


def _content(recorded: RecordedExchange) -> JsonObject:
    body = recorded.reply_body
    kind = next((value for name, value in recorded.headers if name.lower() == "content-type"), "")
    content: JsonObject = {"size": len(body), "mimeType": kind or "application/octet-stream"}
    try:
        return content | {"text": body.decode()}
    except UnicodeDecodeError:
        return content | {"text": base64.b64encode(body).decode(), "encoding": "base64"}


def _timings(recorded: RecordedExchange) -> JsonObject:
    """Sightline measures up to the first byte and up to the last; the rest is not known."""
    first = _milliseconds(recorded.summary.first_byte)
    whole = _milliseconds(recorded.summary.elapsed)
    unknown: JsonObject = dict.fromkeys(("blocked", "dns", "connect", "ssl"), _UNKNOWN)
    return unknown | {"send": 0, "wait": first, "receive": max(0.0, round(whole - first, 3))}


def _milliseconds(seconds: float | None) -> float:
    return round(1000 * (seconds or 0.0), 3)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _address(url: TemplateValue) -> str:
    """An address that can be read as one, also where only the machine that sends knows it."""
    return url if isinstance(url, str) else f"http://{url.name.lower()}{url.suffix}"


def _plain(value: TemplateValue) -> str:
    return value if isinstance(value, str) else f"{value.prefix}{MASK}{value.suffix}"


def _pairs(pairs: list[tuple[str, str]]) -> Json:
    return [{"name": name, "value": value} for name, value in pairs]
