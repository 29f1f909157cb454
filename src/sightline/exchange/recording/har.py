"""HTTP archives (HAR 1.2): writes an exchange as one, which the network panels of browsers and many other tools can
open, and reads the requests to models in one into the record.

Browsers, proxies and Sightline itself write such files. They may contain credentials, which are masked as in traffic
that passes through.
"""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from sightline.dialects.endpoint import PathMatch, match_path
from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.exchange.client_response import without
from sightline.exchange.recorder import finish_fact
from sightline.exchange.recording.exchange_record import RecordedExchange
from sightline.exchange.reply_reader import ReplyReader
from sightline.model.exchange import AttemptStarted, ExchangeFailed, Fact, FrameArrived, Received
from sightline.model.header_names import is_secret_header
from sightline.model.json import Json, JsonObject
from sightline.store.digest import digest_of
from sightline.store.entries import BodyEntry, Entry, FactEntry
from sightline.wire.call import RequestTemplate, TemplateValue
from sightline.wire.jsontext import MISFIT, decode
from sightline.wire.secrets import MASK, Redaction, secrets_of

_ID = re.compile(r"x_[0-9a-f]{20}")
_SESSION = "import"


class HarPair(msgspec.Struct, frozen=True):
    """A header or a parameter."""

    name: str
    value: str = ""


class HarPost(msgspec.Struct, frozen=True):
    """The body of a request; `encoding` is Sightline's own member for bodies that are not text."""

    text: str = ""
    encoding: str = msgspec.field(default="", name="_encoding")


class HarRequest(msgspec.Struct, frozen=True, rename="camel"):
    """A request."""

    method: str
    url: str
    headers: tuple[HarPair, ...] = ()
    post_data: HarPost | None = None


class HarContent(msgspec.Struct, frozen=True):
    """The body of a response, after content decoding."""

    text: str = ""
    encoding: str = ""


class HarResponse(msgspec.Struct, frozen=True):
    """A response; a status of 0 means that none arrived."""

    status: int = 0
    headers: tuple[HarPair, ...] = ()
    content: HarContent = HarContent()


class HarOwn(msgspec.Struct, frozen=True):
    """What Sightline adds to an entry, so that the exchange keeps its id when it is read back."""

    id: str = ""
    provider: str = ""
    session: str = ""
    client: str = ""


class HarEntry(msgspec.Struct, frozen=True, rename="camel"):
    """One request and its response."""

    started_date_time: str
    request: HarRequest
    response: HarResponse = HarResponse()
    time: float = 0.0
    timings: Mapping[str, float | None] = {}
    own: HarOwn = msgspec.field(default=HarOwn(), name="_sightline")


class HarLog(msgspec.Struct, frozen=True):
    """The contents of a file."""

    entries: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class HarImport:
    """The exchanges that were found, each as its entries, and the number of other requests."""

    exchanges: tuple[tuple[Entry, ...], ...]
    others: int

    @property
    def ids(self) -> list[str]:
        """The ids of the exchanges."""
        return [entry.exchange for entries in self.exchanges for entry in entries[-1:] if isinstance(entry, FactEntry)]


def is_har(data: bytes) -> bool:
    """Whether a file begins like an HTTP archive."""
    return re.match(rb'\s*(?:\xef\xbb\xbf)?\s*\{\s*"log"\s*:', data) is not None


def read_har(data: bytes, provider_of: Callable[[str], str]) -> HarImport:
    """The exchanges of an archive; `provider_of` returns the name of the provider at an address. Raises a fault that
    says what is wrong with the archive, and where."""
    document = decode(data.removeprefix(b"\xef\xbb\xbf"))
    log = document.get("log") if isinstance(document, dict) else None
    try:
        entries = msgspec.convert(log, HarLog).entries
    except MISFIT as error:
        raise _unreadable(f"not an HTTP archive: {error}") from None
    exchanges: list[tuple[Entry, ...]] = []
    for number, value in enumerate(entries):
        try:
            entry = msgspec.convert(value, HarEntry)
        except MISFIT as error:
            raise _unreadable(f"entry {number} of the archive: {error}") from None
        model_call = _model_call_of(entry)
        if model_call is not None:
            exchanges.append(_exchange(entry, number, model_call, provider_of))
    return HarImport(tuple(exchanges), len(entries) - len(exchanges))


