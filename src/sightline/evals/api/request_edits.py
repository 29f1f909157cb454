"""What a person changed in a request on its way, and the same change as values of the case that it came from."""

import re
from collections.abc import Callable, Sequence

from sightline.catalog.problem import Path
from sightline.errors import Code, Fault
from sightline.exchange.recording.exchange_record import RecordedExchange, find_exchange, load_exchange, read_request
from sightline.model.comparison import of_message
from sightline.model.exchange import Edited
from sightline.model.json import Json, JsonObject
from sightline.model.message import Message
from sightline.model.parts import Text
from sightline.store.store import Store
from sightline.wire.jsontext import encode

_INPUTS = ("input", "input_messages")


class SentBack:
    """Looks into the record."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        self._store = store
        self._now = now

    async def find_edit(self, exchanges: Sequence[str]) -> RecordedExchange | None:
        """The last of these exchanges that a person changed, as far as the record still has it."""
        for each in reversed(exchanges):
            try:
                summary = await find_exchange(self._store, each, now=self._now())
                found = await load_exchange(self._store, summary, needs_bodies=False)
                if any(isinstance(noted.fact, Edited) for noted in found.facts):
                    return await load_exchange(self._store, summary)
            except Fault:
                continue  # it was forgotten, and so was what was changed in it
        return None


def messages_before_edit(edited: RecordedExchange, asked: Sequence[Message]) -> Sequence[Message]:
    """The messages of a request before a person changed it. What was `asked` by the result of the case is what was sent
    in the end; the record has both, unless it is the request of a later round."""
    before = read_request(edited.spoken, edited.body, edited.model).messages
    return before if [each.role for each in before] == [each.role for each in asked] else asked


def changes_of(source: Json, asked: Sequence[Message], sent: Sequence[Message]) -> list[tuple[Path, Json]]:
    """The values of a case that make it ask what was sent in place of what was asked; a fault where they are none."""
    places = _places(source, asked)
    if [each.role for each in asked] != [each.role for each in sent]:
        raise _unclear("messages were added or taken away")
    found: list[tuple[Path, str]] = []
    for one, other, place in zip(asked, sent, places, strict=True):
        before, after = of_message(one), of_message(other)
        if before != after:
            found += _texts(before, after, place)
    if not found:
        raise _unclear("the messages are as they were")
    return [(path, _restore_variables(value, source)) for path, value in found]


def _places(source: Json, asked: Sequence[Message]) -> list[tuple[Path, Json]]:
    """Where each message stands in the case and what stands there; nothing for one that comes from elsewhere."""
    nowhere: list[tuple[Path, Json]] = [((), None)] * len(asked)
    key = next((name for name in _INPUTS if isinstance(source, dict) and name in source), "")
    written = source[key] if key and isinstance(source, dict) else None
    if isinstance(written, str):
        # What the suite says once stands in front of what the case says.
        return [*nowhere[1:], ((key,), written)] if asked else []
    if not isinstance(written, list) or len(written) > len(asked):
        return nowhere
    own = [((key, index, "content"), _content(each)) for index, each in enumerate(written)]
    return [*nowhere[len(own) :], *own]


def _restore_variables(text: str, source: Json) -> Json:
    """The text with the case's variables in the place of what they stand for: it was filled in when it was asked."""
    variables = source.get("vars") if isinstance(source, dict) else None
    written = encode(source).decode("utf-8", "replace")
    for name, value in (variables if isinstance(variables, dict) else {}).items():
        used = re.search(r"\{\{\s*" + re.escape(name) + r"\s*\}\}", written)
        if used is not None and isinstance(value, str) and value:
            text = text.replace(value, used.group())
    return text


def _content(message: Json) -> Json:
    return message.get("content") if isinstance(message, dict) else None


def _texts(before: Message, after: Message, place: tuple[Path, Json]) -> list[tuple[Path, str]]:
    path, content = place
    pairs = list(zip(before.parts, after.parts, strict=False))
    if len(before.parts) != len(after.parts) or any(type(one) is not type(other) for one, other in pairs):
        raise _unclear("parts of a message were added or taken away")
    if isinstance(content, str) and len(pairs) == 1 and isinstance(pairs[0][1], Text):
        return [(path, pairs[0][1].text)]
    if isinstance(content, list) and len(content) == len(pairs):
        return _parts(pairs, path, content)
    raise _unclear("it does not stand in the case as one text")


def _parts(pairs: Sequence[tuple[object, object]], path: Path, content: Sequence[Json]) -> list[tuple[Path, str]]:
    found: list[tuple[Path, str]] = []
    for index, (one, other) in enumerate(pairs):
        if one == other:
            continue
        written = content[index]
        if not isinstance(other, Text) or not isinstance(written, dict) or _text_key(written) is None:
            raise _unclear("more than words was changed")
        found.append(((*path, index, _text_key(written) or ""), other.text))
    return found


def _text_key(part: JsonObject) -> str | None:
    """The key that holds the words of a part."""
    return next((key for key in ("value", "text") if part.get("type") == "text" and key in part), None)


def _unclear(why: str) -> Fault:
    hint = "Open the request and make a case of it, or change the file by hand."
    return Fault(Code.USAGE, f"what was changed cannot be written into the case: {why}", hint=hint, status=409)
