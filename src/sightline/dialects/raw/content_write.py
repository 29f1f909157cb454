"""Writing the content and the calls of a raw message, of a request or of a reply."""

from sightline.dialects.fields import compact, merge
from sightline.dialects.media import to_url
from sightline.dialects.raw.carrier import Beside, carrier_kind, carry, without_place, write_beside
from sightline.dialects.raw.names import CACHE, DETAILS, IMAGE, NAME, TEXT
from sightline.dialects.raw.thinking import write_thinking
from sightline.dialects.tool_names import as_function_arguments, flat_name
from sightline.model.json import Json, JsonObject
from sightline.model.parts import CacheBreakpoint, Image, Inline, Link, Opaque, Part, Text, Thinking, ToolCall
from sightline.model.report import Report, Severity


class ContentWriter:
    """Turns canonical parts into the parts of a message; the schema can say or carry them all."""

    def __init__(self, report: Report, *, same: bool) -> None:
        self._report = report
        self._same = same

    def parts(self, parts: tuple[Part, ...]) -> list[Json]:
        """The content of a message."""
        return [self.part(part) for part in parts]

    def part(self, part: Part) -> Json:
        """One part, in the schema's own way or carried."""
        if isinstance(part, Opaque) and part.dialect == NAME:
            return part.value
        document = self._native(part) or carry(part)
        if not self._same:
            return document
        return merge(document, compact(part.extras) if isinstance(part, CacheBreakpoint) else part.extras)

    def _native(self, part: Part) -> JsonObject | None:
        match part:
            case Text(text):
                beside = Beside(part.signature, part.signed_by, without_place(part.citations))
                return {"type": TEXT, "text": text, **write_beside(beside)}
            case Image(source=Inline() | Link() as source):
                return self._image(part, source)
            case Thinking():
                return write_thinking(part)
            case CacheBreakpoint(kind, ttl):
                if ttl is not None:
                    self._report.lose(part.at, "life of a cache mark", f"{NAME} has no field for it", "option")
                is_unsaid = self._same and "cacheType" in part.extras
                return {"type": CACHE} if is_unsaid else {"type": CACHE, "cacheType": kind}
            case _:
                return None

    def _image(self, part: Image, source: Inline | Link) -> JsonObject:
        """A picture that travels inline or by its address."""
        media_type = source.media_type if isinstance(source, Link) else ""
        detail = part.detail
        if detail is not None and detail not in DETAILS and not self._same:
            # `auto` is what a picture without a detail gets anyway.
            severity: Severity = "identity" if detail == "auto" else "option"
            self._report.lose(part.at, f"detail {detail!r} of an image", f"{NAME} knows low and high only", severity)
            detail = None
        return {
            "type": IMAGE,
            "imageUrl": compact({"url": to_url(source), "detail": detail}),
            **write_beside(Beside(part.signature, part.signed_by, media_type=media_type)),
        }

    def call(self, call: ToolCall, call_id: str) -> JsonObject:
        """An entry of `toolCalls`."""
        arguments = as_function_arguments(call)
        inner: JsonObject = {
            "name": flat_name(call.name, call.namespace),
            "arguments": arguments if self._same else arguments or "{}",
        }
        beside = Beside(call.signature, call.signed_by, item=call.item, kind=carrier_kind(call.kind))
        document: JsonObject = {"id": call_id, "type": "function", "function": inner, **write_beside(beside)}
        return merge(document, call.extras) if self._same else document