def _unreadable(message: str) -> Fault:
    return Fault(Code.USAGE, message, hint="Use a HAR file (version 1.2) with the contents of its answers.")


def _model_call_of(entry: HarEntry) -> PathMatch | None:
    """The call to a model in a request; None if it is not one."""
    if entry.request.method != "POST" or entry.request.post_data is None:
        return None
    segments = unquote(urlsplit(entry.request.url).path).rstrip("/").split("/")
    for start in reversed(range(len(segments))):  # a base URL may put anything before the path of an API
        found = match_path(segments[start:])
        if found is not None and not found.counts:
            return found
    return None


def _exchange(
    entry: HarEntry, number: int, model_call: PathMatch, provider_of: Callable[[str], str]
) -> tuple[Entry, ...]:
    at = _time(entry.started_date_time, number)
    url = urlsplit(entry.request.url)
    headers = tuple((each.name, each.value) for each in entry.request.headers if not each.name.startswith(":"))
    redaction = Redaction(secrets_of(headers, url.query))
    post = entry.request.post_data
    assert post is not None
    body = without(_bytes(post.text, post.encoding, number), redaction.secrets)
    sha256 = hashlib.sha256(body).hexdigest()
    fields = _fields(body)
    spoken, model = model_call.dialect, model_call.model or str(fields.get("model") or "")
    agent = next((value for name, value in headers if name.lower() == "user-agent"), "")
    facts: list[Fact] = [
        Received(
            spoken,
            model,
            sha256,
            session=entry.own.session if entry.own.id else _SESSION,
            client=entry.own.client or agent.partition(" ")[0],
            path=redaction.address(url.path, url.query),
            is_stream=model_call.is_stream or fields.get("stream") is True,
            headers=redaction.headers(headers),
        )
    ]
    provider = entry.own.provider or provider_of(entry.request.url)
    address = f"{url.scheme}://{url.netloc.rpartition('@')[2]}{redaction.address(url.path, url.query)}"
    facts.append(AttemptStarted(1, provider, sha256, model=model, dialect=spoken, url=address))
    facts += _answer(entry, number, spoken, redaction) if entry.response.status else [_no_answer(entry)]
    exchange = entry.own.id if _ID.fullmatch(entry.own.id) else _name(at, entry.request.url, sha256)
    return (BodyEntry(sha256, body), *(FactEntry(exchange, n, at, fact) for n, fact in enumerate(facts)))


def _no_answer(entry: HarEntry) -> ExchangeFailed:
    """The end of a request without a response: browsers write the status 0 if it failed or was stopped."""
    hint = "The request failed, or was stopped, before an answer came; the archive does not say why."
    return ExchangeFailed(Code.NETWORK.value, "the archive holds no answer", hint, elapsed=max(0.0, entry.time / 1000))


def _answer(entry: HarEntry, number: int, spoken: str, redaction: Redaction) -> list[Fact]:
    response = entry.response
    body = without(_bytes(response.content.text, response.content.encoding, number), redaction.secrets)
    headers = redaction.headers(
        tuple((each.name, each.value) for each in response.headers if each.name.lower() != "content-encoding")
    )
    first = max(0.0, (entry.timings.get("wait") or 0.0) / 1000)
    elapsed = max(first, entry.time / 1000)
    sha256 = hashlib.sha256(body).hexdigest()
    facts: list[Fact] = [FrameArrived(body, first)] if body else []
    reading = ReplyReader(spoken)
    if response.status < 400:
        reading.feed(body)
        reading.close()
        fault = reading.reply.fault if body else Fault(Code.UPSTREAM_PROTOCOL, "the archive holds no answer")
    else:
        fault = dialect(spoken).read_error(response.status, _json(body), dict(headers))
    usage = reading.reply.usage
    if usage is not None:
        usage = msgspec.structs.replace(usage, at="", extras={})
    if fault is not None:
        code, message = fault.code.value, redaction.text(fault.message)
        end: Fact = ExchangeFailed(code, message, fault.hint, response.status, headers, sha256, usage, first, elapsed)
    else:
        end = finish_fact(reading.reply, response.status, headers, sha256, usage, (first, elapsed), reading.warning)
    return [*facts, end]


