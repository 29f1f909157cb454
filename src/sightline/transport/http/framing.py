"""HTTP/1.1 framing: the head of a request as bytes, and an answer parsed from its bytes.

llhttp parses the answer; what it tolerates and we do not is refused here. A request that would end a line early, or
frame its body twice, is refused too.
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
"""Called with the status and the headers of each 1xx answer that precedes the final one."""


_FRAMED_OTHERWISE = frozenset({b"upgrade", b"trailer"})
_CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
_MOST_SHAPES = 256
_SHAPES: "dict[tuple[bytes, ...], AnswerShape | None]" = {}
"""Shapes by the beginnings of their header lines; None for one that was seen only once so far."""


class AnswerShape:
    """The head of an answer that llhttp has parsed, without the values of its headers. A server repeats the same
    headers in the same order, so the next head of this shape is matched instead of parsed. The body is framed either by
    its length alone, and then all of it has to be here, or by chunks, which llhttp reads. The values of `connection`
    and `transfer-encoding` are part of the shape."""

    def __init__(self, first_line: bytes, headers: list[tuple[bytes, bytes]], status: int) -> None:
        self.status = status
        self.names = [name for name, _ in headers]
        self.low = [name.lower() for name in self.names]
        self.length_at = self.low.index(b"content-length") if b"content-length" in self.low else None
        """The position of the content length among the headers; None for a chunked body."""
        lines = [b"%b: %b" % (re.escape(name), _value_pattern(name.lower(), value)) for name, value in headers]
        self.match = re.compile(b"\r\n".join([re.escape(first_line), *lines, b"\r\n"])).match


def _value_pattern(name: bytes, value: bytes) -> bytes:
    if name in (b"connection", b"transfer-encoding"):
        return b"(" + re.escape(value) + b")"
    return rb"(\d{1,12})" if name == b"content-length" else rb"(?! )([ -~\x80-\xff]*)(?<! )"


def _find_shape(data: bytes, answer: "AnswerParser") -> AnswerShape | None:
    """The shape of an answer whose head llhttp has parsed from these bytes. None for a shape that is seen for the first
    time, and for heads that cannot be split at their line breaks."""
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
    """The size line of a chunk that takes this many bytes together with that line and its final line break. Empty if no
    chunk has this length, for the last chunk, and for large chunks."""
    if length > LARGE_CHUNK:
        return b""
    for digits in range(1, 8):
        line = b"%x\r\n" % max(0, length - digits - 4)
        if len(line) == digits + 2:
            return b"" if line == b"0\r\n" else line
    return b""


def unframe(chunks: Iterable[bytes]) -> list[bytes]:
    """The contents of chunks whose size lines have the usual form."""
    return [each[each.index(b"\n") + 1 : -2] for each in chunks]


class _EnoughError(Exception):
    """Stops llhttp; caught in `feed`."""


def _ends_with_chunk(data: bytes, body: bytes) -> bool:
    """Whether these bytes of a chunked answer end with a complete chunk. `body` is the last part that llhttp found in
    them.

    The guess can be wrong for a partial chunk that consists of line breaks, and for a body that is a number, which
    looks like the size of the next chunk. The frames of a stream are neither.
    """
    return body[-1:] == b"\n" and body[:1] not in b"\r\n" and data.endswith(b"%x\r\n%b\r\n" % (len(body), body))


class AnswerParser:
    """Parses one answer. `feed` it the bytes, call `ended` when the connection ends, and take the body from `pieces`.

    1xx answers go to `on_interim`. An answer with the `shape` of the one before it is not parsed by llhttp. A parser
    reads one answer only, so that nothing of an answer, such as its `trailers`, can leak into the next.
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
    """Whether llhttp has read exactly to the end of a chunk. Complete chunks that follow can bypass it."""
    _llhttp: HttpResponseParser | None = None
    values: tuple[bytes, ...] | None = None
    """The values of the headers, if the answer matched the `shape`."""

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
        """The headers by lower-case name once all have arrived; the first one of each name."""
        self.trailers: list[tuple[bytes, bytes]] = []
        self.pieces: list[bytes] = []
        self._on_interim = on_interim
        # llhttp calls list.append for each chunk, without a Python frame in between.
        self.on_body = self.pieces.append
        self._place = place
        self._bodiless = bodiless
        self.shape = shape
        """At first the shape of the previous answer, then that of this one, if it has one."""

    def is_over(self) -> bool:
        """Whether the answer has ended, completely or by a fault."""
        return self.is_complete or self.fault is not None

    def has_begun(self) -> bool:
        return self._head_size > 0

    def feed(self, data: bytes) -> None:
        """Parse more bytes. Must not be called when the answer is over."""
        if not self.has_head:
            self._feed_head(data)
            return
        # Runs for each chunk of each stream, so it takes as few steps as possible.
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
        # Chunk sizes, extensions and trailers are not queued, so backpressure does not limit them.
        self._framing_size += len(data)
        if self._framing_size > HEAD_LIMIT and not self.is_over():
            self._give_up(f"more than {HEAD_LIMIT // 1024} KiB of it are neither head nor body")

    def _feed_head(self, data: bytes) -> None:
        # Exactly up to the limit, so that the result does not depend on how the bytes were split.
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
        """Take a complete answer of this shape. False if llhttp has to parse it."""
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
        """The connection ended; `clean` if the server closed it properly."""
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
        if self._llhttp is not None:  # otherwise an earlier part ended it
            try:
                self._llhttp.feed_data(data)
            except (HttpParserError, HttpParserUpgrade) as error:
                self._stop(str(error))

    def _stop(self, why: str) -> None:
        """llhttp has stopped with an error, or because we told it to."""
        if self.is_complete:
            # Bytes after a complete answer do not invalidate it, but the connection cannot be reused.
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
        # llhttp reports trailers here too.
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
            # llhttp does not know that this answer has no body, so it must not get another byte.
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
        # Interim answers get here too.
        if self.has_head:
            self.is_complete = True
            self._llhttp = None  # it refers to our methods: the cycle would live until the garbage collector runs


