"""From one dialect to another while it arrives: bytes in at any split, bytes out as soon as they can be said."""

import msgspec

from sightline.dialects.dialect import Client, StreamWriting
from sightline.dialects.losses import UnreadLosses, lose_call_kind, lose_counts
from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.dialects.streaming import fault_of_broken_frame
from sightline.dialects.tool_names import NameRestorer
from sightline.dialects.translate import VIEWS
from sightline.errors import Fault
from sightline.model.events import Ended, Failed, FieldReceived, FrameBroken, Started, StreamEvent, UsageReceived
from sightline.model.fold import Fold
from sightline.model.reply import Reply
from sightline.model.report import Report
from sightline.model.request import Request


class StreamTranslation:
    """One stream. Between equal dialects the bytes stay as they came; `events` and `reply` are targets too.

    `request` is the client's own: it gives tools the names back under which the client knows them. `model` is the name
    that the answer is to give, where it is not the provider's.
    """

    def __init__(
        self,
        source: str,
        target: str,
        *,
        client: Client | None = None,
        request: Request | None = None,
        model: str = "",
    ) -> None:
        self._reading = dialect(source)
        self.report = Report()
        self._target = target
        self._model = model
        self._is_verbatim = source == target
        self._is_foreign = not self._is_verbatim and target not in VIEWS
        self._losses = UnreadLosses(self._reading.unread, target, self.report)
        self._hearing = ReplyDecoder(self._reading)
        self._restorer = None if request is None else NameRestorer(request, self._reading.names)
        self._writer = self._writer_of(client or Client())
        self._fold = Fold(source)
        self._is_broken = False

    def feed(self, data: bytes) -> bytes:
        """The bytes that these bytes amount to."""
        written = self._write(self._hearing.feed(data))
        return data if self._is_verbatim else written

    def close(self) -> bytes:
        """The source has ended; the target gets its terminal, or its own form of error."""
        written = self._write(self._hearing.close())
        return b"" if self._is_verbatim else written

    def fail(self, fault: Fault) -> bytes:
        """The source broke off; the target gets its own form of this error, unless it has had its end already."""
        return self._write(self._hearing.fail(fault))

    @property
    def has_ended(self) -> bool:
        """Whether the target has had its terminal, so that nothing more needs to be waited for."""
        return self._is_broken or self._hearing.has_ended

    @property
    def may_end(self) -> bool:
        """Whether nothing is missing but the end of the source's bytes."""
        return self._hearing.may_end

    @property
    def reply(self) -> Reply:
        """What has arrived so far."""
        return self._fold.reply

    def _writer_of(self, client: Client) -> StreamWriting | None:
        if self._is_verbatim:
            return None
        if self._target in VIEWS:
            return VIEWS[self._target]()
        return dialect(self._target).stream_writer(client, self.report)

    def _write(self, events: list[StreamEvent]) -> bytes:
        out: list[bytes] = []
        if not self._is_verbatim:
            for at in self._hearing.late:
                self.report.lose(at, "a frame", "it came after the end of the stream", "content")
        for event in self._up_to_broken(events) if self._is_foreign else events:
            self._note(event)
            if self._model and isinstance(event, Started):
                event = msgspec.structs.replace(event, model=self._model)
            for restored in [event] if self._restorer is None else self._restorer.feed(event):
                self._fold.add(restored)
                if self._writer is not None:
                    out.append(self._writer.feed(restored))
        return b"".join(out)

    def _up_to_broken(self, events: list[StreamEvent]) -> list[StreamEvent]:
        """A frame that cannot be read cannot be translated either: the stream fails there, and nothing follows."""
        if self._is_broken:
            return []
        for index, event in enumerate(events):
            if isinstance(event, FrameBroken):
                self._is_broken = True
                return [*events[:index], Failed(fault_of_broken_frame(event)), Ended()]
        return events

    def _note(self, event: StreamEvent) -> None:
        """What no other dialect can carry, and what cannot be read."""
        if isinstance(event, FrameBroken) and not self._is_verbatim:
            self.report.lose(event.at, "a frame", f"it cannot be read: {event.message}", "content")
        elif not self._is_foreign:
            return
        elif isinstance(event, FieldReceived):
            self._losses.of_field(event.at, event.value)
        elif isinstance(event, UsageReceived):
            lose_counts(event.usage, self._target, self.report)
        else:
            lose_call_kind(event, dialect(self._target), self.report)