def _time(text: str, number: int) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _unreadable(f"entry {number} of the archive: {text[:40]!r} is no time") from None
    return moment.timestamp()


def _bytes(text: str, encoding: str, number: int) -> bytes:
    if encoding != "base64":
        return text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise _unreadable(f"entry {number} of the archive: its content is not base64") from None


def _fields(body: bytes) -> dict[str, Json]:
    value = _json(body)
    return value if isinstance(value, dict) else {}


def _json(body: bytes) -> Json:
    try:
        return decode(body)
    except Fault:
        return body.decode("utf-8", "replace")


def _name(at: float, url: str, sha256: str) -> str:
    """An id that contains the time, as all do, and is the same each time that the file is read."""
    digest = hashlib.sha256(f"{at!r} {url} {sha256}".encode("utf-8", "replace")).hexdigest()
    return f"x_{int(at * 1_000_000):014x}{digest[:6]}"


_VERSION = "1.2"
_PROTOCOL = "HTTP/1.1"
_UNKNOWN = -1


def har(exchanges: Sequence[tuple[RecordedExchange, RequestTemplate]], version: str) -> bytes:
    """The archive of these exchanges: each call as it was sent to the provider, and the provider's response."""
    log: Json = {
        "version": _VERSION,
        "creator": {"name": "Sightline", "version": version},
        "pages": [_page(recorded) for recorded, _ in exchanges],
        "entries": [_entry(recorded, call) for recorded, call in exchanges],
    }
    return json.dumps({"log": log}, ensure_ascii=False, indent=1).encode("utf-8", "replace") + b"\n"


def _page(recorded: RecordedExchange) -> Json:
    # The title of the request that was sent, which is all that an archive contains: read back, an edited request keeps
    # it.
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
        # Our own member, as the format allows: read back, the exchange keeps its id.
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
    """The request, at its recorded address, otherwise at the current address of its provider."""
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
        # HAR cannot represent a body that is not text, so it is marked with our own member.
        "postData": {"mimeType": kind, "params": [], **_body_text(call.body, "_encoding")},
        "headersSize": _UNKNOWN,
        "bodySize": len(call.body),
    }


def _response(recorded: RecordedExchange) -> JsonObject:
    status = recorded.summary.status if recorded.frames else 0
    # The body is recorded without its encoding, and the size of the encoded one is unknown.
    headers = [(name, value) for name, value in recorded.headers if name.lower() != "content-encoding"]
    body = recorded.reply_body
    kind = next((value for name, value in headers if name.lower() == "content-type"), "")
    content = {"size": len(body), "mimeType": kind or "application/octet-stream", **_body_text(body, "encoding")}
    return {
        "status": status,
        "statusText": _phrase(status),
        "httpVersion": _PROTOCOL,
        "cookies": [],
        "headers": _pairs(headers),
        "content": content,
        "redirectURL": "",
        "headersSize": _UNKNOWN,
        "bodySize": _UNKNOWN,
    }


def _body_text(body: bytes, mark: str) -> JsonObject:
    """A body as text, or in base64 if it is not text; the member `mark` says so."""
    try:
        return {"text": body.decode()}
    except UnicodeDecodeError:
        return {"text": base64.b64encode(body).decode(), mark: "base64"}


def _timings(recorded: RecordedExchange) -> JsonObject:
    """Sightline measures the time to the first byte and to the last; the rest is unknown."""
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
    """An address in readable form, even if only the machine that sends knows it."""
    return url if isinstance(url, str) else f"http://{url.name.lower()}{url.suffix}"


def _plain(value: TemplateValue) -> str:
    return value if isinstance(value, str) else f"{value.prefix}{MASK}{value.suffix}"


def _pairs(pairs: list[tuple[str, str]]) -> Json:
    return [{"name": name, "value": value} for name, value in pairs]
