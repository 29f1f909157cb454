"""HTTP/1.1 framing: the head of a request as bytes, and an answer parsed from its bytes.

llhttp parses the answer; what it tolerates and we do not is refused here. In a request, anything that would end a line
early, or frame the body twice, is refused.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from importlib import import_module
from typing import TypeAlias

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from sightline.errors import Code, Fault
from sightline.model.header_names import OF_A_CONNECTION, TOKEN
from sightline.transport.http import faults
from sightline.transport.http.target import HttpTarget, Proxy
from sightline.wire.call import HttpRequest

HEAD_LIMIT = 256 * 1024
_NO_BODY = frozenset({204, 304})


OnInterim: TypeAlias = Callable[[int, list[tuple[bytes, bytes]]], None]
"""Gets the status and the headers of each answer of 1xx before the answer itself."""


_FRAMED_OTHERWISE = frozenset({b"upgrade", b"trailer"})
_CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
_MOST_SHAPES = 256
_SHAPES: "dict[tuple[bytes, ...], AnswerShape | None]" = {}
"""The shapes of answers by the beginnings of their lines; None for those that were seen once."""


class AnswerShape:
    """The head of an answer that llhttp has read, but for the values of its headers. A server answers with the same
    headers in the same order again and again: the head of an answer that has this shape need not be parsed. What frames
    the body is the length alone, and then all of it has to be here, or it comes in chunks, which llhttp reads; what is
    said of the connection has to be the same."""

    def __init__(self, first_line: bytes, headers: list[tuple[bytes, bytes]], status: int) -> None:
        self.status = status
        self.names = [name for name, _ in headers]
        self.low = [name.lower() for name in self.names]
        self.length_at = self.low.index(b"content-length") if b"content-length" in self.low else None
        """Where the length is among the headers; None where the body comes in chunks."""
        lines = [b"%b: %b" % (re.escape(name), _value_pattern(name.lower(), value)) for name, value in headers]
        self.match = re.compile(b"\r\n".join([re.escape(first_line), *lines, b"\r\n"])).match


def _value_pattern(name: bytes, value: bytes) -> bytes:
    if name in (b"connection", b"transfer-encoding"):
        return b"(" + re.escape(value) + b")"
    return rb"(\d{1,12})" if name == b"content-length" else rb"(?! )([ -~\x80-\xff]*)(?<! )"


def _find_shape(data: bytes, answer: "AnswerParser") -> AnswerShape | None:
    """The shape of an answer that begins with these bytes and of which llhttp has read the head, if it is seen not for
    the first time; None where it may be read in another way than by its lines."""
    named, headers = answer.named, answer.headers
    is_framed_once = (b"content-length" in named) != (b"transfer-encoding" in named)
    if not is_framed_once or len(named) != len(headers) or not named.keys().isdisjoint(_FRAMED_OTHERWISE):
        return None
    first_line, *lines = data[: data.find(b"\r\n\r\n")].split(b"\r\n")
    has_body = answer.keeps_alive and answer.status not in _NO_BODY
    if not has_body or lines != [b"%b: %b" % each for each in headers]:
        return None
    about = (named.get(name, b"") for name in (b"connection", b"transfer-encoding"))
    key = (first_line, *about, *(name for name, _ in headers))
    if key not in _SHAPES:
        if len(_SHAPES) >= _MOST_SHAPES:
            _SHAPES.clear()
        _SHAPES[key] = None
    elif _SHAPES[key] is None:
        _SHAPES[key] = AnswerShape(first_line, headers, answer.status)
    return _SHAPES[key]


LARGE_CHUNK = 4096


@lru_cache(maxsize=LARGE_CHUNK)
def size_line(length: int) -> bytes:
    """The line before a chunk that has this many bytes with that line and the line break behind it; empty if there is
    no such chunk, if it is the last one, or if it is large."""
    if length > LARGE_CHUNK:
        return b""
    for digits in range(1, 8):
        line = b"%x\r\n" % max(0, length - digits - 4)
        if len(line) == digits + 2:
            return b"" if line == b"0\r\n" else line
    return b""


def unframe(chunks: Iterable[bytes]) -> list[bytes]:
    """What is in chunks that came with the usual line before each."""
    return [each[each.index(b"\n") + 1 : -2] for each in chunks]


class _EnoughError(Exception):
    """Stops llhttp, and goes no further than `feed`."""


def _ends_with_chunk(data: bytes, body: bytes) -> bool:
    """Whether these bytes of a chunked answer end with a whole chunk; `body` is the last that llhttp found in them.

    A body that is a part of its chunk may look whole if it is nothing but line breaks; the size of a chunk to come may
    look like a body if that is a number. The frames of a stream are neither.
    """
    return body[-1:] == b"\n" and body[:1] not in b"\r\n" and data.endswith(b"%x\r\n%b\r\n" % (len(body), body))


class AnswerParser:
    """One answer. `feed` it what comes and tell it when the connection `ended`; take the body from `pieces`.

    Answers with a status of 1xx are given to `on_interim` and are no answer. One that has the `shape` of the answer
    before it is not parsed. A parser serves one answer only, so that
    nothing of an answer, such as its `trailers`, can turn up in the next.
    """

    status = 0
    has_head = False
    is_complete = False
    keeps_alive = False
    fault: Fault | None = None
    _until_close = False
    _head_size = 0
    _framing_size = 0
    is_between_chunks = False
    """Whether llhttp has read exactly to the end of a chunk. It need not see chunks that come whole then."""
    _llhttp: HttpResponseParser | None = None
    values: tuple[bytes, ...] | None = None
    """The values of the headers, if their names were known by the `shape`."""

    def __init__(
        self,
        place: str,
        *,
        bodiless: bool = False,
        on_interim: "OnInterim | None" = None,
        shape: AnswerShape | None = None,
    ) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.named: dict[bytes, bytes] = {}
        """The headers by name in lower case, once all are here; of several with one name the first."""
        self.trailers: list[tuple[bytes, bytes]] = []
        self.pieces: list[bytes] = []
        self._on_interim = on_interim
        # llhttp calls this for each chunk, with no frame of ours between.
        self.on_body = self.pieces.append
        self._place = place
        self._bodiless = bodiless
        self.shape = shape
        """The shape that the last answer had, and then the one that this has, if it can be known by it."""

    def is_over(self) -> bool:
        """Whether nothing more can come of it."""
        return self.is_complete or self.fault is not None

    def has_begun(self) -> bool:
        return self._head_size > 0

    def feed(self, data: bytes) -> None:
        """Take in what came. Must not be called when the answer is over."""
        if not self.has_head:
            self._feed_head(data)
            return
        # For each chunk of each stream: as few steps as can be.
        assert self._llhttp is not None, "fed after its end"
        before = len(self.pieces)
        try:
            self._llhttp.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._stop(str(error))
        if len(self.pieces) > before:
            self._framing_size = 0
            self.is_between_chunks = _ends_with_chunk(data, self.pieces[-1])
            return
        self.is_between_chunks = False
        # Only the size and the extensions of a chunk, or trailers: not queued, so without backpressure.
        self._framing_size += len(data)
        if self._framing_size > HEAD_LIMIT and not self.is_over():
            self._give_up(f"more than {HEAD_LIMIT // 1024} KiB of it are neither head nor body")

    def _feed_head(self, data: bytes) -> None:
        # Up to the limit and not further, so that the limit does not depend on how the bytes were split.
        room = HEAD_LIMIT - self._head_size
        is_first = not self._head_size
        self._head_size += len(data)
        if is_first:
            if self.shape is not None and self._take_known(self.shape, data):
                return
            self._llhttp = HttpResponseParser(self)
        self._parse(data[:room])
        if is_first:
            self.shape = _find_shape(data, self) if self.has_head and self.fault is None else None
        if self._head_size > HEAD_LIMIT and not self.is_over():
            if self.has_head:
                self._parse(data[room:])
            else:
                self._give_up(f"its head is larger than {HEAD_LIMIT // 1024} KiB")

    def _take_known(self, shape: AnswerShape, data: bytes) -> bool:
        """Take an answer that has this shape and is whole. False where llhttp has to read it."""
        found = None if self._bodiless else shape.match(data, 0, HEAD_LIMIT)
        if found is None:
            return False
        values, end = found.groups(), found.end()
        is_whole = shape.length_at is not None
        if shape.length_at is not None and len(data) - end != int(values[shape.length_at]):
            return False
        self.status = shape.status
        self.values = values
        self.headers = list(zip(shape.names, values, strict=True))
        self.named = dict(zip(shape.low, values, strict=True))
        self.has_head = self.keeps_alive = True
        if is_whole:
            self.is_complete = True
            if len(data) > end:
                self.pieces.append(data[end:])
        else:
            self._llhttp = HttpResponseParser(_ChunkedBody(self))
            self._llhttp.feed_data(_CHUNKED_HEAD)
            self.trailers.clear()
            self._parse(data[end:])
        return True

    def feed_eof(self, *, clean: bool) -> None:
        """The connection ended; `clean` when the other side said so."""
        if self.is_over():
            return
        if self.has_head and self._until_close and clean:
            self.is_complete = True
        elif self.has_begun():
            self.fault = faults.truncation(self._place)
        else:
            self.fault = faults.no_answer(self._place, clean=clean)
        self._llhttp = None

    def _parse(self, data: bytes) -> None:
        if self._llhttp is not None:  # else a part before this one was its end
            try:
                self._llhttp.feed_data(data)
            except (HttpParserError, HttpParserUpgrade) as error:
                self._stop(str(error))

    def _stop(self, why: str) -> None:
        """llhttp reads no further."""
        if self.is_complete:
            # Bytes after a complete answer do not spoil it, but the connection cannot be used again.
            self.keeps_alive = False
        else:
            self._fail(why)
        self._llhttp = None

    def _give_up(self, why: str) -> None:
        self._fail(why)
        self._llhttp = None

    def _fail(self, why: str) -> None:
        if self.fault is None:
            self.fault = faults.protocol_violation(self._place, why)
            self.keeps_alive = False

    # --- what llhttp calls ---

    def on_message_begin(self) -> None:
        if self.is_complete:
            raise _EnoughError
        if not self.has_head:
            self.headers.clear()

    def on_header(self, name: bytes, value: bytes) -> None:
        # A trailer comes this way as well.
        (self.trailers if self.has_head else self.headers).append((name, value.strip(b" \t")))

    def on_headers_complete(self) -> None:
        assert self._llhttp is not None
        status = self._llhttp.get_status_code()
        version = self._llhttp.get_http_version()
        if version not in ("1.1", "1.0"):
            self._refuse(f"it is HTTP/{version}")
        if status < 100 or status == 101:
            self._refuse(f"its status is {status}")
        if status < 200:
            if self._on_interim is not None:
                self._on_interim(status, self.headers[:])
            return
        self.status = status
        self._look_at_framing()
        self.keeps_alive = self._llhttp.should_keep_alive()
        self.has_head = True
        if self._bodiless:
            # llhttp does not know that this answer has no body, so it must not see another byte.
            self.is_complete = True
            raise _EnoughError

    def _look_at_framing(self) -> None:
        named = self.named = {name.lower(): value for name, value in reversed(self.headers)}
        is_chunked = b"transfer-encoding" in named
        self._until_close = not (is_chunked or b"content-length" in named or self.status in _NO_BODY)
        if is_chunked and (
            named[b"transfer-encoding"].lower() != b"chunked"
            or (len(named) < len(self.headers) and self._is_coded_twice())
        ):
            self._refuse("its transfer encoding is not chunked")

    def _is_coded_twice(self) -> bool:
        codings = [value.lower() for name, value in self.headers if name.lower() == b"transfer-encoding"]
        return any(coding != b"chunked" for coding in codings)

    def _refuse(self, why: str) -> None:
        self._fail(why)
        raise _EnoughError

    def on_message_complete(self) -> None:
        # An interim answer completes as well.
        if self.has_head:
            self.is_complete = True
            self._llhttp = None  # it holds methods of ours, and would keep both alive until the collector runs


class _ChunkedBody:
    """What llhttp tells of an answer whose head was known by its shape. It has read another head in its place."""

    def __init__(self, answer: AnswerParser) -> None:
        self.on_body = answer.pieces.append
        self.on_message_begin = answer.on_message_begin
        self.on_header = answer.on_header
        self.on_message_complete = answer.on_message_complete


# Anything but a tab and what is visible; a byte above ASCII is allowed.
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_WITHOUT_BODY = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "TRACE"})


def request_head(request: HttpRequest, target: HttpTarget, proxy: Proxy | None) -> bytes:
    """The request line and the headers: ours first, then the given ones in their order and spelling."""
    before, after, length = around_length(request, target, proxy)
    return with_length(request, before, after, length)


def with_length(request: HttpRequest, before: bytes, after: bytes, length: str | None) -> bytes:
    """The head with the length of this body between what `around_length` has made."""
    size = len(request.body)
    if length is None and (size or request.method not in _WITHOUT_BODY):
        return b"%bContent-Length: %d\r\n%b" % (before, size, after)
    if length is not None and length != str(size):
        raise _refusal("the header Content-Length does not tell the size of the body", hint="Leave it out.")
    return before + after


def open_head(
    request: HttpRequest, target: HttpTarget, proxy: Proxy | None, *, length: int | None, takes_trailers: bool = False
) -> bytes:
    """The same for a body that is sent as it comes: of this length, or in chunks where that is not known.

    With `takes_trailers` the answer may have trailers.
    """
    before, after, _ = around_length(request, target, proxy)
    if takes_trailers:
        before += b"TE: trailers\r\nConnection: TE\r\n"
    if length is None:
        return b"%bTransfer-Encoding: chunked\r\n%b" % (before, after)
    if length or request.method not in _WITHOUT_BODY:
        return b"%bContent-Length: %d\r\n%b" % (before, length, after)
    return before + after


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def last_chunk(trailers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"0\r\n%b\r\n" % b"".join(b"%b: %b\r\n" % each for each in trailers)


def around_length(request: HttpRequest, target: HttpTarget, proxy: Proxy | None) -> tuple[bytes, bytes, str | None]:
    """The head before and after our Content-Length, and the length that was given. All but the length is the same for
    each request of a client."""
    method, headers, is_passed_on = request.method, request.headers, request.is_passed_on
    if not TOKEN.fullmatch(method) or method == "CONNECT":
        raise _refusal("the method of the request cannot be sent")
    given = {name.lower(): value for name, value in headers}
    forwarded = proxy is not None and not target.origin.is_tls
    before = [f"{method} {_absolute(target) if forwarded else target.path} HTTP/1.1"]
    if "host" not in given:
        before.append(f"Host: {target.origin.place}")
    after = []
    if "accept-encoding" not in given and not is_passed_on:  # a client that names no coding takes any
        after.append("Accept-Encoding: identity")
    if "user-agent" not in given and not is_passed_on:
        after.append(f"User-Agent: {_user_agent()}")
    if forwarded and proxy is not None and proxy.authorization:
        after.append(f"Proxy-Authorization: {proxy.authorization}")
    seen: set[str] = set()
    after += [_line(name, value, seen) for name, value in headers]
    return _lines(before), _lines(after) + b"\r\n", given.get("content-length")


def _lines(lines: list[str]) -> bytes:
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1")


def _line(name: str, value: str, seen: set[str]) -> str:
    key = name.lower()
    if not TOKEN.fullmatch(name):
        raise _refusal(f"the header name {name!r} cannot be sent")
    if not _VALUE.fullmatch(value):
        raise _refusal(f"the value of the header {name} has characters that cannot be sent")
    if key in OF_A_CONNECTION:
        raise _refusal(f"the header {name} is about the connection and cannot be given", hint=f"Leave {name} out.")
    if key in ("host", "content-length"):
        if key in seen:
            raise _refusal(f"the header {name} is given twice")
        seen.add(key)
    return f"{name}: {value}"


@cache
def _user_agent() -> str:
    # The module behind this is slow to import, and a request that names its own agent does not need it.
    return f"sightline/{import_module('importlib.metadata').version('sightline')}"


def _absolute(target: HttpTarget) -> str:
    return f"{target.origin.scheme}://{target.origin.place}{target.path}"


def _refusal(message: str, *, hint: str = "Check the headers of the provider and of the request.") -> Fault:
    return Fault(Code.INVALID_REQUEST, message, hint=hint)