class _ChunkedBody:
    """llhttp's callbacks for an answer whose head matched a shape: llhttp was fed a substitute head."""

    def __init__(self, answer: AnswerParser) -> None:
        self.on_body = answer.pieces.append
        self.on_message_begin = answer.on_message_begin
        self.on_header = answer.on_header
        self.on_message_complete = answer.on_message_complete


# Everything but tabs, visible characters and bytes above ASCII.
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_WITHOUT_BODY = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "TRACE"})


def request_head(request: HttpRequest, target: HttpTarget, proxy: Proxy | None) -> bytes:
    """The request line and the headers: ours first, then the caller's in their order and spelling."""
    before, after, length = around_length(request, target, proxy)
    return with_length(request, before, after, length)


def with_length(request: HttpRequest, before: bytes, after: bytes, length: str | None) -> bytes:
    """Insert the content length of this body between the parts that `around_length` made."""
    size = len(request.body)
    if length is None and (size or request.method not in _WITHOUT_BODY):
        return b"%bContent-Length: %d\r\n%b" % (before, size, after)
    if length is not None and length != str(size):
        raise _refusal("the header Content-Length does not tell the size of the body", hint="Leave it out.")
    return before + after


def open_head(
    request: HttpRequest, target: HttpTarget, proxy: Proxy | None, *, length: int | None, takes_trailers: bool = False
) -> bytes:
    """The head for a streamed body of this length, or for a chunked one if the length is unknown.

    With `takes_trailers`, the request says that the answer may have trailers.
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
    """The head before and after our Content-Length, and the length that the caller gave, if any. Everything but the
    length is the same for all requests of a client."""
    method, headers, is_passed_on = request.method, request.headers, request.is_passed_on
    if not TOKEN.fullmatch(method) or method == "CONNECT":
        raise _refusal("the method of the request cannot be sent")
    given = {name.lower(): value for name, value in headers}
    forwarded = proxy is not None and not target.origin.is_tls
    before = [f"{method} {_absolute(target) if forwarded else target.path} HTTP/1.1"]
    if "host" not in given:
        before.append(f"Host: {target.origin.place}")
    after = []
    if "accept-encoding" not in given and not is_passed_on:  # a client that names no coding accepts any
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
    # The import is slow, and a request with its own user agent does not need it.
    return f"sightline/{import_module('importlib.metadata').version('sightline')}"


def _absolute(target: HttpTarget) -> str:
    return f"{target.origin.scheme}://{target.origin.place}{target.path}"


def _refusal(message: str, *, hint: str = "Check the headers of the provider and of the request.") -> Fault:
    return Fault(Code.INVALID_REQUEST, message, hint=hint)
