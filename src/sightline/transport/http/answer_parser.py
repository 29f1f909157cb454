"""An answer as its bytes come: llhttp reads them, and what it lets pass but we do not is refused here."""

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from sightline.errors import Fault
from sightline.transport.http import faults

HEAD_LIMIT = 256 * 1024
_NO_BODY = frozenset({204, 304})


class _EnoughError(Exception):
    """Stops llhttp, and goes no further than `feed`."""


class AnswerParser:
    """One answer. `feed` it what comes and tell it when the connection `ended`; take the body from `pieces`.

    Answers with a status of 1xx are passed over. A parser serves one answer only, so that nothing of an answer, such as
    its trailers, can turn up in the next.
    """

    def __init__(self, place: str, *, bodiless: bool = False) -> None:
        self.status = 0
        self.reason = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.pieces: list[bytes] = []
        self.has_head = False
        self.is_complete = False
        self.keeps_alive = False
        self.fault: Fault | None = None
        # llhttp calls this for each chunk, with no frame of ours between.
        self.on_body = self.pieces.append
        self._place = place
        self._bodiless = bodiless
        self._until_close = False
        self._head_size = 0
        self._framing_size = 0
        self._llhttp: HttpResponseParser | None = HttpResponseParser(self)

    def is_over(self) -> bool:
        """Whether nothing more can come of it."""
        return self.is_complete or self.fault is not None

    def has_begun(self) -> bool:
        """Whether any byte came."""
        return self._head_size > 0

    def feed(self, data: bytes) -> None:
        """Take in what came. Must not be called when the answer is over."""
        if not self.has_head:
            self._feed_head(data)
            return
        before = len(self.pieces)
        self._parse(data)
        if len(self.pieces) > before:
            self._framing_size = 0
            return
        # Nothing but the size and the extensions of a chunk, or trailers: nobody takes those, so nobody slows them.
        self._framing_size += len(data)
        if self._framing_size > HEAD_LIMIT and not self.is_over():
            self._give_up(f"more than {HEAD_LIMIT // 1024} KiB of it are neither head nor body")

    def _feed_head(self, data: bytes) -> None:
        # Up to the limit and not further, so that the limit does not depend on how the bytes were split.
        room = HEAD_LIMIT - self._head_size
        self._head_size += len(data)
        self._parse(data[:room])
        if self._head_size > HEAD_LIMIT and not self.is_over():
            if self.has_head:
                self._parse(data[room:])
            else:
                self._give_up(f"its head is larger than {HEAD_LIMIT // 1024} KiB")

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
        assert self._llhttp is not None, "fed after its end"
        try:
            self._llhttp.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            if self.is_complete:
                # What stands behind a complete answer does not spoil it, but nobody wants to hear more of it.
                self.keeps_alive = False
            else:
                self._fail(str(error))
        if self.is_complete or self.fault is not None:
            # It holds methods of ours, and would keep both alive until the collector runs.
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
        self.reason = b""
        self.headers.clear()

    def on_status(self, part: bytes) -> None:
        self.reason += part

    def on_header(self, name: bytes, value: bytes) -> None:
        # A trailer comes this way as well.
        if not self.has_head:
            self.headers.append((name, value.strip(b" \t")))

    def on_headers_complete(self) -> None:
        assert self._llhttp is not None
        status = self._llhttp.get_status_code()
        version = self._llhttp.get_http_version()
        if version not in ("1.1", "1.0"):
            self._refuse(f"it is HTTP/{version}")
        if status < 100 or status == 101:
            self._refuse(f"its status is {status}")
        if status < 200:
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
        framed = self.status in _NO_BODY
        for name, value in self.headers:
            key = name.lower()
            if key == b"content-length":
                framed = True
            elif key == b"transfer-encoding":
                framed = True
                if value.lower() != b"chunked":
                    self._refuse("its transfer encoding is not chunked")
        self._until_close = not framed

    def _refuse(self, why: str) -> None:
        self._fail(why)
        raise _EnoughError

    def on_message_complete(self) -> None:
        # An interim answer completes as well.
        self.is_complete = self.has_head
