"""One answer on its way to the socket: the head of one whose length is told leaves together with its body."""

import socket
import struct
from typing import Final

from uvicorn.protocols.http.httptools_impl import HEADER_RE, HEADER_VALUE_RE, STATUS_LINE, RequestResponseCycle

from sightline.web.asgi import Headers, ResponseBody, ResponseStart

_WITHOUT_BODY: Final = frozenset({204, 304})


class ResponseCycle(RequestResponseCycle):
    """A request and its answer. Each write is a packet and wakes the client, so a short answer is written once; an
    answer whose length is not known begins to leave with its head."""

    _head = b""
    """What is not written yet."""
    _ends_by_closing = False

    async def send(self, message: ResponseStart | ResponseBody) -> None:  # type: ignore[override]
        """Take the next piece of the answer."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.start":
            self._begin(message["status"], message["headers"])
        else:
            self._go_on(message["body"], is_last=not message["more_body"])

    def _begin(self, status: int, headers: Headers) -> None:
        lines = [STATUS_LINE.get(status) or b"HTTP/1.1 %d \r\n" % status]
        for name, value in headers:
            name = name.lower()
            if HEADER_RE.search(name) or HEADER_VALUE_RE.search(value):
                raise RuntimeError("a header cannot be sent")
            if name == b"content-length":
                self.expected_content_length, self.chunked_encoding = int(value), False
            elif name == b"connection" and b"close" in value.lower():
                self.keep_alive = False
                continue
            lines += (name, b": ", value, b"\r\n")
        has_body = self.scope["method"] != "HEAD" and status not in _WITHOUT_BODY
        if self.chunked_encoding is None and has_body and self.scope.get("http_version") == "1.0":
            # HTTP/1.0 has no chunks: the end of the connection is the end of the body.
            self.chunked_encoding, self._ends_by_closing, self.keep_alive = False, True, False
            self._reset_on_close(is_reset=True)
        if not self.keep_alive:
            lines.append(b"connection: close\r\n")
        if self.chunked_encoding is None:
            self.chunked_encoding = has_body
            if self.chunked_encoding:
                lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"\r\n")
        self.response_started = True
        self.waiting_for_100_continue = False
        head = b"".join(lines)
        if self.chunked_encoding or self._ends_by_closing:
            self.transport.write(head)
        else:
            self._head = head

    def _reset_on_close(self, *, is_reset: bool) -> None:
        """Whether closing the connection resets it. A body that the close ends must not look whole when it broke off,
        and a reset is the only way in which HTTP/1.0 can say so."""
        raw = self.transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", int(is_reset), 0))

    def _go_on(self, body: bytes, *, is_last: bool) -> None:
        if self.chunked_encoding:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            if chunk or is_last:
                self.transport.write(chunk + b"0\r\n\r\n" if is_last else chunk)
        elif self._ends_by_closing:
            if body:
                self.transport.write(body)
            if is_last:
                self._reset_on_close(is_reset=False)
        else:
            head, self._head = self._head, b""
            if self.scope["method"] == "HEAD":
                self.expected_content_length, body = 0, b""
            self.expected_content_length -= len(body)
            if self.expected_content_length < 0 or (is_last and self.expected_content_length):
                raise RuntimeError("an answer has another length than it said")
            self.transport.write(head + body)
        if is_last:
            self.response_complete = True
            self.message_event.set()
            if not self.keep_alive:
                self.transport.close()
            self.on_response()
