"""Templates for requests that differ only in their texts: the texts are put into the translation of an earlier request.

A script sends the same request again and again with different texts: the same settings, the same roles. The translation
and its report are then the same too, except for the texts. So a body whose shape was seen before is not parsed at all:
its texts are encoded again, between the bytes that were written around them before.

The bytes around the texts are learned by translating the same body with marks in place of its texts. They are used only
if the messages consist of these texts and nothing else, and each mark came out once as a string of its own. A text that
a translation could examine is translated in full: a blank one, which some APIs refuse, and one that begins like a line
meant for one provider only. So are requests with tools, because cache marks depend on sizes. And the last message has
to be the user's: the assistant's last message is trimmed at its end, even if what follows it is left out because it is
empty, or moved because it is a system message.

For a request of 1 KB this takes 12 µs instead of 43, in a loop that does nothing else.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from sightline.dialects.translate import RequestTranslation
from sightline.errors import Fault
from sightline.model.parts import Text
from sightline.model.report import Report
from sightline.model.request import Message, Request, parts_of
from sightline.wire.jsontext import encode

LARGEST_BODY = 1 << 15
"""It takes longer to search a larger body for texts than to translate everything else in it."""

_LARGEST_SHAPE = 1 << 12
_MOST_SHAPES = 4
_MOST_SEEN = 64
_TEXT = re.compile(rb'("(?:content|text)": ?")([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL)
_STRING = msgspec.json.Decoder(str)
_ENCODER = msgspec.json.Encoder()


class BodyTemplate(NamedTuple):
    """A translation without its texts: `pieces` surround them, and `order` lists which text follows each piece except
    the last. `said` are the texts in the order of the messages. `private` are the beginnings of texts that the
    translation examines."""

    pieces: tuple[bytes, ...]
    order: tuple[int, ...]
    said: tuple[int, ...]
    report: Report
    request: Request
    private: tuple[str, ...]

    def fill(self, spelled: list[bytes]) -> RequestTranslation | None:
        """The translation of a body of this shape with these texts, in their original encoding; None if it may
        differ."""
        texts: list[str] = []
        written: list[bytes] = []
        try:
            for each in spelled:
                text = _STRING.decode(b'"%b"' % each)
                if text.isspace() or not text or text.startswith(self.private):
                    return None
                texts.append(text)
                written.append(_ENCODER.encode(text))
        except (msgspec.DecodeError, UnicodeError):
            return None
        first, *others = self.pieces
        data = [first]
        for number, piece in zip(self.order, others, strict=True):
            data.append(written[number])
            data.append(piece)
        request = _with_texts(self.request, [texts[number] for number in self.said])
        return RequestTranslation(b"".join(data), self.report, request)


class BodyTemplates:
    """The templates of bodies from one client to one provider that are all translated in the same way."""

    __slots__ = ("_known", "_seen")

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, ...], BodyTemplate | None] = {}
        self._seen: set[int] = set()

    def translate(
        self, body: bytes, translate: Callable[[bytes], RequestTranslation], private: tuple[str, ...]
    ) -> RequestTranslation:
        """The result of `translate` for this body. A shape is learned when it is seen for the second time. `private`
        are the beginnings of texts that `translate` examines."""
        if len(body) > LARGEST_BODY or body.find(b'"tools"') >= 0:
            return translate(body)
        pieces = _TEXT.split(body)
        texts = pieces[2::3]
        del pieces[2::3]
        shape = tuple(pieces)
        is_known = shape in self._known
        template = self._known[shape] if is_known else self._learn(shape, len(texts), translate, private)
        found = None if template is None else template.fill(texts)
        return translate(body) if found is None else found

    def _learn(
        self,
        shape: tuple[bytes, ...],
        count: int,
        translate: Callable[[bytes], RequestTranslation],
        private: tuple[str, ...],
    ) -> BodyTemplate | None:
        key = hash(shape)
        if key not in self._seen:
            if len(self._seen) >= _MOST_SEEN:
                self._seen.clear()
            self._seen.add(key)
            return None
        if not count or sum(map(len, shape)) > _LARGEST_SHAPE:
            return None
        if len(self._known) >= _MOST_SHAPES:
            self._known.clear()
        template = self._known[shape] = _make_template(shape, count, translate, private)
        return template


def _make_template(
    shape: tuple[bytes, ...], count: int, translate: Callable[[bytes], RequestTranslation], private: tuple[str, ...]
) -> BodyTemplate | None:
    """The template of bodies of this shape; None if the translation depends on more than their texts."""
    marks = [f"⟨text {number} of a template⟩" for number in range(count)]
    spelled = [encode(mark) for mark in marks]
    marked = [shape[0]]
    for number in range(count):
        marked += [shape[1 + 2 * number], spelled[number][1:], shape[2 + 2 * number]]
    try:
        translation = translate(b"".join(marked))
    except Fault:
        return None
    data, report, request = translation.data, translation.report, translation.request
    said = _plain_texts(request)
    quoted = [each.what for each in report.losses] + [each.what for each in report.additions]
    if sorted(said) != sorted(marks) or "⟨text" in "".join(quoted):
        return None
    places = sorted((data.find(each), number) for number, each in enumerate(spelled))
    if any(data.count(each) != 1 for each in spelled):
        return None
    pieces: list[bytes] = []
    end = 0
    for place, number in places:
        pieces.append(data[end:place])
        end = place + len(spelled[number])
    pieces.append(data[end:])
    order = tuple(number for _, number in places)
    return BodyTemplate(tuple(pieces), order, tuple(map(marks.index, said)), report, request, private)


def _plain_texts(request: Request) -> list[str]:
    """The texts of the messages if these consist only of texts and the last one is the user's; otherwise empty."""
    last = request.messages[-1] if request.messages else None
    if request.tools or last is None or last.role != "user" or not last.parts:
        return []
    parts = parts_of(request.messages)
    plain = [part.text for part in parts if isinstance(part, Text) and part == Text(part.text, at=part.at)]
    return plain if len(plain) == len(parts) else []


def _with_texts(request: Request, texts: list[str]) -> Request:
    """The request with these texts in place of the marks."""
    messages: list[Message] = []
    start = 0
    for message in request.messages:
        end = start + len(message.parts)
        pairs = zip(message.parts, texts[start:end], strict=True)
        parts = tuple([msgspec.structs.replace(part, text=text) for part, text in pairs])
        messages.append(msgspec.structs.replace(message, parts=parts))
        start = end
    return msgspec.structs.replace(request, messages=tuple(messages))
