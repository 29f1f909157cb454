"""What a tool answered, as the model gets it: words of a bounded length, with the cut stated, and bounded pictures."""

import msgspec

from sightline.model.json import Json
from sightline.model.parts import Audio, Document, Image, Inline, Text
from sightline.wire.jsontext import encode

ResultPart = Text | Image | Document | Audio
NOTHING = "(no output)"
_HEAD_SHARE = 0.4
"""The end of an output usually says how it went, so it gets the larger part."""


class ToolOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of a call: parts, or a JSON object where that is the tool's form."""

    parts: tuple[ResultPart, ...] = ()
    is_error: bool = False
    structured: dict[str, Json] | None = None


class Cap(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The most that one result may hold: characters of text, and base64 characters of pictures, sound and files."""

    characters: int = 100_000
    media: int = 3_500_000


def text_outcome(text: str, *, is_error: bool = False) -> ToolOutcome:
    """An outcome of words."""
    return ToolOutcome((Text(text),), is_error=is_error)


def words_of(outcome: ToolOutcome) -> str:
    """Its words; where it has none, its JSON."""
    text = "\n".join(part.text for part in outcome.parts if isinstance(part, Text))
    return encode(outcome.structured).decode() if not text and outcome.structured is not None else text


def cap_outcome(outcome: ToolOutcome, cap: Cap) -> ToolOutcome:
    """The outcome within its bounds. An empty outcome gets a placeholder text."""
    if outcome.structured is not None and len(encode(outcome.structured)) > cap.characters:
        text = Text(encode(outcome.structured).decode())
        outcome = msgspec.structs.replace(outcome, parts=(text, *outcome.parts), structured=None)
    parts = _cap_media(outcome.parts, cap.media)
    parts = tuple(part for part in parts if not isinstance(part, Text) or part.text.strip())
    length = sum(len(part.text) for part in parts if isinstance(part, Text))
    if length > cap.characters:
        whole = "".join(part.text for part in parts if isinstance(part, Text))
        media = tuple(part for part in parts if not isinstance(part, Text))
        parts = (Text(truncate(whole, cap.characters)), *media)
    if not parts and outcome.structured is None:
        parts = (Text(NOTHING),)
    return msgspec.structs.replace(outcome, parts=parts)


def truncate(text: str, most: int) -> str:
    """The head and the tail of a text that is too long, and between them how much is missing."""
    if len(text) <= most:
        return text
    room = max(0, most - len(_mark(len(text), len(text))))
    head = int(room * _HEAD_SHARE)
    tail = room - head
    return f"{text[:head]}{_mark(len(text) - room, len(text))}{text[len(text) - tail :]}"


def _mark(missing: int, whole: int) -> str:
    return f"\n[{missing} of {whole} characters are left out here]\n"


def _cap_media(parts: tuple[ResultPart, ...], most: int) -> tuple[ResultPart, ...]:
    kept: list[ResultPart] = []
    for part in parts:
        source = None if isinstance(part, Text) else part.source
        size = len(source.data) if isinstance(source, Inline) else 0
        if size > most:
            kind = type(part).__name__.lower()
            kept.append(Text(f"[{kind} of {size} characters left out: more than the {most} that are left]"))
        else:
            most -= size
            kept.append(part)
    return tuple(kept)
